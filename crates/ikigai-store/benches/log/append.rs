//! Durable appends against the bare insert: the same columns in one table without an index, one
//! event per commit.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ikigai_core::NewRow;
use ikigai_testkit::stores::rounds::{Case, rounds};
use ikigai_testkit::stores::{self, Sample};
use rusqlite::{Connection, params};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::measured::{Appender, World, event_row, timed};

const COMMITS: usize = 2000;

/// The bare insert in the calling thread, and with the way to another thread and back.
const IN_PLACE: &str = "bare";
const THREADED: &str = "bare in a thread";

/// The bare insert into a table that is as large as the largest store.
const LARGE: &str = "bare, 10⁶";

/// What any program would do that keeps events in SQLite.
struct Bare {
    connection: Connection,
    seq: i64,
}

impl Bare {
    fn new(path: &std::path::Path) -> Self {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(
                "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 CREATE TABLE messages (
                     id INTEGER PRIMARY KEY, agent INTEGER NOT NULL, seq INTEGER NOT NULL,
                     kind TEXT NOT NULL, control INTEGER NOT NULL, created_at INTEGER NOT NULL,
                     content TEXT, data TEXT
                 ) STRICT;",
            )
            .unwrap();
        Self { connection, seq: 0 }
    }

    /// Has `rows` rows already.
    fn filled(path: &std::path::Path, row: &NewRow, rows: u64) -> Self {
        let mut bare = Self::new(path);
        bare.connection.execute_batch("BEGIN").unwrap();
        for _ in 0..rows {
            bare.append(row);
        }
        bare.connection.execute_batch("COMMIT").unwrap();
        bare.connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
        bare
    }

    fn append(&mut self, row: &NewRow) {
        self.seq += 1;
        let mut statement = self
            .connection
            .prepare_cached(
                "INSERT INTO messages (agent, seq, kind, control, created_at, content, data)
                 VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)",
            )
            .unwrap();
        let name = row.kind.name();
        let at = row.created_at.0;
        statement
            .execute(params![
                self.seq,
                name,
                row.control,
                at,
                row.content,
                row.data
            ])
            .unwrap();
    }
}

/// A bare insert with the way that each commit of a store goes: to a thread and back.
struct Threaded {
    orders: Option<SyncSender<(NewRow, oneshot::Sender<()>)>>,
    thread: Option<JoinHandle<()>>,
    runtime: Runtime,
}

impl Threaded {
    fn new(mut bare: Bare, runtime: Runtime) -> Self {
        let (orders, ordered) = sync_channel::<(NewRow, oneshot::Sender<()>)>(256);
        let thread = thread::spawn(move || {
            while let Ok((row, answer)) = ordered.recv() {
                bare.append(&row);
                let _ = answer.send(());
            }
        });
        Self {
            orders: Some(orders),
            thread: Some(thread),
            runtime,
        }
    }

    fn append(&mut self, row: NewRow) {
        let (answer, answered) = oneshot::channel();
        let orders = self.orders.as_ref().unwrap();
        orders.send((row, answer)).unwrap();
        self.runtime.block_on(answered).unwrap();
    }
}

impl Drop for Threaded {
    fn drop(&mut self) {
        self.orders.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Compares the three, the store at several sizes.
pub(crate) fn compare() {
    let worlds: Vec<_> = Sample::ALL
        .iter()
        .map(|sample| (*sample, World::new(sample.copy("append"))))
        .collect();
    let agent = worlds[0].1.kept.agent;
    let directory = tempfile::tempdir_in(stores::directory()).unwrap();
    let mut bare = Bare::new(&directory.path().join("bare.db"));
    let mut large = Bare::filled(
        &directory.path().join("large.db"),
        &event_row(agent),
        1_000_000,
    );
    let behind = Bare::new(&directory.path().join("threaded.db"));
    let runtime = World::new(worlds[0].1.kept.clone()).runtime;
    let mut threaded = Threaded::new(behind, runtime);

    let mut cases = vec![
        Case::new(&IN_PLACE, || {
            let row = event_row(agent);
            timed(|| bare.append(&row))
        }),
        Case::new(&LARGE, || {
            let row = event_row(agent);
            timed(|| large.append(&row))
        }),
        Case::new(&THREADED, || {
            let row = event_row(agent);
            timed(|| threaded.append(row))
        }),
    ];
    for (sample, world) in &worlds {
        let mut appender = Appender::new(world);
        cases.push(Case::new(sample, move || -> Duration {
            timed(|| appender.append())
        }));
    }
    let figures = rounds(COMMITS, cases);

    figures.print("durable append");
    for (sample, bare) in [(Sample::HUNDRED, IN_PLACE), (Sample::MILLION, LARGE)] {
        figures.judge("append", &sample, &bare, 1.3);
        let ratio = figures.ratio(&sample, &THREADED);
        println!("      append, {sample} / {THREADED}: {ratio:.2}×");
    }
    for (_, world) in worlds {
        world.kept.remove();
    }
}
