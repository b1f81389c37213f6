//! Search in the memory store, by a scan of all rows.

use ikigai_core::find::{Searched, searchable_text, tokens};
use ikigai_core::{Row, RowRef};
use ikigai_store::search::{MOST_HITS, MOST_RANKED, blob_text};
use ikigai_store::{Hit, SearchCursor, SearchPage, SearchQuery, SortOrder};

use super::log::MemoryLog;

pub(super) fn search(log: &MemoryLog, query: &SearchQuery) -> SearchPage {
    let mut found: Vec<(usize, &Row)> = log
        .stored
        .iter()
        .enumerate()
        .rev()
        .filter_map(|(place, at)| Some((place, row_at(log, *at)?)))
        .filter(|(_, row)| fits(log, query, row))
        .collect();
    let is_ranked = query.order == SortOrder::Relevance
        && !query.words.is_empty()
        && found.len() <= MOST_RANKED;
    let cursor = query.cursor.map(|cursor| cursor.0);
    let limit = query.limit.clamp(1, MOST_HITS);
    let number = |place: usize| i64::try_from(place).expect("few rows");
    let order = if is_ranked {
        found.sort_by_key(|(_, row)| weight(&whole_text(log, row), query));
        SortOrder::Relevance
    } else {
        SortOrder::Newest
    };
    let skipped = match (order, cursor) {
        (_, None) => 0,
        (SortOrder::Relevance, Some(offset)) => usize::try_from(offset).unwrap_or(0),
        (SortOrder::Newest, Some(before)) => {
            found.partition_point(|(place, _)| number(*place) >= before)
        }
    };
    let page: Vec<_> = found.iter().skip(skipped).take(limit).collect();
    let is_more = found.len() > skipped + page.len();
    let next = match (order, page.last()) {
        (SortOrder::Newest, Some((place, _))) => Some(SearchCursor(number(*place))),
        (SortOrder::Relevance, Some(_)) => Some(SearchCursor(number(skipped + page.len()))),
        (_, None) => None,
    };
    SearchPage {
        hits: page
            .into_iter()
            .map(|(_, row)| hit(log, query, row))
            .collect(),
        order,
        next: next.filter(|_| is_more),
        ..SearchPage::default()
    }
}

fn row_at(log: &MemoryLog, at: RowRef) -> Option<&Row> {
    let place = usize::try_from(at.seq.0.checked_sub(1)?).ok()?;
    log.agents.get(&at.agent)?.rows.get(place)
}

fn fits(log: &MemoryLog, query: &SearchQuery, row: &Row) -> bool {
    let agents = query.agents.as_ref();
    let kind = row.kind.read_as();
    let before = query.before.is_none_or(|before| row.created_at < before);
    let after = query.after.is_none_or(|after| row.created_at >= after);
    agents.is_none_or(|agents| agents.contains(&row.at.agent))
        && (query.kinds.is_empty() || kind.is_some_and(|kind| query.kinds.contains(&kind)))
        && before
        && after
        && is_in_directory(log, query, row)
        && (query.author.is_none() || query.author == row.author)
        && query.model.as_ref().is_none_or(|model| {
            let named = searchable_text(row).model;
            named.is_some_and(|named| model.are_in(&named))
        })
        && query.words.are_in(&whole_text(log, row))
}

fn is_in_directory(log: &MemoryLog, query: &SearchQuery, row: &Row) -> bool {
    let Some(wanted) = query.directory.as_deref() else {
        return true;
    };
    let wanted = wanted.trim_end_matches('/');
    let agent = log.agents.get(&row.at.agent);
    let session = agent.map(|agent| agent.record.agent.session);
    let mut sessions = log.sessions.iter();
    sessions.any(|known| {
        let inner = known.directory.strip_prefix(wanted);
        Some(known.id) == session
            && inner.is_some_and(|inner| inner.is_empty() || inner.starts_with('/'))
    })
}

fn whole_text(log: &MemoryLog, row: &Row) -> String {
    let Searched { mut text, blob, .. } = searchable_text(row);
    if let Some(blob) = blob.and_then(|hash| blob_of(log, &hash)) {
        text.push('\n');
        text.push_str(&blob);
    }
    text
}

fn blob_of(log: &MemoryLog, hash: &str) -> Option<String> {
    let bytes = log.blob(hash.parse().ok()?)?;
    Some(blob_text(&bytes))
}

/// Returns the rank of a text: the larger the share of search terms, the smaller.
fn weight(text: &str, query: &SearchQuery) -> u64 {
    let words = tokens(text).count();
    let found = query.words.terms().iter();
    let found: usize = found.map(|term| term.count_in(text)).sum();
    u64::try_from(words * 1000 / found.max(1)).unwrap_or(u64::MAX)
}

fn hit(log: &MemoryLog, query: &SearchQuery, row: &Row) -> Hit {
    let blob = |hash: &str| Ok::<_, std::convert::Infallible>(blob_of(log, hash));
    match Hit::of(row, query, blob) {
        Ok(hit) => hit,
        Err(never) => match never {},
    }
}
