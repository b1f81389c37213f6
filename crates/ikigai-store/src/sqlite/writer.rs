//! The writing thread: takes everything that is queued into one transaction and answers after the
//! commit.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, ffi};
use tokio::sync::oneshot;

use super::connect::Target;
use super::errors::{Cause, SqliteRefusal, breaks_connection, store_error};
use super::execute;
use super::identity::Absence;
use super::locks::Owner;
use super::queue::Orders;
use super::readback::{self, Outcome};
use super::search;
use super::watch::Notifier;
use crate::batch::{Batch, CommitJob, Committed};
use crate::error::{CommitError, StoreError};
use crate::faults::{CommitFault, Faults};

/// How many batches may wait, and so how many share a transaction.
pub(super) const BATCHES: usize = 256;

/// How long nothing must have come before the log is folded into the database.
const IDLE: Duration = Duration::from_secs(1);

/// A log smaller than this is left until the store is closed.
const IDLE_LOG_BYTES: u64 = 256 * 1024;

/// SQLite's own limit of pages.
const MAX_PAGES: u32 = 0xffff_fffe;

/// What the thread is asked for.
pub(super) enum Task {
    /// To write a batch.
    Write(CommitJob),
    /// To bring the search index nearer to the log; the answer says how many rows are left.
    Index {
        begin: Begin,
        answer: oneshot::Sender<Result<u64, StoreError>>,
    },
}

/// Where the search index goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// Where it ends.
    Here,
    /// At the first row: what it has is thrown away.
    Anew,
}

/// A batch that was carried out in a transaction that is not committed yet.
pub(super) struct Applied {
    pub(super) job: CommitJob,
    pub(super) done: Committed,
}

/// The writing thread's own.
pub(super) struct Writer {
    target: Arc<Target>,
    owner: Owner,
    notifier: Notifier,
    faults: Arc<Faults>,
    connection: Option<Connection>,
    page_limit: u32,
}

/// Why a transaction could not be begun; each waiting batch is told.
enum Trouble {
    Sql(Cause),
    Away(Absence),
    Migrated { store: u32, program: u32 },
}

impl Trouble {
    fn store_error(&self, target: &Target) -> StoreError {
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

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(Arc::new(error))
    }
}

impl Writer {
    /// Starts the thread. Its connection is opened with the first batch.
    pub(super) fn spawn(
        target: Arc<Target>,
        owner: Owner,
        notifier: Notifier,
        faults: Arc<Faults>,
        tasks: Orders<Task>,
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

    fn run(&mut self, tasks: &Orders<Task>) {
        // Whether anything was written since the log was last looked at, and how long to wait
        // for more of it.
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

    /// Carries out a task with all that wait behind it.
    fn carry_out(&mut self, first: Task, tasks: &Orders<Task>) {
        let mut waiting = Vec::new();
        let mut asked = Vec::new();
        let mut next = Some(first);
        while let Some(task) = next {
            match task {
                Task::Write(job) => waiting.push(job),
                Task::Index { begin, answer } => asked.push((begin, answer)),
            }
            let is_room = waiting.len() + asked.len() < BATCHES;
            next = is_room.then(|| tasks.at_once().ok()).flatten();
        }
        while !waiting.is_empty() {
            waiting = self.write(waiting);
        }
        for (begin, answer) in asked {
            // A caller that went away does not care.
            let _ = answer.send(self.index(begin));
        }
    }

    /// Brings the search index one step nearer to the log, and says how many rows are left.
    fn index(&mut self, begin: Begin) -> Result<u64, StoreError> {
        let target = Arc::clone(&self.target);
        let fail = |error| target.error(error);
        // Whoever only searches does not keep others from writing.
        let connection = self.connect().map_err(fail)?;
        let behind = search::behind(&connection);
        self.connection = Some(connection);
        if begin == Begin::Here && behind.map_err(fail)? == 0 {
            return Ok(0);
        }
        let connection = self
            .begin()
            .map_err(|trouble| trouble.store_error(&target))?;
        let indexed = match begin {
            Begin::Here => search::step(&connection),
            Begin::Anew => search::forget(&connection),
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

    /// Uses a quiet moment for the search index; says whether nothing is left to do. One that
    /// cannot be written is left to whoever searches.
    fn index_idle(&mut self) -> bool {
        self.index(Begin::Here).unwrap_or(0) == 0
    }

    /// Writes the batches in one transaction, and returns those that must be tried again because
    /// the failure of another one ended it.
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
        // A batch without company is rolled back with its transaction.
        let apply = if jobs.len() == 1 {
            execute::apply
        } else {
            apply_alone
        };
        let mut applied = Vec::with_capacity(jobs.len());
        let mut jobs = jobs.into_iter();
        while let Some(job) = jobs.next() {
            match apply(&connection, &mut self.owner, &job.batch) {
                Ok(done) => applied.push(Applied { job, done }),
                Err(SqliteRefusal::Commit(error)) => job.finish(Err(error)),
                Err(SqliteRefusal::Engine(error)) => {
                    let broken = breaks_connection(&error);
                    job.finish(Err(self.target.error(error).into()));
                    // SQLite rolls everything back after some errors, the batches before it too.
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

    fn begin(&mut self) -> Result<Connection, Trouble> {
        let connection = self.connect()?;
        let limit = self.faults.page_limit();
        if limit != self.page_limit {
            let pages = if limit == 0 { MAX_PAGES } else { limit };
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
            self.page_limit = limit;
        }
        // Nothing is begun in files that are not at their paths; the connection stays, since they
        // may come back.
        if let Err(absence) = self.target.files.check() {
            self.connection = Some(connection);
            return Err(Trouble::Away(absence));
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
        Err(Trouble::Migrated { store, program })
    }

    /// Leaves a transaction without a trace, and the connection if it is `broken`.
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

    fn commit(&mut self, connection: Connection, applied: Vec<Applied>) {
        if let Err(absence) = self.target.files.check() {
            self.give_up(connection, false);
            for Applied { job, .. } in applied {
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
                // Nothing that this connection believes can be trusted after a failed commit.
                self.abandon(connection);
                self.resolve(applied, witness, error, fault);
            }
        }
    }

    fn stored(&mut self, applied: Vec<Applied>) {
        for Applied { job, done } in applied {
            job.finish(Ok(done));
        }
        self.notifier.committed();
    }

    /// Finds out by reading what became of a commit that failed, and answers accordingly.
    fn resolve(
        &mut self,
        applied: Vec<Applied>,
        witness: Option<i64>,
        error: rusqlite::Error,
        fault: CommitFault,
    ) {
        let cause = Arc::new(error);
        let outcome = if fault == CommitFault::Unreadable {
            Err(injected())
        } else {
            readback::outcome(&self.target, self.owner.id(), &applied, witness, &cause)
        };
        match outcome {
            Ok((Outcome::Stored, connection)) => {
                self.connection = Some(connection);
                self.stored(applied);
            }
            Ok((Outcome::Absent, connection)) => {
                self.connection = Some(connection);
                refuse(&self.target, applied, &cause);
            }
            Err(unreadable) => {
                let unreadable = Arc::new(unreadable);
                for Applied { job, .. } in applied {
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

/// Carries out one batch so that its failure leaves the others of the transaction alone.
fn apply_alone(
    connection: &Connection,
    owner: &mut Owner,
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

fn commit_or_fault(connection: &Connection, fault: CommitFault) -> rusqlite::Result<()> {
    match fault {
        CommitFault::None => run(connection, "COMMIT"),
        CommitFault::Lost => run(connection, "ROLLBACK").and(Err(injected())),
        CommitFault::Stored | CommitFault::Unreadable => {
            run(connection, "COMMIT").and(Err(injected()))
        }
    }
}

fn injected() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_FSYNC), None)
}

fn refuse(target: &Target, applied: Vec<Applied>, cause: &Cause) {
    for Applied { job, .. } in applied {
        job.finish(Err(store_error(target.path(), cause).into()));
    }
}

/// Moves the log into the database and empties it, unless somebody is in the way.
fn fold_log(connection: &Connection) -> rusqlite::Result<()> {
    let waiting: i64 = connection.pragma_query_value(None, "busy_timeout", |row| row.get(0))?;
    connection.busy_timeout(Duration::ZERO)?;
    let folded = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    connection.busy_timeout(Duration::from_millis(waiting.unsigned_abs()))?;
    folded
}
