//! The small parts: faults by script, the manual clock, ids from a seed, the executor.

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use ikigai_core::{AgentId, Micros, Seq, SessionId};
use ikigai_store::{
    AgentEffect, Batch, CommitError, Effect, Log, NewAgent, ReadLog, SessionRecord, StoreError,
};
use ikigai_testkit::{
    CommitFault, FaultyStore, IdSource, ManualClock, MemoryStore, block_on, cases,
};

fn full() -> StoreError {
    StoreError::Full("no room".into())
}

/// A faulty store with one session.
struct Fixture {
    store: FaultyStore,
    session: SessionId,
    ids: IdSource,
}

impl Fixture {
    fn new() -> Self {
        let ids = IdSource::new(7);
        let session = ids.session();
        let memory = MemoryStore::new(ids.process());
        let make = Effect::MakeSession(SessionRecord {
            id: session,
            name: String::new(),
            directory: String::new(),
            created_at: Micros(0),
            machine: None,
            host: None,
        });
        let outcome = block_on(memory.commit(effect(make)));
        assert!(outcome.is_ok(), "{outcome:?}");
        let store = FaultyStore::new(Arc::new(memory));
        Self {
            store,
            session,
            ids,
        }
    }

    /// Returns a new agent's id and the batch that creates it.
    fn create(&self, name: &str) -> (AgentId, Batch) {
        let agent = NewAgent {
            id: self.ids.agent(),
            name: name.to_owned(),
            session: self.session,
            parent: None,
            fork_point: None,
            created_at: Micros(0),
        };
        let id = agent.id;
        (
            id,
            effect(Effect::Agent(AgentEffect::Create { agent, owned: true })),
        )
    }
}

fn effect(effect: Effect) -> Batch {
    Batch {
        with: vec![effect],
        ..Batch::default()
    }
}

#[test]
fn a_refused_commit_writes_nothing() {
    let fixture = Fixture::new();
    let store = &fixture.store;
    store.fail_commit(2, CommitFault::Refused(full()));
    let (first, batch) = fixture.create("first");
    block_on(store.commit(batch)).unwrap();

    let (second, batch) = fixture.create("second");
    let refused = block_on(store.commit(batch.clone()));

    assert!(
        matches!(refused, Err(CommitError::Store(StoreError::Full(_)))),
        "{refused:?}"
    );
    assert_eq!(block_on(store.head(second)).unwrap(), None);
    block_on(store.commit(batch)).unwrap();
    assert_eq!(block_on(store.head(second)).unwrap().unwrap().seq, Seq(0));
    assert!(block_on(store.head(first)).unwrap().is_some());
    assert_eq!(store.commits(), 3);
}

#[test]
fn an_unknown_commit_is_written_or_lost_as_the_script_says() {
    let fixture = Fixture::new();
    let store = &fixture.store;
    store.fail_commit(1, CommitFault::WrittenUnknown);
    store.fail_commit(2, CommitFault::LostUnknown);

    let (written, batch) = fixture.create("written");
    let outcome = block_on(store.commit(batch));
    assert!(
        matches!(outcome, Err(CommitError::Unknown(_))),
        "{outcome:?}"
    );
    let (lost, batch) = fixture.create("lost");
    let outcome = block_on(store.commit(batch));
    assert!(
        matches!(outcome, Err(CommitError::Unknown(_))),
        "{outcome:?}"
    );

    assert!(block_on(store.head(written)).unwrap().is_some());
    assert_eq!(block_on(store.head(lost)).unwrap(), None);
}

#[test]
fn an_unknown_commit_that_is_refused_says_so() {
    let fixture = Fixture::new();
    let store = &fixture.store;
    let (agent, batch) = fixture.create("once");
    block_on(store.commit(batch.clone())).unwrap();
    store.fail_commit(1, CommitFault::WrittenUnknown);

    let refused = block_on(store.commit(batch));

    assert!(
        matches!(refused, Err(CommitError::AgentExists(exists)) if exists == agent),
        "{refused:?}"
    );
}

#[test]
fn a_store_that_is_away_fails_everything_until_it_is_back() {
    let fixture = Fixture::new();
    let store = &fixture.store;
    let (agent, batch) = fixture.create("patient");
    store.fail_read(2, StoreError::Closed);
    block_on(store.sessions()).unwrap();
    let failed = block_on(store.sessions());
    assert!(matches!(failed, Err(StoreError::Closed)), "{failed:?}");

    store.go_away(full);
    block_on(store.commit(batch.clone())).unwrap_err();
    block_on(store.agents(None)).unwrap_err();
    store.watch().unwrap_err();
    store.come_back();

    assert_eq!(block_on(store.head(agent)).unwrap(), None);
    block_on(store.commit(batch)).unwrap();
    store.watch().unwrap();
    assert_eq!(block_on(store.agents(None)).unwrap().len(), 1);
    assert_eq!((store.commits(), store.reads()), (2, 7));
}

#[test]
fn the_clock_moves_only_when_told() {
    let clock = ManualClock::new(Micros(5));
    let same = clock.clone();

    clock.advance(Duration::from_millis(2));
    assert_eq!(same.now(), Micros(2_005));
    clock.set(Micros(-1));
    assert_eq!(same.now(), Micros(-1));
}

#[test]
fn ids_are_the_same_for_the_same_seed() {
    let draw = |seed| {
        let ids = IdSource::new(seed);
        let agents: Vec<AgentId> = (0..1_000).map(|_| ids.agent()).collect();
        agents
    };

    let agents = draw(1);

    assert_eq!(agents, draw(1));
    assert_eq!(agents.iter().collect::<HashSet<_>>().len(), 1_000);
    let others = draw(2);
    assert!(agents.iter().all(|agent| !others.contains(agent)));
    for agent in agents {
        assert_eq!(agent.to_string().parse(), Ok(agent));
    }
    // The published first number of the generator for this seed.
    assert_eq!(IdSource::new(1_234_567).bits(), 6_457_827_717_110_365_317);
}

#[test]
fn a_future_that_is_woken_by_another_thread_ends() {
    let mut waited = false;
    let answer = block_on(poll_fn(|context| {
        if waited {
            return Poll::Ready(42);
        }
        waited = true;
        let waker = context.waker().clone();
        thread::spawn(move || waker.wake());
        Poll::Pending
    }));

    assert_eq!(answer, 42);
}

#[test]
fn tests_are_short_unless_told_otherwise() {
    let long = std::env::var("IKIGAI_TEST_LONG").is_ok_and(|value| value == "1");

    assert_eq!(cases(500, 20_000), if long { 20_000 } else { 500 });
}
