//! Outlines of agents, and merges of children; each in one statement.

use ikigai_core::{AgentId, Micros, Row};
use tokio_postgres::Row as SqlRow;

use super::connect::Link;
use super::owner::is_alive_sql;
use super::queries::agent_record;
use super::values::{Result, get, log_row, optional_parsed, parse_column};
use crate::outline::{
    AgentOutline, MERGE_ROWS, TurnRow, follows_call_sql, turn_data_sql, turn_rows_sql,
};
use crate::sql_common::{agents_sql, stored_limit};

/// Reads the outlines of all agents that are not reaped.
pub(super) async fn outlines(link: &Link) -> Result<Vec<AgentOutline>> {
    // Each owner is checked once; few processes own agents.
    let sql = concat!(
        "WITH living AS MATERIALIZED (",
        is_alive_sql!(
            "p.id, ",
            "p.id IN (SELECT owner FROM heads WHERE owner IS NOT NULL)"
        ),
        ") ",
        agents_sql!(
            ", living.lives, t.kind, t.data, t.follows_call",
            concat!(
                "LEFT JOIN living ON living.id = h.owner
                 LEFT JOIN LATERAL (SELECT c.kind, ",
                turn_data_sql!(),
                " AS data, ",
                follows_call_sql!(),
                " AS follows_call FROM messages c WHERE c.agent = a.id AND ",
                turn_rows_sql!(),
                " ORDER BY c.seq DESC LIMIT 1) t ON a.status = 'running'
                 WHERE a.status <> 'reaped' ORDER BY a.id"
            )
        )
    );
    let read = |row: &SqlRow| {
        let turn_row = match optional_parsed(row, 17)? {
            Some(kind) => Some(TurnRow {
                kind,
                data: get(row, 18)?,
                follows_call: get(row, 19)?,
            }),
            None => None,
        };
        Ok(AgentOutline {
            agent: agent_record(row)?,
            is_held: get::<Option<bool>>(row, 16)?.unwrap_or(false),
            turn_row,
        })
    };
    link.all(sql, &[], read).await
}

/// Reads the rows of parents that merge children; see [`crate::ReadLog::merge_rows`].
pub(super) async fn merge_rows(link: &Link, parents: &[(AgentId, Micros)]) -> Result<Vec<Row>> {
    let sql = "WITH p AS MATERIALIZED (
             SELECT u.uuid, u.since, u.place, a.id, h.seq - $3 AS after
             FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS u (uuid, since, place)
             JOIN agents a ON a.uuid = u.uuid JOIN heads h ON h.agent = a.id)
         SELECT uuid, seq, kind, created_at, NULL::text, data, NULL::text FROM (
             SELECT p.uuid, p.place, m.seq, m.kind, m.created_at, m.data
             FROM p JOIN messages m ON m.agent = p.id AND m.kind = 'user' AND m.seq > p.after
             WHERE m.data LIKE '%\"merge\"%' AND m.created_at >= p.since
             UNION ALL
             SELECT p.uuid, p.place, m.seq, m.kind, m.created_at, m.data
             FROM p JOIN messages m ON m.agent = p.id AND m.control AND m.seq > p.after
             WHERE m.kind IN ('rewind', 'clear') AND m.created_at >= p.since) found
         ORDER BY place, seq DESC";
    let (ids, since): (Vec<String>, Vec<i64>) = parents
        .iter()
        .map(|(parent, since)| (parent.to_string(), since.0))
        .unzip();
    let values: &[super::pipeline::Value<'_>] = &[&ids, &since, &stored_limit(MERGE_ROWS)];
    link.all(sql, values, |row| log_row(parse_column(row, 0)?, row, 1))
        .await
}
