//! Queries; each function is one statement, so that it sees one moment of the log.

use ikigai_core::{
    AgentId, ControlQuery, Direction, Epoch, PageQuery, ProcessId, Row, RowRef, SessionId, Span,
};
use rusqlite::{Connection, OptionalExtension, Params, Result, Row as SqlRow, params};

use super::values::{
    log_row, micros, number, optional_number, optional_parsed, optional_person, optional_process,
    optional_row_ref, parse_column, seq, text, wide_id,
};
use crate::blobs::join_parts;
use crate::log::MOST_NAMESAKES;
use crate::records::{
    AgentRecord, BlobHash, DraftRecord, Head, MailId, MailRecord, PageCollector, ProcessRecord,
    RestorePoint, RunId, RunRecord, SessionRecord, Snapshot,
};
use crate::sql_common::agents_sql;
use crate::sql_common::{stored_limit, to_stored};

/// Reads all rows of a statement.
pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&SqlRow<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    connection
        .prepare_cached(sql)?
        .query_map(values, read)?
        .collect()
}

/// Reads the only row of a statement, if there is one.
pub(super) fn one<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnOnce(&SqlRow<'_>) -> Result<T>,
) -> Result<Option<T>> {
    connection
        .prepare_cached(sql)?
        .query_row(values, read)
        .optional()
}

/// Selects the newest rows of a span that an index holds.
macro_rules! newest_sql {
    ($index:literal, $condition:literal) => {
        concat!(
            // Without its index this would read the whole log; better an error.
            "SELECT seq, kind, created_at, content, data, author FROM messages INDEXED BY ",
            $index,
            " WHERE agent = (SELECT id FROM agents WHERE uuid = ?1) AND ",
            $condition,
            " AND seq BETWEEN ?2 AND ?3 ORDER BY seq DESC LIMIT ?4"
        )
    };
}
pub(super) use newest_sql;

/// Reads log rows of a span; `sql` has the parameters agent, first, last and limit.
pub(super) fn span_rows(
    connection: &Connection,
    sql: &str,
    span: Span,
    limit: usize,
) -> Result<Vec<Row>> {
    let values = params![
        span.agent.to_string(),
        to_stored(span.from.0),
        to_stored(span.to.0),
        stored_limit(limit)
    ];
    all(connection, sql, values, |row| log_row(span.agent, row))
}

pub(super) fn head(connection: &Connection, agent: AgentId) -> Result<Option<Head>> {
    one(
        connection,
        "SELECT h.seq, h.epoch, p.uuid, p.pid, p.started, p.host, p.machine, p.person
         FROM agents a JOIN heads h ON h.agent = a.id LEFT JOIN processes p ON p.id = h.owner
         WHERE a.uuid = ?1",
        [agent.to_string()],
        |row| {
            Ok(Head {
                seq: seq(row, 0)?,
                epoch: Epoch(number(row, 1)?),
                owner: optional_process(row, 2)?,
            })
        },
    )
}

pub(super) fn control(connection: &Connection, query: ControlQuery) -> Result<Vec<Row>> {
    let span = query.span;
    span_rows(
        connection,
        newest_sql!("messages_control", "control = 1"),
        span,
        query.limit,
    )
}

pub(super) fn usage(connection: &Connection, span: Span, limit: usize) -> Result<Vec<Row>> {
    span_rows(
        connection,
        newest_sql!("messages_usage", "kind = 'usage'"),
        span,
        limit,
    )
}

/// Returns the newest `files` rows of a span, newest first.
pub(super) fn files_rows(connection: &Connection, span: Span, limit: usize) -> Result<Vec<Row>> {
    span_rows(
        connection,
        newest_sql!("messages_files", "kind = 'files'"),
        span,
        limit,
    )
}

/// Returns the newest `usage` row of each agent; up to a thousand in one statement.
pub(super) fn newest_usage(connection: &Connection, agents: &[AgentId]) -> Result<Vec<Row>> {
    let mut newest = Vec::with_capacity(agents.len());
    for agent in agents {
        newest.extend(usage(connection, Span::whole(*agent), 1)?);
    }
    Ok(newest)
}

/// Counts messages of spans; reads only the index.
pub(super) fn count_messages(connection: &Connection, spans: &[Span]) -> Result<u64> {
    let mut messages = 0;
    for span in spans {
        messages += connection
            .prepare_cached(
                "SELECT count(*) FROM messages INDEXED BY messages_user
                 WHERE agent = (SELECT id FROM agents WHERE uuid = ?1)
                   AND kind = 'user' AND seq BETWEEN ?2 AND ?3",
            )?
            .query_row(
                params![
                    span.agent.to_string(),
                    to_stored(span.from.0),
                    to_stored(span.to.0)
                ],
                |row| number(row, 0),
            )?;
    }
    Ok(messages)
}

pub(super) fn page(connection: &Connection, query: PageQuery) -> Result<Vec<Row>> {
    let span = query.span;
    let sql = match query.direction {
        Direction::Forwards => {
            "SELECT seq, kind, created_at, content, data, author FROM messages
             WHERE agent = (SELECT id FROM agents WHERE uuid = ?1) AND seq BETWEEN ?2 AND ?3
             ORDER BY seq LIMIT ?4"
        }
        Direction::Backwards => {
            "SELECT seq, kind, created_at, content, data, author FROM messages
             WHERE agent = (SELECT id FROM agents WHERE uuid = ?1) AND seq BETWEEN ?2 AND ?3
             ORDER BY seq DESC LIMIT ?4"
        }
    };
    span_rows(connection, sql, span, query.limit)
}

/// Returns the newest `limit` `user` rows of spans, newest first.
pub(super) fn user_rows(connection: &Connection, spans: &[Span], limit: usize) -> Result<Vec<Row>> {
    let mut found = Vec::new();
    for span in spans {
        let missing = limit.saturating_sub(found.len());
        found.extend(span_rows(
            connection,
            newest_sql!("messages_user", "kind = 'user'"),
            *span,
            missing,
        )?);
    }
    Ok(found)
}

pub(super) fn snapshot(connection: &Connection, upto: RowRef) -> Result<Option<Snapshot>> {
    one(
        connection,
        "SELECT upto, folded FROM paths
         WHERE agent = (SELECT id FROM agents WHERE uuid = ?1) AND upto <= ?2
         ORDER BY upto DESC LIMIT 1",
        params![upto.agent.to_string(), to_stored(upto.seq.0)],
        |row| {
            Ok(Snapshot {
                upto: RowRef::new(upto.agent, seq(row, 0)?),
                folded: text(row, 1)?.unwrap_or_default(),
            })
        },
    )
}

/// Rows of several spans; see [`crate::ReadLog::pages`].
pub(super) fn pages(connection: &Connection, spans: &[Span], limit: usize) -> Result<Vec<Row>> {
    let mut pages = PageCollector::new(limit);
    for span in spans {
        let query = pages.query(*span);
        if !pages.add(query, page(connection, query)?) {
            break;
        }
    }
    Ok(pages.finish())
}

/// Reads head, snapshot and control rows. Rows that other processes append after the head is read
/// are left out.
pub(super) fn restore_point(
    connection: &Connection,
    agent: AgentId,
    limit: usize,
) -> Result<Option<RestorePoint>> {
    let Some(head) = head(connection, agent)? else {
        return Ok(None);
    };
    let snapshot = snapshot(connection, RowRef::new(agent, head.seq))?;
    let query = RestorePoint::control_query(agent, head.seq, snapshot.as_ref(), limit);
    Ok(Some(RestorePoint {
        head: head.seq,
        control: control(connection, query)?,
        snapshot,
    }))
}

pub(super) fn agent_record(row: &SqlRow<'_>) -> Result<AgentRecord> {
    Ok(AgentRecord {
        id: parse_column(row, 0)?,
        name: text(row, 1)?.unwrap_or_default(),
        session: parse_column(row, 2)?,
        parent: optional_parsed(row, 3)?,
        fork_point: optional_row_ref(row, 4, 5)?,
        status: parse_column(row, 6)?,
        created_at: micros(row, 7)?,
        head: seq(row, 8)?,
        touched_at: row.get::<_, Option<i64>>(9)?.map(ikigai_core::Micros),
        owner: optional_process(row, 10)?,
    })
}

pub(super) fn agents(
    connection: &Connection,
    session: Option<SessionId>,
) -> Result<Vec<AgentRecord>> {
    match session {
        None => all(connection, agents_sql!("ORDER BY a.id"), [], agent_record),
        Some(session) => all(
            connection,
            agents_sql!("WHERE s.uuid = ?1 ORDER BY a.id"),
            [session.to_string()],
            agent_record,
        ),
    }
}

pub(super) fn living_roots(
    connection: &Connection,
    session: SessionId,
) -> Result<Vec<AgentRecord>> {
    all(
        connection,
        agents_sql!(
            "WHERE s.uuid = ?1 AND a.parent IS NULL AND a.status = 'running' ORDER BY a.id"
        ),
        [session.to_string()],
        agent_record,
    )
}

pub(super) fn owners(connection: &Connection) -> Result<Vec<ProcessRecord>> {
    let owners = all(
        connection,
        "SELECT uuid, pid, started, host, machine, person FROM processes
         WHERE id IN (SELECT owner FROM heads) ORDER BY id",
        [],
        |row| optional_process(row, 0),
    );
    Ok(owners?.into_iter().flatten().collect())
}

pub(super) fn agent(connection: &Connection, agent: AgentId) -> Result<Option<AgentRecord>> {
    one(
        connection,
        agents_sql!("WHERE a.uuid = ?1"),
        [agent.to_string()],
        agent_record,
    )
}

pub(super) fn find_by_name(
    connection: &Connection,
    session: Option<SessionId>,
    name: &str,
) -> Result<Vec<AgentRecord>> {
    let most = stored_limit(MOST_NAMESAKES);
    match session {
        None => all(
            connection,
            agents_sql!("WHERE a.name = ?1 AND a.status = 'running' ORDER BY a.id LIMIT ?2"),
            params![name, most],
            agent_record,
        ),
        Some(session) => all(
            connection,
            agents_sql!("WHERE s.uuid = ?1 AND a.name = ?2 AND a.status = 'running'"),
            params![session.to_string(), name],
            agent_record,
        ),
    }
}

fn session_record(row: &SqlRow<'_>) -> Result<SessionRecord> {
    Ok(SessionRecord {
        id: parse_column(row, 0)?,
        name: text(row, 1)?.unwrap_or_default(),
        directory: text(row, 2)?.unwrap_or_default(),
        created_at: micros(row, 3)?,
        machine: optional_parsed(row, 4)?,
        host: text(row, 5)?,
    })
}

pub(super) fn sessions(connection: &Connection) -> Result<Vec<SessionRecord>> {
    all(
        connection,
        "SELECT uuid, name, directory, created_at, machine, host FROM sessions ORDER BY id",
        [],
        session_record,
    )
}

pub(super) fn sessions_in(connection: &Connection, directory: &str) -> Result<Vec<SessionRecord>> {
    all(
        connection,
        "SELECT uuid, name, directory, created_at, machine, host FROM sessions
         WHERE directory = ?1 ORDER BY id",
        [directory],
        session_record,
    )
}

pub(super) fn mail(connection: &Connection, to: AgentId) -> Result<Vec<MailRecord>> {
    mail_where(connection, to, "")
}

pub(super) fn queued_mail(connection: &Connection, to: AgentId) -> Result<Vec<MailRecord>> {
    mail_where(connection, to, "AND m.state = 'queued'")
}

fn mail_where(connection: &Connection, to: AgentId, also: &str) -> Result<Vec<MailRecord>> {
    let statement = format!(
        "SELECT m.uuid, sender.uuid, m.text, m.state, shown.uuid, m.shown_seq, m.sent_at,
                m.origin, m.about, m.process, m.author
         FROM mail m
         LEFT JOIN agents sender ON sender.id = m.sender
         LEFT JOIN agents shown ON shown.id = m.shown_agent
         WHERE m.receiver = (SELECT id FROM agents WHERE uuid = ?1) {also}
         ORDER BY m.id"
    );
    all(connection, &statement, [to.to_string()], |row| {
        Ok(MailRecord {
            id: MailId(wide_id(row, 0)?),
            to,
            from: optional_parsed(row, 1)?,
            text: text(row, 2)?.unwrap_or_default(),
            state: parse_column(row, 3)?,
            shown_by: optional_row_ref(row, 4, 5)?,
            sent_at: micros(row, 6)?,
            origin: parse_column(row, 7)?,
            about: parse_column(row, 8)?,
            process: optional_number(row, 9)?,
            author: optional_person(row, 10)?,
        })
    })
}

pub(super) fn open_runs(connection: &Connection, agent: AgentId) -> Result<Vec<RunRecord>> {
    all(
        connection,
        "SELECT uuid, seq, class, started, deadline FROM tool_runs
         WHERE agent = (SELECT id FROM agents WHERE uuid = ?1) AND ended IS NULL
         ORDER BY started, id",
        [agent.to_string()],
        |row| {
            Ok(RunRecord {
                id: RunId(wide_id(row, 0)?),
                call: RowRef::new(agent, seq(row, 1)?),
                class: parse_column(row, 2)?,
                started: micros(row, 3)?,
                deadline: micros(row, 4)?,
                ended: None,
            })
        },
    )
}

pub(super) fn draft(connection: &Connection, agent: AgentId) -> Result<Option<DraftRecord>> {
    let parts = all(
        connection,
        "SELECT text, at FROM drafts
         WHERE agent = (SELECT id FROM agents WHERE uuid = ?1)
         ORDER BY part",
        [agent.to_string()],
        |row| Ok((text(row, 0)?.unwrap_or_default(), micros(row, 1)?)),
    )?;
    Ok(parts
        .last()
        .map(|(_, at)| *at)
        .map(|updated_at| DraftRecord {
            text: parts.into_iter().map(|(text, _)| text).collect(),
            updated_at,
        }))
}

pub(super) fn blob(connection: &Connection, hash: BlobHash) -> Result<Option<Vec<u8>>> {
    let parts = all(
        connection,
        "SELECT part, bytes FROM blobs WHERE hash = ?1 ORDER BY part",
        [hash.0],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(join_parts(hash, parts))
}

/// Returns one row of an agent's log, for reading a commit back.
pub(super) fn stored_row(connection: &Connection, at: RowRef) -> Result<Option<Row>> {
    one(
        connection,
        "SELECT seq, kind, created_at, content, data, author FROM messages
         WHERE agent = (SELECT id FROM agents WHERE uuid = ?1) AND seq = ?2",
        params![at.agent.to_string(), to_stored(at.seq.0)],
        |row| log_row(at.agent, row),
    )
}

/// Returns the number of the newest transaction without rows of a process.
pub(super) fn witness(connection: &Connection, process: ProcessId) -> Result<Option<i64>> {
    one(
        connection,
        "SELECT number FROM witnesses WHERE process = ?1",
        [process.to_string()],
        |row| row.get(0),
    )
}

/// Returns the damage that SQLite finds in the file.
pub(super) fn integrity(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("PRAGMA integrity_check(20)")?;
    let found: Vec<String> = statement
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(found.into_iter().filter(|line| line != "ok").collect())
}
