//! Questions of the user's own, in SQL: they read, and can do nothing else.

use tokio_postgres::types::Type;
use tokio_postgres::{Column, SimpleQueryMessage, SimpleQueryRow};

use super::connect::{Link, Role};
use super::errors::{Cause, said};
use super::store::PostgresStore;
use crate::sql::{BadQuestion, Cell, MOST_BYTES, Table};

/// How many rows are fetched at a time.
const FETCHED: usize = 500;

impl PostgresStore {
    /// Answers one statement with at most `most` rows. Blocks, so that it is not to be called on a
    /// runtime; it has a connection of its own, which cannot write.
    pub fn query(&self, sql: &str, most: usize) -> Result<Table, BadQuestion> {
        let target = self.target.clone();
        let sql = sql.to_owned();
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            let told = match target.connect(Role::Asking).await {
                Ok(link) => ask(&link, &sql, most).await,
                Err(cause) => Err(Cause::store_error(&cause, target.url()).to_string()),
            };
            // A caller that went away does not care.
            let _ = answer.send(told);
        });
        let told = answered.recv();
        told.unwrap_or_else(|_| Err("the store is closed".to_owned()))
            .map_err(BadQuestion)
    }
}

/// Asks in a transaction that cannot write.
///
/// What returns no rows is refused before it is run: among that is all that could end the
/// transaction or reach past it. Several statements cannot be prepared as one.
async fn ask(link: &Link, sql: &str, most: usize) -> Result<Table, String> {
    let client = &link.client;
    client
        .batch_execute("BEGIN READ ONLY")
        .await
        .map_err(|error| said(&error))?;
    let prepared = client.prepare(sql).await.map_err(|error| said(&error))?;
    if !prepared.params().is_empty() {
        return Err("a question has no parameters".to_owned());
    }
    if prepared.columns().is_empty() {
        return Err("only what reads is answered".to_owned());
    }
    let mut table = Table {
        columns: prepared
            .columns()
            .iter()
            .map(|column| column.name().to_owned())
            .collect(),
        ..Table::default()
    };
    // `EXPLAIN` and `SHOW` have no cursor; they are short.
    let declared = format!("DECLARE question NO SCROLL CURSOR FOR {sql}");
    client
        .batch_execute("SAVEPOINT before")
        .await
        .map_err(|error| said(&error))?;
    if client.batch_execute(&declared).await.is_err() {
        client
            .batch_execute("ROLLBACK TO before")
            .await
            .map_err(|error| said(&error))?;
        let rows = client.simple_query(sql).await;
        take(
            &mut table,
            prepared.columns(),
            &rows.map_err(|error| said(&error))?,
            most,
        );
        return Ok(table);
    }
    loop {
        let fetch = format!("FETCH {FETCHED} FROM question");
        let rows = client.simple_query(&fetch).await;
        let rows = rows.map_err(|error| said(&error))?;
        let before = table.rows.len();
        take(&mut table, prepared.columns(), &rows, most);
        if table.cut || table.rows.len() - before < FETCHED {
            return Ok(table);
        }
    }
}

/// Takes rows into an answer, as far as there is room.
fn take(table: &mut Table, columns: &[Column], messages: &[SimpleQueryMessage], most: usize) {
    let bytes = |table: &Table| table.rows.iter().flatten().map(Cell::bytes).sum::<usize>();
    let mut held = bytes(table);
    for message in messages {
        let SimpleQueryMessage::Row(row) = message else {
            continue;
        };
        if table.rows.len() == most || held > MOST_BYTES {
            table.cut = true;
            return;
        }
        let cells: Vec<Cell> = (0..).zip(columns).map(|(i, it)| cell(row, i, it)).collect();
        held += cells.iter().map(Cell::bytes).sum::<usize>();
        table.rows.push(cells);
    }
}

fn cell(row: &SimpleQueryRow, index: usize, column: &Column) -> Cell {
    let Ok(Some(text)) = row.try_get(index) else {
        return Cell::Nothing;
    };
    let as_text = || Cell::Text(text.to_owned());
    let number = || text.parse().map(Cell::Integer);
    match *column.type_() {
        Type::BOOL => Cell::Integer(i64::from(text == "t")),
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID => number().unwrap_or_else(|_| as_text()),
        // A sum of whole numbers is one, if it fits.
        Type::NUMERIC | Type::FLOAT4 | Type::FLOAT8 => number()
            .or_else(|_| text.parse().map(Cell::Real))
            .unwrap_or_else(|_| as_text()),
        Type::BYTEA => bytes(text).map_or_else(as_text, Cell::Blob),
        _ => as_text(),
    }
}

/// Bytes as the server writes them: `\x` and two digits for each.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?.as_bytes();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
