//! The search index: indexing rows and answering queries.

use std::time::{Duration, Instant};

use ikigai_core::find::{SEARCHED_BYTES, Words, searchable_text, split_words};
use ikigai_core::{Kind, Row};
use rusqlite::{Connection, ErrorCode, OptionalExtension, ToSql, params};

use super::reader::SqliteReader;
use super::values::{log_row, parse_column};
use crate::blobs::END_PARTS;
use crate::error::StoreError;
use crate::faults::Faults;
use crate::records::BlobHash;
use crate::search::{
    Hit, MOST_AGENTS, MOST_HITS, MOST_RANKED, SearchCursor, SearchPage, SearchQuery, SortOrder,
    join_ends,
};
use crate::sql_common::{author_tag, stored_limit};

/// Rows per indexing step; the more, the less each costs.
const STEP_ROWS: usize = 1024;

/// Text per indexing step; other writers wait meanwhile.
const STEP_BYTES: usize = 4 * SEARCHED_BYTES;

/// Timeout of a search, and of one with prefixes.
const LIMIT: Duration = Duration::from_millis(500);
const PREFIX_LIMIT: Duration = Duration::from_millis(50);

/// Bounds of the index in memory: rows, and time to make it.
const RECENT_ROWS: u64 = 200_000;
const RECENT_LIMIT: Duration = Duration::from_secs(5);

/// Names of the stored index and of the one in memory.
const INDEX: &str = "main.search";
const RECENT_INDEX: &str = "temp.search";

/// Returns the number of rows that are not indexed yet.
pub(super) fn behind(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached(
            "SELECT coalesce((SELECT max(id) FROM messages), 0) - message FROM search_upto",
        )?
        .query_row([], |row| row.get(0))
        .map(|behind: i64| u64::try_from(behind).unwrap_or(0))
}

/// Indexes the next rows. Call it in a write transaction.
pub(super) fn step(connection: &Connection) -> rusqlite::Result<()> {
    let last = index_rows(connection, INDEX, indexed_upto(connection)?)?;
    connection
        .prepare_cached("UPDATE search_upto SET message = ?1")?
        .execute([last])?;
    Ok(())
}

fn indexed_upto(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT message FROM search_upto")?
        .query_row([], |row| row.get(0))
}

/// Indexes one step of rows after `upto`; returns the last one.
fn index_rows(connection: &Connection, index: &str, upto: i64) -> rusqlite::Result<i64> {
    let mut waiting = connection.prepare_cached(
        "SELECT m.seq, m.kind, m.created_at, m.content, m.data, m.author, m.id, m.agent,
                a.session, a.uuid
         FROM messages m JOIN agents a ON a.id = m.agent
         WHERE m.id > ?1 ORDER BY m.id LIMIT ?2",
    )?;
    let mut insert = connection.prepare_cached(&format!(
        "INSERT INTO {index} (rowid, text, tags, model) VALUES (?1, ?2, ?3, ?4)"
    ))?;
    let mut rows = waiting.query(params![upto, stored_limit(STEP_ROWS)])?;
    let mut last = upto;
    let mut bytes = 0;
    while bytes < STEP_BYTES
        && let Some(found) = rows.next()?
    {
        let row = log_row(parse_column(found, 9)?, found)?;
        let id: i64 = found.get(6)?;
        let (agent, session): (i64, i64) = (found.get(7)?, found.get(8)?);
        let mut searched = searchable_text(&row);
        if let Some(hash) = &searched.blob
            && let Some(text) = blob_text(connection, hash)?
        {
            searched.text.push('\n');
            searched.text.push_str(&text);
        }
        bytes += searched.text.len();
        let kind = row.kind.read_as().map(kind_tag).unwrap_or_default();
        let author = row.author.as_ref().map(author_tag).unwrap_or_default();
        let tags = format!("a{agent} s{session} {kind} {author}");
        let text = split_words(&searched.text);
        let model = searched.model.as_deref().map(split_words);
        insert.execute(params![id, text, tags, model])?;
        last = id;
    }
    Ok(last)
}

/// Indexes in memory the rows that the stored index lacks. For a connection that cannot write.
///
/// Only the newest [`RECENT_ROWS`] of them, and no longer than [`RECENT_LIMIT`].
pub(super) fn index_recent(connection: &Connection) -> rusqlite::Result<RecentIndex> {
    let mut recent = RecentIndex::default();
    let behind = behind(connection)?;
    if behind == 0 {
        return Ok(recent);
    }
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(
        "DROP TABLE IF EXISTS temp.search;
         CREATE VIRTUAL TABLE temp.search USING fts5 (
             text, tags, model, content = '', tokenize = 'unicode61'
         );",
    )?;
    recent.is_used = true;
    let deadline = Instant::now() + RECENT_LIMIT;
    let skipped = behind.saturating_sub(RECENT_ROWS);
    recent.is_cut = skipped > 0;
    let mut upto = indexed_upto(connection)?.saturating_add_unsigned(skipped);
    loop {
        let last = index_rows(connection, RECENT_INDEX, upto)?;
        recent.is_cut |= last != upto && Instant::now() >= deadline;
        if last == upto || Instant::now() >= deadline {
            break;
        }
        upto = last;
    }
    transaction.commit()?;
    Ok(recent)
}

/// Index in memory over the rows that the stored one lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecentIndex {
    is_used: bool,
    /// Some rows are in neither index.
    pub(super) is_cut: bool,
}

/// Empties the index. Call it in a write transaction.
pub(super) fn forget(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "INSERT INTO search (search) VALUES ('delete-all');
         UPDATE search_upto SET message = 0;",
    )
}

/// Returns the tag of a kind, without word separators.
fn kind_tag(kind: Kind) -> String {
    format!("k{}", kind.name().replace('_', ""))
}

/// Returns the searched parts of a blob.
fn blob_text(connection: &Connection, hash: &str) -> rusqlite::Result<Option<String>> {
    let Ok(hash) = hash.parse::<BlobHash>() else {
        return Ok(None);
    };
    let mut statement = connection.prepare_cached(
        "SELECT part, bytes FROM blobs WHERE hash = ?1 AND
             (part < ?2 OR part > (SELECT max(part) FROM blobs WHERE hash = ?1) - ?2)
         ORDER BY part",
    )?;
    let parts = statement.query_map(params![hash.0, stored_limit(END_PARTS)], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    Ok(join_ends(parts.collect::<rusqlite::Result<Vec<_>>>()?))
}

/// Result of a search within its timeout.
enum SearchOutcome {
    /// The search ended.
    Whole(SearchPage),
    /// The search timed out with these hits.
    Cut(SearchPage),
}

/// Searches within the timeout; prefixes that time out are searched as whole words.
pub(super) fn search_within_timeout(
    reader: &mut SqliteReader,
    query: SearchQuery,
    faults: &Faults,
    recent: RecentIndex,
) -> Result<SearchPage, StoreError> {
    let mut query = query;
    let mut whole_words = false;
    if query.words.has_prefix() {
        let limit = if faults.is_search_slow() {
            Duration::ZERO
        } else {
            PREFIX_LIMIT
        };
        match reader.read_until(Instant::now() + limit, |it| search(it, &query, recent))? {
            SearchOutcome::Whole(page) => return Ok(page),
            SearchOutcome::Cut(_) => query.words = query.words.whole(),
        }
        whole_words = true;
    }
    let came = reader.read_until(Instant::now() + LIMIT, |it| search(it, &query, recent))?;
    let (page, cut) = match came {
        SearchOutcome::Whole(page) => (page, false),
        SearchOutcome::Cut(page) => (page, true),
    };
    Ok(SearchPage {
        whole_words,
        cut,
        ..page
    })
}

/// Searches the index. The connection interrupts it at the deadline.
fn search(
    connection: &Connection,
    query: &SearchQuery,
    recent: RecentIndex,
) -> rusqlite::Result<SearchOutcome> {
    let Some(narrowed) = SqliteSearch::new(connection, query)? else {
        return Ok(SearchOutcome::Whole(SearchPage::default()));
    };
    let limit = query.limit.clamp(1, MOST_HITS);
    if recent.is_used && narrowed.expression.is_some() {
        return narrowed.both_pages(connection, query, limit);
    }
    match narrowed.order(connection, query) {
        Ok(order) => narrowed.page(connection, INDEX, query, order, limit),
        Err(error) if is_cut(&error) => Ok(SearchOutcome::Cut(SearchPage::default())),
        Err(error) => Err(error),
    }
}

fn is_cut(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
}

/// A search translated for SQLite.
struct SqliteSearch {
    /// Match expression; `None` if only times are restricted.
    expression: Option<String>,
    before: i64,
    after: i64,
}

impl SqliteSearch {
    /// Translates a search; `None` if it cannot match anything.
    fn new(connection: &Connection, query: &SearchQuery) -> rusqlite::Result<Option<Self>> {
        let mut parts = Vec::new();
        parts.extend(in_column("text", &query.words));
        parts.extend(
            query
                .model
                .as_ref()
                .and_then(|model| in_column("model", model)),
        );
        if let Some(agents) = &query.agents {
            let mut keys = connection.prepare_cached("SELECT id FROM agents WHERE uuid = ?1")?;
            let mut tags = Vec::new();
            for agent in agents.iter().take(MOST_AGENTS) {
                let key = keys.query_row([agent.to_string()], |row| row.get(0));
                tags.extend(key.optional()?.map(|key: i64| format!("a{key}")));
            }
            let Some(part) = one_of(&tags) else {
                return Ok(None);
            };
            parts.push(part);
        }
        if let Some(directory) = &query.directory {
            let mut sessions = connection.prepare_cached(
                "SELECT id FROM sessions
                 WHERE directory = ?1 OR substr(directory, 1, length(?1) + 1) = ?1 || '/'
                 ORDER BY id DESC LIMIT ?2",
            )?;
            let limit = stored_limit(MOST_AGENTS);
            let directory = directory.trim_end_matches('/');
            let tags = sessions.query_map(params![directory, limit], |row| row.get(0))?;
            let tags = tags
                .map(|key| key.map(|key: i64| format!("s{key}")))
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let Some(part) = one_of(&tags) else {
                return Ok(None);
            };
            parts.push(part);
        }
        let kinds: Vec<_> = query.kinds.iter().map(|kind| kind_tag(*kind)).collect();
        parts.extend(one_of(&kinds));
        let author = query.author.as_ref().map(author_tag);
        parts.extend(author.and_then(|tag| one_of(&[tag])));
        Ok(Some(Self {
            expression: (!parts.is_empty()).then(|| parts.join(" AND ")),
            before: query.before.map_or(i64::MAX, |before| before.0),
            after: query.after.map_or(i64::MIN, |after| after.0),
        }))
    }

    /// Returns the order of hits: by relevance only if requested and there are few.
    fn order(&self, connection: &Connection, query: &SearchQuery) -> rusqlite::Result<SortOrder> {
        let Some(expression) = self.expression.as_ref().filter(|_| !query.words.is_empty()) else {
            return Ok(SortOrder::Newest);
        };
        if query.order == SortOrder::Newest {
            return Ok(SortOrder::Newest);
        }
        let hits: i64 = connection
            .prepare_cached(
                "SELECT count(*) FROM (SELECT 1 FROM main.search WHERE search MATCH ?1 LIMIT ?2)",
            )?
            .query_row(params![expression, stored_limit(MOST_RANKED + 1)], |row| {
                row.get(0)
            })?;
        Ok(if hits > stored_limit(MOST_RANKED) {
            SortOrder::Newest
        } else {
            SortOrder::Relevance
        })
    }

    /// Asks the index in memory, then the stored one, whose rows are all older.
    ///
    /// Ranks of two indexes cannot be compared, so the order is always the newest first.
    fn both_pages(
        &self,
        connection: &Connection,
        query: &SearchQuery,
        limit: usize,
    ) -> rusqlite::Result<SearchOutcome> {
        let newest = SortOrder::Newest;
        let mut page = match self.page(connection, RECENT_INDEX, query, newest, limit)? {
            SearchOutcome::Whole(page) if page.next.is_none() => page,
            came => return Ok(came),
        };
        let room = limit - page.hits.len();
        let older = self.page(connection, INDEX, query, newest, room.max(1))?;
        let (mut older, is_whole) = match older {
            SearchOutcome::Whole(older) => (older, true),
            SearchOutcome::Cut(older) => (older, false),
        };
        if room > 0 {
            page.hits.append(&mut older.hits);
            page.next = older.next;
        } else if !older.hits.is_empty() {
            // All older rows are at or before the stored index's last one.
            page.next = Some(SearchCursor(indexed_upto(connection)?.saturating_add(1)));
        }
        Ok(if is_whole {
            SearchOutcome::Whole(page)
        } else {
            SearchOutcome::Cut(page)
        })
    }

    fn page(
        &self,
        connection: &Connection,
        index: &str,
        query: &SearchQuery,
        order: SortOrder,
        limit: usize,
    ) -> rusqlite::Result<SearchOutcome> {
        // One more row shows whether there is a next page.
        let wanted = stored_limit(limit + 1);
        let skipped = query.cursor.map_or(0, |cursor| cursor.0.max(0));
        let newest = query.cursor.map_or(i64::MAX, |cursor| cursor.0);
        let expression: &dyn ToSql = &self.expression;
        let (sql, place): (_, &dyn ToSql) = match (order, &self.expression) {
            (SortOrder::Relevance, _) => (BEST, &skipped),
            (SortOrder::Newest, Some(_)) => (NEWEST, &newest),
            (SortOrder::Newest, None) => (ANY, &newest),
        };
        let mut statement = connection.prepare_cached(&sql.replace("{index}", index))?;
        let values: &[&dyn ToSql] = &[expression, place, &self.after, &self.before, &wanted];
        let mut rows = statement.query(values)?;
        let mut page = SearchPage {
            order,
            ..SearchPage::default()
        };
        let mut last = 0;
        loop {
            let row = match rows.next() {
                Ok(Some(row)) if page.hits.len() < limit => row,
                Ok(Some(_)) => {
                    page.next = Some(match order {
                        SortOrder::Newest => SearchCursor(last),
                        SortOrder::Relevance => {
                            SearchCursor(skipped.saturating_add(stored_limit(limit)))
                        }
                    });
                    return Ok(SearchOutcome::Whole(page));
                }
                Ok(None) => return Ok(SearchOutcome::Whole(page)),
                Err(error) if is_cut(&error) => return Ok(SearchOutcome::Cut(page)),
                Err(error) => return Err(error),
            };
            last = row.get(6)?;
            let found: Row = log_row(parse_column(row, 7)?, row)?;
            let hit = Hit::of(&found, query, |hash| blob_text(connection, hash));
            match hit {
                Ok(hit) => page.hits.push(hit),
                Err(error) if is_cut(&error) => return Ok(SearchOutcome::Cut(page)),
                Err(error) => return Err(error),
            }
        }
    }
}

/// The index drives the query, so that nothing is sorted.
const NEWEST: &str = "SELECT m.seq, m.kind, m.created_at, m.content, m.data, m.author, m.id,
            a.uuid
     FROM {index} CROSS JOIN messages m ON m.id = search.rowid JOIN agents a ON a.id = m.agent
     WHERE search MATCH ?1 AND search.rowid < ?2 AND m.created_at >= ?3 AND m.created_at < ?4
     ORDER BY search.rowid DESC LIMIT ?5";

const BEST: &str = "SELECT m.seq, m.kind, m.created_at, m.content, m.data, m.author, m.id,
            a.uuid
     FROM {index} CROSS JOIN messages m ON m.id = search.rowid JOIN agents a ON a.id = m.agent
     WHERE search MATCH ?1 AND m.created_at >= ?3 AND m.created_at < ?4
     ORDER BY bm25(search, 1.0, 0.0, 0.0), search.rowid DESC LIMIT ?5 OFFSET ?2";

const ANY: &str = "SELECT m.seq, m.kind, m.created_at, m.content, m.data, m.author, m.id,
            a.uuid
     FROM messages m JOIN agents a ON a.id = m.agent
     WHERE ?1 IS NULL AND m.id < ?2 AND m.created_at >= ?3 AND m.created_at < ?4
     ORDER BY m.id DESC LIMIT ?5";

/// Returns a query for all terms in one column.
///
/// Every typed word is quoted, so none is interpreted as syntax of the index.
fn in_column(column: &str, words: &Words) -> Option<String> {
    let terms: Vec<String> = words
        .terms()
        .iter()
        .map(|term| {
            let star = if term.is_prefix { " *" } else { "" };
            format!("\"{}\"{star}", split_words(&term.text).replace('"', "\"\""))
        })
        .collect();
    (!terms.is_empty()).then(|| format!("{column} : ({})", terms.join(" AND ")))
}

fn one_of(tags: &[String]) -> Option<String> {
    (!tags.is_empty()).then(|| format!("tags : ({})", tags.join(" OR ")))
}
