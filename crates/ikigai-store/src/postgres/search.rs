//! Search in two steps: a scan of the newest rows, then the index.
//!
//! The scan finds common words and the index rare ones; either alone takes too long for the other's
//! words.

use std::sync::Arc;
use std::time::Duration;

use ikigai_core::Row;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;

use super::connect::{ConnectionRole, Link, PostgresTarget};
use super::errors::{ServerError, sql_error};
use super::index;
use super::listener::ListenerHandle;
use super::migrations::lock_number;
use super::pipeline::Value;
use super::text_search::{
    LONG, LongTexts, in_model, in_text, one_of, tag_agent, tag_author, tag_kind, tag_session,
};
use super::values::{QueryFailure, Result, get, log_row, parse_column};
use crate::error::StoreError;
use crate::faults::Faults;
use crate::search::{
    Hit, MOST_AGENTS, MOST_HITS, MOST_RANKED, SearchCursor, SearchPage, SearchQuery, SortOrder,
};

/// Number of newest rows that are scanned.
const WALK: i64 = 100_000;

/// Timeout of a search, and of one with prefixes, in milliseconds.
const LIMIT: u32 = 1000;
const PREFIX_LIMIT: u32 = 200;

/// Timeout of a reply: longer than the server's own.
const PATIENCE: Duration = Duration::from_secs(20);

/// Idle time before rows are indexed in the background.
const IDLE: Duration = Duration::from_secs(1);

/// The connection for searches, one at a time.
pub(super) struct Searcher {
    target: Arc<PostgresTarget>,
    link: Mutex<Option<Link>>,
    lock: i64,
}

impl Searcher {
    pub(super) fn new(target: Arc<PostgresTarget>) -> Self {
        Self {
            lock: lock_number("search index of", target.url().schema()),
            target,
            link: Mutex::new(None),
        }
    }

    /// Indexes the next chunk of rows; returns how many remain.
    pub(super) async fn index_chunk(&self) -> Result<u64, StoreError> {
        self.with(async |link| match index::behind(link).await? {
            // A search alone takes no lock.
            0 => Ok(0),
            _ => index::step(link, self.lock).await,
        })
        .await
    }

    /// Empties the index; returns the number of rows to index.
    pub(super) async fn forget(&self) -> Result<u64, StoreError> {
        self.with(async |link| index::forget(link, self.lock).await)
            .await
    }

    /// Finds rows, after indexing the newest ones.
    pub(super) async fn search(
        &self,
        query: SearchQuery,
        faults: &Faults,
    ) -> Result<SearchPage, StoreError> {
        // An index that cannot be written is searched as far as it goes.
        let mut is_behind = false;
        loop {
            match self.index_chunk().await {
                Ok(0) => break,
                Ok(_) => {}
                Err(_) => {
                    is_behind = true;
                    break;
                }
            }
        }
        let found = self.with(async |link| search_within_timeout(link, query, faults).await);
        let mut page = found.await?;
        page.cut |= is_behind;
        Ok(page)
    }

    /// Indexes rows while idle, as long as the store is open. Searches report errors.
    pub(super) async fn follow(self: Arc<Self>, notifier: ListenerHandle) {
        loop {
            notifier.grown().await;
            while timeout(IDLE, notifier.grown()).await.is_ok() {}
            while self.index_chunk().await.unwrap_or(0) > 0 {}
        }
    }

    async fn with<T>(&self, ask: impl AsyncFnOnce(&Link) -> Result<T>) -> Result<T, StoreError> {
        let fail = |cause: ServerError| cause.store_error(self.target.url());
        let mut slot = self.link.lock().await;
        let link = match slot.take().filter(|link| !link.client.is_closed()) {
            Some(link) => link,
            None => self
                .target
                .connect(ConnectionRole::Slow)
                .await
                .map_err(fail)?,
        };
        // After a failure a transaction may be open, so drop the connection.
        let answer = timeout(PATIENCE, ask(&link)).await;
        match answer.map_err(|_| fail(ServerError::Silence))? {
            Ok(answer) => {
                *slot = Some(link);
                Ok(answer)
            }
            Err(QueryFailure::Sql(error)) => Err(sql_error(self.target.url(), error)),
            Err(QueryFailure::Value(what)) => Err(StoreError::Value(what)),
        }
    }
}

/// Result of a search within its timeout.
#[derive(Default)]
struct FoundRows {
    page: SearchPage,
    /// Rows of the hits, each with its message id.
    rows: Vec<(Row, i64)>,
    is_cut: bool,
}

/// Searches within the timeout; prefixes that time out are searched as whole words.
async fn search_within_timeout(
    link: &Link,
    query: SearchQuery,
    faults: &Faults,
) -> Result<SearchPage> {
    let mut query = query;
    let mut whole_words = false;
    if query.words.has_prefix() {
        if !faults.is_search_slow() {
            let came = search(link, &query, PREFIX_LIMIT).await?;
            if !came.is_cut {
                return Ok(came.page);
            }
        }
        query.words = query.words.whole();
        whole_words = true;
    }
    let FoundRows { page, is_cut, .. } = search(link, &query, LIMIT).await?;
    Ok(SearchPage {
        whole_words,
        cut: is_cut,
        ..page
    })
}

/// Searches in a transaction with a statement timeout in milliseconds.
async fn search(link: &Link, query: &SearchQuery, limit: u32) -> Result<FoundRows> {
    // Other plans would read the whole table. With less memory the server forgets which rows of a
    // page matched, and rechecks all of them.
    link.command(&format!(
        "BEGIN READ ONLY; SET LOCAL statement_timeout = {limit}; SET LOCAL enable_seqscan = off;
         SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL work_mem = '64MB'"
    ))
    .await?;
    let mut came = match unless_cut(PostgresSearch::new(link, query).await)? {
        Some(Some(narrowed)) => narrowed.find(link, query).await?,
        Some(None) => FoundRows::default(),
        None => FoundRows {
            is_cut: true,
            ..FoundRows::default()
        },
    };
    link.command("ROLLBACK").await?;
    for (row, _) in std::mem::take(&mut came.rows) {
        came.page.hits.push(hit(link, query, &row).await?);
    }
    Ok(came)
}

/// Converts a row into a hit; reads its blob if the row lacks the words.
async fn hit(link: &Link, query: &SearchQuery, row: &Row) -> Result<Hit> {
    let mut wanted = None;
    let hit = Hit::of(row, query, |hash| {
        wanted = Some(hash.to_owned());
        Ok::<_, QueryFailure>(None)
    })?;
    let Some(hash) = wanted else {
        return Ok(hit);
    };
    let text = index::blob_text(link, &hash).await?;
    Hit::of(row, query, |_| Ok(text))
}

/// Builds the match for texts.
///
/// Including long texts doubles the phrase, so check first whether there are any.
async fn match_words(link: &Link, query: &SearchQuery) -> Result<Option<String>> {
    let of_all = in_text(&query.words, LongTexts::Somewhere);
    let of_short = in_text(&query.words, LongTexts::Nowhere);
    let is_told_apart = of_all != of_short;
    Ok(
        if is_told_apart && link.only(HAS_LONG, &[&LONG], |row| get(row, 0)).await? {
            of_all
        } else {
            of_short
        },
    )
}

/// A search translated for PostgreSQL.
struct PostgresSearch {
    /// Match expression; `None` if only times are restricted.
    expression: Option<String>,
    /// Expression that ranks the hits.
    ranking: Option<String>,
    before: i64,
    after: i64,
}

impl PostgresSearch {
    /// Translates a search; `None` if it cannot match anything.
    async fn new(link: &Link, query: &SearchQuery) -> Result<Option<Self>> {
        let most = i64::try_from(MOST_AGENTS).unwrap_or(i64::MAX);
        let ranking = match_words(link, query).await?;
        let mut parts: Vec<String> = ranking.iter().cloned().collect();
        parts.extend(query.model.as_ref().and_then(in_model));
        if let Some(agents) = &query.agents {
            let ids: Vec<String> = agents.iter().map(ToString::to_string).collect();
            let tags = link
                .all(KEYS, &[&ids, &most], |row| Ok(tag_agent(get(row, 0)?)))
                .await?;
            let Some(part) = one_of(&tags) else {
                return Ok(None);
            };
            parts.push(part);
        }
        if let Some(directory) = &query.directory {
            let directory = directory.trim_end_matches('/').replace('\0', "");
            let tags = link
                .all(SESSIONS, &[&directory, &most], |row| {
                    Ok(tag_session(get(row, 0)?))
                })
                .await?;
            let Some(part) = one_of(&tags) else {
                return Ok(None);
            };
            parts.push(part);
        }
        let kinds: Vec<_> = query.kinds.iter().map(|kind| tag_kind(*kind)).collect();
        parts.extend(one_of(&kinds));
        let author = query.author.as_ref().map(tag_author);
        parts.extend(author.and_then(|tag| one_of(&[tag])));
        Ok(Some(Self {
            expression: (!parts.is_empty()).then(|| parts.join(" & ")),
            ranking,
            before: query.before.map_or(i64::MAX, |before| before.0),
            after: query.after.map_or(i64::MIN, |after| after.0),
        }))
    }

    /// Finds the rows of one page.
    async fn find(&self, link: &Link, query: &SearchQuery) -> Result<FoundRows> {
        let limit = query.limit.clamp(1, MOST_HITS);
        // One more row shows whether there is a next page.
        let wanted = i64::try_from(limit + 1).unwrap_or(i64::MAX);
        let Some(order) = unless_cut(self.order(link, query).await)? else {
            return Ok(FoundRows {
                is_cut: true,
                ..FoundRows::default()
            });
        };
        let skipped = query.cursor.map_or(0, |cursor| cursor.0.max(0));
        let found = match order {
            SortOrder::Newest => self.newest(link, query, wanted).await?,
            SortOrder::Relevance => {
                let ranking = self.ranking.as_deref().unwrap_or_default();
                let values: &[Value<'_>] = &[
                    &self.expression,
                    &skipped,
                    &self.after,
                    &self.before,
                    &wanted,
                    &ranking,
                ];
                unless_cut(rows(link, BEST, values).await)?.map(|rows| (rows, false))
            }
        };
        let is_cut = found.is_none();
        let (mut rows, is_part) = found.unwrap_or_default();
        let mut page = SearchPage {
            order,
            ..SearchPage::default()
        };
        if rows.len() > limit {
            rows.truncate(limit);
            page.next = Some(match (order, rows.last()) {
                (SortOrder::Newest, Some((_, last))) => SearchCursor(*last),
                _ => SearchCursor(skipped.saturating_add(wanted - 1)),
            });
        }
        Ok(FoundRows {
            page,
            rows,
            is_cut: is_cut || is_part,
        })
    }

    /// Returns the order of hits: by relevance only if requested and there are few.
    async fn order(&self, link: &Link, query: &SearchQuery) -> Result<SortOrder> {
        if query.order == SortOrder::Newest || self.ranking.is_none() {
            return Ok(SortOrder::Newest);
        }
        let few = i64::try_from(MOST_RANKED).unwrap_or(i64::MAX);
        let wanted = few.saturating_add(1);
        let values: &[Value<'_>] = &[&self.expression, &wanted];
        let hits: i64 = link.only(COUNT, values, |row| get(row, 0)).await?;
        Ok(if hits > few {
            SortOrder::Newest
        } else {
            SortOrder::Relevance
        })
    }

    /// Returns the newest hits, and true if the search timed out.
    async fn newest(
        &self,
        link: &Link,
        query: &SearchQuery,
        wanted: i64,
    ) -> Result<Option<(Vec<(Row, i64)>, bool)>> {
        let newest = query.cursor.map_or(i64::MAX, |cursor| cursor.0);
        let mut values: Vec<Value<'_>> = vec![&newest, &self.after, &self.before, &wanted];
        let Some(expression) = &self.expression else {
            let rows = unless_cut(rows(link, ANY, &values).await)?;
            return Ok(rows.map(|rows| (rows, false)));
        };
        values.push(expression);
        let walked = [&values[..], &[&WALK]].concat();
        let Some(walked) = unless_cut(rows(link, WALKED, &walked).await)? else {
            return Ok(None);
        };
        if i64::try_from(walked.len()).is_ok_and(|found| found >= wanted) {
            return Ok(Some((walked, false)));
        }
        let found = unless_cut(rows(link, INDEXED, &values).await)?;
        let is_part = found.is_none();
        Ok(Some((found.unwrap_or(walked), is_part)))
    }
}

async fn rows(link: &Link, sql: &'static str, values: &[Value<'_>]) -> Result<Vec<(Row, i64)>> {
    link.all(sql, values, |row| {
        Ok((log_row(parse_column(row, 7)?, row, 0)?, get(row, 6)?))
    })
    .await
}

/// Maps a statement timeout to `None`.
fn unless_cut<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(QueryFailure::Sql(error)) if error.code() == Some(&SqlState::QUERY_CANCELED) => {
            Ok(None)
        }
        result => result.map(Some),
    }
}

// Without MATERIALIZED the server would scan the whole table for the first row.
const HAS_LONG: &str = "WITH found AS MATERIALIZED (
         SELECT FROM search WHERE words @@ ($1::text)::tsquery
     )
     SELECT EXISTS (SELECT FROM found)";

const KEYS: &str = "SELECT id FROM agents WHERE uuid = ANY ($1::text[]) LIMIT $2";

const SESSIONS: &str = "SELECT id FROM sessions
     WHERE directory = $1 OR starts_with(directory, $1::text || '/')
     ORDER BY id DESC LIMIT $2";

const COUNT: &str = "SELECT count(*) FROM (
         SELECT 1 FROM search WHERE words @@ ($1::text)::tsquery LIMIT $2
     ) s";

const ANY: &str = "SELECT m.seq, m.kind, m.created_at, m.content, m.data, m.author, s.message,
            a.uuid
     FROM (
         SELECT message, agent, seq FROM search
         WHERE message < $1 AND created_at >= $2 AND created_at < $3
         ORDER BY message DESC LIMIT $4
     ) s JOIN messages m ON m.agent = s.agent AND m.seq = s.seq JOIN agents a ON a.id = s.agent
     ORDER BY s.message DESC";

const WALKED: &str = "SELECT m.seq, m.kind, m.created_at, m.content, m.data, m.author, s.message,
            a.uuid
     FROM (
         SELECT message, agent, seq FROM (
             SELECT * FROM search WHERE message < $1 ORDER BY message DESC LIMIT $6
         ) newest
         WHERE words @@ ($5::text)::tsquery AND created_at >= $2 AND created_at < $3
         ORDER BY message DESC LIMIT $4
     ) s JOIN messages m ON m.agent = s.agent AND m.seq = s.seq JOIN agents a ON a.id = s.agent
     ORDER BY s.message DESC";

const INDEXED: &str = "WITH found AS MATERIALIZED (
         SELECT message, agent, seq FROM search
         WHERE words @@ ($5::text)::tsquery
           AND message < $1 AND created_at >= $2 AND created_at < $3
     )
     SELECT m.seq, m.kind, m.created_at, m.content, m.data, m.author, s.message,
            a.uuid
     FROM (SELECT * FROM found ORDER BY message DESC LIMIT $4) s
         JOIN messages m ON m.agent = s.agent AND m.seq = s.seq JOIN agents a ON a.id = s.agent
     ORDER BY s.message DESC";

const BEST: &str = "SELECT m.seq, m.kind, m.created_at, m.content, m.data, m.author, s.message,
            a.uuid
     FROM (
         SELECT message, agent, seq, ts_rank(words, ($6::text)::tsquery, 1) AS rank FROM search
         WHERE words @@ ($1::text)::tsquery AND created_at >= $3 AND created_at < $4
         ORDER BY rank DESC, message DESC LIMIT $5 OFFSET $2
     ) s JOIN messages m ON m.agent = s.agent AND m.seq = s.seq JOIN agents a ON a.id = s.agent
     ORDER BY s.rank DESC, s.message DESC";
