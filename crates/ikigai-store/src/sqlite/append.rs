//! One batch inside a write transaction: its checks, its rows, and in which order it all happens.

use std::collections::HashMap;

use ikigai_core::{AgentId, Epoch, Kind, NewRow, RowRef, Seq};
use rusqlite::{Connection, OptionalExtension, params};

use super::effects;
use super::errors::Refusal;
use super::locks::Owner;
use super::values::{number, seq, stored};
use crate::batch::{Batch, Committed, Effect, HeadClaim, LeaseClaim};
use crate::error::CommitError;

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

/// Says whether an effect comes before the rows, because they may need what it makes.
fn makes_something(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::MakeSession { .. } | Effect::CreateAgent { .. } | Effect::TakeLease { .. }
    )
}

fn bad(reason: impl Into<String>) -> CommitError {
    CommitError::BadBatch(reason.into())
}

fn unclaimed(row: &NewRow) -> CommitError {
    bad(format!(
        "a row of agent {} whose head is not claimed",
        row.agent
    ))
}

/// Checks what needs no look into the store, and counts each agent's rows.
fn check(batch: &Batch) -> Result<HashMap<AgentId, u64>, CommitError> {
    let mut leases = HashMap::with_capacity(batch.heads.len());
    for claim in &batch.heads {
        if leases.insert(claim.agent, claim.lease.is_some()).is_some() {
            return Err(bad(format!(
                "the head of agent {} is claimed twice",
                claim.agent
            )));
        }
    }
    let mut counts = HashMap::with_capacity(batch.heads.len());
    for row in &batch.rows {
        let held = leases.get(&row.agent).ok_or_else(|| unclaimed(row))?;
        if !held && !needs_no_lease(row) {
            return Err(bad(format!("a row of kind `{}` needs a lease", row.kind)));
        }
        row.check()?;
        *counts.entry(row.agent).or_insert(0) += 1;
    }
    Ok(counts)
}

/// Anyone may tell a parent of its child and of a kill. Neither bends the path.
fn needs_no_lease(row: &NewRow) -> bool {
    !row.control && matches!(row.kind, Kind::Fork | Kind::AgentKilled)
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
    let agent = claim.agent;
    let (Some(found), Some(lease)) = (held(connection, owner, agent)?, claim.lease) else {
        return Ok(CommitError::NoAgent(agent));
    };
    let first = found.epoch == Epoch(0) && found.seq == Seq(0);
    if found.epoch != lease.epoch || !(found.mine || first) {
        return Ok(CommitError::Fenced {
            agent,
            epoch: found.epoch,
        });
    }
    Ok(CommitError::Behind {
        agent,
        expected: lease.expected,
        actual: found.seq,
    })
}

/// The head of an agent as seen by this process.
pub(super) struct Held {
    /// The agent's key.
    pub(super) agent: i64,
    pub(super) seq: Seq,
    pub(super) epoch: Epoch,
    /// Whether this process owns it.
    pub(super) mine: bool,
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
