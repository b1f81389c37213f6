//! `/compact --edit`: the user's text is used, or nothing changes.

use ikigai_core::{Block, Request};
use ikigai_engine::commands::Next;
use ikigai_engine::{AgentJob, FrontEnd, SummaryDraft, UiEvent, Worker};
use tokio::sync::mpsc;

use super::support::{line, survives};
use crate::support::{World, say};

async fn talk(world: &World, worker: &mut Worker) {
    for turn in 0..3 {
        world
            .provider
            .will_say(&format!("answer {turn} ").repeat(60));
        say(worker, &format!("question {turn}")).await.unwrap();
    }
}

async fn request(world: &World, worker: &Worker) -> Request {
    let id = worker.agent().state.agent();
    world.engine.next_request(id).await.unwrap()
}

fn first_text(request: &Request) -> &str {
    match request.messages[0].blocks.as_slice() {
        [Block::Text { text }, ..] => text,
        other => panic!("{other:?}"),
    }
}

/// Types a line that opens the editor; returns the draft for the editor.
async fn opened(worker: &mut Worker, typed: &str) -> Box<SummaryDraft> {
    let came = line(worker, typed).await;
    match came.next {
        Some(Next::EditSummary(draft)) => draft,
        other => panic!("{other:?}: {}", came.output),
    }
}

/// Submits the edited text; returns the output.
async fn edited(worker: &mut Worker, draft: Box<SummaryDraft>, text: Result<&str, &str>) -> String {
    let text = text.map(str::to_owned).map_err(str::to_owned);
    let mut printed = String::new();
    let mut tell = |update: UiEvent| {
        if let UiEvent::Stored(row) = update
            && row.kind.name() == "command"
        {
            printed = crate::support::printed_in(&row).unwrap_or_default();
        }
    };
    let (_sender, mut receiver) = mpsc::channel(1);
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    let store = AgentJob::StoreSummary(draft, text);
    worker.work(store, &mut desk).await.unwrap();
    printed
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_edited_before_it_is_used_and_again_later() {
    let world = World::new();
    world.engine.set_editor();
    let mut worker = world.root().await;
    talk(&world, &mut worker).await;
    let before = request(&world, &worker).await;
    world.provider.will_summarise_as("Of the model.");

    let draft = opened(&mut worker, "/compact --edit keep the names").await;

    assert!(draft.text.ends_with("Of the model."), "{}", draft.text);
    assert_eq!(request(&world, &worker).await, before, "not used yet");
    let output = edited(&mut worker, draft, Ok("Mine.")).await;
    assert!(output.starts_with("3 turns summarised: "), "{output}");
    assert_eq!(first_text(&request(&world, &worker).await), "Mine.");
    let asked = world.provider.requests().len();

    let draft = opened(&mut worker, "/compact --edit").await;
    assert_eq!(draft.text, "Mine.", "the one in force");
    assert_eq!(world.provider.requests().len(), asked, "no model is asked");
    let output = edited(&mut worker, draft, Ok("Mine, better.")).await;
    assert!(output.contains(" replaced: "), "{output}");
    assert_eq!(first_text(&request(&world, &worker).await), "Mine, better.");
    let shown = line(&mut worker, "/compact --show").await.output;
    assert!(shown.ends_with("Mine, better."), "{shown}");

    let undone = line(&mut worker, "/compact --undo").await.output;
    assert!(undone.ends_with(" is used again"), "{undone}");
    assert_eq!(first_text(&request(&world, &worker).await), "Mine.");
    line(&mut worker, "/compact --undo").await;
    assert_eq!(request(&world, &worker).await, before);
    survives(&world, worker).await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_text_or_a_failed_editor_changes_nothing_and_says_so() {
    let world = World::new();
    world.engine.set_editor();
    let mut worker = world.root().await;
    talk(&world, &mut worker).await;
    let before = request(&world, &worker).await;
    let cases = [
        (Ok(" \n"), "⚠ summary not used: the text is empty"),
        (Err("`vi` failed"), "⚠ summary not used: `vi` failed"),
    ];
    for (text, expected) in cases {
        world.provider.will_summarise_as("Of the model.");
        let draft = opened(&mut worker, "/compact --edit").await;
        let output = edited(&mut worker, draft, text).await;
        let expected = format!("{expected} · conversation unchanged");
        assert_eq!(output, expected);
        assert_eq!(request(&world, &worker).await, before);
    }
    world.provider.will_summarise_as("Used.");
    line(&mut worker, "/compact").await;
    let used = request(&world, &worker).await;
    let cases = [
        (
            Ok(""),
            "⚠ summary not used: the text is empty · summary unchanged",
        ),
        (Err("no"), "⚠ summary not used: no · summary unchanged"),
    ];
    for (text, expected) in cases {
        let draft = opened(&mut worker, "/compact --edit").await;
        assert_eq!(edited(&mut worker, draft, text).await, expected);
        assert_eq!(request(&world, &worker).await, used);
    }
    let draft = opened(&mut worker, "/compact --edit").await;
    let same = draft.text.clone();
    let output = edited(&mut worker, draft, Ok(&same)).await;
    assert_eq!(output, "summary unchanged");
}

#[tokio::test(start_paused = true)]
async fn an_edited_summary_of_rows_left_behind_is_not_used() {
    let world = World::new();
    world.engine.set_editor();
    let mut worker = world.root().await;
    talk(&world, &mut worker).await;
    world.provider.will_summarise_as("Of the model.");
    let draft = opened(&mut worker, "/compact --edit").await;
    line(&mut worker, "/clear").await;

    let output = edited(&mut worker, draft, Ok("Mine.")).await;

    assert!(
        output.contains("its events are no longer in context"),
        "{output}"
    );
}

#[tokio::test(start_paused = true)]
async fn editing_is_refused_without_a_terminal_and_nothing_is_asked() {
    let world = World::new();
    world.engine.set_screen();
    let mut worker = world.root().await;
    talk(&world, &mut worker).await;
    let asked = world.provider.requests().len();

    let came = line(&mut worker, "/compact --edit").await;

    assert!(came.warned && came.next.is_none());
    assert!(came.output.contains("needs a screen"), "{}", came.output);
    assert_eq!(world.provider.requests().len(), asked);
    for both in [
        "/compact --edit --show",
        "/compact --edit --undo",
        "/compact --show --undo",
    ] {
        let came = line(&mut worker, both).await;
        assert!(came.output.contains("choose one"), "{}", came.output);
    }
}
