//! Full-text search of rows: searched texts, words and snippets.
//!
//! Text is split as SQLite's `unicode61` does it: letters and digits make words, case and the
//! accents of Latin letters do not matter. Chinese and Japanese have no spaces, so there each
//! character is a word, and a typed sequence is a phrase.

mod fold;
mod snippet;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use crate::data::{self, AssistantData, BlobRef, CommandData, MarkData};
use crate::environment_block::without_blocks;
use crate::event::Row;
use crate::json::data_type;
use crate::kind::Kind;
use crate::load::{Loaded, Part, load};
use crate::message::Block;

pub use snippet::Snippet;

/// Largest number of terms in a search; the rest is ignored.
pub const MOST_TERMS: usize = 32;

/// Largest searched part of a row; a longer text is searched at both ends.
pub const SEARCHED_BYTES: usize = 1024 * 1024;

/// Name of the tool and command whose rows are not searched: they repeat other rows.
pub const RECALL_TOOL: &str = "recall";
pub const SEARCH_COMMAND: &str = "search";

/// Searchable parts of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// Text of the row: message, call or result.
    pub text: String,
    /// Hash of a larger output, which is searched too.
    pub blob: Option<String>,
    /// The model that the row names.
    pub model: Option<String>,
}

data_type! {
    /// Part of a result's data that only the search reads.
    Larger {
        /// The whole output, if it was larger.
        blob: BlobRef,
    }
}

/// Returns the searchable parts of a row. Total.
pub fn searchable_text(row: &Row) -> Searched {
    let data = row.data.as_deref();
    let content = row.content.as_deref().unwrap_or_default();
    let mut found = Searched::default();
    match row.kind.read_as() {
        Some(Kind::Assistant | Kind::ToolCall | Kind::ToolResult) => {
            let read = load(row);
            if let Ok(Loaded::Message(part)) = &read {
                if is_recall(part) {
                    return found;
                }
                let larger: Larger = data::read(data);
                found.blob = larger.blob.and_then(|blob| blob.hash);
                found.model = data::read::<AssistantData>(data).model;
                found.text = text_of(part, content, found.blob.is_some());
            } else {
                found.text = join_parts(&[content]);
            }
        }
        Some(Kind::Command) => {
            let command: CommandData = data::read(data);
            if command.command.as_deref() == Some(SEARCH_COMMAND) {
                return found;
            }
            found.text = join_parts(&[command.echo.as_deref().unwrap_or_default(), content]);
        }
        Some(Kind::Mark) => {
            let mark: MarkData = data::read(data);
            found.text = join_parts(&[mark.label.as_deref().unwrap_or_default()]);
        }
        Some(Kind::User) => {
            found.text = join_parts(&[without_blocks(content, &data::read(data))]);
        }
        Some(
            Kind::System
            | Kind::Clear
            | Kind::Rewind
            | Kind::Fork
            | Kind::AgentKilled
            | Kind::Usage
            | Kind::Interrupted
            | Kind::Error
            | Kind::Summary
            | Kind::Process
            | Kind::Files,
        )
        | None => found.text = join_parts(&[content]),
    }
    found
}

/// Returns true for rows of the recall tool, which would hide the rows they repeat.
fn is_recall(part: &Part) -> bool {
    let called = part.message.blocks.iter().find_map(|block| match block {
        Block::ToolCall { name, .. } => Some(name),
        _ => None,
    });
    part.tool.as_ref().or(called).map(String::as_str) == Some(RECALL_TOOL)
}

/// Returns the text of a message and its displayed form.
fn text_of(part: &Part, shown: &str, has_blob: bool) -> String {
    let mut texts: Vec<String> = part.tool.iter().cloned().collect();
    for block in &part.message.blocks {
        match block {
            Block::Thinking { text, .. } => texts.push(text.clone()),
            Block::ToolCall {
                name, arguments, ..
            } => {
                texts.push(name.clone());
                // Arguments are JSON, which escapes the characters that users search for.
                texts.push(serde_json::from_str(arguments).map_or_else(
                    |_| arguments.clone(),
                    |value: serde_json::Value| words_of(&value),
                ));
            }
            // The content of a result with a blob is a part of the blob.
            Block::ToolResult { content, .. } if !has_blob => texts.push(content.clone()),
            // The displayed form contains the text.
            Block::ToolResult { .. } | Block::Text { .. } | Block::Image(_) => {}
        }
    }
    texts.push(shown.to_owned());
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    join_parts(&texts)
}

/// Returns names and texts of a JSON value, one per line.
fn words_of(value: &serde_json::Value) -> String {
    use serde_json::Value;
    let mut text = String::new();
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::String(found) => push_line(&mut text, found),
            Value::Number(number) => push_line(&mut text, &number.to_string()),
            Value::Array(values) => left.extend(values.iter().rev()),
            Value::Object(fields) => left.extend(fields.values().rev()),
            Value::Null | Value::Bool(_) => {}
        }
    }
    text
}

fn join_parts(parts: &[&str]) -> String {
    let mut text = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        push_line(&mut text, part);
    }
    ends(&text, SEARCHED_BYTES).into_owned()
}

fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// Shortens a text over `most` bytes to its ends, of half of that each.
pub fn ends(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let head = text.floor_char_boundary(most / 2);
    let tail = text.ceil_char_boundary(text.len() - most / 2);
    format!("{}\n…\n{}", &text[..head], &text[tail..]).into()
}

/// One word of a text with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Letters of the word, without case and accents.
    pub folded: String,
    /// Byte range in the text.
    pub at: Range<usize>,
}

/// Returns true if the character is a word by itself.
const fn stands_alone(c: char) -> bool {
    matches!(c,
        '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3105}'..='\u{312f}'
        | '\u{31a0}'..='\u{31bf}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{2ffff}')
}

/// Puts spaces around one-character words, for an index that splits only at spaces.
pub fn split_words(text: &str) -> Cow<'_, str> {
    if !text.contains(stands_alone) {
        return text.into();
    }
    let mut parted = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if stands_alone(c) {
            parted.extend([' ', c, ' ']);
        } else {
            parted.push(c);
        }
    }
    parted.into()
}

/// Splits a text into words.
pub fn tokens(text: &str) -> impl Iterator<Item = Token> {
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        while chars.next_if(|(_, c)| !c.is_alphanumeric()).is_some() {}
        let (start, _) = *chars.peek()?;
        let mut folded = String::new();
        let mut end = start;
        let mut is_whole = false;
        while let Some((at, c)) = chars.next_if(|(at, c)| {
            let goes_on = c.is_alphanumeric() && (*at == start || !stands_alone(*c));
            !is_whole && (goes_on || fold::is_accent(*c))
        }) {
            fold::push(&mut folded, c);
            end = at + c.len_utf8();
            is_whole = stands_alone(c);
        }
        Some(Token {
            folded,
            at: start..end,
        })
    })
}

/// Consecutive words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Text as typed, without quotes; it has at least one letter or digit.
    pub text: String,
    /// True if the last word is a prefix.
    pub is_prefix: bool,
    words: Vec<String>,
}

impl Term {
    /// Makes a term; none if the text has no word.
    pub fn new(text: &str, is_prefix: bool) -> Option<Self> {
        let words: Vec<String> = tokens(text).map(|token| token.folded).collect();
        (!words.is_empty()).then(|| Self {
            text: text.replace('\0', " "),
            is_prefix,
            words,
        })
    }

    /// Returns the number of words that the term takes at the start of `found`.
    fn begins(&self, found: &[Token]) -> Option<usize> {
        let (last, first) = self.words.split_last()?;
        let whole = found.get(..self.words.len())?;
        let (found_last, found_first) = whole.split_last()?;
        let is_last = if self.is_prefix {
            found_last.folded.starts_with(last.as_str())
        } else {
            found_last.folded == *last
        };
        let same = found_first.iter().zip(first);
        let is_it = is_last && same.into_iter().all(|(found, word)| found.folded == *word);
        is_it.then_some(self.words.len())
    }

    /// Counts the occurrences in a text.
    pub fn count_in(&self, text: &str) -> usize {
        let found: Vec<Token> = tokens(text).collect();
        let begins = (0..found.len()).filter(|at| self.begins(&found[*at..]).is_some());
        begins.count()
    }
}

/// Search terms, all of which must occur.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(Vec<Term>);

/// Occurrence of a term in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TermPosition {
    pub(crate) at: Range<usize>,
    pub(crate) term: usize,
}

impl Words {
    /// Parses a search: words, `"quoted phrases"` and `prefix*`.
    ///
    /// There is no other syntax, and parts without a letter or digit are left out.
    pub fn parse(typed: &str) -> Self {
        let mut terms = Vec::new();
        let mut rest = typed.trim_start();
        while let Some(first) = rest.chars().next() {
            let (text, after) = if first == '"' {
                let inner = &rest[1..];
                inner.split_once('"').unwrap_or((inner, ""))
            } else {
                let end = rest.find(|c: char| c.is_whitespace() || c == '"');
                rest.split_at(end.unwrap_or(rest.len()))
            };
            // The star of a phrase follows its quotes.
            let starred = first == '"' && after.starts_with('*');
            let is_prefix = starred || (first != '"' && text.ends_with('*'));
            terms.extend(Term::new(text, is_prefix));
            rest = after.trim_start_matches('*').trim_start();
        }
        terms.truncate(MOST_TERMS);
        Self(terms)
    }

    /// Returns the terms.
    pub fn terms(&self) -> &[Term] {
        &self.0
    }

    /// Returns true if there are no terms.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if some term is a prefix.
    pub fn has_prefix(&self) -> bool {
        self.0.iter().any(|term| term.is_prefix)
    }

    /// Returns the same terms as whole words.
    #[must_use]
    pub fn whole(mut self) -> Self {
        for term in &mut self.0 {
            term.is_prefix = false;
        }
        self
    }

    /// Returns true if all terms occur in a text.
    pub fn are_in(&self, text: &str) -> bool {
        self.0.iter().all(|term| term.count_in(text) > 0)
    }

    /// Returns at most `most` occurrences of the terms in a text.
    pub(crate) fn places(&self, text: &str, most: usize) -> Vec<TermPosition> {
        let longest = self.0.iter().map(|term| term.words.len()).max();
        let longest = longest.unwrap_or(1);
        let mut places = Vec::new();
        let mut ahead: Vec<Token> = Vec::new();
        let mut left = tokens(text);
        loop {
            ahead.extend(left.by_ref().take(longest - ahead.len().min(longest)));
            let Some(first) = ahead.first() else {
                return places;
            };
            for (number, term) in self.0.iter().enumerate() {
                if let Some(taken) = term.begins(&ahead) {
                    let end = ahead
                        .get(taken - 1)
                        .map_or(first.at.end, |last| last.at.end);
                    places.push(TermPosition {
                        at: first.at.start..end,
                        term: number,
                    });
                }
            }
            if places.len() >= most {
                return places;
            }
            ahead.remove(0);
        }
    }
}
