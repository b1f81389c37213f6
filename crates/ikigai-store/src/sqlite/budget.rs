//! Totals and reservations under spending caps.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Result, params};

use super::errors::SqliteRefusal;
use super::locks::SqliteOwner;
use super::values::{number, parse_column, text, wide_id};
use crate::records::{ReservationId, Spending};
use crate::sql_common::to_stored;
use crate::transaction::{BudgetFacts, BudgetWrite, RowKeys};

/// Reads the total and the reservations under the cap of an agent; a missing total is made.
pub(super) fn read(
    connection: &Connection,
    owner: &SqliteOwner,
    root: i64,
) -> std::result::Result<BudgetFacts, SqliteRefusal> {
    let spent = match read_total(connection, root)? {
        Some(spent) => spent,
        None => make_total(connection, root)?,
    };
    let mut reserved = HashMap::new();
    let mut alive = HashMap::from([(owner.id(), true)]);
    let mut statement = connection.prepare_cached(
        "SELECT r.uuid, p.uuid, r.nano_usd, r.tokens
         FROM reservations r JOIN processes p ON p.id = r.process WHERE r.root = ?1",
    )?;
    let mut rows = statement.query([root])?;
    while let Some(row) = rows.next()? {
        let process = parse_column(row, 1)?;
        let is_alive = match alive.get(&process) {
            Some(is_alive) => *is_alive,
            None => owner.is_alive(process)?,
        };
        alive.insert(process, is_alive);
        if is_alive {
            let amount = Spending {
                nano_usd: number(row, 2)?,
                tokens: number(row, 3)?,
            };
            reserved.insert(ReservationId(wide_id(row, 0)?), amount);
        }
    }
    Ok(BudgetFacts { spent, reserved })
}

fn read_total(connection: &Connection, root: i64) -> Result<Option<Spending>> {
    connection
        .prepare_cached("SELECT nano_usd, tokens FROM spending WHERE agent = ?1")?
        .query_row([root], |row| {
            Ok(Spending {
                nano_usd: number(row, 0)?,
                tokens: number(row, 1)?,
            })
        })
        .optional()
}

/// Adds up the newest `usage` rows of an agent and its descendants, and stores the total.
fn make_total(connection: &Connection, root: i64) -> Result<Spending> {
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE tree (id) AS (
             SELECT ?1 UNION SELECT a.id FROM tree JOIN agents a ON a.parent = tree.id)
         SELECT (SELECT m.data FROM messages m INDEXED BY messages_usage
                 WHERE m.agent = tree.id AND m.kind = 'usage' ORDER BY m.seq DESC LIMIT 1)
         FROM tree",
    )?;
    let mut rows = statement.query([root])?;
    let mut total = Spending::default();
    while let Some(row) = rows.next()? {
        total = total.plus(Spending::total_of(text(row, 0)?.as_deref()));
    }
    connection
        .prepare_cached("INSERT INTO spending (agent, nano_usd, tokens) VALUES (?1, ?2, ?3)")?
        .execute(params![
            root,
            to_stored(total.nano_usd),
            to_stored(total.tokens)
        ])?;
    Ok(total)
}

/// Counts an agent and its descendants that run.
pub(super) fn count_running(connection: &Connection, root: i64) -> Result<u64> {
    connection
        .prepare_cached(
            "WITH RECURSIVE tree (id) AS (
                 SELECT id FROM agents WHERE id = ?1 AND status = 'running'
                 UNION
                 SELECT a.id FROM tree JOIN agents a ON a.parent = tree.id
                 WHERE a.status = 'running')
             SELECT count(*) FROM tree",
        )?
        .query_row([root], |row| number(row, 0))
}

/// Executes a write; `process` is the key of this process.
pub(super) fn write(
    connection: &Connection,
    keys: &RowKeys,
    process: Option<i64>,
    write: BudgetWrite,
) -> std::result::Result<(), SqliteRefusal> {
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        connection.prepare_cached(sql)?.execute(values).map(drop)
    };
    match write {
        BudgetWrite::Spend { agent, amount } => run(
            "WITH RECURSIVE line (id) AS (
                 SELECT ?1 UNION SELECT a.parent FROM line JOIN agents a ON a.id = line.id
                 WHERE a.parent IS NOT NULL)
             UPDATE spending SET
                 nano_usd = nano_usd + min(?2, 9223372036854775807 - nano_usd),
                 tokens = tokens + min(?3, 9223372036854775807 - tokens)
             WHERE agent IN line",
            params![
                keys.agent(agent)?,
                to_stored(amount.nano_usd),
                to_stored(amount.tokens)
            ],
        ),
        BudgetWrite::Reserve {
            reservation,
            root,
            agent,
            estimate,
        } => run(
            "INSERT INTO reservations (uuid, root, agent, process, nano_usd, tokens)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                reservation.0.to_be_bytes(),
                keys.agent(root)?,
                keys.agent(agent)?,
                process,
                to_stored(estimate.nano_usd),
                to_stored(estimate.tokens),
            ],
        ),
        BudgetWrite::Release { reservation } => run(
            "DELETE FROM reservations WHERE uuid = ?1",
            params![reservation.0.to_be_bytes()],
        ),
        BudgetWrite::ReleaseAll { agent } => run(
            "DELETE FROM reservations WHERE agent = ?1",
            params![keys.agent(agent)?],
        ),
    }?;
    Ok(())
}
