//! Browse mode: cursor, unfolding, search, and actions on an event.

use std::time::Duration;

use ikigai_tui::app::TerminalAction;
use ikigai_tui::key::MouseAction;

use crate::support::{SIZES, Stage};

/// Returns a screen after two turns, the second with a long answer.
async fn two_turns(size: (u16, u16)) -> Stage {
    let mut stage = Stage::new(size).await;
    stage.talk("what is two and two", "It is four.").await;
    stage.talk("and three", "Then it is seven.").await;
    stage
}

/// Returns true if the cursor is on the row with this text.
fn is_marked(stage: &mut Stage, text: &str) -> bool {
    let row = stage.row_with(text);
    stage.grid().cursor == Some((row, 0))
}

#[tokio::test]
async fn the_cursor_is_on_whole_events_and_the_last_row_tells_which() {
    for size in SIZES {
        let mut stage = two_turns(size).await;

        stage.press("ctrl-t").await;
        assert!(is_marked(&mut stage, "Then it is seven."), "{size:?}");
        let last = stage.last_row();
        assert_eq!(last.contains("· 14:03 ·"), size.0 >= 60, "{last}");
        assert!(last.contains("Enter expand"), "{last}");
        assert!(last.trim_start().starts_with('#'), "{last}");
        assert_eq!(last.contains(" tokens"), size.0 >= 60, "{last}");

        stage.press("k").await;
        assert!(is_marked(&mut stage, "and three"), "{size:?}");
        stage.press("up").await;
        assert!(is_marked(&mut stage, "It is four."), "{size:?}");
        stage.press("[").await;
        assert!(is_marked(&mut stage, "what is two"), "{size:?}");
        stage.press("]").await;
        assert!(is_marked(&mut stage, "and three"), "{size:?}");
        stage.press("j").await;
        assert!(is_marked(&mut stage, "Then it is seven."), "{size:?}");

        stage.press("q").await;
        assert!(stage.last_row().contains("ask"), "the status is back");
    }
}

#[tokio::test]
async fn esc_twice_on_an_empty_input_browses_and_esc_comes_back() {
    let mut stage = two_turns((80, 24)).await;

    stage.press("esc").await;
    assert!(stage.text().contains("Esc again to browse"));
    stage.press("esc").await;
    assert!(is_marked(&mut stage, "Then it is seven."));
    stage.press("esc").await;
    assert!(!stage.last_row().contains("14:03"));

    stage.letters("half").await;
    stage.press("esc esc").await;
    assert_eq!(stage.input(), "", "with text it clears");
    assert!(!stage.last_row().contains("14:03"));
}

#[tokio::test]
async fn a_click_browses_and_the_first_letter_changes_nothing() {
    let mut stage = two_turns((80, 24)).await;
    let row = stage.row_with("It is four.");

    stage.mouse(MouseAction::Press, 4, row).await;
    stage.mouse(MouseAction::Release, 4, row).await;
    assert!(is_marked(&mut stage, "It is four."));

    stage.press("r").await;
    assert!(is_marked(&mut stage, "It is four."), "it was asked first");
    stage.press("r").await;
    stage.until(|screen| !screen.contains("seven")).await;
}

#[tokio::test]
async fn long_events_are_unfolded_one_by_one_or_all() {
    let mut stage = Stage::new((80, 24)).await;
    let long: Vec<_> = (0..60).map(|line| format!("line {line}.")).collect();
    stage.provider.will_say("read");
    stage.driver.app.submit(long.join("\n"));
    stage.sees("● read").await;

    stage.press("ctrl-t k").await;
    assert!(!stage.text().contains("line 59."));
    stage.press("enter G").await;
    assert!(stage.text().contains("line 59."));
    stage.press("k space G").await;
    assert!(!stage.text().contains("line 59."));
    stage.press("O G").await;
    assert!(stage.text().contains("line 59."));
}

#[tokio::test]
async fn an_event_taller_than_the_screen_is_scrolled_through() {
    let mut stage = Stage::new((80, 24)).await;
    let long: Vec<_> = (0..80).map(|line| format!("- line {line}.")).collect();
    stage.talk("say much", &long.join("\n")).await;
    stage.talk("thanks", "Welcome.").await;
    stage.press("ctrl-t [ [").await;
    assert!(is_marked(&mut stage, "say much"));

    for (key, end) in [("j", "Welcome."), ("k", "say much")] {
        let mut seen = Vec::new();
        for _ in 0..14 {
            stage.press(key).await;
            let rows = stage.rows();
            seen.extend((0..80).filter(|line| {
                let text = format!("line {line}.");
                rows.iter().any(|row| row.ends_with(&text))
            }));
            if rows.iter().any(|row| row.contains(end)) {
                break;
            }
        }
        assert!((0..80).all(|line| seen.contains(&line)), "{key}: {seen:?}");
    }
}

#[tokio::test]
async fn text_is_found_and_older_pages_are_read_for_it() {
    let mut stage = Stage::new((80, 24)).await;
    stage.talk("the Needle is here", "In the hay.").await;
    for turn in 0..60 {
        stage.talk(&format!("turn {turn}"), "Hay.").await;
    }
    // As after a restart: only the newest rows were read.
    let agent = stage.current();
    let pane = ikigai_tui::app::Pane::open(&stage.driver.engine, agent).await;
    stage.driver.app.show(pane.unwrap());
    assert!(!stage.driver.app.pane().unwrap().is_complete);

    stage.press("ctrl-t /").await;
    stage.line("needle").await;
    assert!(is_marked(&mut stage, "the Needle is here"));

    stage.press("n").await;
    assert!(stage.text().contains("No match above"));
    stage.press("G /").await;
    stage.press("ctrl-u").await;
    stage.line("turn 5").await;
    assert!(is_marked(&mut stage, "turn 59"), "the newest first");
    stage.press("n").await;
    assert!(is_marked(&mut stage, "turn 58"));
    stage.press("N").await;
    assert!(is_marked(&mut stage, "turn 59"));

    stage.press("g /").await;
    stage.press("ctrl-u").await;
    stage.line("turn 58").await;
    assert!(is_marked(&mut stage, "turn 58"), "below, if not above");
}

#[tokio::test]
async fn the_first_event_is_reached_through_older_pages() {
    let mut stage = Stage::new((40, 12)).await;
    stage.talk("the very first", "Yes.").await;
    for turn in 0..60 {
        stage.talk(&format!("turn {turn}"), "Hay.").await;
    }
    let agent = stage.current();
    let pane = ikigai_tui::app::Pane::open(&stage.driver.engine, agent).await;
    stage.driver.app.show(pane.unwrap());

    stage.press("ctrl-t g").await;

    assert!(stage.driver.app.pane().unwrap().is_complete);
    assert!(is_marked(&mut stage, "system:"));
}

#[tokio::test]
async fn what_was_found_in_a_folded_event_is_unfolded() {
    let mut stage = Stage::new((80, 24)).await;
    let mut long: Vec<_> = (0..200).map(|line| format!("line {line}.")).collect();
    long.push("a needle".to_owned());
    stage.provider.will_say("read");
    stage.driver.app.submit(long.join("\n"));
    stage.sees("● read").await;

    stage.press("ctrl-t /").await;
    stage.line("needle").await;

    assert!(stage.text().contains("a needle"));
}

#[tokio::test]
async fn events_are_copied_as_text_and_as_markdown_and_paged() {
    let mut stage = two_turns((80, 24)).await;
    stage.press("ctrl-t k").await;
    stage.terminal_actions();

    stage.press("y Y o").await;

    let expected = [
        TerminalAction::Copy("and three".to_owned()),
        TerminalAction::Copy("> and three".to_owned()),
        TerminalAction::Page("and three".to_owned()),
    ];
    assert_eq!(stage.terminal_actions(), expected);
}

#[tokio::test]
async fn a_rewind_folds_turns_that_can_be_looked_at_and_gone_back_to() {
    for size in SIZES {
        let mut stage = two_turns(size).await;
        stage.talk("and four", "Eleven.").await;

        stage.press("ctrl-t [ [ [ j r").await;
        stage.sees("2 turns hidden").await;
        assert!(!stage.text().contains("Eleven."), "{size:?}");

        stage.press("ctrl-t").await;
        assert!(is_marked(&mut stage, "2 turns hidden"), "{size:?}");
        if size.0 >= 80 {
            let hint = "· Enter expand · r restore";
            assert!(stage.text().contains(hint));
        }
        stage.press("enter j j j j").await;
        assert!(is_marked(&mut stage, "┊ ● Eleven."), "{size:?}");
        stage.press("k k k k").await;
        assert!(is_marked(&mut stage, "2 turns hidden"), "{size:?}");

        stage.press("r").await;
        let screen = stage.until(|screen| !screen.contains('┊')).await;
        assert!(screen.contains("● Eleven."), "{size:?}\n{screen}");
    }
}

#[tokio::test]
async fn a_message_is_edited_and_sent_again() {
    let mut stage = two_turns((80, 24)).await;

    stage.press("ctrl-t e").await;
    assert!(stage.text().contains("Only your messages can be edited"));
    stage.press("k e").await;
    stage.until(|screen| !screen.contains("seven")).await;

    assert_eq!(stage.input(), "and three");
    stage.letters(" more").await;
    stage.provider.will_say("Four more.");
    stage.press("enter").await;
    let screen = stage.sees("● Four more.").await;
    assert!(screen.contains("❯ and three more"));
}

#[tokio::test]
async fn a_fork_remembers_up_to_the_event_and_is_shown() {
    let mut stage = two_turns((80, 24)).await;
    let parent = stage.current();

    stage.press("ctrl-t [ [ j f").await;
    stage.until(|screen| !screen.contains("seven")).await;

    assert_ne!(stage.current(), parent);
    assert!(stage.text().contains("It is four."));
}

#[tokio::test]
async fn a_mark_gets_a_label() {
    let mut stage = two_turns((80, 24)).await;

    stage.press("ctrl-t m").await;
    stage.line("before the rewrite").await;

    stage.sees("⚑ before the rewrite").await;
}

#[tokio::test]
async fn pages_that_were_cleared_away_are_above() {
    let mut stage = two_turns((40, 12)).await;
    stage.line("/clear").await;
    stage.sees("cleared").await;
    assert!(!stage.text().contains("seven"));

    stage.press("ctrl-t k k").await;
    assert!(is_marked(&mut stage, "Then it is seven."));
}

#[tokio::test]
async fn history_shows_what_rewinds_left() {
    let mut stage = two_turns((80, 24)).await;
    stage.line("/undo").await;
    stage.sees("1 turn hidden").await;
    stage.press("ctrl-u").await;

    stage.line("/history").await;

    assert!(stage.text().contains("┊ ● Then it is seven."));
    assert!(stage.last_row().contains("14:03"));
}

#[tokio::test]
async fn a_question_waits_while_letters_mean_something_else() {
    let mut stage = two_turns((80, 24)).await;
    let agent = stage.current();
    stage.press("ctrl-t").await;
    stage.asks(agent, "rm -r target");
    stage.pass(Duration::from_secs(5)).await;

    stage.press("y").await;
    assert!(matches!(
        stage.terminal_actions().as_slice(),
        [TerminalAction::Copy(_)]
    ));
    assert!(
        stage
            .text()
            .contains("? bash needs approval · Tab to answer")
    );

    stage.press("tab").await;
    assert!(stage.text().contains("rm -r target"));
}
