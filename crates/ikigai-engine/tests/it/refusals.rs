//! Refused calls: tools that `read` mode hides, and calls that are repeated in vain.

use ikigai_core::Kind;
use ikigai_core::settings::Approve;
use ikigai_engine::Outcome;
use ikigai_testkit::Step;
use ikigai_tools::{builtin, process};
use serde_json::json;

use crate::fakes::call;
use crate::support::{World, say};

fn with_real_tools() -> World {
    World::with_tools(builtin::all(process::ChildEnvironment::default()))
}

#[tokio::test(start_paused = true)]
async fn read_mode_offers_only_tools_that_can_run() {
    let world = with_real_tools();
    let mut worker = world.root().await;
    let offered = || {
        let request = world.provider.requests().pop().unwrap();
        let names = request.tools.into_iter().map(|tool| tool.name);
        names.collect::<Vec<_>>()
    };

    worker.approve_for_now(Approve::Read).await.unwrap();
    world.provider.will_say("hello");
    say(&mut worker, "hello").await.unwrap();
    // Without a sandbox, every command is refused.
    let reading = [
        "file_read",
        "glob",
        "grep",
        "process",
        "recall",
        "todo",
        "wait",
    ];
    assert_eq!(offered(), reading);

    worker.approve_for_now(Approve::Ask).await.unwrap();
    world.provider.will_say("hello");
    say(&mut worker, "hello").await.unwrap();
    let all = offered();
    assert!(
        ["bash", "file_write", "fork"]
            .iter()
            .all(|name| all.contains(&(*name).to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_hidden_tool_is_refused_with_the_reason() {
    let world = with_real_tools();
    let mut worker = world.root().await;
    worker.approve_for_now(Approve::Read).await.unwrap();
    let write = json!({"file_path": "a", "content": ""});
    world
        .provider
        .will([Step::FinishWith(vec![call("file_write", &write)])]);
    world.provider.will_say("I see");

    say(&mut worker, "write").await.unwrap();

    let id = worker.agent().state.agent();
    let output = world.results(id).await.pop().unwrap().output;
    assert!(output.contains("`read` mode"), "{output}");
}

#[tokio::test(start_paused = true)]
async fn five_identical_refusals_end_the_turn() {
    let world = with_real_tools();
    let mut worker = world.root().await;
    worker.approve_for_now(Approve::Read).await.unwrap();
    let write = json!({"file_path": "a", "content": ""});
    let other = json!({"file_path": "b", "content": ""});
    let answers = [&write, &write, &other, &write, &write, &write];
    for arguments in answers {
        world
            .provider
            .will([Step::FinishWith(vec![call("file_write", arguments)])]);
    }

    let outcome = say(&mut worker, "write").await.unwrap();

    let text = "the model repeated a refused call of `file_write` 5 times without a change";
    assert_eq!(outcome, Outcome::Failed(text.to_owned()));
    let id = worker.agent().state.agent();
    assert_eq!(world.results(id).await.len(), answers.len());
    let rows = world.rows(id).await;
    let last = rows.last().unwrap();
    assert_eq!(last.kind.read_as(), Some(Kind::Error));
    assert_eq!(last.content.as_deref(), Some(text));
}
