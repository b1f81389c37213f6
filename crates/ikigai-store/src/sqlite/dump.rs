//! The log as lines of JSON at one moment, without derived data and leases.

use std::collections::HashSet;

use ikigai_core::AgentId;
use rusqlite::{Connection, OptionalExtension};
use serde_json::{Value, json};

use super::values::text;
use crate::portable::export_schema::{ExportQueries, ExportTable, Exporter, blob_line, header};

/// Receives one line; returns whether to continue.
pub(super) type LineSink<'a> = &'a mut dyn FnMut(Value) -> bool;

/// Dumps some agents with all their ancestors, or everything, until the sink refuses a line.
pub(super) fn dump(
    connection: &Connection,
    of: Option<&[AgentId]>,
    sink: LineSink<'_>,
) -> rusqlite::Result<()> {
    let moment = connection.unchecked_transaction()?;
    let agents = match of {
        Some(of) => with_ancestors(&moment, of)?,
        None => all_agents(&moment)?,
    };
    let scope = json!(agents).to_string();
    if !sink(header()) {
        return Ok(());
    }
    let mut dump = SqliteDump {
        connection: &moment,
        scope,
        sink,
        exporter: Exporter::default(),
    };
    let is_all = of.is_none();
    let _is_whole = dump.tables(is_all)?
        && (!is_all || dump.other_blobs()?)
        && (dump.sink)(dump.exporter.end());
    Ok(())
}

fn all_agents(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut all = connection.prepare("SELECT id FROM agents ORDER BY id")?;
    all.query_map([], |row| row.get(0))?.collect()
}

/// Keys of agents and of all agents whose rows they inherit.
fn with_ancestors(connection: &Connection, of: &[AgentId]) -> rusqlite::Result<Vec<i64>> {
    let mut keys = connection.prepare("SELECT id FROM agents WHERE uuid = ?1")?;
    let mut origins = connection.prepare("SELECT parent, fork_agent FROM agents WHERE id = ?1")?;
    let mut left: Vec<i64> = Vec::new();
    for agent in of {
        left.extend(
            keys.query_row([agent.to_string()], |row| row.get::<_, i64>(0))
                .optional()?,
        );
    }
    let mut found = HashSet::new();
    while let Some(key) = left.pop() {
        if found.insert(key) {
            let (parent, fork): (Option<i64>, Option<i64>) =
                origins.query_row([key], |row| Ok((row.get(0)?, row.get(1)?)))?;
            left.extend(parent.into_iter().chain(fork));
        }
    }
    let mut found: Vec<i64> = found.into_iter().collect();
    found.sort_unstable();
    Ok(found)
}

struct SqliteDump<'a> {
    connection: &'a Connection,
    /// Keys of the agents, as a JSON list.
    scope: String,
    sink: LineSink<'a>,
    exporter: Exporter,
}

const SELECTS: ExportQueries = ExportQueries {
    sessions: "SELECT uuid, created_at, name, directory, machine, host FROM sessions WHERE id IN
              (SELECT session FROM agents WHERE id IN (SELECT value FROM json_each(?1)))
          ORDER BY id",
    all_sessions: "SELECT uuid, created_at, name, directory, machine, host FROM sessions
          WHERE ?1 IS NOT NULL ORDER BY id",
    agents:
        "SELECT a.uuid, s.uuid, p.uuid, f.uuid, a.fork_seq, a.created_at, a.status, a.name, h.epoch
          FROM agents a JOIN sessions s ON s.id = a.session JOIN heads h ON h.agent = a.id
          LEFT JOIN agents p ON p.id = a.parent LEFT JOIN agents f ON f.id = a.fork_agent
          WHERE a.id IN (SELECT value FROM json_each(?1)) ORDER BY a.id",
    rows: "SELECT a.uuid, m.seq, m.kind, m.control, m.created_at, m.content, m.data,
            m.author
          FROM messages m JOIN agents a ON a.id = m.agent
          WHERE m.agent IN (SELECT value FROM json_each(?1)) ORDER BY m.id",
    mail:
        "SELECT lower(hex(m.uuid)), r.uuid, s.uuid, m.sent_at, m.state, w.uuid, m.shown_seq, m.text,
                 m.origin, m.about, m.process, m.author
          FROM mail m JOIN agents r ON r.id = m.receiver
          LEFT JOIN agents s ON s.id = m.sender LEFT JOIN agents w ON w.id = m.shown_agent
          WHERE m.receiver IN (SELECT value FROM json_each(?1))
            AND (m.sender IS NULL OR m.sender IN (SELECT value FROM json_each(?1)))
            AND (m.shown_agent IS NULL OR m.shown_agent IN (SELECT value FROM json_each(?1)))
          ORDER BY m.id",
    runs: "SELECT lower(hex(r.uuid)), a.uuid, r.seq, r.class, r.started, r.deadline, r.ended
          FROM tool_runs r JOIN agents a ON a.id = r.agent
          WHERE r.agent IN (SELECT value FROM json_each(?1)) ORDER BY r.id",
    drafts: "SELECT a.uuid, d.part, d.at, d.text FROM drafts d JOIN agents a ON a.id = d.agent
          WHERE d.agent IN (SELECT value FROM json_each(?1)) ORDER BY d.id",
};

impl SqliteDump<'_> {
    /// Dumps all tables; returns whether to continue.
    fn tables(&mut self, is_all: bool) -> rusqlite::Result<bool> {
        for (table, sql) in SELECTS.in_order(is_all) {
            if !self.table(table, sql)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn table(&mut self, table: ExportTable, sql: &str) -> rusqlite::Result<bool> {
        let connection = self.connection;
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([&self.scope])?;
        while let Some(row) = rows.next()? {
            let values = (0..table.columns.len()).map(|place| {
                Ok(match row.get_ref(place)? {
                    rusqlite::types::ValueRef::Integer(number) => number.into(),
                    _ => text(row, place)?.map_or(Value::Null, Value::String),
                })
            });
            let values = values.collect::<rusqlite::Result<Vec<Value>>>()?;
            let (blobs, line) = self.exporter.line(table, values);
            for hash in blobs {
                if !self.blob(&hash)? {
                    return Ok(false);
                }
            }
            if !(self.sink)(line) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn blob(&mut self, hash: &str) -> rusqlite::Result<bool> {
        let connection = self.connection;
        let mut parts = connection
            .prepare_cached("SELECT part, bytes FROM blobs WHERE hash = unhex(?1) ORDER BY part")?;
        let mut rows = parts.query([hash])?;
        while let Some(row) = rows.next()? {
            let line = blob_line(hash, row.get(0)?, row.get_ref(1)?.as_blob()?);
            if !(self.sink)(line) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Dumps the blobs that no row names.
    fn other_blobs(&mut self) -> rusqlite::Result<bool> {
        let connection = self.connection;
        let mut all =
            connection.prepare("SELECT DISTINCT lower(hex(hash)) FROM blobs ORDER BY 1")?;
        let mut rows = all.query([])?;
        while let Some(row) = rows.next()? {
            let hash: String = row.get(0)?;
            if self.exporter.is_new_blob(&hash) && !self.blob(&hash)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
