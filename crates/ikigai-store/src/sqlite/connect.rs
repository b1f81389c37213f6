//! Connections to the database file, and the check that the file is ours.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, ffi};

use super::errors::sql_error;
use super::identity::OpenFiles;
use super::migrations;
use super::paths::StorePaths;
use super::read_only::{self, FileAccess, ReadVersions};
use crate::error::StoreError;
use crate::sql_common::Migrations;

/// "ikig", in the header of each of our databases.
const APPLICATION_ID: i32 = 0x696b_6967;

/// Timeout of waiting for another writer.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Attempts to switch a new file to its write-ahead log; SQLite does not wait there.
const SWITCH_ATTEMPTS: u32 = 500;
const SWITCH_PAUSE: Duration = Duration::from_millis(10);

/// Size of the statement cache: larger than the number of statements.
pub(super) const STATEMENTS: usize = 64;

/// Pages that each connection keeps, in KB; further reads come from the system's cache of the file.
const PAGE_CACHE_KILOBYTES: i32 = 192;

/// Asks whether a table is missing that each version has.
const MISSING_TABLES: &str = "SELECT count(*) < 4 FROM sqlite_schema
     WHERE type = 'table' AND name IN ('agents', 'heads', 'messages', 'sessions')";

/// The database file, and the schema version of this program.
#[derive(Debug)]
pub(super) struct SqliteTarget {
    pub(super) place: StorePaths,
    pub(super) migrations: Migrations,
    pub(super) access: FileAccess,
    pub(super) files: OpenFiles,
    closing: Mutex<()>,
}

impl SqliteTarget {
    pub(super) fn new(place: StorePaths, migrations: Migrations, access: FileAccess) -> Self {
        Self {
            files: OpenFiles::new(&place),
            place,
            migrations,
            access,
            closing: Mutex::default(),
        }
    }

    /// Translates an error of SQLite; a missing or replaced file is the reason before any other.
    pub(super) fn error(&self, error: rusqlite::Error) -> StoreError {
        match self.files.check() {
            Err(absence) => absence.store_error(&self.place),
            Ok(()) => sql_error(self.path(), error),
        }
    }

    /// Returns the schema version of this program.
    pub(super) fn version(&self) -> u32 {
        u32::try_from(self.migrations.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn path(&self) -> &Path {
        &self.place.database
    }

    /// Opens one more connection to a database that was prepared before.
    pub(super) fn connect(&self) -> Result<Connection, rusqlite::Error> {
        if self.access == FileAccess::ReadOnly {
            return Err(failure(ffi::SQLITE_READONLY, "it is open read-only"));
        }
        // Without the flag that would create it: a database that was taken away must not be
        // replaced by an empty one.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(self.path(), flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "cache_size", -PAGE_CACHE_KILOBYTES)?;
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

    /// Reads through a separate connection.
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
            "another program changed it during the read; try again".into(),
        ))
    }

    /// Opens the database for the first time in this process.
    ///
    /// Creates it if it is missing, migrates an older one, refuses a newer or foreign one. A
    /// database of this version is only read.
    pub(super) fn prepare(&self) -> Result<Connection, StoreError> {
        if self.access == FileAccess::ReadOnly {
            return self.prepare_reading();
        }
        let fail = |error| sql_error(self.path(), error);
        let mut connection = self.connect().map_err(fail)?;
        // Another process may have created or migrated it meanwhile, so check again.
        loop {
            match self.state(&connection)? {
                FileState::Version(version) if version == self.version() => break,
                FileState::Version(version) if version > self.version() => {
                    return Err(StoreError::Newer {
                        store: version,
                        program: self.version(),
                    });
                }
                FileState::Version(_) => migrations::migrate(self, &mut connection)?,
                FileState::Empty => self.create(&mut connection)?,
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

    /// Opens a database that cannot be written; it must have this version already.
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
            FileState::Version(version) if version == self.version() => return Ok(connection),
            FileState::Version(store) if store > self.version() => {
                return Err(StoreError::Newer {
                    store,
                    program: self.version(),
                });
            }
            FileState::Version(version) => format!(
                "migrating it from version {version} to {} needs write access",
                self.version()
            ),
            FileState::Empty => "it is empty".to_owned(),
        };
        Err(StoreError::Unreadable {
            path: self.path().to_owned(),
            reason,
        })
    }

    /// Closes a connection. Its log is left alone if the files at these paths are other ones.
    ///
    /// One connection closes at a time: of two that close together, each prevents the other from
    /// taking the exclusive lock, and neither saves the log.
    pub(super) fn close(&self, connection: Connection) {
        let _one_at_a_time = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.access == FileAccess::Full && !self.files.may_fold() {
            let keep_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            let _ = connection.set_db_config(keep_log, true);
        }
        drop(connection);
    }

    /// Reads whether the database is ours, and its version.
    ///
    /// Reads everything at one moment, since another process may be creating it.
    pub(super) fn state(&self, connection: &Connection) -> Result<FileState, StoreError> {
        if !connection.is_autocommit() {
            return self.look(connection);
        }
        let moment = connection
            .unchecked_transaction()
            .map_err(|error| sql_error(self.path(), error))?;
        self.look(&moment)
    }

    fn look(&self, connection: &Connection) -> Result<FileState, StoreError> {
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
                Ok(FileState::Empty)
            };
        }
        let version = match u32::try_from(version) {
            Ok(version) if application == APPLICATION_ID => version,
            _ => return Err(not_ours()),
        };
        // The tables of a newer version are unknown here.
        let missing: bool = connection
            .query_row(MISSING_TABLES, [], |row| row.get(0))
            .map_err(fail)?;
        if version <= self.version() && missing {
            return Err(not_ours());
        }
        Ok(FileState::Version(version))
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
        if self.state(&transaction)? != FileState::Empty {
            return Ok(());
        }
        transaction
            .pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(fail)?;
        migrations::apply(self, &transaction, 0)?;
        transaction.commit().map_err(fail)
    }
}

/// State of a database file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileState {
    /// The file is empty.
    Empty,
    /// The file is ours, with this version.
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
