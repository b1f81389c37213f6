//! Durable appends against the bare insert.
//!
//! The bare table has the same columns and no index; each commit has one event.

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use ikigai_core::NewRow;
use ikigai_testkit::stores::rounds::{Case, rounds};
use ikigai_testkit::stores::{self, Sample, SampleEngine};
use rusqlite::{Connection, params};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio_postgres::{Client, NoTls, Statement};

use crate::measured::{Appender, World, event_row, timed};

const COMMITS: usize = 2000;

/// Names of the bare insert in the calling thread, and in another thread.
const IN_PLACE: &str = "bare";
const THREADED: &str = "bare in a thread";

/// Plain insert into a table, without the store; the baseline.
pub(crate) trait Bare: Send {
    fn append(&mut self, row: &NewRow);
}

/// Creates a bare table with `rows` rows, next to the store of a world.
pub(crate) fn filled(
    world: &World,
    on: SampleEngine,
    directory: &Path,
    name: &str,
    rows: u64,
) -> Box<dyn Bare> {
    let row = event_row(world.kept.agent);
    match on {
        SampleEngine::Sqlite => {
            let path = directory.join(format!("{name}.db"));
            Box::new(BareSqlite::filled(&path, &row, rows))
        }
        SampleEngine::Postgres => {
            Box::new(BarePostgres::filled(&world.kept.place, name, &row, rows))
        }
    }
}

struct BareSqlite {
    connection: Connection,
    seq: i64,
}

impl BareSqlite {
    fn filled(path: &Path, row: &NewRow, rows: u64) -> Self {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(
                "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 CREATE TABLE messages (
                     id INTEGER PRIMARY KEY, agent INTEGER NOT NULL, seq INTEGER NOT NULL,
                     kind TEXT NOT NULL, control INTEGER NOT NULL, created_at INTEGER NOT NULL,
                     content TEXT, data TEXT
                 ) STRICT;
                 BEGIN",
            )
            .unwrap();
        let mut bare = Self { connection, seq: 0 };
        for _ in 0..rows {
            bare.append(row);
        }
        bare.connection.execute_batch("COMMIT").unwrap();
        bare.connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
        bare
    }
}

impl Bare for BareSqlite {
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

/// Bare table in the store's database, so that both share the server's log.
struct BarePostgres {
    runtime: Runtime,
    client: Client,
    insert: Statement,
    seq: i64,
}

impl BarePostgres {
    fn filled(url: &str, name: &str, row: &NewRow, rows: u64) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (client, insert) = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
            tokio::spawn(connection);
            let create = format!(
                "CREATE TABLE {name} (
                     id bigint GENERATED ALWAYS AS IDENTITY, agent bigint NOT NULL,
                     seq bigint NOT NULL, kind text NOT NULL, control boolean NOT NULL,
                     created_at bigint NOT NULL, content text, data text
                 )"
            );
            client.batch_execute(&create).await.unwrap();
            let columns = "agent, seq, kind, control, created_at, content, data";
            let insert =
                format!("INSERT INTO {name} ({columns}) VALUES (1, $1, $2, $3, $4, $5, $6)");
            let insert = client.prepare(&insert).await.unwrap();
            let fill = format!(
                "INSERT INTO {name} ({columns}) SELECT 1, n, $2, false, 1, $3, $4
                 FROM generate_series(1, $1::bigint) n"
            );
            let (kind, rows) = (row.kind.name(), rows.cast_signed());
            client
                .execute(&fill, &[&rows, &kind, &row.content, &row.data])
                .await
                .unwrap();
            client
                .batch_execute(&format!("VACUUM (ANALYZE) {name}"))
                .await
                .unwrap();
            client.batch_execute("CHECKPOINT").await.unwrap();
            (client, insert)
        });
        Self {
            runtime,
            client,
            insert,
            seq: rows.cast_signed(),
        }
    }
}

impl Bare for BarePostgres {
    fn append(&mut self, row: &NewRow) {
        self.seq += 1;
        let (name, at) = (row.kind.name(), row.created_at.0);
        self.runtime
            .block_on(self.client.execute(
                &self.insert,
                &[&self.seq, &name, &row.control, &at, &row.content, &row.data],
            ))
            .unwrap();
    }
}

/// Bare insert in another thread, as each commit of a store.
struct Threaded {
    orders: Option<SyncSender<(NewRow, oneshot::Sender<()>)>>,
    thread: Option<JoinHandle<()>>,
    runtime: Runtime,
}

impl Threaded {
    fn new(mut bare: Box<dyn Bare>, runtime: Runtime) -> Self {
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
pub(crate) fn compare(on: SampleEngine) {
    for sample in Sample::ALL {
        compare_one(on, sample);
    }
}

fn compare_one(on: SampleEngine, sample: Sample) {
    let world = World::new(sample.copy(on, "append"));
    let agent = world.kept.agent;
    let directory = tempfile::tempdir_in(stores::directory()).unwrap();
    let filled = |name| filled(&world, on, directory.path(), name, sample.rows());
    let mut bare = filled("bare");
    let runtime = World::new(world.kept.clone()).runtime;
    let mut threaded = Threaded::new(filled("threaded"), runtime);
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
        Case::new(&sample, || {
            let row = event_row(agent);
            timed(|| appender.append(row))
        }),
    ];
    let figures = rounds(COMMITS, cases);
    figures.print(&format!("durable append, {on}"));
    // Every commit goes to the writer thread and back, so the baseline must too.
    figures.judge("append", &sample, &THREADED, 1.3);
    let ratio = figures.ratio(&sample, &IN_PLACE);
    println!("      append, {sample} / {IN_PLACE}: {ratio:.2}×");
    drop(appender);
    world.kept.remove();
}
