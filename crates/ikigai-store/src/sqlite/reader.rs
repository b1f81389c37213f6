//! The reader thread: one connection, one query after the other, no transaction between them.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rusqlite::{Connection, ErrorCode};

use super::connect::{FileState, SqliteTarget};
use super::errors::breaks_connection;
use super::queue::JobReceiver;
use super::read_only::ReadVersions;
use crate::error::StoreError;

/// A query with the channel for its result.
pub(super) type ReadJob = Box<dyn FnOnce(&mut SqliteReader) + Send>;

/// Capacity of the queue of queries.
pub(super) const READ_JOBS: usize = 256;

/// SQLite operations between two checks of the deadline.
const CLOCK_OPERATIONS: i32 = 64;

/// State of the reader thread.
pub(super) struct SqliteReader {
    target: Arc<SqliteTarget>,
    connection: Option<Connection>,
    /// Files as the connection found them, if it takes no locks.
    versions: Option<ReadVersions>,
}

impl SqliteReader {
    /// Starts the thread with the connection that opened the database.
    pub(super) fn spawn(
        target: Arc<SqliteTarget>,
        connection: Connection,
        questions: JobReceiver<ReadJob>,
    ) -> std::io::Result<JoinHandle<()>> {
        let mut reader = Self {
            versions: target.read_versions(),
            target,
            connection: Some(connection),
        };
        thread::Builder::new()
            .name("ikigai-store-read".to_owned())
            .spawn(move || {
                while let Some(question) = questions.next() {
                    question(&mut reader);
                }
                reader.close();
            })
    }

    /// Runs a query, on a new connection if the last one broke.
    pub(super) fn read<T>(
        &mut self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let connection = self.connect()?;
        match read(&connection) {
            Ok(value) => {
                self.connection = Some(connection);
                self.target.check_unchanged(self.versions)?;
                Ok(value)
            }
            Err(error) => {
                let migrated = self.migrated(&connection, &error);
                let is_broken = breaks_connection(&error);
                let failed = migrated.unwrap_or_else(|| self.target.error(error));
                if is_broken && !matches!(failed, StoreError::Away { .. }) {
                    self.target.files.forget_log();
                } else {
                    self.connection = Some(connection);
                }
                Err(failed)
            }
        }
    }

    /// Runs a query that SQLite interrupts at the deadline.
    pub(super) fn read_until<T>(
        &mut self,
        deadline: Instant,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.watch_clock(Some(deadline))?;
        let result = self.read(read);
        self.watch_clock(None)?;
        result
    }

    fn watch_clock(&mut self, deadline: Option<Instant>) -> Result<(), StoreError> {
        let mut connection = self.connect()?;
        let over = deadline.map(|deadline| move || Instant::now() >= deadline);
        let watched = connection.progress_handler(CLOCK_OPERATIONS, over);
        self.connection = Some(connection);
        watched.map_err(|error| self.target.error(error))
    }

    /// Returns the connection; reopens it if it broke or its files have changed.
    fn connect(&mut self) -> Result<Connection, StoreError> {
        let versions = self.target.read_versions();
        match self.connection.take() {
            Some(connection) if versions == self.versions => Ok(connection),
            _ => {
                self.versions = versions;
                let opened = self.target.connect_reading();
                opened.map_err(|error| self.target.error(error))
            }
        }
    }

    fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.target.close(connection);
        }
    }

    /// Returns the error of a statement that failed after another process migrated the tables.
    fn migrated(&self, connection: &Connection, error: &rusqlite::Error) -> Option<StoreError> {
        if error.sqlite_error_code() != Some(ErrorCode::Unknown) {
            return None;
        }
        match self.target.state(connection) {
            Ok(FileState::Version(version)) if version != self.target.version() => {
                Some(StoreError::Migrated {
                    store: version,
                    program: self.target.version(),
                })
            }
            _ => None,
        }
    }
}
