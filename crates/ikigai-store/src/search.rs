//! Search for rows by words: queries and results.

use ikigai_core::find::{SEARCHED_BYTES, Searched, Snippet, Words, ends, searchable_text};
use ikigai_core::render::render;
use ikigai_core::{AgentId, Kind, Micros, PersonName, Row, RowRef, StoredKind};

/// Limit of agents that one search is restricted to.
pub(crate) const MOST_AGENTS: usize = 64;

/// Length of a hit's snippet: default, and limit.
const SNIPPET_CHARS: usize = 160;
const MOST_CHARS: usize = 2000;

/// Above this number of hits the newest come first.
pub const MOST_RANKED: usize = 2000;

/// Limit of hits per page.
pub const MOST_HITS: usize = 1000;

/// A search. Conditions that are not set match every row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// Words that a row must contain.
    pub words: Words,
    /// Agents whose rows are searched; `None` is all.
    pub agents: Option<Vec<AgentId>>,
    /// Kinds of rows; empty is all.
    pub kinds: Vec<Kind>,
    /// Words in the name of the row's model.
    pub model: Option<Words>,
    /// Person who caused the rows.
    pub author: Option<PersonName>,
    /// Rows before this time.
    pub before: Option<Micros>,
    /// Rows at this time or later.
    pub after: Option<Micros>,
    /// Sessions of this directory or one below it.
    pub directory: Option<String>,
    /// Order of hits.
    pub order: SortOrder,
    /// End of the previous page.
    pub cursor: Option<SearchCursor>,
    /// Number of hits to return.
    pub limit: usize,
    /// Length of snippets; 0 is the default.
    pub line_chars: usize,
}

/// Order of hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortOrder {
    /// Newest first.
    #[default]
    Newest,
    /// By relevance, if there are few hits.
    Relevance,
}

/// End of a page; valid only for the same query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchCursor(pub i64);

/// One page of hits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPage {
    /// The hits, in the order of `order`.
    pub hits: Vec<Hit>,
    /// Order of the hits.
    pub order: SortOrder,
    /// Start of the next page; `None` on the last one.
    pub next: Option<SearchCursor>,
    /// Prefixes timed out, so only whole words were searched.
    pub whole_words: bool,
    /// The search timed out; further hits may be missing.
    pub cut: bool,
}

/// One row that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its position.
    pub at: RowRef,
    /// Its kind.
    pub kind: StoredKind,
    /// Its time.
    pub created_at: Micros,
    /// Person who caused it.
    pub author: Option<PersonName>,
    /// The line with the words.
    pub snippet: Snippet,
}

impl Hit {
    /// Converts a row into a hit.
    ///
    /// `blob` reads the text of a blob, and is called only if the row itself lacks the words.
    pub fn of<E>(
        row: &Row,
        query: &SearchQuery,
        blob: impl FnOnce(&str) -> Result<Option<String>, E>,
    ) -> Result<Self, E> {
        let words = &query.words;
        let chars = match query.line_chars {
            0 => SNIPPET_CHARS,
            chars => chars.min(MOST_CHARS),
        };
        let Searched {
            text, blob: hash, ..
        } = searchable_text(row);
        let mut snippet = Snippet::of(&text, words, chars);
        if !snippet.has_mark()
            && let Some(hash) = hash
            && let Some(text) = blob(&hash)?
        {
            let larger = Snippet::of(&text, words, chars);
            if larger.has_mark() || snippet.text.is_empty() {
                snippet = larger;
            }
        }
        if snippet.text.is_empty() {
            snippet = Snippet::of(&render(row).to_string(), words, chars);
        }
        Ok(Self {
            at: row.at,
            kind: row.kind.clone(),
            created_at: row.created_at,
            author: row.author.clone(),
            snippet,
        })
    }
}

/// Returns the searched part of a blob.
pub fn blob_text(bytes: &[u8]) -> String {
    ends(&String::from_utf8_lossy(bytes), SEARCHED_BYTES).into_owned()
}

/// Joins the parts of a blob's ends, given in order, with `…` at a gap.
pub(crate) fn join_ends(parts: impl IntoIterator<Item = (i64, Vec<u8>)>) -> Option<String> {
    let mut bytes = Vec::new();
    let mut next = None;
    for (part, chunk) in parts {
        if next.is_some_and(|next| next != part) {
            bytes.extend_from_slice("\n…\n".as_bytes());
        }
        next = Some(part + 1);
        bytes.extend_from_slice(&chunk);
    }
    next.map(|_| String::from_utf8_lossy(&bytes).into_owned())
}
