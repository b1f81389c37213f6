//! Queries of the user's own, in SQL: limits and answers, on every engine.

use std::time::Duration;

use thiserror::Error;

/// How much an answer holds at most; the rest is left out.
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

/// What came of a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
    /// There was more.
    pub cut: bool,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// NULL.
    Nothing,
    /// A whole number.
    Integer(i64),
    /// Another number.
    Real(f64),
    /// A text; bytes that are none are replaced.
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
    /// It ran longer than allowed and was stopped.
    #[error("the query was stopped after {} s", .0.as_secs_f64())]
    TimedOut(Duration),
}

impl Cell {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
            Self::Nothing | Self::Integer(_) | Self::Real(_) => size_of::<Self>(),
        }
    }
}
