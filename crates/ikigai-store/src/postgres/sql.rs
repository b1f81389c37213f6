//! SQL queries of the user: they can only read.

use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Column, SimpleQueryMessage, SimpleQueryRow};

use super::connect::{ConnectionRole, Link};
use super::errors::{ServerError, server_message};
use super::store::PostgresStore;
use super::volatile_functions::{VOLATILE_NAMES, identifiers, is_acting, is_harmless};
use crate::sql::{GRACE, MOST_BYTES, QueryError, QueryLimits, QueryTable, QueryValue};

/// Has the server end a query whose client left, as with Ctrl-C.
const NOTICE_LEFT_CLIENT: &str = "SET client_connection_check_interval = 2000";

/// Rows per fetch.
const FETCHED: usize = 500;

impl PostgresStore {
    /// Runs one statement on its own connection, which cannot write.
    pub(super) fn run_query(
        &self,
        sql: &str,
        limits: QueryLimits,
    ) -> Result<QueryTable, QueryError> {
        let target = self.target.clone();
        let sql = sql.to_owned();
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            let asking = async {
                let link = target.connect(ConnectionRole::Asking).await;
                let link = link.map_err(|cause| {
                    QueryError::Refused(ServerError::store_error(&cause, target.url()).to_string())
                })?;
                ask(&link, &sql, limits).await
            };
            // The server stops each statement at the deadline, this all of them together.
            let answer_of_query = timeout(limits.time.saturating_add(GRACE), asking).await;
            // The caller may be gone.
            let _ = answer.send(answer_of_query.unwrap_or(Err(QueryError::TimedOut(limits.time))));
        });
        let answer_of_query = answered.recv();
        answer_of_query
            .unwrap_or_else(|_| Err(QueryError::Refused("the store is closed".to_owned())))
    }
}

/// Refuses a statement that names a function which may act.
async fn refuse_acting(link: &Link, sql: &str) -> Result<(), QueryError> {
    let refuse = |name: &str| {
        QueryError::Refused(format!(
            "`{name}` is refused: volatile functions can act on the server"
        ))
    };
    let names = identifiers(sql).map_err(|reason| QueryError::Refused(reason.to_owned()))?;
    if let Some(name) = names.iter().find(|name| is_acting(name)) {
        return Err(refuse(name));
    }
    let volatile = link.client.query(VOLATILE_NAMES, &[&names]).await;
    let volatile = volatile.map_err(|error| QueryError::Refused(server_message(&error)))?;
    let mut volatile = volatile.iter().map(|row| row.get::<_, String>(0));
    match volatile.find(|name| !is_harmless(name)) {
        Some(name) => Err(refuse(&name)),
        None => Ok(()),
    }
}

/// Runs the query in a read-only transaction.
///
/// A statement without a result is refused before it runs; among these are all that could end the
/// transaction. Several statements cannot be prepared as one.
async fn ask(link: &Link, sql: &str, limits: QueryLimits) -> Result<QueryTable, QueryError> {
    let client = &link.client;
    let refused = |text: &str| QueryError::Refused(text.to_owned());
    let fail = |error: tokio_postgres::Error| match error.code() {
        Some(&SqlState::QUERY_CANCELED) => QueryError::TimedOut(limits.time),
        _ => QueryError::Refused(server_message(&error)),
    };
    // Server settings would change the meaning of string literals.
    let milliseconds = limits.time.as_millis().clamp(1, 0x7fff_ffff);
    let begin = format!(
        "SET standard_conforming_strings = on;
         SET statement_timeout = {milliseconds};
         BEGIN READ ONLY"
    );
    // Servers on some systems cannot see that a client left; the timeout ends the query there.
    let _ = client.batch_execute(NOTICE_LEFT_CLIENT).await;
    client.batch_execute(&begin).await.map_err(fail)?;
    refuse_acting(link, sql).await?;
    let prepared = client.prepare(sql).await.map_err(fail)?;
    if !prepared.params().is_empty() {
        return Err(refused("a query cannot have parameters"));
    }
    if prepared.columns().is_empty() {
        return Err(refused("only queries that read are allowed"));
    }
    let mut table = QueryTable {
        columns: prepared
            .columns()
            .iter()
            .map(|column| column.name().to_owned())
            .collect(),
        ..QueryTable::default()
    };
    // `EXPLAIN` and `SHOW` have no cursor; they are short.
    let declared = format!("DECLARE question NO SCROLL CURSOR FOR {sql}");
    client
        .batch_execute("SAVEPOINT before")
        .await
        .map_err(fail)?;
    if client.batch_execute(&declared).await.is_err() {
        client
            .batch_execute("ROLLBACK TO before")
            .await
            .map_err(fail)?;
        let rows = client.simple_query(sql).await.map_err(fail)?;
        take(&mut table, prepared.columns(), &rows, limits.rows);
        return Ok(table);
    }
    loop {
        let fetch = format!("FETCH {FETCHED} FROM question");
        let rows = client.simple_query(&fetch).await.map_err(fail)?;
        let before = table.rows.len();
        take(&mut table, prepared.columns(), &rows, limits.rows);
        if table.cut || table.rows.len() - before < FETCHED {
            return Ok(table);
        }
    }
}

/// Adds rows to the result, up to the limits.
fn take(table: &mut QueryTable, columns: &[Column], messages: &[SimpleQueryMessage], most: usize) {
    let bytes = |table: &QueryTable| {
        table
            .rows
            .iter()
            .flatten()
            .map(QueryValue::bytes)
            .sum::<usize>()
    };
    let mut held = bytes(table);
    for message in messages {
        let SimpleQueryMessage::Row(row) = message else {
            continue;
        };
        if table.rows.len() == most || held > MOST_BYTES {
            table.cut = true;
            return;
        }
        let cells: Vec<QueryValue> = (0..).zip(columns).map(|(i, it)| cell(row, i, it)).collect();
        held += cells.iter().map(QueryValue::bytes).sum::<usize>();
        table.rows.push(cells);
    }
}

fn cell(row: &SimpleQueryRow, index: usize, column: &Column) -> QueryValue {
    let Ok(Some(text)) = row.try_get(index) else {
        return QueryValue::Nothing;
    };
    let as_text = || QueryValue::Text(text.to_owned());
    let number = || text.parse().map(QueryValue::Integer);
    match *column.type_() {
        Type::BOOL => QueryValue::Integer(i64::from(text == "t")),
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID => number().unwrap_or_else(|_| as_text()),
        // A sum of whole numbers is one, if it fits.
        Type::NUMERIC | Type::FLOAT4 | Type::FLOAT8 => number()
            .or_else(|_| text.parse().map(QueryValue::Real))
            .unwrap_or_else(|_| as_text()),
        Type::BYTEA => bytes(text).map_or_else(as_text, QueryValue::Blob),
        _ => as_text(),
    }
}

/// Decodes bytes as the server writes them: `\x` and two digits for each.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?.as_bytes();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
