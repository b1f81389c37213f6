//! Visible form of graphemes in the input.

use std::borrow::Cow;

use crate::text::clean;
use crate::width::width;

/// Replacement for a grapheme wider than the row or longer than [`LONGEST`].
const TOO_LARGE: &str = "\u{fffd}";

/// Longest visible grapheme in bytes; longer ones are stacked combining marks.
const LONGEST: usize = 256;

/// Distance between tab stops in columns.
const TAB_COLUMNS: usize = 4;

/// Returns the visible form of a grapheme in a column, and its width in cells. The width is at
/// least one and at most a row.
pub(super) fn display(grapheme: &str, column: usize, row_columns: usize) -> (Cow<'_, str>, usize) {
    if grapheme == "\t" {
        let to_stop = TAB_COLUMNS - column % TAB_COLUMNS;
        // A tab never wraps: it ends at the end of its row.
        let columns = to_stop.min(row_columns.saturating_sub(column)).max(1);
        return (Cow::Owned(" ".repeat(columns)), columns);
    }
    if grapheme.len() > LONGEST {
        return (Cow::Borrowed(TOO_LARGE), 1);
    }
    // A grapheme of several characters has marks or joiners, which belong to it.
    let is_marked = grapheme != "\r\n" && grapheme.chars().nth(1).is_some();
    let mut text = if is_marked {
        Cow::Borrowed(grapheme)
    } else {
        clean(grapheme)
    };
    let mut columns = width(&text);
    if columns == 0 {
        let first = grapheme.chars().next().map_or(0, u32::from);
        text = Cow::Owned(format!("⟨U+{first:04X}⟩"));
        columns = width(&text);
    }
    if columns > row_columns.max(1) {
        (Cow::Borrowed(TOO_LARGE), 1)
    } else {
        (text, columns)
    }
}

#[cfg(test)]
mod tests;
