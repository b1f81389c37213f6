//! Commands during a turn, and ownership of their rows.

use ikigai_core::data::{self, CommandData};
use ikigai_engine::{Listing, ListingView, Outcome, UiEvent, UserInput, UserRequest};
use ikigai_testkit::Step;

use super::support::{line, printed, survives, texts};
use crate::fakes::{FakeCall, calling};
use crate::support::{World, attended_line, is_stored, say};

fn command(line: &str) -> Vec<UserRequest> {
    vec![UserRequest::parse(line)]
}

/// E11a: commands that change the path interrupt a turn while a call runs.
#[tokio::test(start_paused = true)]
async fn path_commands_interrupt_a_running_turn() {
    for (typed, kinds, left) in [
        ("/clear", vec!["clear", "system", "command"], 0),
        ("/undo", vec!["rewind", "command"], 2),
        ("/rewind a", vec!["rewind", "command"], 2),
        ("/rewind nowhere", vec!["command"], 4),
        (
            "/compact",
            vec!["command", "usage", "summary", "command"],
            3,
        ),
    ] {
        let (world, call_log) = World::with_fakes();
        let mut worker = world.root().await;
        line(&mut worker, "/approve all").await;
        world.provider.will_say("one!");
        say(&mut worker, "one").await.unwrap();
        line(&mut worker, "/mark a").await;
        let fake = FakeCall::new("change", "slow");
        world.provider.will(calling(&[fake]));
        world.provider.will_summarise_as("x");

        let (done, _) = attended_line(&mut worker, "two", |update| match update {
            UiEvent::Running(_) => command(typed),
            _ => Vec::new(),
        })
        .await;

        assert!(
            matches!(done.outcome, Some(Outcome::Interrupted(_))),
            "{done:?}"
        );
        let stored = world.kinds(worker.agent().state.agent()).await;
        let user = stored.iter().rposition(|kind| kind == "user").unwrap();
        let mut expected = vec!["user", "tool_call", "usage", "tool_result", "interrupted"];
        expected.extend(kinds);
        assert_eq!(stored[user..], expected, "{typed}");
        assert_eq!(call_log.moments().len(), 2, "{typed}");
        if typed != "/rewind nowhere" {
            assert_eq!(texts(&world, &worker).await.len(), left, "{typed}");
        }
        survives(&world, worker).await;
    }
}

/// `/compact --show` does not interrupt the turn.
#[tokio::test(start_paused = true)]
async fn looking_at_a_summary_leaves_the_turn_alone() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    line(&mut worker, "/approve all").await;
    world.provider.will_say(&"one! ".repeat(100));
    say(&mut worker, "one").await.unwrap();
    world.provider.will_summarise_as("in short");
    line(&mut worker, "/compact").await;
    let UserInput::Command(command) = UserInput::parse("/compact --show") else {
        panic!("not a command");
    };
    let view = ListingView::Overlay;
    let listed = UserRequest::List(Listing { command, view });
    for request in [UserRequest::parse("/compact --show"), listed] {
        world
            .provider
            .will(calling(&[FakeCall::new("change", "slow")]));
        world.provider.will_say("done");

        let (done, told) = attended_line(&mut worker, "two", |update| match update {
            UiEvent::Running(_) => vec![request.clone()],
            _ => Vec::new(),
        })
        .await;

        assert_eq!(done.outcome, Some(Outcome::Completed));
        let shown = told.iter().any(|update| match update {
            UiEvent::Preview { output, .. } => output.contains("in short"),
            UiEvent::Stored(row) => row
                .content
                .as_deref()
                .is_some_and(|it| it.contains("in short")),
            _ => false,
        });
        assert!(shown, "{told:?}");
    }
}

/// E11a: `/retry` stops a running turn and sends its message again.
#[tokio::test(start_paused = true)]
async fn a_retry_of_a_running_turn_stops_it_and_asks_again() {
    let world = World::new();
    let mut worker = world.root().await;
    world
        .provider
        .will([Step::Say("half".to_owned()), Step::Hang]);
    world.provider.will_say("whole");

    let (done, _) = attended_line(&mut worker, "say it", |update| match update {
        UiEvent::Text(text) if text == "half" => command("/retry"),
        _ => Vec::new(),
    })
    .await;

    assert_eq!(done.outcome, Some(Outcome::Completed));
    assert_eq!(texts(&world, &worker).await, ["say it", "whole"]);
    survives(&world, worker).await;
}

/// E11b: a changed system prompt or toolset applies from the next request.
#[tokio::test(start_paused = true)]
async fn setting_applies_from_next_request() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    line(&mut worker, "/approve all").await;
    world
        .provider
        .will(calling(&[FakeCall::new("change", "slow")]));
    world.provider.will_say("done");

    let (done, told) = attended_line(&mut worker, "work", |update| match update {
        UiEvent::Running(_) => [command("/system Be kind."), command("/tools only look")].concat(),
        _ => Vec::new(),
    })
    .await;

    assert_eq!(done.outcome, Some(Outcome::Completed));
    let requests = world.provider.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].tools.len() > 1);
    assert_eq!(requests[1].system.as_deref(), Some("Be kind."));
    let tools: Vec<_> = requests[1].tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(tools, ["look"]);
    // The commands ran at once, while the call was running.
    let at = |kind| {
        told.iter()
            .position(|update| is_stored(update, kind))
            .unwrap()
    };
    assert!(at("command") < at("tool_result"));
    survives(&world, worker).await;
}

#[tokio::test(start_paused = true)]
async fn a_message_and_a_shell_line_wait_for_the_break() {
    let (world, _) = World::with_fakes();
    let (_place, mut worker) = super::support::agent_in_a_directory(&world).await;
    world
        .provider
        .will(calling(&[FakeCall::new("change", "slow")]));
    world.provider.will_say("done");

    let (done, _) = attended_line(&mut worker, "work", |update| match update {
        UiEvent::Running(_) => [command("and be quick"), command("!echo hi")].concat(),
        _ => Vec::new(),
    })
    .await;

    assert_eq!(done.outcome, Some(Outcome::Completed));
    let said = texts(&world, &worker).await;
    assert_eq!(
        said,
        ["work", "and be quick", "$ echo hi\nhi\n(exit 0)", "done"]
    );
    survives(&world, worker).await;
}

/// S3-4 S3-5 S3-7 S3-8: with two agents in one process, each row belongs to the acting agent.
#[tokio::test]
async fn rows_are_owned_by_the_acting_agent() {
    let world = World::new();
    let mut one = world.root().await;
    let mut other = world.root().await;
    for text in ["a", "b"] {
        world.provider.will_say("yes");
        say(&mut one, text).await.unwrap();
        line(&mut other, "/mark x").await;
        line(&mut one, "/mark y").await;
        line(&mut other, "/rewind x").await;
        line(&mut other, "/clear").await;
    }

    let kinds = |rows: Vec<String>| -> Vec<String> {
        rows.into_iter().filter(|kind| kind != "command").collect()
    };
    let of_one = kinds(world.kinds(one.agent().state.agent()).await);
    let of_other = kinds(world.kinds(other.agent().state.agent()).await);
    let turn = ["user", "assistant", "usage", "mark"];
    assert_eq!(of_one[1..], [turn, turn].concat());
    let page = ["mark", "rewind", "clear", "system"];
    assert_eq!(of_other[1..], [page, page].concat());
    drop(one);
    survives(&world, other).await;
}

/// S3-24: late output of a command gets a row that refers to the first one.
#[tokio::test(start_paused = true)]
async fn dispatcher_persists_late_output() {
    let world = World::new();
    let mut worker = world.root().await;
    line(&mut worker, "/fork --name docs").await;

    line(&mut worker, "/wait docs").await;

    let id = worker.agent().state.agent();
    let rows = world.rows(id).await;
    let waits: Vec<_> = rows
        .iter()
        .filter_map(|row| {
            let command: CommandData = data::read(row.data.as_deref());
            (command.command.as_deref() == Some("wait")).then_some((row.at, command))
        })
        .collect();
    let [(first, began), (_, late)] = waits.as_slice() else {
        panic!("{waits:#?}");
    };
    assert_eq!((began.of, late.of), (None, Some(*first)));
    assert_eq!(late.echo.as_deref(), Some("/wait docs"));
    assert_eq!(
        world.engine.input_history(id).await.unwrap(),
        ["/fork --name docs", "/wait docs"]
    );
    // Rows that the engine writes by itself have no echo and are not drawn.
    let start: CommandData = data::read(rows[1].data.as_deref());
    assert_eq!(
        (start.command.as_deref(), start.echo),
        (Some("start"), None)
    );
    survives(&world, worker).await;
}

/// E17c: the input history is read from rows, newest last.
#[tokio::test]
async fn input_history_comes_from_rows() {
    let world = World::new();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world.provider.will_say("yes");
    world.provider.will_say("yes");
    say(&mut worker, "first").await.unwrap();
    say(&mut worker, "second").await.unwrap();
    for typed in ["/mark a", "/mark a", "/undo", "!true", "!!true"] {
        printed(&mut worker, typed).await;
    }

    let typed = world.restarted().engine.input_history(id).await.unwrap();

    let sent = ["first", "second"].into_iter();
    let commands = ["/mark a", "/mark a", "/undo", "!true", "!!true"];
    assert_eq!(typed, sent.chain(commands).collect::<Vec<_>>());
}
