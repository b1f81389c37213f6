//! Contents of the screen, cell by cell, independent of a terminal.

use std::ops::Range;
use std::sync::Arc;

use super::cell::GridCell;
use super::theme::{CellStyle, Theme};
use crate::line::TextLine;
use crate::look::Look;
use crate::text::clean;
use crate::width::pieces;

/// Limit of links per screen; further ones are plain text.
const MOST_LINKS: usize = 1_000;

/// Screen of cells, with a cursor.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    columns: u16,
    rows: u16,
    cells: Vec<GridCell>,
    links: Vec<Arc<str>>,
    /// Row and column of the cursor, if visible.
    pub cursor: Option<(u16, u16)>,
}

/// Run of cells of one row with the same style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StyledRun {
    /// Text of the run.
    pub text: String,
    /// Its style.
    pub style: CellStyle,
    /// Target, if it is a link.
    pub link: Option<Arc<str>>,
}

impl Grid {
    /// Creates a blank screen.
    pub fn new(columns: u16, rows: u16) -> Self {
        let mut grid = Self::default();
        grid.resize(columns, rows);
        grid
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> u16 {
        self.columns
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u16 {
        self.rows
    }

    /// Gives it another size; it is blank then.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.columns = columns;
        self.rows = rows;
        self.clear();
    }

    /// Blanks all cells and hides the cursor.
    pub fn clear(&mut self) {
        let count = usize::from(self.columns) * usize::from(self.rows);
        self.cells.clear();
        self.cells.resize(count, GridCell::blank(Look::default()));
        self.links.clear();
        self.cursor = None;
    }

    /// Writes text from a cell on; returns the column behind it.
    /// Names control and invisible characters; drops text that does not fit into the row.
    pub fn put(&mut self, row: u16, column: u16, text: &str, look: impl Into<Look>) -> u16 {
        self.put_linked(row, column, text, look.into(), 0)
    }

    /// Writes a line from a cell on; returns the column behind it.
    pub fn line(&mut self, row: u16, column: u16, line: &TextLine) -> u16 {
        line.spans.iter().fold(column, |column, span| {
            let place = span.link.as_ref().map_or(0, |link| self.place(link));
            self.put_linked(row, column, &span.text, span.look, place)
        })
    }

    /// Blanks a whole row, in a look.
    pub fn fill(&mut self, row: u16, look: impl Into<Look>) {
        let blank = GridCell::blank(look.into());
        self.row_mut(row).fill(blank);
    }

    /// Changes the style of cells in a row. A wide cell changes whole.
    pub fn restyle(&mut self, row: u16, columns: Range<u16>, look: impl Into<Look>) {
        let look = look.into();
        let mut lead = false;
        for (column, cell) in (0..).zip(self.row_mut(row)) {
            lead = match cell.width() {
                0 => lead,
                2 => columns.contains(&column) || columns.contains(&(column + 1)),
                _ => columns.contains(&column),
            };
            if lead {
                cell.set_look(look);
            }
        }
    }

    /// Returns one cell.
    pub fn cell(&self, row: u16, column: u16) -> Option<&GridCell> {
        self.row(row).get(usize::from(column))
    }

    /// Returns the link target of a cell, if it has one.
    pub fn link_at(&self, row: u16, column: u16) -> Option<&Arc<str>> {
        self.target(self.cell(row, column)?.link)
    }

    /// Returns the text of a row, with trailing blanks.
    pub fn text(&self, row: u16) -> String {
        self.row(row).iter().map(GridCell::symbol).collect()
    }

    /// Returns the text of a row in runs of the same style.
    pub fn spans(&self, row: u16, theme: Theme) -> Vec<StyledRun> {
        let mut runs: Vec<StyledRun> = Vec::new();
        for cell in self.row(row) {
            let style = theme.style(cell.look());
            let link = self.target(cell.link);
            match runs.last_mut() {
                Some(run) if run.style == style && run.link.as_ref() == link => {
                    run.text.push_str(cell.symbol());
                }
                _ => runs.push(StyledRun {
                    text: cell.symbol().to_owned(),
                    style,
                    link: link.cloned(),
                }),
            }
        }
        runs
    }

    pub(super) fn cells(&self) -> &[GridCell] {
        &self.cells
    }

    pub(super) fn links(&self) -> &[Arc<str>] {
        &self.links
    }

    fn put_linked(&mut self, row: u16, column: u16, text: &str, look: Look, link: u16) -> u16 {
        // The last gate before the terminal: names and words of models may come as they are.
        let text = clean(text);
        let cells = self.row_mut(row);
        let mut at = usize::from(column);
        for piece in pieces(&text) {
            let end = at + usize::from(piece.width);
            if end > cells.len() {
                // Half a wide character cannot be shown.
                if at < cells.len() {
                    set(cells, at, GridCell::blank(look));
                    at += 1;
                }
                break;
            }
            set(
                cells,
                at,
                GridCell::new(piece.text, piece.width, look, link),
            );
            at = end;
        }
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    /// Returns the index of a link in the table; 0 if the table is full.
    fn place(&mut self, link: &Arc<str>) -> u16 {
        let place = self.links.iter().rposition(|known| known == link);
        let place = place.unwrap_or_else(|| {
            if self.links.len() < MOST_LINKS {
                self.links.push(Arc::clone(link));
                self.links.len() - 1
            } else {
                usize::MAX
            }
        });
        place
            .checked_add(1)
            .and_then(|place| u16::try_from(place).ok())
            .unwrap_or(0)
    }

    fn target(&self, link: u16) -> Option<&Arc<str>> {
        self.links.get(usize::from(link).checked_sub(1)?)
    }

    fn row(&self, row: u16) -> &[GridCell] {
        self.cells.get(self.range(row)).unwrap_or_default()
    }

    fn row_mut(&mut self, row: u16) -> &mut [GridCell] {
        let range = self.range(row);
        self.cells.get_mut(range).unwrap_or_default()
    }

    fn range(&self, row: u16) -> Range<usize> {
        let start = usize::from(row) * usize::from(self.columns);
        start..start + usize::from(self.columns)
    }
}

/// Sets a cell that fits; a wide character that loses a half becomes blank.
fn set(cells: &mut [GridCell], at: usize, cell: GridCell) {
    let wide = cell.width() == 2;
    let last = if wide { at + 1 } else { at };
    if cells.get(at).is_some_and(|cell| cell.width() == 0)
        && let Some(lead) = at.checked_sub(1).and_then(|at| cells.get_mut(at))
    {
        *lead = GridCell::blank(lead.look());
    }
    if cells.get(last).is_some_and(|cell| cell.width() == 2)
        && let Some(tail) = cells.get_mut(last + 1)
    {
        *tail = GridCell::blank(tail.look());
    }
    if wide && let Some(tail) = cells.get_mut(last) {
        *tail = cell.tail();
    }
    if let Some(place) = cells.get_mut(at) {
        *place = cell;
    }
}

#[cfg(test)]
mod tests;
