//! The store of engine tests: in memory, or on the engine that the environment names.

use std::any::Any;
use std::env;
use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use ikigai_core::{AgentId, Micros, ProcessId};
use ikigai_store::{
    Batch, BoxFuture, CommitError, Committed, Log, ProcessRecord, ReadFuture, ReadLog as _,
    StoreError, Watch,
};
use tokio::sync::{mpsc, watch};
use tokio::task::unconstrained;

use crate::forwarded_reads::forward_reads;
use crate::postgres::LentDatabase;
use crate::stores::open_log;
use crate::{MemoryStore, block_on};

/// Environment variable that names the engine.
const ENGINE: &str = "IKIGAI_TEST_ENGINE";

/// Engine of a test run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenEngine {
    /// Memory, the default: fast, without an engine.
    Memory,
    /// One SQLite file per log.
    Sqlite,
    /// One PostgreSQL database per log, on a server.
    Postgres,
}

impl ChosenEngine {
    /// Returns the engine that `IKIGAI_TEST_ENGINE` names.
    pub fn here() -> Self {
        match env::var(ENGINE).as_deref() {
            Err(_) | Ok("memory") => Self::Memory,
            Ok("sqlite") => Self::Sqlite,
            Ok("postgres") => Self::Postgres,
            Ok(other) => panic!("{ENGINE} is memory, sqlite or postgres, not `{other}`"),
        }
    }
}

/// Factor by which a case takes longer on an engine than in memory.
const SLOWER: u32 = 8;

/// Returns the number of cases to run: `long` with `IKIGAI_TEST_LONG=1`, else `short`.
///
/// On an engine it is an eighth of that.
pub fn cases(short: u32, long: u32) -> u32 {
    let cases = if env::var_os("IKIGAI_TEST_LONG").is_some_and(|value| value == "1") {
        long
    } else {
        short
    };
    if ChosenEngine::here() == ChosenEngine::Memory {
        cases
    } else {
        cases.div_ceil(SLOWER)
    }
}

/// A handle of one process on a log of the chosen engine.
///
/// Its futures are ready immediately on every engine, so that a paused clock does not advance while
/// a server works. For the same reason it signals commits itself. A clone is the same process;
/// [`Self::other_process`] is another one.
#[derive(Clone)]
pub struct ChosenStore {
    process: ProcessId,
    /// None once the process is dead.
    inner: Arc<Mutex<Option<Arc<dyn Log>>>>,
    log: Backing,
}

/// The log of several processes.
#[derive(Clone)]
enum Backing {
    Memory(MemoryStore),
    Engine {
        place: String,
        commits: watch::Sender<u64>,
        /// Removes the log on drop.
        keeper: Arc<dyn Any + Send + Sync>,
    },
}

impl fmt::Debug for ChosenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChosenStore")
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

impl ChosenStore {
    /// Makes an empty log and the first process on it.
    pub fn new(process: ProcessId) -> Self {
        let on = |place, keeper| Backing::Engine {
            place,
            commits: watch::Sender::new(0),
            keeper,
        };
        let log = match ChosenEngine::here() {
            ChosenEngine::Memory => Backing::Memory(MemoryStore::new(process)),
            ChosenEngine::Sqlite => {
                let directory = tempfile::tempdir().unwrap();
                let place = directory.path().join("log.db").to_str().unwrap().to_owned();
                on(place, Arc::new(directory))
            }
            ChosenEngine::Postgres => {
                let database = LentDatabase::take();
                on(database.url(), Arc::new(database))
            }
        };
        Self::on(log, process)
    }

    fn on(log: Backing, process: ProcessId) -> Self {
        let inner: Arc<dyn Log> = match &log {
            Backing::Memory(memory) => Arc::new(memory.clone()),
            Backing::Engine { place, .. } => {
                let record = ProcessRecord {
                    id: process,
                    host: "test".to_owned(),
                    pid: std::process::id(),
                    started: Micros(0),
                    machine: None,
                    person: None,
                };
                open_log(place, record).unwrap()
            }
        };
        Self {
            process,
            inner: Arc::new(Mutex::new(Some(inner))),
            log,
        }
    }

    /// Makes a handle of another process on the same log.
    #[must_use]
    pub fn other_process(&self, process: ProcessId) -> Self {
        let log = match &self.log {
            Backing::Memory(memory) => Backing::Memory(memory.other_process(process)),
            log @ Backing::Engine { .. } => log.clone(),
        };
        Self::on(log, process)
    }

    /// Releases the lock of this process's leases, as its death would.
    ///
    /// In memory the handle still writes, and is fenced off; on an engine it is closed.
    pub fn die(&self) {
        match &self.log {
            Backing::Memory(memory) => memory.die(),
            Backing::Engine { .. } => drop(self.lock().take()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<dyn Log>>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inner(&self) -> Result<Arc<dyn Log>, StoreError> {
        self.lock().clone().ok_or(StoreError::Closed)
    }

    fn process(&self) -> ProcessId {
        self.process
    }

    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Log) -> Result<T, StoreError>,
    ) -> ReadFuture<'static, T> {
        let answer = self.inner().and_then(|store| read(&*store));
        Box::pin(ready(answer))
    }

    fn read_rows<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Log) -> Result<T, StoreError>,
    ) -> ReadFuture<'static, T> {
        self.read(read)
    }

    /// Sends the dump; not ready immediately, because the receiver of the lines must run.
    fn dump(&self, of: Option<Vec<AgentId>>, lines: mpsc::Sender<String>) -> ReadFuture<'_, ()> {
        Box::pin(async move { self.inner()?.dump(of, lines).await })
    }

    fn watch(&self) -> Result<Watch, StoreError> {
        match &self.log {
            Backing::Memory(memory) => memory.watch(),
            Backing::Engine {
                commits, keeper, ..
            } => {
                self.inner()?;
                // The log holds the sender, so subscriptions never close.
                Ok(Watch::new(
                    commits.subscribe(),
                    Arc::new((commits.clone(), keeper.clone())),
                ))
            }
        }
    }
}

/// Waits for a reply on this thread, without the cooperative budget of the runtime.
fn now<T>(answer: BoxFuture<'_, T>) -> T {
    block_on(unconstrained(answer))
}

impl Log for ChosenStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed, CommitError>> {
        let store = self.inner().map_err(CommitError::from);
        let outcome = store.and_then(|store| now(store.commit(batch)));
        if let (Backing::Engine { commits, .. }, Ok(_)) = (&self.log, &outcome) {
            commits.send_modify(|count| *count += 1);
        }
        Box::pin(ready(outcome))
    }
}

forward_reads!(ChosenStore, now);
