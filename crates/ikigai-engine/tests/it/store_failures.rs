//! When the store fails, nothing happens that was not stored, and nothing that arrived is lost.

use ikigai_engine::{EngineError, Outcome, Update};
use ikigai_store::StoreError;
use ikigai_testkit::CommitFault;

use crate::support::{World, say, say_until};

fn full() -> StoreError {
    StoreError::Full("no room".into())
}

#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_be_stored_is_not_sent() {
    let world = World::new();
    let mut worker = world.root().await;
    let id = worker.agent().state.agent();
    let head = worker.agent().state.head();
    world.store.go_away(full);

    let failed = say(&mut worker, "hello").await;

    assert!(matches!(failed, Err(EngineError::Store(_))), "{failed:?}");
    assert!(world.provider.requests().is_empty());
    assert_eq!(worker.agent().state.head(), head);
    world.store.come_back();
    world.provider.will_say("hi");
    assert_eq!(say(&mut worker, "hello").await.unwrap(), Outcome::Completed);
    assert_eq!(world.kinds(id).await[2..], ["user", "assistant", "usage"]);
}

/// N6d: when the store is back, work resumes without a restart, what was held is written first and
/// in order, and a commit of unknown outcome is read back, so that nothing is written twice.
#[tokio::test(start_paused = true)]
async fn work_resumes_when_store_returns() {
    let faults = [
        CommitFault::Refused(full()),
        CommitFault::WrittenUnknown,
        CommitFault::LostUnknown,
    ];
    for fault in faults {
        let shown = format!("{fault:?}");
        let world = World::new();
        let mut worker = world.root().await;
        let id = worker.agent().state.agent();
        world.provider.will_say("an answer");
        world.provider.will_say("another");
        // The first commit of the turn is its message, the second its answer.
        world.store.fail_commit(2, fault);

        let (outcome, told) = say_until(&mut worker, "hello", std::future::pending()).await;
        say(&mut worker, "more").await.unwrap();

        assert_eq!(outcome.unwrap(), Outcome::Completed, "{shown}");
        let kinds = world.kinds(id).await;
        let turns = ["user", "assistant", "usage", "user", "assistant", "usage"];
        assert_eq!(kinds[2..], turns, "{shown}");
        let away = told
            .iter()
            .any(|update| matches!(update, Update::StoreAway(_)));
        assert_eq!(away, shown.starts_with("Refused"), "{shown}");
        let rows = world.rows(id).await;
        assert_eq!(rows[3].content.as_deref(), Some("an answer"));
    }
}
