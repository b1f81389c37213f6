//! `View`: the rows of a path's newest part, loaded once, from which everything shown or sent is made.

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
    /// What it is for the conversation.
    pub loaded: Result<Loaded, LoadError>,
}

impl Entry {
    fn of(row: Row) -> Self {
        Self {
            loaded: load(&row),
            row: Arc::new(row),
        }
    }

    /// Where the row stands.
    pub fn at(&self) -> RowRef {
        self.row.at
    }

    /// The kind that the row is read as.
    pub fn kind(&self) -> Option<Kind> {
        self.row.kind.read_as()
    }
}

/// What a view needs to reach further back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wants {
    /// The newest `limit` rows of these spans, newest first, for [`View::prepend`].
    Rows {
        /// The spans, newest first.
        spans: Vec<Span>,
        /// How many rows at most.
        limit: usize,
    },
    /// More of the path must be known first.
    Path,
    /// Nothing: it holds the whole path.
    Nothing,
}

/// User rows that lie before a view and are sent as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OlderMessages {
    /// The first row asked for.
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
    /// The entries, oldest first.
    pub fn entries(&self) -> &VecDeque<Entry> {
        &self.entries
    }

    /// Takes in a row that the state has applied.
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

    /// What to read to have at most `limit` rows more.
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

    /// Takes in rows that [`View::wants`] asked for, newest first.
    pub fn prepend(&mut self, rows: Vec<Row>) {
        for row in rows {
            self.entries.push_front(Entry::of(row));
        }
    }

    /// Takes in the user rows from `from` up to the view's first row, oldest first.
    pub fn set_older_messages(&mut self, from: RowRef, rows: Vec<Row>) {
        let before = self.entries.front().map(Entry::at);
        let rows = rows.into_iter().map(Entry::of).collect();
        let older = before.map(|before| OlderMessages { from, before, rows });
        self.older = older.map(Box::new);
    }

    /// The user rows from `from` up to the view's first row, if they were read for this view.
    pub(crate) fn older_messages(&self, from: RowRef) -> Option<&[Entry]> {
        let older = self.older.as_ref()?;
        let fits = older.from == from && Some(older.before) == self.entries.front().map(Entry::at);
        fits.then_some(older.rows.as_slice())
    }

    /// Says whether the view holds the whole path.
    pub fn is_complete(&self, path: &Path) -> bool {
        self.wants(path, 1) == Wants::Nothing
    }

    /// Forgets all but the newest `keep` rows, so that memory does not follow history.
    pub fn shorten(&mut self, keep: usize) {
        let surplus = self.entries.len().saturating_sub(keep);
        self.entries.drain(..surplus);
    }

    /// What is wrong with an entry, if anything is.
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

    /// Says whether a rewind follows the row that it names, as a valid one does; none if the view
    /// begins with it and more lies before.
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

    /// The messages of the rows, in their order, as loaded.
    pub fn conversation(&self) -> Conversation {
        let mut conversation = Conversation::default();
        for entry in &self.entries {
            if let Ok(Loaded::Message(part)) = &entry.loaded {
                conversation.add(part.message.clone());
            }
        }
        conversation
    }

    /// What a person sees of the rows, in their order.
    pub fn scrollback(&self) -> impl Iterator<Item = Shown> + '_ {
        self.entries.iter().enumerate().map(|(index, entry)| {
            self.problem(index).map_or_else(
                || render_loaded(&entry.row, &entry.loaded),
                |error| Shown::warning(&entry.row, &error),
            )
        })
    }

    /// The rows that started turns, oldest first, as far as the view tells.
    pub fn turn_starts(&self, path: &Path) -> Vec<RowRef> {
        let starts = turn_starts(self, path, |_| false);
        let starts = starts
            .into_iter()
            .filter_map(|index| self.entries.get(index));
        starts.map(Entry::at).collect()
    }

    /// Says whether the agent is in the middle of a turn; none if the view is too short to tell.
    pub fn is_busy(&self, path: &Path) -> Option<bool> {
        let mut activity = Activity::at_start_of(self, path);
        for index in 0..self.entries.len() {
            activity.step(self, index);
        }
        activity.is_busy()
    }
}
