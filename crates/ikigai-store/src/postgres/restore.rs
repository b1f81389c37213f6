//! Taking in a log that another store told: all of it, or nothing.

use std::error::Error;
use std::io::BufRead;
use std::sync::mpsc as blocking;

use tokio::sync::mpsc;

use super::PostgresStore;
use super::connect::{Link, Role, Target};
use super::errors::{is_reference_violation, is_unique_violation, sql_error};
use super::pipeline::{OwnedParam, send_all};
use super::statements::clean;
use super::values::{Failure, get};
use crate::error::StoreError;
use crate::log::BoxFuture;
use crate::portable::lines::{Cell, Entry, Lines, What};
use crate::portable::{RestoreError, RestoreMode, Restored};

/// How much is sent without waiting for answers.
const CHUNK_ENTRIES: usize = 512;
const CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// What is on its way to the server.
enum Chunk {
    /// Some entries, in order.
    Entries(Vec<Entry>),
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
            // Whoever waits is there until it is answered.
            let _ = answer.send(insert_all(&target, received, mode).await);
        });
        let mut lines = Lines::new(lines, mode);
        let read = send(&mut lines, &chunks);
        drop(chunks);
        let taken = answered.recv();
        // What is wrong with the file is why nothing was taken in.
        read?;
        taken.map_err(|_| RestoreError::Store(StoreError::Closed))??;
        self.notifier.committed();
        Ok(lines.restored())
    }
}

/// Reads everything and sends it on. Ends early if nobody takes it any more.
fn send<R: BufRead>(lines: &mut Lines<R>, to: &mpsc::Sender<Chunk>) -> Result<(), RestoreError> {
    let mut entries = Vec::new();
    let mut bytes = 0;
    while let Some(entry) = lines.next()? {
        bytes += entry.cells.iter().map(Cell::bytes).sum::<usize>();
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
    target: &Target,
    mut chunks: mpsc::Receiver<Chunk>,
    mode: RestoreMode,
) -> Result<(), RestoreError> {
    let fail = |failure| RestoreError::Store(store_error(target, failure));
    let link = target.connect(Role::Slow).await;
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
            Failure::Sql(error) if is_reference_violation(&error) => RestoreError::Store(
                StoreError::Value("something in the file refers to what is not in it".to_owned()),
            ),
            failure => fail(failure),
        })?;
    let committed = link.say("COMMIT").await;
    committed.map_err(|error| fail(error.into()))?;
    Ok(())
}

fn store_error(target: &Target, failure: Failure) -> StoreError {
    match failure {
        Failure::Sql(error) => sql_error(target.url(), error),
        Failure::Value(what) => StoreError::Value(what),
    }
}

/// Others may read meanwhile, but not write.
async fn begin(link: &Link) -> Result<(), Failure> {
    link.say("BEGIN").await?;
    link.say(
        "LOCK TABLE sessions, agents, heads, messages, mail, drafts, tool_runs, blobs
         IN SHARE ROW EXCLUSIVE MODE",
    )
    .await?;
    Ok(())
}

async fn is_empty(link: &Link) -> Result<bool, Failure> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM sessions) AND NOT EXISTS (SELECT 1 FROM blobs)";
    link.only(sql, &[], |row| get(row, 0)).await
}

/// Where agents were forked from: told before those rows are there.
#[derive(Default)]
struct Forks {
    agents: Vec<String>,
    from: Vec<String>,
    at: Vec<i64>,
}

impl Forks {
    fn keep(&mut self, cells: &[Cell]) {
        if let [
            Cell::Text(agent),
            _,
            _,
            Cell::Text(from),
            Cell::Integer(at),
            ..,
        ] = cells
        {
            self.agents.push(agent.clone());
            self.from.push(from.clone());
            self.at.push(*at);
        }
    }
}

async fn insert(link: &Link, entries: &[Entry], forks: &mut Forks) -> Result<(), RestoreError> {
    let mut statements: Vec<(&'static str, Vec<OwnedParam>)> = Vec::new();
    let mut of: Vec<&Entry> = Vec::new();
    for entry in entries {
        let sql = match entry.what {
            What::Session => SESSION,
            What::Agent => AGENT,
            What::Blob => BLOB,
            What::Row => ROW,
            What::Mail => MAIL,
            What::Run => RUN,
            What::Draft => DRAFT,
        };
        let mut cells = entry.cells.clone();
        if entry.what == What::Agent {
            forks.keep(&cells);
            // The row of the fork point is told later.
            cells.remove(4);
        }
        of.push(entry);
        let cells = cells.into_iter().enumerate();
        let values = cells.map(|(place, cell)| kept(entry.what, place, cell));
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
            Err(error) => return Err(entry.wrong(said(&error))),
        }
    }
    Ok(())
}

fn sql_wrong(entries: &[Entry], error: &tokio_postgres::Error) -> RestoreError {
    match entries.first() {
        Some(entry) => entry.wrong(said(error)),
        None => RestoreError::Cut,
    }
}

/// What the server says; the library alone only tells that it said something.
fn said(error: &tokio_postgres::Error) -> String {
    let told = error.as_db_error().map(|told| told.message().to_owned());
    let cause = error.source().map(ToString::to_string);
    told.or(cause).unwrap_or_else(|| error.to_string())
}

/// A value as its statement takes it. Nothing is sent as a text, so that a number which may be
/// missing is one too.
fn kept(what: What, place: usize, cell: Cell) -> OwnedParam {
    let may_miss = matches!((what, place), (What::Mail | What::Run, 6));
    match cell {
        Cell::Nothing => Box::new(None::<String>),
        Cell::Integer(number) if may_miss => Box::new(number.to_string()),
        Cell::Integer(number) => Box::new(number),
        Cell::Text(text) => Box::new(clean(&text)),
        Cell::Blob(bytes) => Box::new(bytes),
    }
}

/// Whether a log that came does not go from 1 on without a gap.
async fn has_gaps(link: &Link) -> Result<bool, Failure> {
    let sql = "SELECT EXISTS (SELECT 1 FROM heads h WHERE h.seq = 0 AND
             (SELECT count(*) FROM messages WHERE agent = h.agent AND seq > 0) <>
             (SELECT coalesce(max(seq), 0) FROM messages WHERE agent = h.agent))";
    link.only(sql, &[], |row| get(row, 0)).await
}

/// Heads follow the rows that came, and agents are forked from rows that are there.
async fn settle(link: &Link, forks: Forks) -> Result<(), Failure> {
    link.say(
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

const SESSION: &str = "INSERT INTO sessions AS s (uuid, created_at, name, directory)
     VALUES ($1, $2, $3, $4)
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

const ROW: &str = "INSERT INTO messages (agent, seq, kind, control, created_at, content, data)
     SELECT id, $2, $3, $4::bigint <> 0, $5, $6, $7 FROM agents WHERE uuid = $1 RETURNING 1";

const MAIL: &str = "INSERT INTO mail
         (uuid, receiver, sender, sent_at, state, shown_agent, shown_seq, text)
     SELECT $1, id, (SELECT id FROM agents WHERE uuid = $3), $4, $5,
            (SELECT id FROM agents WHERE uuid = $6), $7::text::bigint, $8
     FROM agents WHERE uuid = $2
       AND ($3::text IS NULL OR EXISTS (SELECT 1 FROM agents WHERE uuid = $3))
       AND ($6::text IS NULL OR EXISTS (SELECT 1 FROM agents WHERE uuid = $6))
     RETURNING 1";

const RUN: &str = "INSERT INTO tool_runs (uuid, agent, seq, class, started, deadline, ended)
     SELECT $1, id, $3, $4, $5, $6, $7::text::bigint FROM agents WHERE uuid = $2 RETURNING 1";

const DRAFT: &str = "INSERT INTO drafts (agent, part, at, text)
     SELECT id, $2, $3, $4 FROM agents WHERE uuid = $1 RETURNING 1";
