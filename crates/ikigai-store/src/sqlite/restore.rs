//! Restoring a dumped log: all of it, or nothing.

use std::io::BufRead;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Transaction, TransactionBehavior, params_from_iter};

use super::SqliteStore;
use super::errors::is_unique_violation;
use crate::error::StoreError;
use crate::portable::dump_reader::{ColumnValue, DumpEntry, DumpReader, EntryKind};
use crate::portable::{RestoreError, RestoreMode, Restored};

impl SqliteStore {
    pub(super) fn restore_lines(
        &self,
        lines: &mut dyn BufRead,
        mode: RestoreMode,
    ) -> Result<Restored, RestoreError> {
        let fail = |error| RestoreError::Store(self.target.error(error));
        let mut connection = self.target.connect().map_err(fail)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        if mode == RestoreMode::EmptyOnly && !is_empty(&transaction).map_err(fail)? {
            return Err(RestoreError::NotEmpty);
        }
        // An agent refers to rows of another, which refer to agents.
        transaction
            .pragma_update(None, "defer_foreign_keys", true)
            .map_err(fail)?;
        let restored = insert_all(&transaction, DumpReader::new(lines, mode))?;
        if has_gaps(&transaction).map_err(fail)? {
            let reason = "the rows of an agent are not whole".to_owned();
            return Err(StoreError::Value(reason).into());
        }
        settle(&transaction).map_err(fail)?;
        if let Err(absence) = self.target.files.check() {
            return Err(absence.store_error(&self.target.place).into());
        }
        transaction.commit().map_err(|error| {
            if super::errors::is_reference_violation(&error) {
                RestoreError::Store(StoreError::Value(
                    "the file refers to something that is not in it".to_owned(),
                ))
            } else {
                fail(error)
            }
        })?;
        Ok(restored)
    }
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row(
        "SELECT NOT EXISTS (SELECT 1 FROM sessions) AND NOT EXISTS (SELECT 1 FROM blobs)",
        [],
        |row| row.get(0),
    )
}

fn insert_all(
    connection: &Transaction<'_>,
    mut lines: DumpReader<impl BufRead>,
) -> Result<Restored, RestoreError> {
    while let Some(entry) = lines.next()? {
        match insert(connection, &entry) {
            Ok(0) => return Err(entry.lost()),
            Ok(_) => {}
            Err(error) if is_unique_violation(&error) => return Err(entry.twice()),
            Err(error) => return Err(entry.wrong(error.to_string())),
        }
    }
    Ok(lines.restored())
}

fn insert(connection: &Connection, entry: &DumpEntry) -> rusqlite::Result<usize> {
    let sql = match entry.what {
        EntryKind::Session => SESSION,
        EntryKind::Agent => AGENT,
        EntryKind::Blob => BLOB,
        EntryKind::Row => ROW,
        EntryKind::Mail => MAIL,
        EntryKind::Run => RUN,
        EntryKind::Draft => DRAFT,
    };
    let run = |sql: &str, cells: &[&ColumnValue]| {
        let mut statement = connection.prepare_cached(sql)?;
        statement.execute(params_from_iter(cells.iter().map(|cell| value(cell))))
    };
    let cells: Vec<&ColumnValue> = entry.cells.iter().collect();
    if let (EntryKind::Agent, [agent @ .., epoch]) = (entry.what, cells.as_slice()) {
        let inserted = run(sql, agent)?;
        run(HEAD, &[agent[0], epoch])?;
        return Ok(inserted);
    }
    run(sql, &cells)
}

fn value(cell: &ColumnValue) -> Sql {
    match cell {
        ColumnValue::Nothing => Sql::Null,
        ColumnValue::Integer(number) => Sql::Integer(*number),
        ColumnValue::Text(text) => Sql::Text(text.clone()),
        ColumnValue::Blob(bytes) => Sql::Blob(bytes.clone()),
    }
}

/// Returns true if the rows of a restored agent have gaps.
fn has_gaps(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM heads h WHERE h.seq = 0 AND
             (SELECT count(*) FROM messages WHERE agent = h.agent AND seq > 0) <>
             (SELECT coalesce(max(seq), 0) FROM messages WHERE agent = h.agent))",
        [],
        |row| row.get(0),
    )
}

/// Sets heads after the restored rows, which count as read.
fn settle(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "INSERT INTO seen (agent, person, read_to, dismissed_to)
         SELECT h.agent, '', max(m.seq), 0
         FROM heads h JOIN messages m ON m.agent = h.agent WHERE h.seq = 0 GROUP BY h.agent
         ON CONFLICT (agent, person) DO NOTHING;
         UPDATE heads SET seq =
             (SELECT coalesce(max(seq), 0) FROM messages WHERE agent = heads.agent)
         WHERE seq = 0;",
    )
}

const SESSION: &str = "INSERT INTO sessions (uuid, created_at, name, directory, machine, host)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)
     ON CONFLICT (uuid) DO UPDATE SET name = name";

const AGENT: &str = "INSERT INTO agents
         (uuid, session, parent, fork_agent, fork_seq, created_at, status, name)
     SELECT ?1, id, (SELECT id FROM agents WHERE uuid = ?3),
            (SELECT id FROM agents WHERE uuid = ?4), ?5, ?6, ?7, ?8
     FROM sessions WHERE uuid = ?2
       AND (?3 IS NULL OR EXISTS (SELECT 1 FROM agents WHERE uuid = ?3))
       AND (?4 IS NULL OR EXISTS (SELECT 1 FROM agents WHERE uuid = ?4))";

const HEAD: &str = "INSERT INTO heads (agent, seq, epoch)
     SELECT id, 0, ?2 FROM agents WHERE uuid = ?1";

const BLOB: &str = "INSERT INTO blobs (hash, part, bytes) VALUES (?1, ?2, ?3)
     ON CONFLICT (hash, part) DO UPDATE SET part = part";

const ROW: &str = "INSERT INTO messages (agent, seq, kind, control, created_at, content, data,
                                       author)
     SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM agents WHERE uuid = ?1";

const MAIL: &str = "INSERT INTO mail
         (uuid, receiver, sender, sent_at, state, shown_agent, shown_seq, text, origin, about, process,
          author)
     SELECT ?1, id, (SELECT id FROM agents WHERE uuid = ?3), ?4, ?5,
            (SELECT id FROM agents WHERE uuid = ?6), ?7, ?8, ?9, ?10, ?11, ?12
     FROM agents WHERE uuid = ?2
       AND (?3 IS NULL OR EXISTS (SELECT 1 FROM agents WHERE uuid = ?3))
       AND (?6 IS NULL OR EXISTS (SELECT 1 FROM agents WHERE uuid = ?6))";

const RUN: &str = "INSERT INTO tool_runs (uuid, agent, seq, class, started, deadline, ended)
     SELECT ?1, id, ?3, ?4, ?5, ?6, ?7 FROM agents WHERE uuid = ?2";

const DRAFT: &str = "INSERT INTO drafts (agent, part, at, text)
     SELECT id, ?2, ?3, ?4 FROM agents WHERE uuid = ?1";
