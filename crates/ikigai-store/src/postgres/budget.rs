//! Totals and reservations under spending caps.
//!
//! Every transaction that spends or reserves locks the root of the family first. So what these
//! statements read stays true until the transaction ends.

use std::collections::HashMap;

use ikigai_core::{AgentId, ProcessId};
use tokio_postgres::Row;

use super::connect::Link;
use super::owner::is_alive;
use super::pipeline::OwnedParam;
use super::values::{QueryFailure, get, number, parse_column, wide_id};
use crate::error::CommitError;
use crate::records::{ReservationId, Spending};
use crate::sql_common::to_stored;
use crate::transaction::{BudgetFacts, BudgetWrite, FactKeys, RowKeys};

/// Locks records, and the roots of the families of some agents, in one order.
pub(super) const LOCK_FAMILIES: &str = "SELECT FROM agents WHERE id = ANY (ARRAY (
         SELECT id FROM agents WHERE uuid = ANY ($1::text[])
         UNION (
             WITH RECURSIVE line (id, parent) AS (
                 SELECT id, parent FROM agents WHERE uuid = ANY ($2::text[])
                 UNION SELECT a.id, a.parent FROM line JOIN agents a ON a.id = line.parent)
             SELECT id FROM line WHERE parent IS NULL)))
     ORDER BY uuid FOR NO KEY UPDATE";

pub(super) const TOTALS: &str = "SELECT a.uuid, s.nano_usd, s.tokens
     FROM agents a JOIN spending s ON s.agent = a.id WHERE a.uuid = ANY ($1::text[])";

pub(super) const RESERVED: &str = "SELECT a.uuid, r.uuid, p.uuid, r.nano_usd, r.tokens
     FROM agents a JOIN reservations r ON r.root = a.id JOIN processes p ON p.id = r.process
     WHERE a.uuid = ANY ($1::text[])";

/// Counts agents with their descendants, as far as they run.
pub(super) const RUNNING: &str = "SELECT root.uuid, (
         WITH RECURSIVE tree (id) AS (
             SELECT a.id FROM agents a WHERE a.id = root.id AND a.status = 'running'
             UNION
             SELECT a.id FROM tree JOIN agents a ON a.parent = tree.id
             WHERE a.status = 'running')
         SELECT count(*) FROM tree)
     FROM agents root WHERE root.uuid = ANY ($1::text[])";

const NEWEST_USAGE: &str = "WITH RECURSIVE tree (id) AS (
         SELECT id FROM agents WHERE uuid = $1
         UNION SELECT a.id FROM tree JOIN agents a ON a.parent = tree.id)
     SELECT m.data FROM tree CROSS JOIN LATERAL (
         SELECT data FROM messages WHERE agent = tree.id AND kind = 'usage'
         ORDER BY seq DESC LIMIT 1) m";

const MAKE_TOTAL: &str = "INSERT INTO spending (agent, nano_usd, tokens)
     SELECT id, $2, $3 FROM agents WHERE uuid = $1 RETURNING agent";

const SPEND: &str = "WITH RECURSIVE line (id) AS (
         SELECT $1::bigint UNION SELECT a.parent FROM line JOIN agents a ON a.id = line.id
         WHERE a.parent IS NOT NULL)
     UPDATE spending SET
         nano_usd = nano_usd + least($2::bigint, 9223372036854775807 - nano_usd),
         tokens = tokens + least($3::bigint, 9223372036854775807 - tokens)
     WHERE agent IN (SELECT id FROM line)";

/// Totals and reservations as they are read.
#[derive(Default)]
pub(super) struct BudgetReader {
    totals: HashMap<AgentId, Spending>,
    reservations: Vec<StoredReservation>,
}

struct StoredReservation {
    root: AgentId,
    id: ReservationId,
    process: ProcessId,
    amount: Spending,
}

impl BudgetReader {
    pub(super) fn add_total(&mut self, row: &Row) -> Result<(), QueryFailure> {
        self.totals.insert(parse_column(row, 0)?, amount(row, 1)?);
        Ok(())
    }

    pub(super) fn add_reservation(&mut self, row: &Row) -> Result<(), QueryFailure> {
        self.reservations.push(StoredReservation {
            root: parse_column(row, 0)?,
            id: ReservationId(wide_id(row, 1)?),
            process: parse_column(row, 2)?,
            amount: amount(row, 3)?,
        });
        Ok(())
    }

    /// Leaves out the reservations of dead processes, and makes missing totals.
    pub(super) async fn finish(
        mut self,
        link: &Link,
        keys: &FactKeys,
        own: ProcessId,
    ) -> Result<HashMap<AgentId, BudgetFacts>, QueryFailure> {
        let mut budgets = HashMap::new();
        for root in &keys.budgets {
            let spent = match self.totals.remove(root) {
                Some(spent) => spent,
                None => make_total(link, *root).await?,
            };
            let reserved = HashMap::new();
            budgets.insert(*root, BudgetFacts { spent, reserved });
        }
        let mut alive = HashMap::from([(own, true)]);
        for stored in self.reservations {
            let is_known_alive = alive.get(&stored.process).copied();
            let is_alive = match is_known_alive {
                Some(is_alive) => is_alive,
                None => is_alive(link, stored.process).await?,
            };
            alive.insert(stored.process, is_alive);
            let facts = budgets.get_mut(&stored.root).filter(|_| is_alive);
            if let Some(facts) = facts {
                facts.reserved.insert(stored.id, stored.amount);
            }
        }
        Ok(budgets)
    }
}

fn amount(row: &Row, first: usize) -> Result<Spending, QueryFailure> {
    Ok(Spending {
        nano_usd: number(row, first)?,
        tokens: number(row, first + 1)?,
    })
}

/// Adds up the newest `usage` rows of an agent and its descendants, and stores the total.
async fn make_total(link: &Link, root: AgentId) -> Result<Spending, QueryFailure> {
    let uuid = root.to_string();
    let rows = link
        .all(NEWEST_USAGE, &[&uuid], |row| {
            let data: Option<String> = get(row, 0)?;
            Ok(Spending::total_of(data.as_deref()))
        })
        .await?;
    let total: Spending = rows.into_iter().sum();
    let (nano_usd, tokens) = (to_stored(total.nano_usd), to_stored(total.tokens));
    link.all(MAKE_TOTAL, &[&uuid, &nano_usd, &tokens], |_| Ok(()))
        .await?;
    Ok(total)
}

/// Builds the statement of a write; `process` is the key of this process.
pub(super) fn statement(
    keys: &RowKeys,
    process: Option<i64>,
    write: BudgetWrite,
) -> Result<(&'static str, Vec<OwnedParam>), CommitError> {
    Ok(match write {
        BudgetWrite::Spend { agent, amount } => {
            let (nano_usd, tokens) = (to_stored(amount.nano_usd), to_stored(amount.tokens));
            let agent = keys.agent(agent)?;
            let values: Vec<OwnedParam> =
                vec![Box::new(agent), Box::new(nano_usd), Box::new(tokens)];
            (SPEND, values)
        }
        BudgetWrite::Reserve {
            reservation,
            root,
            agent,
            estimate,
        } => (
            "INSERT INTO reservations (uuid, root, agent, process, nano_usd, tokens)
             VALUES ($1, $2, $3, $4, $5, $6)",
            vec![
                Box::new(reservation.0.to_be_bytes().to_vec()),
                Box::new(keys.agent(root)?),
                Box::new(keys.agent(agent)?),
                Box::new(process),
                Box::new(to_stored(estimate.nano_usd)),
                Box::new(to_stored(estimate.tokens)),
            ],
        ),
        BudgetWrite::Release { reservation } => (
            "DELETE FROM reservations WHERE uuid = $1",
            vec![Box::new(reservation.0.to_be_bytes().to_vec())],
        ),
        BudgetWrite::ReleaseAll { agent } => (
            "DELETE FROM reservations WHERE agent = $1",
            vec![Box::new(keys.agent(agent)?)],
        ),
    })
}
