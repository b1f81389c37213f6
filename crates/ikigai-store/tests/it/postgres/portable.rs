//! Copying a log to the other engine and back gives the same log.

use ikigai_store::portable::{RestoreError, RestoreMode};
use ikigai_store::{Admin, Log};
use ikigai_testkit::block_on;
use ikigai_testkit::postgres::Database;

use super::open;
use crate::portable::{bad_logs, contents, some_store, told};
use crate::support::{self, Dice, Disk, agent, is_long};

#[test]
fn a_log_goes_to_the_other_engine_and_back() {
    let mut dice = Dice::roll();
    for _ in 0..if is_long() { 30 } else { 2 } {
        let disk = Disk::new();
        let store = some_store(&disk, &mut dice);
        let lines = told(&store, None);
        let database = Database::fresh();
        let shared = open(&database, 2).unwrap();

        let restored = shared
            .restore(&mut lines.as_bytes(), RestoreMode::EmptyOnly)
            .unwrap();
        assert_eq!(told(&shared, None), lines);
        assert_eq!(restored.rows, lines.matches("\n{\"row\":").count() as u64);
        assert_eq!(block_on(shared.integrity()).unwrap(), [""; 0]);
        for (here, there) in [&store as &dyn Log, &shared]
            .into_iter()
            .zip([&shared as &dyn Log, &store])
        {
            let agents = |store: &dyn Log| {
                let agents = block_on(store.agents(None)).unwrap().into_iter();
                agents
                    .map(|agent| (agent.id, agent.head, agent.fork_point, agent.status))
                    .collect::<Vec<_>>()
            };
            assert_eq!(agents(here), agents(there));
        }

        let other = Disk::new();
        let back = support::open(&other.path, 3).unwrap();
        back.restore(&mut told(&shared, None).as_bytes(), RestoreMode::EmptyOnly)
            .unwrap();
        assert_eq!(contents(&other.path), contents(&disk.path));
        let some = Some(vec![agent(1)]);
        assert_eq!(told(&shared, some.clone()), told(&store, some));
    }
}

#[test]
fn what_is_cut_foreign_or_there_already_is_refused_and_leaves_no_trace() {
    let disk = Disk::new();
    let lines = told(&some_store(&disk, &mut Dice::roll()), None);
    let database = Database::fresh();
    let store = open(&database, 1).unwrap();
    let empty = told(&store, None);
    for bad in bad_logs(&lines) {
        let refused = store.restore(&mut bad.as_bytes(), RestoreMode::Merge);
        assert!(refused.is_err(), "{bad:.200}");
        assert_eq!(told(&store, None), empty, "{bad:.200}");
    }
    let message = store
        .restore(&mut "x".as_bytes(), RestoreMode::Merge)
        .unwrap_err()
        .to_string();
    assert!(message.starts_with("line 1: "), "{message}");

    store
        .restore(&mut lines.as_bytes(), RestoreMode::EmptyOnly)
        .unwrap();

    let full = store.restore(&mut lines.as_bytes(), RestoreMode::EmptyOnly);
    assert!(matches!(full, Err(RestoreError::NotEmpty)), "{full:?}");
    let twice = store.restore(&mut lines.as_bytes(), RestoreMode::Merge);
    assert!(matches!(twice, Err(RestoreError::Line { .. })), "{twice:?}");
    assert_eq!(told(&store, None), lines);
}
