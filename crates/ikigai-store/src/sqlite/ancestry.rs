//! Relations of agents and counters of the log, read without scanning all agents.

use ikigai_core::{AgentId, SessionId};
use rusqlite::{Connection, OptionalExtension, Result, params};

use super::queries::{all, one};
use super::values::{number, parse_column, text};
use crate::records::{Ancestry, MOST_DEPTH, Pulse};
use crate::sql_common::stored_limit;

pub(super) fn ancestry(
    connection: &Connection,
    agent: AgentId,
    most: usize,
) -> Result<Option<Ancestry>> {
    let Some(own) = number_of(connection, agent)? else {
        return Ok(None);
    };
    let mut ancestors = Vec::new();
    let mut root = own;
    while let Some((number, id)) = parent_of(connection, root)? {
        if ancestors.contains(&id) || ancestors.len() == MOST_DEPTH {
            break;
        }
        ancestors.push(id);
        root = number;
    }
    Ok(Some(Ancestry {
        ancestors,
        children: count(
            connection,
            "SELECT count(*) FROM agents INDEXED BY agents_living_parent
             WHERE parent = ?1 AND status = 'running' AND ?2 > 0",
            own,
            1,
        )?,
        // Breadth first, up to the limit; UNION ends cycles.
        family: count(
            connection,
            "WITH RECURSIVE family (id) AS (
                 SELECT ?1
                 UNION
                 SELECT a.id FROM family f
                 JOIN agents a INDEXED BY agents_living_parent
                      ON a.parent = f.id AND a.status = 'running'
                 LIMIT ?2)
             SELECT count(*) FROM family",
            root,
            most,
        )?,
    }))
}

fn number_of(connection: &Connection, agent: AgentId) -> Result<Option<i64>> {
    let sql = "SELECT id FROM agents WHERE uuid = ?1";
    one(connection, sql, [agent.to_string()], |row| row.get(0))
}

fn parent_of(connection: &Connection, agent: i64) -> Result<Option<(i64, AgentId)>> {
    one(
        connection,
        "SELECT parent.id, parent.uuid FROM agents a JOIN agents parent ON parent.id = a.parent
         WHERE a.id = ?1",
        [agent],
        |row| Ok((row.get(0)?, parse_column(row, 1)?)),
    )
}

fn count(connection: &Connection, sql: &str, agent: i64, most: usize) -> Result<usize> {
    let count: i64 = connection
        .prepare_cached(sql)?
        .query_row(params![agent, stored_limit(most)], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Names of a session's running agents that start with a prefix: a range of an index.
pub(super) fn living_names(
    connection: &Connection,
    session: SessionId,
    beginning: &str,
) -> Result<Vec<String>> {
    all(
        connection,
        "SELECT name FROM agents INDEXED BY agents_living_in_session
         WHERE status = 'running' AND session = (SELECT id FROM sessions WHERE uuid = ?1)
           AND name >= ?2 AND name < ?3 ORDER BY name",
        // Names are ASCII, so the largest character ends the range.
        params![
            session.to_string(),
            beginning,
            format!("{beginning}\u{10FFFF}")
        ],
        |row| Ok(text(row, 0)?.unwrap_or_default()),
    )
}

pub(super) fn dead_among(connection: &Connection, agents: &[AgentId]) -> Result<Vec<AgentId>> {
    let mut look = connection
        .prepare_cached("SELECT 1 FROM agents WHERE uuid = ?1 AND status <> 'running'")?;
    let mut dead = Vec::new();
    for agent in agents {
        let found = look.query_row([agent.to_string()], |_| Ok(()));
        if found.optional()?.is_some() {
            dead.push(*agent);
        }
    }
    Ok(dead)
}

pub(super) fn pulse(connection: &Connection) -> Result<Pulse> {
    // Neither table ever loses a row, so its largest id is a counter.
    let sql = "SELECT coalesce((SELECT max(id) FROM messages), 0),
                      coalesce((SELECT max(id) FROM mail), 0)";
    connection.prepare_cached(sql)?.query_row([], |row| {
        Ok(Pulse {
            rows: number(row, 0)?,
            mail: number(row, 1)?,
        })
    })
}
