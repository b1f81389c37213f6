//! A store that fails on demand.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ikigai_core::{AgentId, ProcessId, Row};
use ikigai_store::{
    Batch, BoxFuture, CommitError, Committed, Log, ReadFuture, RestorePoint, StoreError, Watch,
};
use tokio::sync::mpsc::Sender;

use crate::forwarded_reads::forward_reads;

/// Fault of a commit.
#[derive(Debug)]
pub enum CommitFault {
    /// Nothing is written, and the caller gets the error.
    Refused(StoreError),
    /// Everything is written, but the reply says that the outcome is unknown.
    WrittenUnknown,
    /// Nothing is written, but the reply says that the outcome is unknown.
    LostUnknown,
    /// Everything is written, and the caller never gets a reply.
    WrittenAndSilent,
    /// Everything is written, after this delay.
    Slow(Duration),
}

/// Wraps a store and fails chosen calls; all others go through.
///
/// Commits and reads are counted apart, from 1, as they are made through this handle.
pub struct FaultyStore {
    inner: Arc<dyn Log>,
    script: Mutex<FaultScript>,
}

#[derive(Default)]
struct FaultScript {
    commits: u64,
    reads: u64,
    commit_faults: BTreeMap<u64, CommitFault>,
    read_faults: BTreeMap<u64, StoreError>,
    /// Faults of reads by the number of the commit before them.
    faults_after_commits: BTreeMap<u64, StoreError>,
    away: Option<fn() -> StoreError>,
    rows_read: usize,
    /// State of the random number generator for delays.
    hesitates: Option<u64>,
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let script = self.script();
        f.debug_struct("FaultyStore")
            .field("commits", &script.commits)
            .field("reads", &script.reads)
            .finish_non_exhaustive()
    }
}

impl FaultyStore {
    /// Wraps a store without faults.
    pub fn new(inner: Arc<dyn Log>) -> Self {
        Self {
            inner,
            script: Mutex::default(),
        }
    }

    /// Fails the `nth` commit from now on; 1 is the next.
    pub fn fail_commit(&self, nth: u64, fault: CommitFault) {
        let mut script = self.script();
        let at = script.commits + nth;
        script.commit_faults.insert(at, fault);
    }

    /// Fails the `nth` read from now on; 1 is the next. Starting a watch counts as a read.
    pub fn fail_read(&self, nth: u64, error: StoreError) {
        let mut script = self.script();
        let at = script.reads + nth;
        script.read_faults.insert(at, error);
    }

    /// Fails the first read after the `nth` commit from now on.
    pub fn fail_read_after_commit(&self, nth: u64, error: StoreError) {
        let mut script = self.script();
        let at = script.commits + nth;
        script.faults_after_commits.insert(at, error);
    }

    /// Yields to other tasks before and after calls, in an order that the seed decides.
    ///
    /// A store in memory is ready immediately, so that otherwise nothing would interleave.
    pub fn hesitate(&self, seed: u64) {
        self.script().hesitates = Some(seed);
    }

    async fn let_others_go(&self) {
        let turns = {
            let mut script = self.script();
            let Some(state) = &mut script.hesitates else {
                return;
            };
            // Knuth's constants; the upper bits are the good ones.
            *state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *state >> 62
        };
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    }

    /// Removes all planned faults.
    pub fn mend(&self) {
        let mut script = self.script();
        script.commit_faults.clear();
        script.read_faults.clear();
        script.faults_after_commits.clear();
        script.away = None;
    }

    /// Fails every commit and read until [`Self::come_back`]; nothing is written meanwhile.
    pub fn go_away(&self, error: fn() -> StoreError) {
        self.script().away = Some(error);
    }

    /// Ends the failures that [`Self::go_away`] started.
    pub fn come_back(&self) {
        self.script().away = None;
    }

    /// Returns the number of commits so far.
    pub fn commits(&self) -> u64 {
        self.script().commits
    }

    /// Returns the number of reads so far.
    pub fn reads(&self) -> u64 {
        self.script().reads
    }

    /// Returns the number of rows returned so far.
    pub fn rows_read(&self) -> usize {
        self.script().rows_read
    }

    fn process(&self) -> ProcessId {
        self.inner.process()
    }

    /// Reads rows and counts them.
    fn read_rows<'a, T: CountRows + Send + 'a>(
        &'a self,
        reading: impl FnOnce(&'a dyn Log) -> ReadFuture<'a, T> + Send + 'a,
    ) -> ReadFuture<'a, T> {
        Box::pin(async move {
            let rows = self.read(reading).await?;
            self.script().rows_read += rows.count_rows();
            Ok(rows)
        })
    }

    fn dump(&self, of: Option<Vec<AgentId>>, lines: Sender<String>) -> ReadFuture<'_, ()> {
        self.read(move |store| store.dump(of, lines))
    }

    fn watch(&self) -> Result<Watch, StoreError> {
        self.next_read()?;
        self.inner.watch()
    }

    fn script(&self) -> MutexGuard<'_, FaultScript> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_commit(&self) -> Option<CommitFault> {
        let mut script = self.script();
        script.commits += 1;
        let now = script.commits;
        let planned = script.commit_faults.remove(&now);
        script
            .away
            .map(|error| CommitFault::Refused(error()))
            .or(planned)
    }

    fn next_read(&self) -> Result<(), StoreError> {
        let mut script = self.script();
        script.reads += 1;
        let now = script.reads;
        let commits = script.commits;
        let after = script.faults_after_commits.remove(&commits);
        let planned = script.read_faults.remove(&now).or(after);
        script
            .away
            .map(|error| error())
            .or(planned)
            .map_or(Ok(()), Err)
    }

    fn read<'a, T: Send + 'a>(
        &'a self,
        reading: impl FnOnce(&'a dyn Log) -> ReadFuture<'a, T> + Send + 'a,
    ) -> ReadFuture<'a, T> {
        Box::pin(async move {
            self.let_others_go().await;
            self.next_read()?;
            let read = reading(&*self.inner).await;
            self.let_others_go().await;
            read
        })
    }
}

/// Answer of a read with a number of rows.
trait CountRows {
    fn count_rows(&self) -> usize;
}

impl CountRows for Vec<Row> {
    fn count_rows(&self) -> usize {
        self.len()
    }
}

impl CountRows for Option<RestorePoint> {
    fn count_rows(&self) -> usize {
        self.as_ref().map_or(0, |it| it.control.len())
    }
}

impl Log for FaultyStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed, CommitError>> {
        Box::pin(async move {
            self.let_others_go().await;
            match self.next_commit() {
                None => {
                    let outcome = self.inner.commit(batch).await;
                    self.let_others_go().await;
                    outcome
                }
                Some(CommitFault::Refused(error)) => Err(error.into()),
                Some(CommitFault::LostUnknown) => Err(unknown()),
                Some(CommitFault::WrittenAndSilent) => {
                    self.inner.commit(batch).await?;
                    std::future::pending().await
                }
                Some(CommitFault::Slow(pause)) => {
                    tokio::time::sleep(pause).await;
                    self.inner.commit(batch).await
                }
                Some(CommitFault::WrittenUnknown) => {
                    self.inner.commit(batch).await?;
                    Err(unknown())
                }
            }
        })
    }
}

forward_reads!(FaultyStore, std::convert::identity);

fn unknown() -> CommitError {
    CommitError::Unknown("the connection broke, as the test's script says".into())
}
