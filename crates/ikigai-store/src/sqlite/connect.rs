//! Connections: how they are opened, and whether the database is one of ours.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, ffi};

use super::errors::sql_error;
use super::identity::OpenFiles;
use super::migrations::{self, Migrations};
use super::place::Place;
use super::read_only::{self, FileAccess, ReadVersions};
use crate::error::StoreError;

/// "ikig", in the header of each of our databases.
const APPLICATION_ID: i32 = 0x696b_6967;

/// How long to wait for another writer before giving up.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How often switching a new file to its log is tried, since SQLite does not wait there.
const SWITCH_ATTEMPTS: u32 = 500;
const SWITCH_PAUSE: Duration = Duration::from_millis(10);

/// Room for every statement of this engine, so that none is prepared twice.
pub(super) const STATEMENTS: usize = 64;

/// Asks whether a table is missing that each version has.
const MISSING_TABLES: &str = "SELECT count(*) < 4 FROM sqlite_schema
     WHERE type = 'table' AND name IN ('agents', 'heads', 'messages', 'sessions')";

/// What is opened, and as which version.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) place: Place,
    pub(super) migrations: Migrations,
    pub(super) access: FileAccess,
    pub(super) files: OpenFiles,
}

impl Target {
    pub(super) fn new(place: Place, migrations: Migrations, access: FileAccess) -> Self {
        Self {
            files: OpenFiles::new(&place),
            place,
            migrations,
            access,
        }
    }

    /// Translates an error of SQLite; a missing or replaced file is the reason before any other.
    pub(super) fn error(&self, error: rusqlite::Error) -> StoreError {
        match self.files.check() {
            Err(absence) => absence.store_error(&self.place),
            Ok(()) => sql_error(self.path(), error),
        }
    }

    /// The version that this program reads and writes.
    pub(super) fn version(&self) -> u32 {
        u32::try_from(self.migrations.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn path(&self) -> &Path {
        &self.place.database
    }

    /// Opens one more connection to a database that was prepared before.
    pub(super) fn connect(&self) -> Result<Connection, rusqlite::Error> {
        if self.access == FileAccess::ReadOnly {
            return Err(failure(ffi::SQLITE_READONLY, "it is open for reading only"));
        }
        // Without the flag that would create it: a database that was taken away must not be
        // replaced by an empty one.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(self.path(), flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // Another database may have been put there since.
        if let Err(absence) = self.files.check_database() {
            return Err(failure(ffi::SQLITE_CANTOPEN, &absence.to_string()));
        }
        Ok(connection)
    }

    /// Opens a connection that can only read.
    pub(super) fn connect_reading(&self) -> Result<Connection, rusqlite::Error> {
        if self.access == FileAccess::ReadOnly {
            return read_only::connect(&self.place);
        }
        let connection = self.connect()?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }

    /// Reads something through a connection of its own.
    pub(super) fn read_once<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let before = self.read_versions();
        let connection = self.connect_reading().map_err(|error| self.error(error))?;
        let result = read(&connection).map_err(|error| self.error(error))?;
        self.check_unchanged(before)?;
        Ok(result)
    }

    /// Versions of the files that are read without locks; none where locks are taken.
    pub(super) fn read_versions(&self) -> Option<ReadVersions> {
        match self.access {
            FileAccess::Full => None,
            FileAccess::ReadOnly => Some(ReadVersions::read(&self.place)),
        }
    }

    /// Fails if files that are read without locks have changed since `before`.
    pub(super) fn check_unchanged(&self, before: Option<ReadVersions>) -> Result<(), StoreError> {
        if self.read_versions() == before {
            return Ok(());
        }
        Err(StoreError::Busy(
            "another program wrote it while it was read here without locks".into(),
        ))
    }

    /// Opens the database for the first time in this process: creates what is missing, migrates
    /// what is older, refuses what is newer or not ours. A database of this version is only read.
    pub(super) fn prepare(&self) -> Result<Connection, StoreError> {
        if self.access == FileAccess::ReadOnly {
            return self.prepare_reading();
        }
        let fail = |error| sql_error(self.path(), error);
        let mut connection = self.connect().map_err(fail)?;
        // Creating and migrating both leave a database alone that another process was faster
        // with, so it is looked at again.
        loop {
            match self.state(&connection)? {
                State::Version(version) if version == self.version() => break,
                State::Version(version) if version > self.version() => {
                    return Err(StoreError::Newer {
                        store: version,
                        program: self.version(),
                    });
                }
                State::Version(_) => migrations::migrate(self, &mut connection)?,
                State::Empty => self.create(&mut connection)?,
            }
        }
        if connection.is_readonly("main").map_err(fail)? {
            return Err(StoreError::ReadOnly("the file is write-protected".into()));
        }
        connection
            .pragma_update(None, "query_only", true)
            .map_err(fail)?;
        self.files.record();
        self.files.record_content();
        Ok(connection)
    }

    /// Opens a database that cannot be written, so that it must be of this version already.
    fn prepare_reading(&self) -> Result<Connection, StoreError> {
        let has_shared_log = self.place.wal().exists() && self.place.shm().exists();
        if let Some(kind) = self.place.network.filter(|_| has_shared_log) {
            return Err(StoreError::NetworkFileSystem {
                path: self.path().to_owned(),
                kind,
            });
        }
        let connection =
            read_only::connect(&self.place).map_err(|error| match error.sqlite_error_code() {
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                    sql_error(self.path(), error)
                }
                _ => read_only::unreadable(&self.place, &error),
            })?;
        let reason = match self.state(&connection)? {
            State::Version(version) if version == self.version() => return Ok(connection),
            State::Version(store) if store > self.version() => {
                return Err(StoreError::Newer {
                    store,
                    program: self.version(),
                });
            }
            State::Version(version) => format!(
                "it has version {version} and must be migrated to version {}, which needs write \
                 access",
                self.version()
            ),
            State::Empty => "it is empty".to_owned(),
        };
        Err(StoreError::Unreadable {
            path: self.path().to_owned(),
            reason,
        })
    }

    /// Closes a connection. Its log is left alone if the files at these paths are other ones.
    pub(super) fn close(&self, connection: Connection) {
        if self.access == FileAccess::Full && !self.files.may_fold() {
            let keep_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            let _ = connection.set_db_config(keep_log, true);
        }
        drop(connection);
    }

    /// Looks whether the database is one of ours, and of which version. All of it is read at one
    /// moment, since another process may be creating it.
    pub(super) fn state(&self, connection: &Connection) -> Result<State, StoreError> {
        if !connection.is_autocommit() {
            return self.look(connection);
        }
        let moment = connection
            .unchecked_transaction()
            .map_err(|error| sql_error(self.path(), error))?;
        self.look(&moment)
    }

    fn look(&self, connection: &Connection) -> Result<State, StoreError> {
        let fail = |error| sql_error(self.path(), error);
        let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let application = number("application_id").map_err(fail)?;
        let version = number("user_version").map_err(fail)?;
        let not_ours = || StoreError::NotOurs {
            path: self.path().to_owned(),
        };
        if application == 0 && version == 0 {
            let any: bool = connection
                .query_row("SELECT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| {
                    row.get(0)
                })
                .map_err(fail)?;
            // SQLite takes a few bytes of anything for a database without pages.
            let foreign = number("page_count").map_err(fail)? == 0
                && fs::metadata(self.path()).is_ok_and(|metadata| metadata.len() > 0);
            return if any || foreign {
                Err(not_ours())
            } else {
                Ok(State::Empty)
            };
        }
        let version = match u32::try_from(version) {
            Ok(version) if application == APPLICATION_ID => version,
            _ => return Err(not_ours()),
        };
        // What tables a newer version has is not known here.
        let missing: bool = connection
            .query_row(MISSING_TABLES, [], |row| row.get(0))
            .map_err(fail)?;
        if version <= self.version() && missing {
            return Err(not_ours());
        }
        Ok(State::Version(version))
    }

    fn create(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let fail = |error| sql_error(self.path(), error);
        connection
            .pragma_update(None, "page_size", 4096)
            .map_err(fail)?;
        switch_to_log(connection).map_err(fail)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        if self.state(&transaction)? != State::Empty {
            return Ok(());
        }
        transaction
            .pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(fail)?;
        migrations::apply(self, &transaction, 0)?;
        transaction.commit().map_err(fail)
    }
}

/// What a database was found to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It holds nothing.
    Empty,
    /// It is ours, of this version.
    Version(u32),
}

fn failure(code: i32, reason: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(reason.to_owned()))
}

fn switch_to_log(connection: &Connection) -> Result<(), rusqlite::Error> {
    let mut attempt = 1;
    loop {
        let switched = connection.pragma_update(None, "journal_mode", "WAL");
        match switched {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && attempt < SWITCH_ATTEMPTS =>
            {
                attempt += 1;
                thread::sleep(SWITCH_PAUSE);
            }
            done => return done,
        }
    }
}
