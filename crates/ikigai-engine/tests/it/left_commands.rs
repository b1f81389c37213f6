//! Commands that go on in the background at their deadline.

use ikigai_core::AgentId;
use ikigai_core::data::{ProcessCause, ProcessState, Verdict};
use ikigai_engine::{Outcome, UserRequest, Worker};
use ikigai_store::ReadLog;
use serde_json::{Value, json};

use crate::processes::{Kept, active_agents, id, living, screen, until_ended};
use crate::support::say;

/// Prints a line, waits for the file `go`, prints another one and fails.
const COMMAND: &str = "echo up; until [ -e go ]; do sleep 0.01; done; echo after; exit 4";

async fn run(kept: &Kept, worker: &mut Worker, arguments: &Value) {
    kept.will_call("bash", arguments);
    kept.world.provider.will_say("I see");
    say(worker, "run it").await.unwrap();
}

async fn output(kept: &Kept, agent: AgentId) -> String {
    kept.last_result(agent).await.output.unwrap()
}

/// At its deadline a command becomes a process of the agent: result, rows, list, output, end.
#[tokio::test]
async fn a_command_at_its_deadline_becomes_a_process() {
    let kept = Kept::new();
    let mut worker = kept.root().await;
    let agent = id(&worker);

    run(
        &kept,
        &mut worker,
        &json!({"command": COMMAND, "timeout": 1}),
    )
    .await;

    let result = kept.last_result(agent).await;
    assert_eq!(
        (result.process, result.verdict, result.success),
        (Some(1), Some(Verdict::Ran), Some(true))
    );
    let rows = kept.world.rows(agent).await;
    let shown = rows.iter().rfind(|row| row.kind.name() == "tool_result");
    assert_eq!(
        shown.unwrap().content.as_deref(),
        Some("still running after 1 s · 1 line · process 1")
    );
    let text = result.output.unwrap();
    assert!(
        text.starts_with(
            "up\n[still running after 1 s]\n[it goes on in the background as process 1"
        ),
        "{text}"
    );
    let rows = kept.process_rows(agent).await;
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].process, rows[0].state, rows[0].call),
        (Some(1), Some(ProcessState::Started), result.call)
    );
    let job = kept.open(agent).await.pop().unwrap();
    assert_eq!((job.number, job.read_to, &*job.command), (1, 3, COMMAND));
    assert!(living(&job) >= 1);
    let runs = kept.world.log().open_runs(agent).await.unwrap();
    assert_eq!(runs, [], "the run of the call has ended");

    std::fs::write(kept.home.path().join("go"), "").unwrap();
    kept.will_call("process", &json!({"action": "wait", "process": 1}));
    kept.world.provider.will_say("done");
    say(&mut worker, "wait for it").await.unwrap();

    let text = output(&kept, agent).await;
    assert!(text.starts_with("after\n[process 1: exit 4"), "{text}");
    let rows = kept.process_rows(agent).await;
    assert_eq!(rows.len(), 2, "started once, ended once");
    assert_eq!(
        (rows[1].cause, rows[1].exit),
        (Some(ProcessCause::Exit), Some(4))
    );
    assert_eq!(kept.open(agent).await, []);
}

/// The end of a command that went on wakes its idle owner, as that of every process.
#[tokio::test]
async fn the_end_of_a_command_that_went_on_wakes_its_owner() {
    let kept = Kept::new();
    let mut told = screen(&kept);
    let agent = active_agents(&kept).await;
    kept.will_call("bash", &json!({"command": COMMAND, "timeout": 1}));
    kept.world.provider.will_say("it goes on");
    kept.world.provider.will_say("it failed");
    let start = UserRequest::parse("run it");
    kept.world.engine.say(agent, start).await.unwrap();
    until_ended(&mut told).await;
    assert_eq!(kept.notices(agent).await.len(), 0);

    std::fs::write(kept.home.path().join("go"), "").unwrap();
    assert_eq!(until_ended(&mut told).await, Outcome::Completed);

    let notices = kept.notices(agent).await;
    assert_eq!(notices.len(), 1);
    let text = notices[0].0.content.as_deref().unwrap();
    assert!(
        text.starts_with("<notice process=\"1\">\nprocess 1 has ended: exit 4 ("),
        "{text}"
    );
}

/// After a crash the next process adopts a command that went on; one that had not is ended.
#[tokio::test]
async fn a_crash_keeps_commands_that_went_on() {
    let kept = Kept::new();
    let mut worker = kept.root().await;
    let agent = id(&worker);
    run(
        &kept,
        &mut worker,
        &json!({"command": COMMAND, "timeout": 1}),
    )
    .await;
    let job = kept.open(agent).await.pop().unwrap();
    let next = kept.restarted();
    drop(worker);

    let mut worker = next.reopened().await;

    assert_eq!(next.open(agent).await, std::slice::from_ref(&job));
    assert!(living(&job) >= 1);
    next.will_call("process", &json!({"action": "stop", "process": 1}));
    next.world.provider.will_say("stopped");
    say(&mut worker, "stop it").await.unwrap();
    assert_eq!(living(&job), 0);
    let rows = next.process_rows(agent).await;
    assert_eq!(rows.len(), 2, "started once, ended once");
    assert_eq!(rows[1].cause, Some(ProcessCause::Stop));
}

/// A command that ends in time leaves neither a process nor files.
#[tokio::test]
async fn a_command_that_ends_in_time_leaves_no_process() {
    let kept = Kept::new();
    let mut worker = kept.root().await;
    let agent = id(&worker);

    run(&kept, &mut worker, &json!({"command": "echo $$"})).await;

    let result = kept.last_result(agent).await;
    assert_eq!((result.process, result.success), (None, Some(true)));
    assert_eq!(kept.process_rows(agent).await.len(), 0);
    let files = kept.home.path().join("processes").join(agent.to_string());
    assert_eq!(std::fs::read_dir(files).unwrap().count(), 0);
}
