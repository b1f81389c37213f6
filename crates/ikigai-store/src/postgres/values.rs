//! Conversion between columns of PostgreSQL and our types.

use std::fmt::Display;
use std::str::FromStr;

use ikigai_core::{AgentId, Micros, PersonName, ProcessId, Row, RowRef, Seq, StoredKind};
use tokio_postgres::Row as SqlRow;
use tokio_postgres::types::FromSql;

use super::errors::PostgresRefusal;
use crate::error::{CommitError, StoreError};
use crate::records::ProcessRecord;

#[derive(Debug)]
pub(super) enum QueryFailure {
    /// PostgreSQL failed.
    Sql(tokio_postgres::Error),
    /// A value is invalid.
    Value(String),
}

pub(super) type Result<T, E = QueryFailure> = std::result::Result<T, E>;

impl From<tokio_postgres::Error> for QueryFailure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<QueryFailure> for PostgresRefusal {
    fn from(failure: QueryFailure) -> Self {
        match failure {
            QueryFailure::Sql(error) => Self::Engine(error),
            QueryFailure::Value(what) => Self::Commit(CommitError::Store(StoreError::Value(what))),
        }
    }
}

fn bad(column: usize, error: impl Display) -> QueryFailure {
    QueryFailure::Value(format!("column {column}: {error}"))
}

/// Reads a column as it is.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a SqlRow, column: usize) -> Result<T> {
    row.try_get(column).map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        bad(column, cause.unwrap_or_else(|| error.to_string()))
    })
}

/// Reads an unsigned number.
pub(super) fn number(row: &SqlRow, column: usize) -> Result<u64> {
    to_unsigned(column, get(row, column)?)
}

fn to_unsigned(column: usize, number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|error| bad(column, error))
}

/// Reads an optional unsigned number.
pub(super) fn optional_number(row: &SqlRow, column: usize) -> Result<Option<u64>> {
    let number: Option<i64> = get(row, column)?;
    number.map(|number| to_unsigned(column, number)).transpose()
}

/// Reads a sequence number.
pub(super) fn seq(row: &SqlRow, column: usize) -> Result<Seq> {
    number(row, column).map(Seq)
}

/// Reads a time.
pub(super) fn micros(row: &SqlRow, column: usize) -> Result<Micros> {
    get(row, column).map(Micros)
}

/// Reads an id or a word.
pub(super) fn parse_column<T: FromStr<Err: Display>>(row: &SqlRow, column: usize) -> Result<T> {
    parse(column, get(row, column)?)
}

/// Reads an optional id or word.
pub(super) fn optional_parsed<T: FromStr<Err: Display>>(
    row: &SqlRow,
    column: usize,
) -> Result<Option<T>> {
    let text: Option<&str> = get(row, column)?;
    text.map(|text| parse(column, text)).transpose()
}

fn parse<T: FromStr<Err: Display>>(column: usize, text: &str) -> Result<T> {
    text.parse().map_err(|error| bad(column, error))
}

/// Reads a 128-bit id.
pub(super) fn wide_id(row: &SqlRow, column: usize) -> Result<u128> {
    let bytes: &[u8] = get(row, column)?;
    let bytes = bytes.try_into().map_err(|error| bad(column, error))?;
    Ok(u128::from_be_bytes(bytes))
}

pub(super) fn optional_row_ref(row: &SqlRow, agent: usize, seq: usize) -> Result<Option<RowRef>> {
    let agent: Option<AgentId> = optional_parsed(row, agent)?;
    let number: Option<i64> = get(row, seq)?;
    let number = number.map(|number| to_unsigned(seq, number)).transpose()?;
    Ok(agent
        .zip(number)
        .map(|(agent, seq)| RowRef::new(agent, Seq(seq))))
}

/// Reads an optional person; an invalid name counts as none.
pub(super) fn optional_person(row: &SqlRow, column: usize) -> Result<Option<PersonName>> {
    let name: Option<&str> = get(row, column)?;
    Ok(name.and_then(|name| name.parse().ok()))
}

/// Reads an optional process from six columns: id, pid, started, host, machine, person.
pub(super) fn optional_process(row: &SqlRow, first: usize) -> Result<Option<ProcessRecord>> {
    let Some(id) = optional_parsed::<ProcessId>(row, first)? else {
        return Ok(None);
    };
    let pid: i64 = get(row, first + 1)?;
    Ok(Some(ProcessRecord {
        id,
        pid: u32::try_from(pid).map_err(|error| bad(first + 1, error))?,
        started: micros(row, first + 2)?,
        host: get(row, first + 3)?,
        machine: optional_parsed(row, first + 4)?,
        person: optional_person(row, first + 5)?,
    }))
}

/// Reads a row of the log from six columns on: seq, kind, created at, content, data, author.
pub(super) fn log_row(agent: AgentId, row: &SqlRow, first: usize) -> Result<Row> {
    Ok(Row {
        at: RowRef::new(agent, seq(row, first)?),
        kind: StoredKind::of(get(row, first + 1)?),
        created_at: micros(row, first + 2)?,
        content: get(row, first + 3)?,
        data: get(row, first + 4)?,
        author: optional_person(row, first + 5)?,
    })
}
