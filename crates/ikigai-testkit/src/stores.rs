//! Generated stores for benches: one agent of many rows, made once and kept on disk.

mod history;
pub mod rounds;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::data::ForkContext;
use ikigai_core::fork::{ForkOrder, fork_events};
use ikigai_core::{
    AgentId, AgentState, Epoch, Event, Micros, NewRow, ProcessId, Row, RowRef, Seq, SessionId,
    StoredKind,
};
use ikigai_store::postgres::{self, Url};
use ikigai_store::sqlite::{MIGRATIONS, OpenOptions};
use ikigai_store::{
    Batch, Effect, HeadClaim, LeaseClaim, NewAgent, PostgresStore, ProcessRecord, Snapshot,
    SqliteStore, Store, StoreError,
};
use serde_json::Map;

use crate::IdSource;
use crate::executor::block_on_for;
use history::History;

/// Grows with every change of what is generated, so that kept stores are made again.
const VERSION: u32 = 4;

/// How many rows are committed together; a running program commits them one by one.
const ROWS_PER_BATCH: usize = 4000;

/// How long one such commit may take: on a disk that others write to, the log that SQLite keeps
/// beside the file may have to be written out first.
const PATIENCE: Duration = Duration::from_mins(10);

/// After so many control rows a running program stores a snapshot.
const CONTROL_ROWS_PER_SNAPSHOT: usize = 8;

/// One of the stores that benches compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    name: &'static str,
    file: &'static str,
    rows: u64,
    control: u64,
}

impl Sample {
    /// Hardly anything.
    pub const TEN: Self = Self::new("10", "1e1", 10, 2);
    /// A short talk.
    pub const HUNDRED: Self = Self::new("10²", "1e2", 100, 2);
    /// What larger ones are compared with.
    pub const THOUSAND: Self = Self::new("10³", "1e3", 1_000, 2);
    /// Some days.
    pub const TEN_THOUSAND: Self = Self::new("10⁴", "1e4", 10_000, 10);
    /// Months.
    pub const HUNDRED_THOUSAND: Self = Self::new("10⁵", "1e5", 100_000, 100);
    /// Years.
    pub const MILLION: Self = Self::new("10⁶", "1e6", 1_000_000, 1_000);
    /// Years of an agent that rewinds all the time.
    pub const BENT: Self = Self::new("10⁶ bent", "1e6-bent", 1_000_000, 100_000);

    /// Those by which growth is shown.
    pub const ALL: [Self; 5] = [
        Self::HUNDRED,
        Self::THOUSAND,
        Self::TEN_THOUSAND,
        Self::MILLION,
        Self::BENT,
    ];

    /// How many rows its agent has.
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

    /// The store, made unless an earlier run has left it. It is for reading.
    pub fn kept(self) -> Kept {
        let directory = directory();
        let path = directory.join(format!("{}.db", self.file));
        let stamp = directory.join(format!("{}.stamp", self.file));
        let wanted = format!("version {VERSION}, {self:?}, {}", MIGRATIONS.concat());
        if !fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            remove_database(&path);
            Maker::new(self, &path).make();
            fs::write(&stamp, wanted).unwrap();
        }
        Self::at(path)
    }

    /// A copy of the store, to be written to; it is made anew with each call.
    pub fn copy(self, purpose: &str) -> Kept {
        let kept = self.kept();
        let path = directory().join(format!("{}-{purpose}.db", self.file));
        remove_database(&path);
        fs::copy(&kept.path, &path).unwrap();
        // Whoever measures next must not pay for writing the copy out.
        fs::File::open(&path).unwrap().sync_all().unwrap();
        Self::at(path)
    }

    fn at(path: PathBuf) -> Kept {
        let ids = IdSource::new(1);
        Kept {
            path,
            session: ids.session(),
            agent: ids.agent(),
        }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

/// A store on disk.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The database.
    pub path: PathBuf,
    /// The session of all its agents.
    pub session: SessionId,
    /// The agent with all the rows.
    pub agent: AgentId,
}

impl Kept {
    /// Opens it, as another process each time.
    pub fn open(&self) -> SqliteStore {
        SqliteStore::open(OpenOptions::new(&self.path, this_process())).unwrap()
    }

    /// Removes it, if it is a copy that has served its purpose.
    pub fn remove(self) {
        remove_database(&self.path);
    }
}

/// The directory of kept stores: in the target directory, found by what cargo leaves there.
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

/// Removes a database with all that belongs to it.
pub fn remove_database(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-notify"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        // Most of them are not there.
        let _ = fs::remove_file(name);
    }
    let mut locks = path.as_os_str().to_owned();
    locks.push("-locks");
    let _ = fs::remove_dir_all(locks);
}

/// A record as of another process with each call.
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
    }
}

/// Opens a log as that process: a file by its path, or one on a server by its address. Here it is
/// decided which engine that is.
pub fn open_log(place: &str, process: ProcessRecord) -> Result<Arc<dyn Store>, StoreError> {
    if Url::is_meant(place) {
        let options = postgres::OpenOptions::new(Url::parse(place)?, process);
        return Ok(Arc::new(PostgresStore::open(options)?));
    }
    Ok(Arc::new(SqliteStore::open(OpenOptions::new(
        place, process,
    ))?))
}

/// A claim to append as the holder of the lease.
pub fn claim(agent: AgentId, epoch: Epoch, expected: Seq) -> HeadClaim {
    HeadClaim {
        agent,
        lease: Some(LeaseClaim { epoch, expected }),
    }
}

/// What stores a fork, with the parent's row; the child is owned by nobody.
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
        prompt: Some("Look into the failing test and tell me what you find.".to_owned()),
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
        with: vec![Effect::CreateAgent {
            agent,
            owned: false,
        }],
    }
}

/// The row that a stored event became.
pub fn row_of(row: NewRow, seq: Seq) -> Row {
    Row {
        at: RowRef::new(row.agent, seq),
        kind: StoredKind::Known(row.kind),
        content: row.content,
        data: row.data,
        created_at: row.created_at,
    }
}

/// Makes a store.
struct Maker {
    sample: Sample,
    store: SqliteStore,
    ids: IdSource,
    session: SessionId,
    state: AgentState,
    stored: Seq,
    waiting: Vec<NewRow>,
    snapshots: Vec<Effect>,
    control_since: usize,
    children: u64,
}

impl Maker {
    fn new(sample: Sample, path: &Path) -> Self {
        let store = SqliteStore::open(OpenOptions::new(path, this_process())).unwrap();
        let ids = IdSource::new(1);
        let session = ids.session();
        let state = AgentState::new(ids.agent());
        Self {
            sample,
            store,
            ids,
            session,
            state,
            stored: Seq(0),
            waiting: Vec::new(),
            snapshots: Vec::new(),
            // Begun in the middle, so that at the end there are as many since the newest snapshot
            // as on average.
            control_since: CONTROL_ROWS_PER_SNAPSHOT / 2,
            children: 0,
        }
    }

    fn make(mut self) {
        tell(self.sample, "is made, once");
        self.found();
        let mut history = History::new(self.state.agent(), self.sample.rows, self.sample.control);
        let per_child = (self.sample.rows / 100).max(10_000).min(self.sample.rows);
        while self.state.head().0 < self.sample.rows {
            for event in history.next(self.state.head()) {
                self.add(event);
            }
            if self.state.head().0 >= (self.children + 1) * per_child {
                self.fork();
            }
            if self.waiting.len() >= ROWS_PER_BATCH {
                self.flush();
            }
        }
        self.flush();
        let agent = self.state.agent();
        let epoch = Epoch(1);
        self.commit(Batch {
            with: vec![Effect::GiveLease { agent, epoch }],
            ..Batch::default()
        });
        self.store.close();
        tell(self.sample, &history.told(self.state.head()));
    }

    fn found(&self) {
        let session = self.session;
        let agent = NewAgent {
            id: self.state.agent(),
            name: "bench".to_owned(),
            session,
            parent: None,
            fork_point: None,
            created_at: Micros(0),
        };
        let make = Effect::MakeSession {
            session,
            name: "bench".to_owned(),
            directory: "/bench".to_owned(),
            at: Micros(0),
        };
        self.commit(Batch {
            with: vec![make, Effect::CreateAgent { agent, owned: true }],
            ..Batch::default()
        });
    }

    fn now(&self) -> Micros {
        Micros(1_790_000_000_000_000 + self.state.head().0.cast_signed() * 1_000_000)
    }

    fn add(&mut self, event: Event) {
        let row = event.into_row(self.state.agent(), self.now());
        self.waiting.push(row.clone());
        self.apply(row);
    }

    fn apply(&mut self, row: NewRow) {
        let row = row_of(row, self.state.head().next());
        let applied = self.state.apply(&row).unwrap();
        assert_eq!(applied.warning, None, "row {} is not as meant", row.at);
        self.control_since += usize::from(applied.control);
        if self.control_since >= CONTROL_ROWS_PER_SNAPSHOT {
            self.control_since = 0;
            self.snapshots.push(Effect::PutSnapshot(Snapshot {
                upto: row.at,
                folded: self.state.to_snapshot(),
            }));
        }
    }

    fn flush(&mut self) {
        if !self.waiting.is_empty() {
            let batch = Batch {
                heads: vec![claim(self.state.agent(), Epoch(1), self.stored)],
                rows: std::mem::take(&mut self.waiting),
                with: std::mem::take(&mut self.snapshots),
            };
            self.commit(batch);
            self.stored = self.state.head();
        }
    }

    fn fork(&mut self) {
        self.flush();
        self.children += 1;
        let name = format!("child-{}", self.children);
        let child = self.ids.agent();
        let batch = fork_batch(
            &self.state,
            Epoch(1),
            self.session,
            child,
            &name,
            self.now(),
        );
        let told = batch.rows[0].clone();
        self.commit(batch);
        self.apply(told);
        self.stored = self.state.head();
    }

    fn commit(&self, batch: Batch) {
        block_on_for(PATIENCE, self.store.commit(batch)).unwrap();
    }
}

#[expect(
    clippy::print_stderr,
    reason = "making a large store takes a while, and whoever waits wants to know for what"
)]
fn tell(sample: Sample, what: &str) {
    eprintln!("store of {sample} rows: {what}");
}
