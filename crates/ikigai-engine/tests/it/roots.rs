//! Creating and finding agents.

use ikigai_core::data::ForkContext;
use ikigai_core::fork::{ForkOrder, fork_events};
use ikigai_core::project::{estimate_request, estimate_tokens};
use ikigai_core::{AgentId, Epoch, Event, Micros, RowRef, Seq};
use ikigai_engine::{EngineError, Worker};
use ikigai_store::{AgentEffect, AgentRecord, Batch, Effect, HeadClaim, LeaseClaim, Log, NewAgent};
use ikigai_testkit::IdSource;
use ikigai_tools::builtin;
use ikigai_tools::process::ChildEnvironment;
use serde_json::Map;

use crate::support::{HERE, World, say};

/// S3-10: a root agent's first rows, the system prompt and the starting settings, are its own.
#[tokio::test(start_paused = true)]
async fn root_agent_first_rows_are_its_own() {
    let world = World::new();

    let worker = world.root().await;

    let id = worker.agent().state.agent();
    let rows = world.rows(id).await;
    let kinds: Vec<_> = rows.iter().map(|row| row.kind.name()).collect();
    assert_eq!(kinds, ["system", "command"]);
    assert!(rows.iter().all(|row| row.at.agent == id));
    let settings = worker.agent().state.settings();
    assert_eq!(settings.name.as_deref(), Some("parser"));
    assert_eq!(settings.workdir.as_deref(), Some(HERE));
    assert_eq!(worker.agent().state.system_row(), Some(rows[0].at));
}

#[tokio::test(start_paused = true)]
async fn roots_of_one_directory_share_a_session_and_have_names_of_their_own() {
    let world = World::new();
    let one = world.root().await;

    let other = world.root().await;

    assert_eq!(
        other.agent().state.settings().name.as_deref(),
        Some("parser-2")
    );
    assert_eq!(world.engine.sessions().await.unwrap().len(), 1);
    assert_eq!(world.latest().await.id, other.agent().state.agent());
    assert_ne!(one.agent().state.agent(), other.agent().state.agent());
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_found_by_name_id_and_unique_prefix() {
    let world = World::new();
    let id = world.root().await.agent().state.agent();
    let text = id.to_string();

    for name in ["parser", text.as_str(), &text[..4]] {
        assert_eq!(world.engine.find(name).await.unwrap().id, id, "{name}");
    }
    for name in ["parse", &text[..3], "", "none"] {
        let found = world.engine.find(name).await;
        assert!(matches!(found, Err(EngineError::NoSuchAgent(_))), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_blank_message_is_refused_and_leaves_no_row() {
    let world = World::new();
    let mut worker = world.root().await;
    let before = world.kinds(worker.agent().state.agent()).await;

    let refused = say(&mut worker, " \n\t").await;

    assert!(matches!(refused, Err(EngineError::EmptyMessage)));
    assert_eq!(world.kinds(worker.agent().state.agent()).await, before);
}

/// N4b: the columns of an agent's record are only a cache. Opening the agent rebuilds wrong or
/// empty ones from the log.
#[tokio::test(start_paused = true)]
async fn agent_columns_rebuilt_from_events() {
    let world = World::new();
    let root = world.root().await;
    let id = root.agent().state.agent();
    let child = fork_of(&world, &root).await;
    let right = world.engine.agents().await.unwrap();
    let falsify = |agent: AgentId, name: &str| {
        Effect::Agent(AgentEffect::SetName {
            agent,
            name: name.to_owned(),
        })
    };
    let orphan = Effect::Agent(AgentEffect::SetOrigin {
        agent: child,
        parent: None,
        fork_point: None,
    });
    let adopt = Effect::Agent(AgentEffect::SetOrigin {
        agent: id,
        parent: Some(child),
        fork_point: Some(RowRef::new(child, Seq(1))),
    });
    let with = vec![falsify(id, "wrong"), falsify(child, "false"), orphan, adopt];
    let batch = Batch {
        with,
        ..Batch::default()
    };
    world.store.commit(batch).await.unwrap();
    let wrong = world.engine.agents().await.unwrap();

    let restarted = world.restarted();
    for agent in &wrong {
        restarted.engine.open(agent).await.unwrap();
    }

    let mended = restarted.engine.agents().await.unwrap();
    let columns = |agents: &[AgentRecord]| -> Vec<_> {
        let told = agents
            .iter()
            .map(|agent| (agent.name.clone(), agent.parent, agent.fork_point));
        told.collect()
    };
    assert_ne!(columns(&wrong), columns(&right));
    assert_eq!(columns(&mended), columns(&right));
}

/// Forks a child as the program does.
async fn fork_of(world: &World, parent: &Worker) -> AgentId {
    let state = &parent.agent().state;
    let order = ForkOrder {
        child: IdSource::new(77).agent(),
        name: "child".to_owned(),
        context: ForkContext::Inherit,
        at: None,
        set: Map::new(),
        call: None,
        prompt: None,
        system: None,
    };
    let child = order.child;
    let events = fork_events(state, "parser", order);
    let record = world.latest().await;
    let claim = |agent, expected| HeadClaim {
        agent,
        lease: Some(LeaseClaim {
            epoch: Epoch(1),
            expected,
        }),
    };
    let row = |event: Event, agent| event.into_row(agent, Micros(1));
    let rows = std::iter::once(row(events.parent, state.agent()));
    let rows = rows.chain(events.child.into_iter().map(|event| row(event, child)));
    let agent = NewAgent {
        id: child,
        name: "child".to_owned(),
        session: record.session,
        parent: Some(state.agent()),
        fork_point: events.fork_point,
        created_at: Micros(1),
    };
    let batch = Batch {
        heads: vec![claim(state.agent(), state.head()), claim(child, Seq(0))],
        rows: rows.collect(),
        with: vec![Effect::Agent(AgentEffect::Create { agent, owned: true })],
    };
    world.store.commit(batch).await.unwrap();
    child
}

/// The system prompt is the same for each agent of a store, and covers the seat's topics.
#[tokio::test(start_paused = true)]
async fn system_prompt_is_the_same_for_every_root() {
    let world = World::new();
    let one = world.root().await;
    let other = world.root().await;

    let prompt = one.agent().state.system().unwrap().to_owned();
    assert_eq!(other.agent().state.system(), Some(prompt.as_str()));
    for topic in [
        "ikigai",
        "in parallel",
        "the same files run in the order",
        "inherit",
        "AGENTS.md",
        "the deeper one wins",
        "`recall`",
        "`path:line`",
        "Do not commit, push",
        "authority",
    ] {
        assert!(prompt.contains(topic), "{topic}");
    }
    let tokens = estimate_tokens(&prompt);
    assert!((700..=1_200).contains(&tokens), "{tokens} tokens");
}

/// System prompt and tools, which every request repeats, need at most 4,500 tokens.
#[tokio::test(start_paused = true)]
async fn fixed_part_of_a_request_is_small() {
    let world = World::with_tools(builtin::all(ChildEnvironment::default()));
    let mut worker = world.root().await;
    world.provider.will_say("Hello.");
    say(&mut worker, "hello").await.unwrap();

    let mut request = world.provider.requests().pop().unwrap();
    assert!(!request.tools.is_empty());
    request.messages.clear();
    let tokens = estimate_request(&request);
    assert!(tokens <= 4_500, "{tokens} tokens");
}
