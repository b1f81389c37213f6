//! One batch inside a write transaction: its checks, its rows, and in which order it all happens.

use std::collections::HashMap;

use ikigai_core::{AgentId, Epoch, NewRow, RowRef, Seq};
use rusqlite::{Connection, OptionalExtension, params};

use super::effects;
use super::errors::Refusal;
use super::locks::Owner;
use super::values::{number, seq};
use crate::batch::{Batch, Committed, HeadClaim, LeaseClaim};
use crate::error::CommitError;
use crate::numbers::stored;
use crate::rules::{Held, check, makes_something, unclaimed};

/// Carries out a batch. On an error part of it may have been carried out, so the caller rolls back
/// to where it began.
pub(super) fn apply(
    connection: &Connection,
    owner: &mut Owner,
    batch: &Batch,
) -> Result<Committed, Refusal> {
    let counts = check(batch)?;
    let mut done = Committed::default();
    for effect in batch.with.iter().filter(|effect| makes_something(effect)) {
        effects::apply(connection, owner, effect, &mut done)?;
    }
    let mut claims = batch.heads.clone();
    claims.sort_unstable_by_key(|claim| claim.agent);
    let mut logs = HashMap::with_capacity(claims.len());
    for claim in claims {
        let rows = counts.get(&claim.agent).copied().unwrap_or(0);
        let log = advance(connection, owner, claim, rows)?;
        logs.insert(claim.agent, log);
    }
    for row in &batch.rows {
        let log = logs.get_mut(&row.agent).ok_or_else(|| unclaimed(row))?;
        insert(connection, log, row)?;
        done.rows.push(RowRef::new(row.agent, log.next));
        log.next = log.next.next();
    }
    for effect in batch.with.iter().filter(|effect| !makes_something(effect)) {
        effects::apply(connection, owner, effect, &mut done)?;
    }
    Ok(done)
}

/// Where the rows of one agent go.
struct Log {
    agent: i64,
    next: Seq,
}

/// Moves an agent's head by `rows`, if the claim is right.
///
/// The statements have no RETURNING, which costs more than all the rest of an append.
fn advance(
    connection: &Connection,
    owner: &Owner,
    claim: HeadClaim,
    rows: u64,
) -> Result<Log, Refusal> {
    let agent = key(connection, claim.agent)?;
    if let Some(LeaseClaim { epoch, expected }) = claim.lease {
        let moved = connection
            .prepare_cached(
                // The first rows of an agent that nobody ever held come from whoever made it.
                "UPDATE heads SET seq = seq + ?2
                 WHERE agent = ?1 AND epoch = ?3 AND seq = ?4
                   AND (owner = (SELECT id FROM processes WHERE uuid = ?5)
                        OR (epoch = 0 AND seq = 0))",
            )?
            .execute(params![
                agent,
                stored(rows),
                stored(epoch.0),
                stored(expected.0),
                owner.id().to_string()
            ])?;
        if moved == 0 {
            return Err(why_not(connection, owner, claim)?.into());
        }
        return Ok(Log {
            agent,
            next: expected.next(),
        });
    }
    let newest = connection
        .prepare_cached("SELECT seq FROM heads WHERE agent = ?1")?
        .query_row([agent], |row| seq(row, 0))?;
    connection
        .prepare_cached("UPDATE heads SET seq = seq + ?2 WHERE agent = ?1")?
        .execute(params![agent, stored(rows)])?;
    Ok(Log {
        agent,
        next: newest.next(),
    })
}

/// The key of an agent.
pub(super) fn key(connection: &Connection, agent: AgentId) -> Result<i64, Refusal> {
    connection
        .prepare_cached("SELECT id FROM agents WHERE uuid = ?1")?
        .query_row([agent.to_string()], |row| row.get(0))
        .optional()?
        .ok_or_else(|| CommitError::NoAgent(agent).into())
}

/// Finds out why a claim was wrong.
fn why_not(
    connection: &Connection,
    owner: &Owner,
    claim: HeadClaim,
) -> Result<CommitError, rusqlite::Error> {
    let found = held(connection, owner, claim.agent)?;
    // A claim that was wrong a moment ago is wrong still: nobody else writes meanwhile.
    let refused = found.and_then(|found| found.refuses(claim));
    Ok(refused.unwrap_or(CommitError::NoAgent(claim.agent)))
}

/// Reads the head of an agent.
pub(super) fn held(
    connection: &Connection,
    owner: &Owner,
    agent: AgentId,
) -> Result<Option<Held>, rusqlite::Error> {
    connection
        .prepare_cached(
            "SELECT h.agent, h.seq, h.epoch, coalesce(p.uuid = ?2, 0)
             FROM agents a JOIN heads h ON h.agent = a.id LEFT JOIN processes p ON p.id = h.owner
             WHERE a.uuid = ?1",
        )?
        .query_row(params![agent.to_string(), owner.id().to_string()], |row| {
            Ok(Held {
                agent: row.get(0)?,
                seq: seq(row, 1)?,
                epoch: Epoch(number(row, 2)?),
                mine: row.get(3)?,
            })
        })
        .optional()
}

fn insert(connection: &Connection, log: &Log, row: &NewRow) -> Result<(), rusqlite::Error> {
    connection
        .prepare_cached(
            "INSERT INTO messages (agent, seq, kind, control, created_at, content, data)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            log.agent,
            stored(log.next.0),
            row.kind.name(),
            row.control,
            row.created_at.0,
            row.content,
            row.data,
        ])?;
    Ok(())
}
