//! Conversion between columns of SQLite and our types.

use std::str::FromStr;

use ikigai_core::{AgentId, Micros, PersonName, ProcessId, Row, RowRef, Seq, StoredKind};
use rusqlite::types::{FromSqlError, Type, ValueRef};

use crate::records::ProcessRecord;
use crate::sql_common::to_stored;

/// Reads an unsigned number.
pub(super) fn number(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

/// Reads an optional unsigned number.
pub(super) fn optional_number(
    row: &rusqlite::Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<u64>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => number(row, column).map(Some),
    }
}

/// Reads a sequence number.
pub(super) fn seq(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Seq> {
    number(row, column).map(Seq)
}

/// Reads a time.
pub(super) fn micros(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Micros> {
    row.get(column).map(Micros)
}

/// Reads an id or a word.
pub(super) fn parse_column<T>(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text = row
        .get_ref(column)?
        .as_str()
        .map_err(|error| bad(column, error))?;
    text.parse().map_err(|error| bad(column, error))
}

/// Reads an optional id or word.
pub(super) fn optional_parsed<T>(
    row: &rusqlite::Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<T>>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => parse_column(row, column).map(Some),
    }
}

fn bad(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}

/// Reads a text; invalid UTF-8 is replaced, so that one bad row does not block the others.
pub(super) fn text(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
    })
}

/// Reads a 128-bit id.
pub(super) fn wide_id(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u128> {
    row.get(column).map(u128::from_be_bytes)
}

pub(super) fn optional_row_ref(
    row: &rusqlite::Row<'_>,
    agent: usize,
    seq: usize,
) -> rusqlite::Result<Option<RowRef>> {
    let agent: Option<AgentId> = optional_parsed(row, agent)?;
    let seq = optional_number(row, seq)?.map(Seq);
    Ok(agent.zip(seq).map(|(agent, seq)| RowRef::new(agent, seq)))
}

/// Reads an optional person; an invalid name counts as none.
pub(super) fn optional_person(
    row: &rusqlite::Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<PersonName>> {
    let name = text(row, column)?;
    Ok(name.and_then(|name| name.parse().ok()))
}

/// Reads an optional process from six columns: id, pid, started, host, machine, person.
pub(super) fn optional_process(
    row: &rusqlite::Row<'_>,
    first: usize,
) -> rusqlite::Result<Option<ProcessRecord>> {
    let Some(id) = optional_parsed::<ProcessId>(row, first)? else {
        return Ok(None);
    };
    let pid = number(row, first + 1)?;
    Ok(Some(ProcessRecord {
        id,
        pid: u32::try_from(pid)
            .map_err(|_| bad(first + 1, FromSqlError::OutOfRange(to_stored(pid))))?,
        started: micros(row, first + 2)?,
        host: text(row, first + 3)?.unwrap_or_default(),
        machine: optional_parsed(row, first + 4)?,
        person: optional_person(row, first + 5)?,
    }))
}

/// Reads a row of the log from six columns: seq, kind, created at, content, data, author.
pub(super) fn log_row(agent: AgentId, row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        at: RowRef::new(agent, seq(row, 0)?),
        kind: StoredKind::of(&text(row, 1)?.unwrap_or_default()),
        created_at: micros(row, 2)?,
        content: text(row, 3)?,
        data: text(row, 4)?,
        author: optional_person(row, 5)?,
    })
}
