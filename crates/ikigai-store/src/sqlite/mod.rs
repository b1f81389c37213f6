//! The embedded engine: one SQLite file, used by several processes of one machine.
//!
//! One thread writes and one reads, each with its own connection; a third listens for commits of
//! other processes while there are subscribers. Nothing is written before the first commit, except
//! that a missing database is created and an older one migrated.

mod ancestry;
mod budget;
mod connect;
mod dump;
mod errors;
mod execute;
mod facts;
mod identity;
mod jobs;
mod locks;
mod migrations;
mod outlines;
mod paths;
mod queries;
mod queue;
mod read_marks;
mod read_only;
mod readback;
mod reader;
mod requests;
mod restore;
mod search;
mod sql;
mod values;
mod watch;
mod writer;

use std::future::ready;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use ikigai_core::{
    AgentId, ControlQuery, Micros, PageQuery, ProcessId, Row, RowRef, SessionId, Span,
};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::batch::{Batch, CommitJob, Committed};
use crate::error::{CommitError, StoreError};
use crate::log::{Admin, BoxFuture, Log, ReadFuture, ReadLog, find_held};
use crate::outline::AgentOutline;
use crate::portable::{RestoreError, RestoreMode, Restored};
use crate::records::{
    AgentRecord, Ancestry, BlobHash, DraftRecord, Head, JobRecord, MailRecord, ProcessRecord,
    Pulse, RequestId, RequestRecord, RestorePoint, RunRecord, SeenMark, SessionRecord, Snapshot,
};
use crate::search::{SearchPage, SearchQuery};
use crate::server_report::ServerReport;
use crate::sql::{QueryError, QueryLimits, QueryTable};
use crate::watch::Watch;

use connect::SqliteTarget;
use locks::SqliteOwner;
use paths::StorePaths;
use queue::{JobSender, queue};
use read_only::FileAccess;
use reader::{READ_JOBS, ReadJob, SqliteReader};
use watch::{CommitSignal, CommitWatcher, FileNotifier};
use writer::{BATCHES, IndexStart, SqliteWriter, WriterTask};

#[doc(hidden)]
pub use crate::faults::{Faults, InjectedFault};
#[doc(hidden)]
pub use crate::sql_common::Migrations;
#[doc(hidden)]
pub use migrations::MIGRATIONS;

/// Serialises opening within the process: closing a file just created would drop the locks that
/// SQLite has on it through another descriptor.
static OPENING: Mutex<()> = Mutex::new(());

/// Options for opening a store.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    path: PathBuf,
    process: ProcessRecord,
    migrations: Migrations,
    reading: bool,
}

impl SqliteOptions {
    /// Options for the database at `path`, created if it is missing.
    ///
    /// Draw a new process id for each handle.
    pub fn new(path: impl Into<PathBuf>, process: ProcessRecord) -> Self {
        Self {
            path: path.into(),
            process,
            migrations: MIGRATIONS,
            reading: false,
        }
    }

    /// Accepts a store that cannot be written: commits fail, and reads work.
    #[must_use]
    pub fn reading(mut self) -> Self {
        self.reading = true;
        self
    }

    /// Opens it as another version of this program, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_migrations(mut self, migrations: Migrations) -> Self {
        self.migrations = migrations;
        self
    }
}

/// The log in one SQLite file. Dropping it closes it.
pub struct SqliteStore {
    process: ProcessId,
    target: Arc<SqliteTarget>,
    tasks: JobSender<WriterTask>,
    questions: JobSender<ReadJob>,
    listening: CommitWatcher,
    faults: Arc<Faults>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.target.path())
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens a store, creating it with its directories if it is missing.
    ///
    /// Blocks for less than a millisecond if the store exists; a store of this version is only
    /// read. The process is registered with the first lease that it takes.
    pub fn open(options: SqliteOptions) -> Result<Self, StoreError> {
        let opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        let place = StorePaths::prepare(&options.path, options.reading)?;
        let access = if options.reading {
            FileAccess::probe(&place)
        } else {
            FileAccess::Full
        };
        let target = Arc::new(SqliteTarget::new(place, options.migrations, access));
        let connection = target.prepare()?;
        drop(opening);
        let io = |error| StoreError::Io(Box::new(error));
        let process = options.process.id;
        let changes = CommitSignal::new();
        let faults = Arc::new(Faults::default());
        let (questions, jobs) = queue(READ_JOBS);
        let (tasks, ordered) = queue(BATCHES);
        let reader = SqliteReader::spawn(Arc::clone(&target), connection, jobs).map_err(io)?;
        let writer = SqliteWriter::spawn(
            Arc::clone(&target),
            SqliteOwner::new(&target.place, options.process),
            FileNotifier::new(&target, changes.clone()),
            Arc::clone(&faults),
            ordered,
        )
        .map_err(io)?;
        Ok(Self {
            process,
            listening: CommitWatcher::new(Arc::clone(&target), changes),
            target,
            tasks,
            questions,
            faults,
            threads: Mutex::new(vec![writer, reader]),
        })
    }

    /// Returns the path of the database with every link resolved.
    pub fn path(&self) -> &Path {
        self.target.path()
    }

    fn index(&self, begin: IndexStart) -> ReadFuture<'_, u64> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            self.tasks.put(WriterTask::Index { begin, answer }).await?;
            answered.await.map_err(|_| StoreError::Closed)?
        })
    }

    /// Faults to inject, for tests.
    #[doc(hidden)]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    fn ask<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> ReadFuture<'_, T> {
        self.ask_reader(move |reader| reader.read(read))
    }

    fn ask_reader<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut SqliteReader) -> Result<T, StoreError> + Send + 'static,
    ) -> ReadFuture<'_, T> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let question: ReadJob = Box::new(move |reader| {
                // The caller may be gone.
                let _ = answer.send(ask(reader));
            });
            self.questions.put(question).await?;
            answered.await.map_err(|_| StoreError::Closed)?
        })
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        Admin::close(self);
    }
}

impl ReadLog for SqliteStore {
    fn process(&self) -> ProcessId {
        self.process
    }

    fn head(&self, agent: AgentId) -> ReadFuture<'_, Option<Head>> {
        self.ask(move |connection| queries::head(connection, agent))
    }

    fn control(&self, query: ControlQuery) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |connection| queries::control(connection, query))
    }

    fn page(&self, query: PageQuery) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |connection| queries::page(connection, query))
    }

    fn usage(&self, span: Span, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |connection| queries::usage(connection, span, limit))
    }

    fn newest_usage(&self, agents: Vec<AgentId>) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |connection| queries::newest_usage(connection, &agents))
    }

    fn count_messages(&self, spans: Vec<Span>) -> ReadFuture<'_, u64> {
        self.ask(move |connection| queries::count_messages(connection, &spans))
    }

    fn user_rows(&self, spans: Vec<Span>, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |connection| queries::user_rows(connection, &spans, limit))
    }

    fn snapshot(&self, upto: RowRef) -> ReadFuture<'_, Option<Snapshot>> {
        self.ask(move |connection| queries::snapshot(connection, upto))
    }

    fn pages(&self, spans: Vec<Span>, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |connection| queries::pages(connection, &spans, limit))
    }

    fn restore_point(&self, agent: AgentId, limit: usize) -> ReadFuture<'_, Option<RestorePoint>> {
        self.ask(move |connection| queries::restore_point(connection, agent, limit))
    }

    fn agents(&self, session: Option<SessionId>) -> ReadFuture<'_, Vec<AgentRecord>> {
        self.ask(move |connection| queries::agents(connection, session))
    }

    fn outlines(&self) -> ReadFuture<'_, Vec<AgentOutline>> {
        Box::pin(async move {
            let mut outlines = self.ask(outlines::outlines).await?;
            find_held(self, &mut outlines).await?;
            Ok(outlines)
        })
    }

    fn merge_rows(&self, parents: Vec<(AgentId, Micros)>) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |connection| outlines::merge_rows(connection, &parents))
    }

    fn living_roots(&self, session: SessionId) -> ReadFuture<'_, Vec<AgentRecord>> {
        self.ask(move |connection| queries::living_roots(connection, session))
    }

    fn owners(&self) -> ReadFuture<'_, Vec<ProcessRecord>> {
        self.ask(queries::owners)
    }

    fn agent(&self, agent: AgentId) -> ReadFuture<'_, Option<AgentRecord>> {
        self.ask(move |connection| queries::agent(connection, agent))
    }

    fn find_by_name<'a>(
        &'a self,
        session: Option<SessionId>,
        name: &'a str,
    ) -> ReadFuture<'a, Vec<AgentRecord>> {
        let name = name.to_owned();
        self.ask(move |connection| queries::find_by_name(connection, session, &name))
    }

    fn living_names<'a>(
        &'a self,
        session: SessionId,
        beginning: &'a str,
    ) -> ReadFuture<'a, Vec<String>> {
        let beginning = beginning.to_owned();
        self.ask(move |connection| ancestry::living_names(connection, session, &beginning))
    }

    fn ancestry(&self, agent: AgentId, most: usize) -> ReadFuture<'_, Option<Ancestry>> {
        self.ask(move |connection| ancestry::ancestry(connection, agent, most))
    }

    fn dead_among(&self, agents: Vec<AgentId>) -> ReadFuture<'_, Vec<AgentId>> {
        self.ask(move |connection| ancestry::dead_among(connection, &agents))
    }

    fn is_process_alive<'a>(&'a self, process: &'a ProcessRecord) -> ReadFuture<'a, bool> {
        let locks = self.target.place.locks();
        let process = process.id;
        let access = self.target.access;
        self.ask_reader(move |_| match locks::is_alive(&locks, process) {
            // The lock of another user: it cannot be tried, so take its word.
            Err(StoreError::ReadOnly(_)) if access == FileAccess::ReadOnly => Ok(true),
            tried => tried,
        })
    }

    fn pulse(&self) -> ReadFuture<'_, Pulse> {
        self.ask(ancestry::pulse)
    }

    fn sessions(&self) -> ReadFuture<'_, Vec<SessionRecord>> {
        self.ask(queries::sessions)
    }

    fn sessions_in<'a>(&'a self, directory: &'a str) -> ReadFuture<'a, Vec<SessionRecord>> {
        let directory = directory.to_owned();
        self.ask(move |connection| queries::sessions_in(connection, &directory))
    }

    fn mail(&self, to: AgentId) -> ReadFuture<'_, Vec<MailRecord>> {
        self.ask(move |connection| queries::mail(connection, to))
    }

    fn queued_mail(&self, to: AgentId) -> ReadFuture<'_, Vec<MailRecord>> {
        self.ask(move |connection| queries::queued_mail(connection, to))
    }

    fn open_runs(&self, agent: AgentId) -> ReadFuture<'_, Vec<RunRecord>> {
        self.ask(move |connection| queries::open_runs(connection, agent))
    }

    fn open_jobs(&self, of: Option<AgentId>) -> ReadFuture<'_, Vec<JobRecord>> {
        self.ask(move |connection| jobs::open_jobs(connection, of))
    }

    fn jobs(&self, agent: AgentId, limit: usize) -> ReadFuture<'_, Vec<JobRecord>> {
        self.ask(move |connection| jobs::jobs(connection, agent, limit))
    }

    fn files_rows(&self, span: Span, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |connection| queries::files_rows(connection, span, limit))
    }

    fn process_rows(&self, span: Span, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |connection| jobs::process_rows(connection, span, limit))
    }

    fn waiting_requests(&self) -> ReadFuture<'_, Vec<RequestRecord>> {
        let process = self.process;
        self.ask(move |connection| requests::waiting(connection, process))
    }

    fn request(&self, request: RequestId) -> ReadFuture<'_, Option<RequestRecord>> {
        self.ask(move |connection| requests::find(connection, request))
    }

    fn seen<'a>(&'a self, person: &'a str) -> ReadFuture<'a, Vec<SeenMark>> {
        let person = person.to_owned();
        self.ask(move |connection| read_marks::marks(connection, &person))
    }

    fn draft(&self, agent: AgentId) -> ReadFuture<'_, Option<DraftRecord>> {
        self.ask(move |connection| queries::draft(connection, agent))
    }

    fn blob(&self, hash: BlobHash) -> ReadFuture<'_, Option<Vec<u8>>> {
        self.ask(move |connection| queries::blob(connection, hash))
    }

    fn search(&self, query: SearchQuery) -> ReadFuture<'_, SearchPage> {
        if self.target.access == FileAccess::ReadOnly {
            let faults = Arc::clone(&self.faults);
            return self.ask_reader(move |reader| {
                let recent = reader.read(search::index_recent)?;
                let mut page = search::search_within_timeout(reader, query, &faults, recent)?;
                page.cut |= recent.is_cut;
                Ok(page)
            });
        }
        Box::pin(async move {
            // An index that cannot be written is searched as far as it goes.
            let mut is_behind = false;
            loop {
                match self.index_chunk().await {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(StoreError::Closed) => return Err(StoreError::Closed),
                    Err(_) => {
                        is_behind = true;
                        break;
                    }
                }
            }
            let faults = Arc::clone(&self.faults);
            let stored = search::RecentIndex::default();
            let found = self.ask_reader(move |reader| {
                search::search_within_timeout(reader, query, &faults, stored)
            });
            let mut page = found.await?;
            page.cut |= is_behind;
            Ok(page)
        })
    }

    fn index_chunk(&self) -> ReadFuture<'_, u64> {
        self.index(IndexStart::Here)
    }

    fn dump(&self, of: Option<Vec<AgentId>>, lines: mpsc::Sender<String>) -> ReadFuture<'_, ()> {
        let target = Arc::clone(&self.target);
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            // A dump takes long, so it has its own thread and connection.
            let work = move || {
                let found = target.read_once(|connection| {
                    dump::dump(connection, of.as_deref(), &mut |line| {
                        lines.blocking_send(format!("{line}\n")).is_ok()
                    })
                });
                // The caller may be gone.
                let _ = answer.send(found);
            };
            thread::Builder::new()
                .name("ikigai-store-dump".to_owned())
                .spawn(work)
                .map_err(|error| StoreError::Io(Box::new(error)))?;
            answered.await.map_err(|_| StoreError::Closed)?
        })
    }

    fn watch(&self) -> Result<Watch, StoreError> {
        self.listening.watch()
    }
}

impl Log for SqliteStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed, CommitError>> {
        Box::pin(async move {
            let (reply, result) = oneshot::channel();
            let job = CommitJob { batch, reply };
            self.tasks.put(WriterTask::Write(job)).await?;
            result.await.map_err(|_| StoreError::Closed)?
        })
    }
}

impl Admin for SqliteStore {
    fn integrity(&self) -> ReadFuture<'_, Vec<String>> {
        self.ask(queries::integrity)
    }

    fn query(&self, sql: &str, limits: QueryLimits) -> Result<QueryTable, QueryError> {
        self.run_query(sql, limits)
    }

    fn report(&self) -> ReadFuture<'_, Option<ServerReport>> {
        Box::pin(ready(Ok(None)))
    }

    fn restore(
        &self,
        lines: &mut dyn BufRead,
        mode: RestoreMode,
    ) -> Result<Restored, RestoreError> {
        self.restore_lines(lines, mode)
    }

    fn reset_index(&self) -> ReadFuture<'_, u64> {
        self.index(IndexStart::Anew)
    }

    fn close(&self) {
        self.listening.close();
        self.questions.close();
        self.tasks.close();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ = thread.join();
        }
    }
}
