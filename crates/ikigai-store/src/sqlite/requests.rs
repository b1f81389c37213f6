//! Requests to the processes that hold agents.

use ikigai_core::{PersonName, ProcessId};
use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use super::errors::SqliteRefusal;
use super::queries::{all, one};
use super::values::{micros, optional_person, parse_column, text, wide_id};
use crate::records::{RequestId, RequestRecord, RequestState};
use crate::sql_common::{MOST_REQUESTS, requests_sql, stored_limit};
use crate::transaction::{RequestWrite, RowKeys};

fn request(row: &SqlRow<'_>) -> rusqlite::Result<RequestRecord> {
    Ok(RequestRecord {
        id: RequestId(wide_id(row, 0)?),
        agent: parse_column(row, 1)?,
        author: optional_person(row, 2)?,
        sent_at: micros(row, 3)?,
        expires_at: micros(row, 4)?,
        state: parse_column(row, 5)?,
        body: text(row, 6)?.unwrap_or_default(),
        answer: text(row, 7)?,
    })
}

/// Returns waiting requests to agents that a process holds, in order of sending.
pub(super) fn waiting(
    connection: &Connection,
    process: ProcessId,
) -> rusqlite::Result<Vec<RequestRecord>> {
    let sql = requests_sql!(
        "JOIN heads h ON h.agent = r.agent JOIN processes p ON p.id = h.owner
         WHERE r.state = 'waiting' AND p.uuid = ?1 ORDER BY r.id LIMIT ?2"
    );
    let limit = stored_limit(MOST_REQUESTS);
    all(
        connection,
        sql,
        params![process.to_string(), limit],
        request,
    )
}

pub(super) fn find(
    connection: &Connection,
    id: RequestId,
) -> rusqlite::Result<Option<RequestRecord>> {
    let sql = requests_sql!("WHERE r.uuid = ?1");
    one(connection, sql, params![id.0.to_be_bytes()], request)
}

pub(super) fn state(
    connection: &Connection,
    id: RequestId,
) -> rusqlite::Result<Option<RequestState>> {
    connection
        .prepare_cached("SELECT state FROM requests WHERE uuid = ?1")?
        .query_row(params![id.0.to_be_bytes()], |row| parse_column(row, 0))
        .optional()
}

pub(super) fn write(
    connection: &Connection,
    keys: &RowKeys,
    write: RequestWrite<'_>,
) -> Result<(), SqliteRefusal> {
    match write {
        RequestWrite::Insert(request) => connection
            .prepare_cached(
                "INSERT INTO requests (uuid, agent, author, sent_at, expires_at, state, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                request.id.0.to_be_bytes(),
                keys.agent(request.agent)?,
                request.author.as_ref().map(PersonName::as_str),
                request.sent_at.0,
                request.expires_at.0,
                RequestState::Waiting.word(),
                request.body
            ])?,
        RequestWrite::Settle {
            request,
            state,
            answer,
        } => connection
            .prepare_cached("UPDATE requests SET state = ?2, answer = ?3 WHERE uuid = ?1")?
            .execute(params![request.0.to_be_bytes(), state.word(), answer])?,
    };
    Ok(())
}
