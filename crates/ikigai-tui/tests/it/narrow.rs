//! Screens with few columns and rows: the essential parts are visible.

use std::time::Duration;

use ikigai_testkit::Step;
use ikigai_tui::app::Fate;

use crate::support::Stage;

const SMALL: (u16, u16) = (40, 12);

/// Fails unless a row of the screen ends with this text.
fn ends(stage: &mut Stage, end: &str) {
    let rows = stage.rows();
    let is_there = rows.iter().any(|row| row.ends_with(end));
    assert!(is_there, "no `{end}` in\n{}", rows.join("\n"));
}

#[tokio::test]
async fn every_row_of_keys_shows_the_way_out() {
    for size in [SMALL, (24, 12), (120, 40)] {
        let mut stage = Stage::new(size).await;
        let agent = stage.current();
        stage.talk("what is two and two", "It is four.").await;

        for (keys, way_out) in [
            ("?", "Esc close"),
            ("ctrl-t", "Esc back"),
            ("ctrl-x a", "Esc back"),
        ] {
            stage.press(keys).await;
            ends(&mut stage, way_out);
            stage.press("esc").await;
        }
        stage.line("/theme").await;
        ends(&mut stage, "Esc cancel");
        stage.press("esc").await;
        stage.line("/key anthropic").await;
        stage.letters("sk-abc").await;
        ends(&mut stage, "Esc cancel");
        if size == SMALL {
            assert!(stage.text().contains("anthropic key: 6 hidden"));
        }
        stage.press("esc").await;
        stage.asks(agent, "cargo test --workspace --all-targets --locked");
        stage.pass(Duration::from_secs(5)).await;
        stage.press("end").await;
        for letter in ["e", "r"] {
            stage.press(letter).await;
            ends(&mut stage, "Esc back");
            stage.press("esc").await;
        }
    }
}

#[tokio::test]
async fn answers_are_whole_and_the_end_of_what_is_typed_is_seen() {
    for size in [SMALL, (80, 24)] {
        let mut stage = Stage::new(size).await;
        let agent = stage.current();
        stage.asks(agent, "cargo test");
        stage.pass(Duration::from_secs(5)).await;
        let text = stage.text();
        for answer in [
            "e edit pattern",
            "r no, with a reason",
            "Esc reject and stop",
        ] {
            assert!(text.contains(answer), "{answer} is not whole in\n{text}");
        }

        stage.press("r").await;
        stage
            .letters("it was run a minute ago, look at the sources first")
            .await;
        let row = stage.row_with("Reason:");
        let typed = &stage.rows()[usize::from(row)];
        assert!(typed.ends_with("sources first"), "{typed}");
        let end = u16::try_from(typed.chars().count()).unwrap();
        assert_eq!(stage.grid().cursor, Some((row, end)));
    }
}

#[tokio::test]
async fn a_question_says_how_many_lines_are_not_seen() {
    let mut stage = Stage::new(SMALL).await;
    let agent = stage.current();
    let command: Vec<String> = (1..=20).map(|line| format!("step {line}")).collect();
    stage.asks(agent, &command.join("\n"));
    stage.pass(Duration::from_secs(5)).await;
    let rows = stage.rows();
    let seen = rows.iter().filter(|row| row.starts_with("  step ")).count();
    let left = format!("… {} more lines", 20 - seen);
    assert!(rows.iter().any(|row| row.contains(&left)), "{rows:#?}");
}

#[tokio::test]
async fn the_help_has_two_columns_or_rows_below_each_other() {
    let mut stage = Stage::new((70, 24)).await;
    stage.press("?").await;
    let row = usize::from(stage.row_with("send the message"));
    let rows = stage.rows();
    let column = rows[row].find("send").unwrap();
    assert_eq!(rows[row + 1].find("works"), Some(column));

    let mut wide = Stage::new((120, 40)).await;
    wide.press("?").await;
    let rows = wide.rows();
    for about in ["send the message", "change the permission mode"] {
        let row = rows.iter().find(|row| row.contains(about)).unwrap();
        assert_eq!(row.find(about), Some(column), "{row}");
    }

    let mut stage = Stage::new((80, 24)).await;
    stage.line("/help").await;
    stage.sees("resend your last message").await;
    let row = usize::from(stage.row_with("resend your last message"));
    let rows = stage.rows();
    let column = rows[row].find("resend your").unwrap();
    assert_eq!(rows[row + 1].find("answer"), Some(column), "{rows:#?}");
    stage.press("page-down").await;
    let row = usize::from(stage.row_with("make a child agent; with a"));
    let rows = stage.rows();
    assert!(rows[row - 1].ends_with("[--go] [prompt …]"), "{rows:#?}");
    for (row, about) in [(row, "make a child"), (row + 1, "works in parallel")] {
        assert_eq!(rows[row].find(about), Some(column), "{rows:#?}");
    }

    let mut stage = Stage::new(SMALL).await;
    stage.press("?").await;
    let row = usize::from(stage.row_with("send the message"));
    let rows = stage.rows();
    assert_eq!(rows[row - 1], "  Enter");
    assert!(rows[row].starts_with("    send"), "{rows:#?}");

    stage.press("esc").await;
    stage.line("/help").await;
    stage.sees("resend your last").await;
    while !stage.text().contains("make a child") {
        stage.press("down").await;
    }
    let row = usize::from(stage.row_with("make a child"));
    let rows = stage.rows();
    assert!(rows[row].starts_with("    make"), "{rows:#?}");
    assert!(rows[row - 1].starts_with("  "), "{rows:#?}");
}

#[tokio::test]
async fn what_goes_on_can_be_stopped_and_left_in_few_columns() {
    let mut stage = Stage::new(SMALL).await;
    let words = "It takes its time, and is silent for long. ".repeat(3);
    stage.provider.will([Step::Say(words), Step::Wait]);
    stage.line("what is two and two").await;
    stage.sees("It takes its time").await;

    stage.pass(Duration::from_secs(100)).await;
    ends(&mut stage, " · Esc to interrupt");
    stage
        .line("and then tell me all about three and three")
        .await;
    stage.sees("queued").await;
    ends(&mut stage, "↑ edit · Ctrl-S send now");

    stage.press("ctrl-d").await;
    ends(&mut stage, "Esc cancel");
}

#[tokio::test]
async fn what_is_held_back_says_in_few_columns_how_to_send_it() {
    let mut stage = Stage::new(SMALL).await;

    stage.line("sk-ant-0123456789abcdefghijkl").await;

    let words = stage
        .text()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let expected = "This looks like an API key. Enter again to send it, Esc to keep editing";
    assert!(words.contains(expected), "{words}");
}

#[tokio::test]
async fn the_marked_entry_of_a_short_list_is_seen() {
    let mut stage = Stage::new(SMALL).await;
    stage.letters("/").await;

    for _ in 0..20 {
        stage.press("down").await;
        let rows = stage.rows();
        let marked = rows.iter().filter(|row| row.starts_with("> ")).count();
        assert_eq!(marked, 1, "{}", rows.join("\n"));
    }
}

#[tokio::test]
async fn the_welcome_says_all_in_few_columns() {
    let mut stage = Stage::with_models(SMALL).await;

    let words = stage.text();
    for word in [
        "no API key",
        "real tools.",
        "list the rust files",
        "/fork count the tests",
        "/key anthropic  a real model",
        "?  keys  /  commands  Ctrl-D  quit",
    ] {
        assert!(words.contains(word), "{word} is not on\n{words}");
    }
}

#[tokio::test]
async fn the_welcome_is_for_those_who_have_not_begun() {
    let mut stage = Stage::new((80, 24)).await;
    let engine = stage.driver.engine.clone();
    assert!(stage.text().contains("run a tool"));

    stage.talk("what is two and two", "It is four.").await;
    stage.line("/undo").await;
    stage.sees("turn hidden").await;
    assert!(!stage.text().contains("run a tool"));

    let mut stage = stage.again(engine).await;
    stage.sees("turn hidden").await;
    assert!(!stage.text().contains("run a tool"));
}

#[tokio::test]
async fn a_farewell_counts_turns_that_are_remembered() {
    let mut stage = Stage::new((80, 24)).await;
    stage.talk("what is two and two", "It is four.").await;
    stage.talk("and three more", "Then it is seven.").await;
    let line = stage.driver.app.farewell(0, Fate::Pause).line;
    assert!(line.starts_with("ikigai: parser · 2 turns · "), "{line}");

    // More than the first screen reads.
    for _ in 0..100 {
        stage.talk("again", "Again.").await;
    }
    let engine = stage.driver.engine.clone();
    let stage = stage.again(engine).await;
    let line = stage.driver.app.farewell(0, Fate::Pause).line;
    assert_eq!(line, "ikigai: parser · resume with: ikigai --agent parser");
}
