//! The embedded engine: one SQLite file, used by several processes of one machine.
//!
//! One thread writes and one reads, each with its own connection; a third listens for commits of
//! others while somebody wants to know. Nothing is written before the first commit, except that a
//! missing database is created and an older one migrated.

mod connect;
mod dump;
mod errors;
mod execute;
mod facts;
mod family_tree;
mod identity;
mod locks;
mod migrations;
mod place;
mod queries;
mod queue;
mod read_only;
mod readback;
mod reader;
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

use ikigai_core::{AgentId, ControlQuery, PageQuery, ProcessId, Row, RowRef, SessionId, Span};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::batch::{Batch, CommitJob, Committed};
use crate::error::{CommitError, StoreError};
use crate::log::{Admin, BoxFuture, Log, ReadFuture, ReadLog};
use crate::portable::{RestoreError, RestoreMode, Restored};
use crate::records::{
    AgentRecord, Ancestry, BlobHash, Draft, Head, MailRecord, ProcessRecord, Pulse, RestorePoint,
    RunRecord, SessionRecord, Snapshot,
};
use crate::search::{SearchPage, SearchQuery};
use crate::server_report::ServerReport;
use crate::sql::{QueryError, QueryLimits, Table};
use crate::watch::Watch;

use connect::Target;
use locks::Owner;
use place::Place;
use queue::{Queue, queue};
use read_only::FileAccess;
use reader::{QUESTIONS, Question, Reader};
use watch::{Changes, Listening, Notifier};
use writer::{BATCHES, Begin, Task, Writer};

#[doc(hidden)]
pub use crate::faults::{CommitFault, Faults};
#[doc(hidden)]
pub use migrations::{MIGRATIONS, Migrations};

/// Only one store of a process is being opened at a time: closing a file just created would drop
/// the locks that SQLite has on it through another of the process's descriptors.
static OPENING: Mutex<()> = Mutex::new(());

/// What is needed to open a store.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    path: PathBuf,
    process: ProcessRecord,
    migrations: Migrations,
    reading: bool,
}

impl OpenOptions {
    /// Opens the database at `path`, made if it is missing, as `process`. The id of the process is
    /// drawn anew for each handle.
    pub fn new(path: impl Into<PathBuf>, process: ProcessRecord) -> Self {
        Self {
            path: path.into(),
            process,
            migrations: MIGRATIONS,
            reading: false,
        }
    }

    /// Accepts a store that cannot be written: commits then fail, and everything can be read.
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

/// The log in one SQLite file.
///
/// Dropping it closes it.
pub struct SqliteStore {
    process: ProcessId,
    target: Arc<Target>,
    tasks: Queue<Task>,
    questions: Queue<Question>,
    listening: Listening,
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
    /// Opens a store, creating it with its directories if it is missing. Blocks for as long as
    /// that takes: less than a millisecond for a store that is there.
    ///
    /// A store that is there and of this version is only read. This process is entered into it
    /// with the first lease that it takes.
    pub fn open(options: OpenOptions) -> Result<Self, StoreError> {
        let opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Place::prepare(&options.path, options.reading)?;
        let access = if options.reading {
            FileAccess::probe(&place)
        } else {
            FileAccess::Full
        };
        let target = Arc::new(Target::new(place, options.migrations, access));
        let connection = target.prepare()?;
        drop(opening);
        let io = |error| StoreError::Io(Box::new(error));
        let process = options.process.id;
        let changes = Changes::new();
        let faults = Arc::new(Faults::default());
        let (questions, asked) = queue(QUESTIONS);
        let (tasks, ordered) = queue(BATCHES);
        let reader = Reader::spawn(Arc::clone(&target), connection, asked).map_err(io)?;
        let writer = Writer::spawn(
            Arc::clone(&target),
            Owner::new(&target.place, options.process),
            Notifier::new(&target, changes.clone()),
            Arc::clone(&faults),
            ordered,
        )
        .map_err(io)?;
        Ok(Self {
            process,
            listening: Listening::new(Arc::clone(&target), changes),
            target,
            tasks,
            questions,
            faults,
            threads: Mutex::new(vec![writer, reader]),
        })
    }

    /// The path of the database with every link resolved.
    pub fn path(&self) -> &Path {
        self.target.path()
    }

    fn index(&self, begin: Begin) -> ReadFuture<'_, u64> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            self.tasks.put(Task::Index { begin, answer }).await?;
            answered.await.map_err(|_| StoreError::Closed)?
        })
    }

    /// Failures to be brought about, for tests.
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
        ask: impl FnOnce(&mut Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> ReadFuture<'_, T> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let question: Question = Box::new(move |reader| {
                // A caller that went away does not care.
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

    fn living_roots(&self, session: SessionId) -> ReadFuture<'_, Vec<AgentRecord>> {
        self.ask(move |connection| queries::living_roots(connection, session))
    }

    fn owners(&self) -> ReadFuture<'_, Vec<ProcessRecord>> {
        self.ask(queries::owners)
    }

    fn agent(&self, agent: AgentId) -> ReadFuture<'_, Option<AgentRecord>> {
        self.ask(move |connection| queries::agent(connection, agent))
    }

    fn find_by_name<'a>(&'a self, name: &'a str) -> ReadFuture<'a, Option<AgentRecord>> {
        let name = name.to_owned();
        self.ask(move |connection| queries::find_by_name(connection, &name))
    }

    fn living_names<'a>(&'a self, beginning: &'a str) -> ReadFuture<'a, Vec<String>> {
        let beginning = beginning.to_owned();
        self.ask(move |connection| family_tree::living_names(connection, &beginning))
    }

    fn ancestry(&self, agent: AgentId, most: usize) -> ReadFuture<'_, Option<Ancestry>> {
        self.ask(move |connection| family_tree::ancestry(connection, agent, most))
    }

    fn dead_among(&self, agents: Vec<AgentId>) -> ReadFuture<'_, Vec<AgentId>> {
        self.ask(move |connection| family_tree::dead_among(connection, &agents))
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
        self.ask(family_tree::pulse)
    }

    fn sessions(&self) -> ReadFuture<'_, Vec<SessionRecord>> {
        self.ask(queries::sessions)
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

    fn draft(&self, agent: AgentId) -> ReadFuture<'_, Option<Draft>> {
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
                let mut page = search::within_time(reader, query, &faults, recent)?;
                page.cut |= recent.is_cut;
                Ok(page)
            });
        }
        Box::pin(async move {
            // An index that cannot be written is asked as far as it goes.
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
            let stored = search::Recent::default();
            let found =
                self.ask_reader(move |reader| search::within_time(reader, query, &faults, stored));
            let mut page = found.await?;
            page.cut |= is_behind;
            Ok(page)
        })
    }

    fn index_chunk(&self) -> ReadFuture<'_, u64> {
        self.index(Begin::Here)
    }

    fn dump(&self, of: Option<Vec<AgentId>>, lines: mpsc::Sender<String>) -> ReadFuture<'_, ()> {
        let target = Arc::clone(&self.target);
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            // It takes its time, so that it has a thread and a connection of its own.
            let work = move || {
                let told = target.read_once(|connection| {
                    dump::dump(connection, of.as_deref(), &mut |line| {
                        lines.blocking_send(format!("{line}\n")).is_ok()
                    })
                });
                // A caller that went away does not care.
                let _ = answer.send(told);
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
            self.tasks.put(Task::Write(job)).await?;
            result.await.map_err(|_| StoreError::Closed)?
        })
    }
}

impl Admin for SqliteStore {
    fn integrity(&self) -> ReadFuture<'_, Vec<String>> {
        self.ask(queries::integrity)
    }

    fn query(&self, sql: &str, limits: QueryLimits) -> Result<Table, QueryError> {
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
        self.index(Begin::Anew)
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
