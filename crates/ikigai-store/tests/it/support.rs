//! Shared helpers: ids, small batches, and a second process of the test binary.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;

use ikigai_core::data::{ForkData, ForkRole, UserData};
use ikigai_core::{
    AgentId, Epoch, Event, Micros, NewRow, PageQuery, ProcessId, RowRef, Seq, SessionId, Span,
};
use ikigai_store::sqlite::{Migrations, SqliteOptions};
use ikigai_store::{
    AgentEffect, Batch, CommitError, Committed, Effect, HeadClaim, LeaseClaim, Log, NewAgent,
    ProcessRecord, SessionRecord, SqliteStore, StoreError,
};
pub(crate) use ikigai_testkit::Dice;
use ikigai_testkit::block_on;
use ikigai_testkit::stores::open_log;
pub(crate) use ikigai_testkit::{Player, part, tell, wait_for_parent};
use rusqlite::Connection;
use tempfile::TempDir;

/// Returns the agent id of a number, the same in every process.
pub(crate) fn agent(number: u64) -> AgentId {
    AgentId::from_random(id_bytes(1, number)).expect("it begins with a letter")
}

/// Returns the session id of a number.
pub(crate) fn session(number: u64) -> SessionId {
    SessionId::from_random(id_bytes(2, number)).expect("it begins with a letter")
}

/// Returns the process record of a number.
pub(crate) fn process(number: u64) -> ProcessRecord {
    ProcessRecord {
        id: ProcessId::from_random(id_bytes(3, number)).expect("it begins with a letter"),
        host: "here".to_owned(),
        pid: std::process::id(),
        started: Micros(1),
        machine: None,
        person: None,
    }
}

fn id_bytes(space: u8, number: u64) -> [u8; 16] {
    let mut bytes = [space; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Opens a store as a process of tests.
pub(crate) fn open(path: &Path, number: u64) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(SqliteOptions::new(path, process(number)))
}

/// Opens a store as a process of tests, in a file or on a server.
pub(crate) fn open_at(place: &str, number: u64) -> Result<Arc<dyn Log>, StoreError> {
    open_log(place, process(number))
}

/// Returns a claim of a lease's owner.
pub(crate) fn claim(agent: AgentId, epoch: Epoch, expected: Seq) -> HeadClaim {
    HeadClaim {
        agent,
        lease: Some(LeaseClaim { epoch, expected }),
    }
}

/// Returns a `user` row with a text.
pub(crate) fn said(agent: AgentId, text: &str) -> NewRow {
    let event = Event::User {
        text: text.to_owned(),
        data: UserData::default(),
    };
    event.into_row(agent, Micros(7))
}

/// Returns the `fork` row of one side.
pub(crate) fn fork_row(agent: AgentId, role: ForkRole) -> NewRow {
    let event = Event::Fork {
        text: "forked".to_owned(),
        data: Box::new(ForkData {
            role: Some(role),
            ..ForkData::default()
        }),
    };
    event.into_row(agent, Micros(8))
}

/// Returns a batch of one text.
pub(crate) fn say(agent: AgentId, epoch: Epoch, expected: Seq, text: &str) -> Batch {
    Batch {
        heads: vec![claim(agent, epoch, expected)],
        rows: vec![said(agent, text)],
        with: Vec::new(),
    }
}

/// Returns a batch of one effect.
pub(crate) fn only(effect: Effect) -> Batch {
    Batch {
        with: vec![effect],
        ..Batch::default()
    }
}

/// Returns the effect that makes an agent which this process owns at epoch 1.
pub(crate) fn create(agent: AgentId, fork_point: Option<RowRef>) -> Effect {
    Effect::Agent(AgentEffect::Create {
        agent: NewAgent {
            id: agent,
            name: format!("agent-{agent}"),
            session: session(1),
            parent: fork_point.map(|row| row.agent),
            fork_point,
            created_at: Micros(5),
        },
        owned: true,
    })
}

/// Returns the effect that makes the session of all agents of tests.
pub(crate) fn make_session() -> Effect {
    Effect::MakeSession(SessionRecord {
        id: session(1),
        name: "work".to_owned(),
        directory: "/nowhere".to_owned(),
        created_at: Micros(1),
        machine: None,
        host: None,
    })
}

/// Makes the session and an agent that is owned at epoch 1.
pub(crate) fn make_agent(store: &dyn Log, agent: AgentId) {
    let batch = Batch {
        with: vec![make_session(), create(agent, None)],
        ..Batch::default()
    };
    block_on(store.commit(batch)).expect("the agent is made");
}

/// Opens a store as a program with these migrations.
pub(crate) fn open_as(
    path: &Path,
    number: u64,
    migrations: Migrations,
) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(SqliteOptions::new(path, process(number)).with_migrations(migrations))
}

/// Makes a store of an older version with one agent and one row, as a program of that version would.
pub(crate) fn make_old(path: &Path, migrations: Migrations, text: &str) -> Connection {
    drop(open_as(path, 1, migrations).unwrap());
    let connection = Connection::open(path).unwrap();
    let (session, agent) = (session(1), agent(1));
    connection
        .execute_batch(&format!(
            "INSERT INTO sessions (uuid, created_at, name, directory)
             VALUES ('{session}', 1, 'work', '/nowhere');
             INSERT INTO agents (uuid, session, created_at, status, name)
             VALUES ('{agent}', 1, 5, 'running', 'agent-1');
             INSERT INTO messages (agent, seq, kind, control, created_at, content, data)
             VALUES (1, 1, 'user', 0, 7, '{text}', '{{\"origin\":\"typed\"}}');
             INSERT INTO heads (agent, seq, epoch) VALUES (1, 1, 1);"
        ))
        .unwrap();
    connection
}

/// A directory for one store.
pub(crate) struct Disk {
    pub(crate) directory: TempDir,
    pub(crate) path: PathBuf,
}

impl Disk {
    /// Creates an empty directory.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.db");
        Self { directory, path }
    }

    /// Returns a disk with a store of one agent and one row.
    pub(crate) fn with_store() -> Self {
        let disk = Self::new();
        let store = open(&disk.path, 1).unwrap();
        make_agent(&store, agent(1));
        block_on(store.commit(say(agent(1), Epoch(1), Seq(0), "kept"))).unwrap();
        disk
    }

    /// Returns the sorted names of the files in the directory.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Returns the contents of the first agent's rows.
pub(crate) fn texts(store: &dyn Log) -> Vec<String> {
    let query = PageQuery::oldest(Span::new(agent(1), Seq(1), Seq(u64::MAX)), usize::MAX);
    let rows = block_on(store.page(query)).unwrap();
    rows.into_iter().filter_map(|row| row.content).collect()
}

/// Returns the permissions of a file.
pub(crate) fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Commits all batches but the first in one transaction, while the first one blocks the writer.
pub(crate) fn together<const N: usize>(
    store: &SqliteStore,
    path: &Path,
    batches: [Batch; N],
) -> [Result<Committed, CommitError>; N] {
    let other = Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut futures = batches.map(|batch| store.commit(batch));
    let mut results = [const { None }; N];
    block_on(std::future::poll_fn(|context| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none()
                && let Poll::Ready(done) = future.as_mut().poll(context)
            {
                *result = Some(done);
            }
        }
        if !other.is_autocommit() {
            other.execute_batch("ROLLBACK").unwrap();
        }
        if results.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }));
    results.map(Option::unwrap)
}

/// Returns true if the long test profile is on.
pub(crate) fn is_long() -> bool {
    std::env::var_os("IKIGAI_TEST_LONG").is_some_and(|value| value == "1")
}
