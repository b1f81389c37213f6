//! Generated stores for benches: one agent with many rows, generated once and kept on disk.

mod history;
mod maker;
pub mod rounds;
mod sample_engine;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ikigai_core::data::ForkContext;
use ikigai_core::fork::{ForkOrder, fork_events};
use ikigai_core::{
    AgentId, AgentState, Epoch, Micros, NewRow, ProcessId, Row, RowRef, Seq, SessionId, StoredKind,
};
use ikigai_store::postgres::{self, Url};
use ikigai_store::sqlite::SqliteOptions;
use ikigai_store::{
    AgentEffect, Batch, Effect, HeadClaim, LeaseClaim, Log, NewAgent, PostgresStore, ProcessRecord,
    SqliteStore, StoreError,
};
use serde_json::Map;

pub use sample_engine::{SampleEngine, server};

use crate::IdSource;
use crate::postgres::QueryRows;
use maker::Maker;

/// Version of the generator; a new one regenerates all samples.
const VERSION: u32 = 4;

/// One of the stores that benches compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    name: &'static str,
    file: &'static str,
    rows: u64,
    control: u64,
}

impl Sample {
    /// Minimal sample.
    pub const TEN: Self = Self::new("10", "1e1", 10, 2);
    /// A short conversation.
    pub const HUNDRED: Self = Self::new("10²", "1e2", 100, 2);
    /// Baseline of comparisons.
    pub const THOUSAND: Self = Self::new("10³", "1e3", 1_000, 2);
    /// Some days.
    pub const TEN_THOUSAND: Self = Self::new("10⁴", "1e4", 10_000, 10);
    /// Months.
    pub const HUNDRED_THOUSAND: Self = Self::new("10⁵", "1e5", 100_000, 100);
    /// Years.
    pub const MILLION: Self = Self::new("10⁶", "1e6", 1_000_000, 1_000);
    /// Years of an agent that rewinds all the time.
    pub const BENT: Self = Self::new("10⁶ bent", "1e6-bent", 1_000_000, 100_000);

    /// Samples that show growth.
    pub const ALL: [Self; 5] = [
        Self::HUNDRED,
        Self::THOUSAND,
        Self::TEN_THOUSAND,
        Self::MILLION,
        Self::BENT,
    ];

    /// Returns the number of rows of its agent.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    const fn new(name: &'static str, file: &'static str, rows: u64, control: u64) -> Self {
        Self {
            name,
            file,
            rows,
            control,
        }
    }

    /// Returns the store for reading; generates it unless an earlier run did.
    pub fn kept(self, on: SampleEngine) -> StoredSample {
        let stamp = on.directory().join(format!("{}.stamp", self.file));
        let wanted = format!("version {VERSION}, {self:?}, {}", on.migrations());
        if !fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            on.found(self.file);
            Maker::new(self, on).make();
            on.settle(self.file);
            fs::write(&stamp, wanted).unwrap();
        }
        StoredSample::new(on, self.file.to_owned())
    }

    /// Returns a new writable copy of the store.
    pub fn copy(self, on: SampleEngine, purpose: &str) -> StoredSample {
        self.kept(on);
        let name = format!("{}-{purpose}", self.file);
        on.copy(self.file, &name);
        StoredSample::new(on, name)
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

/// A store on disk.
#[derive(Clone, Debug)]
pub struct StoredSample {
    on: SampleEngine,
    name: String,
    /// Path or URL of the store.
    pub place: String,
    /// The session of all its agents.
    pub session: SessionId,
    /// The agent with all the rows.
    pub agent: AgentId,
}

impl StoredSample {
    fn new(on: SampleEngine, name: String) -> Self {
        let ids = IdSource::new(1);
        Self {
            place: on.place(&name),
            on,
            name,
            session: ids.session(),
            agent: ids.agent(),
        }
    }

    /// Opens it, as another process each time.
    pub fn open(&self) -> Arc<dyn Log> {
        open_log(&self.place, this_process()).unwrap()
    }

    /// Runs statements without the engine, if it is on a server.
    pub fn sql(&self, statements: &str) -> QueryRows {
        sample_engine::sql(&self.name, statements)
    }

    /// Removes it, if it is a copy.
    pub fn remove(self) {
        self.on.remove(&self.name);
    }
}

/// Returns the directory of samples, inside cargo's target directory.
pub fn directory() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let target = program
        .ancestors()
        .find(|directory| directory.join("CACHEDIR.TAG").is_file())
        .expect("benches are run by cargo, from its target directory");
    let directory = target.join("bench-stores");
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Removes a database with all its files.
pub fn remove_database(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-notify"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        // Most of these files do not exist.
        let _ = fs::remove_file(name);
    }
    let mut locks = path.as_os_str().to_owned();
    locks.push("-locks");
    let _ = fs::remove_dir_all(locks);
}

/// Makes the record of another process with each call.
pub fn this_process() -> ProcessRecord {
    use std::hash::{BuildHasher, RandomState};
    let half = || RandomState::new().hash_one(0).to_be_bytes();
    let id = loop {
        let (high, low) = (half(), half());
        let bytes = std::array::from_fn(|i| if i < 8 { high[i] } else { low[i - 8] });
        if let Some(id) = ProcessId::from_random(bytes) {
            break id;
        }
    };
    ProcessRecord {
        id,
        host: "bench".to_owned(),
        pid: std::process::id(),
        started: Micros(0),
        machine: None,
        person: None,
    }
}

/// Opens a log as that process, by path or URL, which determines the engine.
pub fn open_log(place: &str, process: ProcessRecord) -> Result<Arc<dyn Log>, StoreError> {
    if Url::is_meant(place) {
        let options = postgres::PostgresOptions::new(Url::parse(place)?, process);
        return Ok(Arc::new(PostgresStore::open(options)?));
    }
    Ok(Arc::new(SqliteStore::open(SqliteOptions::new(
        place, process,
    ))?))
}

/// Makes a claim to append as the holder of the lease.
pub fn claim(agent: AgentId, epoch: Epoch, expected: Seq) -> HeadClaim {
    HeadClaim {
        agent,
        lease: Some(LeaseClaim { epoch, expected }),
    }
}

/// Makes the batch of a fork, with a child without a lease.
pub fn fork_batch(
    parent: &AgentState,
    epoch: Epoch,
    session: SessionId,
    child: AgentId,
    name: &str,
    now: Micros,
) -> Batch {
    let order = ForkOrder {
        child,
        name: name.to_owned(),
        context: ForkContext::Inherit,
        at: None,
        set: Map::new(),
        call: None,
        prompt: Some("Look into the failing test and tell me what you find.".into()),
        system: None,
    };
    let events = fork_events(parent, "bench", order);
    let agent = NewAgent {
        id: child,
        name: name.to_owned(),
        session,
        parent: Some(parent.agent()),
        fork_point: events.fork_point,
        created_at: now,
    };
    let told = events.parent.into_row(parent.agent(), now);
    let own = events.child.into_iter().map(|it| it.into_row(child, now));
    Batch {
        heads: vec![
            claim(parent.agent(), epoch, parent.head()),
            claim(child, Epoch(0), Seq(0)),
        ],
        rows: std::iter::once(told).chain(own).collect(),
        with: vec![Effect::Agent(AgentEffect::Create {
            agent,
            owned: false,
        })],
    }
}

/// Returns the row of a stored event.
pub fn row_of(row: NewRow, seq: Seq) -> Row {
    Row {
        at: RowRef::new(row.agent, seq),
        kind: StoredKind::Known(row.kind),
        content: row.content,
        data: row.data,
        created_at: row.created_at,
        author: None,
    }
}
