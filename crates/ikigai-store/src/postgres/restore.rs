//! Restoring a dumped log: all of it, or nothing.

use std::error::Error;
use std::io::BufRead;
use std::sync::mpsc as blocking;

use tokio::sync::mpsc;

use super::PostgresStore;
use super::connect::{ConnectionRole, Link, PostgresTarget};
use super::errors::{is_reference_violation, is_unique_violation, sql_error};
use super::pipeline::{OwnedParam, send_all};
use super::statements::clean;
use super::values::{QueryFailure, get};
use crate::changes::LogChanges;
use crate::error::StoreError;
use crate::log::BoxFuture;
use crate::portable::dump_reader::{ColumnValue, DumpEntry, DumpReader, EntryKind};
use crate::portable::{RestoreError, RestoreMode, Restored};

/// Size of a chunk that is sent without waiting for replies.
const CHUNK_ENTRIES: usize = 512;
const CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// Message to the task that inserts.
enum Chunk {
    /// Some entries, in order.
    Entries(Vec<DumpEntry>),
    /// There are no more, and they are whole.
    End,
}

impl PostgresStore {
    pub(super) fn restore_lines(
        &self,
        lines: &mut dyn BufRead,
        mode: RestoreMode,
    ) -> Result<Restored, RestoreError> {
        let (chunks, received) = mpsc::channel(2);
        let (answer, answered) = blocking::sync_channel(1);
        let target = self.target.clone();
        self.runtime.spawn(async move {
            // The caller waits for the reply.
            let _ = answer.send(insert_all(&target, received, mode).await);
        });
        let mut lines = DumpReader::new(lines, mode);
        let read = send(&mut lines, &chunks);
        drop(chunks);
        let taken = answered.recv();
        // A mistake in the file is the reason for the failure.
        read?;
        taken.map_err(|_| RestoreError::Store(StoreError::Closed))??;
        self.notifier.committed(&LogChanges::unknown());
        Ok(lines.restored())
    }
}

/// Reads all entries and sends them on, until the receiver is gone.
fn send<R: BufRead>(
    lines: &mut DumpReader<R>,
    to: &mpsc::Sender<Chunk>,
) -> Result<(), RestoreError> {
    let mut entries = Vec::new();
    let mut bytes = 0;
    while let Some(entry) = lines.next()? {
        bytes += entry.cells.iter().map(ColumnValue::bytes).sum::<usize>();
        entries.push(entry);
        if entries.len() == CHUNK_ENTRIES || bytes > CHUNK_BYTES {
            bytes = 0;
            let chunk = Chunk::Entries(std::mem::take(&mut entries));
            if to.blocking_send(chunk).is_err() {
                return Ok(());
            }
        }
    }
    // The receiver says why, if it is gone.
    let _ = to.blocking_send(Chunk::Entries(entries));
    let _ = to.blocking_send(Chunk::End);
    Ok(())
}

async fn insert_all(
    target: &PostgresTarget,
    mut chunks: mpsc::Receiver<Chunk>,
    mode: RestoreMode,
) -> Result<(), RestoreError> {
    let fail = |failure| RestoreError::Store(store_error(target, failure));
    let link = target.connect(ConnectionRole::Slow).await;
    let link = link.map_err(|cause| RestoreError::Store(cause.store_error(target.url())))?;
    // The transaction ends with the connection, if it is not committed.
    begin(&link).await.map_err(fail)?;
    if mode == RestoreMode::EmptyOnly && !is_empty(&link).await.map_err(fail)? {
        return Err(RestoreError::NotEmpty);
    }
    let mut forks = Forks::default();
    loop {
        match chunks.recv().await {
            Some(Chunk::Entries(entries)) => insert(&link, &entries, &mut forks).await?,
            Some(Chunk::End) => break,
            None => return Err(RestoreError::Cut),
        }
    }
    if has_gaps(&link).await.map_err(fail)? {
        let reason = "the rows of an agent are not whole".to_owned();
        return Err(StoreError::Value(reason).into());
    }
    settle(&link, forks)
        .await
        .map_err(|failure| match failure {
            QueryFailure::Sql(error) if is_reference_violation(&error) => RestoreError::Store(
                StoreError::Value("the file refers to something that is not in it".to_owned()),
            ),
            failure => fail(failure),
        })?;
    let committed = link.command("COMMIT").await;
    committed.map_err(|error| fail(error.into()))?;
    Ok(())
}

fn store_error(target: &PostgresTarget, failure: QueryFailure) -> StoreError {
    match failure {
        QueryFailure::Sql(error) => sql_error(target.url(), error),
        QueryFailure::Value(what) => StoreError::Value(what),
    }
}

/// Others may read meanwhile, but not write.
async fn begin(link: &Link) -> Result<(), QueryFailure> {
    link.command("BEGIN").await?;
    link.command(
        "LOCK TABLE sessions, agents, heads, messages, mail, drafts, tool_runs, blobs
         IN SHARE ROW EXCLUSIVE MODE",
    )
    .await?;
    Ok(())
}

async fn is_empty(link: &Link) -> Result<bool, QueryFailure> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM sessions) AND NOT EXISTS (SELECT 1 FROM blobs)";
    link.only(sql, &[], |row| get(row, 0)).await
}

/// Fork points of agents, set after the rows exist.
#[derive(Default)]
struct Forks {
    agents: Vec<String>,
    from: Vec<String>,
    at: Vec<i64>,
}

impl Forks {
    fn keep(&mut self, cells: &[ColumnValue]) {
        if let [
            ColumnValue::Text(agent),
            _,
            _,
            ColumnValue::Text(from),
            ColumnValue::Integer(at),
            ..,
        ] = cells
        {
            self.agents.push(agent.clone());
            self.from.push(from.clone());
            self.at.push(*at);
        }
    }
}

async fn insert(link: &Link, entries: &[DumpEntry], forks: &mut Forks) -> Result<(), RestoreError> {
    let mut statements: Vec<(&'static str, Vec<OwnedParam>)> = Vec::new();
    let mut of: Vec<&DumpEntry> = Vec::new();
    for entry in entries {
        let sql = match entry.what {
            EntryKind::Session => SESSION,
            EntryKind::Agent => AGENT,
            EntryKind::Blob => BLOB,
            EntryKind::Row => ROW,
            EntryKind::Mail => MAIL,
            EntryKind::Run => RUN,
            EntryKind::Draft => DRAFT,
        };
        let mut cells = entry.cells.clone();
        if entry.what == EntryKind::Agent {
            forks.keep(&cells);
            // The row of the fork point comes later.
            cells.remove(4);
        }
        of.push(entry);
        let cells = cells.into_iter().enumerate();
        let values = cells.map(|(place, cell)| param_of(entry.what, place, cell));
        statements.push((sql, values.collect()));
    }
    let prepared = link.prepare_all(statements.iter().map(|(sql, _)| *sql));
    prepared.await.map_err(|error| sql_wrong(entries, &error))?;
    let sent = statements.iter().map(|(sql, values)| {
        let sent: BoxFuture<'_, _> = Box::pin(link.send(sql, values));
        sent
    });
    for (entry, answer) in of.into_iter().zip(send_all(sent).await) {
        match answer {
            Ok(rows) if rows.is_empty() => return Err(entry.lost()),
            Ok(_) => {}
            Err(error) if is_unique_violation(&error) => return Err(entry.twice()),
            Err(error) => return Err(entry.wrong(server_message(&error))),
        }
    }
    Ok(())
}

fn sql_wrong(entries: &[DumpEntry], error: &tokio_postgres::Error) -> RestoreError {
    match entries.first() {
        Some(entry) => entry.wrong(server_message(error)),
        None => RestoreError::Cut,
    }
}

/// Returns the message of the server, which the library hides.
fn server_message(error: &tokio_postgres::Error) -> String {
    let message = error
        .as_db_error()
        .map(|message| message.message().to_owned());
    let cause = error.source().map(ToString::to_string);
    message.or(cause).unwrap_or_else(|| error.to_string())
}

/// Converts a value for its statement. Nulls are sent as text, since optional numbers are.
fn param_of(what: EntryKind, place: usize, cell: ColumnValue) -> OwnedParam {
    let may_miss = matches!((what, place), (EntryKind::Mail | EntryKind::Run, 6));
    match cell {
        ColumnValue::Nothing => Box::new(None::<String>),
        ColumnValue::Integer(number) if may_miss => Box::new(number.to_string()),
        ColumnValue::Integer(number) => Box::new(number),
        ColumnValue::Text(text) => Box::new(clean(&text)),
        ColumnValue::Blob(bytes) => Box::new(bytes),
    }
}

/// Returns true if the rows of a restored agent have gaps.
async fn has_gaps(link: &Link) -> Result<bool, QueryFailure> {
    let sql = "SELECT EXISTS (SELECT 1 FROM heads h WHERE h.seq = 0 AND
             (SELECT count(*) FROM messages WHERE agent = h.agent AND seq > 0) <>
             (SELECT coalesce(max(seq), 0) FROM messages WHERE agent = h.agent))";
    link.only(sql, &[], |row| get(row, 0)).await
}

/// Sets heads and fork points after the restored rows, which count as read.
async fn settle(link: &Link, forks: Forks) -> Result<(), QueryFailure> {
    link.command(
        "INSERT INTO seen (agent, person, read_to, dismissed_to)
         SELECT h.agent, '', max(m.seq), 0
         FROM heads h JOIN messages m ON m.agent = h.agent WHERE h.seq = 0 GROUP BY h.agent
         ON CONFLICT (agent, person) DO NOTHING",
    )
    .await?;
    link.command(
        "UPDATE heads SET seq =
             (SELECT coalesce(max(seq), 0) FROM messages WHERE agent = heads.agent)
         WHERE seq = 0",
    )
    .await?;
    let sql = "UPDATE agents a SET fork_agent = f.id, fork_seq = u.at
         FROM unnest($1::text[], $2::text[], $3::bigint[]) AS u (uuid, forked, at)
         JOIN agents f ON f.uuid = u.forked
         WHERE a.uuid = u.uuid";
    link.all(sql, &[&forks.agents, &forks.from, &forks.at], |_| Ok(()))
        .await?;
    Ok(())
}

// Each says by a row that it stored something.

const SESSION: &str = "INSERT INTO sessions AS s (uuid, created_at, name, directory, machine, host)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (uuid) DO UPDATE SET name = s.name RETURNING 1";

const AGENT: &str = "WITH made AS (
         INSERT INTO agents (uuid, session, parent, created_at, status, name)
         SELECT $1, s.id, (SELECT id FROM agents WHERE uuid = $3), $5, $6, $7
         FROM sessions s WHERE s.uuid = $2
           AND ($3::text IS NULL OR EXISTS (SELECT 1 FROM agents WHERE uuid = $3))
           AND ($4::text IS NULL OR EXISTS (SELECT 1 FROM agents WHERE uuid = $4))
         RETURNING id)
     INSERT INTO heads (agent, seq, epoch) SELECT id, 0, $8::bigint FROM made RETURNING 1";

const BLOB: &str = "INSERT INTO blobs AS b (hash, part, bytes) VALUES ($1, $2, $3)
     ON CONFLICT (hash, part) DO UPDATE SET part = b.part RETURNING 1";

const ROW: &str = "INSERT INTO messages (agent, seq, kind, control, created_at, content, data,
                                       author)
     SELECT id, $2, $3, $4::bigint <> 0, $5, $6, $7, $8 FROM agents WHERE uuid = $1 RETURNING 1";

const MAIL: &str = "INSERT INTO mail
         (uuid, receiver, sender, sent_at, state, shown_agent, shown_seq, text, origin, about, process,
          author)
     SELECT $1, id, (SELECT id FROM agents WHERE uuid = $3), $4, $5,
            (SELECT id FROM agents WHERE uuid = $6), $7::text::bigint, $8, $9, $10, $11::text::bigint, $12
     FROM agents WHERE uuid = $2
       AND ($3::text IS NULL OR EXISTS (SELECT 1 FROM agents WHERE uuid = $3))
       AND ($6::text IS NULL OR EXISTS (SELECT 1 FROM agents WHERE uuid = $6))
     RETURNING 1";

const RUN: &str = "INSERT INTO tool_runs (uuid, agent, seq, class, started, deadline, ended)
     SELECT $1, id, $3, $4, $5, $6, $7::text::bigint FROM agents WHERE uuid = $2 RETURNING 1";

const DRAFT: &str = "INSERT INTO drafts (agent, part, at, text)
     SELECT id, $2, $3, $4 FROM agents WHERE uuid = $1 RETURNING 1";
