//! Forks: prompts and initial state of children, and ownership of rows.

use std::sync::Arc;

use ikigai_core::data::{self, ForkContext, ForkData, UserData, UserOrigin};
use ikigai_core::message::Block;
use ikigai_core::names::is_valid_name;
use ikigai_core::settings::{Approve, ModelChoice};
use ikigai_core::{Kind, Request};
use ikigai_engine::{Outcome, Safety, Tools};
use ikigai_store::{Agent, Status};
use ikigai_tools::builtin;
use ikigai_tools::process::ChildEnvironment;
use serde_json::json;

use super::support::{calls, fork, see_out, typed, work};
use crate::fakes::{FakeCall, call};
use crate::support::World;

/// D10a: every fork records its context. A fork by the model is fresh by default, and says so; one
/// by the user inherits.
#[tokio::test(start_paused = true)]
async fn fork_context_choice_is_explicit() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    let unsaid = call("fork", &json!({ "name": "unsaid", "prompt": "begin" }));
    world.provider.will_to("go", calls([unsaid]));
    world.provider.will_say_to("go", "forked");
    world.provider.will_say_to("go", "thank you");
    world.provider.will_say_to("begin", "done");

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let results = world.results(root).await;
    assert!(results[0].success, "{results:?}");
    let said = "it knows only its prompt, since `context` was not given";
    assert!(results[0].output.ends_with(said), "{results:?}");
    let rows = world.rows(world.id_of("unsaid").await).await;
    let fork: ForkData = data::read(rows[0].data.as_deref());
    assert_eq!(fork.context, Some(ForkContext::Fresh));

    for (line, context) in [
        ("/fork --name one", ForkContext::Inherit),
        ("/fork --fresh --name two", ForkContext::Fresh),
    ] {
        typed(&mut worker, line).await;
        let made = world.log();
        let agents = ikigai_store::ReadLog::agents(made, None).await.unwrap();
        let rows = world.rows(agents.last().unwrap().id).await;
        let fork: ForkData = data::read(rows[0].data.as_deref());
        assert_eq!(fork.context, Some(context), "{line}");
    }
}

/// S3-9: the prompt of a fork is a row of the child, not of the parent.
#[tokio::test(start_paused = true)]
async fn the_prompt_of_a_fork_is_the_childs() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world
        .provider
        .will_to("go", calls([fork("one", "count the rows")]));
    world.provider.will_say_to("go", "forked");
    world.provider.will_say_to("go", "thank you");
    world.provider.will_say_to("count", "three");

    work(&mut worker, "go").await;

    let rows = world.rows(world.id_of("one").await).await;
    let prompt = rows.iter().find(|row| row.kind.name() == "user").unwrap();
    let user: UserData = data::read(prompt.data.as_deref());
    assert_eq!(prompt.content.as_deref(), Some("count the rows"));
    assert_eq!(user.origin, Some(UserOrigin::Fork));
    let said = world.texts(root, "user").await;
    assert!(!said.contains(&"count the rows".to_owned()), "{said:?}");
}

/// N1a: a child forked within a response learns its identity from the fork's result. Its log has no
/// results of the parent's calls.
#[tokio::test(start_paused = true)]
async fn a_child_learns_who_it_is_by_the_call_that_made_it() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    let inheriting = |name: &str| {
        let arguments = json!({ "name": name, "prompt": "begin", "context": "inherit" });
        call("fork", &arguments)
    };
    let look = FakeCall::new("look", "at it").block();
    world
        .provider
        .will_to("go", calls([look, inheriting("one"), inheriting("two")]));
    world.provider.will_say_to("go", "forked");
    world.provider.will_say_to("go", "thank you");
    world.provider.will_say_to("begin", "I am one of them");
    world.provider.will_say_to("begin", "I am the other");

    work(&mut worker, "go").await;

    for (name, other) in [("one", 1), ("two", 0)] {
        let id = world.id_of(name).await;
        let request = world.engine.next_request(id).await.unwrap();
        let blocks = request.messages.iter().flat_map(|message| &message.blocks);
        let answered: Vec<_> = blocks
            .filter_map(|block| match block {
                Block::ToolResult { content, .. } => Some(content.clone()),
                _ => None,
            })
            .collect();
        let parent = world.named("parser").await.name;
        let own =
            format!("You are {name} ({id}), the child made by this call; your parent is {parent}.");
        assert_eq!(answered.len(), 3, "{answered:?}");
        assert_eq!(answered[2 - other], own, "{answered:?}");
        let written = world.kinds(id).await;
        assert!(!written.contains(&"tool_result".to_owned()), "{written:?}");
    }
    assert_eq!(world.results(root).await.len(), 3, "the parent got its own");
}

/// E20: a child starts with its parent's current settings and system prompt. This holds for an
/// older fork point; settings named by the fork override them.
#[tokio::test(start_paused = true)]
async fn a_child_forked_from_an_older_row_has_the_settings_of_now() {
    let world = World::new();
    let mut worker = world.root().await;
    world.provider.will_say("hello");
    work(&mut worker, "hi").await;
    typed(&mut worker, "/mark then").await;
    let other = ModelChoice {
        model: Some("other".to_owned()),
        ..ModelChoice::default()
    };
    worker.choose_model(other).await.unwrap();
    let now = worker.agent().state.clone();

    typed(&mut worker, "/fork --at then --name plain").await;
    typed(&mut worker, "/fork --at then --name strong --model third").await;

    for (name, model) in [("plain", "other"), ("strong", "third")] {
        let child = world.engine.open(&world.named(name).await).await.unwrap();
        let state = &child.agent().state;
        let chosen = state.settings().model.clone().unwrap();
        assert_eq!(chosen.model.as_deref(), Some(model), "{name}");
        assert_eq!(state.settings().workdir, now.settings().workdir, "{name}");
        assert_eq!(state.system(), now.system(), "{name}");
        child.release().await.unwrap();
    }
}

/// E8b: names are valid and unique among living agents. A taken name gets a number, a dead agent's
/// name is free again, and an invalid name is refused.
#[tokio::test(start_paused = true)]
async fn children_get_names_that_nobody_alive_has() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    for line in [
        "/fork --name docs",
        "/fork --name docs",
        "/kill docs",
        "/fork --name docs",
    ] {
        typed(&mut worker, line).await;
    }
    for bad in [
        "/fork --name parent",
        "/fork --name Docs",
        "/fork --name -d",
    ] {
        typed(&mut worker, bad).await;
    }
    world.provider.will_say("of course");
    typed(&mut worker, "/fork Write ALL the tests, please").await;
    see_out(&mut worker).await;

    let all = world.census().await;
    let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["parser", "docs", "docs-2", "docs", "write-all-the"]);
    assert_eq!(all[1].1, Status::Dead);
    assert!(names.iter().all(|name| is_valid_name(name)));
    let rows = world.rows(root).await;
    let forks = rows
        .iter()
        .filter(|row| row.kind == ikigai_core::StoredKind::Known(Kind::Fork));
    assert_eq!(forks.count(), 4);
}

/// S3-6: calls and results are rows of the agent that made them. This holds without a viewer and
/// while another agent works.
#[tokio::test(start_paused = true)]
async fn calls_and_results_are_rows_of_the_agent_that_made_them() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    world
        .provider
        .will_to("go", calls([fork("one", "look at it")]));
    world
        .provider
        .will_to("go", calls([FakeCall::new("look", "mine").block()]));
    world.provider.will_say_to("go", "done");
    world.provider.will_say_to("go", "thank you");
    world
        .provider
        .will_to("look", calls([FakeCall::new("look", "theirs").block()]));
    world.provider.will_say_to("look", "seen");

    work(&mut worker, "go").await;

    let labels = |results: Vec<crate::support::CallInputs>| -> Vec<_> {
        results.into_iter().map(|result| result.output).collect()
    };
    let child = world.id_of("one").await;
    assert_eq!(labels(world.results(child).await), ["theirs"]);
    assert_eq!(labels(world.results(root).await)[1..], ["mine"]);
}

#[tokio::test(start_paused = true)]
async fn a_model_names_no_child_like_another_speaker() {
    let world = World::new();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    let names = ["user", "system", "ikigai", "you"];
    let forks = names.map(|name| fork(name, "allow everything"));
    world.provider.will(calls(forks));
    world.provider.will_say("then not");

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let results = world.results(root).await;
    assert_eq!(results.len(), names.len());
    assert!(results.iter().all(|result| !result.success), "{results:?}");
    assert!(
        results[0].output.contains("choose another name"),
        "{results:?}"
    );
    assert_eq!(world.census().await.len(), 1, "no agent was made");
}

/// A child that explores has a short prompt and reads only, whatever its parent may do, and also
/// when the process allows everything.
#[tokio::test(start_paused = true)]
async fn a_child_that_explores_only_reads() {
    let world = World::with_platform().equipped(|engine| {
        let tools = builtin::all(ChildEnvironment::default());
        let tools: Arc<dyn Tools> = Arc::new(tools);
        engine
            .with_tools(tools, Safety::default())
            .with_explore_model(Some("scripted:small".to_owned()))
    });
    let mut worker = world.root().await;
    worker.approve_for_now(Approve::All).await.unwrap();
    let arguments = json!({ "name": "one", "prompt": "begin", "kind": "explore" });
    world
        .provider
        .will_to("go", calls([call("fork", &arguments)]));
    world.provider.will_say_to("go", "forked");
    world.provider.will_say_to("go", "thank you");
    let forbidden = json!({ "file_path": "/tmp/ikigai-explored", "content": "x" });
    world
        .provider
        .will_to("begin", calls([call("file_write", &forbidden)]));
    world.provider.will_say_to("begin", "read");

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let one = world.id_of("one").await;
    let output = &world.outputs(one).await[0];
    assert!(output.contains("read"), "{output}");
    assert!(!world.results(one).await[0].success, "{output}");
    let requests = world.provider.requests();
    let of_child = |request: &&Request| format!("{:?}", request.messages[0]).contains("begin");
    let request = requests.iter().find(of_child).unwrap();
    let system = request.system.as_deref().unwrap();
    assert!(
        system.starts_with("You are an explorer in ikigai"),
        "{system}"
    );
    assert!(system.len() < 1200, "{}", system.len());
    let text = format!("{:?}", request.messages[0]);
    assert!(text.contains("permission mode: read ("), "{text}");
    let names: Vec<_> = request.tools.iter().map(|tool| &*tool.name).collect();
    assert!(
        names.contains(&"grep") && !names.contains(&"file_write"),
        "{names:?}"
    );
    let child = Agent::restore(world.log(), one).await.unwrap();
    let model = child.state.settings().model.clone().unwrap();
    assert_eq!(model.model.as_deref(), Some("scripted:small"));
}

/// The tools of a child are those that its parent names and has.
#[tokio::test(start_paused = true)]
async fn a_child_gets_the_named_tools() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    let root = worker.agent().state.agent();
    let fork = |tools: &[&str]| {
        call(
            "fork",
            &json!({ "name": "one", "prompt": "begin", "tools": tools }),
        )
    };
    let three = [
        fork(&["look", "teleport"]),
        fork(&[]),
        fork(&["look", "send"]),
    ];
    world.provider.will_to("go", calls(three));
    world.provider.will_say_to("go", "forked");
    world.provider.will_say_to("go", "thank you");
    world.provider.will_say_to("begin", "done");

    assert_eq!(work(&mut worker, "go").await, Outcome::Completed);

    let outputs = world.outputs(root).await;
    let start = "there is no tool `teleport` for a child. You have: ";
    assert!(outputs[0].starts_with(start), "{outputs:?}");
    assert!(outputs[1].starts_with("`tools` is empty"), "{outputs:?}");
    let requests = world.provider.requests();
    let of_child = |request: &&Request| format!("{:?}", request.messages[0]).contains("begin");
    let request = requests.iter().find(of_child).unwrap();
    let names: Vec<_> = request.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["look", "send"]);
}
