//! Statements over one connection, sent without waiting for each other.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, Statement};

use super::connect::Link;
use super::values::{QueryFailure, Result};

/// A parameter that states its type, so that the server need not be asked.
pub(super) trait SqlValue: ToSql + Sync {
    /// Returns the type that the server should take it as.
    fn sql_type(&self) -> Type;

    /// Returns it as the driver takes it.
    fn as_sql(&self) -> &(dyn ToSql + Sync);
}

macro_rules! sql_types {
    ($($value:ty => $sql:ident),* $(,)?) => {
        $(impl SqlValue for $value {
            fn sql_type(&self) -> Type {
                Type::$sql
            }

            fn as_sql(&self) -> &(dyn ToSql + Sync) {
                self
            }
        })*
    };
}

sql_types! {
    bool => BOOL,
    i32 => INT4,
    i64 => INT8,
    Option<i64> => INT8,
    &str => TEXT,
    Option<&str> => TEXT,
    String => TEXT,
    Option<String> => TEXT,
    &[u8] => BYTEA,
    Vec<u8> => BYTEA,
    Vec<bool> => BOOL_ARRAY,
    Vec<i64> => INT8_ARRAY,
    Vec<&str> => TEXT_ARRAY,
    Vec<String> => TEXT_ARRAY,
    Vec<Option<String>> => TEXT_ARRAY,
    Vec<Vec<u8>> => BYTEA_ARRAY,
}

/// Parameter of a statement.
pub(super) type Value<'a> = &'a dyn SqlValue;

/// Parameter that is owned until its statement is sent.
pub(super) type OwnedParam = Box<dyn SqlValue + Send>;

/// Use of a statement over one connection.
#[derive(Clone, Debug)]
pub(super) enum StatementUse {
    /// It was sent once, without a name.
    Once,
    /// It is being prepared.
    Preparing,
    /// It has a name.
    Prepared(Statement),
}

impl Link {
    /// Prepares all new statements in one round trip, for many uses of each.
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

    /// Runs a statement and reads its rows in one round trip.
    ///
    /// The first use has no name. The second one also prepares it, for the later ones.
    pub(super) async fn fetch(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match self.note_use(sql) {
            Some(StatementUse::Prepared(statement)) => {
                let values: Vec<_> = values.iter().map(|value| value.as_sql()).collect();
                self.client.query(&statement, &values).await
            }
            used => {
                let values: Vec<_> = values
                    .iter()
                    .map(|value| (value.as_sql(), value.sql_type()))
                    .collect();
                let rows = self.client.query_typed(sql, &values);
                self.prepare_beside(used, sql, rows).await
            }
        }
    }

    /// Prepares a statement at its second use, together with that.
    async fn prepare_beside<T>(
        &self,
        used: Option<StatementUse>,
        sql: &'static str,
        sent: impl Future<Output = T>,
    ) -> T {
        match used {
            Some(StatementUse::Once) => {
                let prepared = async {
                    // Without it the statement is sent without a name, as before.
                    let prepared = self.client.prepare(sql).await;
                    self.keep_prepared(sql, prepared.ok());
                };
                tokio::join!(sent, prepared).0
            }
            _ => sent.await,
        }
    }

    /// Reads all rows of a statement.
    pub(super) async fn all<T>(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
        read: impl FnMut(&Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        let rows = self.fetch(sql, values).await?;
        rows.iter().map(read).collect()
    }

    /// Reads the only row of a statement, if any.
    pub(super) async fn one<T>(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
        read: impl FnOnce(&Row) -> Result<T>,
    ) -> Result<Option<T>> {
        let rows = self.fetch(sql, values).await?;
        rows.first().map(read).transpose()
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

    /// Sends a statement and reads its rows.
    pub(super) async fn send(
        &self,
        sql: &'static str,
        values: &[OwnedParam],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let values: Vec<Value<'_>> = values.iter().map(|value| &**value as Value<'_>).collect();
        self.fetch(sql, &values).await
    }

    /// Sends a statement as [`Self::send`] does, and counts the rows it wrote.
    pub(super) async fn count(
        &self,
        sql: &'static str,
        values: &[OwnedParam],
    ) -> Result<u64, tokio_postgres::Error> {
        match self.note_use(sql) {
            Some(StatementUse::Prepared(statement)) => {
                let values = values.iter().map(|value| value.as_sql());
                self.client.execute_raw(&statement, values).await
            }
            used => {
                let values: Vec<_> = values
                    .iter()
                    .map(|value| (value.as_sql(), value.sql_type()))
                    .collect();
                let written = self.client.execute_typed(sql, &values);
                self.prepare_beside(used, sql, written).await
            }
        }
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
