//! Translation of errors of SQLite and the file system for callers.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{ErrorCode, ffi};

use crate::error::{BatchRefusal, BoxError, StoreError};

/// An error of SQLite that the batches of one transaction share.
pub(super) type SharedSqliteError = Arc<rusqlite::Error>;

/// Reason why SQLite did not apply a batch.
pub(super) type SqliteRefusal = BatchRefusal<rusqlite::Error>;

impl From<rusqlite::Error> for SqliteRefusal {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error)
    }
}

/// Translates an error of SQLite about the database at `path`.
pub(super) fn store_error(path: &Path, cause: &SharedSqliteError) -> StoreError {
    let source = || -> BoxError { Box::new(Arc::clone(cause)) };
    let Some(error) = cause.sqlite_error() else {
        return match cause.as_ref() {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => StoreError::Value(cause.to_string()),
            _ => StoreError::Io(source()),
        };
    };
    match error.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy(source()),
        ErrorCode::DiskFull => StoreError::Full(source()),
        // The index of the log is enlarged by writing to it, which fails when there is no room.
        ErrorCode::SystemIoFailure if error.extended_code == ffi::SQLITE_IOERR_SHMSIZE => {
            StoreError::Full(source())
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => StoreError::ReadOnly(source()),
        // A file that exists but cannot be opened, or next to which no log can be created, has
        // wrong permissions.
        ErrorCode::CannotOpen if path.exists() => StoreError::ReadOnly(source()),
        ErrorCode::CannotOpen => StoreError::Place {
            path: path.to_owned(),
            source: source(),
        },
        ErrorCode::DatabaseCorrupt => StoreError::Corrupt(source()),
        ErrorCode::NotADatabase => StoreError::NotOurs {
            path: path.to_owned(),
        },
        _ => StoreError::Io(source()),
    }
}

/// Translates an error of SQLite for a single caller.
pub(super) fn sql_error(path: &Path, error: rusqlite::Error) -> StoreError {
    store_error(path, &Arc::new(error))
}

/// Translates an error of the file system about `path`.
pub(super) fn file_error(path: &Path, error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            StoreError::Full(Box::new(error))
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::ReadOnly(Box::new(error))
        }
        _ => StoreError::Place {
            path: path.to_owned(),
            source: Box::new(error),
        },
    }
}

/// Returns true if an error is the violation of a unique index.
pub(super) fn is_unique_violation(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| {
        matches!(
            error.extended_code,
            ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
        )
    })
}

/// Returns true if an error is the violation of a foreign key.
pub(super) fn is_reference_violation(error: &rusqlite::Error) -> bool {
    error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == ffi::SQLITE_CONSTRAINT_FOREIGNKEY)
}

/// Returns true if the connection can no longer be trusted after an error.
pub(super) fn breaks_connection(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| {
        matches!(
            error.code,
            ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
        )
    })
}
