//! Facts that calls read from the log, and storage of their output.

use std::borrow::Cow;
use std::sync::Arc;

use ikigai_core::data::{self, ToolResultData};
use ikigai_core::settings::Approve;
use ikigai_core::{AgentId, Kind, Micros};
use ikigai_engine::{Outcome, Safety, Tools, UiEvent, Worker};
use ikigai_store::ReadLog;
use ikigai_testkit::Step;
use ikigai_tools::{builtin, process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fakes::{CallLog, FakeCall, KEY, KEY_HERE, call, calling};
use crate::support::{TestJob, World, active_agents, say};

fn with_real_tools() -> World {
    World::with_tools(builtin::all(process::ChildEnvironment::default()))
}

/// Creates an agent in a directory that needs no approvals.
async fn agent_in(world: &World, directory: &TempDir) -> Worker {
    let workdir = directory.path().to_str().unwrap();
    let mut worker = world.engine.create_root(workdir, workdir).await.unwrap();
    worker.approve_for_now(Approve::All).await.unwrap();
    worker
}

/// Lets the model make one call; returns the output that the model gets.
async fn output_of(world: &World, worker: &mut Worker, tool: &str, arguments: &Value) -> String {
    world
        .provider
        .will([Step::FinishWith(vec![call(tool, arguments)])]);
    world.provider.will_say("I see");
    assert_eq!(say(worker, "go on").await.unwrap(), Outcome::Completed);
    let id = worker.agent().state.agent();
    world.results(id).await.pop().unwrap().output
}

async fn retried(worker: &mut Worker) {
    let (outcome, _) = active_agents(worker, TestJob::Retry, |_| Vec::new()).await;
    assert_eq!(outcome.unwrap(), Outcome::Completed);
}

/// E17a: the list is folded from its tool's results on the path. A rewind restores it, live and
/// after a restart.
#[tokio::test(start_paused = true)]
async fn todo_list_is_folded_from_the_path() {
    let world = with_real_tools();
    let mut worker = world.root().await;
    let add = |item: &str| json!({ "operation": "add", "item": item });
    let show = json!({ "operation": "show" });
    output_of(&world, &mut worker, "list", &add("write the parser")).await;
    let two = output_of(&world, &mut worker, "list", &add("test it")).await;
    world.provider.will_say("forget the second");
    retried(&mut worker).await;

    let live = output_of(&world, &mut worker, "list", &show).await;
    let restarted = world.restarted();
    let mut worker = restarted.reopened().await;
    let replayed = output_of(&restarted, &mut worker, "list", &show).await;

    assert!(
        two.contains("write the parser") && two.contains("test it"),
        "{two}"
    );
    assert!(
        live.contains("write the parser") && !live.contains("test it"),
        "{live}"
    );
    assert_eq!(replayed, live);
}

/// E17a: calls of one response build on the list of the calls before them.
#[tokio::test(start_paused = true)]
async fn calls_of_the_list_in_one_response_build_on_each_other() {
    let world = with_real_tools();
    let mut worker = world.root().await;
    let add = |item: &str| call("list", &json!({ "operation": "add", "item": item }));
    let items = ["one", "two", "three"];
    world
        .provider
        .will([Step::FinishWith(items.map(add).to_vec())]);
    world.provider.will_say("done");

    say(&mut worker, "plan").await.unwrap();

    let last = world
        .results(worker.agent().state.agent())
        .await
        .pop()
        .unwrap()
        .output;
    assert!(items.iter().all(|item| last.contains(item)), "{last}");
}

/// E17b: the changed-file check uses the newest `files` entry on the path. A rewind removes
/// entries, and the refusal names another agent that changed the file.
#[tokio::test(start_paused = true)]
async fn changed_file_guard_uses_the_path() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("lib.rs");
    std::fs::write(&file, "old\n").unwrap();
    let world = with_real_tools();
    let mut worker = agent_in(&world, &directory).await;
    let mut other = agent_in(&world, &directory).await;
    let name = other.agent().state.settings().name.clone().unwrap();
    let read = json!({ "file_path": "lib.rs" });
    let write = |content: &str| json!({ "file_path": "lib.rs", "content": content });
    let found = || std::fs::read_to_string(&file).unwrap();

    // A file changed outside of ikigai is refused until it is read again.
    output_of(&world, &mut worker, "file_read", &read).await;
    std::fs::write(&file, "by an editor\n").unwrap();
    let refused = output_of(&world, &mut worker, "file_write", &write("mine\n")).await;
    assert_eq!(found(), "by an editor\n", "{refused}");
    output_of(&world, &mut worker, "file_read", &read).await;
    output_of(&world, &mut worker, "file_write", &write("mine\n")).await;
    assert_eq!(found(), "mine\n");
    // The agent knows the content that it wrote itself.
    output_of(&world, &mut worker, "file_write", &write("mine again\n")).await;
    assert_eq!(found(), "mine again\n");

    // The rewind abandons the last write, so this path has not seen the content on disk.
    world.provider.will_say("as before");
    retried(&mut worker).await;
    let rewound = output_of(&world, &mut worker, "file_write", &write("over it\n")).await;
    assert_eq!(found(), "mine again\n", "{rewound}");

    // Another agent of this log changed it twelve seconds ago.
    output_of(&world, &mut worker, "file_read", &read).await;
    output_of(&world, &mut other, "file_read", &read).await;
    output_of(&world, &mut other, "file_write", &write("theirs\n")).await;
    let row = wrote_last(&world, other.agent().state.agent()).await;
    world.clock.set(Micros(row.1.0 + 12_000_000));
    let refused = output_of(&world, &mut worker, "file_write", &write("over it\n")).await;
    assert_eq!(found(), "theirs\n");
    let who = format!("lib.rs was changed by {name} #{}, 12 s ago.", row.0);
    assert!(refused.contains(&who), "{refused}\nlacks\n{who}");
}

/// A file is overwritten only if the path has read it; a restart does not forget that.
#[tokio::test(start_paused = true)]
async fn unread_files_are_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("lib.rs");
    std::fs::write(&file, "old\n").unwrap();
    let world = with_real_tools();
    let mut worker = agent_in(&world, &directory).await;
    let write = json!({ "file_path": "lib.rs", "content": "new\n" });

    let refused = output_of(&world, &mut worker, "file_write", &write).await;
    let read = json!({ "path": "lib.rs" });
    output_of(&world, &mut worker, "file_read", &read).await;
    let restarted = world.restarted();
    let workdir = directory.path().to_str().unwrap();
    let record = restarted.engine.latest(workdir).await.unwrap().unwrap();
    let mut worker = restarted.engine.open(&record).await.unwrap();
    worker.approve_for_now(Approve::All).await.unwrap();
    let written = output_of(&restarted, &mut worker, "file_write", &write).await;

    assert!(refused.contains("you have not read it"), "{refused}");
    assert!(written.starts_with("wrote `lib.rs`"), "{written}");
}

/// `grep` searches the whole output of a row, and commands name files that the agent knows.
///
/// The clock runs: a paused one would jump to the deadline of the command while that runs.
#[tokio::test]
async fn calls_get_rows_and_read_files_from_the_log() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "one\ntwo\n").unwrap();
    let world = with_real_tools();
    let mut worker = agent_in(&world, &directory).await;
    let read = json!({ "file_path": "a.txt" });
    output_of(&world, &mut worker, "file_read", &read).await;
    let id = worker.agent().state.agent();
    let rows = world.rows(id).await;
    let is_result = |row: &&ikigai_core::Row| row.kind.read_as() == Some(Kind::ToolResult);
    let row = rows.iter().rfind(is_result).unwrap().at.seq;

    let search = json!({ "pattern": "two", "path": format!("#{row}") });
    let found = output_of(&world, &mut worker, "grep", &search).await;
    let change = json!({ "command": "echo three > a.txt" });
    let changed = output_of(&world, &mut worker, "bash", &change).await;

    assert_eq!(found, format!("#{row}\n2:     2\ttwo\n"));
    let line = "[this changed files that you had read: `a.txt`; read them again]";
    assert!(changed.contains(line), "{changed}");
}

/// Returns the newest row by which an agent wrote a file, and its time.
async fn wrote_last(world: &World, id: AgentId) -> (String, Micros) {
    let rows = world.rows(id).await;
    let wrote = rows.iter().rev().find(|row| {
        let result: ToolResultData = data::read(row.data.as_deref());
        let files = result.files.unwrap_or_default();
        files.iter().any(|file| file.wrote == Some(true))
    });
    let row = wrote.unwrap();
    (row.at.seq.to_string(), row.created_at)
}

/// A long output is stored whole in a blob, which `file_read` reads in pages.
#[tokio::test(start_paused = true)]
async fn a_long_output_is_kept_in_a_blob_that_can_be_paged() {
    let call_log = CallLog::default();
    let mut tools = call_log.tools();
    tools.extend(builtin::all(process::ChildEnvironment::default()));
    let world = World::with_tools(tools);
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let lines: Vec<_> = (1..=9000).map(|line| format!("line {line}\n")).collect();
    let lines = lines.concat();
    world
        .provider
        .will(calling(&[FakeCall::new("look", "long").printing(&lines)]));
    world.provider.will_say("long");

    say(&mut worker, "go").await.unwrap();
    let row = world
        .rows(id)
        .await
        .into_iter()
        .find(|row| row.kind.name() == "tool_result")
        .unwrap();
    let result: ToolResultData = data::read(row.data.as_deref());
    let hash = result.blob.clone().unwrap().hash.unwrap();
    let page = json!({ "file_path": format!("blob:{hash}"), "offset": 5000, "limit": 2 });
    let paged = output_of(&world, &mut worker, "file_read", &page).await;

    assert!(result.output.as_ref().unwrap().len() <= 32 * 1024);
    assert!(result.output.unwrap().contains(&format!("blob:{hash}")));
    assert_eq!(result.blob.unwrap().bytes, Some(lines.len() as u64));
    let kept = world.log().blob(hash.parse().unwrap()).await.unwrap();
    assert_eq!(kept.as_deref(), Some(lines.as_bytes()));
    assert!(
        paged.contains("line 5000") && paged.contains("line 5001"),
        "{paged}"
    );
    assert!(!paged.contains("line 5002"), "{paged}");
}

/// E15: credentials in tool output are blanked before it is stored. This covers the row, its shown
/// text, the blob and progress.
#[tokio::test(start_paused = true)]
async fn keys_in_tool_output_are_blanked_everywhere() {
    let call_log = CallLog::default();
    let tools: Arc<dyn Tools> = Arc::new(call_log.tools());
    let safety = Safety {
        blank: Arc::new(|bytes| {
            let text = String::from_utf8_lossy(bytes);
            Cow::Owned(text.replace(KEY, "[key]").into_bytes())
        }),
        ..Safety::default()
    };
    let world =
        World::new().equipped(move |engine| engine.with_tools(tools.clone(), safety.clone()));
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let key = format!("the key is {KEY_HERE}\n");
    let long = FakeCall::new("look", "long").printing(&key.repeat(4000));
    let short = FakeCall::new("look", "short").printing(&key);
    world
        .provider
        .will([Step::FinishWith(vec![short.block(), long.block()])]);
    world.provider.will_say("done");

    let (_, told) = active_agents(&mut worker, TestJob::Say("go"), |_| Vec::new()).await;

    let rows = world.rows(id).await;
    assert!(!format!("{rows:?}").contains(KEY));
    assert!(!format!("{:?}", world.provider.requests()).contains(KEY));
    let results: Vec<_> = rows
        .iter()
        .filter(|row| row.kind.name() == "tool_result")
        .collect();
    assert_eq!(results.len(), 2);
    for row in &results {
        let stored = format!("{:?}{:?}", row.content, row.data);
        assert!(!stored.contains(KEY), "{stored}");
        assert!(stored.contains("[key]"));
    }
    let last: ToolResultData = data::read(results[1].data.as_deref());
    let hash = last.blob.unwrap().hash.unwrap().parse().unwrap();
    let kept = world.log().blob(hash).await.unwrap().unwrap();
    assert!(!String::from_utf8_lossy(&kept).contains(KEY));
    let printed = told
        .iter()
        .filter(|update| matches!(update, UiEvent::Progress { .. } | UiEvent::Output { .. }));
    let printed: Vec<_> = printed.map(|update| format!("{update:?}")).collect();
    assert_eq!(printed.len(), 4);
    assert!(
        printed
            .iter()
            .all(|line| !line.contains(KEY) && line.contains("[key]"))
    );
}
