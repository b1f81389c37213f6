//! `/search` and the `recall` tool find old rows of any agent.

use std::time::Duration;

use ikigai_engine::Worker;
use ikigai_engine::search::{SearchOptions, SearchResults};

use ikigai_testkit::Step;
use serde_json::json;

use super::support::{line, printed};
use crate::fakes::call;
use crate::support::{World, say};

const A_DAY: Duration = Duration::from_hours(24);

async fn found(world: &World, typed: &str) -> SearchResults {
    let found = world.engine.search(typed, SearchOptions::default()).await;
    found.unwrap().unwrap()
}

/// Forks a child that answers once, and kills it.
async fn killed_child(world: &World, root: &mut Worker) {
    printed(root, "/fork --fresh --name scout").await;
    let child = world.engine.find("scout").await.unwrap();
    let mut scout = world.engine.open(&child).await.unwrap();
    world
        .provider
        .will_say("The treasure lies under the plum tree.");
    say(&mut scout, "where is it").await.unwrap();
    drop(scout);
    printed(root, "/kill scout").await;
}

#[tokio::test(start_paused = true)]
async fn a_word_of_a_child_killed_three_months_ago_is_found() {
    let world = World::new();
    let mut root = world.root().await;
    killed_child(&world, &mut root).await;
    world.clock.advance(A_DAY * 92);
    world.provider.will_say("nothing of it");
    say(&mut root, "hello").await.unwrap();

    let told = printed(&mut root, "/search \"plum tree\" agent:scout before:60d").await;

    let scout = world.engine.find("scout").await.unwrap();
    assert!(told.starts_with("#scout."), "{told}");
    assert!(
        told.contains("92 days  assistant    The treasure lies under the plum tree."),
        "{told}"
    );
    let found = found(&world, "plum kind:assistant").await;
    assert_eq!(found.hits.len(), 1);
    assert_eq!(found.hits[0].hit.at.agent, scout.id);
    let row = ikigai_store::history::row_at(&*world.store, found.hits[0].hit.at).await;
    assert_eq!(
        row.unwrap().unwrap().content.as_deref(),
        Some("The treasure lies under the plum tree.")
    );
}

#[tokio::test(start_paused = true)]
async fn a_search_does_not_find_itself_and_says_what_is_wrong_with_it() {
    let world = World::new();
    let mut root = world.root().await;
    world.provider.will_say("a plum");
    say(&mut root, "fruit").await.unwrap();

    let first = printed(&mut root, "/search plum").await;
    let second = printed(&mut root, "/search plum").await;

    assert_eq!(first, second);
    assert!(first.starts_with("#4 "), "{first}");
    assert_eq!(printed(&mut root, "/search nowhere").await, "No match");
    for wrong in ["/search", "/search kind:dream", "/search x agent:missing"] {
        assert!(line(&mut root, wrong).await.warned, "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_recalls_what_a_dead_agent_said() {
    let world = World::new();
    let mut root = world.root().await;
    killed_child(&world, &mut root).await;
    world.clock.advance(A_DAY * 3);
    for arguments in [
        json!({"query": "treasure", "agent": "scout", "kind": "assistant"}),
        json!({"query": "treasure", "limit": 1}),
        json!({"query": "x", "agent": "missing"}),
    ] {
        let calls = vec![call("recall", &arguments)];
        world.provider.will([Step::FinishWith(calls)]);
    }
    world.provider.will_say("under the tree");
    printed(&mut root, "/approve read").await;

    say(&mut root, "where is the money").await.unwrap();

    let results = world.results(root.agent().state.agent()).await;
    let outputs: Vec<_> = results
        .iter()
        .map(|result| result.output.as_str())
        .collect();
    assert_eq!(
        outputs[..2],
        ["#scout.4 (assistant, 3 days ago): The treasure lies under the plum tree."; 2]
    );
    assert_eq!(outputs[2], "no agent named missing");
}
