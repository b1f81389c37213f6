//! The writer thread: commits all queued batches in one transaction, then replies.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, ffi};
use tokio::sync::oneshot;

use super::connect::SqliteTarget;
use super::errors::{SharedSqliteError, SqliteRefusal, breaks_connection, store_error};
use super::execute;
use super::identity::Absence;
use super::locks::SqliteOwner;
use super::queue::JobReceiver;
use super::readback;
use super::search;
use super::watch::FileNotifier;
use crate::batch::{Batch, CommitJob, CommitOutcome, Committed};
use crate::error::{CommitError, StoreError};
use crate::faults::{Faults, InjectedFault};

/// Capacity of the queue, and limit of batches per transaction.
pub(super) const BATCHES: usize = 256;

/// Idle time before the write-ahead log is checkpointed.
const IDLE: Duration = Duration::from_secs(1);

/// A smaller log stays until the store is closed.
const IDLE_LOG_BYTES: u64 = 256 * 1024;

/// SQLite's own limit of pages.
const MAX_PAGES: u32 = 0xffff_fffe;

/// Task of the writer thread.
pub(super) enum WriterTask {
    /// Commits a batch.
    Write(CommitJob),
    /// Indexes the next rows; replies with the number of rows left.
    Index {
        begin: IndexStart,
        answer: oneshot::Sender<Result<u64, StoreError>>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexStart {
    /// After the last indexed row.
    Here,
    /// At the first row, after emptying the index.
    Anew,
}

/// A batch that was applied in a transaction that is not committed yet.
pub(super) struct AppliedJob {
    pub(super) job: CommitJob,
    pub(super) done: Committed,
}

/// State of the writer thread.
pub(super) struct SqliteWriter {
    target: Arc<SqliteTarget>,
    owner: SqliteOwner,
    notifier: FileNotifier,
    faults: Arc<Faults>,
    connection: Option<Connection>,
    page_limit: u32,
}

/// Reason why a transaction could not begin, for each waiting batch.
enum BeginFailure {
    Sql(SharedSqliteError),
    Away(Absence),
    Migrated { store: u32, program: u32 },
}

impl BeginFailure {
    fn store_error(&self, target: &SqliteTarget) -> StoreError {
        match self {
            Self::Sql(cause) => match target.files.check() {
                Err(absence) => absence.store_error(&target.place),
                Ok(()) => store_error(target.path(), cause),
            },
            Self::Away(absence) => absence.store_error(&target.place),
            Self::Migrated { store, program } => StoreError::Migrated {
                store: *store,
                program: *program,
            },
        }
    }
}

impl From<rusqlite::Error> for BeginFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(Arc::new(error))
    }
}

impl SqliteWriter {
    /// Starts the thread. It connects with the first batch.
    pub(super) fn spawn(
        target: Arc<SqliteTarget>,
        owner: SqliteOwner,
        notifier: FileNotifier,
        faults: Arc<Faults>,
        tasks: JobReceiver<WriterTask>,
    ) -> std::io::Result<JoinHandle<()>> {
        let mut writer = Self {
            target,
            owner,
            notifier,
            faults,
            connection: None,
            page_limit: 0,
        };
        thread::Builder::new()
            .name("ikigai-store-write".to_owned())
            .spawn(move || writer.run(&tasks))
    }

    fn run(&mut self, tasks: &JobReceiver<WriterTask>) {
        // Set after writes until the log was checked; `pause` is the wait for more.
        let mut grown = false;
        let mut pause = IDLE;
        loop {
            let first = if grown {
                match tasks.next_within(pause) {
                    Ok(task) => task,
                    Err(RecvTimeoutError::Timeout) => {
                        let is_done = self.index_idle();
                        if is_done {
                            self.fold_idle_log();
                        }
                        pause = if is_done { IDLE } else { Duration::ZERO };
                        grown = !is_done;
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            } else {
                match tasks.next() {
                    Some(task) => task,
                    None => break,
                }
            };
            self.carry_out(first, tasks);
            grown = true;
            pause = IDLE;
        }
        self.finish();
    }

    /// Executes a task with all that wait behind it.
    fn carry_out(&mut self, first: WriterTask, tasks: &JobReceiver<WriterTask>) {
        let mut waiting = Vec::new();
        let mut index_requests = Vec::new();
        let mut next = Some(first);
        while let Some(task) = next {
            match task {
                WriterTask::Write(job) => waiting.push(job),
                WriterTask::Index { begin, answer } => index_requests.push((begin, answer)),
            }
            let is_room = waiting.len() + index_requests.len() < BATCHES;
            next = is_room.then(|| tasks.try_next().ok()).flatten();
        }
        while !waiting.is_empty() {
            waiting = self.write(waiting);
        }
        for (begin, answer) in index_requests {
            // A caller that went away does not care.
            let _ = answer.send(self.index(begin));
        }
    }

    /// Indexes the next chunk of rows; returns how many remain.
    fn index(&mut self, begin: IndexStart) -> Result<u64, StoreError> {
        let target = Arc::clone(&self.target);
        let fail = |error| target.error(error);
        // A search alone must not block writers.
        let connection = self.connect().map_err(fail)?;
        let behind = search::behind(&connection);
        self.connection = Some(connection);
        if begin == IndexStart::Here && behind.map_err(fail)? == 0 {
            return Ok(0);
        }
        let connection = self
            .begin()
            .map_err(|trouble| trouble.store_error(&target))?;
        let indexed = match begin {
            IndexStart::Here => search::step(&connection),
            IndexStart::Anew => search::forget(&connection),
        };
        let indexed = indexed
            .and_then(|()| search::behind(&connection))
            .map_err(|error| (breaks_connection(&error), target.error(error)))
            .and_then(|left| {
                let present = target.files.check();
                let present = present.map_err(|it| (false, it.store_error(&target.place)));
                present.map(|()| left)
            })
            .and_then(|left| {
                let committed = run(&connection, "COMMIT").map(|()| left);
                committed.map_err(|error| (breaks_connection(&error), target.error(error)))
            });
        match indexed {
            Ok(left) => {
                self.connection = Some(connection);
                target.files.record_content();
                Ok(left)
            }
            Err((is_broken, error)) => {
                self.give_up(connection, is_broken);
                Err(error)
            }
        }
    }

    /// Indexes rows while idle; returns whether none is left. Searches report errors.
    fn index_idle(&mut self) -> bool {
        self.index(IndexStart::Here).unwrap_or(0) == 0
    }

    /// Writes the batches in one transaction; returns those to retry because another one's failure
    /// ended it.
    fn write(&mut self, jobs: Vec<CommitJob>) -> Vec<CommitJob> {
        let connection = match self.begin() {
            Ok(connection) => connection,
            Err(trouble) => {
                for job in jobs {
                    job.finish(Err(trouble.store_error(&self.target).into()));
                }
                return Vec::new();
            }
        };
        // A single batch is rolled back with its transaction.
        let apply = if jobs.len() == 1 {
            execute::apply
        } else {
            apply_alone
        };
        let mut applied = Vec::with_capacity(jobs.len());
        let mut jobs = jobs.into_iter();
        while let Some(job) = jobs.next() {
            match apply(&connection, &mut self.owner, &job.batch) {
                Ok(done) => applied.push(AppliedJob { job, done }),
                Err(SqliteRefusal::Commit(error)) => job.finish(Err(error)),
                Err(SqliteRefusal::Engine(error)) => {
                    let broken = breaks_connection(&error);
                    job.finish(Err(self.target.error(error).into()));
                    // SQLite rolls everything back after some errors, earlier batches too.
                    if broken || connection.is_autocommit() {
                        self.give_up(connection, broken);
                        return applied.into_iter().map(|it| it.job).chain(jobs).collect();
                    }
                }
            }
        }
        if applied.is_empty() {
            self.give_up(connection, false);
        } else {
            self.commit(connection, applied);
        }
        Vec::new()
    }

    fn connect(&mut self) -> rusqlite::Result<Connection> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        self.page_limit = 0;
        self.target.connect()
    }

    fn begin(&mut self) -> Result<Connection, BeginFailure> {
        let connection = self.connect()?;
        let limit = self.faults.page_limit();
        if limit != self.page_limit {
            let pages = if limit == 0 { MAX_PAGES } else { limit };
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
            self.page_limit = limit;
        }
        // Do not begin in files that were moved; keep the connection, since they may come back.
        if let Err(absence) = self.target.files.check() {
            self.connection = Some(connection);
            return Err(BeginFailure::Away(absence));
        }
        if let Err(error) = run(&connection, "BEGIN IMMEDIATE") {
            if breaks_connection(&error) {
                self.abandon(connection);
            } else {
                self.connection = Some(connection);
            }
            return Err(error.into());
        }
        self.target.files.record();
        let store = connection
            .prepare_cached("PRAGMA user_version")?
            .query_row([], |row| row.get(0))?;
        let program = self.target.version();
        if store == program {
            return Ok(connection);
        }
        self.give_up(connection, false);
        Err(BeginFailure::Migrated { store, program })
    }

    /// Rolls a transaction back, and closes the connection if it is `broken`.
    fn give_up(&mut self, connection: Connection, broken: bool) {
        let rolled_back = connection.is_autocommit() || run(&connection, "ROLLBACK").is_ok();
        if rolled_back && !broken {
            self.connection = Some(connection);
        } else {
            self.abandon(connection);
        }
    }

    /// Closes a connection that cannot be trusted.
    fn abandon(&self, connection: Connection) {
        let is_away = self.target.files.check().is_err();
        self.target.close(connection);
        if !is_away {
            // The last connection to close removes the log.
            self.target.files.forget_log();
        }
    }

    fn commit(&mut self, connection: Connection, applied: Vec<AppliedJob>) {
        if let Err(absence) = self.target.files.check() {
            self.give_up(connection, false);
            for AppliedJob { job, .. } in applied {
                job.finish(Err(absence.store_error(&self.target.place).into()));
            }
            return;
        }
        let fault = self.faults.take_commit();
        let mut witness = None;
        let result = if applied.iter().all(|it| it.done.rows.is_empty()) {
            readback::put_witness(&connection, self.owner.id()).map(|it| witness = Some(it))
        } else {
            Ok(())
        };
        match result.and_then(|()| commit_or_fault(&connection, fault)) {
            Ok(()) => {
                self.connection = Some(connection);
                self.target.files.record_content();
                self.stored(applied);
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                self.give_up(connection, false);
                refuse(&self.target, applied, &Arc::new(error));
            }
            Err(error) => {
                // Nothing that this connection caches can be trusted after a failed commit.
                self.abandon(connection);
                self.resolve(applied, witness, error, fault);
            }
        }
    }

    fn stored(&mut self, applied: Vec<AppliedJob>) {
        for AppliedJob { job, done } in applied {
            job.finish(Ok(done));
        }
        self.notifier.committed();
    }

    /// Reads the outcome of a commit that failed, and replies accordingly.
    fn resolve(
        &mut self,
        applied: Vec<AppliedJob>,
        witness: Option<i64>,
        error: rusqlite::Error,
        fault: InjectedFault,
    ) {
        let cause = Arc::new(error);
        let outcome = if fault == InjectedFault::Unreadable {
            Err(injected_fault())
        } else {
            readback::read_outcome(&self.target, self.owner.id(), &applied, witness, &cause)
        };
        match outcome {
            Ok((CommitOutcome::Stored, connection)) => {
                self.connection = Some(connection);
                self.stored(applied);
            }
            Ok((CommitOutcome::Absent, connection)) => {
                self.connection = Some(connection);
                refuse(&self.target, applied, &cause);
            }
            Err(unreadable) => {
                let unreadable = Arc::new(unreadable);
                for AppliedJob { job, .. } in applied {
                    job.finish(Err(CommitError::Unknown(Box::new(Arc::clone(&unreadable)))));
                }
            }
        }
    }

    fn fold_idle_log(&mut self) {
        let large = std::fs::metadata(self.target.place.wal())
            .is_ok_and(|metadata| metadata.len() >= IDLE_LOG_BYTES);
        let is_present = self.target.files.check().is_ok();
        if let Some(connection) = self.connection.as_ref().filter(|_| large && is_present) {
            let _ = fold_log(connection);
            self.target.files.record_content();
        }
    }

    fn finish(&mut self) {
        if let Some(connection) = self.connection.take() {
            if self.target.files.check().is_ok() {
                let _ = fold_log(&connection);
                self.target.files.record_content();
            }
            self.target.close(connection);
        }
        self.owner.release();
    }
}

/// Applies one batch in a savepoint, so that its failure leaves the others alone.
fn apply_alone(
    connection: &Connection,
    owner: &mut SqliteOwner,
    batch: &Batch,
) -> Result<Committed, SqliteRefusal> {
    run(connection, "SAVEPOINT batch")?;
    let result = execute::apply(connection, owner, batch);
    if result.is_err() && !connection.is_autocommit() {
        run(connection, "ROLLBACK TO batch")?;
    }
    if !connection.is_autocommit() {
        run(connection, "RELEASE batch")?;
    }
    result
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

fn commit_or_fault(connection: &Connection, fault: InjectedFault) -> rusqlite::Result<()> {
    match fault {
        InjectedFault::None => run(connection, "COMMIT"),
        InjectedFault::Lost => run(connection, "ROLLBACK").and(Err(injected_fault())),
        InjectedFault::Stored | InjectedFault::Unreadable => {
            run(connection, "COMMIT").and(Err(injected_fault()))
        }
    }
}

fn injected_fault() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_FSYNC), None)
}

fn refuse(target: &SqliteTarget, applied: Vec<AppliedJob>, cause: &SharedSqliteError) {
    for AppliedJob { job, .. } in applied {
        job.finish(Err(store_error(target.path(), cause).into()));
    }
}

/// Checkpoints and truncates the log, unless another process blocks it.
fn fold_log(connection: &Connection) -> rusqlite::Result<()> {
    let waiting: i64 = connection.pragma_query_value(None, "busy_timeout", |row| row.get(0))?;
    connection.busy_timeout(Duration::ZERO)?;
    let folded = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    connection.busy_timeout(Duration::from_millis(waiting.unsigned_abs()))?;
    folded
}
