//! Questions of the user's own, in SQL: what is answered, on every engine.

use thiserror::Error;

/// How much an answer holds at most; the rest is left out.
pub(crate) const MOST_BYTES: usize = 64 * 1024 * 1024;

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

/// Why a question was not answered.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct BadQuestion(pub(crate) String);

impl Cell {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
            Self::Nothing | Self::Integer(_) | Self::Real(_) => size_of::<Self>(),
        }
    }
}
