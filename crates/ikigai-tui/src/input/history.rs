//! History of sent messages: recall and search.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::{EditCommand, Editor, Unsent};

/// Most messages kept.
const MOST_ENTRIES: usize = 1_000;
/// Most bytes kept; the newest message always is.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Sent messages, and the one that the input shows.
///
/// Places count from the newest, which is 1; 0 is the unsent text.
#[derive(Clone, Debug, Default)]
pub struct InputHistory {
    /// The newest last.
    entries: Vec<String>,
    bytes: usize,
    at: usize,
    /// Edited texts that were left, until one is sent.
    left: BTreeMap<usize, Unsent>,
}

impl InputHistory {
    /// Creates a history of sent messages, the newest last.
    pub fn new(sent: impl IntoIterator<Item = String>) -> Self {
        let mut history = Self::default();
        for text in sent {
            history.sent(text);
        }
        history
    }

    /// Adds a sent message and returns to the unsent text.
    pub fn sent(&mut self, text: String) {
        self.at = 0;
        self.left.clear();
        if text.trim().is_empty() || self.entries.last() == Some(&text) {
            return;
        }
        self.bytes += text.len();
        self.entries.push(text);
        let mut gone = 0;
        while self.entries.len() - gone > 1
            && (self.entries.len() - gone > MOST_ENTRIES || self.bytes > MOST_BYTES)
        {
            self.bytes -= self.entries.get(gone).map_or(0, String::len);
            gone += 1;
        }
        self.entries.drain(..gone);
    }

    /// Adds messages before all others, the newest last, up to the limit.
    pub fn older(&mut self, sent: Vec<String>) {
        for text in sent.into_iter().rev() {
            let bytes = self.bytes + text.len();
            if self.entries.len() >= MOST_ENTRIES || bytes > MOST_BYTES {
                return;
            }
            if !text.trim().is_empty() && self.entries.first() != Some(&text) {
                self.bytes = bytes;
                self.entries.insert(0, text);
            }
        }
    }

    /// Puts the previous sent message into the input; returns false if there is none.
    /// Unsent text and changes to sent messages are kept.
    pub fn previous(&mut self, editor: &mut Editor) -> bool {
        let went = self.at < self.entries.len() && self.go(self.at + 1, editor);
        if went {
            // In the first line, so that the next step up goes to an older message.
            let line = editor.shown().find('\n').unwrap_or(usize::MAX);
            editor.move_to(line);
        }
        went
    }

    /// Puts the next sent message or the unsent text into the input; false if none.
    pub fn next(&mut self, editor: &mut Editor) -> bool {
        self.at.checked_sub(1).is_some_and(|at| self.go(at, editor))
    }

    /// Returns true if the input shows the oldest message.
    pub fn is_at_oldest(&self) -> bool {
        self.at == self.entries.len()
    }

    fn go(&mut self, to: usize, editor: &mut Editor) -> bool {
        let unsent = match self.left.remove(&to) {
            Some(unsent) => unsent,
            None => Unsent::from(self.entry(to).unwrap_or_default()),
        };
        let left = editor.restore(unsent);
        if self.entry(self.at) != Some(&left.text.whole()) {
            self.left.insert(self.at, left);
        }
        self.at = to;
        true
    }

    fn entry(&self, at: usize) -> Option<&str> {
        let index = self.entries.len().checked_sub(at)?;
        self.entries.get(index).map(String::as_str)
    }
}

/// Search in sent messages: needle, matches and selected match.
#[derive(Clone, Debug, Default)]
pub struct HistorySearch {
    /// Needle. Change it by [`HistorySearch::insert`] and [`HistorySearch::apply`].
    sought: Editor,
    /// Places in the history, the newest first, each text once.
    matches: Vec<usize>,
    marked: usize,
}

impl HistorySearch {
    /// Starts a search.
    pub fn new(history: &InputHistory) -> Self {
        let mut search = Self::default();
        search.look(history);
        search
    }

    /// Returns the needle.
    pub fn sought(&self) -> &Editor {
        &self.sought
    }

    /// Adds text to the needle.
    pub fn insert(&mut self, text: &str, history: &InputHistory) {
        self.sought.insert(&text.replace(['\n', '\r'], " "));
        self.look(history);
    }

    /// Edits the needle.
    pub fn apply(&mut self, edit: EditCommand, history: &InputHistory) -> bool {
        let changed = edit != EditCommand::Newline && self.sought.apply(edit);
        if changed {
            self.look(history);
        }
        changed
    }

    /// Selects an older match; returns false if there is none.
    pub fn older(&mut self) -> bool {
        let more = self.marked + 1 < self.matches.len();
        self.marked += usize::from(more);
        more
    }

    /// Selects a newer match; returns false if there is none.
    pub fn newer(&mut self) -> bool {
        let more = self.marked > 0;
        self.marked -= usize::from(more);
        more
    }

    /// Returns the number of the selected match, from 1, and of all, if any.
    pub fn place(&self) -> Option<(usize, usize)> {
        let count = self.matches.len();
        (count > 0).then_some((self.marked + 1, count))
    }

    /// Returns the selected match, and the range of the needle in it.
    pub fn found<'h>(&self, history: &'h InputHistory) -> Option<(&'h str, Range<usize>)> {
        let text = history.entry(*self.matches.get(self.marked)?)?;
        Some((text, find(text, self.sought.shown())?))
    }

    fn look(&mut self, history: &InputHistory) {
        let sought = self.sought.shown();
        let mut seen = HashSet::new();
        let entries = history.entries.iter().rev().enumerate();
        let fits = entries.filter(|(_, text)| find(text, sought).is_some());
        let once = fits.filter(|(_, text)| seen.insert(text.as_str()));
        self.matches = once.map(|(index, _)| index + 1).collect();
        self.marked = 0;
    }
}

/// Returns the position of the needle; case-sensitive if it has a capital letter.
fn find(text: &str, sought: &str) -> Option<Range<usize>> {
    if sought.chars().any(char::is_uppercase) {
        let start = text.find(sought)?;
        return Some(start..start + sought.len());
    }
    let small = |c: char| c.to_lowercase().next().unwrap_or(c);
    let starts = text.char_indices().map(|(start, _)| start);
    starts.chain([text.len()]).find_map(|start| {
        let mut rest = text.get(start..)?.chars();
        let fits = sought
            .chars()
            .all(|letter| rest.next().map(small) == Some(small(letter)));
        fits.then(|| start..text.len() - rest.as_str().len())
    })
}

#[cfg(test)]
mod tests;
