//! The batch that comes most often: rows of one log, by whoever holds its lease. One statement
//! checks the claim and stores the rows, so that it takes one way there and back.

use ikigai_core::{RowRef, Seq};

use super::connect::Link;
use super::pipeline::{OwnedParam, send_all};
use super::statements::clean;
use super::values::{Failure, log_row};
use crate::batch::is_same_row;
use crate::batch::{Batch, Committed, LeaseClaim};
use crate::log::BoxFuture;
use crate::numbers::stored;

/// A batch that is stored by one statement.
pub(super) struct Append<'a> {
    batch: &'a Batch,
    agent: ikigai_core::AgentId,
    lease: LeaseClaim,
}

// The first rows of an agent that nobody ever held come from whoever made it.
macro_rules! append_sql {
    ($rows:literal) => {
        concat!(
            "WITH moved AS (
                 UPDATE heads SET seq = seq + $5
                 WHERE agent = (SELECT id FROM agents WHERE uuid = $1) AND epoch = $2 AND seq = $3
                   AND (owner = $4 OR (epoch = 0 AND seq = 0))
                   AND $6 = (SELECT version::bigint FROM schema_version)
                 RETURNING agent)
             INSERT INTO messages (agent, seq, kind, control, created_at, content, data) ",
            $rows
        )
    };
}

/// Most batches have one row, and taking arrays apart would be a third of what the server does.
const ONE: &str = append_sql!(
    "SELECT agent, $3 + 1, $7::text, $8::boolean, $9::bigint, $10::text, $11::text FROM moved"
);

const SEVERAL: &str = append_sql!(
    "SELECT moved.agent, $3 + u.place, u.kind, u.control, u.created_at, u.content, u.data
     FROM moved, unnest($7::text[], $8::boolean[], $9::bigint[], $10::text[], $11::text[])
          WITH ORDINALITY AS u (kind, control, created_at, content, data, place)
     ORDER BY u.place"
);

impl<'a> Append<'a> {
    /// The batch as one statement, if it is such a batch.
    pub(super) fn of(batch: &'a Batch) -> Option<Self> {
        let [claim] = batch.heads.as_slice() else {
            return None;
        };
        let is_plain = batch.with.is_empty() && !batch.rows.is_empty();
        Some(Self {
            batch,
            agent: claim.agent,
            lease: claim.lease.filter(|_| is_plain)?,
        })
    }

    /// By what several are ordered, so that two processes do not wait for each other in a circle.
    pub(super) fn place(&self) -> String {
        self.agent.to_string()
    }

    /// What it does if it succeeds.
    pub(super) fn done(&self) -> Committed {
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
        match self.batch.rows.as_slice() {
            [_] => ONE,
            _ => SEVERAL,
        }
    }

    fn values(&self, process: Option<i64>, version: u32) -> Vec<OwnedParam> {
        let rows = &self.batch.rows;
        let mut values: Vec<OwnedParam> = vec![
            Box::new(self.place()),
            Box::new(stored(self.lease.epoch.0)),
            Box::new(stored(self.lease.expected.0)),
            Box::new(process),
            Box::new(i64::try_from(rows.len()).unwrap_or(i64::MAX)),
            Box::new(i64::from(version)),
        ];
        let text = |text: &Option<String>| text.as_deref().map(clean);
        let columns: [OwnedParam; 5] = if let [row] = rows.as_slice() {
            [
                Box::new(row.kind.name()),
                Box::new(row.control),
                Box::new(row.created_at.0),
                Box::new(text(&row.content)),
                Box::new(text(&row.data)),
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
            ]
        };
        values.extend(columns);
        values
    }
}

/// Stores what can be stored, all in one transaction; says of each whether it was. The others have
/// no right claim.
pub(super) async fn append(
    link: &Link,
    process: Option<i64>,
    version: u32,
    appends: &[Append<'_>],
) -> Result<Vec<bool>, tokio_postgres::Error> {
    link.prepare_all(appends.iter().map(Append::sql)).await?;
    let values: Vec<Vec<OwnedParam>> = appends
        .iter()
        .map(|append| append.values(process, version))
        .collect();
    let statements = appends.iter().zip(&values).map(|(append, values)| {
        let sent: BoxFuture<'_, _> = Box::pin(link.count(append.sql(), values));
        sent
    });
    let word = |word: &'static str| {
        let sent: BoxFuture<'_, _> = Box::pin(async move { link.say(word).await.map(|_| 0) });
        (appends.len() > 1).then_some(sent)
    };
    // One statement is a transaction by itself.
    let sent = word("BEGIN ISOLATION LEVEL READ COMMITTED")
        .into_iter()
        .chain(statements)
        .chain(word("COMMIT"));
    let answers: Result<Vec<u64>, _> = send_all(sent).await.into_iter().collect();
    let answers = answers?.into_iter().map(|rows| rows > 0);
    let begun = usize::from(appends.len() > 1);
    Ok(answers.skip(begun).take(appends.len()).collect())
}

const LOCK: &str = "SELECT FROM agents a JOIN heads h ON h.agent = a.id
     WHERE a.uuid = ANY ($1::text[]) ORDER BY a.uuid FOR NO KEY UPDATE OF h";

const STORED: &str = "SELECT seq, kind, created_at, content, data FROM messages
     WHERE agent = (SELECT id FROM agents WHERE uuid = $1) AND seq BETWEEN $2 AND $3
     ORDER BY seq";

/// Reads which of them are stored, after their answers were lost. Their heads are locked first: a
/// transaction that is still on its way has then ended.
pub(super) async fn which_stand(link: &Link, appends: &[Append<'_>]) -> Result<Vec<bool>, Failure> {
    link.say("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    let agents: Vec<String> = appends.iter().map(Append::place).collect();
    link.all(LOCK, &[&agents], |_| Ok(())).await?;
    let mut stand = Vec::with_capacity(appends.len());
    for append in appends {
        let Append { agent, lease, .. } = append;
        let rows = &append.batch.rows;
        let (first, last) = (
            lease.expected.next(),
            Seq(lease.expected.0 + rows.len() as u64),
        );
        let (first, last) = (stored(first.0), stored(last.0));
        let found = link
            .all(STORED, &[&append.place(), &first, &last], |row| {
                log_row(*agent, row, 0)
            })
            .await?;
        let is_all = found.len() == rows.len();
        stand.push(
            is_all
                && found
                    .iter()
                    .zip(rows)
                    .all(|(found, row)| is_same_row(found, row)),
        );
    }
    link.say("ROLLBACK").await?;
    Ok(stand)
}
