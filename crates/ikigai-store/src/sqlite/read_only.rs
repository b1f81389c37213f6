//! Connections to a store that this process cannot write.
//!
//! SQLite shares a log between processes through a file of shared memory, which it must be able to
//! open. Where that file is missing, no program has the database open, so a private index of the
//! log, or the database alone, holds everything.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{Access, access};

use super::connect::{BUSY_TIMEOUT, STATEMENTS};
use super::identity::FileVersion;
use super::paths::StorePaths;
use crate::error::StoreError;

/// Rights of this process to the store's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileAccess {
    Full,
    ReadOnly,
}

impl FileAccess {
    /// Finds out whether the file and the directory of an existing database can be written.
    pub(super) fn probe(place: &StorePaths) -> Self {
        let directory = place.directory();
        let is_writable = place.network.is_none()
            && access(&place.database, Access::WRITE_OK).is_ok()
            && access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok();
        if is_writable {
            Self::Full
        } else {
            Self::ReadOnly
        }
    }
}

/// Way in which a connection shares the WAL with other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogSharing {
    /// Through the shared index, with locks.
    Shared,
    /// Not at all: this connection reads the log and indexes it in memory.
    Private,
    /// There is no log.
    None,
}

impl LogSharing {
    fn find(place: &StorePaths) -> Self {
        match (place.wal().exists(), place.shm().exists()) {
            (true, true) => Self::Shared,
            (true, false) => Self::Private,
            (false, _) => Self::None,
        }
    }

    fn parameters(self) -> &'static str {
        match self {
            Self::Shared => "mode=ro",
            Self::Private => "mode=ro&vfs=unix-none",
            Self::None => "immutable=1",
        }
    }
}

/// Versions of the files that a connection without locks reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadVersions {
    sharing: LogSharing,
    database: Option<FileVersion>,
    wal: Option<FileVersion>,
}

impl ReadVersions {
    /// Reads the versions; they are ignored where locks are taken.
    pub(super) fn read(place: &StorePaths) -> Self {
        let sharing = LogSharing::find(place);
        let version = |path: &Path| match sharing {
            LogSharing::Shared => None,
            LogSharing::Private | LogSharing::None => FileVersion::read(path).ok().flatten(),
        };
        Self {
            sharing,
            database: version(&place.database),
            wal: version(&place.wal()),
        }
    }
}

/// Opens a connection that neither writes nor creates a file.
pub(super) fn connect(place: &StorePaths) -> rusqlite::Result<Connection> {
    let sharing = LogSharing::find(place);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let uri = format!("{}?{}", uri(&place.database), sharing.parameters());
    let connection = Connection::open_with_flags(uri, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    if sharing == LogSharing::Private {
        connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
    }
    // No directory for temporary files may be writable.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // The log is opened with the first statement that reads.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

/// Makes the error for a store that cannot even be opened for reading.
pub(super) fn unreadable(place: &StorePaths, error: &rusqlite::Error) -> StoreError {
    let log = place.wal();
    let has_log = log.metadata().is_ok_and(|metadata| metadata.len() > 0);
    let reason = if has_log {
        format!(
            "newer events are in `{}`, which cannot be read ({error})",
            log.display()
        )
    } else {
        error.to_string()
    };
    StoreError::Unreadable {
        path: place.database.clone(),
        reason,
    }
}

fn uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}
