//! Resuming a stopped turn and repeating one: only at the user's request.

use ikigai_core::data::{self, Cause, CommandData, ErrorData, RewindData, Verdict, Via};
use ikigai_core::settings::Approve;
use ikigai_core::words::Severity;
use ikigai_core::{MachineId, Row, RowRef, Seq};
use ikigai_engine::{EngineError, Outcome, Resume, UiEvent, UserInput};
use ikigai_store::{Batch, Effect, Log as _, SessionMove};
use ikigai_testkit::{Step, check_request};
use serde_json::json;

use crate::fakes::{FakeCall, call, calling};
use crate::support::{
    TestJob, World, active_agents, dies_after, interrupt, is_stored, say, target_of,
};

/// Runs a job with a front end that sends nothing.
async fn done(
    worker: &mut ikigai_engine::Worker,
    job: TestJob<'_>,
) -> Result<Outcome, EngineError> {
    active_agents(worker, job, |_| Vec::new()).await.0
}

/// E9b: `resume` continues a settled turn and writes a `command` row. Without a stopped turn it
/// fails.
#[tokio::test(start_paused = true)]
async fn resume_goes_on_with_a_settled_turn() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let long = FakeCall::new("look", "long").taking(std::time::Duration::from_hours(1));
    world
        .provider
        .will(calling(&[FakeCall::new("look", "short"), long]));
    dies_after(100, &mut worker, TestJob::Say("go")).await;
    let restarted = world.restarted();
    let mut worker = restarted.reopened().await;
    let settled = restarted.kinds(id).await;

    restarted.provider.will_say("done");
    let outcome = done(&mut worker, TestJob::Resume).await.unwrap();
    let again = done(&mut worker, TestJob::Resume).await;

    assert_eq!(settled.last().unwrap(), "interrupted");
    assert_eq!(outcome, Outcome::Completed);
    assert!(
        matches!(again, Err(EngineError::NothingToResume)),
        "{again:?}"
    );
    let rows = restarted.rows(id).await;
    let rest = &rows[settled.len()..];
    let kinds: Vec<_> = rest.iter().map(|row| row.kind.name()).collect();
    assert_eq!(kinds, ["command", "assistant", "usage"]);
    let resume: CommandData = data::read(rest[0].data.as_deref());
    assert_eq!((resume.resume, resume.echo), (Some(true), None));
    assert_eq!(
        call_log.began(),
        ["short", "long"],
        "nothing is run again by itself"
    );
    let verdicts: Vec<_> = restarted
        .results(id)
        .await
        .into_iter()
        .map(|came| came.verdict)
        .collect();
    assert_eq!(verdicts, [Verdict::Ran, Verdict::Interrupted]);
    let request = restarted.provider.requests().pop().unwrap();
    check_request(&request, &target_of(&worker)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_tree_tells_who_stopped_in_the_middle() {
    let (world, _diary) = World::with_fakes();
    let mut worker = world.root().await;
    let long = FakeCall::new("look", "long").taking(std::time::Duration::from_hours(1));
    world.provider.will(calling(&[long]));
    dies_after(100, &mut worker, TestJob::Say("go")).await;
    let restarted = world.restarted();
    let state = async || restarted.engine.tree().await.unwrap()[0].state();

    let mut worker = restarted.reopened().await;
    worker.release().await.unwrap();
    let settled = state().await;
    worker = restarted.reopened().await;
    restarted.provider.will_say("done");
    done(&mut worker, TestJob::Resume).await.unwrap();
    worker.release().await.unwrap();

    assert_eq!(settled, "⏸ stopped");
    assert_eq!(state().await, "· idle");
}

/// E9b: `resume = "auto"` continues turns at start that an exit or a crash stopped. It skips turns
/// that the user stopped; other settings continue none.
#[tokio::test(start_paused = true)]
async fn auto_goes_on_with_what_a_program_left() {
    for (resume, lines, requests) in [
        (
            Resume::Auto,
            "▶ 1 interrupted turn (0 s ago): parser · resuming",
            1,
        ),
        (
            Resume::Ask,
            "⏸ 1 interrupted turn (0 s ago): parser · /resume all to continue",
            0,
        ),
        (Resume::Never, "", 0),
    ] {
        let (world, _) = World::with_fakes();
        let mut worker = world.root().await;
        let id = worker.agent().state.agent();
        let mut other = world.engine.create_root("/other", "/other").await.unwrap();
        world
            .provider
            .will([Step::Say("so far".to_owned()), Step::Hang]);
        let stop = |update: &UiEvent| match update {
            UiEvent::Text(_) => vec![interrupt()],
            _ => Vec::new(),
        };
        let stopped = active_agents(&mut other, TestJob::Say("mine"), stop)
            .await
            .0;
        assert_eq!(stopped.unwrap(), Outcome::Interrupted(Cause::User));
        let long = FakeCall::new("look", "long").taking(std::time::Duration::from_hours(1));
        world.provider.will(calling(&[long]));
        dies_after(100, &mut worker, TestJob::Say("go")).await;

        let restarted = world.restarted();
        let engine = restarted.engine.clone().with_resume(resume);
        restarted.provider.will_say("done");
        let sent = restarted.provider.requests().len();
        let found = engine.supervise().await.unwrap();
        let told = engine.stopped_lines(&found).into_iter();
        let told: Vec<_> = told.map(|(level, line)| level.signed(&line)).collect();
        let told = told.join("\n");
        while !engine.working().is_empty() {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }

        assert_eq!(told, lines, "{resume:?}");
        assert_eq!(
            restarted.provider.requests().len() - sent,
            requests,
            "{resume:?}"
        );
        let resumed = restarted
            .rows(id)
            .await
            .into_iter()
            .filter(|row| data::read::<CommandData>(row.data.as_deref()).resume == Some(true));
        assert_eq!(resumed.count(), requests, "{resume:?}");
        let settled = restarted.kinds(id).await;
        assert!(settled.contains(&"interrupted".to_owned()), "{settled:?}");
        engine.dismiss().await;
        let again = engine.supervise().await.unwrap();
        assert_eq!(
            again.len(),
            1 - requests,
            "{resume:?}: it is found as long as it waits"
        );
    }
}

/// E9e: `resume = "auto"` leaves a turn with a call of unknown outcome to the user. A ⚠ line
/// reports it; after `/resume` it is a turn like any other.
#[tokio::test(start_paused = true)]
async fn auto_leaves_an_unknown_outcome_to_the_user() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    worker.approve_for_now(Approve::All).await.unwrap();
    let long = FakeCall::new("act", "long").taking(std::time::Duration::from_hours(1));
    world.provider.will(calling(&[long]));
    dies_after(100, &mut worker, TestJob::Say("go")).await;

    let restarted = world.restarted();
    let engine = restarted.engine.clone().with_resume(Resume::Auto);
    let found = engine.supervise().await.unwrap();

    assert!(engine.working().is_empty(), "it does not go on");
    assert_eq!(restarted.provider.requests().len(), 1, "nothing is sent");
    assert_eq!(call_log.began(), ["long"]);
    let lines = engine.stopped_lines(&found);
    assert_eq!(
        lines,
        [(
            Severity::Warning,
            "parser: a tool call was interrupted, its outcome is unknown · check, then /resume parser, or /retry there".to_owned()
        )]
    );
    let mut worker = restarted.reopened().await;
    restarted
        .provider
        .will([Step::Say("so far".to_owned()), Step::Hang]);
    dies_after(100, &mut worker, TestJob::Resume).await;
    let third = restarted.restarted();
    let engine = third.engine.clone().with_resume(Resume::Auto);
    third.provider.will_say("done");
    let found = engine.supervise().await.unwrap();
    assert_eq!(
        found.iter().map(|one| one.goes_on).collect::<Vec<_>>(),
        [true]
    );
}

/// E9e: after a restart a turn with a call of unknown outcome waits for the user. `resume`
/// continues it, `retry` sends it again.
#[tokio::test(start_paused = true)]
async fn unknown_outcome_waits_for_the_user() {
    for job in [TestJob::Resume, TestJob::Retry] {
        let (world, call_log) = World::with_fakes();
        let mut worker = world.root().await;
        let id = worker.agent().state.agent();
        worker.approve_for_now(Approve::All).await.unwrap();
        let long = FakeCall::new("act", "long").taking(std::time::Duration::from_hours(1));
        world.provider.will(calling(&[long]));
        dies_after(100, &mut worker, TestJob::Say("go")).await;

        let restarted = world.restarted();
        let mut worker = restarted.reopened().await;
        let sent = restarted.provider.requests().len();
        let came = restarted.results(id).await;
        restarted.provider.will_say("done");
        let outcome = done(&mut worker, job).await.unwrap();

        assert_eq!(sent, 1, "nothing is sent by itself");
        assert_eq!(came.len(), 1);
        assert_eq!(came[0].verdict, Verdict::Unknown);
        assert!(came[0].output.starts_with("Outcome unknown"), "{came:?}");
        assert_eq!(outcome, Outcome::Completed);
        assert_eq!(
            call_log.began(),
            ["long"],
            "it is never run again by itself"
        );
        let request = restarted.provider.requests().pop().unwrap();
        check_request(&request, &target_of(&worker)).unwrap();
    }
}

/// E1: a provider's final failure is an `error` row with the provider's message. It survives a
/// restart, never reaches the model, and the turn can be repeated.
#[tokio::test(start_paused = true)]
async fn provider_failure_is_an_event_and_repeatable() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world
        .provider
        .will(calling(&[FakeCall::new("look", "one")]));
    let fails = [
        Step::Say("well, ".to_owned()),
        Step::Fail("overloaded".to_owned()),
    ];
    world.provider.will(fails);

    let (outcome, told) = active_agents(&mut worker, TestJob::Say("go"), |_| Vec::new()).await;
    let restarted = world.restarted();
    let mut worker = restarted.reopened().await;
    let rows = restarted.rows(id).await;
    restarted.provider.will_say("now");
    let again = done(&mut worker, TestJob::Retry).await.unwrap();

    assert_eq!(outcome.unwrap(), Outcome::Failed("overloaded".to_owned()));
    assert!(told.iter().any(|update| is_stored(update, "error")));
    let last = rows.last().unwrap();
    let error: ErrorData = data::read(last.data.as_deref());
    assert_eq!(last.content.as_deref(), Some("overloaded"));
    assert_eq!(error.category, Some(data::Category::Provider));
    assert_eq!(error.attempts, Some(1));
    assert_eq!(rows[rows.len() - 2].content.as_deref(), Some("well, "));
    assert_eq!(again, Outcome::Completed);
    let requests = restarted.provider.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[2], requests[0], "it is the same turn again");
    assert_eq!(call_log.began(), ["one"]);
    let sent = serde_json::to_string(&requests).unwrap();
    assert!(!sent.contains("overloaded"));
}

/// E11c: `retry` rewinds to the last `user` row that started a turn, then sends a request. The
/// rewind row names the files that tools wrote since.
#[tokio::test(start_paused = true)]
async fn retry_rewinds_to_last_user_row_and_sends() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::with_tools(ikigai_tools::builtin::all(
        ikigai_tools::process::ChildEnvironment::default(),
    ));
    let workdir = directory.path().to_str().unwrap();
    let mut worker = world.engine.create_root(workdir, workdir).await.unwrap();
    worker.approve_for_now(Approve::All).await.unwrap();
    let id = worker.agent().state.agent();
    world.provider.will_say("hello");
    say(&mut worker, "an older turn").await.unwrap();
    let write = |name: &str| {
        call(
            "file_write",
            &json!({ "file_path": name, "content": "x\n" }),
        )
    };
    world
        .provider
        .will([Step::FinishWith(vec![write("b.txt"), write("a.txt")])]);
    let read = call("file_read", &json!({ "file_path": "a.txt" }));
    world
        .provider
        .will([Step::FinishWith(vec![read, write("b.txt")])]);
    world.provider.will_say("written");
    say(&mut worker, "write").await.unwrap();
    let before = world.rows(id).await;
    let message = before
        .iter()
        .find(|row| row.content.as_deref() == Some("write"))
        .unwrap()
        .at;

    world.provider.will_say("once more");
    let outcome = done(&mut worker, TestJob::Retry).await.unwrap();

    assert_eq!(outcome, Outcome::Completed);
    let after = world.rows(id).await;
    let new: Vec<&Row> = after[before.len()..].iter().collect();
    let kinds: Vec<_> = new.iter().map(|row| row.kind.name()).collect();
    assert_eq!(kinds, ["rewind", "assistant", "usage"]);
    let rewind: RewindData = data::read(new[0].data.as_deref());
    let expected = RewindData {
        restored: None,
        target: Some(message),
        from: Some(before.last().unwrap().at),
        via: Some(Via::Retry),
        files: Some(vec!["a.txt".to_owned(), "b.txt".to_owned()]),
        turns: Some(0),
    };
    let shortened = |files: Option<Vec<String>>| {
        let name = |file: String| file.rsplit('/').next().unwrap().to_owned();
        files.map(|files| files.into_iter().map(name).collect())
    };
    let rewind = RewindData {
        files: shortened(rewind.files.clone()),
        ..rewind
    };
    assert_eq!(rewind, expected);
    let requests = world.provider.requests();
    assert_eq!(
        requests.last(),
        Some(&requests[1]),
        "the same as the first of that turn"
    );
}

/// A retry sends all messages of the turn again, queued ones included.
#[tokio::test(start_paused = true)]
async fn retry_keeps_all_messages_that_started_the_turn() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    world
        .provider
        .will([Step::Say("hm".to_owned()), Step::Hang]);
    let mut said = false;
    let turn = active_agents(&mut worker, TestJob::Say("first"), |update| match update {
        ikigai_engine::UiEvent::Text(_) if !std::mem::replace(&mut said, true) => {
            vec![ikigai_engine::UserRequest::Line(UserInput::Message(
                "queued".to_owned(),
            ))]
        }
        _ => Vec::new(),
    });
    tokio::time::timeout(std::time::Duration::from_secs(9), turn)
        .await
        .unwrap_err();
    let restarted = world.restarted();
    let mut worker = restarted.reopened().await;
    restarted
        .provider
        .will([Step::Fail("overloaded".to_owned())]);
    say(&mut worker, "typed").await.unwrap();

    restarted.provider.will_say("done");
    let outcome = done(&mut worker, TestJob::Retry).await.unwrap();

    assert_eq!(outcome, Outcome::Completed);
    let requests = restarted.provider.requests();
    assert_eq!(requests[2], requests[1]);
    let kinds = restarted.kinds(id).await;
    assert_eq!(
        kinds[5..],
        ["user", "user", "error", "rewind", "assistant", "usage"]
    );
}

/// An interrupted turn can be resumed; its stopped call does not run again.
#[tokio::test(start_paused = true)]
async fn an_interrupted_turn_can_be_resumed() {
    let (world, call_log) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let long = FakeCall::new("look", "long").taking(std::time::Duration::from_hours(1));
    world.provider.will(calling(&[long]));
    let stop = |update: &ikigai_engine::UiEvent| match update {
        ikigai_engine::UiEvent::Running(_) => vec![interrupt()],
        _ => Vec::new(),
    };
    active_agents(&mut worker, TestJob::Say("go"), stop)
        .await
        .0
        .unwrap();

    world.provider.will_say("then not");
    let outcome = done(&mut worker, TestJob::Resume).await.unwrap();

    assert_eq!(outcome, Outcome::Completed);
    assert_eq!(call_log.began(), ["long"]);
    let kinds = world.kinds(id).await;
    assert_eq!(
        kinds[5..],
        [
            "tool_result",
            "interrupted",
            "command",
            "assistant",
            "usage"
        ]
    );
    let resumed = RowRef::new(id, Seq(8));
    assert_eq!(world.rows(id).await[7].at, resumed);
}

/// E9f: a screen settles and resumes agents of this machine only.
#[tokio::test(start_paused = true)]
async fn agents_of_other_machines_are_not_settled() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let steps = [Step::Say("so far".to_owned()), Step::Hang];
    world.provider.will(steps);
    dies_after(100, &mut worker, TestJob::Say("go")).await;
    let restarted = world.restarted();
    let engine = restarted.engine.clone().with_resume(Resume::Auto);
    let session = engine.sessions().await.unwrap().remove(0);
    let place = SessionMove {
        session: session.id,
        machine: MachineId::from_random([9; 16]),
        host: Some("elsewhere".to_owned()),
        directory: session.directory,
    };
    let batch = Batch {
        with: vec![Effect::MoveSession(place)],
        ..Batch::default()
    };
    restarted.store.commit(batch).await.unwrap();

    let found = engine.supervise().await.unwrap();

    assert_eq!(found, []);
    assert!(engine.working().is_empty());
    let record = engine.reader().agent(id).await.unwrap().unwrap();
    assert!(
        record.owner.is_some(),
        "the lease of the dead process stays"
    );
}
