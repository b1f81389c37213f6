//! `/cost` and `/budget`: costs and spending limits of agents.
//!
//! The scripted model counts ten input and two output tokens per answer, for 7 nano-dollars.

use std::time::Duration;

use ikigai_core::data::{self, Amounts, Category, ErrorData};
use ikigai_core::{AgentId, Kind, Micros, NewRow, Settings};
use ikigai_engine::{CostBy, Outcome, Share, Worker};
use ikigai_store::ReadLog;

use super::support::{line, printed, survives};
use crate::support::{World, say};

fn amounts(responses: u64) -> Amounts {
    Amounts {
        input: Some(10 * responses),
        output: Some(2 * responses),
        cost_nano_usd: Some(7 * responses),
        ..Amounts::default()
    }
}

async fn say_times(world: &World, worker: &mut Worker, times: usize) {
    for _ in 0..times {
        world.provider.will_say("yes");
        say(worker, "again").await.unwrap();
    }
}

/// Forks a child as the user and opens it.
async fn child_of(world: &World, worker: &mut Worker, name: &str) -> Worker {
    printed(worker, &format!("/fork --fresh --name {name}")).await;
    let child = world.engine.find(name).await.unwrap();
    world.engine.open(&child).await.unwrap()
}

async fn last_error(world: &World, id: AgentId) -> (Option<Category>, String) {
    let rows = world.rows(id).await;
    let error = rows.iter().rfind(|row| row.kind.name() == "error").unwrap();
    let data: ErrorData = data::read(error.data.as_deref());
    (data.category, error.content.clone().unwrap())
}

#[tokio::test(start_paused = true)]
async fn cost_is_told_by_agent_family_model_and_day() {
    let world = World::new();
    let mut root = world.root().await;
    let own = root.agent().state.agent();
    assert_eq!(printed(&mut root, "/cost day").await, "No requests yet");
    say_times(&world, &mut root, 2).await;
    let mut child = child_of(&world, &mut root, "helper").await;
    world.clock.advance(Duration::from_hours(24));
    say_times(&world, &mut child, 1).await;
    let mut grandchild = child_of(&world, &mut child, "deeper").await;
    say_times(&world, &mut grandchild, 3).await;
    printed(&mut root, "/kill deeper").await;
    printed(&mut root, "/reap deeper").await;

    let costs = world.engine.costs().await.unwrap();

    let told: Vec<_> = costs
        .iter()
        .map(|cost| (cost.agent.name.as_str(), cost.depth, cost.descendants))
        .collect();
    assert_eq!(told, [("parser", 0, 2), ("helper", 1, 1), ("deeper", 2, 0)]);
    let spent: Vec<_> = costs.iter().map(|cost| (&cost.own, &cost.family)).collect();
    assert_eq!(
        spent,
        [
            (&amounts(2), &amounts(6)),
            (&amounts(1), &amounts(4)),
            (&amounts(3), &amounts(3)),
        ]
    );
    let family = world.engine.family_of(own).await.unwrap();
    let share = |name: &str, responses| Share {
        name: name.to_owned(),
        responses,
        amounts: amounts(responses),
    };
    let by_model = world.engine.cost_shares(&family, CostBy::Model).await;
    assert_eq!(by_model.unwrap(), [share("scripted:scripted", 6)]);
    let by_day = world.engine.cost_shares(&family, CostBy::Day).await;
    assert_eq!(
        by_day.unwrap(),
        [share("1970-01-01", 2), share("1970-01-02", 4)]
    );
    assert_eq!(
        printed(&mut root, "/cost").await,
        "parser: 20 tokens in · 4 out · $0.0001\nwith 2 descendants: 60 tokens in · 12 out · $0.0001"
    );
    assert_eq!(
        printed(&mut root, "/cost day").await,
        "1970-01-01     2 responses · 20 tokens in · 4 out · $0.0001\n\
         1970-01-02     4 responses · 40 tokens in · 8 out · $0.0001"
    );
    assert!(line(&mut root, "/cost weather").await.warned);
}

/// Shares count all responses, also beyond one page.
#[tokio::test(start_paused = true)]
async fn shares_are_read_page_by_page() {
    let world = World::new();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    say_times(&world, &mut worker, 1).await;
    let data = r#"{"response":2,"provider":"scripted","model":"scripted","input":10,"output":2,"cost_nano_usd":7}"#;
    let row = NewRow {
        agent: id,
        kind: Kind::Usage,
        content: None,
        data: Some(data.to_owned()),
        control: false,
        created_at: Micros(9),
        author: None,
    };
    world.write(&worker, vec![row; 2499]).await;

    let shares = world
        .engine
        .cost_shares(&[id], CostBy::Model)
        .await
        .unwrap();

    assert_eq!(shares[0].responses, 2500);
    assert_eq!(shares[0].amounts, amounts(2500));
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_set_shown_and_taken_off() {
    let world = World::new();
    let mut worker = world.root().await;
    say_times(&world, &mut worker, 1).await;
    let cases = [
        (
            "/budget",
            "No budget. /budget $5 or /budget 200k to set one",
        ),
        (
            "/budget five",
            "⚠ invalid budget `five` · use /budget $5, /budget 200k or /budget off",
        ),
        (
            "/budget 5",
            "⚠ 5 of what? /budget $5 for dollars, /budget 5k for tokens",
        ),
        (
            "/budget 0.50",
            "⚠ 0.50 of what? /budget $0.50 for dollars, /budget 0.50k for tokens",
        ),
        (
            "/budget $0",
            "⚠ invalid budget `$0` · use /budget $5, /budget 200k or /budget off",
        ),
        (
            "/budget $0.50",
            "Budget of this agent and its children: $0.50 · so far 10 tokens in · 2 out · $0.0001",
        ),
        ("/budget", "budget: $0.0001 of $0.50"),
        (
            "/budget 200k",
            "Budget of this agent and its children: 200k tokens · so far 10 tokens in · 2 out · $0.0001",
        ),
        ("/budget", "budget: 12 of 200k tokens"),
        ("/budget off", "Budget removed"),
        (
            "/budget",
            "No budget. /budget $5 or /budget 200k to set one",
        ),
        (
            "/budget $5 --tree --agents 20 --time 2h",
            "Budget of this agent and its children: $5.00, 20 agents, 2 h · so far 10 tokens in · 2 out \
             · $0.0001",
        ),
        (
            "/budget",
            "budget: $0.0001 of $5.00, 1 of 20 agents, 0 s of 2 h",
        ),
        (
            "/budget 1k --own",
            "Budget of this agent without its children: 1.0k tokens · so far 10 tokens in · 2 out · \
             $0.0001",
        ),
        ("/budget", "budget (without children): 12 of 1.0k tokens"),
        (
            "/budget --time 2",
            "⚠ --time needs a duration, such as 30m or 2h",
        ),
        (
            "/budget --time 0s",
            "⚠ --time needs a duration, such as 30m or 2h",
        ),
        (
            "/budget --agents 0",
            "⚠ --agents needs a number, such as 20",
        ),
        (
            "/budget --own --agents 2",
            "⚠ --agents limits the tree · use it without --own",
        ),
        (
            "/budget $5 --own --tree",
            "⚠ --own and --tree exclude each other",
        ),
        (
            "/budget --tree",
            "⚠ which budget? /budget $5, /budget 200k or /budget --time 2h",
        ),
        (
            "/budget $5",
            "Budget of this agent and its children: $5.00 · so far 10 tokens in · 2 out · $0.0001",
        ),
    ];

    for (typed, expected) in cases {
        assert_eq!(printed(&mut worker, typed).await, expected, "{typed}");
    }
    let spend = worker.agent().state.settings().spend.clone();
    assert_eq!(
        serde_json::to_value(spend).unwrap(),
        serde_json::json!({"usd": 5})
    );
    survives(&world, worker).await;
}

/// An exhausted budget stops the agent before its next request. After a new budget, `/retry`
/// completes the turn.
#[tokio::test(start_paused = true)]
async fn a_used_up_budget_stops_the_agent_with_a_row_that_says_so() {
    let world = World::new();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    printed(&mut worker, "/budget 0.024k").await;
    say_times(&world, &mut worker, 2).await;

    let outcome = say(&mut worker, "once more").await.unwrap();

    let reason = "the budget of this agent and its descendants is used up: 24 of 24 tokens · \
                  /budget to raise it, then /retry";
    assert_eq!(outcome, Outcome::Failed(reason.to_owned()));
    let error = last_error(&world, id).await;
    assert_eq!(error, (Some(Category::Budget), reason.to_owned()));
    assert_eq!(world.provider.requests().len(), 2);
    printed(&mut worker, "/budget 0.036k").await;
    world.provider.will_say("the answer");
    let (done, _) = super::support::typed(&mut worker, "/retry").await;
    assert_eq!(done.outcome, Some(Outcome::Completed));
    survives(&world, worker).await;
}

/// An agent's current budget applies to its descendants. The costs of dead descendants count, too.
#[tokio::test(start_paused = true)]
async fn descendants_work_under_the_budget_of_their_ancestors() {
    let world = World::new();
    let mut root = world.root().await;
    printed(&mut root, "/budget 0.1k").await;
    let mut child = child_of(&world, &mut root, "helper").await;
    assert_eq!(child.agent().state.settings().spend, None);
    let mut grandchild = child_of(&world, &mut child, "deeper").await;
    say_times(&world, &mut child, 1).await;
    say_times(&world, &mut grandchild, 1).await;
    let other = world.root().await;
    drop(other);

    printed(&mut root, "/budget 0.024k").await;
    let outcome = say(&mut grandchild, "more").await.unwrap();

    let reason = "the budget of `parser` and its descendants is used up: 24 of 24 tokens · \
                  /budget to raise it, then /retry";
    assert_eq!(outcome, Outcome::Failed(reason.to_owned()));
    assert_eq!(
        printed(&mut grandchild, "/budget").await,
        "budget of parser: 24 of 24 tokens · used up"
    );
    printed(&mut child, "/budget 30").await;
    printed(&mut root, "/budget off").await;
    world.provider.will_say("yes");
    assert_eq!(
        say(&mut grandchild, "more").await.unwrap(),
        Outcome::Completed
    );
    printed(&mut root, "/kill deeper").await;
    let outcome = say(&mut child, "more").await.unwrap();
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    let usage = world.store.newest_usage(
        world
            .engine
            .family_of(root.agent().state.agent())
            .await
            .unwrap(),
    );
    assert_eq!(usage.await.unwrap().len(), 2);
}

/// A root without a budget reads no rows for the check.
#[tokio::test(start_paused = true)]
async fn without_a_budget_a_root_reads_nothing_for_it() {
    let world = World::new();
    let worker = world.root().await;
    let before = world.store.rows_read();

    assert_eq!(worker.caps().await.unwrap(), []);

    assert_eq!(world.store.rows_read(), before);
}

/// A budget that is not a valid amount is ignored.
#[tokio::test(start_paused = true)]
async fn a_cap_that_cannot_be_read_is_none() {
    for usd in ["-1", "1e300"] {
        let world = World::new();
        let spend = serde_json::from_str(&format!(r#"{{"usd":{usd}}}"#)).unwrap();
        let settings = Settings {
            spend: Some(spend),
            ..Settings::default()
        };
        let worker = world.root_with(&settings).await;

        assert_eq!(worker.caps().await.unwrap(), []);
    }
}
