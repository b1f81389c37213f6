//! The most frequent batches: rows of one log, by the holder of its lease, which may end its draft.
//!
//! One statement in one round trip checks the claim and stores the rows. It accepts only what
//! [`crate::transaction::decide`] accepts; a claim that fails goes through the full transaction,
//! which explains why.

use ikigai_core::{Kind, RowRef, Seq};

use super::budget::LOCK_FAMILIES;
use super::connect::Link;
use super::pipeline::{OwnedParam, send_all};
use super::statements::{author, clean};
use super::values::{QueryFailure, log_row};
use crate::batch::{Batch, Committed, DraftEffect, Effect, LeaseClaim, is_same_row};
use crate::log::BoxFuture;
use crate::sql_common::to_stored;

/// A batch that is stored by one statement.
pub(super) struct Append<'a> {
    batch: &'a Batch,
    agent: ikigai_core::AgentId,
    lease: LeaseClaim,
    /// It has rows of kind `usage`, which count under spending caps.
    spends: bool,
    /// It ends the draft of the agent.
    drops_draft: bool,
}

// The creator appends the first rows of an agent that was never leased.
macro_rules! append_sql {
    ($condition:literal, $drop:literal, $rows:literal) => {
        concat!(
            "WITH moved AS (
                 UPDATE heads SET seq = seq + $5
                 WHERE agent = (SELECT id FROM agents WHERE uuid = $1) AND epoch = $2 AND seq = $3
                   AND (owner = $4 OR (epoch = 0 AND seq = 0))
                   AND $6 = (SELECT version::bigint FROM schema_version) ",
            $condition,
            " RETURNING agent)",
            $drop,
            " INSERT INTO messages (agent, seq, kind, control, created_at, content, data,
                                   author) ",
            $rows
        )
    };
}

/// Statements for one row and for several: most batches have one, and unpacking arrays would be a
/// third of the server's work.
macro_rules! both_sql {
    ($condition:literal, $drop:literal) => {
        [
            append_sql!(
                $condition,
                $drop,
                "SELECT agent, $3 + 1, $7::text, $8::boolean, $9::bigint, $10::text, $11::text,
                    $12::text
                 FROM moved"
            ),
            append_sql!(
                $condition,
                $drop,
                "SELECT moved.agent, $3 + u.place, u.kind, u.control, u.created_at, u.content, u.data,
                    u.author
                 FROM moved, unnest($7::text[], $8::boolean[], $9::bigint[], $10::text[], $11::text[],
                                    $12::text[])
                      WITH ORDINALITY AS u (kind, control, created_at, content, data, author, place)
                 ORDER BY u.place"
            ),
        ]
    };
}

const PLAIN: [&str; 2] = both_sql!("", "");
const DROPPING: [&str; 2] = both_sql!(
    "",
    ", dropped AS (DELETE FROM drafts WHERE agent IN (SELECT agent FROM moved))"
);
// With a cap above the agent, totals change too, in the full transaction.
const SPENDING: [&str; 2] = both_sql!(
    "AND NOT EXISTS (
         WITH RECURSIVE line (id) AS (
             SELECT id FROM agents WHERE uuid = $1
             UNION SELECT a.parent FROM line JOIN agents a ON a.id = line.id
                   WHERE a.parent IS NOT NULL)
         SELECT 1 FROM line JOIN spending s ON s.agent = line.id)",
    ""
);
const SPENDING_DROPPING: [&str; 2] = both_sql!(
    "AND NOT EXISTS (
         WITH RECURSIVE line (id) AS (
             SELECT id FROM agents WHERE uuid = $1
             UNION SELECT a.parent FROM line JOIN agents a ON a.id = line.id
                   WHERE a.parent IS NOT NULL)
         SELECT 1 FROM line JOIN spending s ON s.agent = line.id)",
    ", dropped AS (DELETE FROM drafts WHERE agent IN (SELECT agent FROM moved))"
);

impl<'a> Append<'a> {
    /// Converts a batch, if it has only rows of one leased agent, and perhaps ends its draft.
    pub(super) fn of(batch: &'a Batch) -> Option<Self> {
        let [claim] = batch.heads.as_slice() else {
            return None;
        };
        let lease = claim.lease.filter(|_| !batch.rows.is_empty())?;
        let drops_draft = match batch.with.as_slice() {
            [] => false,
            [Effect::Draft(DraftEffect::Drop { agent, epoch })] => {
                let is_own = *agent == claim.agent && *epoch == lease.epoch;
                // Without a lease there is no draft.
                if !is_own || epoch.0 == 0 {
                    return None;
                }
                true
            }
            _ => return None,
        };
        Some(Self {
            batch,
            agent: claim.agent,
            lease,
            spends: batch.rows.iter().any(|row| row.kind == Kind::Usage),
            drops_draft,
        })
    }

    /// Returns a sort key; one order of appends in all processes prevents deadlocks.
    pub(super) fn sort_key(&self) -> String {
        self.agent.to_string()
    }

    /// Returns the result of a successful commit.
    pub(super) fn committed(&self) -> Committed {
        let rows = self.batch.rows.iter().scan(self.lease.expected, |seq, _| {
            *seq = seq.next();
            Some(RowRef::new(self.agent, *seq))
        });
        Committed {
            rows: rows.collect(),
            leases: Vec::new(),
        }
    }

    fn sql(&self) -> &'static str {
        let [one, several] = match (self.spends, self.drops_draft) {
            (false, false) => PLAIN,
            (false, true) => DROPPING,
            (true, false) => SPENDING,
            (true, true) => SPENDING_DROPPING,
        };
        match self.batch.rows.as_slice() {
            [_] => one,
            _ => several,
        }
    }

    fn values(&self, process: Option<i64>, version: u32) -> Vec<OwnedParam> {
        let rows = &self.batch.rows;
        let mut values: Vec<OwnedParam> = vec![
            Box::new(self.sort_key()),
            Box::new(to_stored(self.lease.epoch.0)),
            Box::new(to_stored(self.lease.expected.0)),
            Box::new(process),
            Box::new(i64::try_from(rows.len()).unwrap_or(i64::MAX)),
            Box::new(i64::from(version)),
        ];
        let text = |text: &Option<String>| text.as_deref().map(clean);
        let columns: [OwnedParam; 6] = if let [row] = rows.as_slice() {
            [
                Box::new(row.kind.name()),
                Box::new(row.control),
                Box::new(row.created_at.0),
                Box::new(text(&row.content)),
                Box::new(text(&row.data)),
                Box::new(author(row)),
            ]
        } else {
            [
                Box::new(rows.iter().map(|row| row.kind.name()).collect::<Vec<_>>()),
                Box::new(rows.iter().map(|row| row.control).collect::<Vec<_>>()),
                Box::new(rows.iter().map(|row| row.created_at.0).collect::<Vec<_>>()),
                Box::new(
                    rows.iter()
                        .map(|row| text(&row.content))
                        .collect::<Vec<_>>(),
                ),
                Box::new(rows.iter().map(|row| text(&row.data)).collect::<Vec<_>>()),
                Box::new(rows.iter().map(author).collect::<Vec<_>>()),
            ]
        };
        values.extend(columns);
        values
    }
}

/// Stores the appends in one transaction; returns which were stored. The others have wrong claims.
pub(super) async fn append(
    link: &Link,
    process: Option<i64>,
    version: u32,
    appends: &[Append<'_>],
) -> Result<Vec<bool>, tokio_postgres::Error> {
    let values: Vec<Vec<OwnedParam>> = appends
        .iter()
        .map(|append| append.values(process, version))
        .collect();
    let statements = appends.iter().zip(&values).map(|(append, values)| {
        let sent: BoxFuture<'_, _> = Box::pin(link.count(append.sql(), values));
        sent
    });
    // A total that another process makes must count these rows, or be found by these statements.
    let spenders = appends.iter().filter(|append| append.spends);
    let spenders: Vec<String> = spenders.map(Append::sort_key).collect();
    let locks: Vec<OwnedParam> = vec![Box::new(Vec::<String>::new()), Box::new(spenders.clone())];
    let lock = (!spenders.is_empty()).then(|| {
        let sent: BoxFuture<'_, _> = Box::pin(link.count(LOCK_FAMILIES, &locks));
        sent
    });
    // One statement is a transaction by itself.
    let is_one = appends.len() == 1 && lock.is_none();
    let word = |word: &'static str| {
        let sent: BoxFuture<'_, _> = Box::pin(async move { link.command(word).await.map(|_| 0) });
        (!is_one).then_some(sent)
    };
    let before = usize::from(!is_one) + usize::from(lock.is_some());
    let sent = word("BEGIN ISOLATION LEVEL READ COMMITTED")
        .into_iter()
        .chain(lock)
        .chain(statements)
        .chain(word("COMMIT"));
    let answers: Result<Vec<u64>, _> = send_all(sent).await.into_iter().collect();
    let answers = answers?.into_iter().map(|rows| rows > 0);
    Ok(answers.skip(before).take(appends.len()).collect())
}

const LOCK: &str = "SELECT FROM agents a JOIN heads h ON h.agent = a.id
     WHERE a.uuid = ANY ($1::text[]) ORDER BY a.uuid FOR NO KEY UPDATE OF h";

const STORED: &str = "SELECT seq, kind, created_at, content, data, author FROM messages
     WHERE agent = (SELECT id FROM agents WHERE uuid = $1) AND seq BETWEEN $2 AND $3
     ORDER BY seq";

/// Reads which appends are stored, after their replies were lost.
///
/// Locking the heads first waits for a transaction that is still in flight.
pub(super) async fn find_stored(
    link: &Link,
    appends: &[Append<'_>],
) -> Result<Vec<bool>, QueryFailure> {
    link.command("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    let agents: Vec<String> = appends.iter().map(Append::sort_key).collect();
    link.all(LOCK, &[&agents], |_| Ok(())).await?;
    let mut found_stored = Vec::with_capacity(appends.len());
    for append in appends {
        let Append { agent, lease, .. } = append;
        let rows = &append.batch.rows;
        let (first, last) = (
            lease.expected.next(),
            Seq(lease.expected.0 + rows.len() as u64),
        );
        let (first, last) = (to_stored(first.0), to_stored(last.0));
        let found = link
            .all(STORED, &[&append.sort_key(), &first, &last], |row| {
                log_row(*agent, row, 0)
            })
            .await?;
        let is_all = found.len() == rows.len();
        found_stored.push(
            is_all
                && found
                    .iter()
                    .zip(rows)
                    .all(|(found, row)| is_same_row(found, row)),
        );
    }
    link.command("ROLLBACK").await?;
    Ok(found_stored)
}
