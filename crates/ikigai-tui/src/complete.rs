//! The list of completions below the input: when it is open, what is in it, and what is marked.
//!
//! It reads nothing. What there is to choose from is put into its [`Context`], and files come as
//! listings of the directories that it wants.

use std::ops::Range;

use ikigai_engine::commands::{
    Candidate, Command, Completes, Context, Takes, Wanted, complete, is_complete, wanted,
};

use crate::line::{Line, Span};
use crate::look::{Look, Role};
use crate::text::{clean, cut};
use crate::width::width;

/// How many entries are shown at once.
pub const ROWS: usize = 8;

/// How many files of one directory are looked at.
pub const MOST_FILES: usize = 1_000;

/// What a long entry is cut off with.
const MORE: &str = "…";

/// The list of completions.
#[derive(Clone, Debug, Default)]
pub struct Completion {
    /// What there is to choose from, but for files.
    pub context: Context,
    /// A directory as it is typed, and what is in it.
    listing: Option<(String, Vec<Candidate>)>,
    list: Option<List>,
    /// The word for which the list was closed: where it begins, and what was typed of it.
    closed: Option<(usize, String)>,
}

#[derive(Clone, Debug)]
struct List {
    wanted: Wanted,
    entries: Vec<Candidate>,
    marked: usize,
    /// The user chose the entry, it is not just the first.
    chosen: bool,
    /// The first entry that is shown.
    first: usize,
}

/// What taking an entry does to the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Which part of it is replaced.
    pub part: Range<usize>,
    /// By what.
    pub text: String,
}

impl Completion {
    /// The text or what there is to choose from has changed: opens the list if something can stand at
    /// the cursor, unless it was closed for this word.
    pub fn edited(&mut self, text: &str, cursor: usize) {
        let Some(wanted) = wanted(text, cursor) else {
            self.list = None;
            self.closed = None;
            self.listing = None;
            return;
        };
        let word = (wanted.from, wanted.typed.clone());
        if self.closed.as_ref() == Some(&word) {
            self.list = None;
            return;
        }
        self.closed = None;
        self.show(wanted, text, cursor);
    }

    /// The cursor has moved: the list stays only within its word.
    pub fn moved(&mut self, text: &str, cursor: usize) {
        let word = self.list.as_ref().map(|list| list.wanted.from);
        if word.is_some() && wanted(text, cursor).map(|wanted| wanted.from) == word {
            self.edited(text, cursor);
        } else {
            self.list = None;
        }
    }

    /// The user asks for the list; says whether there is one.
    pub fn ask(&mut self, text: &str, cursor: usize) -> bool {
        self.closed = None;
        self.edited(text, cursor);
        self.is_open()
    }

    /// Closes the list until the word changes; says whether it was open.
    pub fn close(&mut self) -> bool {
        let Some(list) = self.list.take() else {
            return false;
        };
        self.closed = Some((list.wanted.from, list.wanted.typed));
        true
    }

    /// Says whether the list is shown.
    pub fn is_open(&self) -> bool {
        self.list.is_some()
    }

    /// The directory whose files are wanted, as it is typed; empty for the agent's own.
    pub fn wants_directory(&self, text: &str, cursor: usize) -> Option<String> {
        let wanted = wanted(text, cursor)?;
        let directory = directory_of(&wanted)?;
        let is_listed = self
            .listing
            .as_ref()
            .is_some_and(|(listed, _)| listed == directory);
        (!is_listed).then(|| directory.to_owned())
    }

    /// Takes in what is in a directory: names, and whether each is a directory. Call
    /// [`Completion::edited`] after it.
    ///
    /// Names that cannot be typed as one word are left out.
    pub fn listed(&mut self, directory: &str, files: impl IntoIterator<Item = (String, bool)>) {
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

    /// Marks another entry, so many further down or up; going on from the end, it is the first.
    pub fn mark(&mut self, by: isize) {
        let Some(list) = &mut self.list else {
            return;
        };
        let end = list.entries.len().saturating_sub(1);
        list.marked = match list.marked.checked_add_signed(by) {
            Some(marked) if marked <= end => marked,
            Some(_) if list.marked == end && by == 1 => 0,
            Some(_) => end,
            None if list.marked == 0 && by == -1 => end,
            None => 0,
        };
        list.chosen = true;
        list.scroll();
    }

    /// Marks the entry in a row that is shown; says whether there is one.
    pub fn click(&mut self, row: usize) -> bool {
        let Some(list) = &mut self.list else {
            return false;
        };
        let entry = list.first + row;
        let is_there = row < ROWS && entry < list.entries.len();
        if is_there {
            list.marked = entry;
            list.chosen = true;
        }
        is_there
    }

    /// Says whether Enter takes the marked entry instead of running the line as it is typed.
    pub fn takes_enter(&self, text: &str, cursor: usize) -> bool {
        let Some(list) = &self.list else {
            return false;
        };
        list.chosen || !is_complete(text, cursor, &self.choices(&list.wanted))
    }

    /// Takes the marked entry. Of a directory the list then shows the files, else it is closed until
    /// the next word; call [`Completion::edited`] after the input was changed.
    pub fn take(&mut self, text: &str, cursor: usize) -> Option<Taken> {
        let list = self.list.take()?;
        let entry = list.entries.into_iter().nth(list.marked)?;
        let Wanted { what, from, .. } = list.wanted;
        let mut put = entry.text;
        let is_directory = is_path(what) && put.ends_with('/');
        if !is_directory {
            self.closed = Some((from, put.clone()));
            let further = match what {
                Completes::Commands if from == 1 => {
                    Command::find(&put).is_some_and(|command| command.takes != Takes::Nothing)
                }
                // After `@` the message goes on.
                Completes::Paths => !text.starts_with('/'),
                _ => false,
            };
            let behind = text.get(cursor..).unwrap_or_default();
            if further && !behind.starts_with(char::is_whitespace) {
                put.push(' ');
            }
        }
        Some(Taken {
            part: from..cursor,
            text: put,
        })
    }

    /// The rows of the list, at most [`ROWS`].
    pub fn lines(&self, columns: u16) -> Vec<Line> {
        let Some(list) = &self.list else {
            return Vec::new();
        };
        let shown = list.entries.iter().enumerate().skip(list.first).take(ROWS);
        let widest = shown.clone().map(|(_, entry)| width(&clean(&entry.text)));
        let most = usize::from(columns / 2).max(8);
        let texts = widest.max().unwrap_or(0).min(most);
        let mut lines: Vec<_> = shown
            .map(|(index, entry)| {
                let line = row(entry, index == list.marked, texts);
                cut(&line, columns, MORE)
            })
            .collect();
        if list.entries.len() > ROWS
            && let Some(last) = lines.last_mut()
        {
            let count = format!(" {}/{}", list.marked + 1, list.entries.len());
            let room = usize::from(columns).saturating_sub(width(&count));
            let room = u16::try_from(room).unwrap_or(columns);
            let mut line = cut(last, room, MORE);
            let used = width(&line.text());
            let gap = " ".repeat(usize::from(room).saturating_sub(used));
            line.spans.push(Span::new(gap, Role::Text));
            line.spans.push(Span::new(count, Role::Faint));
            *last = cut(&line, columns, "");
        }
        lines
    }

    fn show(&mut self, wanted: Wanted, text: &str, cursor: usize) {
        let entries = complete(text, cursor, &self.choices(&wanted));
        let only_typed = matches!(entries.as_slice(), [only] if only.text == wanted.typed);
        if entries.is_empty() || only_typed {
            self.list = None;
            return;
        }
        let before = self.list.take().filter(|list| list.wanted == wanted);
        let kept = before.and_then(|list| {
            let marked = list.entries.get(list.marked)?;
            let at = entries.iter().position(|entry| entry.text == marked.text)?;
            list.chosen.then_some((at, list.first))
        });
        let (marked, first) = kept.unwrap_or((0, 0));
        let mut list = List {
            wanted,
            entries,
            marked,
            chosen: kept.is_some(),
            first,
        };
        list.scroll();
        self.list = Some(list);
    }

    /// What there is to choose from for a word, with the files of its directory. Files whose names
    /// begin with a dot are there once the dot is typed.
    fn choices(&self, wanted: &Wanted) -> Context {
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

impl List {
    fn scroll(&mut self) {
        let lowest = self.entries.len().saturating_sub(ROWS);
        self.first = self
            .first
            .min(self.marked)
            .max((self.marked + 1).saturating_sub(ROWS))
            .min(lowest);
    }
}

/// The directory of a path that is being typed, as it is typed.
fn directory_of(wanted: &Wanted) -> Option<&str> {
    let end = wanted.typed.rfind('/').map_or(0, |slash| slash + 1);
    is_path(wanted.what).then(|| &wanted.typed[..end])
}

fn is_path(what: Completes) -> bool {
    matches!(what, Completes::Paths | Completes::Directories)
}

/// An entry, with its text in so many columns.
fn row(entry: &Candidate, marked: bool, columns: usize) -> Line {
    let (plain, hit) = if marked {
        let marked = Look::of(Role::Marked);
        (marked, marked.with(Look::BOLD).with(Look::UNDERLINE))
    } else {
        (Look::of(Role::Text), Look::of(Role::Match))
    };
    let sign = if marked { "> " } else { "  " };
    let mut text = Line::default();
    let mut hits = entry.matched.iter().copied().peekable();
    for (at, letter) in entry.text.char_indices() {
        let look = if hits.next_if_eq(&at).is_some() {
            hit
        } else {
            plain
        };
        let shown = &entry.text[at..at + letter.len_utf8()];
        match text.spans.last_mut() {
            Some(span) if span.look == look => span.text.push_str(shown),
            _ => text.spans.push(Span::new(shown, look)),
        }
    }
    for span in &mut text.spans {
        span.text = clean(&span.text).into_owned();
    }
    let mut line = cut(&text, u16::try_from(columns).unwrap_or(u16::MAX), MORE);
    let used = width(&line.text());
    line.spans.insert(0, Span::new(sign, plain));
    line.lead = 1;
    if !entry.help.is_empty() {
        let gap = columns.saturating_sub(used) + 2;
        let look = if marked { plain } else { Role::Faint.into() };
        let help = format!("{}{}", " ".repeat(gap), clean(&entry.help));
        line.spans
            .push(Span::new(help.replace(['\n', '\t'], " "), look));
    }
    line
}

#[cfg(test)]
mod tests;
