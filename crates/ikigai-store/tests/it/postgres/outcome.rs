//! Commits with a lost reply: they are looked up, and written again only if not stored.

use ikigai_core::{Epoch, Seq};
use ikigai_store::postgres::InjectedFault;
use ikigai_store::{CommitError, Log, ReadLog};
use ikigai_testkit::block_on;
use ikigai_testkit::postgres::Database;

use super::open;
use crate::support::{agent, create, make_agent, only, say, texts};

#[test]
fn an_unknown_outcome_is_read_back() {
    let database = Database::fresh();
    let store = open(&database, 1).unwrap();
    make_agent(&store, agent(1));
    let say = |expected, text| {
        let batch = say(agent(1), Epoch(1), Seq(expected), text);
        block_on(store.commit(batch))
    };

    for (expected, (fault, text)) in (0..).zip([
        (InjectedFault::None, "acknowledged"),
        (InjectedFault::Stored, "stored"),
        (InjectedFault::Lost, "lost, and written again"),
    ]) {
        store.faults().fail_commit(fault);
        assert_eq!(say(expected, text).unwrap().rows[0].seq, Seq(expected + 1));
    }
    store.faults().fail_commit(InjectedFault::Unreadable);
    let unknown = say(3, "unknown");
    assert!(
        matches!(unknown, Err(CommitError::Unknown(_))),
        "{unknown:?}"
    );
    let behind = say(3, "unknown");
    assert!(
        matches!(behind, Err(CommitError::Behind { actual: Seq(4), .. })),
        "{behind:?}"
    );
    let all = [
        "acknowledged",
        "stored",
        "lost, and written again",
        "unknown",
    ];
    assert_eq!(texts(&store), all);
}

#[test]
fn an_unknown_outcome_without_rows_is_read_back() {
    let database = Database::fresh();
    let store = open(&database, 1).unwrap();
    make_agent(&store, agent(1));
    let create = |number| block_on(store.commit(only(create(agent(number), None))));

    for (number, fault) in [(2, InjectedFault::Lost), (3, InjectedFault::Stored)] {
        store.faults().fail_commit(fault);
        assert_eq!(create(number).unwrap().leases, [(agent(number), Epoch(1))]);
        let twice = create(number);
        assert!(
            matches!(twice, Err(CommitError::AgentExists(_))),
            "{twice:?}"
        );
    }
    // A second outcome lookup finds the same: the first one leaves nothing behind.
    store.faults().fail_commit(InjectedFault::Lost);
    store.faults().lose_look();
    create(5).unwrap();
    assert!(block_on(store.agent(agent(5))).unwrap().is_some());
    store.faults().fail_commit(InjectedFault::Unreadable);
    let unknown = create(4);
    assert!(
        matches!(unknown, Err(CommitError::Unknown(_))),
        "{unknown:?}"
    );
    assert!(block_on(store.agent(agent(4))).unwrap().is_some());
}
