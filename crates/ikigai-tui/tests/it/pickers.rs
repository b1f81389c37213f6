//! Pickers: letters filter, Enter runs the selection, and opening one leaves no row.

use std::time::Instant;

use ikigai_tui::key::{MouseAction, TerminalEvent};

use crate::support::Stage;

/// Returns all rows of a picker.
fn picker(stage: &mut Stage, title: &str) -> Vec<String> {
    let top = usize::from(stage.row_with(title));
    let rows = stage.rows();
    rows[top..rows.len() - 1].to_vec()
}

#[tokio::test]
async fn a_model_is_chosen_by_letters_and_then_its_level() {
    let mut stage = Stage::with_models((100, 30)).await;
    let agent = stage.current();

    stage.line("/model").await;
    stage.sees("Choose a model (now demo)").await;
    let all = picker(&mut stage, "Choose a model");
    assert_eq!(all.len(), 15, "{all:#?}");
    let first = all.iter().find(|row| row.contains("anthropic:")).unwrap();
    assert!(!first.contains("no key"), "{all:#?}");

    stage.letters("claude-opus").await;
    let rows = stage.rows();
    let marked = rows.iter().find(|row| row.starts_with("> ")).unwrap();
    assert!(marked.contains("anthropic:claude-opus"), "{marked}");
    assert!(marked.contains('$') && marked.contains("low"), "{marked}");

    stage.press("enter").await;
    stage.sees("Thinking level of anthropic:claude-opus").await;
    stage.letters("low").await;
    stage.press("enter").await;
    stage.sees("Switched to Anthropic").await;

    let commands = stage.commands(agent).await;
    assert_eq!(commands.len(), 2, "{commands:?}");
    assert_eq!(commands[0], "/model");
    assert!(commands[1].starts_with("/model anthropic:claude-opus"));
    assert!(commands[1].ends_with("/low"), "{commands:?}");
}

#[tokio::test]
async fn a_picker_counts_what_fits_and_a_cancelled_one_leaves_its_listing() {
    let mut stage = Stage::with_models((80, 24)).await;
    let agent = stage.current();
    stage.line("/model").await;
    stage.sees("Choose a model").await;

    stage.letters("demo").await;
    let rows = picker(&mut stage, "Choose a model");
    assert!(rows[0].ends_with("1/1"), "{rows:#?}");
    assert_eq!(rows[1], "filter: demo");
    let row = stage.row_with("filter: demo");
    assert_eq!(stage.grid().cursor, Some((row, 12)));

    stage.letters("xyzzy").await;
    stage.sees("no match").await;
    stage.press("enter ctrl-u esc").await;

    stage.until(|text| !text.contains("filter:")).await;
    stage.sees("/model · ").await;
    assert_eq!(stage.commands(agent).await, ["/model"]);
}

#[tokio::test]
async fn agents_are_chosen_by_the_mouse_and_sessions_by_enter() {
    let mut stage = Stage::with_models((80, 24)).await;
    let parent = stage.current();
    stage.line("/fork --name docs").await;
    stage.sees("[docs").await;
    let child = stage.current();

    // The child is shown before the tree that the picker lists is read; the board shows that.
    stage.press("ctrl-x a").await;
    stage.sees("2 agents").await;
    stage.press("esc").await;
    stage.line("/switch").await;
    stage.sees("  docs").await;
    let row = stage.row_with("  docs");
    stage.mouse(MouseAction::Press, 4, row).await;
    stage.until(|text| !text.contains("Go to an agent")).await;
    assert_eq!(stage.current(), child);
    stage.line("/sessions").await;
    stage.sees("Go to a session").await;
    stage.press("enter").await;
    stage.sees("[parser").await;

    assert_eq!(stage.current(), parent);
    let said = stage.commands(child).await;
    assert_eq!(said, ["/switch docs", "/sessions", "/switch parser"]);
}

#[tokio::test]
async fn an_open_picker_follows_the_agents() {
    let mut stage = Stage::with_models((80, 24)).await;
    let parent = stage.current();

    // The tree with the child is not read yet when the picker opens.
    stage
        .driver
        .app
        .submit("/fork --name docs hello".to_owned());
    for key in "/ s w i t c h enter d o c s".split(' ') {
        let key = TerminalEvent::Key(key.parse().unwrap());
        stage.driver.app.handle_input(key, Instant::now());
    }
    let early = stage.text();
    let seen = stage.sees("> docs").await;
    stage.press("enter").await;
    stage.sees("[docs").await;

    assert!(early.contains("no match"), "{early}");
    assert!(seen.contains("Go to an agent  1/1"), "{seen}");
    assert_ne!(stage.current(), parent);
}
