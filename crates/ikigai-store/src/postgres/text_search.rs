//! Translation of texts and searches to `tsvector` and `tsquery`, with core's words as on SQLite.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Write;

use ikigai_core::find::{Searched, Term, Words, tokens};
use ikigai_core::{Kind, PersonName};

use crate::sql_common::author_tag;

/// Limit of a word in bytes; the server accepts at most 2046.
const WORD_BYTES: usize = 1000;

/// Limits of positions in a `tsvector`: the last one, and per word.
const LAST_PLACE: usize = 16_383;
const PLACES: usize = 255;

/// Limit of a row's `tsvector`; the server accepts less than 1 MiB. Further words are left out.
const ENTRY_BYTES: usize = 900_000;

/// Cost of a word besides its letters, and of each position.
const ENTRY_COST: usize = 8;
const PLACE_COST: usize = 2;

/// Prefix of tags; no word contains it.
const TAG: char = ':';

/// Marker for documents over tsvector's position limit.
pub(super) const LONG: &str = "':long'";

/// Existence of documents over the position limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongTexts {
    Nowhere,
    Somewhere,
}

/// Returns the tag of an agent, so that searches can be restricted to it.
pub(super) fn tag_agent(key: i64) -> String {
    format!("{TAG}a{key}")
}

pub(super) fn tag_session(key: i64) -> String {
    format!("{TAG}s{key}")
}

pub(super) fn tag_kind(kind: Kind) -> String {
    format!("{TAG}k{}", kind.name())
}

pub(super) fn tag_author(author: &PersonName) -> String {
    format!("{TAG}{}", author_tag(author))
}

/// Builds the `tsvector` of a row.
pub(super) fn entry(searched: &Searched, tags: impl IntoIterator<Item = String>) -> String {
    let mut entry = TsVector::default();
    for tag in tags {
        entry.add(tag, None);
    }
    let model = searched.model.as_deref().unwrap_or_default();
    for (place, token) in (1..).zip(tokens(model)) {
        entry.add(format!("{TAG}m{}", cut(&token.folded)), Some(place));
    }
    let mut last = 0;
    for token in tokens(&searched.text) {
        last += 1;
        entry.add(cut(&token.folded).to_owned(), Some(last));
    }
    if last > LAST_PLACE {
        entry.add(LONG.trim_matches('\'').to_owned(), None);
    }
    entry.written()
}

#[derive(Default)]
struct TsVector {
    words: HashMap<String, Vec<usize>>,
    bytes: usize,
}

impl TsVector {
    fn add(&mut self, word: String, place: Option<usize>) {
        let place = place.filter(|place| *place <= LAST_PLACE);
        let cost = word.len() + ENTRY_COST;
        let is_room = self.bytes + cost <= ENTRY_BYTES;
        if let Some(places) = self.words.get_mut(&word) {
            if places.len() < PLACES && is_room {
                self.bytes += PLACE_COST;
                places.extend(place);
            }
        } else if is_room {
            self.bytes += cost + PLACE_COST;
            self.words.insert(word, place.into_iter().collect());
        }
    }

    fn written(&self) -> String {
        let mut text = String::new();
        for (word, places) in &self.words {
            text.push_str(&quote(word));
            let mut before = ':';
            for place in places {
                let _ = write!(text, "{before}{place}");
                before = ',';
            }
            text.push(' ');
        }
        text
    }
}

fn cut(word: &str) -> &str {
    &word[..word.floor_char_boundary(WORD_BYTES)]
}

/// Quotes a word, so that none of its characters is special.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\\', "\\\\").replace('\'', "''"))
}

/// Builds the `tsquery` for all terms; `None` if there are none.
///
/// Documents over the position limit match too, unless there are none.
pub(super) fn in_text(words: &Words, long: LongTexts) -> Option<String> {
    all(words, "", long)
}

/// Builds the `tsquery` for a model's name.
pub(super) fn in_model(words: &Words) -> Option<String> {
    all(words, "m", LongTexts::Nowhere)
}

/// Builds the `tsquery` for any of several tags; `None` if there are none.
pub(super) fn one_of(tags: &[String]) -> Option<String> {
    let tags: Vec<String> = tags.iter().map(|tag| quote(tag)).collect();
    (!tags.is_empty()).then(|| format!("({})", tags.join(" | ")))
}

fn all(words: &Words, tag: &str, long: LongTexts) -> Option<String> {
    let terms = words.terms().iter().map(|term| condition(term, tag, long));
    let terms: Vec<String> = terms.collect();
    (!terms.is_empty()).then(|| terms.join(" & "))
}

/// Builds the `tsquery` for one term: its words must follow each other.
fn condition(term: &Term, tag: &str, long: LongTexts) -> String {
    let folded: Vec<String> = tokens(&term.text).map(|token| token.folded).collect();
    let count = folded.len();
    let words: Vec<String> = (1..)
        .zip(folded)
        .map(|(number, word)| {
            let word = if tag.is_empty() {
                quote(cut(&word))
            } else {
                quote(&format!("{TAG}{tag}{}", cut(&word)))
            };
            let star = if term.is_prefix && number == count {
                ":*"
            } else {
                ""
            };
            format!("{word}{star}")
        })
        .collect();
    match (words.as_slice(), long) {
        ([word], _) => word.clone(),
        (words, LongTexts::Nowhere) => format!("({})", words.join(" <-> ")),
        // Without positions it is enough that all words occur.
        (words, LongTexts::Somewhere) => {
            let (follow, are_there) = (words.join(" <-> "), words.join(" & "));
            format!("({follow} | {are_there} & {LONG})")
        }
    }
}
