//! One transaction: the batches are carried out in the book, and what they write is sent at once.

use std::collections::HashMap;

use ikigai_core::{NewRow, RowRef, Seq};

use super::asking::{Kept, at_once};
use super::book::{Book, Named};
use super::connect::Link;
use super::effects::clean;
use super::errors::{Refusal, is_reference_violation};
use super::owner::Owner;
use super::values::Failure;
use crate::BoxFuture;
use crate::batch::{Batch, Committed};
use crate::numbers::stored;
use crate::rules::{check, dangling, makes_something, unclaimed};

/// A transaction that is begun.
pub(super) struct Plan<'a> {
    pub(super) link: &'a Link,
    /// The key of this process, if it is known to the store.
    pub(super) process: Option<i64>,
    pub(super) book: Book,
    writes: Vec<Write>,
    /// The batch that is being carried out.
    current: usize,
}

/// A statement that waits to be sent.
struct Write {
    batch: usize,
    sql: &'static str,
    values: Vec<Kept>,
}

/// What came of sending everything.
pub(super) enum Sent {
    /// It is stored.
    Stored,
    /// Nothing is stored, because of what this batch wrote.
    Refused { batch: usize, refusal: Refusal },
}

impl<'a> Plan<'a> {
    /// Begins a transaction for batches that name these.
    pub(super) async fn begin(
        link: &'a Link,
        owner: &Owner,
        process: Option<i64>,
        named: &Named,
    ) -> Result<Self, Failure> {
        let book = Book::open(link, named, &owner.id().to_string()).await?;
        Ok(Self {
            link,
            process,
            book,
            writes: Vec::new(),
            current: 0,
        })
    }

    /// Carries out a batch. One that is refused leaves no trace.
    pub(super) async fn apply(
        &mut self,
        number: usize,
        batch: &Batch,
    ) -> Result<Committed, Refusal> {
        let counts = check(batch)?;
        let saved = self.book.save(batch);
        let written = self.writes.len();
        self.current = number;
        let done = self.carry_out(batch, &counts).await;
        if done.is_err() {
            self.book.restore(saved);
            self.writes.truncate(written);
        }
        done
    }

    async fn carry_out(
        &mut self,
        batch: &Batch,
        counts: &HashMap<ikigai_core::AgentId, u64>,
    ) -> Result<Committed, Refusal> {
        let mut done = Committed::default();
        for effect in batch.with.iter().filter(|effect| makes_something(effect)) {
            self.effect(effect, &mut done).await?;
        }
        let mut claims = batch.heads.clone();
        claims.sort_unstable_by_key(|claim| claim.agent);
        let mut logs = HashMap::with_capacity(claims.len());
        for claim in claims {
            let held = self.book.held(claim.agent, self.process)?;
            if let Some(refused) = held.refuses(claim) {
                return Err(refused.into());
            }
            let rows = counts.get(&claim.agent).copied().unwrap_or(0);
            let entry = self.book.agent_mut(claim.agent)?;
            entry.seq = Seq(entry.seq.0.saturating_add(rows));
            if rows > 0 {
                self.write(
                    "UPDATE heads SET seq = seq + $2 WHERE agent = $1",
                    vec![Box::new(held.agent), Box::new(stored(rows))],
                );
            }
            logs.insert(claim.agent, (held.agent, held.seq.next()));
        }
        let mut columns = Columns::default();
        for row in &batch.rows {
            let (agent, next) = logs.get_mut(&row.agent).ok_or_else(|| unclaimed(row))?;
            columns.add(*agent, *next, row);
            done.rows.push(RowRef::new(row.agent, *next));
            *next = next.next();
        }
        if !batch.rows.is_empty() {
            self.write(ROWS, columns.values());
        }
        for effect in batch.with.iter().filter(|effect| !makes_something(effect)) {
            self.effect(effect, &mut done).await?;
        }
        Ok(done)
    }

    /// Keeps a statement until everything is sent.
    pub(super) fn write(&mut self, sql: &'static str, values: Vec<Kept>) {
        self.writes.push(Write {
            batch: self.current,
            sql,
            values,
        });
    }

    /// Sends everything together with the commit. A statement that fails turns the commit into its
    /// opposite.
    pub(super) async fn commit(self) -> Result<Sent, tokio_postgres::Error> {
        let sqls = self.writes.iter().map(|write| write.sql);
        self.link.prepare_all(sqls).await?;
        let writes = self.writes.iter().map(|write| {
            let sent: BoxFuture<'_, _> = Box::pin(self.link.send(write.sql, &write.values));
            sent
        });
        let commit: BoxFuture<'_, _> = Box::pin(self.link.say("COMMIT"));
        let answers = at_once(writes.chain(std::iter::once(commit))).await;
        let mut failed = answers.into_iter().enumerate();
        let failed = failed.find_map(|(place, answer)| answer.err().map(|error| (place, error)));
        let Some((place, error)) = failed else {
            return Ok(Sent::Stored);
        };
        let write = self.writes.get(place);
        let Some(write) = write.filter(|_| !self.link.is_broken_by(&error)) else {
            return Err(error);
        };
        let refusal = if is_reference_violation(&error) {
            dangling().into()
        } else {
            Refusal::Sql(error)
        };
        let batch = write.batch;
        Ok(Sent::Refused { batch, refusal })
    }

    /// Ends the transaction without a trace.
    pub(super) async fn give_up(self) -> Result<(), tokio_postgres::Error> {
        self.link.say("ROLLBACK").await.map(|_| ())
    }
}

const ROWS: &str = "INSERT INTO messages (agent, seq, kind, control, created_at, content, data)
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::boolean[], $5::bigint[],
                          $6::text[], $7::text[])";

/// Rows as PostgreSQL takes many of them at once.
#[derive(Default)]
pub(super) struct Columns {
    agents: Vec<i64>,
    seqs: Vec<i64>,
    kinds: Vec<&'static str>,
    controls: Vec<bool>,
    times: Vec<i64>,
    contents: Vec<Option<String>>,
    data: Vec<Option<String>>,
}

impl Columns {
    pub(super) fn add(&mut self, agent: i64, seq: Seq, row: &NewRow) {
        self.agents.push(agent);
        self.seqs.push(stored(seq.0));
        self.kinds.push(row.kind.name());
        self.controls.push(row.control);
        self.times.push(row.created_at.0);
        self.contents.push(row.content.as_deref().map(clean));
        self.data.push(row.data.as_deref().map(clean));
    }

    fn values(self) -> Vec<Kept> {
        let (agents, seqs) = (self.agents, self.seqs);
        vec![
            Box::new(agents),
            Box::new(seqs),
            Box::new(self.kinds),
            Box::new(self.controls),
            Box::new(self.times),
            Box::new(self.contents),
            Box::new(self.data),
        ]
    }
}
