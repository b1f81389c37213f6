//! Commits with an outcome that is unknown at first.

use ikigai_core::{Epoch, Seq};
use ikigai_store::sqlite::InjectedFault;
use ikigai_store::{CommitError, Effect, LeaseEffect, Log, ReadLog, StoreError};
use ikigai_testkit::block_on;

use crate::support::{Disk, agent, create, make_session, only, open, say, texts};

/// A commit of unknown outcome is looked up: stored batches succeed, lost ones fail.
///
/// Nothing is written twice.
#[test]
fn an_unknown_outcome_is_read_back() {
    let disk = Disk::with_store();
    let store = open(&disk.path, 1).unwrap();
    let lease =
        block_on(store.commit(only(Effect::Lease(LeaseEffect::Take { agent: agent(1) })))).unwrap();
    let epoch = lease.leases[0].1;
    let say = |expected, text| block_on(store.commit(say(agent(1), epoch, Seq(expected), text)));

    store.faults().fail_commit(InjectedFault::Stored);
    let stored = say(1, "stored").unwrap();
    store.faults().fail_commit(InjectedFault::Lost);
    let lost = say(2, "lost");
    let after = say(2, "after").unwrap();
    store.faults().fail_commit(InjectedFault::Unreadable);
    let unknown = say(3, "unknown");
    let behind = say(3, "unknown");

    assert_eq!(stored.rows[0].seq, Seq(2));
    assert!(
        matches!(lost, Err(CommitError::Store(StoreError::Io(_)))),
        "{lost:?}"
    );
    assert_eq!(after.rows[0].seq, Seq(3));
    assert!(
        matches!(unknown, Err(CommitError::Unknown(_))),
        "{unknown:?}"
    );
    assert!(
        matches!(behind, Err(CommitError::Behind { actual: Seq(4), .. })),
        "{behind:?}"
    );
    assert_eq!(texts(&store), ["kept", "stored", "after", "unknown"]);
}

/// The outcome of a commit without rows is read back as well.
#[test]
fn an_unknown_outcome_without_rows_is_read_back() {
    let disk = Disk::with_store();
    let store = open(&disk.path, 1).unwrap();
    let create = |number| block_on(store.commit(only(create(agent(number), None))));

    store.faults().fail_commit(InjectedFault::Lost);
    let lost = create(2);
    store.faults().fail_commit(InjectedFault::Stored);
    let stored = create(3);
    store.faults().fail_commit(InjectedFault::Lost);
    let lost_again = create(4);

    assert!(
        matches!(lost, Err(CommitError::Store(StoreError::Io(_)))),
        "{lost:?}"
    );
    assert_eq!(stored.unwrap().leases, [(agent(3), Epoch(1))]);
    assert!(lost_again.is_err());
    let there = |number| block_on(store.agent(agent(number))).unwrap().is_some();
    assert_eq!([2, 3, 4].map(there), [false, true, false]);
    let session = block_on(store.commit(only(make_session())));
    assert!(
        matches!(session, Err(CommitError::BadBatch(_))),
        "{session:?}"
    );
}
