//! Durable appends against the bare insert: the same columns in one table without an index, one
//! event per commit.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

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

/// Compares each store with a bare table of about its size. Only these take turns: with all of
/// them in one round, each would find the processor's caches full of the others.
pub(crate) fn compare() {
    for sample in Sample::ALL {
        compare_one(sample);
    }
}

fn compare_one(sample: Sample) {
    let world = World::new(sample.copy("append"));
    let agent = world.kept.agent;
    let directory = tempfile::tempdir_in(stores::directory()).unwrap();
    let filled = |name: &str| {
        let path = directory.path().join(name);
        Bare::filled(&path, &event_row(agent), sample.rows())
    };
    let mut bare = filled("bare.db");
    let runtime = World::new(world.kept.clone()).runtime;
    let mut threaded = Threaded::new(filled("threaded.db"), runtime);
    let mut appender = Appender::new(&world);
    let cases = vec![
        Case::new(&IN_PLACE, || {
            let row = event_row(agent);
            timed(|| bare.append(&row))
        }),
        Case::new(&THREADED, || {
            let row = event_row(agent);
            timed(|| threaded.append(row))
        }),
        Case::new(&sample, || timed(|| appender.append())),
    ];
    let figures = rounds(COMMITS, cases);
    figures.print("durable append");
    // A commit goes to the writing thread and back, whatever it writes; so must what it is judged by.
    figures.judge("append", &sample, &THREADED, 1.3);
    let ratio = figures.ratio(&sample, &IN_PLACE);
    println!("      append, {sample} / {IN_PLACE}: {ratio:.2}×");
    drop(appender);
    world.kept.remove();
}
