//! Budgets of trees: requests of several processes, prices, agents and time.
//!
//! The scripted model counts ten input and two output tokens per answer.

use std::time::Duration;

use ikigai_core::data::{self, Category, ErrorData};
use ikigai_engine::{Outcome, UiEvent};
use ikigai_testkit::Step;
use tokio::sync::Notify;

use super::support::{child_of, line, printed, survives};
use crate::support::{TestJob, World, active_agents, say};

/// While a request of one process runs, another process's request waits for what it may cost.
#[tokio::test(start_paused = true)]
async fn requests_of_two_processes_share_a_budget() {
    let world = World::new();
    let other = world.beside();
    let mut root = world.root().await;
    printed(&mut root, "/budget 0.02k").await;
    let mut near = child_of(&world, &mut root, "near").await;
    let far = child_of(&world, &mut root, "far").await;
    far.release().await.unwrap();
    let far = other.engine.find("far").await.unwrap();
    let mut far = other.engine.open(&far).await.unwrap();
    let answer = [Step::Say("so".to_owned()), Step::Wait, Step::Finish];
    world.provider.will_to("near", answer);
    world.provider.will_say_to("far", "then");
    world.provider.will_say_to("far", "never");
    let runs = Notify::new();

    let first = active_agents(&mut near, TestJob::Say("near"), |event| {
        if matches!(event, UiEvent::Text(_)) {
            runs.notify_one();
        }
        Vec::new()
    });
    let second = async {
        runs.notified().await;
        active_agents(&mut far, TestJob::Say("far"), |event| {
            let waits = matches!(event, UiEvent::Notice(text) if text.contains("may use up"));
            if waits {
                assert_eq!(world.provider.requests().len(), 1);
                world.provider.go_on();
            }
            Vec::new()
        })
        .await
    };
    let ((first, _), (second, _)) = tokio::join!(first, second);

    assert_eq!(first.unwrap(), Outcome::Completed);
    assert_eq!(second.unwrap(), Outcome::Completed);
    assert_eq!(world.provider.requests().len(), 2);
    let outcome = say(&mut far, "more").await.unwrap();
    let reason = "the budget of `parser` and its descendants is used up: 24 of 20 tokens · \
                  /budget to raise it, then /retry";
    assert_eq!(outcome, Outcome::Failed(reason.to_owned()));
    assert_eq!(world.provider.requests().len(), 2);
    drop(near);
    survives(&other, far).await;
}

/// A request that was interrupted or failed leaves its estimate to others.
#[tokio::test(start_paused = true)]
async fn a_failed_request_keeps_nothing_reserved() {
    let world = World::new();
    let mut root = world.root().await;
    printed(&mut root, "/budget 0.02k").await;
    let mut child = child_of(&world, &mut root, "child").await;
    world.provider.will([Step::Fail("no luck".to_owned())]);
    let outcome = say(&mut child, "try").await.unwrap();
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");

    world.provider.will_say("yes");
    let (outcome, events) = active_agents(&mut root, TestJob::Say("go"), |_| Vec::new()).await;

    assert_eq!(outcome.unwrap(), Outcome::Completed);
    let waited =
        |event: &UiEvent| matches!(event, UiEvent::Notice(text) if text.contains("may use up"));
    assert!(!events.iter().any(waited), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dollar_budget_refuses_a_model_of_unknown_price() {
    let world = World::without_price();
    let mut root = world.root().await;
    let id = root.agent().state.agent();
    printed(&mut root, "/budget $5").await;

    let outcome = say(&mut root, "hello").await.unwrap();

    let reason = "the budget of this agent and its descendants is in dollars, and the price of \
                  this model is unknown · set a budget in tokens: /budget 200k";
    assert_eq!(outcome, Outcome::Failed(reason.to_owned()));
    let rows = world.rows(id).await;
    let error: ErrorData = data::read(rows.last().unwrap().data.as_deref());
    assert_eq!(error.category, Some(Category::Budget));
    assert!(world.provider.requests().is_empty());
    printed(&mut root, "/budget 200k").await;
    world.provider.will_say("yes");
    let outcome = say(&mut root, "hello").await.unwrap();
    assert_eq!(outcome, Outcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn an_own_budget_leaves_descendants_alone() {
    let world = World::new();
    let mut root = world.root().await;
    printed(&mut root, "/budget 0.012k --own").await;
    let mut child = child_of(&world, &mut root, "child").await;
    for worker in [&mut child, &mut root] {
        world.provider.will_say("yes");
        assert_eq!(say(worker, "go").await.unwrap(), Outcome::Completed);
    }
    assert_eq!(
        printed(&mut child, "/budget").await,
        "No budget. /budget $5 or /budget 200k to set one"
    );

    let outcome = say(&mut root, "more").await.unwrap();

    let reason = "the budget of this agent is used up: 12 of 12 tokens · \
                  /budget to raise it, then /retry";
    assert_eq!(outcome, Outcome::Failed(reason.to_owned()));
    world.provider.will_say("yes");
    assert_eq!(say(&mut child, "more").await.unwrap(), Outcome::Completed);
}

/// The number of running agents is checked with each fork, also by a process without the lease.
#[tokio::test(start_paused = true)]
async fn a_budget_limits_the_agents_of_a_tree() {
    let world = World::new();
    let mut root = world.root().await;
    printed(&mut root, "/budget --agents 3").await;
    let mut child = child_of(&world, &mut root, "child").await;
    child_of(&world, &mut child, "deeper").await;

    let refused = line(&mut child, "/fork --fresh --name more").await;

    assert!(refused.warned);
    assert!(
        refused
            .output
            .contains("limit reached: the budget of `parser` allows 3 agents"),
        "{refused:?}"
    );
    assert_eq!(printed(&mut root, "/budget").await, "budget: 3 of 3 agents");
    printed(&mut root, "/kill deeper").await;
    child_of(&world, &mut child, "more").await;
    assert_eq!(world.engine.agents().await.unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_budget_ends_after_its_time() {
    let world = World::new();
    let mut root = world.root().await;
    printed(&mut root, "/budget --time 2h").await;
    let mut child = child_of(&world, &mut root, "child").await;
    world.provider.will_say("yes");
    assert_eq!(say(&mut child, "go").await.unwrap(), Outcome::Completed);

    world.clock.advance(Duration::from_hours(2));
    let outcome = say(&mut child, "go").await.unwrap();

    let reason = "the budget of `parser` and its descendants is used up: 2 h of 2 h · \
                  /budget to raise it, then /retry";
    assert_eq!(outcome, Outcome::Failed(reason.to_owned()));
    assert_eq!(
        printed(&mut child, "/budget").await,
        "budget of parser: 2 h of 2 h · used up"
    );
}
