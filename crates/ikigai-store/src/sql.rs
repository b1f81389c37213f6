//! SQL queries of the user: limits and results.

use std::time::Duration;

use thiserror::Error;

/// Limit of a result in bytes; the rest is cut.
pub(crate) const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Time after the deadline in which an engine must have stopped a query by itself.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// Bounds of one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    /// Most rows that are returned.
    pub rows: usize,
    /// Longest time for the query.
    pub time: Duration,
}

/// Result of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryTable {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<QueryValue>>,
    /// The result is cut.
    pub cut: bool,
}

/// One value of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryValue {
    /// NULL.
    Nothing,
    /// A whole number.
    Integer(i64),
    /// Another number.
    Real(f64),
    /// Text; invalid UTF-8 is replaced.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// Reason why a query was not answered.
#[derive(Debug, Error)]
pub enum QueryError {
    /// The engine, or the rules for queries, refused it.
    #[error("{0}")]
    Refused(String),
    /// The query ran longer than allowed and was stopped.
    #[error("the query was stopped after {} s", .0.as_secs_f64())]
    TimedOut(Duration),
}

impl QueryValue {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
            Self::Nothing | Self::Integer(_) | Self::Real(_) => size_of::<Self>(),
        }
    }
}
