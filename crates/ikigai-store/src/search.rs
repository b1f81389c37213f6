//! Finding rows by words: what may be asked, and what is answered.

use ikigai_core::find::{SEARCHED_BYTES, Searched, Snippet, Words, ends, searched};
use ikigai_core::render::render;
use ikigai_core::{AgentId, Kind, Micros, Row, RowRef, StoredKind};

use crate::blobs::PART_BYTES;

/// How many parts of a blob are searched at each end.
pub(crate) const END_PARTS: usize = SEARCHED_BYTES / 2 / PART_BYTES;

/// How many agents one search is narrowed to at most.
pub(crate) const MOST_AGENTS: usize = 64;

/// How long the line is that is shown of a hit if nobody says, and at most.
const SNIPPET_CHARS: usize = 160;
const MOST_CHARS: usize = 2000;

/// With more hits than this they are told newest first, whatever was asked.
pub const MOST_RANKED: usize = 2000;

/// How many hits one answer has at most.
pub const MOST_HITS: usize = 1000;

/// What is looked for. Conditions that are not set hold for every row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// What must stand in a row.
    pub words: Words,
    /// Whose rows.
    pub agents: Option<Vec<AgentId>>,
    /// Rows of one of these kinds; none is all.
    pub kinds: Vec<Kind>,
    /// Rows that name a model whose name has these words in it.
    pub model: Option<Words>,
    /// Made before this time.
    pub before: Option<Micros>,
    /// Made at this time or later.
    pub after: Option<Micros>,
    /// In sessions of this directory, or of one in it.
    pub directory: Option<String>,
    /// In which order hits are told.
    pub order: Order,
    /// Where an earlier answer ended.
    pub cursor: Option<Cursor>,
    /// How many hits are wanted.
    pub limit: usize,
    /// How long the line of a hit is; 0 is the usual length.
    pub line_chars: usize,
}

/// In which order hits are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Newest first.
    #[default]
    Newest,
    /// Those that fit best first, if there are few.
    Relevance,
}

/// Where an answer ended; it means something only with the same question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(pub i64);

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPage {
    /// The hits, in the order of `order`.
    pub hits: Vec<Hit>,
    /// In which order they are told.
    pub order: Order,
    /// Where the next page begins; none if this is the last one.
    pub next: Option<Cursor>,
    /// Words that may go on would have taken too long: only whole words were looked for.
    pub whole_words: bool,
    /// It took too long: there may be more that the next page does not find either.
    pub cut: bool,
}

/// One row that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Where it stands.
    pub at: RowRef,
    /// What it is.
    pub kind: StoredKind,
    /// When it was made.
    pub created_at: Micros,
    /// The line in which the words stand.
    pub snippet: Snippet,
}

impl Hit {
    /// Makes a hit of a row. `blob` reads the text of a blob, and is asked only if the words do
    /// not stand in the row itself.
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
        } = searched(row);
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
            snippet,
        })
    }
}

/// The part of a blob that is searched.
pub fn blob_text(bytes: &[u8]) -> String {
    ends(&String::from_utf8_lossy(bytes), SEARCHED_BYTES).into_owned()
}

/// Joins the parts of a blob's ends, which come in order; what is left out between them is told.
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
