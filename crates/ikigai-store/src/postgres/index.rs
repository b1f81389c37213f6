//! Indexing rows for the search, by one process at a time.

use ikigai_core::find::{SEARCHED_BYTES, searchable_text};

use super::connect::Link;
use super::pipeline::Value;
use super::text_search::{entry, tag_agent, tag_author, tag_kind, tag_session};
use super::values::{Result, get, log_row, parse_column};
use crate::blobs::END_PARTS;
use crate::records::BlobHash;
use crate::search::join_ends;

/// Rows per indexing step; the more, the less each costs.
const STEP_ROWS: i64 = 1024;

/// Text per indexing step, so that other processes wait briefly.
const STEP_BYTES: usize = 4 * SEARCHED_BYTES;

/// Counts the rows that are not indexed.
const BEHIND: &str = "SELECT coalesce(sum(h.seq - coalesce(u.seq, 0)), 0)::bigint
     FROM heads h LEFT JOIN search_upto u ON u.agent = h.agent
     WHERE h.seq > coalesce(u.seq, 0)";

/// Agents with such rows, by key, with their last indexed row and their newest row.
const AGENTS: &str = "SELECT h.agent, coalesce(u.seq, 0), h.seq, a.uuid, a.session
     FROM heads h LEFT JOIN search_upto u ON u.agent = h.agent JOIN agents a ON a.id = h.agent
     WHERE h.seq > coalesce(u.seq, 0) ORDER BY h.agent LIMIT $1";

const ROWS: &str = "SELECT seq, kind, created_at, content, data, author, id FROM messages
     WHERE agent = $1 AND seq > $2 ORDER BY seq LIMIT $3";

const PUT: &str = "INSERT INTO search (message, agent, seq, created_at, words)
     SELECT message, agent, seq, created_at, words::tsvector
     FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])
         AS t (message, agent, seq, created_at, words)
     ON CONFLICT (message) DO NOTHING";

const UPTO: &str =
    "INSERT INTO search_upto (agent, seq) SELECT * FROM unnest($1::bigint[], $2::bigint[])
     ON CONFLICT (agent) DO UPDATE SET seq = excluded.seq";

const BLOB_ENDS: &str = "SELECT part, bytes FROM blobs
     WHERE hash = $1 AND (part < $2 OR part > (SELECT max(part) FROM blobs WHERE hash = $1) - $2)
     ORDER BY part";

/// Returns the number of rows that are not indexed yet.
pub(super) async fn behind(link: &Link) -> Result<u64> {
    let left: i64 = link.only(BEHIND, &[], |row| get(row, 0)).await?;
    Ok(u64::try_from(left).unwrap_or(0))
}

/// Indexes the next rows under an advisory lock; returns how many remain.
///
/// After an error the transaction ends with its connection.
pub(super) async fn step(link: &Link, lock: i64) -> Result<u64> {
    begin(link, lock).await?;
    let agents = link
        .all(AGENTS, &[&STEP_ROWS], |row| {
            Ok((
                get::<i64>(row, 0)?,
                get::<i64>(row, 1)?,
                get::<i64>(row, 2)?,
                parse_column(row, 3)?,
                get::<i64>(row, 4)?,
            ))
        })
        .await?;
    let mut taken = IndexChunk::default();
    let (mut done_agents, mut done_seqs) = (Vec::new(), Vec::new());
    for (key, done, head, agent, session) in agents {
        let room = STEP_ROWS - i64::try_from(taken.messages.len()).unwrap_or(STEP_ROWS);
        if room <= 0 || taken.bytes >= STEP_BYTES {
            break;
        }
        let rows = link
            .all(ROWS, &[&key, &done, &room], |row| {
                Ok((log_row(agent, row, 0)?, get::<i64>(row, 6)?))
            })
            .await?;
        let mut upto = done;
        let mut is_cut = i64::try_from(rows.len()).unwrap_or(room) >= room;
        for (row, id) in rows {
            if taken.bytes >= STEP_BYTES {
                is_cut = true;
                break;
            }
            let mut found = searchable_text(&row);
            if let Some(hash) = &found.blob
                && let Some(text) = blob_text(link, hash).await?
            {
                found.text.push('\n');
                found.text.push_str(&text);
            }
            taken.bytes += found.text.len();
            let kind = row.kind.read_as().map(tag_kind);
            let tags = [tag_agent(key), tag_session(session)];
            let author = row.author.as_ref().map(tag_author);
            let tags = tags.into_iter().chain(kind).chain(author);
            taken.words.push(entry(&found, tags));
            upto = i64::try_from(row.at.seq.0).unwrap_or(i64::MAX);
            taken.messages.push(id);
            taken.agents.push(key);
            taken.seqs.push(upto);
            taken.times.push(row.created_at.0);
        }
        done_agents.push(key);
        // Skip missing rows.
        done_seqs.push(if is_cut { upto } else { upto.max(head) });
    }
    let values: [Value<'_>; 5] = [
        &taken.messages,
        &taken.agents,
        &taken.seqs,
        &taken.times,
        &taken.words,
    ];
    link.all(PUT, &values, |_| Ok(())).await?;
    let done: [Value<'_>; 2] = [&done_agents, &done_seqs];
    link.all(UPTO, &done, |_| Ok(())).await?;
    let left = behind(link).await?;
    link.command("COMMIT").await?;
    Ok(left)
}

/// Rows of one indexing step, as columns.
#[derive(Default)]
struct IndexChunk {
    messages: Vec<i64>,
    agents: Vec<i64>,
    seqs: Vec<i64>,
    times: Vec<i64>,
    words: Vec<String>,
    bytes: usize,
}

/// Empties the index; returns the number of rows to index.
pub(super) async fn forget(link: &Link, lock: i64) -> Result<u64> {
    begin(link, lock).await?;
    link.command("DELETE FROM search; DELETE FROM search_upto")
        .await?;
    let left = behind(link).await?;
    link.command("COMMIT").await?;
    Ok(left)
}

/// Begins a transaction and takes the lock.
async fn begin(link: &Link, lock: i64) -> Result<()> {
    link.command("BEGIN; SET LOCAL lock_timeout = '5s'; SET LOCAL synchronous_commit = off")
        .await?;
    let locked = "SELECT pg_advisory_xact_lock($1)";
    link.all(locked, &[&lock], |_| Ok(())).await?;
    Ok(())
}

/// Returns the searched parts of a blob.
pub(super) async fn blob_text(link: &Link, hash: &str) -> Result<Option<String>> {
    let Ok(hash) = hash.parse::<BlobHash>() else {
        return Ok(None);
    };
    let ends = i64::try_from(END_PARTS).unwrap_or(1);
    let parts = link
        .all(BLOB_ENDS, &[&&hash.0[..], &ends], |row| {
            Ok((get::<i64>(row, 0)?, get::<Vec<u8>>(row, 1)?))
        })
        .await?;
    Ok(join_ends(parts))
}
