//! One transaction for several batches, whose writes are sent together with the commit.

use super::connect::Link;
use super::errors::{PostgresRefusal, is_reference_violation};
use super::facts::TransactionFacts;
use super::owner::PostgresOwner;
use super::pipeline::send_all;
use super::statements::{Statement, StatementBuilder};
use super::values::QueryFailure;
use crate::batch::{Batch, Committed};
use crate::log::BoxFuture;
use crate::transaction::{FactKeys, dangling, decide};

/// A transaction that is begun, with the statements of its batches so far.
pub(super) struct GroupCommit<'a> {
    link: &'a Link,
    /// Key of this process, if it is registered.
    process: Option<i64>,
    pub(super) read: TransactionFacts,
    /// Statements, each with the number of its batch.
    statements: Vec<(usize, Statement)>,
}

/// Outcome of sending everything.
pub(super) enum SendOutcome {
    /// The transaction is committed.
    Stored,
    /// Nothing is stored, because a statement of this batch failed.
    Refused {
        batch: usize,
        refusal: PostgresRefusal,
    },
}

impl<'a> GroupCommit<'a> {
    /// Begins a transaction for batches of these keys.
    pub(super) async fn begin(
        link: &'a Link,
        owner: &PostgresOwner,
        process: Option<i64>,
        keys: &FactKeys,
    ) -> Result<Self, QueryFailure> {
        Ok(Self {
            link,
            process,
            read: TransactionFacts::read(link, keys, owner.id()).await?,
            statements: Vec::new(),
        })
    }

    /// Adds a batch; a refused batch leaves no trace.
    pub(super) fn add(
        &mut self,
        number: usize,
        batch: &Batch,
    ) -> Result<Committed, PostgresRefusal> {
        let writes = decide(&self.read.facts, batch)?;
        let mut builder = StatementBuilder::new(&mut self.read, self.process);
        for write in &writes.list {
            builder.add(write)?;
        }
        let statements = builder.finish().into_iter();
        self.statements.extend(statements.map(|it| (number, it)));
        self.read.facts.apply(writes.changes);
        Ok(writes.committed)
    }

    /// Sends all statements together with the commit.
    ///
    /// A statement that fails turns the commit into a rollback.
    pub(super) async fn commit(self) -> Result<SendOutcome, tokio_postgres::Error> {
        let writes = self.statements.iter().map(|(_, (sql, values))| {
            let sent: BoxFuture<'_, _> = Box::pin(self.link.send(sql, values));
            sent
        });
        let commit: BoxFuture<'_, _> = Box::pin(self.link.command("COMMIT"));
        let answers = send_all(writes.chain(std::iter::once(commit))).await;
        let mut failed = answers.into_iter().enumerate();
        let failed = failed.find_map(|(place, answer)| answer.err().map(|error| (place, error)));
        let Some((place, error)) = failed else {
            return Ok(SendOutcome::Stored);
        };
        let statement = self.statements.get(place);
        let Some((batch, _)) = statement.filter(|_| !self.link.is_broken_by(&error)) else {
            return Err(error);
        };
        let refusal = if is_reference_violation(&error) {
            dangling().into()
        } else {
            PostgresRefusal::Engine(error)
        };
        let batch = *batch;
        Ok(SendOutcome::Refused { batch, refusal })
    }

    /// Rolls the transaction back.
    pub(super) async fn roll_back(self) -> Result<(), tokio_postgres::Error> {
        self.link.command("ROLLBACK").await.map(|_| ())
    }
}
