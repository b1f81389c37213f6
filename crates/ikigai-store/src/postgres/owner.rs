//! Who is alive: each process that owns agents holds an advisory lock of its listening connection,
//! which dies with that, and says every few seconds that it lives, by the server's clock.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ikigai_core::ProcessId;
use tokio::sync::{mpsc, oneshot};

use super::connect::{Link, Role, Target};
use super::errors::Cause;
use super::migrations::lock_number;
use crate::records::ProcessRecord;

/// How often a process says that it lives.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(5);

/// Whoever has said nothing for three heartbeats, 15 s, is gone. So is whoever has lost its lock,
/// unless the server took it: after a restart everybody has the same time to come back. Whoever
/// ended in an orderly way is gone at once.
///
/// A lock is tried in the shared mode, by which it is told apart from that of its owner.
const IS_ALIVE: &str = "SELECT CASE
         WHEN p.heartbeat = 0 OR greatest(p.heartbeat, t.started) < t.now - 15000000 THEN false
         WHEN p.heartbeat < t.started THEN true
         ELSE NOT pg_try_advisory_xact_lock_shared(p.lock)
     END
     FROM processes p, (
         SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now,
                (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint AS started
     ) t
     WHERE p.uuid = $1";

/// Ends a former connection of this process, if the server does not know yet that it is cut. It is
/// known by the lock that it has, so that nobody else's is ended.
const END_FORMER: &str = "SELECT pg_terminate_backend(pid) FROM pg_catalog.pg_locks
     WHERE pid = $1 AND locktype = 'advisory' AND granted AND mode = 'ExclusiveLock'
       AND objsubid = 1 AND (classid::bigint << 32) | objid::bigint = $2";

/// What the listening task is asked for.
#[derive(Debug)]
pub(super) enum Order {
    /// To hold this process's lock, and tell its key in the database.
    Register(oneshot::Sender<Result<i64, Cause>>),
    /// To tell everybody of what was committed, to let go of the lock, and to end.
    Close(oneshot::Sender<()>),
}

/// This process as an owner of agents.
#[derive(Debug)]
pub struct Owner {
    pub(super) record: ProcessRecord,
    pub(super) lock: i64,
    /// The lock of whichever connection of this process writes, and the server's number for it.
    writing_lock: i64,
    writing: Mutex<i32>,
    key: Mutex<Option<i64>>,
    orders: mpsc::Sender<Order>,
}

impl Owner {
    pub(super) fn new(record: ProcessRecord, orders: mpsc::Sender<Order>) -> Self {
        Self {
            lock: lock_number("process", &record.id.to_string()),
            writing_lock: lock_number("writing of", &record.id.to_string()),
            writing: Mutex::default(),
            record,
            key: Mutex::default(),
            orders,
        }
    }

    /// The id under which this process owns agents.
    pub fn id(&self) -> ProcessId {
        self.record.id
    }

    /// The key of this process in the database, once it was entered there.
    pub fn key(&self) -> Option<i64> {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_key(&self, key: i64) {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }

    /// Makes the connection that writes. When it returns, the former one has ended on the server
    /// too: whatever was sent over it is stored by then, or never will be.
    pub(super) async fn connect_writing(&self, target: &Target) -> Result<Link, Cause> {
        let link = target.connect(Role::Writing).await?;
        let former = *self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let backend = hold(&link, self.writing_lock, former).await?;
        *self.writing.lock().unwrap_or_else(PoisonError::into_inner) = backend;
        Ok(link)
    }

    /// Makes sure that this process is entered into the database and its lock is held; returns its
    /// key. Without the listening connection there is no lock, so that it is waited for.
    pub async fn register(&self) -> Result<i64, Cause> {
        let (answer, answered) = oneshot::channel();
        let ordered = self.orders.send(Order::Register(answer)).await;
        ordered.map_err(|_| Cause::Silence)?;
        answered.await.map_err(|_| Cause::Silence)?
    }
}

/// Says whether a process is alive. To be asked in the transaction that takes over what it owns; one
/// that comes back meanwhile waits for the end of it.
pub async fn is_alive(link: &Link, process: ProcessId) -> Result<bool, tokio_postgres::Error> {
    let statement = link.prepared(IS_ALIVE).await?;
    let uuid = process.to_string();
    let found = link.client.query_opt(&statement, &[&uuid]).await?;
    found.map_or(Ok(false), |row| row.try_get(0))
}

/// Takes a lock that this process alone asks for, from its former connection if that has it; returns
/// the server's number for the connection. The server gives up waiting by itself.
pub(super) async fn hold(link: &Link, lock: i64, former: i32) -> Result<i32, Cause> {
    let tried = link
        .client
        .query_one(
            "SELECT pg_backend_pid(), pg_try_advisory_lock($1)",
            &[&lock],
        )
        .await?;
    if !tried.try_get::<_, bool>(1)? {
        link.client.execute(END_FORMER, &[&former, &lock]).await?;
        link.client
            .execute("SELECT pg_advisory_lock($1)", &[&lock])
            .await?;
    }
    Ok(tried.try_get(0)?)
}
