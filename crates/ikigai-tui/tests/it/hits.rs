//! Search hits: the list, jumping to a hit in an agent's history, and returning.

use crate::support::Stage;

/// Returns true if the cursor is on the row with this text.
fn is_marked(stage: &mut Stage, text: &str) -> bool {
    let row = stage.row_with(text);
    stage.grid().cursor == Some((row, 0))
}

/// Looks for words and waits for the list.
async fn search(stage: &mut Stage, words: &str) -> String {
    stage.line(&format!("/search {words}")).await;
    stage.sees("Results: ").await
}

#[tokio::test]
async fn a_hit_of_a_reaped_child_is_gone_to_and_come_back_from() {
    let mut stage = Stage::new((90, 24)).await;
    stage.talk("hello", "Good day.").await;
    let parent = stage.current();
    stage.line("/fork --name docs").await;
    stage.sees("[docs").await;
    let child = stage.current();
    stage.talk("say a rare word", "It is zanzibar.").await;
    stage.line("/switch parser").await;
    stage.sees("[parser").await;
    stage.line("/kill docs").await;
    stage.sees("✗ killed docs").await;
    stage.line("/reap docs").await;
    stage.sees("Hidden: docs").await;
    let before = stage.commands(parent).await;

    let list = search(&mut stage, "zanzibar").await;
    assert!(list.contains("#docs."), "{list}");
    assert!(list.contains("It is zanzibar."), "{list}");
    assert_eq!(
        stage.commands(parent).await,
        before,
        "looking leaves no row"
    );

    stage.press("enter").await;
    stage.sees("[docs ✗]").await;
    assert_eq!(stage.current(), child);
    assert!(is_marked(&mut stage, "It is zanzibar."));
    assert!(stage.last_row().contains("14:03"), "it is browsed");

    stage.press("esc").await;
    let list = stage.sees("Results: zanzibar").await;
    assert_eq!(stage.current(), parent);
    assert!(list.contains("> #docs."), "{list}");
    stage.press("esc").await;
    stage.until(|text| !text.contains("Results: ")).await;
    assert_eq!(stage.current(), parent);
}

#[tokio::test]
async fn a_hit_far_up_is_read_with_what_stands_around_it() {
    let mut stage = Stage::new((80, 24)).await;
    stage.talk_long(160).await;

    search(&mut stage, "\"question 30\"").await;
    stage.press("enter").await;
    let screen = stage.sees("question 31").await;
    assert!(is_marked(&mut stage, "question 30"), "{screen}");
    let rows = stage
        .driver
        .app
        .pane()
        .unwrap()
        .shown()
        .view
        .entries()
        .len();
    assert!(rows < 350, "{rows} of 480 rows were read");

    stage.press("k k").await;
    assert!(is_marked(&mut stage, "question 29"), "{}", stage.text());
    for turn in 30..155 {
        stage.press("]").await;
        let message = format!("question {turn}");
        assert!(is_marked(&mut stage, &message), "{}", stage.text());
    }
    stage.press("G").await;
    assert!(is_marked(&mut stage, "Answer 159."), "{}", stage.text());
    stage.press("esc").await;
    stage.sees("Results: ").await;
}

#[tokio::test]
async fn pages_below_a_hit_are_read_by_scrolling_and_the_end_is_where_it_was() {
    let mut stage = Stage::new((80, 24)).await;
    stage.talk_long(120).await;
    search(&mut stage, "\"question 7\"").await;
    stage.press("enter").await;
    stage.sees("question 7").await;

    let mut last = 7;
    for _ in 0..80 {
        stage.press("page-down").await;
        let text = stage.text();
        let shown = |turn: &usize| text.contains(&format!("Answer {turn}."));
        let lowest = (0..120).rev().find(shown).unwrap();
        assert!(lowest >= last && lowest <= last + 20, "{last}\n{text}");
        last = lowest;
    }
    assert_eq!(last, 119);
    stage.press("esc esc").await;
    stage.until(|text| !text.contains("Results: ")).await;
    assert!(stage.text().contains("Answer 119."));
}

#[tokio::test]
async fn a_hit_that_was_gone_back_from_says_so() {
    let mut stage = Stage::new((90, 24)).await;
    stage.talk("first", "One.").await;
    stage.talk("second", "A zanzibar.").await;
    stage.line("/undo").await;
    stage.until(|text| !text.contains("A zanzibar.")).await;
    stage.press("ctrl-u").await;
    stage.talk("third", "Three.").await;

    search(&mut stage, "zanzibar").await;
    stage.press("enter").await;
    let screen = stage.sees("ot in context").await;
    assert!(is_marked(&mut stage, "A zanzibar."), "{screen}");
    assert!(screen.contains("second"), "{screen}");
    assert!(!screen.contains("Three."), "{screen}");

    stage.press("esc esc").await;
    let screen = stage.until(|text| text.contains("Three.")).await;
    assert!(!screen.contains("A zanzibar."), "{screen}");
}

#[tokio::test]
async fn what_was_cleared_away_is_gone_to_as_well() {
    let mut stage = Stage::new((90, 24)).await;
    stage.talk("first", "A zanzibar.").await;
    stage.line("/clear").await;
    stage.talk("second", "Two.").await;

    search(&mut stage, "zanzibar").await;
    stage.press("enter").await;
    let screen = stage.sees("ot in context").await;
    assert!(is_marked(&mut stage, "A zanzibar."), "{screen}");
}

#[tokio::test]
async fn further_hits_are_read_when_they_are_wanted() {
    let mut stage = Stage::new((80, 24)).await;
    for turn in 0..60 {
        stage.talk(&format!("zanzibar {turn}"), "Yes.").await;
    }

    search(&mut stage, "zanzibar").await;
    stage.press("up").await;
    assert!(stage.text().contains("> more"), "{}", stage.text());
    stage.press("enter").await;
    let screen = stage.sees("zanzibar 9").await;
    assert!(screen.contains("51/60"), "{screen}");
}

#[tokio::test]
async fn nothing_found_and_bad_filters_are_said() {
    let mut stage = Stage::new((80, 24)).await;
    stage.talk("hello", "Good day.").await;

    stage.line("/search zanzibar").await;
    stage.sees("No match").await;
    stage.line("/search kind:nonsense").await;
    stage.sees("⚠").await;
}

#[tokio::test]
async fn leaving_browse_mode_in_any_way_is_leaving_the_place() {
    let mut stage = Stage::new((80, 24)).await;
    stage.talk_long(40).await;
    for keys in ["ctrl-c", "ctrl-x a"] {
        search(&mut stage, "\"question 2\"").await;
        stage.press("enter").await;
        stage.sees("history").await;
        stage.press(keys).await;
        assert!(!stage.driver.app.pane().unwrap().is_elsewhere(), "{keys}");
    }
}
