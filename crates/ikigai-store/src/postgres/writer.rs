//! The writer task: commits all queued batches in one transaction, then replies.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::append::{Append, append, find_stored};
use super::connect::{Link, PostgresTarget};
use super::errors::{PostgresRefusal, ServerError, is_unique_violation, may_try_again, sql_error};
use super::group_commit::{GroupCommit, SendOutcome};
use super::listener::ListenerHandle;
use super::owner::PostgresOwner;
use super::readback::read_outcome;
use super::values::QueryFailure;
use crate::batch::{CommitJob, CommitOutcome, Committed};
use crate::changes::LogChanges;
use crate::error::{CommitError, StoreError};
use crate::faults::{Faults, InjectedFault};
use crate::transaction::{FactKeys, check};

/// Capacity of the queue, and limit of batches per transaction.
pub(super) const BATCHES: usize = 256;

/// Attempts of a transaction that collided with another, or whose connection broke.
const TRIES: u32 = 8;

/// First backoff between attempts; it doubles each time.
const PAUSE: Duration = Duration::from_millis(20);

/// Timeout of one step: longer than the server's own.
const PATIENCE: Duration = Duration::from_secs(35);

/// Time to look up the outcome of a lost reply while the server is away.
const LOOKUP: Duration = Duration::from_secs(30);

/// Pause between two lookups.
const LOOKUP_PAUSE: Duration = Duration::from_millis(200);

/// State of the writer task.
pub(super) struct PostgresWriter {
    pub(super) target: Arc<PostgresTarget>,
    pub(super) owner: Arc<PostgresOwner>,
    pub(super) notifier: ListenerHandle,
    pub(super) faults: Arc<Faults>,
    pub(super) link: Option<Link>,
    /// Lookups fail, for tests.
    pub(super) is_blind: bool,
}

/// Failure that the batches of a transaction share.
enum WriteFailure {
    ServerError(ServerError),
    Value(String),
    Migrated { store: u32, program: u32 },
}

impl WriteFailure {
    fn store_error(&self, target: &PostgresTarget) -> StoreError {
        match self {
            Self::ServerError(cause) => cause.store_error(target.url()),
            Self::Value(what) => StoreError::Value(what.clone()),
            Self::Migrated { store, program } => StoreError::Migrated {
                store: *store,
                program: *program,
            },
        }
    }
}

impl fmt::Display for WriteFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServerError(cause) => cause.fmt(f),
            Self::Value(what) => what.fmt(f),
            Self::Migrated { store, .. } => write!(f, "it has version {store}"),
        }
    }
}

impl From<QueryFailure> for WriteFailure {
    fn from(failure: QueryFailure) -> Self {
        match failure {
            QueryFailure::Sql(error) => Self::ServerError(error.into()),
            QueryFailure::Value(what) => Self::Value(what),
        }
    }
}

impl From<ServerError> for WriteFailure {
    fn from(cause: ServerError) -> Self {
        Self::ServerError(cause)
    }
}

/// Jobs that are left after an attempt.
enum WriteOutcome {
    /// None: every caller got its reply.
    Done,
    /// Retry these: another batch was at fault.
    Retry(Vec<CommitJob>),
    /// None of these is stored. Retry them a limited number of times, if that may help.
    Failed {
        jobs: Vec<CommitJob>,
        trouble: WriteFailure,
        is_retryable: bool,
    },
}

impl PostgresWriter {
    /// Commits batches until the queue is closed.
    pub(super) async fn run(&mut self, mut orders: mpsc::Receiver<CommitJob>) {
        while let Some(first) = orders.recv().await {
            let mut jobs = vec![first];
            while jobs.len() < BATCHES
                && let Ok(job) = orders.try_recv()
            {
                jobs.push(job);
            }
            self.write_all(jobs).await;
        }
    }

    async fn write_all(&mut self, mut jobs: Vec<CommitJob>) {
        let mut tries = 0;
        while !jobs.is_empty() {
            jobs = match self.write(jobs).await {
                WriteOutcome::Done => return,
                WriteOutcome::Retry(jobs) => jobs,
                WriteOutcome::Failed {
                    jobs,
                    trouble,
                    is_retryable,
                } => {
                    tries += 1;
                    if !is_retryable || tries == TRIES {
                        return self.refuse(jobs, &trouble);
                    }
                    sleep(PAUSE * 2_u32.saturating_pow(tries)).await;
                    jobs
                }
            };
        }
    }

    fn refuse(&self, jobs: Vec<CommitJob>, trouble: &WriteFailure) {
        for job in jobs {
            job.finish(Err(trouble.store_error(&self.target).into()));
        }
    }

    async fn write(&mut self, jobs: Vec<CommitJob>) -> WriteOutcome {
        let link = match self.link.take() {
            Some(link) if !link.client.is_closed() => Ok(link),
            _ => self.connect(&jobs).await,
        };
        match link {
            Ok(link) if jobs.iter().all(|job| Append::of(&job.batch).is_some()) => {
                self.append(link, jobs).await
            }
            Ok(link) => self.transact(link, jobs).await,
            // Reply immediately, so that the user sees it.
            Err(cause) => WriteOutcome::Failed {
                jobs,
                trouble: cause.into(),
                is_retryable: false,
            },
        }
    }

    /// Connects; meanwhile the listener connects too, if these jobs need the process to be registered.
    async fn connect(&self, jobs: &[CommitJob]) -> Result<Link, ServerError> {
        let keys = FactKeys::of(jobs.iter().map(|job| &job.batch));
        let registered = async {
            if keys.registers && self.owner.key().is_none() {
                // A failure is reported by the transaction, which registers again.
                let _ = self.owner.register().await;
            }
        };
        let connected = self.owner.connect_writing(&self.target);
        tokio::join!(connected, registered).0
    }

    /// Stores batches that have only rows, each by one statement.
    async fn append(&mut self, link: Link, jobs: Vec<CommitJob>) -> WriteOutcome {
        let mut good = Vec::with_capacity(jobs.len());
        for job in jobs {
            match check(&job.batch) {
                Ok(_) => good.push(job),
                Err(error) => job.finish(Err(error)),
            }
        }
        good.sort_by_cached_key(|job| Append::of(&job.batch).map(|append| append.sort_key()));
        let appends: Vec<Append<'_>> = good.iter().filter_map(|it| Append::of(&it.batch)).collect();
        if appends.is_empty() {
            self.link = Some(link);
            return WriteOutcome::Done;
        }
        let process = self.owner.key();
        let sent = append(&link, process, self.target.version(), &appends);
        match self.receive(&link, sent).await {
            CommitReply::Received(stored) => {
                let left = self.stored_appends(&stored, good);
                if left.is_empty() {
                    self.link = Some(link);
                    return WriteOutcome::Done;
                }
                // Their claims are wrong; the full transaction finds the reason.
                self.transact(link, left).await
            }
            // One of them is at fault; the full transaction finds it.
            CommitReply::Refused(_) => self.transact(link, good).await,
            CommitReply::Lost(cause) => {
                drop(link);
                let looked = self.lookup(async |link| find_stored(link, &appends).await);
                match looked.await {
                    Ok(stored) => WriteOutcome::Failed {
                        jobs: self.stored_appends(&stored, good),
                        trouble: cause.into(),
                        is_retryable: true,
                    },
                    Err(unreadable) => {
                        unknown(good, &unreadable);
                        WriteOutcome::Done
                    }
                }
            }
        }
    }

    /// Replies to the stored jobs, and returns the others.
    fn stored_appends(&self, stored: &[bool], jobs: Vec<CommitJob>) -> Vec<CommitJob> {
        let mut left = Vec::new();
        let mut changes = LogChanges::default();
        for (job, is_stored) in jobs.into_iter().zip(stored) {
            match Append::of(&job.batch).filter(|_| *is_stored) {
                Some(append) => {
                    let done = append.committed();
                    changes.add(&LogChanges::of_commit(&job.batch, &done));
                    job.finish(Ok(done));
                }
                None => left.push(job),
            }
        }
        if left.len() < stored.len() {
            self.notifier.committed(&changes);
        }
        left
    }

    /// Commits batches in one transaction.
    async fn transact(&mut self, link: Link, mut jobs: Vec<CommitJob>) -> WriteOutcome {
        let keys = FactKeys::of(jobs.iter().map(|job| &job.batch));
        let owner = Arc::clone(&self.owner);
        let process = if keys.registers {
            match owner.register().await {
                Ok(key) => Some(key),
                Err(cause) => {
                    self.link = Some(link);
                    return WriteOutcome::Failed {
                        jobs,
                        trouble: cause.into(),
                        is_retryable: false,
                    };
                }
            }
        } else {
            owner.key()
        };
        let decided = decide_all(&link, &owner, process, &keys, &jobs);
        let (group, results) = match timeout(PATIENCE, decided).await {
            Ok(Ok(decided)) => decided,
            Ok(Err(failure)) => return self.failed(link, jobs, failure).await,
            Err(_) => {
                return WriteOutcome::Failed {
                    jobs,
                    trouble: ServerError::Silence.into(),
                    is_retryable: true,
                };
            }
        };
        let (store, program) = (group.read.version, self.target.version());
        if store != i64::from(program) || results.iter().all(Result::is_err) {
            let is_ended = timeout(PATIENCE, group.roll_back()).await;
            self.link = matches!(is_ended, Ok(Ok(()))).then_some(link);
            if store == i64::from(program) {
                answer(jobs, results);
                return WriteOutcome::Done;
            }
            let store = u32::try_from(store).unwrap_or(u32::MAX);
            return WriteOutcome::Failed {
                jobs,
                trouble: WriteFailure::Migrated { store, program },
                is_retryable: false,
            };
        }
        let witness = group.read.witness;
        match self.receive(&link, group.commit()).await {
            CommitReply::Received(SendOutcome::Stored) => {
                self.link = Some(link);
                let changes = answer(jobs, results);
                self.notifier.committed(&changes);
                WriteOutcome::Done
            }
            CommitReply::Received(SendOutcome::Refused { batch, refusal }) => {
                self.link = Some(link);
                match refusal {
                    // Another process made the same at the same time; the retry will see it.
                    PostgresRefusal::Engine(error)
                        if may_try_again(&error) || is_unique_violation(&error) =>
                    {
                        WriteOutcome::Failed {
                            jobs,
                            trouble: QueryFailure::Sql(error).into(),
                            is_retryable: true,
                        }
                    }
                    refusal => {
                        let error = match refusal {
                            PostgresRefusal::Commit(error) => error,
                            PostgresRefusal::Engine(error) => {
                                sql_error(self.target.url(), error).into()
                            }
                        };
                        jobs.remove(batch).finish(Err(error));
                        WriteOutcome::Retry(jobs)
                    }
                }
            }
            CommitReply::Refused(error) => self.failed(link, jobs, error.into()).await,
            CommitReply::Lost(cause) => {
                drop(link);
                self.resolve(jobs, results, witness, cause).await
            }
        }
    }

    /// Rolls back a transaction that failed before its commit was sent.
    async fn failed(
        &mut self,
        link: Link,
        jobs: Vec<CommitJob>,
        failure: QueryFailure,
    ) -> WriteOutcome {
        let is_broken = match &failure {
            QueryFailure::Sql(error) => link.is_broken_by(error),
            QueryFailure::Value(_) => false,
        };
        let is_retryable = match &failure {
            QueryFailure::Sql(error) => is_broken || may_try_again(error),
            QueryFailure::Value(_) => false,
        };
        if !is_broken && let Ok(Ok(_)) = timeout(PATIENCE, link.command("ROLLBACK")).await {
            self.link = Some(link);
        }
        WriteOutcome::Failed {
            jobs,
            trouble: failure.into(),
            is_retryable,
        }
    }

    /// Looks up the outcome of a commit whose reply was lost.
    async fn resolve(
        &mut self,
        jobs: Vec<CommitJob>,
        results: Vec<Result<Committed, CommitError>>,
        witness: i64,
        cause: ServerError,
    ) -> WriteOutcome {
        let process = self.owner.id().to_string();
        let looked = self.lookup(async |link| read_outcome(link, &process, witness).await);
        match looked.await {
            Ok(CommitOutcome::Stored) => {
                let changes = answer(jobs, results);
                self.notifier.committed(&changes);
                WriteOutcome::Done
            }
            Ok(CommitOutcome::Absent) => WriteOutcome::Failed {
                jobs,
                trouble: cause.into(),
                is_retryable: true,
            },
            Err(unreadable) => {
                unknown(jobs, &unreadable);
                WriteOutcome::Done
            }
        }
    }

    /// Waits for the reply to a commit.
    async fn receive<T>(
        &mut self,
        link: &Link,
        sent: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> CommitReply<T> {
        let fault = self.faults.take_commit();
        self.is_blind = fault == InjectedFault::Unreadable;
        if fault == InjectedFault::Lost {
            return CommitReply::Lost(ServerError::Silence);
        }
        match timeout(PATIENCE, sent).await {
            Ok(Ok(answer)) if fault == InjectedFault::None => CommitReply::Received(answer),
            Ok(Err(error)) if !link.is_broken_by(&error) => CommitReply::Refused(error),
            Ok(Err(error)) => CommitReply::Lost(error.into()),
            Ok(Ok(_)) | Err(_) => CommitReply::Lost(ServerError::Silence),
        }
    }

    /// Runs a lookup over a new connection, until the server answers or time is up.
    async fn lookup<T>(
        &mut self,
        read: impl AsyncFn(&Link) -> Result<T, QueryFailure>,
    ) -> Result<T, WriteFailure> {
        let end = Instant::now() + LOOKUP;
        loop {
            let once = async {
                let link = self.owner.connect_writing(&self.target).await?;
                let found = read(&link).await?;
                Ok::<_, WriteFailure>((link, found))
            };
            let trouble = match timeout(PATIENCE, once).await {
                _ if self.is_blind || self.faults.is_look_lost() => ServerError::Silence.into(),
                Ok(Ok((link, found))) => {
                    self.link = Some(link);
                    return Ok(found);
                }
                Ok(Err(trouble)) => trouble,
                Err(_) => ServerError::Silence.into(),
            };
            if self.is_blind || Instant::now() >= end {
                return Err(trouble);
            }
            sleep(LOOKUP_PAUSE).await;
        }
    }
}

enum CommitReply<T> {
    /// The request succeeded.
    Received(T),
    /// The request failed, and nothing is stored.
    Refused(tokio_postgres::Error),
    /// The outcome is unknown.
    Lost(ServerError),
}

/// Begins a transaction and decides the batches; their writes are not sent yet.
async fn decide_all<'a>(
    link: &'a Link,
    owner: &PostgresOwner,
    process: Option<i64>,
    keys: &FactKeys,
    jobs: &[CommitJob],
) -> Result<(GroupCommit<'a>, Vec<Result<Committed, CommitError>>), QueryFailure> {
    let mut group = GroupCommit::begin(link, owner, process, keys).await?;
    let mut results = Vec::with_capacity(jobs.len());
    for (number, job) in jobs.iter().enumerate() {
        results.push(match group.add(number, &job.batch) {
            Ok(done) => Ok(done),
            Err(PostgresRefusal::Commit(error)) => Err(error),
            Err(PostgresRefusal::Engine(error)) => return Err(error.into()),
        });
    }
    Ok((group, results))
}

/// Replies to all callers; returns what the commits changed.
fn answer(jobs: Vec<CommitJob>, results: Vec<Result<Committed, CommitError>>) -> LogChanges {
    let mut changes = LogChanges::default();
    for (job, result) in jobs.into_iter().zip(results) {
        if let Ok(done) = &result {
            changes.add(&LogChanges::of_commit(&job.batch, done));
        }
        job.finish(result);
    }
    changes
}

fn unknown(jobs: Vec<CommitJob>, trouble: &WriteFailure) {
    let why = trouble.to_string();
    for job in jobs {
        job.finish(Err(CommitError::Unknown(why.clone().into())));
    }
}
