//! Liveness of processes: an advisory lock of the listener connection, and a heartbeat by the
//! server's clock.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ikigai_core::ProcessId;
use tokio::sync::{mpsc, oneshot};

use super::connect::{ConnectionRole, Link, PostgresTarget};
use super::errors::ServerError;
use super::migrations::lock_number;
use super::pipeline::{Value, send_all};
use crate::records::ProcessRecord;

/// Interval of heartbeats.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(5);

/// A process is dead after three missed heartbeats (15 s), or once its lock is free.
///
/// After a restart of the server all locks are free, so every process has 15 s to reconnect. A
/// process that closed its store is dead immediately. The test takes the lock in shared mode, which
/// distinguishes it from the owner's.
///
/// The macro takes further columns and a condition on processes `p`.
macro_rules! is_alive_sql {
    ($columns:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            $columns,
            "CASE
                 WHEN p.heartbeat = 0 OR greatest(p.heartbeat, t.started) < t.now - 15000000 THEN false
                 WHEN p.heartbeat < t.started THEN true
                 ELSE NOT pg_try_advisory_xact_lock_shared(p.lock)
             END AS lives
             FROM processes p, (
                 SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now,
                        (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint AS started
             ) t
             WHERE ",
            $condition
        )
    };
}
pub(super) use is_alive_sql;

const IS_ALIVE: &str = is_alive_sql!("", "p.uuid = $1");

/// Takes a lock of this process, if no other connection has it.
const TRY_LOCK: &str = "SELECT pg_backend_pid(), pg_try_advisory_lock($1)";

/// Ends a former connection of this process whose loss the server has not noticed.
///
/// It is identified by its lock, so that no other connection is ended.
const END_FORMER: &str = "SELECT pg_terminate_backend(pid) FROM pg_catalog.pg_locks
     WHERE pid = $1 AND locktype = 'advisory' AND granted AND mode = 'ExclusiveLock'
       AND objsubid = 1 AND (classid::bigint << 32) | objid::bigint = $2";

/// Request to the listener task.
#[derive(Debug)]
pub(super) enum ListenerRequest {
    /// Take this process's lock, and reply with its key.
    Register(oneshot::Sender<Result<i64, ServerError>>),
    /// Send the last notification, release the lock, and end.
    Close(oneshot::Sender<()>),
}

/// This process as an owner of agents.
#[derive(Debug)]
pub struct PostgresOwner {
    pub(super) record: ProcessRecord,
    pub(super) lock: i64,
    /// Lock of this process's writing connection, and its backend id.
    writing_lock: i64,
    writing: Mutex<i32>,
    key: Mutex<Option<i64>>,
    requests: mpsc::Sender<ListenerRequest>,
}

impl PostgresOwner {
    pub(super) fn new(record: ProcessRecord, requests: mpsc::Sender<ListenerRequest>) -> Self {
        Self {
            lock: lock_number("process", &record.id.to_string()),
            writing_lock: lock_number("writing of", &record.id.to_string()),
            writing: Mutex::default(),
            record,
            key: Mutex::default(),
            requests,
        }
    }

    /// Returns the id under which this process owns agents.
    pub fn id(&self) -> ProcessId {
        self.record.id
    }

    /// Returns the key of this process in the database, once it is registered.
    pub fn key(&self) -> Option<i64> {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_key(&self, key: i64) {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }

    /// Connects for writing.
    ///
    /// On return the server has ended the former connection, so everything sent over it is stored
    /// or never will be.
    pub(super) async fn connect_writing(
        &self,
        target: &PostgresTarget,
    ) -> Result<Link, ServerError> {
        let link = target.connect(ConnectionRole::Writing).await?;
        let former = *self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let backend = take_lock(&link, self.writing_lock, former).await?;
        *self.writing.lock().unwrap_or_else(PoisonError::into_inner) = backend;
        Ok(link)
    }

    /// Registers this process and takes its lock; returns its key.
    ///
    /// The lock lives on the listener connection, so wait for it.
    pub async fn register(&self) -> Result<i64, ServerError> {
        let (answer, answered) = oneshot::channel();
        let ordered = self.requests.send(ListenerRequest::Register(answer)).await;
        ordered.map_err(|_| ServerError::Silence)?;
        answered.await.map_err(|_| ServerError::Silence)?
    }
}

/// Returns true if a process is alive.
///
/// Call it in the transaction that takes over its agents; a process that returns meanwhile waits
/// for the end of it.
pub async fn is_alive(link: &Link, process: ProcessId) -> Result<bool, tokio_postgres::Error> {
    let found = link.fetch(IS_ALIVE, &[&process.to_string()]).await?;
    found.first().map_or(Ok(false), |row| row.try_get(0))
}

/// Takes a lock of this process, from its former connection if that has it; returns the backend id.
///
/// The server limits the wait.
pub(super) async fn take_lock(link: &Link, lock: i64, former: i32) -> Result<i32, ServerError> {
    let tried = link.fetch(TRY_LOCK, &[&lock]).await?;
    let tried = tried.first().ok_or(ServerError::Silence)?;
    if !tried.try_get::<_, bool>(1)? {
        // The second waits until the first has had its effect.
        let statements: [(&'static str, &[Value<'_>]); 2] = [
            (END_FORMER, &[&former, &lock]),
            ("SELECT pg_advisory_lock($1)", &[&lock]),
        ];
        let sent = statements.map(|(sql, values)| link.fetch(sql, values));
        for answer in send_all(sent.into_iter()).await {
            answer?;
        }
    }
    Ok(tried.try_get(0)?)
}
