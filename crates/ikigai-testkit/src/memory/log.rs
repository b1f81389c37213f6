//! Content of the memory store, and queries on it.

use std::collections::{BTreeMap, HashMap};

use ikigai_core::data::{self, UsageData};
use ikigai_core::{
    AgentId, ControlQuery, Direction, Epoch, Micros, PageQuery, ProcessId, Row, RowRef, Seq, Span,
};
use ikigai_store::blobs::join_parts;
use ikigai_store::{
    AgentRecord, BlobHash, DraftRecord, Head, JobRecord, MailRecord, NewAgent, ProcessRecord,
    RequestRecord, ReservationId, RunRecord, SeenMark, SessionRecord, Snapshot, Spending, Status,
};

/// All that is stored.
#[derive(Default)]
pub(super) struct MemoryLog {
    pub(super) processes: HashMap<ProcessId, MemoryProcess>,
    pub(super) sessions: Vec<SessionRecord>,
    pub(super) agents: HashMap<AgentId, AgentLog>,
    /// Agents in order of creation.
    pub(super) made: Vec<AgentId>,
    /// All rows in the order of their commits.
    pub(super) stored: Vec<RowRef>,
    pub(super) mail: Vec<MailRecord>,
    pub(super) runs: Vec<RunRecord>,
    pub(super) jobs: Vec<JobRecord>,
    pub(super) requests: Vec<RequestRecord>,
    /// Marks by person and agent.
    pub(super) seen: HashMap<(String, AgentId), SeenMark>,
    pub(super) reservations: Vec<MemoryReservation>,
    pub(super) blobs: HashMap<BlobHash, BTreeMap<u32, Vec<u8>>>,
}

/// A reservation under one cap.
pub(super) struct MemoryReservation {
    pub(super) id: ReservationId,
    pub(super) root: AgentId,
    pub(super) agent: AgentId,
    pub(super) process: ProcessId,
    pub(super) amount: Spending,
}

/// A process that opened the log.
pub(super) struct MemoryProcess {
    pub(super) record: ProcessRecord,
    pub(super) alive: bool,
}

/// One agent with its rows and snapshots.
pub(super) struct AgentLog {
    // Invariant: the row of sequence number n is at n - 1.
    pub(super) rows: Vec<Row>,
    /// Indices of the control rows in `rows`.
    pub(super) control: Vec<usize>,
    pub(super) snapshots: BTreeMap<Seq, String>,
    pub(super) record: AgentRow,
}

/// The agent without its rows.
pub(super) struct AgentRow {
    pub(super) agent: NewAgent,
    pub(super) status: Status,
    pub(super) epoch: Epoch,
    pub(super) owner: Option<ProcessId>,
    pub(super) draft: Option<DraftRecord>,
}

impl AgentLog {
    pub(super) fn new(agent: NewAgent, epoch: Epoch, owner: Option<ProcessId>) -> Self {
        Self {
            rows: Vec::new(),
            control: Vec::new(),
            snapshots: BTreeMap::new(),
            record: AgentRow {
                agent,
                status: Status::Running,
                epoch,
                owner,
                draft: None,
            },
        }
    }

    pub(super) fn head(&self) -> Seq {
        Seq(self.rows.len() as u64)
    }

    pub(super) fn push(&mut self, row: Row, control: bool) {
        if control {
            self.control.push(self.rows.len());
        }
        self.rows.push(row);
    }

    /// Returns the indices of a span in `rows`.
    fn places(&self, span: Span) -> std::ops::Range<usize> {
        let end = span.to.0.min(self.head().0);
        let start = span.from.0.max(1) - 1;
        let place = |n: u64| usize::try_from(n).expect("no more rows than memory");
        if start < end {
            place(start)..place(end)
        } else {
            0..0
        }
    }
}

impl MemoryLog {
    /// Returns the log of an existing agent.
    pub(super) fn agent_mut(&mut self, agent: AgentId) -> &mut AgentLog {
        let log = self.agents.get_mut(&agent);
        log.expect("the decision checked that the agent exists")
    }

    /// Returns an agent and its descendants, as far as `is_in` says so.
    pub(super) fn below(&self, root: AgentId, is_in: impl Fn(&AgentRow) -> bool) -> Vec<AgentId> {
        let mut tree: Vec<AgentId> = Vec::new();
        // Parents are made before their children.
        for agent in &self.made {
            let Some(record) = self.agents.get(agent).map(|log| &log.record) else {
                continue;
            };
            let parent = record.agent.parent;
            let is_below = *agent == root || parent.is_some_and(|parent| tree.contains(&parent));
            if is_below && is_in(record) {
                tree.push(*agent);
            }
        }
        tree
    }

    /// Adds up the newest `usage` rows of an agent and its descendants.
    pub(super) fn spent_below(&self, root: AgentId) -> Spending {
        let tree = self.below(root, |_| true);
        let newest = tree
            .into_iter()
            .flat_map(|agent| self.rows_of_kind(Span::whole(agent), "usage", 1));
        let totals = newest.map(|row| {
            let usage: UsageData = data::read(row.data.as_deref());
            Spending::from(&usage.sum.unwrap_or(usage.amounts))
        });
        totals.sum()
    }

    pub(super) fn head(&self, agent: AgentId) -> Option<Head> {
        let log = self.agents.get(&agent)?;
        Some(Head {
            seq: log.head(),
            epoch: log.record.epoch,
            owner: self.owner(&log.record),
        })
    }

    pub(super) fn record(&self, agent: AgentId) -> Option<AgentRecord> {
        let log = self.agents.get(&agent)?;
        let made = log.record.agent.clone();
        Some(AgentRecord {
            id: made.id,
            name: made.name,
            session: made.session,
            parent: made.parent,
            fork_point: made.fork_point,
            status: log.record.status,
            created_at: made.created_at,
            head: log.head(),
            touched_at: log.rows.last().map(|row| row.created_at),
            owner: self.owner(&log.record),
        })
    }

    pub(super) fn control(&self, query: ControlQuery) -> Vec<Row> {
        let Some(log) = self.agents.get(&query.span.agent) else {
            return Vec::new();
        };
        let places = log.places(query.span);
        let first = log.control.partition_point(|at| *at < places.start);
        let end = log.control.partition_point(|at| *at < places.end);
        log.control[first..end]
            .iter()
            .rev()
            .take(query.limit)
            .map(|at| log.rows[*at].clone())
            .collect()
    }

    pub(super) fn page(&self, query: PageQuery) -> Vec<Row> {
        let Some(log) = self.agents.get(&query.span.agent) else {
            return Vec::new();
        };
        let rows = &log.rows[log.places(query.span)];
        match query.direction {
            Direction::Forwards => rows.iter().take(query.limit).cloned().collect(),
            Direction::Backwards => rows.iter().rev().take(query.limit).cloned().collect(),
        }
    }

    pub(super) fn rows_of_kind(&self, span: Span, kind: &str, limit: usize) -> Vec<Row> {
        let all = self.page(PageQuery::newest(span, usize::MAX));
        let rows = all.into_iter().filter(|row| row.kind.name() == kind);
        rows.take(limit).collect()
    }

    pub(super) fn count_messages(&self, spans: &[Span]) -> u64 {
        let rows = spans.iter().filter_map(|span| {
            let log = self.agents.get(&span.agent)?;
            Some(&log.rows[log.places(*span)])
        });
        let messages = rows.flatten().filter(|row| row.kind.name() == "user");
        messages.count() as u64
    }

    pub(super) fn snapshot(&self, upto: RowRef) -> Option<Snapshot> {
        let log = self.agents.get(&upto.agent)?;
        let (seq, folded) = log.snapshots.range(..=upto.seq).next_back()?;
        Some(Snapshot {
            upto: RowRef::new(upto.agent, *seq),
            folded: folded.clone(),
        })
    }

    pub(super) fn open_runs(&self, agent: AgentId) -> Vec<RunRecord> {
        let mut open: Vec<RunRecord> = self
            .runs
            .iter()
            .filter(|run| run.call.agent == agent && run.ended.is_none())
            .cloned()
            .collect();
        open.sort_by_key(|run| run.started);
        open
    }

    pub(super) fn seen_by(&self, person: &str) -> Vec<SeenMark> {
        let mut marks = Vec::new();
        for agent in &self.made {
            let runs = self.agents.get(agent).map(|log| log.record.status);
            let of = |person: &str| self.seen.get(&(person.to_owned(), *agent));
            let found = [of(""), of(person)];
            if runs != Some(Status::Running) || found == [None, None] {
                continue;
            }
            let mut mark = SeenMark::new(*agent);
            for other in found.into_iter().flatten() {
                mark.raise(*other);
            }
            marks.push(mark);
        }
        marks
    }

    pub(super) fn open_jobs(&self, of: Option<AgentId>) -> Vec<JobRecord> {
        let open = self.jobs.iter().filter(|job| job.ended.is_none());
        let open = open.filter(|job| of.is_none_or(|agent| job.agent == agent));
        open.cloned().collect()
    }

    pub(super) fn jobs(&self, agent: AgentId, limit: usize) -> Vec<JobRecord> {
        let jobs = self.jobs.iter().filter(|job| job.agent == agent);
        let mut jobs: Vec<JobRecord> = jobs.cloned().collect();
        jobs.sort_by_key(|job| std::cmp::Reverse(job.number));
        jobs.truncate(limit);
        jobs
    }

    pub(super) fn blob(&self, hash: BlobHash) -> Option<Vec<u8>> {
        let parts = self.blobs.get(&hash)?;
        join_parts(
            hash,
            parts.iter().map(|(part, bytes)| (*part, bytes.clone())),
        )
    }

    pub(super) fn is_alive(&self, process: ProcessId) -> bool {
        self.processes
            .get(&process)
            .is_some_and(|process| process.alive)
    }

    pub(super) fn process_record(&self, process: ProcessId) -> ProcessRecord {
        // Invariant: only a process that has a handle takes leases, and handles register theirs.
        self.processes[&process].record.clone()
    }

    pub(super) fn enter(&mut self, process: ProcessId) {
        let pid = u32::try_from(self.processes.len() + 1).expect("a test has few processes");
        let record = ProcessRecord {
            id: process,
            host: "memory".to_owned(),
            pid,
            started: Micros(0),
            machine: None,
            person: None,
        };
        let known = self.processes.insert(
            process,
            MemoryProcess {
                record,
                alive: true,
            },
        );
        assert!(
            known.is_none(),
            "process {process} has a handle already; clone that one"
        );
    }

    fn owner(&self, record: &AgentRow) -> Option<ProcessRecord> {
        record.owner.map(|process| self.process_record(process))
    }
}
