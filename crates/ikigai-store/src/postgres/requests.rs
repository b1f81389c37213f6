//! Requests to the processes that hold agents.

use ikigai_core::ProcessId;
use tokio_postgres::Row as SqlRow;

use super::connect::Link;
use super::errors::PostgresRefusal;
use super::pipeline::OwnedParam;
use super::statements::{Statement, clean};
use super::values::{Result, get, micros, optional_person, parse_column, wide_id};
use crate::records::{RequestId, RequestRecord, RequestState};
use crate::sql_common::{MOST_REQUESTS, requests_sql, stored_limit};
use crate::transaction::{RequestWrite, RowKeys};

fn request(row: &SqlRow) -> Result<RequestRecord> {
    Ok(RequestRecord {
        id: RequestId(wide_id(row, 0)?),
        agent: parse_column(row, 1)?,
        author: optional_person(row, 2)?,
        sent_at: micros(row, 3)?,
        expires_at: micros(row, 4)?,
        state: parse_column(row, 5)?,
        body: get(row, 6)?,
        answer: get(row, 7)?,
    })
}

/// Returns waiting requests to agents that a process holds, in order of sending.
pub(super) async fn waiting(link: &Link, process: ProcessId) -> Result<Vec<RequestRecord>> {
    let sql = requests_sql!(
        "JOIN heads h ON h.agent = r.agent JOIN processes p ON p.id = h.owner
         WHERE r.state = 'waiting' AND p.uuid = $1 ORDER BY r.id LIMIT $2"
    );
    let limit = stored_limit(MOST_REQUESTS);
    link.all(sql, &[&process.to_string(), &limit], request)
        .await
}

pub(super) async fn find(link: &Link, id: RequestId) -> Result<Option<RequestRecord>> {
    let sql = requests_sql!("WHERE r.uuid = $1");
    link.one(sql, &[&id.0.to_be_bytes().as_slice()], request)
        .await
}

/// Returns the statement of a write.
pub(super) fn statement(
    keys: &RowKeys,
    write: RequestWrite<'_>,
) -> Result<Statement, PostgresRefusal> {
    Ok(match write {
        RequestWrite::Insert(request) => {
            let values: Vec<OwnedParam> = vec![
                Box::new(request.id.0.to_be_bytes().to_vec()),
                Box::new(keys.agent(request.agent)?),
                Box::new(request.author.as_ref().map(ToString::to_string)),
                Box::new(request.sent_at.0),
                Box::new(request.expires_at.0),
                Box::new(RequestState::Waiting.word()),
                Box::new(clean(&request.body)),
            ];
            (
                "INSERT INTO requests (uuid, agent, author, sent_at, expires_at, state, body)
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
                values,
            )
        }
        RequestWrite::Settle {
            request,
            state,
            answer,
        } => {
            let values: Vec<OwnedParam> = vec![
                Box::new(request.0.to_be_bytes().to_vec()),
                Box::new(state.word()),
                Box::new(answer.map(clean)),
            ];
            (
                "UPDATE requests SET state = $2, answer = $3 WHERE uuid = $1",
                values,
            )
        }
    })
}
