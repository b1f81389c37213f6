//! Measured operations, one function each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_core::{AgentId, Epoch, Event, Micros, NewRow, Seq};
use ikigai_store::{Agent, Batch, Effect, LeaseEffect, Log};
use ikigai_testkit::IdSource;
use ikigai_testkit::stores::{StoredSample, claim, fork_batch, row_of};
use tokio::runtime::{Builder, Runtime};

/// Rows on the first screen.
const FIRST_PAGE_ROWS: usize = 50;

/// A store on disk, and the runtime that a program would have.
pub(crate) struct World {
    pub(crate) kept: StoredSample,
    pub(crate) runtime: Runtime,
}

impl World {
    pub(crate) fn new(kept: StoredSample) -> Self {
        let runtime = Builder::new_current_thread().build().unwrap();
        Self { kept, runtime }
    }

    /// Restores the agent from an open store.
    pub(crate) fn restore(&self, store: &dyn Log) -> Agent {
        let restored = Agent::restore(store, self.kept.agent);
        self.runtime.block_on(restored).unwrap()
    }

    /// Follows the path of a freshly restored agent to its root.
    pub(crate) fn whole_path(&self, store: &dyn Log) -> Agent {
        let mut agent = self.restore(store);
        self.runtime.block_on(agent.know_all(store)).unwrap();
        agent
    }

    /// Opens the store and reads the first page, as a new process does.
    ///
    /// Returns the store, so that closing it is not measured.
    pub(crate) fn first_page(&self) -> (Arc<dyn Log>, Agent) {
        let store = self.kept.open();
        let mut agent = self.restore(&*store);
        self.runtime.block_on(async {
            while let Some(missing) = FIRST_PAGE_ROWS
                .checked_sub(agent.view.entries().len())
                .filter(|missing| *missing > 0)
                && agent.lengthen(&*store, missing).await.unwrap()
            {}
        });
        (store, agent)
    }

    /// Takes the agent's lease.
    pub(crate) fn take(&self, store: &dyn Log) -> Epoch {
        let agent = self.kept.agent;
        let taken = self.runtime.block_on(store.commit(Batch {
            with: vec![Effect::Lease(LeaseEffect::Take { agent })],
            ..Batch::default()
        }));
        taken.unwrap().leases[0].1
    }
}

/// Measures the duration of a call; its result is dropped after the measurement.
pub(crate) fn timed<T>(does: impl FnOnce() -> T) -> Duration {
    let begun = Instant::now();
    let made = does();
    let took = begun.elapsed();
    drop(made);
    took
}

/// Returns an event of about 500 bytes.
pub(crate) fn event_row(agent: AgentId) -> NewRow {
    let text = "what was said goes on and on ".repeat(16);
    Event::user(text).into_row(agent, Micros(1_790_000_000_000_000))
}

/// Appends events to an agent, each in its own commit.
pub(crate) struct Appender<'a> {
    world: &'a World,
    pub(crate) store: Arc<dyn Log>,
    epoch: Epoch,
    head: Seq,
}

impl<'a> Appender<'a> {
    pub(crate) fn new(world: &'a World) -> Self {
        let store = world.kept.open();
        let epoch = world.take(&*store);
        let head = world.restore(&*store).state.head();
        Self {
            world,
            store,
            epoch,
            head,
        }
    }

    pub(crate) fn append(&mut self, row: NewRow) -> Seq {
        let batch = Batch {
            heads: vec![claim(row.agent, self.epoch, self.head)],
            rows: vec![row],
            with: Vec::new(),
        };
        let done = self.world.runtime.block_on(self.store.commit(batch));
        self.head = done.unwrap().rows[0].seq;
        self.head
    }
}

/// Forks an agent repeatedly.
pub(crate) struct Forker<'a> {
    world: &'a World,
    store: Arc<dyn Log>,
    agent: Agent,
    epoch: Epoch,
    ids: IdSource,
    forks: u64,
}

impl<'a> Forker<'a> {
    pub(crate) fn new(world: &'a World) -> Self {
        let store = world.kept.open();
        let epoch = world.take(&*store);
        let agent = world.restore(&*store);
        Self {
            world,
            store,
            agent,
            epoch,
            ids: IdSource::new(2),
            forks: 0,
        }
    }

    pub(crate) fn fork(&mut self) -> Duration {
        self.forks += 1;
        let child = self.ids.agent();
        let name = format!("forked-{}", self.forks);
        let session = self.world.kept.session;
        let begun = Instant::now();
        let state = &self.agent.state;
        let batch = fork_batch(state, self.epoch, session, child, &name, Micros(1));
        let told = batch.rows[0].clone();
        let done = self.world.runtime.block_on(self.store.commit(batch));
        let took = begun.elapsed();
        let seq = done.unwrap().rows[0].seq;
        self.agent.state.apply(&row_of(told, seq)).unwrap();
        took
    }
}
