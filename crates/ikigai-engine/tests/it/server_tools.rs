//! Tools of MCP servers: offered as stored, called by name, named in a note when they change.

use std::path::Path;
use std::sync::{Arc, Mutex};

use ikigai_core::message::Block;
use ikigai_core::project::ToolSpec;
use ikigai_core::settings::Approve;
use ikigai_core::{Request, RowRef};
use ikigai_engine::{Safety, Tools, Worker};
use ikigai_store::BoxFuture;
use ikigai_testkit::Step;
use ikigai_tools::Tool;
use serde_json::json;

use crate::fakes::{CallLog, call};
use crate::support::{World, attended_line, say};

/// Servers whose tools a test changes.
#[derive(Clone, Default)]
struct Servers {
    tools: Arc<Mutex<Vec<Arc<dyn Tool>>>>,
    call_log: CallLog,
}

impl Servers {
    fn have(&self, names: &[&'static str]) {
        let fixed = ["mcp_call", "tool_search"];
        let all = names.iter().chain(&fixed);
        *self.tools.lock().unwrap() = all.map(|name| self.call_log.tool(name)).collect();
    }

    fn world(&self) -> World {
        let tools: Arc<dyn Tools> = Arc::new(self.clone());
        let world = World::new();
        let mut world =
            world.equipped(move |engine| engine.with_tools(tools.clone(), Safety::default()));
        world.add_platform();
        world
    }
}

impl Tools for Servers {
    fn offer<'a>(&'a self, _workdir: &'a Path) -> BoxFuture<'a, Vec<Arc<dyn Tool>>> {
        Box::pin(async { self.tools.lock().unwrap().clone() })
    }
}

async fn ask(world: &World, worker: &mut Worker, text: &str) -> Request {
    world.provider.will_say("fine");
    say(worker, text).await.unwrap();
    world.provider.requests().pop().unwrap()
}

fn names(request: &Request) -> Vec<&str> {
    let tools = request.tools.iter().map(|tool| tool.name.as_str());
    tools.filter(|name| name.starts_with("mcp__")).collect()
}

fn last_text(request: &Request) -> String {
    let blocks = request.messages.last().unwrap().blocks.iter();
    let texts = blocks.filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[tokio::test(start_paused = true)]
async fn requests_keep_the_stored_tools_until_a_clear() {
    let servers = Servers::default();
    servers.have(&["mcp__a__one", "mcp__a__two"]);
    let world = servers.world();
    let mut worker = world.root().await;
    let first = ask(&world, &mut worker, "hello").await;
    assert_eq!(names(&first), ["mcp__a__one", "mcp__a__two"]);

    servers.have(&["mcp__a__two", "mcp__b__new"]);
    let second = ask(&world, &mut worker, "again").await;
    let third = ask(&world, &mut worker, "and again").await;

    assert_eq!(second.tools, first.tools);
    let note = "MCP tools: also there, through mcp_call: mcp__b__new; not there now: mcp__a__one\n";
    assert!(last_text(&second).contains(note), "{}", last_text(&second));
    // The note comes once.
    assert_eq!(third.tools, first.tools);
    assert!(
        !last_text(&third).contains("MCP tools"),
        "{}",
        last_text(&third)
    );

    servers.have(&["mcp__a__one", "mcp__a__two"]);
    let back = ask(&world, &mut worker, "and now").await;
    assert!(last_text(&back).contains("MCP tools: those in your list\n"));
    servers.have(&["mcp__b__new"]);
    attended_line(&mut worker, "/clear", |_| Vec::new()).await;
    let cleared = ask(&world, &mut worker, "anew").await;
    assert_eq!(names(&cleared), ["mcp__b__new"]);
    assert!(!last_text(&cleared).contains("through mcp_call"));
}

#[tokio::test(start_paused = true)]
async fn a_past_request_has_the_tools_of_its_time() {
    let servers = Servers::default();
    servers.have(&["mcp__a__one"]);
    let world = servers.world();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let first = ask(&world, &mut worker, "hello").await;
    let answered = worker.agent().state.head();

    servers.have(&["mcp__b__new"]);
    attended_line(&mut worker, "/clear", |_| Vec::new()).await;
    let second = ask(&world, &mut worker, "anew").await;
    servers.have(&[]);

    assert_ne!(first.tools, second.tools);
    let rows = world.rows(id).await;
    let is_answer = |row: &&ikigai_core::Row| row.kind.name() == "assistant";
    let answer = rows.iter().find(is_answer).unwrap().at;
    assert!(answer.seq <= answered);
    let past = world.engine.request_at(answer).await.unwrap();
    assert_eq!(past.request.tools, first.tools);
    let newest = rows.iter().rev().find(is_answer).unwrap().at;
    let newest = world.engine.request_at(RowRef::new(id, newest.seq)).await;
    assert_eq!(newest.unwrap().request.tools, second.tools);
}

#[tokio::test(start_paused = true)]
async fn a_call_by_name_is_judged_and_run_as_the_named_tool() {
    let servers = Servers::default();
    servers.have(&["mcp__a__one"]);
    let tools: Arc<dyn Tools> = Arc::new(servers.clone());
    let refuse = ikigai_core::settings::Rule {
        tool: Some("mcp__a__*".to_owned()),
        pattern: Some("bad*".to_owned()),
    };
    let safety = Safety {
        refuse: vec![refuse],
        ..Safety::default()
    };
    let world = World::new();
    let world = world.equipped(move |engine| engine.with_tools(tools.clone(), safety.clone()));
    let mut worker = world.root().await;
    worker.approve_for_now(Approve::All).await.unwrap();
    let by_name = |label: &str| {
        let given = json!({"label": label, "millis": 1});
        call(
            "mcp_call",
            &json!({"tool": "mcp__a__one", "arguments": given}),
        )
    };
    let gone = call("mcp_call", &json!({"tool": "mcp__b__gone"}));
    let calls = vec![by_name("good"), by_name("bad one"), gone];
    world.provider.will([Step::FinishWith(calls)]);
    world.provider.will_say("done");

    say(&mut worker, "go").await.unwrap();

    assert_eq!(servers.call_log.began(), ["good"]);
    let rows = world.rows(worker.agent().state.agent()).await;
    let results: Vec<String> = rows
        .iter()
        .filter(|row| row.kind.name() == "tool_result")
        .filter_map(|row| row.data.clone())
        .collect();
    // A provider pairs results with the name that it knows.
    assert!(
        results
            .iter()
            .all(|data| data.contains(r#""name":"mcp_call""#))
    );
    let has = |text: &str| results.iter().any(|data| data.contains(text));
    assert!(has("configuration refuses `mcp__a__one`"), "{results:#?}");
    assert!(
        has("No MCP server offers the tool `mcp__b__gone` now"),
        "{results:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn schemas_above_a_tenth_of_the_window_are_left_to_the_search() {
    let servers = Servers::default();
    let many: Vec<&'static str> = (0..60)
        .map(|number| &*format!("mcp__a__tool_number_{number}").leak())
        .collect();
    servers.have(&many);
    let tools: Arc<dyn Tools> = Arc::new(servers.clone());
    let world = World::with_window(10_000);
    let world = world.equipped(move |engine| engine.with_tools(tools.clone(), Safety::default()));
    let mut worker = world.root().await;

    let request = ask(&world, &mut worker, "hello").await;

    let fixed: Vec<&ToolSpec> = request
        .tools
        .iter()
        .filter(|tool| tool.name.contains("mcp") || tool.name == "tool_search")
        .collect();
    let names: Vec<&str> = fixed.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["mcp_call", "tool_search"]);
    assert!(fixed[1].description.contains("mcp__a__tool_number_59"));
    // A tool that is not in the list needs no note: the search finds it.
    servers.have(&many[..59]);
    let second = ask(&world, &mut worker, "again").await;
    assert_eq!(second.tools, request.tools);
}
