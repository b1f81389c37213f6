//! Selection: a range of text positions, independent of screen cells.

use super::{Id, Visible};
use crate::line::TextLine;
use crate::width::{pieces, width};

/// Position in the scrollback's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPosition {
    /// Item.
    pub id: Id,
    /// Row of the item.
    pub row: usize,
    /// Cell of the row that it precedes.
    pub column: usize,
}

/// Selected text: from one position to another, in either order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Beginning.
    pub from: TextPosition,
    /// End.
    pub to: TextPosition,
}

impl Selection {
    /// Returns the selected columns of a visible row, as a half-open range. The caller passes rows
    /// from top to bottom, with the order of their items.
    pub fn columns(
        &self,
        visible: &Visible,
        order: &dyn Fn(Id) -> Option<usize>,
    ) -> Option<(usize, usize)> {
        let line = visible.line()?;
        let here = (order(visible.id?)?, visible.row);
        let mut ends =
            [self.from, self.to].map(|place| Some(((order(place.id)?, place.row), place.column)));
        if ends[0]? > ends[1]? {
            ends.swap(0, 1);
        }
        let [from, to] = [ends[0]?, ends[1]?];
        if here < from.0 || here > to.0 {
            return None;
        }
        let lead = lead_width(line);
        let end = width(&line.text());
        let first = if here == from.0 { from.1 } else { 0 };
        let last = if here == to.0 { to.1 } else { end };
        let (first, last) = (first.max(lead), last.min(end));
        (first < last).then_some((first, last))
    }
}

/// Returns the width of signs and indentation.
pub(super) fn lead_width(line: &TextLine) -> usize {
    let lead = line.spans.iter().take(line.lead);
    lead.map(|span| width(&span.text)).sum()
}

/// Returns the text between two columns of a line, in whole graphemes, without its lead.
pub(super) fn text_between(line: &TextLine, from: usize, to: usize) -> String {
    let mut at = 0;
    let mut found = String::new();
    let text = line.text();
    for piece in pieces(&text) {
        if at >= from && at < to {
            found.push_str(piece.text);
        }
        at += usize::from(piece.width);
    }
    found
}

/// Joins rows for copying; wrapped rows become one line again.
pub fn join_rows<'a>(rows: impl Iterator<Item = (&'a TextLine, usize, usize)>) -> String {
    let mut text = String::new();
    for (index, (line, from, to)) in rows.enumerate() {
        if index > 0 {
            text.push_str(line.joined.unwrap_or("\n"));
        }
        let part = text_between(line, from.max(lead_width(line)), to);
        text.push_str(part.trim_end());
    }
    text
}
