//! Store failures: no effect without its row, and no input or output is lost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikigai_core::data::Cause;
use ikigai_core::settings::{Approve, ModelChoice};
use ikigai_engine::{EngineError, Outcome, UiEvent, UserInput, UserRequest, Worker};
use ikigai_store::{ReadLog, StoreError};
use ikigai_testkit::{CommitFault, Step, block_on, check_request};

use crate::fakes::{CallLog, FakeCall, calling};
use crate::support::{
    TestJob, World, active_agents, all_rows, interrupt, is_stored, say, say_until, target_of,
};

fn full() -> StoreError {
    StoreError::Full("no room".into())
}

#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_be_stored_is_not_sent() {
    let world = World::new();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let head = worker.agent().state.head();
    world.store.go_away(full);

    let failed = say(&mut worker, "hello").await;

    assert!(matches!(failed, Err(EngineError::Store(_))), "{failed:?}");
    assert!(world.provider.requests().is_empty());
    assert_eq!(worker.agent().state.head(), head);
    world.store.come_back();
    world.provider.will_say("hi");
    assert_eq!(say(&mut worker, "hello").await.unwrap(), Outcome::Completed);
    assert_eq!(world.kinds(id).await[2..], ["user", "assistant", "usage"]);
}

/// N6d: when the store returns, work resumes without a restart. Held rows are written first and in
/// order; a commit of unknown outcome is looked up, so that nothing is written twice.
#[tokio::test(start_paused = true)]
async fn work_resumes_when_store_returns() {
    let faults = [
        CommitFault::Refused(full()),
        CommitFault::WrittenUnknown,
        CommitFault::LostUnknown,
    ];
    for fault in faults {
        let shown = format!("{fault:?}");
        let world = World::new();
        let mut worker = world.root().await;
        let id = worker.agent().state.agent();
        world.provider.will_say("an answer");
        world.provider.will_say("another");
        // The first commit of the turn is its message, the second its answer.
        world.store.fail_commit(2, fault);

        let (outcome, told) = say_until(&mut worker, "hello", std::future::pending()).await;
        say(&mut worker, "more").await.unwrap();

        assert_eq!(outcome.unwrap(), Outcome::Completed, "{shown}");
        let kinds = world.kinds(id).await;
        let turns = ["user", "assistant", "usage", "user", "assistant", "usage"];
        assert_eq!(kinds[2..], turns, "{shown}");
        let away = told
            .iter()
            .any(|update| matches!(update, UiEvent::StoreAway(_)));
        assert_eq!(away, shown.starts_with("Refused"), "{shown}");
        let rows = world.rows(id).await;
        assert_eq!(rows[3].content.as_deref(), Some("an answer"));
    }
}

/// A commit that hangs for long is reported, and the turn waits for it.
#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_told_of() {
    for (pause, is_told) in [(2, false), (20, true)] {
        let world = World::new();
        let mut worker = world.root().await;
        let id = worker.agent().state.agent();
        world.provider.will_say("an answer");
        let slow = CommitFault::Slow(Duration::from_secs(pause));
        world.store.fail_commit(2, slow);

        let (outcome, told) = say_until(&mut worker, "hello", std::future::pending()).await;

        assert_eq!(outcome.unwrap(), Outcome::Completed);
        let away = |update: &&UiEvent| matches!(update, UiEvent::StoreAway(_));
        assert_eq!(told.iter().filter(away).count(), usize::from(is_told));
        assert_eq!(world.kinds(id).await[2..], ["user", "assistant", "usage"]);
    }
}

/// Creates a world whose model will make calls of every class, in two rounds.
async fn about_to_call() -> (World, CallLog, Worker) {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    worker.approve_for_now(Approve::All).await.unwrap();
    let fakes = ["look", "change", "act"].map(|tool| FakeCall::new(tool, tool));
    world.provider.will(calling(&fakes));
    world
        .provider
        .will(calling(&[FakeCall::new("act", "last")]));
    world.provider.will_say("done");
    (world, call_log, worker)
}

/// Runs the turn without faults; returns its commits, its reads and the rows.
async fn undisturbed() -> (u64, u64, Vec<(String, Option<String>)>) {
    let (world, _, mut worker) = about_to_call().await;
    let before = (world.store.commits(), world.store.reads());
    say(&mut worker, "go").await.unwrap();
    let (commits, reads) = (
        world.store.commits() - before.0,
        world.store.reads() - before.1,
    );
    (commits, reads, said(&world, &worker).await)
}

/// Returns the kinds and texts of all rows.
async fn said(world: &World, worker: &Worker) -> Vec<(String, Option<String>)> {
    let rows = world.rows(worker.agent().state.agent()).await.into_iter();
    rows.map(|row| (row.kind.name().to_owned(), row.content))
        .collect()
}

/// N6a: a failed insert prevents its effect, at any commit of a turn. No request is sent without
/// its `user` row, no tool runs without its row and journal entry, and no setting changes without
/// its row. When the store returns, the agent answers again.
#[tokio::test(start_paused = true)]
async fn failed_insert_prevents_effect() {
    let (commits, _, _) = undisturbed().await;
    for nth in 1..=commits {
        let (world, call_log, mut worker) = about_to_call().await;
        let id = worker.agent().state.agent();
        let log = world.log().clone();
        let faults = Arc::new(Mutex::new(Vec::new()));
        let found = faults.clone();
        call_log.look_when_one_begins(move |label| {
            let rows = block_on(log.page(all_rows(id))).unwrap();
            let call = rows
                .iter()
                .find(|row| row.content.as_deref() == Some(label));
            let runs = block_on(log.open_runs(id)).unwrap();
            let is_journalled = |at| label == "look" || runs.iter().any(|run| run.call == at);
            if !call.is_some_and(|row| is_journalled(row.at)) {
                found.lock().unwrap().push(label.to_owned());
            }
        });
        // The store fails for longer than the engine retries.
        for later in 0..2000 {
            world
                .store
                .fail_commit(nth + later, CommitFault::Refused(full()));
        }

        let failed = say(&mut worker, "go").await;
        let began = call_log.began();
        let rows = world.rows(id).await;
        let requests = world.provider.requests().len();

        assert!(failed.is_err(), "commit {nth}: {failed:?}");
        assert_eq!(
            *faults.lock().unwrap(),
            Vec::<String>::new(),
            "commit {nth}"
        );
        let has = |kind: &str| rows.iter().filter(|row| row.kind.name() == kind).count();
        assert!(requests <= has("user") + has("tool_result"), "commit {nth}");
        assert!(began.len() <= has("tool_call"), "commit {nth}");
        world.store.mend();
        world.provider.forget_script();
        world.provider.will_say("back again");
        assert_eq!(
            say(&mut worker, "well?").await.unwrap(),
            Outcome::Completed,
            "commit {nth}"
        );
        let request = world.provider.requests().pop().unwrap();
        check_request(&request, &target_of(&worker)).unwrap();
        assert_eq!(
            call_log.began(),
            began,
            "commit {nth}: nothing is run again"
        );
        assert!(
            world.log().open_runs(id).await.unwrap().is_empty(),
            "commit {nth}"
        );
    }
}

/// N6a: no setting without its row.
#[tokio::test(start_paused = true)]
async fn a_setting_that_is_not_stored_is_not_set() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let before = worker.agent().state.settings().clone();
    world.store.go_away(full);
    let other = ModelChoice {
        model: Some("another".to_owned()),
        ..ModelChoice::default()
    };

    let model = worker.choose_model(other).await;
    let approval = worker.approve_for_now(Approve::All).await;
    world.store.come_back();

    assert!(model.is_err() && approval.is_err());
    assert_eq!(*worker.agent().state.settings(), before);
    world
        .provider
        .will(calling(&[FakeCall::new("act", "asked")]));
    let (_, told) = active_agents(&mut worker, TestJob::Say("go"), |update| match update {
        UiEvent::Question(_) => vec![interrupt()],
        _ => Vec::new(),
    })
    .await;
    assert!(
        told.iter()
            .any(|update| matches!(update, UiEvent::Question(_)))
    );
    assert!(call_log.began().is_empty());
}

/// N6b: a failed insert is shown with its reason, at any commit of a turn.
#[tokio::test(start_paused = true)]
async fn failed_insert_is_shown() {
    let (commits, _, _) = undisturbed().await;
    for nth in 1..=commits {
        let (world, _, mut worker) = about_to_call().await;
        world.store.fail_commit(nth, CommitFault::Refused(full()));

        let (outcome, told) = active_agents(&mut worker, TestJob::Say("go"), |_| Vec::new()).await;

        let shown = told.iter().find_map(|update| match update {
            UiEvent::StoreAway(reason) => Some(reason.clone()),
            _ => None,
        });
        let shown = shown.or_else(|| outcome.err().map(|error| error.to_string()));
        let shown = shown.unwrap_or_else(|| panic!("commit {nth} fails without a notice"));
        assert!(shown.contains("no space left"), "{shown}");
    }
}

/// N6c: input is not lost if it cannot be stored. A message that starts a turn is refused as a
/// whole; queued ones are returned, also if the user gives up the turn.
#[tokio::test(start_paused = true)]
async fn failed_insert_loses_no_input() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    let before = world.rows(worker.agent().state.agent()).await;
    world.store.fail_commit(1, CommitFault::Refused(full()));

    let refused = say(&mut worker, "typed").await;

    assert!(
        matches!(refused, Err(EngineError::Commit(_))),
        "{refused:?}"
    );
    assert_eq!(world.rows(worker.agent().state.agent()).await, before);

    world
        .provider
        .will(calling(&[FakeCall::new("look", "one")]));
    let store = world.store.clone();
    let mut pauses = 0;
    let (gave_up, told) = active_agents(&mut worker, TestJob::Say("go"), |update| match update {
        UiEvent::Running(_) => {
            store.go_away(full);
            vec![UserRequest::Line(UserInput::Message(
                "said first".to_owned(),
            ))]
        }
        UiEvent::StoreAway(_) => {
            pauses += 1;
            match pauses {
                1 => vec![
                    interrupt(),
                    UserRequest::Line(UserInput::Message("said later".to_owned())),
                ],
                2 => vec![interrupt()],
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    })
    .await;

    assert!(
        matches!(gave_up, Err(EngineError::StoreAway(_))),
        "{gave_up:?}"
    );
    let back: Vec<_> = told
        .iter()
        .filter_map(|update| match update {
            UiEvent::NotStored { input, .. } => Some(input.line()),
            _ => None,
        })
        .collect();
    assert_eq!(back, ["said first", "said later"]);

    world.store.come_back();
    world.provider.will_say("well");
    say(&mut worker, "are you there?").await.unwrap();
    let rows = world.rows(worker.agent().state.agent()).await;
    let causes = rows.iter().filter(|row| row.kind.name() == "interrupted");
    let causes: Vec<_> = causes.filter_map(|row| row.data.as_deref()).collect();
    assert_eq!(causes, [r#"{"cause":"user"}"#], "its user gave it up");
}

/// Each outage is reported once while an answer streams, though many drafts fail.
#[tokio::test(start_paused = true)]
async fn an_outage_is_told_once() {
    let world = World::new();
    let mut worker = world.root().await;
    let spoken = [
        Step::Say("word ".to_owned()),
        Step::Sleep(Duration::from_millis(100)),
    ];
    let spoken = spoken.into_iter().cycle().take(100);
    world.provider.will(spoken.chain([Step::Finish]));
    let store = world.store.clone();
    let mut heard = 0;

    let (outcome, told) = active_agents(&mut worker, TestJob::Say("go"), |update| {
        if let UiEvent::Text(_) = update {
            heard += 1;
            match heard {
                5 | 30 => store.go_away(full),
                20 | 45 => store.come_back(),
                _ => {}
            }
        }
        Vec::new()
    })
    .await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    let away = told
        .iter()
        .filter(|update| matches!(update, UiEvent::StoreAway(_)));
    assert_eq!(away.count(), 2);
}

/// N6d: a turn with tools survives a store failure at any commit or read. Once the store returns,
/// held rows are written first and in order, and nothing is written or run twice.
#[tokio::test(start_paused = true)]
async fn a_turn_with_tools_outlasts_a_store_that_fails_anywhere() {
    let (commits, reads, whole) = undisturbed().await;
    for nth in 2..=commits {
        let faults = [
            CommitFault::Refused(full()),
            CommitFault::Refused(StoreError::Busy("locked".into())),
            CommitFault::WrittenUnknown,
            CommitFault::LostUnknown,
        ];
        for fault in faults {
            let shown = format!("commit {nth}: {fault:?}");
            let (world, call_log, mut worker) = about_to_call().await;
            // The lookup of the commit's outcome fails at first, too.
            world.store.fail_commit(nth, fault);
            world.store.fail_read_after_commit(nth, full());

            let outcome = say(&mut worker, "go").await;

            assert_eq!(outcome.unwrap(), Outcome::Completed, "{shown}");
            assert_eq!(said(&world, &worker).await, whole, "{shown}");
            assert_eq!(
                call_log.began(),
                ["look", "change", "act", "last"],
                "{shown}"
            );
        }
    }
    // The first reads come before the message is stored; if they fail, no turn begins.
    let mut begun = 0;
    for nth in 1..=reads {
        let (world, call_log, mut worker) = about_to_call().await;
        world.store.fail_read(nth, full());

        let outcome = say(&mut worker, "go").await;

        if outcome.is_err() {
            assert!(
                world.provider.requests().is_empty(),
                "read {nth}: {outcome:?}"
            );
            continue;
        }
        begun += 1;
        assert_eq!(said(&world, &worker).await, whole, "read {nth}");
        assert_eq!(call_log.began().len(), 4, "read {nth}");
    }
    assert!(begun > 0);
}

/// N6d: an interrupt while a result waits for the store takes effect when the store returns. A
/// second one ends the wait with an error; the agent continues when the store returns.
#[tokio::test(start_paused = true)]
async fn interrupts_are_heard_while_the_store_is_away() {
    for interrupts in 1..=2 {
        let (world, _) = World::with_fakes();
        let mut worker = world.root().await;
        let id = worker.agent().state.agent();
        world
            .provider
            .will(calling(&[FakeCall::new("look", "one")]));
        world.provider.will_say("back again");
        let store = world.store.clone();
        let mut pauses = 0;

        let (outcome, told) =
            active_agents(&mut worker, TestJob::Say("go"), |update| match update {
                UiEvent::Progress { .. } => {
                    store.go_away(full);
                    Vec::new()
                }
                UiEvent::StoreAway(_) => {
                    pauses += 1;
                    if pauses > interrupts {
                        store.come_back();
                        return Vec::new();
                    }
                    vec![interrupt()]
                }
                _ => Vec::new(),
            })
            .await;
        let requests = world.provider.requests().len();
        world.store.come_back();
        say(&mut worker, "well?").await.unwrap();

        assert_eq!(requests, 1, "nothing was sent after the interrupt");
        let kinds = world.kinds(id).await;
        let rest = ["tool_result", "interrupted", "user", "assistant", "usage"];
        assert_eq!(kinds[5..], rest, "{interrupts}");
        let result = &world.results(id).await[0];
        if interrupts == 1 {
            assert_eq!(outcome.unwrap(), Outcome::Interrupted(Cause::User));
            assert!(told.iter().any(|update| is_stored(update, "tool_result")));
            assert_eq!(result.output, "one");
        } else {
            assert!(
                matches!(outcome, Err(EngineError::StoreAway(_))),
                "{outcome:?}"
            );
            assert_ne!(result.output, "one", "it could not be kept");
        }
    }
}
