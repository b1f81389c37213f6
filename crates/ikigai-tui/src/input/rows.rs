//! Row starts of the input: lines wrapped by cells.

use std::borrow::Cow;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::clip::Clip;
use super::display_text::display;

/// Distance between firm rows within a line, in bytes.
/// A change rewraps only up to the next firm row and shifts the rows below, so a key costs little
/// even in a line of megabytes.
const STRETCH: usize = 16 * 1024;

/// Row starts of a text at one width.
///
/// Invariant: if `width` is not 0, the rows fill the text, none is too wide, and every line begins
/// one. A line that fills its last row has one more, empty row, because the cursor stands there at
/// its end.
#[derive(Clone, Debug)]
pub(super) struct EditorRows {
    width: usize,
    starts: Vec<usize>,
    /// Row starts within lines that earlier changes do not affect, in order.
    firm: Vec<usize>,
    stretch: usize,
}

impl Default for EditorRows {
    fn default() -> Self {
        Self {
            width: 0,
            starts: Vec::new(),
            firm: Vec::new(),
            stretch: STRETCH,
        }
    }
}

impl EditorRows {
    /// Wraps the text unless it is wrapped at this width.
    pub(super) fn fit(&mut self, clip: &Clip, width: usize) {
        let width = width.max(1);
        if self.width == width {
            return;
        }
        self.width = width;
        self.starts.clear();
        self.firm.clear();
        self.wrap(clip, 0..clip.len(), 0, false);
    }

    /// Wraps another text at the same width.
    pub(super) fn of(&self, clip: &Clip) -> Self {
        let mut rows = Self::default();
        if self.width > 0 {
            rows.fit(clip, self.width);
        }
        rows
    }

    /// Rewraps the changed part, from two rows above it to the next firm row.
    /// Without a firm row it ends at the end of the last line. The rows below are shifted.
    pub(super) fn changed(&mut self, clip: &Clip, at: usize, removed: usize, inserted: usize) {
        if self.width == 0 {
            return;
        }
        let moved = |start: usize| start + inserted - removed;
        // The first grapheme of a firm row may join text inserted before it.
        let after = self.firm.partition_point(|start| *start <= at + removed);
        let firm_below: Vec<_> = self.firm.split_off(after).into_iter().map(moved).collect();
        self.firm
            .truncate(self.firm.partition_point(|start| *start < at));
        let mut first = self.row_of(at);
        // A mark that joins the last grapheme of a row can change its width, and so move it one row
        // up.
        for _ in 0..2 {
            let start = self.starts.get(first).copied().unwrap_or_default();
            let is_firm = self.firm.last() == Some(&start);
            first -= usize::from(!is_firm && self.continues(clip, first));
        }
        let from = self.starts.get(first).copied().unwrap_or_default();
        let begun = self.firm.last().copied().unwrap_or_default();
        let begun = begun.max(clip.line_start(from));
        let line_end = clip.line_end(at + inserted);
        let next = firm_below.first().copied().filter(|next| *next <= line_end);
        let end = next.unwrap_or(line_end);
        let end_before = end + removed - inserted;
        let below = self.starts.partition_point(|start| match next {
            Some(_) => *start < end_before,
            None => *start <= end_before,
        });
        let rows_below = self.starts.split_off(below);
        self.starts.truncate(first);
        self.wrap(clip, from..end, begun, next.is_some());
        self.starts.extend(rows_below.into_iter().map(moved));
        self.firm.extend(firm_below);
    }

    /// Returns the number of rows.
    pub(super) fn count(&self) -> usize {
        self.starts.len().max(1)
    }

    /// Returns the row of a place.
    pub(super) fn row_of(&self, at: usize) -> usize {
        let below = self.starts.partition_point(|start| *start <= at);
        below.saturating_sub(1)
    }

    /// Returns the byte range of a row, without its newline.
    pub(super) fn range(&self, clip: &Clip, row: usize) -> Range<usize> {
        let start = self.starts.get(row).copied().unwrap_or(clip.len());
        let end = self.starts.get(row + 1).copied().unwrap_or(clip.len());
        let newline = clip.text()[start..end].ends_with('\n');
        start..end - usize::from(newline)
    }

    /// Returns true if a row continues the line of the row above.
    pub(super) fn continues(&self, clip: &Clip, row: usize) -> bool {
        let start = self.starts.get(row).copied();
        row > 0 && start.is_some_and(|start| !clip.text()[..start].ends_with('\n'))
    }

    /// Returns the row and column of a place.
    pub(super) fn locate(&self, clip: &Clip, at: usize) -> (usize, usize) {
        let row = self.row_of(at);
        let start = self.range(clip, row).start;
        let mut column = 0;
        for unit in units(clip, start..at.max(start)) {
            column += self.display(unit, column).1;
        }
        (row, column)
    }

    /// Returns the place at a column of a row, at most its last one. A wide grapheme counts from
    /// its start. The place may be within a fold.
    pub(super) fn place(&self, clip: &Clip, row: usize, wanted: usize) -> usize {
        let range = self.range(clip, row);
        let mut at = range.start;
        let mut column = 0;
        for unit in units(clip, range.clone()) {
            let end = column + self.display(unit, column).1;
            // The end of a continued row is the start of the next one.
            let last = at + unit.len() == range.end && self.continues(clip, row + 1);
            if end > wanted || last {
                return at;
            }
            at += unit.len();
            column = end;
        }
        at
    }

    /// Returns the visible form of a grapheme in this column, and its width.
    pub(super) fn display<'a>(&self, unit: &'a str, column: usize) -> (Cow<'a, str>, usize) {
        display(unit, column, self.width)
    }

    /// Wraps a part from the start of a row to the end of a line.
    /// With `goes_on`, it ends at an existing row. The last firm row, or the line, began at
    /// `begun`.
    fn wrap(&mut self, clip: &Clip, part: Range<usize>, begun: usize, goes_on: bool) {
        let Range { start: mut at, end } = part;
        let next = if goes_on { end } else { usize::MAX };
        let mut begun = begun;
        let mut column = 0;
        self.starts.push(at);
        while at < end {
            // Count plain letters in one step.
            let plain = plain_run(clip, at..end);
            if plain > 0 {
                let row = plain.min(self.width - column);
                if row == 0 {
                    self.soft(clip, at, &mut begun, next);
                    column = 0;
                    continue;
                }
                let mut left = plain - row;
                at += row;
                column += row;
                while left > 0 {
                    self.soft(clip, at, &mut begun, next);
                    column = left.min(self.width);
                    at += column;
                    left -= column;
                }
                continue;
            }
            let Some((unit, columns)) = self.unit(clip, at..end, column) else {
                break;
            };
            if unit == "\n" {
                if column == self.width {
                    self.starts.push(at);
                }
                at += 1;
                self.starts.push(at);
                (begun, column) = (at, 0);
            } else if column + columns > self.width {
                self.soft(clip, at, &mut begun, next);
                column = 0;
            } else {
                at += unit.len();
                column += columns;
            }
        }
        if column == self.width && !goes_on {
            self.starts.push(end);
        }
    }

    /// Adds a row within a line. It is firm if it is far from the firm ones around it.
    fn soft(&mut self, clip: &Clip, at: usize, begun: &mut usize, next: usize) {
        self.starts.push(at);
        let is_far = at - *begun >= self.stretch && next - at >= self.stretch;
        if is_far && !is_half_flag(clip, at) {
            self.firm.push(at);
            *begun = at;
        }
    }

    /// Returns the first grapheme of a part, and its width in this column.
    fn unit<'a>(
        &self,
        clip: &'a Clip,
        part: Range<usize>,
        column: usize,
    ) -> Option<(&'a str, usize)> {
        let end = clip.piece_end(part.start).0.min(part.end);
        let rest = clip.text().get(part.start..end)?;
        if let Some((length, columns)) = simple(rest)
            && columns <= self.width
        {
            return Some((rest.get(..length)?, columns));
        }
        let unit = rest.graphemes(true).next()?;
        Some((unit, self.display(unit, column).1))
    }
}

/// Returns true if the letter is a regional indicator, half of a flag.
/// One more indicator, however far before it, changes the pairing.
fn is_half_flag(clip: &Clip, at: usize) -> bool {
    let rest = clip.text().get(at..).unwrap_or_default();
    rest.starts_with(|letter| matches!(letter, '\u{1f1e6}'..='\u{1f1ff}'))
}

/// Returns the length and width of a first letter that joins nothing. Avoids the Unicode tables;
/// these scripts are most of the text beyond ASCII.
fn simple(text: &str) -> Option<(usize, usize)> {
    let columns = |letter: char| match letter {
        ' '..='~' | '\u{c0}'..='\u{24f}' | '\u{400}'..='\u{482}' => Some(1),
        '\u{3041}'..='\u{3096}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' => Some(2),
        _ => None,
    };
    let mut letters = text.chars();
    let first = letters.next()?;
    let width = columns(first)?;
    let alone = letters.next().is_none_or(|next| columns(next).is_some());
    alone.then_some((first.len_utf8(), width))
}

/// Returns the number of graphemes from here on of one cell and one byte each.
fn plain_run(clip: &Clip, part: Range<usize>) -> usize {
    let end = clip.piece_end(part.start).0.min(part.end);
    let bytes = clip.text().as_bytes().get(part.start..end);
    let bytes = bytes.unwrap_or_default();
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~');
    let run = bytes.iter().take_while(|byte| is_plain(byte)).count();
    // A combining mark may follow, which belongs to the last letter.
    let marked = bytes.get(run).is_some_and(|byte| !byte.is_ascii());
    if marked { run.saturating_sub(1) } else { run }
}

/// Returns the graphemes of a part, those of a fold's label included.
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

#[cfg(test)]
mod tests;
