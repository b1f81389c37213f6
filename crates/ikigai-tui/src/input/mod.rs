//! Multi-line editor, independent of the terminal.

mod clip;
mod display_text;
mod history;
mod rows;
mod undo_stack;

use std::ops::Range;

use thiserror::Error;

use crate::line::{TextLine, TextSpan};
use crate::look::Tone;
use crate::width::pieces;

use clip::Clip;
pub use history::{HistorySearch, InputHistory};
use rows::{EditorRows, units};
use undo_stack::{EditStep, Kills, StepSide, Steps};

/// Size limit of the input with folds expanded; larger texts belong in a file.
pub const LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// A paste of more lines is folded.
const PLAIN_LINES: usize = 8;
/// A paste of more characters is folded.
const PLAIN_CHARACTERS: usize = 1_000;

/// Effect of a key on the text or the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EditCommand {
    /// Inserts a newline.
    Newline,
    /// Deletes the grapheme before the cursor.
    Backspace,
    /// Deletes the grapheme behind the cursor.
    DeleteForward,
    /// Moves by a grapheme.
    Left,
    /// Moves by a grapheme.
    Right,
    /// Moves to the beginning of a word.
    WordLeft,
    /// Moves to the end of a word.
    WordRight,
    /// Moves to the beginning of the line.
    LineStart,
    /// Moves to the end of the line.
    LineEnd,
    /// Moves to the beginning of the text.
    TextStart,
    /// Moves to the end of the text.
    TextEnd,
    /// Moves to the visible row above.
    Up,
    /// Moves to the visible row below.
    Down,
    /// Kills up to the end of the line, or its newline.
    KillToEnd,
    /// Kills back to the beginning of the line, or the newline before it.
    KillToStart,
    /// Kills back to the beginning of a word.
    KillWordBack,
    /// Kills up to the end of a word.
    KillWordForward,
    /// Inserts the last kill.
    Yank,
    /// Replaces the inserted kill by an older one.
    YankPop,
    /// Undoes the last step.
    Undo,
    /// Redoes the last undone step.
    Redo,
}

/// The input would exceed its size limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the text is too large: the input takes 16 MB")]
pub struct TooLarge;

/// Visible rows of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorLayout {
    /// Their text.
    pub rows: Vec<TextLine>,
    /// Cursor: visible row and column.
    pub cursor: (usize, usize),
    /// Number of rows above the visible ones.
    pub first_row: usize,
    /// Number of rows in total.
    pub total_rows: usize,
}

/// Saved text with its cursor and undo history.
#[derive(Clone, Debug, Default)]
pub struct Unsent {
    text: Clip,
    cursor: usize,
    steps: Steps,
}

impl From<&str> for Unsent {
    /// Creates a text with the cursor at its end.
    fn from(text: &str) -> Self {
        let text = Clip::plain(without_returns(text));
        Self {
            cursor: text.len(),
            text,
            steps: Steps::default(),
        }
    }
}

/// Text with a cursor, kill ring and undo history.
///
/// Invariant: the cursor is at a grapheme boundary and not within a fold; the text has no carriage
/// return.
#[derive(Clone, Debug, Default)]
pub struct Editor {
    text: Clip,
    cursor: usize,
    steps: Steps,
    kills: Kills,
    rows: EditorRows,
    /// First visible row.
    first_row: usize,
    last: Last,
    /// Column that up and down keep.
    column: Option<usize>,
}

/// Last command, as far as it affects the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Other,
    Typed,
    Erased,
    Killed,
    /// Inserted a kill, `back` steps older than the newest.
    Yanked {
        at: Range<usize>,
        back: usize,
    },
}

impl Editor {
    /// Returns the full text, with folds expanded.
    pub fn text(&self) -> String {
        self.text.whole()
    }

    /// Returns the text with folds as labels.
    pub fn shown(&self) -> &str {
        self.text.text()
    }

    /// Returns true if there is no text.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the byte offset of the cursor in the text with folds as labels.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Moves the cursor to a byte offset, or to the next valid position.
    pub fn move_to(&mut self, at: usize) {
        self.cursor = self.text.cursor_place(at.min(self.text.len()));
        self.did(Last::Other);
    }

    /// Replaces the whole text and moves to its end; can be undone.
    pub fn set(&mut self, text: &str) {
        let text = Clip::plain(without_returns(text));
        self.change(0..self.text.len(), &text, Last::Other);
    }

    /// Takes the full text out; undo cannot restore it. Keeps the kill ring.
    pub fn take(&mut self) -> String {
        self.restore(Unsent::default()).text.whole()
    }

    /// Kills the whole text.
    pub fn clear(&mut self) {
        self.did(Last::Other);
        self.kill(0..self.text.len(), StepSide::Behind);
        self.did(Last::Other);
    }

    /// Saves the text and the cursor.
    pub fn unsent(&self) -> Unsent {
        Unsent {
            text: self.text.clone(),
            cursor: self.cursor,
            steps: self.steps.clone(),
        }
    }

    /// Replaces the text by a saved one and returns the old one. Keeps the kill ring.
    pub fn restore(&mut self, unsent: Unsent) -> Unsent {
        let after = Self {
            rows: self.rows.of(&unsent.text),
            text: unsent.text,
            cursor: unsent.cursor,
            steps: unsent.steps,
            ..Self::default()
        };
        let before = std::mem::replace(self, after);
        self.kills = before.kills;
        Unsent {
            text: before.text,
            cursor: before.cursor,
            steps: before.steps,
        }
    }

    /// Inserts typed text; returns false if there is no room.
    pub fn insert(&mut self, text: &str) -> bool {
        let text = Clip::plain(without_returns(text));
        self.change(self.cursor..self.cursor, &text, Last::Typed)
    }

    /// Inserts pasted text verbatim; folds it if it is long.
    pub fn paste(&mut self, text: &str) -> Result<(), TooLarge> {
        let text = without_returns(text);
        let clip = match label(&text) {
            Some(label) => Clip::folded(&text, label),
            None => Clip::plain(text),
        };
        if self.change(self.cursor..self.cursor, &clip, Last::Other) {
            Ok(())
        } else {
            Err(TooLarge)
        }
    }

    /// Replaces a part of the text, and moves to its end; returns false without room.
    /// Offsets count folds as labels. A fold that the part touches is replaced too.
    pub fn replace(&mut self, part: Range<usize>, text: &str) -> bool {
        let length = self.text.len();
        let (start, end) = (part.start.min(length), part.end.min(length));
        let start = self.text.text().floor_char_boundary(start);
        let fold = self.text.fold_around(start);
        let start = fold.map_or(start, |fold| fold.start);
        let end = self.text.cursor_place(end.max(start));
        let text = Clip::plain(without_returns(text));
        self.change(start..end, &text, Last::Other)
    }

    /// Returns true if `\` is right before the cursor, so that Enter makes a newline.
    pub fn ends_with_backslash(&self) -> bool {
        self.shown()[..self.cursor].ends_with('\\')
    }

    /// Replaces the `\` before the cursor by a newline; returns false if there is none.
    pub fn continue_line(&mut self) -> bool {
        self.ends_with_backslash() && self.replace(self.cursor - 1..self.cursor, "\n")
    }

    /// Executes a command. Returns false if it had no effect, such as up in the first row.
    pub fn apply(&mut self, edit: EditCommand) -> bool {
        let at = self.cursor;
        match edit {
            EditCommand::Newline => self.change(at..at, &Clip::plain("\n"), Last::Other),
            EditCommand::Backspace => match self.text.left(at) {
                Some(start) => self.change(start..at, &Clip::default(), Last::Erased),
                None => self.nothing(),
            },
            EditCommand::DeleteForward => match self.text.right(at) {
                Some(end) => self.change(at..end, &Clip::default(), Last::Other),
                None => self.nothing(),
            },
            EditCommand::Left => self.go(self.text.left(at).unwrap_or(at)),
            EditCommand::Right => self.go(self.text.right(at).unwrap_or(at)),
            EditCommand::WordLeft => self.go(self.text.word_left(at)),
            EditCommand::WordRight => self.go(self.text.word_right(at)),
            EditCommand::LineStart => self.go(self.text.line_start(at)),
            EditCommand::LineEnd => self.go(self.text.line_end(at)),
            EditCommand::TextStart => self.go(0),
            EditCommand::TextEnd => self.go(self.text.len()),
            EditCommand::Up => self.vertical(StepSide::Before),
            EditCommand::Down => self.vertical(StepSide::Behind),
            EditCommand::KillToEnd => {
                let end = match self.text.line_end(at) {
                    end if end == at => self.text.right(at).unwrap_or(at),
                    end => end,
                };
                self.kill(at..end, StepSide::Behind)
            }
            EditCommand::KillToStart => {
                let start = match self.text.line_start(at) {
                    start if start == at => self.text.left(at).unwrap_or(at),
                    start => start,
                };
                self.kill(start..at, StepSide::Before)
            }
            EditCommand::KillWordBack => self.kill(self.text.word_left(at)..at, StepSide::Before),
            EditCommand::KillWordForward => {
                self.kill(at..self.text.word_right(at), StepSide::Behind)
            }
            EditCommand::Yank => self.yank(at..at, 0),
            EditCommand::YankPop => match self.last.clone() {
                Last::Yanked { at, back } => self.yank(at, back + 1),
                _ => self.nothing(),
            },
            EditCommand::Undo => self.undo(),
            EditCommand::Redo => self.redo(),
        }
    }

    /// Wraps the text into rows; returns at most `max_rows` around the cursor.
    /// After a change it costs the changed line, otherwise the visible rows.
    pub fn layout(&mut self, width: u16, max_rows: u16) -> EditorLayout {
        self.rows.fit(&self.text, usize::from(width));
        let most = usize::from(max_rows).max(1);
        let total_rows = self.rows.count();
        let (row, column) = self.rows.locate(&self.text, self.cursor);
        self.first_row = self
            .first_row
            .min(row)
            .max((row + 1).saturating_sub(most))
            .min(total_rows.saturating_sub(most));
        let end = total_rows.min(self.first_row + most);
        EditorLayout {
            rows: (self.first_row..end).map(|row| self.line(row)).collect(),
            cursor: (row - self.first_row, column),
            first_row: self.first_row,
            total_rows,
        }
    }

    /// Returns the text in one row, scrolled to the cursor, and the cursor's column.
    pub fn one_row(&mut self, width: u16) -> (TextLine, u16) {
        let layout = self.layout(u16::MAX, 1);
        let most = usize::from(width).saturating_sub(1);
        let column = layout.cursor.1;
        let mut line = layout.rows.into_iter().next().unwrap_or_default();
        let mut left_out = 0;
        for span in &mut line.spans {
            let mut end = 0;
            for piece in pieces(&span.text) {
                if column - left_out <= most {
                    break;
                }
                left_out += usize::from(piece.width);
                end = piece.end;
            }
            span.text.drain(..end);
        }
        (line, u16::try_from(column - left_out).unwrap_or(width))
    }

    /// Moves the cursor to a visible row and a column.
    pub fn click(&mut self, row: usize, column: usize) {
        let row = (self.first_row + row).min(self.rows.count() - 1);
        let at = self.rows.place(&self.text, row, column);
        let at = match self.text.fold_around(at) {
            Some(fold) if at - fold.start < fold.end - at => fold.start,
            Some(fold) => fold.end,
            None => at,
        };
        self.move_to(at);
    }

    fn line(&self, row: usize) -> TextLine {
        let range = self.rows.range(&self.text, row);
        let mut line = TextLine::default();
        let (mut at, mut column) = (range.start, 0);
        for unit in units(&self.text, range) {
            let (text, columns) = self.rows.display(unit, column);
            let folded = self.text.piece_end(at).1;
            let plain = !folded && (text == unit || unit == "\t");
            let look = if plain { Tone::Text } else { Tone::Faint }.into();
            match line.spans.last_mut() {
                Some(span) if span.look == look => span.text.push_str(&text),
                _ => line.spans.push(TextSpan::new(text, look)),
            }
            at += unit.len();
            column += columns;
        }
        line.joined = self.rows.continues(&self.text, row).then_some("");
        line
    }

    fn nothing(&mut self) -> bool {
        self.did(Last::Other);
        false
    }

    fn did(&mut self, last: Last) {
        self.last = last;
        self.column = None;
    }

    fn go(&mut self, to: usize) -> bool {
        let moves = self.cursor != to;
        self.cursor = to;
        self.did(Last::Other);
        moves
    }

    fn vertical(&mut self, side: StepSide) -> bool {
        let (row, column) = self.rows.locate(&self.text, self.cursor);
        let next = match side {
            StepSide::Before => row.checked_sub(1),
            StepSide::Behind => Some(row + 1).filter(|next| *next < self.rows.count()),
        };
        let column = self.column.unwrap_or(column);
        self.did(Last::Other);
        let Some(next) = next else {
            return false;
        };
        self.column = Some(column);
        let at = self.rows.place(&self.text, next, column);
        self.cursor = match (self.text.fold_around(at), side) {
            (Some(fold), StepSide::Before) => fold.start,
            (Some(fold), StepSide::Behind) => fold.end,
            (None, _) => at,
        };
        true
    }

    /// Replaces a part as an undo step, and moves the cursor behind it.
    fn change(&mut self, part: Range<usize>, by: &Clip, last: Last) -> bool {
        let goes_on = last == self.last && matches!(last, Last::Typed | Last::Erased);
        self.did(Last::Other);
        if part.is_empty() && by.is_empty() {
            return true;
        }
        let added = by.whole_len();
        if added > 0 && self.text.whole_len() + added > LIMIT_BYTES + part.len() {
            return false;
        }
        let change = EditStep {
            at: part.start,
            cursor: self.cursor,
            removed: self.put(part, by),
            inserted: by.clone(),
        };
        self.steps.add(change, goes_on);
        self.last = last;
        true
    }

    /// Replaces a part and moves the cursor behind it; returns the old part.
    fn put(&mut self, part: Range<usize>, by: &Clip) -> Clip {
        let at = part.start;
        let removed = self.text.replace(part, by);
        self.rows.changed(&self.text, at, removed.len(), by.len());
        self.cursor = self.text.cursor_place(at + by.len());
        removed
    }

    /// Kills a part. An empty one does not end a sequence of kills.
    fn kill(&mut self, part: Range<usize>, side: StepSide) -> bool {
        if part.is_empty() {
            self.column = None;
            return false;
        }
        let joins = self.last == Last::Killed;
        self.kills.add(&self.text.part(part.clone()), side, joins);
        self.change(part, &Clip::default(), Last::Killed)
    }

    fn yank(&mut self, part: Range<usize>, back: usize) -> bool {
        let Some(kill) = self.kills.nth(back).cloned() else {
            return self.nothing();
        };
        let at = part.start..part.start + kill.len();
        self.change(part, &kill, Last::Yanked { at, back })
    }

    fn undo(&mut self) -> bool {
        self.did(Last::Other);
        let Some(change) = self.steps.undo().cloned() else {
            return false;
        };
        self.put(
            change.at..change.at + change.inserted.len(),
            &change.removed,
        );
        self.cursor = change.cursor;
        true
    }

    fn redo(&mut self) -> bool {
        self.did(Last::Other);
        let Some(change) = self.steps.redo().cloned() else {
            return false;
        };
        self.put(
            change.at..change.at + change.removed.len(),
            &change.inserted,
        );
        true
    }
}

/// Normalizes line ends to newlines.
fn without_returns(text: &str) -> String {
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text.to_owned()
    }
}

/// Returns the label of a paste, if it is long enough to fold.
fn label(text: &str) -> Option<String> {
    let lines = text.lines().count();
    if lines > PLAIN_LINES {
        return Some(format!("[paste: {} lines]", with_commas(lines)));
    }
    let characters = text.chars().count();
    let long = characters > PLAIN_CHARACTERS;
    long.then(|| format!("[paste: {} characters]", with_commas(characters)))
}

fn with_commas(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;
