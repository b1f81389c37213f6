//! Questions of the user's own, in SQL: they read, and can do nothing else.

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::SqliteStore;
use crate::sql::{BadQuestion, Cell, MOST_BYTES, Table};

impl SqliteStore {
    /// Answers one statement with at most `most` rows. Blocks; it has a connection of its own,
    /// which cannot write, not even to another file.
    pub fn query(&self, sql: &str, most: usize) -> Result<Table, BadQuestion> {
        self.reads(sql, most).map_err(|error| {
            let text = match error {
                rusqlite::Error::SqliteFailure(_, Some(text)) => text,
                rusqlite::Error::SqlInputError { msg, .. } => msg,
                other => other.to_string(),
            };
            BadQuestion(text)
        })
    }

    fn reads(&self, sql: &str, most: usize) -> rusqlite::Result<Table> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(self.path(), flags)?;
        connection.pragma_update(None, "query_only", true)?;
        connection.authorizer(Some(only_reading))?;
        let mut statement = connection.prepare(sql)?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut table = Table {
            columns,
            ..Table::default()
        };
        let mut bytes = 0;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if table.rows.len() == most || bytes > MOST_BYTES {
                table.cut = true;
                break;
            }
            let cells = (0..table.columns.len()).map(|column| row.get_ref(column).map(cell));
            let cells = cells.collect::<rusqlite::Result<Vec<_>>>()?;
            bytes += cells.iter().map(Cell::bytes).sum::<usize>();
            table.rows.push(cells);
        }
        Ok(table)
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Nothing,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(bytes) => Cell::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
    }
}

/// The connection cannot write to its file anyway; this keeps it from every other one.
fn only_reading(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => {
            Authorization::Allow
        }
        AuthAction::Function { function_name } if function_name != "load_extension" => {
            Authorization::Allow
        }
        AuthAction::Pragma { pragma_name, .. } if READ_PRAGMAS.contains(&pragma_name) => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }
}

/// Those that tell of tables. `data_version` is asked by the search index itself.
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
