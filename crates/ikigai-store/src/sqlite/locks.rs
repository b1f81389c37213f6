//! Liveness of processes: each owner of agents holds a lock on its own file, which dies with it.
//!
//! Processes create, sweep and test lock files only inside a write transaction, so the lock of the
//! database serialises all of that.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use ikigai_core::{PersonName, ProcessId};
use rusqlite::{Connection, OptionalExtension, params};

use super::errors::{SqliteRefusal, file_error};
use super::paths::{StorePaths, make_directory, open_own};
use crate::error::StoreError;
use crate::records::ProcessRecord;

/// Witnesses to keep: many more than processes that run at one time.
const WITNESSES_KEPT: i64 = 1000;

/// This process as an owner of agents.
#[derive(Debug)]
pub(super) struct SqliteOwner {
    record: ProcessRecord,
    directory: PathBuf,
    lock: Option<File>,
}

impl SqliteOwner {
    pub(super) fn new(place: &StorePaths, record: ProcessRecord) -> Self {
        Self {
            record,
            directory: place.locks(),
            lock: None,
        }
    }

    /// Returns the id under which this process owns agents.
    pub(super) fn id(&self) -> ProcessId {
        self.record.id
    }

    /// Takes the lock of this process if needed; returns its database key.
    pub(super) fn register(&mut self, connection: &Connection) -> Result<i64, SqliteRefusal> {
        if self.lock.is_none() {
            self.lock = Some(self.lock_own()?);
            self.sweep();
            delete_dead(connection)?;
            claim_sessions(connection, &self.record)?;
        }
        let uuid = self.record.id.to_string();
        connection
            .prepare_cached(
                "INSERT INTO processes (uuid, pid, started, host, machine, person)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (uuid) DO NOTHING",
            )?
            .execute(params![
                uuid,
                self.record.pid,
                self.record.started.0,
                self.record.host,
                self.record.machine.map(|machine| machine.to_string()),
                self.record.person.as_ref().map(PersonName::as_str)
            ])?;
        let key = connection
            .prepare_cached("SELECT id FROM processes WHERE uuid = ?1")?
            .query_row([uuid], |row| row.get(0))?;
        Ok(key)
    }

    /// Returns true if a process other than this one is alive.
    pub(super) fn is_alive(&self, process: ProcessId) -> Result<bool, StoreError> {
        is_alive(&self.directory, process)
    }

    /// Releases the lock; other processes may then take over the agents.
    pub(super) fn release(&mut self) {
        if let Some(lock) = self.lock.take() {
            // Removed while it is locked: a process that opened it before finds it locked or dead.
            let _ = fs::remove_file(self.own_path());
            drop(lock);
        }
    }

    fn own_path(&self) -> PathBuf {
        self.directory.join(self.record.id.to_string())
    }

    fn lock_own(&self) -> Result<File, StoreError> {
        // After a loss of power no process is alive, so nothing here need be durable.
        make_directory(&self.directory).map_err(|error| file_error(&self.directory, error))?;
        let path = self.own_path();
        let file = open_own(&path).map_err(|error| file_error(&path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(StoreError::Busy(
                format!("process {} is running already", self.record.id).into(),
            )),
            Err(TryLockError::Error(error)) => Err(file_error(&path, error)),
        }
    }

    /// Removes the files of dead processes. A missing file means the same, so failing is harmless.
    fn sweep(&self) {
        let own = self.record.id.to_string();
        for entry in fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let is_ours = |name: &str| name != own && name.parse::<ProcessId>().is_ok();
            if entry.file_name().to_str().is_some_and(is_ours)
                && let Ok(file) = File::open(entry.path())
                && file.try_lock().is_ok()
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for SqliteOwner {
    fn drop(&mut self) {
        self.release();
    }
}

/// Returns true if a process is alive, by its lock file.
///
/// The test takes the lock in shared mode, so that it is never mistaken for the owner.
pub(super) fn is_alive(locks: &Path, process: ProcessId) -> Result<bool, StoreError> {
    let path = locks.join(process.to_string());
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(file_error(&path, error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(file_error(&path, error)),
    }
}

/// Gives sessions of a store of before machines to this machine.
///
/// Those of another host wait for it.
fn claim_sessions(connection: &Connection, record: &ProcessRecord) -> Result<(), rusqlite::Error> {
    let Some(machine) = record.machine else {
        return Ok(());
    };
    connection.execute(
        "UPDATE sessions SET machine = ?1, host = ?2
         WHERE machine IS NULL AND (host IS NULL OR host = ?2)",
        params![machine.to_string(), record.host],
    )?;
    Ok(())
}

/// Drops the records of processes that own nothing, and old witnesses.
fn delete_dead(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute(
        "DELETE FROM processes
         WHERE NOT EXISTS (SELECT 1 FROM heads WHERE heads.owner = processes.id)",
        [],
    )?;
    let newest: Option<i64> = connection
        .query_row("SELECT max(id) FROM witnesses", [], |row| row.get(0))
        .optional()?
        .flatten();
    if let Some(newest) = newest.filter(|newest| *newest > WITNESSES_KEPT) {
        connection.execute(
            "DELETE FROM witnesses WHERE id <= ?1",
            [newest - WITNESSES_KEPT],
        )?;
    }
    Ok(())
}
