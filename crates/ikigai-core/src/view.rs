//! `View`: loaded rows of a path's newest part, for display and requests.

#[cfg(test)]
mod tests;
mod turns;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::data::{self, RewindData};
use crate::event::Row;
use crate::ids::{RowRef, Seq};
use crate::kind::Kind;
use crate::load::{LoadError, Loaded, load};
use crate::message::Conversation;
use crate::path::Path;
use crate::query::Span;
use crate::render::{Shown, render_loaded};
use crate::state::Change;

use self::turns::Activity;
pub(crate) use self::turns::turn_starts;

/// One row of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The row as stored.
    pub row: Arc<Row>,
    /// The conversation part of the row.
    pub loaded: Result<Loaded, LoadError>,
}

impl Entry {
    fn of(row: Row) -> Self {
        Self {
            loaded: load(&row),
            row: Arc::new(row),
        }
    }

    /// Returns the reference of the row.
    pub fn at(&self) -> RowRef {
        self.row.at
    }

    /// Returns the kind that the row is read as.
    pub fn kind(&self) -> Option<Kind> {
        self.row.kind.read_as()
    }
}

/// Next read of a view that has to reach further back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wants {
    /// The newest `limit` rows of these spans, newest first, for [`View::prepend`].
    Rows {
        /// The spans, newest first.
        spans: Vec<Span>,
        /// Largest number of rows.
        limit: usize,
    },
    /// More of the path must be resolved first.
    Path,
    /// None: the view holds the whole path.
    Nothing,
}

/// User rows before a view that are sent as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OlderMessages {
    /// The first requested row.
    from: RowRef,
    /// The first row of the view they were read for.
    before: RowRef,
    rows: Vec<Entry>,
}

/// The tail of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    entries: VecDeque<Entry>,
    older: Option<Box<OlderMessages>>,
}

impl View {
    /// Returns the entries, oldest first.
    pub fn entries(&self) -> &VecDeque<Entry> {
        &self.entries
    }

    /// Adds a row that the state has applied.
    pub fn apply(&mut self, row: Row, change: Change) {
        match change {
            Change::Appended => {}
            Change::Cleared => self.entries.clear(),
            Change::WentBack(target) => {
                let kept = self.entries.iter().rposition(|entry| entry.at() == target);
                self.entries.truncate(kept.map_or(0, |index| index + 1));
            }
        }
        self.entries.push_back(Entry::of(row));
    }

    /// Returns the read that adds at most `limit` older rows.
    pub fn wants(&self, path: &Path, limit: usize) -> Wants {
        let spans = path.spans_before(self.entries.front().map(Entry::at), limit.max(1));
        if !spans.is_empty() {
            Wants::Rows { spans, limit }
        } else if path.is_complete() {
            Wants::Nothing
        } else {
            Wants::Path
        }
    }

    /// Adds rows that [`View::wants`] asked for, newest first.
    pub fn prepend(&mut self, rows: Vec<Row>) {
        for row in rows {
            self.entries.push_front(Entry::of(row));
        }
    }

    /// Sets the user rows from `from` up to the view's first row, oldest first.
    pub fn set_older_messages(&mut self, from: RowRef, rows: Vec<Row>) {
        let before = self.entries.front().map(Entry::at);
        let rows = rows.into_iter().map(Entry::of).collect();
        let older = before.map(|before| OlderMessages { from, before, rows });
        self.older = older.map(Box::new);
    }

    /// Returns the user rows from `from` to this view, if they were read.
    pub(crate) fn older_messages(&self, from: RowRef) -> Option<&[Entry]> {
        let older = self.older.as_ref()?;
        let fits = older.from == from && Some(older.before) == self.entries.front().map(Entry::at);
        fits.then_some(older.rows.as_slice())
    }

    /// Returns true if the view holds the whole path.
    pub fn is_complete(&self, path: &Path) -> bool {
        self.wants(path, 1) == Wants::Nothing
    }

    /// Drops all but the newest `keep` rows, so that memory does not grow with history.
    pub fn shorten(&mut self, keep: usize) {
        let surplus = self.entries.len().saturating_sub(keep);
        self.entries.drain(..surplus);
    }

    /// Returns the problem of an entry, if it has one.
    pub fn problem(&self, index: usize) -> Option<LoadError> {
        let entry = self.entries.get(index)?;
        if let Err(error) = &entry.loaded {
            return Some(error.clone());
        }
        if entry.kind() != Some(Kind::Rewind) || self.follows_its_target(index) != Some(false) {
            return None;
        }
        Some(LoadError::RewindTarget)
    }

    /// Returns true if a rewind follows its target, as a valid one does.
    ///
    /// None if the view begins with it and does not hold the rows before.
    pub(crate) fn follows_its_target(&self, index: usize) -> Option<bool> {
        let rewind = self.entries.get(index)?;
        let Some(previous) = index
            .checked_sub(1)
            .and_then(|older| self.entries.get(older))
        else {
            return (rewind.at().seq == Seq(1)).then_some(false);
        };
        let target = data::read::<RewindData>(rewind.row.data.as_deref()).target;
        Some(target == Some(previous.at()))
    }

    /// Returns the messages of the rows, in order, as loaded.
    pub fn conversation(&self) -> Conversation {
        let mut conversation = Conversation::default();
        for entry in &self.entries {
            if let Ok(Loaded::Message(part)) = &entry.loaded {
                conversation.add(part.message.clone());
            }
        }
        conversation
    }

    /// Returns the display forms of the rows, in order.
    pub fn scrollback(&self) -> impl Iterator<Item = Shown> + '_ {
        self.entries.iter().enumerate().map(|(index, entry)| {
            self.problem(index).map_or_else(
                || render_loaded(&entry.row, &entry.loaded),
                |error| Shown::warning(&entry.row, &error),
            )
        })
    }

    /// Returns the rows that started turns, oldest first, as far as the view shows them.
    pub fn turn_starts(&self, path: &Path) -> Vec<RowRef> {
        let starts = turn_starts(self, path, |_| false);
        let starts = starts
            .into_iter()
            .filter_map(|index| self.entries.get(index));
        starts.map(Entry::at).collect()
    }

    /// Returns true if a turn is running; none if the view is too short to decide.
    pub fn is_busy(&self, path: &Path) -> Option<bool> {
        let mut activity = Activity::at_start_of(self, path);
        for index in 0..self.entries.len() {
            activity.step(self, index);
        }
        activity.is_busy()
    }
}
