//! SQL queries of the user: they can only read.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::SqliteStore;
use super::connect::SqliteTarget;
use super::read_only::{self, FileAccess};
use crate::sql::{GRACE, MOST_BYTES, QueryError, QueryLimits, QueryTable, QueryValue};

/// SQLite operations between two checks of the deadline.
const CLOCK_OPERATIONS: i32 = 1000;

impl SqliteStore {
    /// Runs one statement on its own connection, which cannot write to any file.
    pub(super) fn run_query(
        &self,
        sql: &str,
        limits: QueryLimits,
    ) -> Result<QueryTable, QueryError> {
        let target = Arc::clone(&self.target);
        let sql = sql.to_owned();
        let (answer, answered) = sync_channel(1);
        let work = move || {
            // The caller may have stopped waiting.
            let _ = answer.send(read(&target, &sql, limits));
        };
        // SQLite checks the deadline between operations. A very long one, such as a function over a
        // huge text, is left behind in its thread.
        thread::Builder::new()
            .name("ikigai-store-sql".to_owned())
            .spawn(work)
            .map_err(|error| QueryError::Refused(error.to_string()))?;
        let answer_of_query = answered.recv_timeout(limits.time.saturating_add(GRACE));
        answer_of_query.unwrap_or(Err(QueryError::TimedOut(limits.time)))
    }
}

fn read(target: &SqliteTarget, sql: &str, limits: QueryLimits) -> Result<QueryTable, QueryError> {
    let before = target.read_versions();
    let table = answer(target, sql, limits).map_err(|error| match error {
        rusqlite::Error::SqliteFailure(failure, _)
            if failure.code == ErrorCode::OperationInterrupted =>
        {
            QueryError::TimedOut(limits.time)
        }
        rusqlite::Error::SqliteFailure(_, Some(text)) => QueryError::Refused(text),
        rusqlite::Error::SqlInputError { msg, .. } => QueryError::Refused(msg),
        other => QueryError::Refused(other.to_string()),
    })?;
    let unchanged = target.check_unchanged(before);
    unchanged.map_err(|error| QueryError::Refused(error.to_string()))?;
    Ok(table)
}

fn answer(target: &SqliteTarget, sql: &str, limits: QueryLimits) -> rusqlite::Result<QueryTable> {
    let started = Instant::now();
    let mut connection = match target.access {
        FileAccess::Full => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(target.path(), flags)?
        }
        FileAccess::ReadOnly => read_only::connect(&target.place)?,
    };
    connection.pragma_update(None, "query_only", true)?;
    connection.authorizer(Some(only_reading))?;
    let is_over = move || started.elapsed() >= limits.time;
    connection.progress_handler(CLOCK_OPERATIONS, Some(is_over))?;
    let mut statement = connection.prepare(sql)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut table = QueryTable {
        columns,
        ..QueryTable::default()
    };
    let mut bytes = 0;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if table.rows.len() == limits.rows || bytes > MOST_BYTES {
            table.cut = true;
            break;
        }
        let cells = (0..table.columns.len()).map(|column| row.get_ref(column).map(cell));
        let cells = cells.collect::<rusqlite::Result<Vec<_>>>()?;
        bytes += cells.iter().map(QueryValue::bytes).sum::<usize>();
        table.rows.push(cells);
    }
    Ok(table)
}

fn cell(value: ValueRef<'_>) -> QueryValue {
    match value {
        ValueRef::Null => QueryValue::Nothing,
        ValueRef::Integer(number) => QueryValue::Integer(number),
        ValueRef::Real(number) => QueryValue::Real(number),
        ValueRef::Text(bytes) => QueryValue::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => QueryValue::Blob(bytes.to_vec()),
    }
}

/// Denies everything but reading; the connection could otherwise write to other files.
fn only_reading(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => {
            Authorization::Allow
        }
        AuthAction::Function { function_name }
            if !function_name.eq_ignore_ascii_case("load_extension") =>
        {
            Authorization::Allow
        }
        AuthAction::Pragma {
            pragma_name,
            pragma_value,
        } if is_reading(pragma_name, pragma_value) => Authorization::Allow,
        _ => Authorization::Deny,
    }
}

/// Returns true if a pragma only reads: those about tables take a name, the others no value.
fn is_reading(name: &str, value: Option<&str>) -> bool {
    let is_set = value.is_some() && name.ends_with("_version");
    READ_PRAGMAS.contains(&name) && !is_set
}

/// Pragmas that describe tables. The search index itself uses `data_version`.
const READ_PRAGMAS: &[&str] = &[
    "data_version",
    "foreign_key_list",
    "index_info",
    "index_list",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
];
