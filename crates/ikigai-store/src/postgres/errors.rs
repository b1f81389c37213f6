//! Translation of errors of the server and the network for callers.

use std::error::Error as _;
use std::io;
use std::sync::Arc;

use thiserror::Error;
use tokio_postgres::error::SqlState;

use super::tls::TlsError;
use crate::error::{BatchRefusal, BoxError, StoreError};
use crate::server_url::Url;

/// Reason why PostgreSQL did not apply a batch.
pub(super) type PostgresRefusal = BatchRefusal<tokio_postgres::Error>;

impl From<tokio_postgres::Error> for PostgresRefusal {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Engine(error)
    }
}

/// Failure of the server, which the batches of one transaction share.
#[derive(Clone, Debug, Error)]
pub enum ServerError {
    /// Error of the server or the network.
    #[error("{}", server_message(_0))]
    Sql(Arc<tokio_postgres::Error>),
    /// The server does not answer.
    #[error("no answer")]
    Silence,
    /// The server cannot be used.
    #[error("{reason}")]
    Unfit {
        reason: String,
        advice: &'static str,
    },
}

impl From<tokio_postgres::Error> for ServerError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(Arc::new(error))
    }
}

impl ServerError {
    /// Translates it for a caller.
    pub fn store_error(&self, url: &Url) -> StoreError {
        match self {
            Self::Sql(error) => sql_cause(url, error),
            Self::Silence => away(url, self.to_string()),
            Self::Unfit { reason, advice } => unfit(url, reason, advice),
        }
    }
}

/// Translates an error for a single caller.
pub(crate) fn sql_error(url: &Url, error: tokio_postgres::Error) -> StoreError {
    ServerError::from(error).store_error(url)
}

/// Returns the message of the server or the network, which the library hides.
pub(super) fn server_message(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(error_fields), _) => error_fields.message().to_owned(),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

fn away(url: &Url, reason: String) -> StoreError {
    StoreError::Away {
        server: url.to_string(),
        reason,
    }
}

fn unfit(url: &Url, reason: &str, advice: &'static str) -> StoreError {
    StoreError::Server {
        server: url.to_string(),
        reason: reason.to_owned(),
        advice,
    }
}

fn sql_cause(url: &Url, error: &Arc<tokio_postgres::Error>) -> StoreError {
    let Some(error_fields) = error.as_db_error() else {
        return connection_error(url, error);
    };
    let source = || -> BoxError { Box::new(Arc::clone(error)) };
    let text = error_fields.message();
    match error_fields.code() {
        code if is_absence(code) => away(url, text.to_owned()),
        &SqlState::DISK_FULL => StoreError::Full(source()),
        &SqlState::READ_ONLY_SQL_TRANSACTION => StoreError::ReadOnly(source()),
        &SqlState::T_R_SERIALIZATION_FAILURE
        | &SqlState::T_R_DEADLOCK_DETECTED
        | &SqlState::LOCK_NOT_AVAILABLE
        | &SqlState::QUERY_CANCELED => StoreError::Busy(source()),
        &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => StoreError::Corrupt(source()),
        &SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => unfit(
            url,
            text,
            "check user and password: in the URL, in PGPASSWORD, or in ~/.pgpass",
        ),
        &SqlState::INVALID_CATALOG_NAME => unfit(
            url,
            text,
            "create the database with `createdb`, or choose another",
        ),
        &SqlState::INSUFFICIENT_PRIVILEGE => unfit(
            url,
            text,
            "ask the owner of the database for the privileges in docs/sharing.md",
        ),
        &SqlState::UNDEFINED_TABLE
        | &SqlState::UNDEFINED_COLUMN
        | &SqlState::INVALID_SCHEMA_NAME => unfit(
            url,
            text,
            "the tables are not as ikigai created them: restore a backup, or choose another schema",
        ),
        _ => StoreError::Io(source()),
    }
}

/// Translates an error that is not the server's.
fn connection_error(url: &Url, error: &Arc<tokio_postgres::Error>) -> StoreError {
    let Some(source) = error.source() else {
        return if is_reading_mistake(error) {
            StoreError::Value(error.to_string())
        } else {
            away(url, error.to_string())
        };
    };
    let is_told_by = |beginning| error.to_string().starts_with(beginning);
    if source.is::<TlsError>() || is_told_by("error performing TLS") {
        return unfit(
            url,
            &format!("TLS failed: {source}"),
            "check `sslmode` and `sslrootcert` in the URL, and the server's certificate",
        );
    }
    if source.is::<io::Error>() {
        return away(url, source.to_string());
    }
    let text = format!("{error}: {source}");
    if is_told_by("authentication") || is_told_by("invalid configuration") {
        return unfit(
            url,
            &text,
            "set a password in the URL, in PGPASSWORD, or in ~/.pgpass",
        );
    }
    if is_reading_mistake(error) {
        return StoreError::Value(text);
    }
    away(url, text)
}

/// Returns true if a column had the wrong type; the library reports this only as text.
fn is_reading_mistake(error: &tokio_postgres::Error) -> bool {
    let text = error.to_string();
    [
        "error deserializing",
        "error serializing",
        "invalid column",
        "query returned",
    ]
    .iter()
    .any(|beginning| text.starts_with(beginning))
}

/// Returns true if a code means that the server starts, stops or is full.
fn is_absence(code: &SqlState) -> bool {
    code.code().starts_with("08")
        || [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            SqlState::IDLE_SESSION_TIMEOUT,
        ]
        .contains(code)
}

/// Returns true if the connection is unusable after an error.
pub(super) fn breaks_connection(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => is_absence(code),
        None => !is_reading_mistake(error),
    }
}

/// Returns true if retrying the transaction may help, because it collided with another one.
pub(super) fn may_try_again(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ]
        .contains(code)
    })
}

/// Returns true if an error is the violation of a unique index.
pub(super) fn is_unique_violation(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::UNIQUE_VIOLATION)
}

/// Returns true if an error is the violation of a foreign key.
pub(super) fn is_reference_violation(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::FOREIGN_KEY_VIOLATION)
}
