//! Relations of agents and counters of the log, read without scanning all agents.

use ikigai_core::{AgentId, SessionId};
use tokio_postgres::Row as SqlRow;

use super::connect::Link;
use super::values::{QueryFailure, Result, get, number, parse_column};
use crate::records::{Ancestry, MOST_DEPTH, Pulse};
use crate::sql_common::stored_limit;

pub(super) async fn ancestry(link: &Link, agent: AgentId, most: usize) -> Result<Option<Ancestry>> {
    // The array of visited agents and UNION each end cycles. LIMIT stops the recursion once the
    // count is reached.
    let sql = "WITH RECURSIVE up (id, uuid, parent, depth, seen) AS (
             SELECT id, uuid, parent, 0, ARRAY[]::bigint[] FROM agents WHERE uuid = $1
             UNION ALL
             SELECT p.id, p.uuid, p.parent, up.depth + 1, up.seen || p.id
             FROM up JOIN agents p ON p.id = up.parent
             WHERE p.id <> ALL (up.seen) AND up.depth < $3),
         family (id) AS (
             (SELECT id FROM up ORDER BY depth DESC LIMIT 1)
             UNION
             SELECT a.id FROM family f JOIN agents a ON a.parent = f.id AND a.status = 'running')
         SELECT (SELECT array_agg(uuid ORDER BY depth) FROM up WHERE depth > 0),
                (SELECT count(*) FROM agents
                 WHERE parent = own.id AND status = 'running'),
                (SELECT count(*) FROM (SELECT 1 FROM family LIMIT $2) counted)
         FROM up own WHERE depth = 0";
    let most_depth = i32::try_from(MOST_DEPTH).unwrap_or(i32::MAX);
    let read = |row: &SqlRow| {
        let ancestors: Option<Vec<&str>> = get(row, 0)?;
        let ancestors = ancestors.unwrap_or_default().into_iter();
        Ok(Ancestry {
            ancestors: ancestors
                .map(str::parse)
                .collect::<std::result::Result<_, _>>()
                .map_err(|error: ikigai_core::ids::ParseIdError| {
                    QueryFailure::Value(error.to_string())
                })?,
            children: count(row, 1)?,
            family: count(row, 2)?,
        })
    };
    let values: &[super::pipeline::Value<'_>] =
        &[&agent.to_string(), &stored_limit(most), &most_depth];
    link.one(sql, values, read).await
}

fn count(row: &SqlRow, column: usize) -> Result<usize> {
    Ok(usize::try_from(number(row, column)?).unwrap_or(usize::MAX))
}

/// Names of a session's running agents that start with a prefix: a range of an index.
pub(super) async fn living_names(
    link: &Link,
    session: SessionId,
    beginning: &str,
) -> Result<Vec<String>> {
    let sql = "SELECT name FROM agents
         WHERE status = 'running' AND session = (SELECT id FROM sessions WHERE uuid = $1)
           AND name >= $2 AND name < $3 ORDER BY name";
    // Names are ASCII, so the largest character ends the range.
    let end = format!("{beginning}\u{10FFFF}");
    let session = session.to_string();
    link.all(sql, &[&session, &beginning, &end], |row| get(row, 0))
        .await
}

pub(super) async fn dead_among(link: &Link, agents: &[AgentId]) -> Result<Vec<AgentId>> {
    let sql = "SELECT a.uuid FROM unnest($1::text[]) WITH ORDINALITY AS u (uuid, place)
         JOIN agents a ON a.uuid = u.uuid
         WHERE a.status <> 'running' ORDER BY u.place";
    let agents: Vec<String> = agents.iter().map(ToString::to_string).collect();
    link.all(sql, &[&agents], |row| parse_column(row, 0)).await
}

pub(super) async fn pulse(link: &Link) -> Result<Pulse> {
    // Ids are drawn before they are committed, so the largest id misses late commits. The sum of
    // the heads counts every row. For mail the sum of the newest ids suffices: a late one is among
    // them.
    let sql = "SELECT (SELECT coalesce(sum(seq), 0)::bigint FROM heads),
                (SELECT coalesce(sum(id), 0)::bigint
                 FROM (SELECT id FROM mail ORDER BY id DESC LIMIT 1000) newest)";
    let read = |row: &SqlRow| {
        Ok(Pulse {
            rows: number(row, 0)?,
            mail: number(row, 1)?,
        })
    };
    link.only(sql, &[], read).await
}
