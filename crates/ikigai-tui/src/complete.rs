//! List of completions below the input: its state, entries and selection.
//!
//! It does no I/O. The caller puts candidates into its [`CompletionContext`] and lists the
//! directories that it requests.

use std::ops::Range;

use ikigai_engine::commands::{
    Candidate, Completes, CompletionContext, Takes, Wanted, complete, find, is_complete, wanted,
};

use crate::line::TextLine;
use crate::list::ChoiceList;

/// Most entries on the screen.
pub const ROWS: usize = 8;

/// Most entries on a tight screen.
pub const TIGHT_ROWS: usize = 3;

/// Most files read of one directory.
pub const MOST_FILES: usize = 1_000;

/// Names that are loaded for completion.
#[derive(Clone, Debug, Default)]
pub struct NamesToComplete {
    /// Models.
    pub models: Vec<Candidate>,
    /// Tools.
    pub tools: Vec<Candidate>,
    /// The user's and the project's commands and skills.
    pub callables: Vec<Candidate>,
}

/// The list of completions.
#[derive(Clone, Debug, Default)]
pub struct Completion {
    /// Candidates except files.
    pub context: CompletionContext,
    /// A directory as typed, and its entries.
    listing: Option<(String, Vec<Candidate>)>,
    open: Option<OpenList>,
    /// Word for which the user closed the list: start and typed part.
    closed: Option<(usize, String)>,
}

#[derive(Clone, Debug)]
struct OpenList {
    wanted: Wanted,
    list: ChoiceList,
    /// The user chose the entry, it is not just the first.
    chosen: bool,
}

/// Replacement that an entry makes in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedText {
    /// Replaced bytes.
    pub part: Range<usize>,
    /// Replacement.
    pub text: String,
}

impl Completion {
    /// Updates the list after a change of the text or the candidates.
    /// Opens it if there are candidates at the cursor, unless the user closed it for this word.
    pub fn follow_edit(&mut self, text: &str, cursor: usize) {
        let Some(wanted) = wanted(text, cursor) else {
            self.open = None;
            self.closed = None;
            self.listing = None;
            return;
        };
        let word = (wanted.from, wanted.typed.clone());
        if self.closed.as_ref() == Some(&word) {
            self.open = None;
            return;
        }
        self.closed = None;
        self.show(wanted, text, cursor);
    }

    /// Updates the list after a cursor move: it stays open only within its word.
    pub fn follow_cursor(&mut self, text: &str, cursor: usize) {
        let word = self.open.as_ref().map(|open| open.wanted.from);
        if word.is_some() && wanted(text, cursor).map(|wanted| wanted.from) == word {
            self.follow_edit(text, cursor);
        } else {
            self.open = None;
        }
    }

    /// Opens the list on request; returns false if there are no candidates.
    pub fn ask(&mut self, text: &str, cursor: usize) -> bool {
        self.closed = None;
        self.follow_edit(text, cursor);
        self.is_open()
    }

    /// Closes the list until the word changes; returns false if it was not open.
    pub fn close(&mut self) -> bool {
        let Some(open) = self.open.take() else {
            return false;
        };
        self.closed = Some((open.wanted.from, open.wanted.typed));
        true
    }

    /// Returns true if the list is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns the directory to list, as typed; empty for the agent's own.
    pub fn wants_directory(&self, text: &str, cursor: usize) -> Option<String> {
        let wanted = wanted(text, cursor)?;
        let directory = directory_of(&wanted)?;
        let is_listed = self
            .listing
            .as_ref()
            .is_some_and(|(listed, _)| listed == directory);
        (!is_listed).then(|| directory.to_owned())
    }

    /// Takes the entries of a directory: names, each with a directory flag.
    /// Call [`Completion::follow_edit`] after it.
    ///
    /// Omits names that cannot be typed as one word.
    pub fn set_listing(
        &mut self,
        directory: &str,
        files: impl IntoIterator<Item = (String, bool)>,
    ) {
        let files = files.into_iter().take(MOST_FILES);
        let typable = |name: &str| !name.contains(|c: char| c.is_whitespace() || c.is_control());
        let mut paths: Vec<Candidate> = files
            .filter(|(name, _)| typable(name))
            .map(|(name, is_directory)| {
                let end = if is_directory { "/" } else { "" };
                format!("{directory}{name}{end}").into()
            })
            .collect();
        paths.sort_by(|a, b| a.text.cmp(&b.text));
        self.listing = Some((directory.to_owned(), paths));
    }

    /// Moves the selection; it wraps at the ends.
    pub fn mark(&mut self, by: isize) {
        if let Some(open) = &mut self.open {
            open.list.mark(by);
            open.chosen = true;
        }
    }

    /// Selects the entry in a visible row; returns false if there is none.
    pub fn click(&mut self, row: usize) -> bool {
        let Some(open) = &mut self.open else {
            return false;
        };
        let is_there = open.list.click(row);
        open.chosen |= is_there;
        is_there
    }

    /// Returns true if Enter takes the selected entry instead of running the line.
    pub fn takes_enter(&self, text: &str, cursor: usize) -> bool {
        let Some(open) = &self.open else {
            return false;
        };
        open.chosen || !is_complete(text, cursor, &self.choices(&open.wanted))
    }

    /// Takes the selected entry. A directory opens the list of its files; otherwise the list closes
    /// until the next word. Call [`Completion::follow_edit`] after changing the input.
    pub fn take(&mut self, text: &str, cursor: usize) -> Option<CompletedText> {
        let open = self.open.take()?;
        let entry = open.list.into_marked()?;
        let Wanted { what, from, .. } = open.wanted;
        let mut put = entry.text;
        let is_directory = is_path(what) && put.ends_with('/');
        if !is_directory {
            self.closed = Some((from, put.clone()));
            let further = match what {
                Completes::Commands if from == 1 => {
                    find(&put).is_some_and(|command| command.takes != Takes::Nothing)
                }
                // After `@` the message continues.
                Completes::Paths => !text.starts_with('/'),
                _ => false,
            };
            let behind = text.get(cursor..).unwrap_or_default();
            if further && !behind.starts_with(char::is_whitespace) {
                put.push(' ');
            }
        }
        Some(CompletedText {
            part: from..cursor,
            text: put,
        })
    }

    /// Returns the rows of the list around the selected entry.
    pub fn lines(&mut self, columns: u16, rows: usize) -> Vec<TextLine> {
        let Some(open) = &mut self.open else {
            return Vec::new();
        };
        open.list.set_rows(rows);
        open.list.counted_lines(columns)
    }

    fn show(&mut self, wanted: Wanted, text: &str, cursor: usize) {
        let entries = complete(text, cursor, &self.choices(&wanted));
        let only_typed = matches!(entries.as_slice(), [only] if only.text == wanted.typed);
        if entries.is_empty() || only_typed {
            self.open = None;
            return;
        }
        let before = self.open.take().filter(|open| open.wanted == wanted);
        let before = before.filter(|open| open.chosen).map(|open| open.list);
        let mut list = ChoiceList::new(entries, ROWS);
        let chosen = before.is_some_and(|before| list.mark_as(&before));
        self.open = Some(OpenList {
            wanted,
            list,
            chosen,
        });
    }

    /// Returns the candidates for a word, with the files of its directory. Dotfiles appear once the
    /// dot is typed.
    fn choices(&self, wanted: &Wanted) -> CompletionContext {
        let mut context = self.context.clone();
        context.paths = match (directory_of(wanted), &self.listing) {
            (Some(directory), Some((listed, paths))) if directory == listed => {
                let has_dot = |path: &str| {
                    let name = path.strip_prefix(listed.as_str());
                    name.is_some_and(|name| name.starts_with('.'))
                };
                let typed_dot = has_dot(&wanted.typed);
                let shown = paths
                    .iter()
                    .filter(|path| typed_dot || !has_dot(&path.text));
                shown.cloned().collect()
            }
            _ => Vec::new(),
        };
        context
    }
}

/// Returns the directory part of a path being typed.
fn directory_of(wanted: &Wanted) -> Option<&str> {
    let end = wanted.typed.rfind('/').map_or(0, |slash| slash + 1);
    is_path(wanted.what).then(|| &wanted.typed[..end])
}

fn is_path(what: Completes) -> bool {
    matches!(what, Completes::Paths | Completes::Directories)
}

#[cfg(test)]
mod tests;
