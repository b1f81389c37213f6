//! Output of tools that run.

use ikigai_core::{AgentId, Micros, Row, RowRef, Seq, StoredKind};
use ikigai_engine::{Outcome, UiEvent};

use crate::support::Stage;

/// Starts the call with this number; returns its reference.
fn begins(stage: &mut Stage, agent: AgentId, number: u64, command: &str) -> RowRef {
    let call = RowRef::new(agent, Seq(number));
    let row = Row {
        at: call,
        kind: StoredKind::of("tool_call"),
        content: Some(command.to_owned()),
        data: Some(r#"{"name":"bash"}"#.to_owned()),
        created_at: Micros(0),
        author: None,
    };
    if number == 90 {
        stage.told(agent, &UiEvent::Began);
    }
    stage.told(agent, &UiEvent::Stored(row));
    stage.told(agent, &UiEvent::Running(call));
    call
}

fn prints(stage: &mut Stage, call: RowRef, text: &str) {
    let text = text.to_owned();
    stage.told(call.agent, &UiEvent::Output { call, text });
}

fn lines(range: std::ops::RangeInclusive<u32>) -> String {
    let lines: Vec<_> = range.map(|number| format!("line {number}\n")).collect();
    lines.concat()
}

#[tokio::test]
async fn the_last_lines_of_a_running_tool_are_shown_and_all_on_a_key() {
    let mut stage = Stage::new((80, 24)).await;
    let agent = stage.current();
    let call = begins(&mut stage, agent, 90, "make");

    prints(&mut stage, call, &lines(1..=12));
    let peek = stage.text();
    stage.press("ctrl-o").await;
    let all = stage.text();
    stage.press("ctrl-o").await;
    let again = stage.text();

    assert!(
        peek.contains("  … 7 lines before · Ctrl-O show all\n  line 8\n"),
        "{peek}"
    );
    assert!(
        peek.contains("  line 12\n") && !peek.contains("line 7\n"),
        "{peek}"
    );
    assert!(
        all.contains("  line 1\n") && all.contains("  line 12\n"),
        "{all}"
    );
    assert_eq!(again, peek);
    assert!(!peek.contains("last line"), "nothing is said twice: {peek}");
}

#[tokio::test]
async fn a_line_without_end_stands_last_and_nothing_is_left_after_the_turn() {
    let mut stage = Stage::new((80, 24)).await;
    let agent = stage.current();
    let call = begins(&mut stage, agent, 90, "make");

    prints(&mut stage, call, "one\n");
    let line = "50 %".to_owned();
    stage.told(agent, &UiEvent::Progress { call, line });
    let running = stage.text();
    stage.told(agent, &UiEvent::Ended(Outcome::Completed));
    let ended = stage.text();

    assert!(running.contains("  one\n  50 %\n"), "{running}");
    assert!(!ended.contains("one") && !ended.contains("50 %"), "{ended}");
}

#[tokio::test]
async fn several_running_tools_are_told_apart() {
    let mut stage = Stage::new((80, 24)).await;
    let agent = stage.current();
    let first = begins(&mut stage, agent, 90, "make");
    let second = begins(&mut stage, agent, 91, "cargo test");

    prints(&mut stage, first, &lines(1..=4));
    prints(&mut stage, second, "a test\n");
    let text = stage.text();

    let expected = "bash: make\n  … 2 lines before · Ctrl-O show all\n  line 3\n  line 4\n\
                    bash: cargo test\n  a test\n";
    assert!(text.contains(expected), "{text}");
}

#[tokio::test]
async fn output_never_steers_the_terminal_and_stays_within_bounds() {
    let mut stage = Stage::new((40, 12)).await;
    let agent = stage.current();
    let call = begins(&mut stage, agent, 90, "yes");

    for _ in 0..200 {
        prints(&mut stage, call, &"\u{1b}[2Jy\u{202e}\n".repeat(1000));
    }
    prints(&mut stage, call, &format!("{}\n", "x".repeat(1 << 20)));
    let text = stage.text();

    assert!(
        !text.contains('\u{1b}') && !text.contains('\u{202e}'),
        "{text}"
    );
    assert!(text.contains("\n  ␛[2Jy⟨U+202E⟩\n"), "{text}");
    assert!(text.contains("199996 lines before"), "{text}");
}
