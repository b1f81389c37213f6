//! Queries about background processes.

use ikigai_core::{AgentId, Micros, Row, Span};
use rusqlite::{Connection, Result, Row as SqlRow, params};

use super::queries::{all, newest_sql, span_rows};
use super::values::{micros, number, parse_column, text, wide_id};
use crate::records::{JobRecord, RunId};
use crate::sql_common::stored_limit;

macro_rules! jobs_sql {
    ($rest:literal) => {
        concat!(
            "SELECT j.uuid, a.uuid, j.number, j.command, j.started, j.deadline, j.host,
                    j.directory, j.pattern, j.read_to, j.ended
             FROM jobs j JOIN agents a ON a.id = j.agent ",
            $rest
        )
    };
}

/// Returns the running processes of an agent or of all.
pub(super) fn open_jobs(connection: &Connection, of: Option<AgentId>) -> Result<Vec<JobRecord>> {
    let sql = jobs_sql!(
        "WHERE j.ended IS NULL AND (?1 IS NULL OR j.agent = (SELECT id FROM agents WHERE uuid = ?1))
         ORDER BY j.id"
    );
    let of = of.map(|agent| agent.to_string());
    all(connection, sql, [of], job)
}

/// Returns the newest processes of an agent, newest first.
pub(super) fn jobs(
    connection: &Connection,
    agent: AgentId,
    limit: usize,
) -> Result<Vec<JobRecord>> {
    let sql = jobs_sql!(
        "WHERE j.agent = (SELECT id FROM agents WHERE uuid = ?1) ORDER BY j.number DESC LIMIT ?2"
    );
    all(
        connection,
        sql,
        params![agent.to_string(), stored_limit(limit)],
        job,
    )
}

/// Returns the newest `process` rows of a span, newest first.
pub(super) fn process_rows(connection: &Connection, span: Span, limit: usize) -> Result<Vec<Row>> {
    span_rows(
        connection,
        newest_sql!("messages_process", "kind = 'process'"),
        span,
        limit,
    )
}

fn job(row: &SqlRow<'_>) -> Result<JobRecord> {
    Ok(JobRecord {
        id: RunId(wide_id(row, 0)?),
        agent: parse_column(row, 1)?,
        number: number(row, 2)?,
        command: text(row, 3)?.unwrap_or_default(),
        started: micros(row, 4)?,
        deadline: micros(row, 5)?,
        host: text(row, 6)?.unwrap_or_default(),
        directory: text(row, 7)?.unwrap_or_default(),
        pattern: text(row, 8)?,
        read_to: number(row, 9)?,
        ended: row.get::<_, Option<i64>>(10)?.map(Micros),
    })
}
