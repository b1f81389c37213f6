//! Generator of stores, on either engine: the same rows in the same commits.

use std::sync::Arc;
use std::time::Duration;

use ikigai_core::{AgentState, Epoch, Event, Micros, NewRow, Seq, SessionId};
use ikigai_store::history::CONTROL_ROWS_PER_SNAPSHOT;
use ikigai_store::{
    AgentEffect, Batch, Effect, LeaseEffect, Log, NewAgent, SessionRecord, Snapshot,
};

use super::history::TurnGenerator;
use super::{Sample, SampleEngine, claim, fork_batch, open_log, row_of, this_process};
use crate::IdSource;
use crate::executor::block_on_for;

/// Rows per batch; a running program commits them one by one.
const ROWS_PER_BATCH: usize = 4000;

/// Timeout of one such commit: on a busy disk SQLite may have to write out its log first.
const PATIENCE: Duration = Duration::from_mins(10);

/// Generator of a store.
pub(super) struct Maker {
    sample: Sample,
    store: Arc<dyn Log>,
    ids: IdSource,
    session: SessionId,
    state: AgentState,
    stored: Seq,
    waiting: Vec<NewRow>,
    snapshots: Vec<Effect>,
    control_since: usize,
    children: u64,
}

impl Maker {
    pub(super) fn new(sample: Sample, on: SampleEngine) -> Self {
        tell(sample, &format!("is made on {on}, once"));
        let store = open_log(&on.place(sample.file), this_process()).unwrap();
        let ids = IdSource::new(1);
        let session = ids.session();
        let state = AgentState::new(ids.agent());
        Self {
            sample,
            store,
            ids,
            session,
            state,
            stored: Seq(0),
            waiting: Vec::new(),
            snapshots: Vec::new(),
            // Started in the middle, so that at the end the newest snapshot has an average age.
            control_since: CONTROL_ROWS_PER_SNAPSHOT / 2,
            children: 0,
        }
    }

    pub(super) fn make(mut self) {
        self.found();
        let mut history =
            TurnGenerator::new(self.state.agent(), self.sample.rows, self.sample.control);
        let per_child = (self.sample.rows / 100).max(10_000).min(self.sample.rows);
        while self.state.head().0 < self.sample.rows {
            for event in history.next(self.state.head()) {
                self.add(event);
            }
            if self.state.head().0 >= (self.children + 1) * per_child {
                self.fork();
            }
            if self.waiting.len() >= ROWS_PER_BATCH {
                self.flush();
            }
        }
        self.flush();
        let agent = self.state.agent();
        let epoch = Epoch(1);
        self.commit(Batch {
            with: vec![Effect::Lease(LeaseEffect::Give { agent, epoch })],
            ..Batch::default()
        });
        tell(self.sample, &history.told(self.state.head()));
    }

    fn found(&self) {
        let session = self.session;
        let agent = NewAgent {
            id: self.state.agent(),
            name: "bench".to_owned(),
            session,
            parent: None,
            fork_point: None,
            created_at: Micros(0),
        };
        let make = Effect::MakeSession(SessionRecord {
            id: session,
            name: "bench".to_owned(),
            directory: "/bench".to_owned(),
            created_at: Micros(0),
            machine: None,
            host: None,
        });
        self.commit(Batch {
            with: vec![
                make,
                Effect::Agent(AgentEffect::Create { agent, owned: true }),
            ],
            ..Batch::default()
        });
    }

    fn now(&self) -> Micros {
        Micros(1_790_000_000_000_000 + self.state.head().0.cast_signed() * 1_000_000)
    }

    fn add(&mut self, event: Event) {
        let row = event.into_row(self.state.agent(), self.now());
        self.waiting.push(row.clone());
        self.apply(row);
    }

    fn apply(&mut self, row: NewRow) {
        let row = row_of(row, self.state.head().next());
        let applied = self.state.apply(&row).unwrap();
        assert_eq!(applied.warning, None, "row {} is not as meant", row.at);
        self.control_since += usize::from(applied.control);
        if self.control_since >= CONTROL_ROWS_PER_SNAPSHOT {
            self.control_since = 0;
            self.snapshots.push(Effect::PutSnapshot(Snapshot {
                upto: row.at,
                folded: self.state.to_snapshot(),
            }));
        }
    }

    fn flush(&mut self) {
        if !self.waiting.is_empty() {
            let batch = Batch {
                heads: vec![claim(self.state.agent(), Epoch(1), self.stored)],
                rows: std::mem::take(&mut self.waiting),
                with: std::mem::take(&mut self.snapshots),
            };
            self.commit(batch);
            self.stored = self.state.head();
        }
    }

    fn fork(&mut self) {
        self.flush();
        self.children += 1;
        let name = format!("child-{}", self.children);
        let child = self.ids.agent();
        let batch = fork_batch(
            &self.state,
            Epoch(1),
            self.session,
            child,
            &name,
            self.now(),
        );
        let told = batch.rows[0].clone();
        self.commit(batch);
        self.apply(told);
        self.stored = self.state.head();
    }

    fn commit(&self, batch: Batch) {
        block_on_for(PATIENCE, self.store.commit(batch)).unwrap();
    }
}

#[expect(
    clippy::print_stderr,
    reason = "making a large store takes long, so the user sees what is going on"
)]
fn tell(sample: Sample, what: &str) {
    eprintln!("store of {sample} rows: {what}");
}
