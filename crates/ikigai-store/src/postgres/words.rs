//! What stands in the search index, and how it is asked: words as core splits them, so that both
//! engines find the same.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Write;

use ikigai_core::Kind;
use ikigai_core::find::{Searched, Term, Words, tokens};

/// A longer word is cut; the server takes none of more than 2046 bytes.
const WORD_BYTES: usize = 1000;

/// The last place that the server can tell, and how many places of one word it keeps.
const LAST_PLACE: usize = 16_383;
const PLACES: usize = 255;

/// How large the entry of one row may become; the server takes none of 1 MiB. Further words are
/// left out.
const ENTRY_BYTES: usize = 900_000;

/// What one entry of a word costs beside its letters, and each of its places.
const ENTRY_COST: usize = 8;
const PLACE_COST: usize = 2;

/// Marks what is not a word of the text. No word has it.
const TAG: char = ':';

/// The tag of a text that has more words than places can be told of, as it is asked for.
pub(super) const LONG: &str = "':long'";

/// Whether there are such texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Long {
    Nowhere,
    Somewhere,
}

/// Who and what a row is, as words of ours.
pub(super) fn tag_agent(key: i64) -> String {
    format!("{TAG}a{key}")
}

pub(super) fn tag_session(key: i64) -> String {
    format!("{TAG}s{key}")
}

pub(super) fn tag_kind(kind: Kind) -> String {
    format!("{TAG}k{}", kind.name())
}

/// The entry of a row, as the server reads one.
pub(super) fn entry(searched: &Searched, tags: impl IntoIterator<Item = String>) -> String {
    let mut entry = Entry::default();
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
struct Entry {
    words: HashMap<String, Vec<usize>>,
    bytes: usize,
}

impl Entry {
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
            text.push_str(&quoted(word));
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

/// A word in the server's language, in which nothing in quotes has a meaning.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\\', "\\\\").replace('\'', "''"))
}

/// All terms of a text, as the server is asked for them; none if nothing is looked for. Long texts
/// whose places cannot be told are looked for too, or it is known that there are none.
pub(super) fn in_text(words: &Words, long: Long) -> Option<String> {
    all(words, "", long)
}

/// All terms of a model's name.
pub(super) fn in_model(words: &Words) -> Option<String> {
    all(words, "m", Long::Nowhere)
}

/// One of several tags; none if there is none.
pub(super) fn one_of(tags: &[String]) -> Option<String> {
    let tags: Vec<String> = tags.iter().map(|tag| quoted(tag)).collect();
    (!tags.is_empty()).then(|| format!("({})", tags.join(" | ")))
}

fn all(words: &Words, tag: &str, long: Long) -> Option<String> {
    let terms = words.terms().iter().map(|term| asked(term, tag, long));
    let terms: Vec<String> = terms.collect();
    (!terms.is_empty()).then(|| terms.join(" & "))
}

/// One term: its words must follow each other.
fn asked(term: &Term, tag: &str, long: Long) -> String {
    let folded: Vec<String> = tokens(&term.text).map(|token| token.folded).collect();
    let count = folded.len();
    let words: Vec<String> = (1..)
        .zip(folded)
        .map(|(number, word)| {
            let word = if tag.is_empty() {
                quoted(cut(&word))
            } else {
                quoted(&format!("{TAG}{tag}{}", cut(&word)))
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
        (words, Long::Nowhere) => format!("({})", words.join(" <-> ")),
        // Where the places of words cannot be told, it is enough that all are there.
        (words, Long::Somewhere) => {
            let (follow, are_there) = (words.join(" <-> "), words.join(" & "));
            format!("({follow} | {are_there} & {LONG})")
        }
    }
}
