//! The reading thread: one connection, one question after the other, no transaction between them.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rusqlite::{Connection, ErrorCode};

use super::connect::{State, Target};
use super::errors::{breaks_connection, sql_error};
use super::queue::Orders;
use crate::error::StoreError;

/// A question with the way its answer goes.
pub(super) type Question = Box<dyn FnOnce(&mut Reader) + Send>;

/// How many questions may wait.
pub(super) const QUESTIONS: usize = 256;

/// How many of SQLite's operations pass between two looks at the clock.
const CLOCK_OPERATIONS: i32 = 64;

/// The reading thread's own.
pub(super) struct Reader {
    target: Arc<Target>,
    connection: Option<Connection>,
}

impl Reader {
    /// Starts the thread with the connection by which the database was opened.
    pub(super) fn spawn(
        target: Arc<Target>,
        connection: Connection,
        questions: Orders<Question>,
    ) -> std::io::Result<JoinHandle<()>> {
        let mut reader = Self {
            target,
            connection: Some(connection),
        };
        thread::Builder::new()
            .name("ikigai-store-read".to_owned())
            .spawn(move || {
                while let Some(question) = questions.next() {
                    question(&mut reader);
                }
            })
    }

    /// Reads something, opening another connection if the last one broke.
    pub(super) fn read<T>(
        &mut self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let fail = |error| sql_error(self.target.path(), error);
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.target.connect_reading().map_err(fail)?,
        };
        match read(&connection) {
            Ok(value) => {
                self.connection = Some(connection);
                Ok(value)
            }
            Err(error) => {
                let migrated = self.migrated(&connection, &error);
                if !breaks_connection(&error) {
                    self.connection = Some(connection);
                }
                Err(migrated.unwrap_or_else(|| sql_error(self.target.path(), error)))
            }
        }
    }

    /// Reads something that SQLite gives up at the deadline, as interrupted.
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
        let fail = |error| sql_error(self.target.path(), error);
        if self.connection.is_none() {
            self.connection = Some(self.target.connect_reading().map_err(fail)?);
        }
        let over = deadline.map(|deadline| move || Instant::now() >= deadline);
        match &mut self.connection {
            Some(connection) => connection
                .progress_handler(CLOCK_OPERATIONS, over)
                .map_err(fail),
            None => Ok(()),
        }
    }

    /// Says whether a statement failed because the tables are those of another version.
    fn migrated(&self, connection: &Connection, error: &rusqlite::Error) -> Option<StoreError> {
        if error.sqlite_error_code() != Some(ErrorCode::Unknown) {
            return None;
        }
        match self.target.state(connection) {
            Ok(State::Version(version)) if version != self.target.version() => {
                Some(StoreError::Migrated {
                    store: version,
                    program: self.target.version(),
                })
            }
            _ => None,
        }
    }
}
