//! Marks of how far people have read.

use ikigai_core::Seq;
use rusqlite::{Connection, Result, params};

use super::errors::SqliteRefusal;
use super::queries::all;
use super::values::{parse_column, seq};
use crate::records::SeenMark;
use crate::sql_common::to_stored;
use crate::transaction::RowKeys;

/// Returns the marks of a person on running agents; the empty name stands for everyone.
pub(super) fn marks(connection: &Connection, person: &str) -> Result<Vec<SeenMark>> {
    let sql = "SELECT a.uuid, max(s.read_to), max(s.dismissed_to)
         FROM agents a JOIN seen s ON s.agent = a.id
         WHERE a.status = 'running' AND s.person IN ('', ?1) GROUP BY a.id ORDER BY a.id";
    all(connection, sql, [person], |row| {
        Ok(SeenMark {
            agent: parse_column(row, 0)?,
            read: seq(row, 1)?,
            dismissed: seq(row, 2)?,
        })
    })
}

/// Inserts or raises a mark.
pub(super) fn mark(
    connection: &Connection,
    keys: &RowKeys,
    person: &str,
    mark: SeenMark,
) -> std::result::Result<(), SqliteRefusal> {
    let agent = keys.agent(mark.agent)?;
    let stored = |seq: Seq| to_stored(seq.0);
    let sql = "INSERT INTO seen (agent, person, read_to, dismissed_to) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (agent, person) DO UPDATE SET
             read_to = max(read_to, excluded.read_to),
             dismissed_to = max(dismissed_to, excluded.dismissed_to)";
    let values = params![agent, person, stored(mark.read), stored(mark.dismissed)];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}
