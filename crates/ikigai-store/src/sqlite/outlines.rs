//! Outlines of agents, and merges of children.

use ikigai_core::{AgentId, Micros, Row};
use rusqlite::{Connection, Result, params};

use super::queries::{agent_record, all};
use super::values::{log_row, optional_parsed, text};
use crate::outline::{
    AgentOutline, MERGE_ROWS, TurnRow, follows_call_sql, turn_data_sql, turn_rows_sql,
};
use crate::sql_common::{agents_sql, stored_limit};

/// Reads the outlines of all agents that are not reaped; the owners are not checked.
pub(super) fn outlines(connection: &Connection) -> Result<Vec<AgentOutline>> {
    let sql = agents_sql!(
        concat!(", c.kind, ", turn_data_sql!(), ", ", follows_call_sql!()),
        concat!(
            "LEFT JOIN messages c ON c.agent = a.id AND c.seq = (
                 SELECT max(c.seq) FROM messages c WHERE c.agent = a.id AND ",
            turn_rows_sql!(),
            ") AND a.status = 'running'
             WHERE a.status <> 'reaped' ORDER BY a.id"
        )
    );
    all(connection, sql, [], |row| {
        let turn_row = match optional_parsed(row, 16)? {
            Some(kind) => Some(TurnRow {
                kind,
                data: text(row, 17)?,
                follows_call: row.get(18)?,
            }),
            None => None,
        };
        Ok(AgentOutline {
            agent: agent_record(row)?,
            is_held: false,
            turn_row,
        })
    })
}

/// Reads the rows of parents that merge children; see [`crate::ReadLog::merge_rows`].
pub(super) fn merge_rows(
    connection: &Connection,
    parents: &[(AgentId, Micros)],
) -> Result<Vec<Row>> {
    let sql = "WITH p AS (SELECT a.id, h.seq - ?3 AS after FROM agents a
                  JOIN heads h ON h.agent = a.id WHERE a.uuid = ?1)
         SELECT seq, kind, created_at, NULL, data, NULL FROM (
             SELECT m.seq, m.kind, m.created_at, m.data
             FROM p JOIN messages m INDEXED BY messages_user
                  ON m.agent = p.id AND m.kind = 'user' AND m.seq > p.after
             WHERE m.data LIKE '%\"merge\"%'
             UNION ALL
             SELECT m.seq, m.kind, m.created_at, m.data
             FROM p JOIN messages m INDEXED BY messages_control
                  ON m.agent = p.id AND m.control = 1 AND m.seq > p.after
             WHERE m.kind IN ('rewind', 'clear'))
         WHERE created_at >= ?2 ORDER BY seq DESC";
    let mut found = Vec::new();
    for (parent, since) in parents {
        let values = params![parent.to_string(), since.0, stored_limit(MERGE_ROWS)];
        found.extend(all(connection, sql, values, |row| log_row(*parent, row))?);
    }
    Ok(found)
}
