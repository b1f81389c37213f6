//! Queries about background processes.

use ikigai_core::{AgentId, Micros, Row, Span};
use tokio_postgres::Row as SqlRow;

use super::connect::Link;
use super::values::{Result, get, log_row, micros, number, parse_column, wide_id};
use crate::records::{JobRecord, RunId};
use crate::sql_common::{stored_limit, to_stored};

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
pub(super) async fn open_jobs(link: &Link, of: Option<AgentId>) -> Result<Vec<JobRecord>> {
    let of = of.map(|agent| agent.to_string());
    let sql = jobs_sql!(
        "WHERE j.ended IS NULL AND ($1::text IS NULL OR a.uuid = $1::text) ORDER BY j.id"
    );
    link.all(sql, &[&of], job).await
}

/// Returns the newest processes of an agent, newest first.
pub(super) async fn jobs(link: &Link, agent: AgentId, limit: usize) -> Result<Vec<JobRecord>> {
    let sql = jobs_sql!("WHERE a.uuid = $1 ORDER BY j.number DESC LIMIT $2");
    link.all(sql, &[&agent.to_string(), &stored_limit(limit)], job)
        .await
}

/// Query for the newest rows of a kind, which has an index.
macro_rules! newest_sql {
    ($kind:literal) => {
        concat!(
            "SELECT seq, kind, created_at, content, data, author FROM messages
             WHERE agent = (SELECT id FROM agents WHERE uuid = $1)
               AND kind = '",
            $kind,
            "' AND seq BETWEEN $2 AND $3
             ORDER BY seq DESC LIMIT $4"
        )
    };
}

/// Returns the newest `process` rows of a span, newest first.
pub(super) async fn process_rows(link: &Link, span: Span, limit: usize) -> Result<Vec<Row>> {
    newest_rows(link, newest_sql!("process"), span, limit).await
}

/// Returns the newest `files` rows of a span, newest first.
pub(super) async fn files_rows(link: &Link, span: Span, limit: usize) -> Result<Vec<Row>> {
    newest_rows(link, newest_sql!("files"), span, limit).await
}

async fn newest_rows(link: &Link, sql: &'static str, span: Span, limit: usize) -> Result<Vec<Row>> {
    let (from, to) = (to_stored(span.from.0), to_stored(span.to.0));
    let agent = span.agent;
    link.all(
        sql,
        &[&agent.to_string(), &from, &to, &stored_limit(limit)],
        |row| log_row(agent, row, 0),
    )
    .await
}

fn job(row: &SqlRow) -> Result<JobRecord> {
    Ok(JobRecord {
        id: RunId(wide_id(row, 0)?),
        agent: parse_column(row, 1)?,
        number: number(row, 2)?,
        command: get(row, 3)?,
        started: micros(row, 4)?,
        deadline: micros(row, 5)?,
        host: get(row, 6)?,
        directory: get(row, 7)?,
        pattern: get(row, 8)?,
        read_to: number(row, 9)?,
        ended: get::<Option<i64>>(row, 10)?.map(Micros),
    })
}
