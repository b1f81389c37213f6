//! The log as lines of JSON at one moment, without derived data and leases.

use std::collections::HashSet;

use ikigai_core::AgentId;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::connect::Link;
use super::values::{QueryFailure, Result, get};
use crate::portable::export_schema::{ExportQueries, ExportTable, Exporter, blob_line, header};

/// Fetches rows in pages.
const FETCH: &str = "FETCH 500 FROM dumped";

/// Dumps some agents with all their ancestors, or everything, until the receiver is dropped.
pub(super) async fn dump(
    link: &Link,
    of: Option<&[AgentId]>,
    sink: &mpsc::Sender<String>,
) -> Result<()> {
    link.command("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await?;
    let table = notify(link, of, sink).await;
    let ended = link.command("ROLLBACK").await;
    table?;
    ended?;
    Ok(())
}

async fn notify(link: &Link, of: Option<&[AgentId]>, sink: &mpsc::Sender<String>) -> Result<()> {
    let agents = match of {
        Some(of) => with_ancestors(link, of).await?,
        None => all_agents(link).await?,
    };
    let mut dump = PostgresDump {
        link,
        agents,
        sink,
        exporter: Exporter::default(),
    };
    let is_all = of.is_none();
    let _is_whole = dump.put(&header()).await
        && dump.tables(is_all).await?
        && (!is_all || dump.other_blobs().await?)
        && dump.put(&dump.exporter.end()).await;
    Ok(())
}

async fn all_agents(link: &Link) -> Result<Vec<i64>> {
    let sql = "SELECT id FROM agents ORDER BY id";
    link.all(sql, &[], |row| get(row, 0)).await
}

/// Returns the keys of agents and of all ancestors that they inherit from.
async fn with_ancestors(link: &Link, of: &[AgentId]) -> Result<Vec<i64>> {
    let of: Vec<String> = of.iter().map(ToString::to_string).collect();
    let sql = "SELECT id FROM agents WHERE uuid = ANY ($1::text[])";
    let mut left: Vec<i64> = link.all(sql, &[&of], |row| get(row, 0)).await?;
    let mut found = HashSet::new();
    while !left.is_empty() {
        left.retain(|key| found.insert(*key));
        let sql = "SELECT parent FROM agents WHERE id = ANY ($1::bigint[]) AND parent IS NOT NULL
             UNION
             SELECT fork_agent FROM agents
             WHERE id = ANY ($1::bigint[]) AND fork_agent IS NOT NULL";
        left = link.all(sql, &[&left], |row| get(row, 0)).await?;
    }
    let mut found: Vec<i64> = found.into_iter().collect();
    found.sort_unstable();
    Ok(found)
}

struct PostgresDump<'a> {
    link: &'a Link,
    /// Keys of the agents.
    agents: Vec<i64>,
    sink: &'a mpsc::Sender<String>,
    exporter: Exporter,
}

const SELECTS: ExportQueries = ExportQueries {
    sessions: "SELECT uuid, created_at, name, directory, machine, host FROM sessions WHERE id IN
         (SELECT session FROM agents WHERE id = ANY ($1::bigint[]))
     ORDER BY id",
    all_sessions: "SELECT uuid, created_at, name, directory, machine, host FROM sessions
     WHERE $1::bigint[] IS NOT NULL ORDER BY id",
    agents: "SELECT a.uuid, s.uuid, p.uuid, f.uuid, a.fork_seq, a.created_at, a.status, a.name, h.epoch
     FROM agents a JOIN sessions s ON s.id = a.session JOIN heads h ON h.agent = a.id
     LEFT JOIN agents p ON p.id = a.parent LEFT JOIN agents f ON f.id = a.fork_agent
     WHERE a.id = ANY ($1::bigint[]) ORDER BY a.id",
    rows: "SELECT a.uuid, m.seq, m.kind, m.control::integer::bigint, m.created_at, m.content, m.data,
            m.author
     FROM messages m JOIN agents a ON a.id = m.agent
     WHERE m.agent = ANY ($1::bigint[]) ORDER BY m.id",
    mail: "SELECT encode(m.uuid, 'hex'), r.uuid, s.uuid, m.sent_at, m.state, w.uuid, m.shown_seq, m.text,
            m.origin, m.about, m.process, m.author
     FROM mail m JOIN agents r ON r.id = m.receiver
     LEFT JOIN agents s ON s.id = m.sender LEFT JOIN agents w ON w.id = m.shown_agent
     WHERE m.receiver = ANY ($1::bigint[])
       AND (m.sender IS NULL OR m.sender = ANY ($1::bigint[]))
       AND (m.shown_agent IS NULL OR m.shown_agent = ANY ($1::bigint[]))
     ORDER BY m.id",
    runs: "SELECT encode(r.uuid, 'hex'), a.uuid, r.seq, r.class, r.started, r.deadline, r.ended
     FROM tool_runs r JOIN agents a ON a.id = r.agent
     WHERE r.agent = ANY ($1::bigint[]) ORDER BY r.id",
    drafts: "SELECT a.uuid, d.part, d.at, d.text
     FROM drafts d JOIN agents a ON a.id = d.agent
     WHERE d.agent = ANY ($1::bigint[]) ORDER BY d.id",
};

const SELECT_BLOBS: &str = "SELECT DISTINCT encode(hash, 'hex') COLLATE \"C\" FROM blobs
     WHERE $1::bigint[] IS NOT NULL ORDER BY 1";

impl PostgresDump<'_> {
    /// Hands a line over; says whether more is wanted.
    async fn put(&self, line: &Value) -> bool {
        self.sink.send(format!("{line}\n")).await.is_ok()
    }

    async fn tables(&mut self, is_all: bool) -> Result<bool> {
        for (table, sql) in SELECTS.in_order(is_all) {
            self.open(sql).await?;
            loop {
                let rows = self.fetch().await?;
                if rows.is_empty() {
                    break;
                }
                for row in rows {
                    if !self.line(table, &row).await? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Begins to read, a few rows at a time.
    async fn open(&self, sql: &str) -> Result<()> {
        let client = &self.link.client;
        client.batch_execute("CLOSE ALL").await?;
        let cursor = format!("DECLARE dumped NO SCROLL CURSOR FOR {sql}");
        client.execute(&cursor, &[&self.agents]).await?;
        Ok(())
    }

    async fn fetch(&self) -> Result<Vec<Row>> {
        Ok(self.link.client.query(FETCH, &[]).await?)
    }

    async fn line(&mut self, table: ExportTable, row: &Row) -> Result<bool> {
        let values = (0..table.columns.len()).map(|place| value(row, place));
        let values = values.collect::<Result<Vec<Value>>>()?;
        let (blobs, line) = self.exporter.line(table, values);
        for hash in blobs {
            if !self.blob(&hash).await? {
                return Ok(false);
            }
        }
        Ok(self.put(&line).await)
    }

    async fn blob(&self, hash: &str) -> Result<bool> {
        let sql = "SELECT part, bytes FROM blobs WHERE hash = decode($1, 'hex') ORDER BY part";
        let read = |row: &Row| Ok(blob_line(hash, get(row, 0)?, get(row, 1)?));
        for part in self.link.all(sql, &[&hash], read).await? {
            if !self.put(&part).await {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Dumps the blobs that no row names.
    async fn other_blobs(&mut self) -> Result<bool> {
        self.open(SELECT_BLOBS).await?;
        loop {
            let rows = self.fetch().await?;
            if rows.is_empty() {
                return Ok(true);
            }
            for row in rows {
                let hash: String = get(&row, 0)?;
                if self.exporter.is_new_blob(&hash) && !self.blob(&hash).await? {
                    return Ok(false);
                }
            }
        }
    }
}

fn value(row: &Row, place: usize) -> Result<Value> {
    let column = row.columns().get(place);
    let of_type = column.map(tokio_postgres::Column::type_);
    Ok(match of_type {
        Some(&Type::INT8) => get::<Option<i64>>(row, place)?.map_or(Value::Null, Value::from),
        Some(_) => get::<Option<String>>(row, place)?.map_or(Value::Null, Value::String),
        None => return Err(QueryFailure::Value("a column is missing".to_owned())),
    })
}
