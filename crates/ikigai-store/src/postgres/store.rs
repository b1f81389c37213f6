//! The store: one thread with its own runtime, so that a busy caller blocks no other.

use std::future::Future;
use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError, mpsc as blocking};
use std::thread::{self, JoinHandle};

use ikigai_core::{
    AgentId, ControlQuery, Micros, PageQuery, ProcessId, Row, RowRef, SessionId, Span,
};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::connect::{ConnectionRole, Link, PostgresTarget};
use super::errors::sql_error;
use super::listener::{CommitListener, ListenerHandle};
use super::migrations::MIGRATIONS;
use super::owner::is_alive;
use super::reader::ReadConnection;
use super::report;
use super::search::Searcher;
use super::values::{QueryFailure, Result as Read};
use super::writer::{BATCHES, PostgresWriter};
use super::{ancestry, dump, jobs, outlines, queries, read_marks, requests};
use crate::batch::{Batch, CommitJob, Committed};
use crate::error::{CommitError, StoreError};
use crate::faults::Faults;
use crate::log::{Admin, BoxFuture, Log, ReadFuture, ReadLog};
use crate::outline::AgentOutline;
use crate::portable::{RestoreError, RestoreMode, Restored};
use crate::records::{
    AgentRecord, Ancestry, BlobHash, DraftRecord, Head, JobRecord, MailRecord, ProcessRecord,
    Pulse, RequestId, RequestRecord, RestorePoint, RunRecord, SeenMark, SessionRecord, Snapshot,
};
use crate::search::{SearchPage, SearchQuery};
use crate::server_report::ServerReport;
use crate::server_url::Url;
use crate::sql::{QueryError, QueryLimits, QueryTable};
use crate::sql_common::Migrations;
use crate::watch::Watch;

/// Limit of concurrent queries.
const QUESTIONS: usize = 256;

/// Options for opening a store.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    url: Url,
    process: ProcessRecord,
    migrations: Migrations,
}

impl PostgresOptions {
    /// Options for the log at `url`, whose tables are created if they are missing.
    ///
    /// Draw a new process id for each handle.
    pub fn new(url: Url, process: ProcessRecord) -> Self {
        Self {
            url,
            process,
            migrations: MIGRATIONS,
        }
    }

    /// Opens it as another version of this program, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_migrations(mut self, migrations: Migrations) -> Self {
        self.migrations = migrations;
        self
    }
}

/// The log in a PostgreSQL database. Dropping it closes it.
pub struct PostgresStore {
    process: ProcessId,
    pub(super) target: Arc<PostgresTarget>,
    pub(super) runtime: Handle,
    orders: Mutex<Option<mpsc::Sender<CommitJob>>>,
    room: Arc<Semaphore>,
    reading: Arc<ReadConnection>,
    searcher: Arc<Searcher>,
    pub(super) notifier: ListenerHandle,
    faults: Arc<Faults>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore")
            .field("url", self.target.url())
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens a store, creating its tables if they are missing.
    ///
    /// Blocks for a few milliseconds, or until the server counts as away.
    pub fn open(options: PostgresOptions) -> Result<Self, StoreError> {
        let (opened, store) = blocking::sync_channel(1);
        let thread = thread::Builder::new()
            .name("ikigai-store-postgres".to_owned())
            .spawn(move || work(options, &opened))
            .map_err(|error| StoreError::Io(Box::new(error)))?;
        let store: Self = store.recv().map_err(|_| StoreError::Closed)??;
        *store.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(store)
    }

    /// Returns the URL of the store; displayed without the password.
    pub fn url(&self) -> &Url {
        self.target.url()
    }

    /// Faults to inject, for tests.
    #[doc(hidden)]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    fn ask<T, F>(&self, read: impl FnOnce(Arc<Link>) -> F + Send + 'static) -> ReadFuture<'_, T>
    where
        T: Send + 'static,
        F: Future<Output = Read<T>> + Send + 'static,
    {
        let reading = Arc::clone(&self.reading);
        self.spawn(async move { reading.ask(read).await })
    }

    fn ask_searcher<T, F>(
        &self,
        ask: impl FnOnce(Arc<Searcher>) -> F + Send + 'static,
    ) -> ReadFuture<'_, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        self.spawn(ask(Arc::clone(&self.searcher)))
    }

    /// Runs work on the store's thread, within the limit of concurrent queries.
    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> ReadFuture<'_, T> {
        Box::pin(async move {
            let permit = Arc::clone(&self.room).acquire_owned().await;
            let permit = permit.map_err(|_| StoreError::Closed)?;
            let task = self.runtime.spawn(async move {
                let answer = work.await;
                drop(permit);
                answer
            });
            task.await.map_err(|_| StoreError::Closed)?
        })
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        Admin::close(self);
    }
}

/// Runs the thread: opens the store, hands it over, and writes until closed.
fn work(
    options: PostgresOptions,
    opened: &blocking::SyncSender<Result<PostgresStore, StoreError>>,
) {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            // The caller of `open` waits for this.
            let _ = opened.send(Err(StoreError::Io(Box::new(error))));
            return;
        }
    };
    runtime.block_on(async {
        match start(options).await {
            Ok((store, mut writer, orders)) => {
                let (notifier, room) = (store.notifier.clone(), Arc::clone(&store.room));
                if opened.send(Ok(store)).is_ok() {
                    writer.run(orders).await;
                    // Finish the running queries; then accept no more.
                    let answered = u32::try_from(QUESTIONS).unwrap_or(u32::MAX);
                    let answered = room.acquire_many(answered);
                    let _ = tokio::time::timeout(super::reader::PATIENCE, answered).await;
                    room.close();
                }
                notifier.close().await;
            }
            Err(error) => {
                let _ = opened.send(Err(error));
            }
        }
    });
}

async fn start(
    options: PostgresOptions,
) -> Result<(PostgresStore, PostgresWriter, mpsc::Receiver<CommitJob>), StoreError> {
    let target = Arc::new(PostgresTarget::new(options.url, options.migrations)?);
    let link = target.prepare(ConnectionRole::Reading).await?;
    let process = options.process.id;
    let faults = Arc::new(Faults::default());
    let (listener, owner, notifier) = CommitListener::new(Arc::clone(&target), options.process);
    tokio::spawn(listener.run());
    let searcher = Arc::new(Searcher::new(Arc::clone(&target)));
    tokio::spawn(Arc::clone(&searcher).follow(notifier.clone()));
    let (orders, ordered) = mpsc::channel(BATCHES);
    let writer = PostgresWriter {
        target: Arc::clone(&target),
        owner,
        notifier: notifier.clone(),
        faults: Arc::clone(&faults),
        link: None,
        is_blind: false,
    };
    let store = PostgresStore {
        process,
        runtime: Handle::current(),
        orders: Mutex::new(Some(orders)),
        room: Arc::new(Semaphore::new(QUESTIONS)),
        reading: Arc::new(ReadConnection::new(
            Arc::clone(&target),
            ConnectionRole::Reading,
            Some(link),
        )),
        target,
        searcher,
        notifier,
        faults,
        thread: Mutex::new(None),
    };
    Ok((store, writer, ordered))
}

impl ReadLog for PostgresStore {
    fn process(&self) -> ProcessId {
        self.process
    }

    fn head(&self, agent: AgentId) -> ReadFuture<'_, Option<Head>> {
        self.ask(move |link| async move { queries::head(&link, agent).await })
    }

    fn control(&self, query: ControlQuery) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |link| async move { queries::control(&link, query).await })
    }

    fn page(&self, query: PageQuery) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |link| async move { queries::page(&link, query).await })
    }

    fn usage(&self, span: Span, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |link| async move { queries::usage(&link, span, limit).await })
    }

    fn newest_usage(&self, agents: Vec<AgentId>) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |link| async move { queries::newest_usage(&link, &agents).await })
    }

    fn count_messages(&self, spans: Vec<Span>) -> ReadFuture<'_, u64> {
        self.ask(move |link| async move { queries::count_messages(&link, &spans).await })
    }

    fn user_rows(&self, spans: Vec<Span>, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |link| async move { queries::user_rows(&link, &spans, limit).await })
    }

    fn snapshot(&self, upto: RowRef) -> ReadFuture<'_, Option<Snapshot>> {
        self.ask(move |link| async move { queries::snapshot(&link, upto).await })
    }

    fn pages(&self, spans: Vec<Span>, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |link| async move { queries::pages(&link, &spans, limit).await })
    }

    fn restore_point(&self, agent: AgentId, limit: usize) -> ReadFuture<'_, Option<RestorePoint>> {
        self.ask(move |link| async move { queries::restore_point(&link, agent, limit).await })
    }

    fn agents(&self, session: Option<SessionId>) -> ReadFuture<'_, Vec<AgentRecord>> {
        self.ask(move |link| async move { queries::agents(&link, session).await })
    }

    fn outlines(&self) -> ReadFuture<'_, Vec<AgentOutline>> {
        self.ask(move |link| async move { outlines::outlines(&link).await })
    }

    fn merge_rows(&self, parents: Vec<(AgentId, Micros)>) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |link| async move { outlines::merge_rows(&link, &parents).await })
    }

    fn living_roots(&self, session: SessionId) -> ReadFuture<'_, Vec<AgentRecord>> {
        self.ask(move |link| async move { queries::living_roots(&link, session).await })
    }

    fn owners(&self) -> ReadFuture<'_, Vec<ProcessRecord>> {
        self.ask(move |link| async move { queries::owners(&link).await })
    }

    fn agent(&self, agent: AgentId) -> ReadFuture<'_, Option<AgentRecord>> {
        self.ask(move |link| async move { queries::agent(&link, agent).await })
    }

    fn find_by_name<'a>(
        &'a self,
        session: Option<SessionId>,
        name: &'a str,
    ) -> ReadFuture<'a, Vec<AgentRecord>> {
        let name = name.to_owned();
        self.ask(move |link| async move { queries::find_by_name(&link, session, &name).await })
    }

    fn living_names<'a>(
        &'a self,
        session: SessionId,
        beginning: &'a str,
    ) -> ReadFuture<'a, Vec<String>> {
        let beginning = beginning.to_owned();
        self.ask(
            move |link| async move { ancestry::living_names(&link, session, &beginning).await },
        )
    }

    fn ancestry(&self, agent: AgentId, most: usize) -> ReadFuture<'_, Option<Ancestry>> {
        self.ask(move |link| async move { ancestry::ancestry(&link, agent, most).await })
    }

    fn dead_among(&self, agents: Vec<AgentId>) -> ReadFuture<'_, Vec<AgentId>> {
        self.ask(move |link| async move { ancestry::dead_among(&link, &agents).await })
    }

    fn is_process_alive<'a>(&'a self, process: &'a ProcessRecord) -> ReadFuture<'a, bool> {
        let process = process.id;
        self.ask(move |link| async move { Ok(is_alive(&link, process).await?) })
    }

    fn pulse(&self) -> ReadFuture<'_, Pulse> {
        self.ask(move |link| async move { ancestry::pulse(&link).await })
    }

    fn sessions(&self) -> ReadFuture<'_, Vec<SessionRecord>> {
        self.ask(move |link| async move { queries::sessions(&link).await })
    }

    fn sessions_in<'a>(&'a self, directory: &'a str) -> ReadFuture<'a, Vec<SessionRecord>> {
        let directory = directory.to_owned();
        self.ask(move |link| async move { queries::sessions_in(&link, &directory).await })
    }

    fn mail(&self, to: AgentId) -> ReadFuture<'_, Vec<MailRecord>> {
        self.ask(move |link| async move { queries::mail(&link, to).await })
    }

    fn queued_mail(&self, to: AgentId) -> ReadFuture<'_, Vec<MailRecord>> {
        self.ask(move |link| async move { queries::queued_mail(&link, to).await })
    }

    fn open_runs(&self, agent: AgentId) -> ReadFuture<'_, Vec<RunRecord>> {
        self.ask(move |link| async move { queries::open_runs(&link, agent).await })
    }

    fn open_jobs(&self, of: Option<AgentId>) -> ReadFuture<'_, Vec<JobRecord>> {
        self.ask(move |link| async move { jobs::open_jobs(&link, of).await })
    }

    fn jobs(&self, agent: AgentId, limit: usize) -> ReadFuture<'_, Vec<JobRecord>> {
        self.ask(move |link| async move { jobs::jobs(&link, agent, limit).await })
    }

    fn files_rows(&self, span: Span, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |link| async move { jobs::files_rows(&link, span, limit).await })
    }

    fn process_rows(&self, span: Span, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        self.ask(move |link| async move { jobs::process_rows(&link, span, limit).await })
    }

    fn waiting_requests(&self) -> ReadFuture<'_, Vec<RequestRecord>> {
        let process = self.process;
        self.ask(move |link| async move { requests::waiting(&link, process).await })
    }

    fn request(&self, request: RequestId) -> ReadFuture<'_, Option<RequestRecord>> {
        self.ask(move |link| async move { requests::find(&link, request).await })
    }

    fn seen<'a>(&'a self, person: &'a str) -> ReadFuture<'a, Vec<SeenMark>> {
        let person = person.to_owned();
        self.ask(move |link| async move { read_marks::marks(&link, &person).await })
    }

    fn draft(&self, agent: AgentId) -> ReadFuture<'_, Option<DraftRecord>> {
        self.ask(move |link| async move { queries::draft(&link, agent).await })
    }

    fn blob(&self, hash: BlobHash) -> ReadFuture<'_, Option<Vec<u8>>> {
        self.ask(move |link| async move { queries::blob(&link, hash).await })
    }

    fn search(&self, query: SearchQuery) -> ReadFuture<'_, SearchPage> {
        let faults = Arc::clone(&self.faults);
        self.ask_searcher(move |searcher| async move { searcher.search(query, &faults).await })
    }

    fn index_chunk(&self) -> ReadFuture<'_, u64> {
        self.ask_searcher(|searcher| async move { searcher.index_chunk().await })
    }

    fn dump(&self, of: Option<Vec<AgentId>>, lines: mpsc::Sender<String>) -> ReadFuture<'_, ()> {
        let target = Arc::clone(&self.target);
        // A dump takes long and needs one snapshot, so it has its own connection.
        let task = self.runtime.spawn(async move {
            let fail = |error| sql_error(target.url(), error);
            let link = target.connect(ConnectionRole::Slow).await;
            let link = link.map_err(|cause| cause.store_error(target.url()))?;
            let task = dump::dump(&link, of.as_deref(), &lines).await;
            task.map_err(|failure| match failure {
                QueryFailure::Sql(error) => fail(error),
                QueryFailure::Value(what) => StoreError::Value(what),
            })
        });
        Box::pin(async move { task.await.map_err(|_| StoreError::Closed)? })
    }

    fn watch(&self) -> Result<Watch, StoreError> {
        self.notifier.watch()
    }
}

impl Log for PostgresStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed, CommitError>> {
        Box::pin(async move {
            let orders = self
                .orders
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let (reply, result) = oneshot::channel();
            let job = CommitJob { batch, reply };
            let ordered = orders.ok_or(StoreError::Closed)?.send(job).await;
            ordered.map_err(|_| StoreError::Closed)?;
            result.await.map_err(|_| StoreError::Closed)?
        })
    }
}

impl Admin for PostgresStore {
    /// Compares each head with its rows, and references with their targets.
    ///
    /// The server checks its files by itself.
    fn integrity(&self) -> ReadFuture<'_, Vec<String>> {
        self.ask(move |link| async move { queries::integrity(&link).await })
    }

    fn query(&self, sql: &str, limits: QueryLimits) -> Result<QueryTable, QueryError> {
        self.run_query(sql, limits)
    }

    fn report(&self) -> ReadFuture<'_, Option<ServerReport>> {
        let target = Arc::clone(&self.target);
        self.spawn(async move {
            let report = report::report(&target).await;
            report
                .map(Some)
                .map_err(|cause| cause.store_error(target.url()))
        })
    }

    fn restore(
        &self,
        lines: &mut dyn BufRead,
        mode: RestoreMode,
    ) -> Result<Restored, RestoreError> {
        self.restore_lines(lines, mode)
    }

    fn reset_index(&self) -> ReadFuture<'_, u64> {
        self.ask_searcher(|searcher| async move { searcher.forget().await })
    }

    fn close(&self) {
        self.orders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}
