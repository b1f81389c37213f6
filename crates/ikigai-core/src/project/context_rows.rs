//! Context rows: the parts of a view that `summary` rows replace or shorten.

use std::collections::HashMap;

use crate::counts::counted;
use crate::data::{self, Elide, SummaryData, UserData, UserOrigin};
use crate::environment_block::without_blocks;
use crate::ids::{AgentId, RowRef};
use crate::kind::Kind;
use crate::load::Loaded;
use crate::message::Block;
use crate::path::Path;
use crate::view::{Entry, View};

/// Longest kept part of a line of an elided output, in bytes.
const ELIDED_LINE_BYTES: usize = 200;

/// Effect of the `summary` rows of a view that are in force.
pub(super) struct ContextRows {
    /// Index of an entry → index of the newest row that replaces it.
    replaced_by: HashMap<usize, usize>,
    /// Tool results → lines that are kept of their output.
    elided: HashMap<RowRef, Elide>,
    /// Index of a replacing row → first entry whose messages stay as typed.
    verbatim: HashMap<usize, Verbatim>,
}

/// Start of the user's own messages that a replacing row keeps.
#[derive(Clone, Copy)]
struct Verbatim {
    from: RowRef,
    /// Index in the view; 0 if the start lies before it.
    first: usize,
}

impl ContextRows {
    /// Reads the rows of a view; later rows win, and undone ones have no effect.
    pub(super) fn of(view: &View, path: &Path) -> Self {
        let place: HashMap<RowRef, usize> = view
            .entries()
            .iter()
            .enumerate()
            .map(|(index, entry)| (entry.at(), index))
            .collect();
        let mut found = Self {
            replaced_by: HashMap::new(),
            elided: HashMap::new(),
            verbatim: HashMap::new(),
        };
        for (index, summary) in in_force(view, &place) {
            let Some((from, to)) = summary.from.zip(summary.to) else {
                continue;
            };
            let Some(last) = place.get(&to).filter(|last| **last < index) else {
                continue;
            };
            // A range that begins before the view, unless its first row is not on the path at all.
            let first = match place.get(&from) {
                Some(first) => *first,
                None if path.is_complete() && !path.contains(from) => continue,
                None => 0,
            };
            if let Some(lines) = summary.elide.filter(|_| text_of_row(view, index).is_none()) {
                let range = (first..=*last).filter_map(|index| view.entries().get(index));
                let results = range.filter(|entry| entry.kind() == Some(Kind::ToolResult));
                found
                    .elided
                    .extend(results.map(|entry| (entry.at(), lines.clone())));
                continue;
            }
            let rows = (first..=*last).map(|covered| (covered, index));
            found.replaced_by.extend(rows);
            let verbatim = summary.verbatim_from.filter(|from| {
                place.contains_key(from) || !path.is_complete() || path.contains(*from)
            });
            if let Some(from) = verbatim {
                let first = place.get(&from).copied().unwrap_or(0);
                found.verbatim.insert(index, Verbatim { from, first });
            }
        }
        found
    }

    /// Returns the index of the row that replaces an entry.
    pub(super) fn replacing(&self, index: usize) -> Option<usize> {
        self.replaced_by.get(&index).copied()
    }

    /// Returns the kept lines of each elided tool result, by its row.
    pub(super) fn take_elided(&mut self) -> HashMap<RowRef, Elide> {
        std::mem::take(&mut self.elided)
    }

    /// Returns the last entry that each row replaces.
    pub(super) fn ends(&self) -> HashMap<usize, usize> {
        let mut ends = HashMap::new();
        for (index, summary) in &self.replaced_by {
            let end = ends.entry(*summary).or_insert(*index);
            *end = *index.max(end);
        }
        ends
    }

    /// Returns the user's own messages that the row at `summary` keeps, oldest first.
    pub(super) fn verbatim(&self, view: &View, summary: usize) -> Vec<(String, RowRef)> {
        let Some(start) = self.verbatim.get(&summary) else {
            return Vec::new();
        };
        let older = self.older_messages(view, summary).iter();
        let entries = view.entries().iter().enumerate().skip(start.first);
        let covered = entries.filter(|(index, _)| self.replacing(*index) == Some(summary));
        let rows = older.chain(covered.map(|(_, entry)| entry));
        rows.filter_map(own_message).collect()
    }

    /// Returns the rows before the view whose messages the row at `summary` keeps, oldest first.
    pub(super) fn older_messages<'a>(&self, view: &'a View, summary: usize) -> &'a [Entry] {
        let start = self.verbatim.get(&summary);
        let start = start.filter(|_| self.replacing(0) == Some(summary));
        let older = start.and_then(|start| view.older_messages(start.from));
        older.unwrap_or_default()
    }

    /// Returns the first older message that the replacement of the first entry lacks.
    pub(super) fn missing_from(&self, view: &View) -> Option<RowRef> {
        let start = self.verbatim.get(&self.replacing(0)?)?;
        let is_here = view.entries().iter().any(|entry| entry.at() == start.from);
        (!is_here && view.older_messages(start.from).is_none()).then_some(start.from)
    }
}

/// Returns the view's `summary` rows in force with their indices, oldest first.
fn in_force(view: &View, place: &HashMap<RowRef, usize>) -> Vec<(usize, SummaryData)> {
    let mut active: Vec<(usize, SummaryData)> = Vec::new();
    for (index, entry) in view.entries().iter().enumerate() {
        if entry.kind() == Some(Kind::Summary) {
            let summary: SummaryData = data::read(entry.row.data.as_deref());
            match summary.undo {
                Some(undone) => {
                    let undone = place.get(&undone);
                    active.retain(|(other, _)| Some(other) != undone);
                }
                None => active.push((index, summary)),
            }
        }
    }
    active
}

/// Returns the text of a user row that was typed or is a fork's prompt.
pub(super) fn own_message(entry: &Entry) -> Option<(String, RowRef)> {
    if entry.kind() != Some(Kind::User) {
        return None;
    }
    let user: UserData = data::read(entry.row.data.as_deref());
    let is_own = !matches!(user.origin, Some(UserOrigin::Mail | UserOrigin::Notice))
        && user.from.is_none()
        && user.shell.is_none()
        && user.merge.is_none();
    let Ok(Loaded::Message(part)) = &entry.loaded else {
        return None;
    };
    match part.message.blocks.first() {
        Some(Block::Text { text }) if is_own && !text.trim().is_empty() => {
            let text = without_blocks(text, &user);
            Some((text.to_owned(), entry.at()))
        }
        _ => None,
    }
}

fn text_of_row(view: &View, index: usize) -> Option<&str> {
    let text = view.entries().get(index)?.row.content.as_deref();
    text.filter(|text| !text.trim().is_empty())
}

/// Returns the text, or a cut's note, that replaces a row's range.
pub(super) fn replacement(view: &View, index: usize, own: AgentId) -> Option<String> {
    if let Some(text) = text_of_row(view, index) {
        return Some(text.to_owned());
    }
    let row = &view.entries().get(index)?.row;
    let summary: SummaryData = data::read(row.data.as_deref());
    let to = summary.to.filter(|_| summary.cut == Some(true))?;
    let to = row_name(to, own);
    Some(format!(
        "[The conversation up to {to} was left out because it did not fit the context. \
         Only the user's newest messages follow. Use `recall` with words to search it, \
         or with a row to open one.]"
    ))
}

/// Returns the name of a row for `recall`: `#12`, or with the id of another agent.
pub(super) fn row_name(row: RowRef, own: AgentId) -> String {
    if row.agent == own {
        format!("#{}", row.seq)
    } else {
        row.to_string()
    }
}

/// Returns the end of the note in an elided output.
fn note_end(row: &str) -> String {
    format!(" left out: recall {row}]")
}

/// Returns true if an output was elided; `row` is the name of its row.
pub(super) fn is_elided(output: &str, row: &str) -> bool {
    let end = note_end(row);
    output.lines().any(|line| line.ends_with(&end))
}

/// Adds a note about images that are left out; it names the row.
pub(super) fn with_left_out_images(output: &str, images: usize, row: &str) -> String {
    let gap = if output.is_empty() || output.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!(
        "{output}{gap}[{}{}",
        counted(images, "image"),
        note_end(row)
    )
}

/// Keeps first and last lines of an output, with a note naming the row.
///
/// None if that saves less than half.
pub(super) fn elide(output: &str, lines: &Elide, row: &str) -> Option<String> {
    let (head, tail) = (lines.head.unwrap_or(0), lines.tail.unwrap_or(0));
    let all: Vec<&str> = output.lines().collect();
    let head = usize::try_from(head).unwrap_or(usize::MAX).min(all.len());
    let tail = usize::try_from(tail).unwrap_or(usize::MAX);
    let tail = tail.min(all.len() - head);
    let kept: Vec<&str> = all[..head]
        .iter()
        .chain(&all[all.len() - tail..])
        .map(|line| &line[..line.floor_char_boundary(ELIDED_LINE_BYTES)])
        .collect();
    let left_out = output.len() - kept.iter().map(|line| line.len()).sum::<usize>();
    if left_out < output.len() / 2 {
        return None;
    }
    let size = if left_out < 1024 {
        format!("{left_out} bytes")
    } else {
        format!("{} KB", left_out.div_ceil(1024))
    };
    let note = format!("[{size}{}", note_end(row));
    let (first, last) = kept.split_at(head);
    let parts = first.iter().copied().chain([note.as_str()]);
    let parts: Vec<&str> = parts.chain(last.iter().copied()).collect();
    let text = parts.join("\n");
    (text.len() < output.len()).then_some(text)
}
