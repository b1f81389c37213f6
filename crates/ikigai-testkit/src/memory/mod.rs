//! An event log in memory: the whole behaviour of a store, without its durability.

mod commit;
mod log;
mod search;

use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_core::{
    AgentId, ControlQuery, Micros, PageQuery, ProcessId, Row, RowRef, SessionId, Span, StoredKind,
};
use ikigai_store::{
    AgentRecord, Batch, BlobHash, BoxFuture, CommitError, Committed, DraftRecord, Head, JobRecord,
    Log, MailRecord, ProcessRecord, Pulse, ReadFuture, ReadLog, RequestId, RequestRecord,
    RequestState, RunRecord, SearchPage, SearchQuery, SeenMark, SessionRecord, Snapshot,
    StoreError, Watch,
};
use tokio::sync::watch;

use log::MemoryLog;

/// A handle of one process on a log in memory. Its futures are ready immediately.
///
/// A clone is the same process; [`Self::other_process`] is another one on the same log.
#[derive(Clone)]
pub struct MemoryStore {
    process: ProcessId,
    shared: Arc<SharedLog>,
}

struct SharedLog {
    log: Mutex<MemoryLog>,
    commits: watch::Sender<u64>,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// Makes an empty log and the first process on it.
    pub fn new(process: ProcessId) -> Self {
        let mut log = MemoryLog::default();
        log.enter(process);
        let shared = SharedLog {
            log: Mutex::new(log),
            commits: watch::Sender::new(0),
        };
        Self {
            process,
            shared: Arc::new(shared),
        }
    }

    /// Makes a handle of another process on the same log.
    #[must_use]
    pub fn other_process(&self, process: ProcessId) -> Self {
        self.log().enter(process);
        Self {
            process,
            shared: Arc::clone(&self.shared),
        }
    }

    /// Releases the lock of this process's leases, as its death would.
    ///
    /// The handle still writes, like a process that has not noticed: it is fenced off from each
    /// agent that another process takes over.
    pub fn die(&self) {
        if let Some(process) = self.log().processes.get_mut(&self.process) {
            process.alive = false;
        }
    }

    /// Appends a row without any check, as an older, newer or faulty program might.
    ///
    /// Panics if there is no such agent.
    pub fn inject(
        &self,
        agent: AgentId,
        kind_name: &str,
        content: Option<&str>,
        data: Option<&str>,
        control: bool,
    ) -> RowRef {
        let mut guard = self.log();
        let log = guard
            .agents
            .get_mut(&agent)
            .expect("rows go to an agent that was made");
        let at = RowRef::new(agent, log.head().next());
        let created_at = log.rows.last().map_or(Micros(0), |row| row.created_at);
        log.push(
            Row {
                at,
                kind: StoredKind::of(kind_name),
                content: content.map(str::to_owned),
                data: data.map(str::to_owned),
                created_at,
                author: None,
            },
            control,
        );
        guard.stored.push(at);
        drop(guard);
        self.tell();
        at
    }

    /// Wakes the subscribers.
    fn tell(&self) {
        self.shared.commits.send_modify(|count| *count += 1);
    }

    fn log(&self) -> MutexGuard<'_, MemoryLog> {
        self.shared
            .log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T: Send + 'static>(
        &self,
        reading: impl FnOnce(&MemoryLog) -> T,
    ) -> ReadFuture<'static, T> {
        Box::pin(ready(Ok(reading(&self.log()))))
    }
}

impl Log for MemoryStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed, CommitError>> {
        let outcome = commit::commit(&mut self.log(), self.process, &batch);
        if outcome.is_ok() {
            self.tell();
        }
        Box::pin(ready(outcome))
    }
}

impl ReadLog for MemoryStore {
    fn process(&self) -> ProcessId {
        self.process
    }

    fn head(&self, agent: AgentId) -> ReadFuture<'_, Option<Head>> {
        self.read(|log| log.head(agent))
    }

    fn control(&self, query: ControlQuery) -> ReadFuture<'_, Vec<Row>> {
        self.read(|log| log.control(query))
    }

    fn page(&self, query: PageQuery) -> ReadFuture<'_, Vec<Row>> {
        self.read(|log| log.page(query))
    }

    fn usage(&self, span: Span, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        self.read(|log| log.rows_of_kind(span, "usage", limit))
    }

    fn count_messages(&self, spans: Vec<Span>) -> ReadFuture<'_, u64> {
        self.read(|log| log.count_messages(&spans))
    }

    fn snapshot(&self, upto: RowRef) -> ReadFuture<'_, Option<Snapshot>> {
        self.read(|log| log.snapshot(upto))
    }

    fn agents(&self, session: Option<SessionId>) -> ReadFuture<'_, Vec<AgentRecord>> {
        self.read(|log| {
            let all = log.made.iter().filter_map(|agent| log.record(*agent));
            all.filter(|agent| session.is_none_or(|session| agent.session == session))
                .collect()
        })
    }

    fn agent(&self, agent: AgentId) -> ReadFuture<'_, Option<AgentRecord>> {
        self.read(|log| log.record(agent))
    }

    fn is_process_alive<'a>(&'a self, process: &'a ProcessRecord) -> ReadFuture<'a, bool> {
        self.read(|log| log.is_alive(process.id))
    }

    fn pulse(&self) -> ReadFuture<'_, Pulse> {
        self.read(|log| Pulse {
            rows: log.agents.values().map(|agent| agent.head().0).sum(),
            mail: log.mail.len() as u64,
        })
    }

    fn sessions(&self) -> ReadFuture<'_, Vec<SessionRecord>> {
        self.read(|log| log.sessions.clone())
    }

    fn mail(&self, to: AgentId) -> ReadFuture<'_, Vec<MailRecord>> {
        self.read(|log| {
            log.mail
                .iter()
                .filter(|mail| mail.to == to)
                .cloned()
                .collect()
        })
    }

    fn open_runs(&self, agent: AgentId) -> ReadFuture<'_, Vec<RunRecord>> {
        self.read(|log| log.open_runs(agent))
    }

    fn seen<'a>(&'a self, person: &'a str) -> ReadFuture<'a, Vec<SeenMark>> {
        let person = person.to_owned();
        self.read(move |log| log.seen_by(&person))
    }

    fn waiting_requests(&self) -> ReadFuture<'_, Vec<RequestRecord>> {
        let process = self.process;
        self.read(move |log| {
            let is_own = |agent| {
                let held = log.agents.get(agent);
                held.is_some_and(|held| held.record.owner == Some(process))
            };
            let requests = log.requests.iter();
            let requests =
                requests.filter(|it| it.state == RequestState::Waiting && is_own(&it.agent));
            requests.cloned().collect()
        })
    }

    fn request(&self, request: RequestId) -> ReadFuture<'_, Option<RequestRecord>> {
        self.read(|log| log.requests.iter().find(|it| it.id == request).cloned())
    }

    fn open_jobs(&self, of: Option<AgentId>) -> ReadFuture<'_, Vec<JobRecord>> {
        self.read(|log| log.open_jobs(of))
    }

    fn jobs(&self, agent: AgentId, limit: usize) -> ReadFuture<'_, Vec<JobRecord>> {
        self.read(|log| log.jobs(agent, limit))
    }

    fn files_rows(&self, span: Span, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        self.read(|log| log.rows_of_kind(span, "files", limit))
    }

    fn process_rows(&self, span: Span, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        self.read(|log| log.rows_of_kind(span, "process", limit))
    }

    fn draft(&self, agent: AgentId) -> ReadFuture<'_, Option<DraftRecord>> {
        self.read(|log| {
            log.agents
                .get(&agent)
                .and_then(|agent| agent.record.draft.clone())
        })
    }

    fn blob(&self, hash: BlobHash) -> ReadFuture<'_, Option<Vec<u8>>> {
        self.read(|log| log.blob(hash))
    }

    fn search(&self, query: SearchQuery) -> ReadFuture<'_, SearchPage> {
        self.read(|log| search::search(log, &query))
    }

    fn watch(&self) -> Result<Watch, StoreError> {
        // The shared part holds the sender, so subscriptions never close.
        let feed = Arc::clone(&self.shared);
        Ok(Watch::new(self.shared.commits.subscribe(), feed))
    }
}
