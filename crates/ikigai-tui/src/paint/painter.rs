//! Painter: updates a terminal to a grid, writing only the differences.

use std::ops::Range;
use std::sync::Arc;

use super::cell::GridCell;
use super::grid::Grid;
use super::pen::{Pen, csi};
use super::row::{RowWriter, is_risky, used_columns};
use super::scroll::{self, Scroll};
use super::theme::{CellStyle, Theme};
use crate::look::Look;

/// Synchronized output: the terminal shows the bytes between these at once.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// Limit of remembered links; beyond it, a full repaint resets the table.
const MOST_LINKS: usize = 4_000;

/// Copy of a terminal's contents, and the writer of changes.
#[derive(Debug, Default)]
pub struct Painter {
    columns: u16,
    rows: u16,
    /// Current contents of the terminal, with the links of this painter.
    shown: Vec<GridCell>,
    /// Next contents.
    next: Vec<GridCell>,
    links: Vec<Arc<str>>,
    pen: Pen,
    theme: Theme,
    cursor: Option<bool>,
    /// The terminal's contents are unknown.
    forgotten: bool,
    /// The bytes of the frame being made.
    frame: Vec<u8>,
}

impl Painter {
    /// Creates a painter for a terminal with unknown contents.
    pub fn new() -> Self {
        Self {
            forgotten: true,
            ..Self::default()
        }
    }

    /// Discards the known contents, because another program wrote; the next frame is whole.
    pub fn forget(&mut self) {
        self.forgotten = true;
    }

    /// Appends the bytes that update the terminal to this grid; none if it is equal.
    /// Write all of them before the next call, or call [`Painter::forget`].
    pub fn paint(&mut self, grid: &Grid, theme: Theme, out: &mut Vec<u8>) {
        self.frame.clear();
        let same_size = (self.columns, self.rows) == (grid.columns(), grid.rows());
        if self.forgotten || !same_size || self.theme != theme {
            self.begin_anew(grid, theme);
        }
        self.take(grid);
        let columns = usize::from(self.columns);
        if let Some(scroll) = scroll::find(&self.shown, &self.next, columns, theme) {
            self.scroll(&scroll);
        }
        for row in 0..self.rows {
            self.row(row);
        }
        std::mem::swap(&mut self.shown, &mut self.next);
        self.place_cursor(grid.cursor);
        if !self.frame.is_empty() {
            out.extend_from_slice(BEGIN);
            out.extend_from_slice(&self.frame);
            out.extend_from_slice(END);
        }
    }

    /// Blanks the terminal.
    fn begin_anew(&mut self, grid: &Grid, theme: Theme) {
        self.forgotten = false;
        self.columns = grid.columns();
        self.rows = grid.rows();
        self.theme = theme;
        self.links.clear();
        self.cursor = None;
        self.pen = Pen::default();
        self.pen.look(CellStyle::default(), &mut self.frame);
        self.pen.go(0, 0, &mut self.frame);
        self.frame.extend_from_slice(b"\x1b[J");
        self.shown.clear();
        self.shown
            .resize(grid.cells().len(), GridCell::blank(Look::default()));
    }

    /// Copies the cells of a grid, with the links of this painter.
    fn take(&mut self, grid: &Grid) {
        if self.links.len() + grid.links().len() > MOST_LINKS {
            self.begin_anew(grid, self.theme);
        }
        let places: Vec<u16> = grid.links().iter().map(|link| self.place(link)).collect();
        self.next.clear();
        self.next.extend_from_slice(grid.cells());
        for cell in &mut self.next {
            if cell.link != 0 {
                let place = places.get(usize::from(cell.link) - 1);
                cell.link = place.copied().unwrap_or(0);
            }
        }
    }

    /// Returns the place of a link in this painter's table, from 1.
    fn place(&mut self, link: &Arc<str>) -> u16 {
        let known = self.links.iter().position(|known| known == link);
        let place = known.unwrap_or_else(|| {
            self.links.push(Arc::clone(link));
            self.links.len() - 1
        });
        u16::try_from(place + 1).unwrap_or(0)
    }

    /// Writes the differences in one row.
    fn row(&mut self, row: u16) {
        let range = span(row, self.columns);
        let (Some(old), Some(new)) = (self.shown.get(range.clone()), self.next.get(range)) else {
            return;
        };
        if old == new {
            return;
        }
        let theme = self.theme;
        let blank_from = used_columns(new, theme);
        let mut writer = RowWriter {
            pen: &mut self.pen,
            out: &mut self.frame,
            links: &self.links,
            theme,
            row,
            cells: new,
            link: 0,
        };
        // The terminal may draw such a row wider or narrower than computed.
        if old.iter().chain(new).any(is_risky) {
            writer.write_whole(blank_from);
            return;
        }
        let mut column = 0;
        // The terminal may have overdrawn cells before this column.
        let mut clobbered = 0;
        while let Some(cell) = new.get(column) {
            let width = usize::from(cell.width().max(1));
            let end = column + width;
            if column >= clobbered && old.get(column..end) == new.get(column..end) {
                column = end;
                continue;
            }
            if column >= blank_from {
                writer.erase_rest(column);
                break;
            }
            clobbered = clobbered.max(writer.write(column));
            column = end;
        }
        writer.end();
    }

    /// Moves the cursor to its place in the grid, or hides it.
    fn place_cursor(&mut self, cursor: Option<(u16, u16)>) {
        let cursor = cursor.filter(|_| self.columns > 0 && self.rows > 0);
        if let Some((row, column)) = cursor {
            let row = row.min(self.rows - 1);
            let column = column.min(self.columns - 1);
            self.pen.go(row, column, &mut self.frame);
        }
        if self.cursor != Some(cursor.is_some()) {
            self.cursor = Some(cursor.is_some());
            let mode: &[u8] = match cursor {
                Some(_) => b"\x1b[?25h",
                None => b"\x1b[?25l",
            };
            self.frame.extend_from_slice(mode);
        }
    }

    /// Lets the terminal move rows, and remembers that it did.
    fn scroll(&mut self, scroll: &Scroll) {
        let Range { start, end } = scroll.region;
        let number = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        self.pen.look(CellStyle::default(), &mut self.frame);
        csi(&mut self.frame, &[number(start + 1), number(end)], b'r');
        self.pen.lose();
        self.pen.go(number(start), 0, &mut self.frame);
        // More terminals support deleting and inserting rows in a region than scrolling, and it
        // adds nothing to their own scrollback.
        let command = if scroll.up { b'M' } else { b'L' };
        csi(&mut self.frame, &[number(scroll.by)], command);
        self.frame.extend_from_slice(b"\x1b[r");
        self.pen.lose();
        let columns = usize::from(self.columns);
        let region = self.shown.get_mut(start * columns..end * columns);
        let region = region.unwrap_or_default();
        let moved = (scroll.by * columns).min(region.len());
        let gone = if scroll.up {
            region.rotate_left(moved);
            region.len() - moved..region.len()
        } else {
            region.rotate_right(moved);
            0..moved
        };
        if let Some(gone) = region.get_mut(gone) {
            gone.fill(GridCell::blank(Look::default()));
        }
    }
}

/// Returns the cells of a row among all cells.
fn span(row: u16, columns: u16) -> Range<usize> {
    let start = usize::from(row) * usize::from(columns);
    start..start + usize::from(columns)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod widths;
