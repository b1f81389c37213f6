//! The writing task: takes everything that is queued into one transaction and answers after the
//! commit.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::append::{Append, append, which_stand};
use super::connect::{Link, Target};
use super::errors::{Cause, PostgresRefusal, is_unique_violation, may_try_again, sql_error};
use super::group_commit::{GroupCommit, SendOutcome};
use super::listen::Notifier;
use super::owner::Owner;
use super::readback::{Outcome, outcome};
use super::values::Failure;
use crate::batch::{CommitJob, Committed};
use crate::error::{CommitError, StoreError};
use crate::faults::{CommitFault, Faults};
use crate::transaction::{FactKeys, check};

/// How many batches may wait, and so how many share a transaction.
pub(super) const BATCHES: usize = 256;

/// How often a transaction is begun again that met another one, or whose connection broke.
const TRIES: u32 = 8;

/// How long to wait before it is begun again; twice as long each time.
const PAUSE: Duration = Duration::from_millis(20);

/// How long the server may take for one step: longer than it allows itself.
const PATIENCE: Duration = Duration::from_secs(35);

/// How long an answer that was lost is looked for, while the server is away.
const LOOK: Duration = Duration::from_secs(30);

/// How long to wait between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

/// The writing task's own.
pub(super) struct Writer {
    pub(super) target: Arc<Target>,
    pub(super) owner: Arc<Owner>,
    pub(super) notifier: Notifier,
    pub(super) faults: Arc<Faults>,
    pub(super) link: Option<Link>,
    /// Whether looking is to fail, for tests.
    pub(super) is_blind: bool,
}

/// What must be told to each of the batches that shared it.
enum Trouble {
    Cause(Cause),
    Value(String),
    Migrated { store: u32, program: u32 },
}

impl Trouble {
    fn store_error(&self, target: &Target) -> StoreError {
        match self {
            Self::Cause(cause) => cause.store_error(target.url()),
            Self::Value(what) => StoreError::Value(what.clone()),
            Self::Migrated { store, program } => StoreError::Migrated {
                store: *store,
                program: *program,
            },
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cause(cause) => cause.fmt(f),
            Self::Value(what) => what.fmt(f),
            Self::Migrated { store, .. } => write!(f, "it has version {store}"),
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Sql(error) => Self::Cause(error.into()),
            Failure::Value(what) => Self::Value(what),
        }
    }
}

impl From<Cause> for Trouble {
    fn from(cause: Cause) -> Self {
        Self::Cause(cause)
    }
}

/// What is left to do after a transaction was tried.
enum Left {
    /// Nothing: everybody was answered.
    Nothing,
    /// These are tried again: another batch was in their way.
    Again(Vec<CommitJob>),
    /// Nothing of these is stored. They are tried again, if not too often, where that may help.
    Failed {
        jobs: Vec<CommitJob>,
        trouble: Trouble,
        may_help: bool,
    },
}

impl Writer {
    /// Works until nobody can order anything any more.
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
                Left::Nothing => return,
                Left::Again(jobs) => jobs,
                Left::Failed {
                    jobs,
                    trouble,
                    may_help,
                } => {
                    tries += 1;
                    if !may_help || tries == TRIES {
                        return self.refuse(jobs, &trouble);
                    }
                    sleep(PAUSE * 2_u32.saturating_pow(tries)).await;
                    jobs
                }
            };
        }
    }

    fn refuse(&self, jobs: Vec<CommitJob>, trouble: &Trouble) {
        for job in jobs {
            job.finish(Err(trouble.store_error(&self.target).into()));
        }
    }

    async fn write(&mut self, jobs: Vec<CommitJob>) -> Left {
        let link = match self.link.take() {
            Some(link) if !link.client.is_closed() => Ok(link),
            _ => self.owner.connect_writing(&self.target).await,
        };
        match link {
            Ok(link) if jobs.iter().all(|job| Append::of(&job.batch).is_some()) => {
                self.append(link, jobs).await
            }
            Ok(link) => self.transact(link, jobs).await,
            // Whoever waits is told at once, so that a person sees it.
            Err(cause) => Left::Failed {
                jobs,
                trouble: cause.into(),
                may_help: false,
            },
        }
    }

    /// Stores batches of rows only, each by one statement.
    async fn append(&mut self, link: Link, jobs: Vec<CommitJob>) -> Left {
        let mut good = Vec::with_capacity(jobs.len());
        for job in jobs {
            match check(&job.batch) {
                Ok(_) => good.push(job),
                Err(error) => job.finish(Err(error)),
            }
        }
        good.sort_by_cached_key(|job| Append::of(&job.batch).map(|append| append.place()));
        let appends: Vec<Append<'_>> = good.iter().filter_map(|it| Append::of(&it.batch)).collect();
        if appends.is_empty() {
            self.link = Some(link);
            return Left::Nothing;
        }
        let process = self.owner.key();
        let sent = append(&link, process, self.target.version(), &appends);
        match self.hear(&link, sent).await {
            Answer::Came(stored) => {
                let left = self.stored_appends(&stored, good);
                if left.is_empty() {
                    self.link = Some(link);
                    return Left::Nothing;
                }
                // Their claims are wrong; the long way tells why.
                self.transact(link, left).await
            }
            // One of them is at fault. It is found where each is carried out for itself.
            Answer::Refused(_) => self.transact(link, good).await,
            Answer::Lost(cause) => {
                drop(link);
                let looked = self.look(async |link| which_stand(link, &appends).await);
                match looked.await {
                    Ok(stored) => Left::Failed {
                        jobs: self.stored_appends(&stored, good),
                        trouble: cause.into(),
                        may_help: true,
                    },
                    Err(unreadable) => {
                        unknown(good, &unreadable);
                        Left::Nothing
                    }
                }
            }
        }
    }

    /// Answers those that are stored, and returns the others.
    fn stored_appends(&self, stored: &[bool], jobs: Vec<CommitJob>) -> Vec<CommitJob> {
        let mut left = Vec::new();
        for (job, is_stored) in jobs.into_iter().zip(stored) {
            match Append::of(&job.batch).filter(|_| *is_stored) {
                Some(append) => {
                    let done = append.done();
                    job.finish(Ok(done));
                }
                None => left.push(job),
            }
        }
        if left.len() < stored.len() {
            self.notifier.committed();
        }
        left
    }

    /// Carries out batches in one transaction.
    async fn transact(&mut self, link: Link, mut jobs: Vec<CommitJob>) -> Left {
        let keys = FactKeys::of(jobs.iter().map(|job| &job.batch));
        let owner = Arc::clone(&self.owner);
        let process = if keys.takes_leases {
            match owner.register().await {
                Ok(key) => Some(key),
                Err(cause) => {
                    self.link = Some(link);
                    return Left::Failed {
                        jobs,
                        trouble: cause.into(),
                        may_help: false,
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
                return Left::Failed {
                    jobs,
                    trouble: Cause::Silence.into(),
                    may_help: true,
                };
            }
        };
        let (store, program) = (group.read.version, self.target.version());
        if store != i64::from(program) || results.iter().all(Result::is_err) {
            let is_ended = timeout(PATIENCE, group.roll_back()).await;
            self.link = matches!(is_ended, Ok(Ok(()))).then_some(link);
            if store == i64::from(program) {
                answer(jobs, results);
                return Left::Nothing;
            }
            let store = u32::try_from(store).unwrap_or(u32::MAX);
            return Left::Failed {
                jobs,
                trouble: Trouble::Migrated { store, program },
                may_help: false,
            };
        }
        let witness = group.read.witness;
        match self.hear(&link, group.commit()).await {
            Answer::Came(SendOutcome::Stored) => {
                self.link = Some(link);
                answer(jobs, results);
                self.notifier.committed();
                Left::Nothing
            }
            Answer::Came(SendOutcome::Refused { batch, refusal }) => {
                self.link = Some(link);
                match refusal {
                    // Somebody made the same at the same time. Now it is there, and will be seen.
                    PostgresRefusal::Engine(error)
                        if may_try_again(&error) || is_unique_violation(&error) =>
                    {
                        Left::Failed {
                            jobs,
                            trouble: Failure::Sql(error).into(),
                            may_help: true,
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
                        Left::Again(jobs)
                    }
                }
            }
            Answer::Refused(error) => self.failed(link, jobs, error.into()).await,
            Answer::Lost(cause) => {
                drop(link);
                self.resolve(jobs, results, witness, cause).await
            }
        }
    }

    /// Ends a transaction that failed before its commit was sent.
    async fn failed(&mut self, link: Link, jobs: Vec<CommitJob>, failure: Failure) -> Left {
        let is_broken = match &failure {
            Failure::Sql(error) => link.is_broken_by(error),
            Failure::Value(_) => false,
        };
        let may_help = match &failure {
            Failure::Sql(error) => is_broken || may_try_again(error),
            Failure::Value(_) => false,
        };
        if !is_broken && let Ok(Ok(_)) = timeout(PATIENCE, link.say("ROLLBACK")).await {
            self.link = Some(link);
        }
        Left::Failed {
            jobs,
            trouble: failure.into(),
            may_help,
        }
    }

    /// Finds out by looking what became of a commit whose answer was lost.
    async fn resolve(
        &mut self,
        jobs: Vec<CommitJob>,
        results: Vec<Result<Committed, CommitError>>,
        witness: i64,
        cause: Cause,
    ) -> Left {
        let process = self.owner.id().to_string();
        let looked = self.look(async |link| outcome(link, &process, witness).await);
        match looked.await {
            Ok(Outcome::Stored) => {
                answer(jobs, results);
                self.notifier.committed();
                Left::Nothing
            }
            Ok(Outcome::Absent) => Left::Failed {
                jobs,
                trouble: cause.into(),
                may_help: true,
            },
            Err(unreadable) => {
                unknown(jobs, &unreadable);
                Left::Nothing
            }
        }
    }

    /// Waits for what came of a commit.
    async fn hear<T>(
        &mut self,
        link: &Link,
        sent: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Answer<T> {
        let fault = self.faults.take_commit();
        self.is_blind = fault == CommitFault::Unreadable;
        if fault == CommitFault::Lost {
            return Answer::Lost(Cause::Silence);
        }
        match timeout(PATIENCE, sent).await {
            Ok(Ok(answer)) if fault == CommitFault::None => Answer::Came(answer),
            Ok(Err(error)) if !link.is_broken_by(&error) => Answer::Refused(error),
            Ok(Err(error)) => Answer::Lost(error.into()),
            Ok(Ok(_)) | Err(_) => Answer::Lost(Cause::Silence),
        }
    }

    /// Looks at something over a connection of its own, until the server answers or it is too late.
    async fn look<T>(
        &mut self,
        look: impl AsyncFn(&Link) -> Result<T, Failure>,
    ) -> Result<T, Trouble> {
        let end = Instant::now() + LOOK;
        loop {
            let once = async {
                let link = self.owner.connect_writing(&self.target).await?;
                let found = look(&link).await?;
                Ok::<_, Trouble>((link, found))
            };
            let trouble = match timeout(PATIENCE, once).await {
                _ if self.is_blind || self.faults.is_look_lost() => Cause::Silence.into(),
                Ok(Ok((link, found))) => {
                    self.link = Some(link);
                    return Ok(found);
                }
                Ok(Err(trouble)) => trouble,
                Err(_) => Cause::Silence.into(),
            };
            if self.is_blind || Instant::now() >= end {
                return Err(trouble);
            }
            sleep(LOOK_PAUSE).await;
        }
    }
}

/// What came back of a commit.
enum Answer<T> {
    /// It was carried out.
    Came(T),
    /// It was refused, so nothing is stored.
    Refused(tokio_postgres::Error),
    /// Nobody knows.
    Lost(Cause),
}

/// Begins a transaction and decides the batches; their writes are not sent yet.
async fn decide_all<'a>(
    link: &'a Link,
    owner: &Owner,
    process: Option<i64>,
    keys: &FactKeys,
    jobs: &[CommitJob],
) -> Result<(GroupCommit<'a>, Vec<Result<Committed, CommitError>>), Failure> {
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

fn answer(jobs: Vec<CommitJob>, results: Vec<Result<Committed, CommitError>>) {
    for (job, result) in jobs.into_iter().zip(results) {
        job.finish(result);
    }
}

fn unknown(jobs: Vec<CommitJob>, trouble: &Trouble) {
    let why = trouble.to_string();
    for job in jobs {
        job.finish(Err(CommitError::Unknown(why.clone().into())));
    }
}
