//! `ikigai sql`: read-only queries of the user.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use ikigai_store::sql::{QueryError, QueryLimits, QueryTable, QueryValue};
use serde_json::{Map, Value};

use crate::arguments::{SqlOrder, exit};
use crate::context::ProgramContext;
use crate::output::{print, print_json, print_stderr, visible};

/// Widest column of a table.
const MOST_WIDTH: usize = 60;

pub(crate) fn sql(db: Option<String>, order: &SqlOrder) -> Result<ExitCode> {
    let program = ProgramContext::open_reading(db)?;
    let limits = QueryLimits {
        rows: order.limit,
        time: Duration::from_secs(order.timeout),
    };
    let table = match program.store.query(&order.statement, limits) {
        Ok(table) => table,
        Err(error @ QueryError::TimedOut(_)) => {
            print_stderr(&format!("error: {error}"));
            print_stderr("hint: narrow the query, or raise --timeout");
            return Ok(exit::FAILED.into());
        }
        Err(error) => {
            print_stderr(&format!("error: {}", visible(&error.to_string())));
            print_stderr("hint: queries are read-only; docs/schema.md lists the tables");
            return Ok(exit::USAGE.into());
        }
    };
    if order.json {
        for row in &table.rows {
            print_json(&object(&table.columns, row))?;
        }
    } else {
        print(&drawn(&table))?;
    }
    if table.cut {
        print_stderr(&format!(
            "Showing the first {} rows; use --limit for more",
            table.rows.len()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn object(columns: &[String], row: &[QueryValue]) -> Value {
    let mut object = Map::new();
    for (place, (name, cell)) in columns.iter().zip(row).enumerate() {
        let name = if object.contains_key(name) {
            format!("{name}:{}", place + 1)
        } else {
            name.clone()
        };
        let value = match cell {
            QueryValue::Nothing => Value::Null,
            QueryValue::Integer(number) => (*number).into(),
            QueryValue::Real(number) => (*number).into(),
            QueryValue::Text(text) => text.as_str().into(),
            QueryValue::Blob(bytes) => hex(bytes).into(),
        };
        object.insert(name, value);
    }
    Value::Object(object)
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn drawn(table: &QueryTable) -> String {
    let head: Vec<String> = table.columns.iter().map(|name| in_cell(name)).collect();
    let body: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| row.iter().map(cell_text).collect())
        .collect();
    let width = |column: usize| {
        let cells = body.iter().chain([&head]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = line(&head, &widths);
    let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    text.push_str(&line(&rule, &widths));
    for row in &body {
        text.push_str(&line(row, &widths));
    }
    text
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let cells = cells.iter().zip(widths);
    let cells: Vec<_> = cells
        .map(|(cell, width)| format!("{cell:<width$}"))
        .collect();
    format!("{}\n", cells.join("  ").trim_end())
}

fn cell_text(cell: &QueryValue) -> String {
    match cell {
        QueryValue::Nothing => String::new(),
        QueryValue::Integer(number) => number.to_string(),
        QueryValue::Real(number) => number.to_string(),
        QueryValue::Text(text) => in_cell(text),
        QueryValue::Blob(bytes) => {
            let shown = bytes.get(..16).unwrap_or(bytes);
            let more = if shown.len() < bytes.len() { "…" } else { "" };
            format!("x'{}{more}'", hex(shown))
        }
    }
}

/// Shortens a text and puts it on one line.
fn in_cell(text: &str) -> String {
    let mut chars = text.chars();
    let mut cell: String = chars.by_ref().take(MOST_WIDTH).collect();
    if chars.next().is_some() {
        cell.pop();
        cell.push('…');
    }
    visible(&cell).replace(['\n', '\t'], " ")
}
