//! Queries; each function is one statement, so that it sees one moment of the log.

use ikigai_core::{
    AgentId, ControlQuery, Direction, Epoch, Micros, PageQuery, Row, RowRef, Seq, SessionId, Span,
};
use tokio_postgres::Row as SqlRow;

use super::connect::Link;
use super::values::{
    Result, get, log_row, micros, number, optional_number, optional_parsed, optional_person,
    optional_process, optional_row_ref, parse_column, seq, wide_id,
};
use crate::blobs::join_parts;
use crate::log::MOST_NAMESAKES;
use crate::records::{
    AgentRecord, BlobHash, DraftRecord, Head, MailId, MailRecord, PageCollector, ProcessRecord,
    RestorePoint, RunId, RunRecord, SessionRecord, Snapshot,
};
use crate::sql_common::agents_sql;
use crate::sql_common::{stored_limit, to_stored};

pub(super) async fn head(link: &Link, agent: AgentId) -> Result<Option<Head>> {
    let sql = "SELECT h.seq, h.epoch, p.uuid, p.pid, p.started, p.host, p.machine, p.person
         FROM agents a JOIN heads h ON h.agent = a.id LEFT JOIN processes p ON p.id = h.owner
         WHERE a.uuid = $1";
    let read = |row: &SqlRow| {
        Ok(Head {
            seq: seq(row, 0)?,
            epoch: Epoch(number(row, 1)?),
            owner: optional_process(row, 2)?,
        })
    };
    link.one(sql, &[&agent.to_string()], read).await
}

/// The newest rows of a span that fulfil a condition, newest first.
macro_rules! newest_sql {
    ($condition:literal) => {
        concat!(
            "SELECT seq, kind, created_at, content, data, author FROM messages
             WHERE agent = (SELECT id FROM agents WHERE uuid = $1)
               AND seq BETWEEN $2 AND $3 ",
            $condition,
            " ORDER BY seq DESC LIMIT $4"
        )
    };
}

pub(super) async fn control(link: &Link, query: ControlQuery) -> Result<Vec<Row>> {
    rows(link, newest_sql!("AND control"), query.span, query.limit).await
}

pub(super) async fn usage(link: &Link, span: Span, limit: usize) -> Result<Vec<Row>> {
    rows(link, newest_sql!("AND kind = 'usage'"), span, limit).await
}

pub(super) async fn page(link: &Link, query: PageQuery) -> Result<Vec<Row>> {
    let sql = match query.direction {
        Direction::Forwards => {
            "SELECT seq, kind, created_at, content, data, author FROM messages
             WHERE agent = (SELECT id FROM agents WHERE uuid = $1) AND seq BETWEEN $2 AND $3
             ORDER BY seq LIMIT $4"
        }
        Direction::Backwards => newest_sql!(""),
    };
    rows(link, sql, query.span, query.limit).await
}

async fn rows(link: &Link, sql: &'static str, span: Span, limit: usize) -> Result<Vec<Row>> {
    let (from, to) = (to_stored(span.from.0), to_stored(span.to.0));
    let agent = span.agent.to_string();
    let values: &[super::pipeline::Value<'_>] = &[&agent, &from, &to, &stored_limit(limit)];
    link.all(sql, values, |row| log_row(span.agent, row, 0))
        .await
}

/// Returns the newest `usage` row of each agent; up to a thousand in one round trip.
pub(super) async fn newest_usage(link: &Link, agents: &[AgentId]) -> Result<Vec<Row>> {
    let sql = "SELECT u.uuid, m.seq, m.kind, m.created_at, m.content, m.data, m.author
         FROM unnest($1::text[]) WITH ORDINALITY AS u (uuid, place)
         JOIN agents a ON a.uuid = u.uuid
         CROSS JOIN LATERAL (SELECT * FROM messages
             WHERE agent = a.id AND kind = 'usage' ORDER BY seq DESC LIMIT 1) m
         ORDER BY u.place";
    let agents: Vec<String> = agents.iter().map(ToString::to_string).collect();
    link.all(sql, &[&agents], |row| {
        log_row(parse_column(row, 0)?, row, 1)
    })
    .await
}

/// Spans as three columns.
struct Columns {
    agents: Vec<String>,
    from: Vec<i64>,
    to: Vec<i64>,
}

impl Columns {
    fn of(spans: &[Span]) -> Self {
        Self {
            agents: spans.iter().map(|span| span.agent.to_string()).collect(),
            from: spans.iter().map(|span| to_stored(span.from.0)).collect(),
            to: spans.iter().map(|span| to_stored(span.to.0)).collect(),
        }
    }
}

/// Counts messages of spans; reads only the index.
pub(super) async fn count_messages(link: &Link, spans: &[Span]) -> Result<u64> {
    let sql = "SELECT count(*) FROM unnest($1::text[], $2::bigint[], $3::bigint[])
             AS s (uuid, low, high)
         JOIN agents a ON a.uuid = s.uuid
         JOIN messages m ON m.agent = a.id AND m.kind = 'user' AND m.seq BETWEEN s.low AND s.high";
    let spans = Columns::of(spans);
    link.only(sql, &[&spans.agents, &spans.from, &spans.to], |row| {
        number(row, 0)
    })
    .await
}

/// Returns the newest `limit` `user` rows of spans, newest first, in one round trip.
pub(super) async fn user_rows(link: &Link, spans: &[Span], limit: usize) -> Result<Vec<Row>> {
    let sql = "SELECT s.uuid, m.seq, m.kind, m.created_at, m.content, m.data, m.author
         FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY
             AS s (uuid, low, high, place)
         JOIN agents a ON a.uuid = s.uuid
         JOIN messages m ON m.agent = a.id AND m.kind = 'user' AND m.seq BETWEEN s.low AND s.high
         ORDER BY s.place, m.seq DESC LIMIT $4";
    let Columns { agents, from, to } = Columns::of(spans);
    let limit = stored_limit(limit);
    link.all(sql, &[&agents, &from, &to, &limit], |row| {
        log_row(parse_column(row, 0)?, row, 1)
    })
    .await
}

pub(super) async fn snapshot(link: &Link, upto: RowRef) -> Result<Option<Snapshot>> {
    let sql = "SELECT upto, folded FROM paths
         WHERE agent = (SELECT id FROM agents WHERE uuid = $1) AND upto <= $2
         ORDER BY upto DESC LIMIT 1";
    let read = |row: &SqlRow| {
        Ok(Snapshot {
            upto: RowRef::new(upto.agent, seq(row, 0)?),
            folded: get(row, 1)?,
        })
    };
    link.one(
        sql,
        &[&upto.agent.to_string(), &to_stored(upto.seq.0)],
        read,
    )
    .await
}

/// Rows of several spans in one round trip; see [`crate::ReadLog::pages`].
pub(super) async fn pages(link: &Link, spans: &[Span], limit: usize) -> Result<Vec<Row>> {
    let sql = "SELECT s.place, m.seq, m.kind, m.created_at, m.content, m.data, m.author
         FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY
             AS s (uuid, low, high, wanted, place)
         JOIN agents a ON a.uuid = s.uuid
         CROSS JOIN LATERAL (SELECT * FROM messages
             WHERE agent = a.id AND seq BETWEEN s.low AND s.high
             ORDER BY seq DESC LIMIT s.wanted) m
         ORDER BY s.place, m.seq DESC";
    // The length of each span is known, so no more is read than needed.
    let mut left = stored_limit(limit);
    let mut wanted = Vec::new();
    for span in spans {
        if left == 0 {
            break;
        }
        let here = to_stored(span.len()).min(left);
        wanted.push(here);
        left -= here;
    }
    let spans = spans.get(..wanted.len()).unwrap_or(spans);
    let columns = Columns::of(spans);
    let values: &[super::pipeline::Value<'_>] =
        &[&columns.agents, &columns.from, &columns.to, &wanted];
    let mut found: Vec<Vec<Row>> = spans.iter().map(|_| Vec::new()).collect();
    let read = |row: &SqlRow| {
        let place = usize::try_from(number(row, 0)?.saturating_sub(1)).unwrap_or(usize::MAX);
        if let (Some(span), Some(rows)) = (spans.get(place), found.get_mut(place)) {
            rows.push(log_row(span.agent, row, 1)?);
        }
        Ok(())
    };
    link.all(sql, values, read).await?;
    let mut pages = PageCollector::new(limit);
    for (span, rows) in spans.iter().zip(found) {
        let query = pages.query(*span);
        if !pages.add(query, rows) {
            break;
        }
    }
    Ok(pages.finish())
}

/// Reads head, snapshot and control rows in one round trip. The first row is the head with the
/// snapshot.
pub(super) async fn restore_point(
    link: &Link,
    agent: AgentId,
    limit: usize,
) -> Result<Option<RestorePoint>> {
    let sql = "WITH a AS (SELECT id FROM agents WHERE uuid = $1),
              h AS (SELECT seq FROM heads WHERE agent = (SELECT id FROM a)),
              s AS (SELECT upto, folded FROM paths
                    WHERE agent = (SELECT id FROM a) AND upto <= (SELECT seq FROM h)
                    ORDER BY upto DESC LIMIT 1)
         SELECT true, h.seq, NULL, s.upto, s.folded, NULL, NULL FROM h LEFT JOIN s ON true
         UNION ALL
         (SELECT false, seq, kind, created_at, content, data, author FROM messages
          WHERE agent = (SELECT id FROM a) AND control
            AND seq > coalesce((SELECT upto FROM s), 0) AND seq <= (SELECT seq FROM h)
          ORDER BY seq DESC LIMIT $2)";
    let mut opening: Option<RestorePoint> = None;
    let mut control = Vec::new();
    let read = |row: &SqlRow| {
        if !get::<bool>(row, 0)? {
            control.push(log_row(agent, row, 1)?);
            return Ok(());
        }
        let upto: Option<Micros> = get::<Option<i64>>(row, 3)?.map(Micros);
        let folded: Option<String> = get(row, 4)?;
        let snapshot = upto.zip(folded).map(|(upto, folded)| Snapshot {
            upto: RowRef::new(agent, Seq(upto.0.unsigned_abs())),
            folded,
        });
        opening = Some(RestorePoint {
            head: seq(row, 1)?,
            snapshot,
            control: Vec::new(),
        });
        Ok(())
    };
    let values: &[super::pipeline::Value<'_>] = &[&agent.to_string(), &stored_limit(limit)];
    link.all(sql, values, read).await?;
    control.sort_unstable_by_key(|row| std::cmp::Reverse(row.at.seq));
    Ok(opening.map(|opening| RestorePoint { control, ..opening }))
}

pub(super) fn agent_record(row: &SqlRow) -> Result<AgentRecord> {
    Ok(AgentRecord {
        id: parse_column(row, 0)?,
        name: get(row, 1)?,
        session: parse_column(row, 2)?,
        parent: optional_parsed(row, 3)?,
        fork_point: optional_row_ref(row, 4, 5)?,
        status: parse_column(row, 6)?,
        created_at: micros(row, 7)?,
        head: seq(row, 8)?,
        touched_at: get::<Option<i64>>(row, 9)?.map(Micros),
        owner: optional_process(row, 10)?,
    })
}

pub(super) async fn agents(link: &Link, of: Option<SessionId>) -> Result<Vec<AgentRecord>> {
    match of {
        None => {
            let sql = agents_sql!("ORDER BY a.id");
            link.all(sql, &[], agent_record).await
        }
        Some(of) => {
            let sql = agents_sql!("WHERE s.uuid = $1 ORDER BY a.id");
            link.all(sql, &[&of.to_string()], agent_record).await
        }
    }
}

pub(super) async fn living_roots(link: &Link, of: SessionId) -> Result<Vec<AgentRecord>> {
    let sql = agents_sql!(
        "WHERE s.uuid = $1 AND a.parent IS NULL AND a.status = 'running' ORDER BY a.id"
    );
    link.all(sql, &[&of.to_string()], agent_record).await
}

pub(super) async fn owners(link: &Link) -> Result<Vec<ProcessRecord>> {
    let sql = "SELECT uuid, pid, started, host, machine, person FROM processes
         WHERE id IN (SELECT owner FROM heads) ORDER BY id";
    let owners = link.all(sql, &[], |row| optional_process(row, 0)).await?;
    Ok(owners.into_iter().flatten().collect())
}

pub(super) async fn agent(link: &Link, agent: AgentId) -> Result<Option<AgentRecord>> {
    let sql = agents_sql!("WHERE a.uuid = $1");
    link.one(sql, &[&agent.to_string()], agent_record).await
}

pub(super) async fn find_by_name(
    link: &Link,
    session: Option<SessionId>,
    name: &str,
) -> Result<Vec<AgentRecord>> {
    let most = stored_limit(MOST_NAMESAKES);
    match session {
        None => {
            let sql =
                agents_sql!("WHERE a.name = $1 AND a.status = 'running' ORDER BY a.id LIMIT $2");
            link.all(sql, &[&name, &most], agent_record).await
        }
        Some(session) => {
            let sql = agents_sql!("WHERE s.uuid = $1 AND a.name = $2 AND a.status = 'running'");
            link.all(sql, &[&session.to_string(), &name], agent_record)
                .await
        }
    }
}

fn session_record(row: &SqlRow) -> Result<SessionRecord> {
    Ok(SessionRecord {
        id: parse_column(row, 0)?,
        name: get(row, 1)?,
        directory: get(row, 2)?,
        created_at: micros(row, 3)?,
        machine: optional_parsed(row, 4)?,
        host: get(row, 5)?,
    })
}

pub(super) async fn sessions(link: &Link) -> Result<Vec<SessionRecord>> {
    let sql = "SELECT uuid, name, directory, created_at, machine, host FROM sessions ORDER BY id";
    link.all(sql, &[], session_record).await
}

pub(super) async fn sessions_in(link: &Link, directory: &str) -> Result<Vec<SessionRecord>> {
    let sql = "SELECT uuid, name, directory, created_at, machine, host FROM sessions
         WHERE directory = $1 ORDER BY id";
    link.all(sql, &[&directory], session_record).await
}

/// Builds the query for mail records from its condition.
macro_rules! mail_sql {
    ($condition:literal) => {
        concat!(
            "SELECT m.uuid, sender.uuid, m.text, m.state, shown.uuid, m.shown_seq, m.sent_at,
                    m.origin, m.about, m.process, m.author
             FROM mail m
             LEFT JOIN agents sender ON sender.id = m.sender
             LEFT JOIN agents shown ON shown.id = m.shown_agent
             WHERE m.receiver = (SELECT id FROM agents WHERE uuid = $1) ",
            $condition,
            " ORDER BY m.id"
        )
    };
}

pub(super) async fn mail(link: &Link, to: AgentId) -> Result<Vec<MailRecord>> {
    mail_where(link, mail_sql!(""), to).await
}

pub(super) async fn queued_mail(link: &Link, to: AgentId) -> Result<Vec<MailRecord>> {
    mail_where(link, mail_sql!("AND m.state = 'queued'"), to).await
}

async fn mail_where(link: &Link, sql: &'static str, to: AgentId) -> Result<Vec<MailRecord>> {
    let read = |row: &SqlRow| {
        Ok(MailRecord {
            id: MailId(wide_id(row, 0)?),
            to,
            from: optional_parsed(row, 1)?,
            text: get(row, 2)?,
            state: parse_column(row, 3)?,
            shown_by: optional_row_ref(row, 4, 5)?,
            sent_at: micros(row, 6)?,
            origin: parse_column(row, 7)?,
            about: parse_column(row, 8)?,
            process: optional_number(row, 9)?,
            author: optional_person(row, 10)?,
        })
    };
    link.all(sql, &[&to.to_string()], read).await
}

pub(super) async fn open_runs(link: &Link, agent: AgentId) -> Result<Vec<RunRecord>> {
    let sql = "SELECT uuid, seq, class, started, deadline FROM tool_runs
         WHERE agent = (SELECT id FROM agents WHERE uuid = $1) AND ended IS NULL
         ORDER BY started, id";
    let read = |row: &SqlRow| {
        Ok(RunRecord {
            id: RunId(wide_id(row, 0)?),
            call: RowRef::new(agent, seq(row, 1)?),
            class: parse_column(row, 2)?,
            started: micros(row, 3)?,
            deadline: micros(row, 4)?,
            ended: None,
        })
    };
    link.all(sql, &[&agent.to_string()], read).await
}

pub(super) async fn draft(link: &Link, agent: AgentId) -> Result<Option<DraftRecord>> {
    let sql = "SELECT text, at FROM drafts
         WHERE agent = (SELECT id FROM agents WHERE uuid = $1)
         ORDER BY part";
    let read = |row: &SqlRow| Ok((get::<String>(row, 0)?, micros(row, 1)?));
    let parts = link.all(sql, &[&agent.to_string()], read).await?;
    Ok(parts
        .last()
        .map(|(_, at)| *at)
        .map(|updated_at| DraftRecord {
            text: parts.into_iter().map(|(text, _)| text).collect(),
            updated_at,
        }))
}

pub(super) async fn blob(link: &Link, hash: BlobHash) -> Result<Option<Vec<u8>>> {
    let sql = "SELECT part, bytes FROM blobs WHERE hash = $1 ORDER BY part";
    let read = |row: &SqlRow| {
        let part = u32::try_from(number(row, 0)?).unwrap_or(u32::MAX);
        Ok((part, get::<Vec<u8>>(row, 1)?))
    };
    let parts = link.all(sql, &[&hash.0.as_slice()], read).await?;
    Ok(join_parts(hash, parts))
}

/// Contradictions between the tables.
pub(super) async fn integrity(link: &Link) -> Result<Vec<String>> {
    let sql = "SELECT 'agent ' || a.uuid || ' has ' || coalesce(m.rows, 0) || ' rows up to ' ||
                coalesce(m.newest, 0) || ', and its head is at ' || h.seq
         FROM heads h JOIN agents a ON a.id = h.agent
         LEFT JOIN (SELECT agent, count(*) AS rows, max(seq) AS newest FROM messages
                    GROUP BY agent) m ON m.agent = h.agent
         WHERE h.seq <> coalesce(m.rows, 0) OR h.seq <> coalesce(m.newest, 0)
         UNION ALL
         SELECT 'agent ' || a.uuid || ' has no head' FROM agents a
         WHERE NOT EXISTS (SELECT 1 FROM heads WHERE agent = a.id)
         UNION ALL
         SELECT 'rows belong to no agent: key ' || m.agent FROM messages m
         WHERE m.seq = 1 AND NOT EXISTS (SELECT 1 FROM agents WHERE id = m.agent)
         LIMIT 20";
    link.all(sql, &[], |row| get(row, 0)).await
}
