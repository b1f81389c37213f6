//! Statements over one connection, sent without waiting for each other.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::connect::Link;
use super::values::{QueryFailure, Result};

/// Parameter of a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// Parameter that is owned until its statement is sent.
pub(super) type OwnedParam = Box<dyn ToSql + Sync + Send>;

impl Link {
    /// Prepares all new statements in one round trip.
    pub(super) async fn prepare_all(
        &self,
        sqls: impl Iterator<Item = &'static str>,
    ) -> Result<(), tokio_postgres::Error> {
        let mut sqls: Vec<&'static str> = sqls.collect();
        sqls.sort_unstable();
        sqls.dedup();
        for statement in send_all(sqls.into_iter().map(|sql| self.prepared(sql))).await {
            statement?;
        }
        Ok(())
    }

    /// Reads all rows of a statement.
    pub(super) async fn all<T>(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
        read: impl FnMut(&Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        let statement = self.prepared(sql).await?;
        let rows = self.client.query(&statement, values).await?;
        rows.iter().map(read).collect()
    }

    /// Reads the only row of a statement, if any.
    pub(super) async fn one<T>(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
        read: impl FnOnce(&Row) -> Result<T>,
    ) -> Result<Option<T>> {
        let statement = self.prepared(sql).await?;
        let row = self.client.query_opt(&statement, values).await?;
        row.as_ref().map(read).transpose()
    }

    /// Reads the row that a statement always returns.
    pub(super) async fn only<T>(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
        read: impl FnOnce(&Row) -> Result<T>,
    ) -> Result<T> {
        let row = self.one(sql, values, read).await?;
        row.ok_or_else(|| QueryFailure::Value("a statement has no answer".to_owned()))
    }

    /// Sends a statement and reads its rows, without a wait if it is prepared.
    pub(super) async fn send(
        &self,
        sql: &'static str,
        values: &[OwnedParam],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.prepared(sql).await?;
        let values: Vec<Value<'_>> = values.iter().map(|value| &**value as Value<'_>).collect();
        self.client.query(&statement, &values).await
    }

    /// Sends a statement as [`Self::send`] does, and counts the rows it wrote.
    pub(super) async fn count(
        &self,
        sql: &'static str,
        values: &[OwnedParam],
    ) -> Result<u64, tokio_postgres::Error> {
        let statement = self.prepared(sql).await?;
        let values = values.iter().map(|value| &**value as Value<'_>);
        self.client.execute_raw(&statement, values).await
    }

    /// Sends a command without parameters and rows: `BEGIN`, `COMMIT`, `ROLLBACK`.
    pub(super) async fn command(&self, word: &str) -> Result<Vec<Row>, tokio_postgres::Error> {
        self.client.batch_execute(word).await.map(|()| Vec::new())
    }
}

/// Sends several requests in order without waiting between them, and collects the replies.
pub(super) async fn send_all<T>(requests: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut requests: Vec<Pin<Box<_>>> = requests.map(Box::pin).collect();
    let mut answers: Vec<Option<T>> = requests.iter().map(|_| None).collect();
    let mut first = 0;
    let mut are_sent = false;
    poll_fn(|context| {
        // The first poll sends a request. Replies come in the order of the requests, so wait for
        // the first missing one.
        for (request, answer) in requests.iter_mut().zip(&mut answers).skip(first) {
            if answer.is_some() {
                continue;
            }
            match request.as_mut().poll(context) {
                Poll::Ready(done) => *answer = Some(done),
                Poll::Pending if are_sent => break,
                Poll::Pending => {}
            }
        }
        are_sent = true;
        first += answers
            .iter()
            .skip(first)
            .take_while(|it| it.is_some())
            .count();
        if first == answers.len() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    answers.into_iter().flatten().collect()
}
