//! Where the rows of the input begin: lines wrapped by cells.

use std::borrow::Cow;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::clip::Clip;
use super::shown::shown;

/// Where the rows of a text begin at some width.
///
/// Invariant: if `width` is not 0, `starts` is what wrapping the whole text afresh would give. A line
/// that fills its last row has one more, empty row, because the cursor stands there at its end.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    width: usize,
    starts: Vec<usize>,
}

impl Rows {
    /// Wraps the text, if that was not done for this width.
    pub(super) fn fit(&mut self, clip: &Clip, width: usize) {
        let width = width.max(1);
        if self.width == width {
            return;
        }
        self.width = width;
        self.starts.clear();
        self.wrap(clip, 0, clip.len());
    }

    /// The rows of another text at the same width.
    pub(super) fn of(&self, clip: &Clip) -> Self {
        let mut rows = Self::default();
        if self.width > 0 {
            rows.fit(clip, self.width);
        }
        rows
    }

    /// Wraps again what a change touched: from two rows above it up to the end of its last line. The
    /// rows below just move.
    pub(super) fn changed(&mut self, clip: &Clip, at: usize, removed: usize, inserted: usize) {
        if self.width == 0 {
            return;
        }
        let mut first = self.row_of(at);
        // A mark that joins the last grapheme of a row can change its width, and so let it stand one
        // row higher.
        for _ in 0..2 {
            first -= usize::from(self.continues(clip, first));
        }
        let from = self.starts.get(first).copied().unwrap_or_default();
        let end = clip.line_end(at + inserted);
        let end_before = end + removed - inserted;
        let below = self.starts.partition_point(|start| *start <= end_before);
        let rest = self.starts.split_off(below);
        self.starts.truncate(first);
        self.wrap(clip, from, end);
        let moved = rest.into_iter().map(|start| start + inserted - removed);
        self.starts.extend(moved);
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> usize {
        self.starts.len().max(1)
    }

    /// In which row a place is.
    pub(super) fn row_of(&self, at: usize) -> usize {
        let below = self.starts.partition_point(|start| *start <= at);
        below.saturating_sub(1)
    }

    /// What is in a row, without its newline.
    pub(super) fn range(&self, clip: &Clip, row: usize) -> Range<usize> {
        let start = self.starts.get(row).copied().unwrap_or(clip.len());
        let end = self.starts.get(row + 1).copied().unwrap_or(clip.len());
        let newline = clip.text()[start..end].ends_with('\n');
        start..end - usize::from(newline)
    }

    /// Says whether a row continues the line of the row above it.
    pub(super) fn continues(&self, clip: &Clip, row: usize) -> bool {
        let start = self.starts.get(row).copied();
        row > 0 && start.is_some_and(|start| !clip.text()[..start].ends_with('\n'))
    }

    /// The row and column of a place.
    pub(super) fn locate(&self, clip: &Clip, at: usize) -> (usize, usize) {
        let row = self.row_of(at);
        let start = self.range(clip, row).start;
        let mut column = 0;
        for unit in units(clip, start..at.max(start)) {
            column += self.shown(unit, column).1;
        }
        (row, column)
    }

    /// The place at a column of a row: the one before what covers the column, or the last of the row.
    /// It may be within a fold.
    pub(super) fn place(&self, clip: &Clip, row: usize, wanted: usize) -> usize {
        let range = self.range(clip, row);
        let mut at = range.start;
        let mut column = 0;
        for unit in units(clip, range.clone()) {
            let end = column + self.shown(unit, column).1;
            // The end of a row that is continued is the beginning of the next one.
            let last = at + unit.len() == range.end && self.continues(clip, row + 1);
            if end > wanted || last {
                return at;
            }
            at += unit.len();
            column = end;
        }
        at
    }

    /// What is shown for a grapheme in this column, and how many cells it takes.
    pub(super) fn shown<'a>(&self, unit: &'a str, column: usize) -> (Cow<'a, str>, usize) {
        shown(unit, column, self.width)
    }

    /// Wraps the lines from the beginning of a row up to the end of a line.
    fn wrap(&mut self, clip: &Clip, from: usize, to: usize) {
        self.starts.push(from);
        let mut at = from;
        let mut column = 0;
        while at < to {
            // Plain letters are counted, not looked at one by one: a line may have megabytes.
            let mut plain = plain_run(clip, at..to);
            let room = self.width - column;
            if plain > room {
                at += room;
                self.starts.push(at);
                plain -= room;
                let full = (plain - 1) / self.width;
                self.starts
                    .extend((1..=full).map(|row| at + row * self.width));
                at += plain;
                column = plain - full * self.width;
                continue;
            }
            if plain > 0 {
                at += plain;
                column += plain;
                continue;
            }
            let Some(unit) = units(clip, at..to).next() else {
                break;
            };
            if unit == "\n" {
                if column == self.width {
                    self.starts.push(at);
                }
                self.starts.push(at + 1);
                column = 0;
            } else {
                let mut columns = self.shown(unit, column).1;
                if columns > room {
                    self.starts.push(at);
                    column = 0;
                    columns = self.shown(unit, 0).1;
                }
                column += columns;
            }
            at += unit.len();
        }
        if column == self.width {
            self.starts.push(to);
        }
    }
}

/// How many graphemes from here on are plain letters of one cell and one byte each.
fn plain_run(clip: &Clip, part: Range<usize>) -> usize {
    let end = clip.piece_end(part.start).0.min(part.end);
    let bytes = clip.text().as_bytes().get(part.start..end);
    let bytes = bytes.unwrap_or_default();
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~');
    let run = bytes.iter().take_while(|byte| is_plain(byte)).count();
    // A mark may follow, which belongs to the last one.
    let marked = bytes.get(run).is_some_and(|byte| !byte.is_ascii());
    if marked { run.saturating_sub(1) } else { run }
}

/// The graphemes of a part; those of a fold's label stand for themselves.
pub(super) fn units(clip: &Clip, part: Range<usize>) -> impl Iterator<Item = &str> {
    let Range { start: mut at, end } = part;
    let mut piece_end = at;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        if at >= piece_end {
            piece_end = clip.piece_end(at).0.min(end);
        }
        let rest = clip.text().get(at..piece_end)?;
        let unit = rest.graphemes(true).next()?;
        at += unit.len();
        Some(unit)
    })
}
