//! Interrupts at any moment: output is kept, calls are stopped, the history stays sendable.

use std::time::Duration;

use ikigai_core::data::{Cause, Verdict};
use ikigai_core::settings::Approve;
use ikigai_engine::{Outcome, UiEvent};
use ikigai_testkit::{Step, check_request};
use tokio::time::Instant;

use crate::fakes::{FakeCall, Moment, calling};
use crate::support::{
    CallInputs, TestJob, World, active_agents, interrupt, is_stored, say, target_of,
};

/// N2c: an interrupt stores the partial text and a result for each stopped call. Both precede the
/// `interrupted` row; each result has a verdict. Finished calls keep their results.
#[tokio::test(start_paused = true)]
async fn interrupt_persists_partial_text_and_stopped_calls() {
    while_it_speaks().await;
    while_tools_run().await;
}

async fn while_it_speaks() {
    let world = World::new();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world
        .provider
        .will([Step::Say("I was about".to_owned()), Step::Hang]);
    world.provider.will_say("to say hello");

    let (outcome, _) = active_agents(&mut worker, TestJob::Say("go"), |update| match update {
        UiEvent::Text(_) => vec![interrupt()],
        _ => Vec::new(),
    })
    .await;
    say(&mut worker, "what?").await.unwrap();

    assert_eq!(outcome.unwrap(), Outcome::Interrupted(Cause::User));
    let rows = world.rows(id).await;
    assert_eq!(rows[3].content.as_deref(), Some("I was about"));
    assert_eq!(rows[4].data.as_deref(), Some(r#"{"cause":"user"}"#));
    let kinds = world.kinds(id).await;
    assert_eq!(kinds[2..6], ["user", "assistant", "interrupted", "user"]);
    check_request(&world.provider.requests()[1], &target_of(&worker)).unwrap();
}

/// Interrupts with one call finished, one running, one queued and one awaiting approval.
async fn while_tools_run() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world.provider.will(calling(&[
        FakeCall::new("act", "asked"),
        FakeCall::new("look", "running")
            .writing(&["a"])
            .taking(Duration::from_mins(1)),
        FakeCall::new("look", "waiting").reading(&["a"]),
        FakeCall::new("look", "done"),
    ]));
    world.provider.will_say("I see");

    let (outcome, _) = active_agents(&mut worker, TestJob::Say("go"), |update| {
        let first_result = is_stored(update, "tool_result");
        first_result.then(interrupt).into_iter().collect()
    })
    .await;

    assert_eq!(outcome.unwrap(), Outcome::Interrupted(Cause::User));
    let stopped = |call: &str, output: &str| CallInputs {
        call: call.to_owned(),
        success: false,
        verdict: Verdict::Interrupted,
        output: output.to_owned(),
    };
    let done = CallInputs {
        success: true,
        verdict: Verdict::Ran,
        ..stopped("done", "done")
    };
    let not_run = "not run: the user stopped the turn";
    let came = [
        done,
        stopped("running", "running so far"),
        stopped("asked", not_run),
        stopped("waiting", not_run),
    ];
    assert_eq!(world.results(id).await, came);
    assert_eq!(world.kinds(id).await.last().unwrap(), "interrupted");
    let label = "running".to_owned();
    assert_eq!(call_log.moments().last(), Some(&Moment::Stopped(label)));
    let live = world.engine.next_request(id).await.unwrap();
    say(&mut worker, "and?").await.unwrap();
    let sent = world.provider.requests().pop().unwrap();
    check_request(&sent, &target_of(&worker)).unwrap();
    assert_eq!(
        sent.messages[..live.messages.len() - 1],
        live.messages[..live.messages.len() - 1]
    );
}

/// A tool that ignores its stop delays an interrupt only by the grace period.
#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_stop_is_given_up_within_a_second() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    worker.approve_for_now(Approve::All).await.unwrap();
    let id = worker.agent().state.agent();
    world.provider.will(calling(&[
        FakeCall::new("act", "deaf").that("ignores its stop"),
        FakeCall::new("look", "obedient").taking(Duration::from_mins(1)),
    ]));
    let mut begun = None;

    let (outcome, _) = active_agents(&mut worker, TestJob::Say("go"), |update| match update {
        UiEvent::Running(_) => {
            begun.get_or_insert_with(Instant::now);
            vec![interrupt()]
        }
        _ => Vec::new(),
    })
    .await;

    let took = begun.unwrap().elapsed();
    assert_eq!(outcome.unwrap(), Outcome::Interrupted(Cause::User));
    assert!(took < Duration::from_secs(1), "{took:?}");
    let came: Vec<_> = world
        .results(id)
        .await
        .into_iter()
        .map(|came| (came.call, came.output))
        .collect();
    let told = |call: &str, output: &str| (call.to_owned(), output.to_owned());
    assert_eq!(
        came,
        [
            told("obedient", "obedient so far"),
            told("deaf", "did not stop in time"),
        ]
    );
    assert!(
        ikigai_store::ReadLog::open_runs(world.log(), id)
            .await
            .unwrap()
            .is_empty()
    );
}

/// An interrupt while the last result is being stored ends the turn without another request.
#[tokio::test(start_paused = true)]
async fn an_interrupt_at_the_break_is_heeded_before_the_next_request() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world
        .provider
        .will(calling(&[FakeCall::new("look", "one")]));
    world.provider.will_say("never asked for");

    let (outcome, _) = active_agents(&mut worker, TestJob::Say("go"), |update| {
        let result = is_stored(update, "tool_result");
        result.then(interrupt).into_iter().collect()
    })
    .await;

    assert_eq!(outcome.unwrap(), Outcome::Interrupted(Cause::User));
    assert_eq!(world.provider.requests().len(), 1);
    let kinds = world.kinds(id).await;
    assert_eq!(kinds[5..], ["tool_result", "interrupted"]);
}
