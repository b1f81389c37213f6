//! Writer of cells of one row to a terminal.

use std::io::Write as _;
use std::sync::Arc;

use unicode_width::UnicodeWidthChar;

use super::cell::GridCell;
use super::pen::Pen;
use super::theme::{CellStyle, Theme};
use crate::look::Look;

/// Longest target of a link; terminals refuse longer ones.
const LONGEST_LINK: usize = 2_000;

/// Up to this number of cells are rewritten instead of jumped over.
const SHORT_JUMP: usize = 4;

/// Number of trailing blanks from which erasing is cheaper than writing.
const ERASED: usize = 4;

/// Sequences that turn automatic line wrap off and on.
const NO_WRAP: &[u8] = b"\x1b[?7l";
const WRAP: &[u8] = b"\x1b[?7h";

/// Writer of cells of one row.
pub(super) struct RowWriter<'a> {
    pub(super) pen: &'a mut Pen,
    pub(super) out: &'a mut Vec<u8>,
    pub(super) links: &'a [Arc<str>],
    pub(super) theme: Theme,
    pub(super) row: u16,
    /// New contents of the row.
    pub(super) cells: &'a [GridCell],
    /// The open link.
    pub(super) link: u16,
}

impl RowWriter<'_> {
    /// Writes one cell that is not a right half. Returns the end of the columns drawn. The end is
    /// beyond the cell if the terminal may disagree about its width.
    pub(super) fn write(&mut self, column: usize) -> usize {
        let Some(cell) = self.cells.get(column) else {
            return column;
        };
        self.go(column);
        self.set_link(cell.link);
        self.set_style(cell);
        let end = column + usize::from(cell.width());
        let symbol = cell.symbol();
        if certain(symbol) {
            self.out.extend_from_slice(symbol.as_bytes());
            self.wrote(Some(end));
            return end;
        }
        // First blank both halves, so that no old cell remains next to a narrower symbol.
        self.out.extend((column..end).map(|_| b' '));
        self.wrote(None);
        self.go(column);
        // The row must not overflow into the next, even if each character takes two cells.
        let widest = column + 2 * symbol.chars().count();
        let is_last = widest > self.cells.len();
        if is_last {
            self.out.extend_from_slice(NO_WRAP);
        }
        let mut drawn = column;
        for char in symbol.chars() {
            let after = drawn + char.width().unwrap_or(0);
            if after > self.cells.len() {
                break;
            }
            drawn = after;
            let mut bytes = [0; 4];
            let char = char.encode_utf8(&mut bytes);
            self.out.extend_from_slice(char.as_bytes());
        }
        if is_last {
            self.out.extend_from_slice(WRAP);
        }
        self.wrote(None);
        drawn.max(end)
    }

    /// Erases the row and writes all of it up to `blank_from`.
    ///
    /// Repositions the cursor behind each symbol of uncertain width, and rewrites or erases the
    /// neighbours that such a symbol covers.
    pub(super) fn write_whole(&mut self, blank_from: usize) {
        self.set_link(0);
        self.pen.look(CellStyle::default(), self.out);
        self.go(0);
        self.out.extend_from_slice(b"\x1b[K");
        let mut column = 0;
        while column < blank_from {
            self.write(column);
            column += usize::from(self.cells.get(column).map_or(1, GridCell::width).max(1));
        }
        if blank_from < self.cells.len() {
            self.erase_rest(blank_from);
        }
        self.end();
    }

    /// Blanks the row from a column on.
    pub(super) fn erase_rest(&mut self, column: usize) {
        self.set_link(0);
        self.go(column);
        let left = self.cells.len().saturating_sub(column);
        let plain =
            |style: Option<CellStyle>| style.map(CellStyle::on_blank) == Some(CellStyle::default());
        if left <= ERASED && plain(self.pen.style()) {
            self.out.extend(std::iter::repeat_n(b' ', left));
            self.wrote(Some(self.cells.len()));
            return;
        }
        // Some terminals fill with the style of the pen.
        self.pen.look(CellStyle::default(), self.out);
        self.out.extend_from_slice(b"\x1b[K");
    }

    /// Ends the row and any open link.
    pub(super) fn end(&mut self) {
        self.set_link(0);
    }

    fn go(&mut self, column: usize) {
        if let Some((row, known)) = self.pen.at()
            && row == self.row
            && (1..=SHORT_JUMP).contains(&column.saturating_sub(usize::from(known)))
            && self.repeat(usize::from(known), column)
        {
            return;
        }
        let column = u16::try_from(column).unwrap_or(u16::MAX);
        self.pen.go(self.row, column, self.out);
    }

    /// Rewrites unchanged cells, if they need only their letters; returns false otherwise.
    fn repeat(&mut self, from: usize, to: usize) -> bool {
        let Some(cells) = self.cells.get(from..to) else {
            return false;
        };
        let simple = cells.iter().all(|cell| {
            cell.symbol().len() == 1 && cell.link == self.link && !self.needs_style(cell)
        });
        if simple {
            for cell in cells {
                self.out.extend_from_slice(cell.symbol().as_bytes());
            }
            self.wrote(Some(to));
        }
        simple
    }

    fn needs_style(&self, cell: &GridCell) -> bool {
        let style = self.theme.style(cell.look());
        self.pen.style().is_none_or(|known| {
            if cell.is_blank() {
                known.on_blank() != style.on_blank()
            } else {
                known != style
            }
        })
    }

    fn set_style(&mut self, cell: &GridCell) {
        if self.needs_style(cell) {
            let style = self.theme.style(cell.look());
            self.pen.look(style, self.out);
        }
    }

    fn set_link(&mut self, link: u16) {
        if self.link == link {
            return;
        }
        let target = usize::from(link)
            .checked_sub(1)
            .and_then(|place| self.links.get(place));
        self.out.extend_from_slice(b"\x1b]8;;");
        if let Some(target) = target.filter(|target| may_lead(target)) {
            for byte in target.bytes() {
                if byte.is_ascii_graphic() {
                    self.out.push(byte);
                } else {
                    // Writing into memory cannot fail.
                    let _ = write!(self.out, "%{byte:02X}");
                }
            }
        }
        self.out.extend_from_slice(b"\x1b\\");
        self.link = link;
    }

    fn wrote(&mut self, end: Option<usize>) {
        // Terminals disagree about the cursor position behind the last column.
        let end = end.filter(|end| *end < self.cells.len());
        self.pen.wrote(end.and_then(|end| u16::try_from(end).ok()));
    }
}

/// Returns the column from which a row is plain background.
pub(super) fn used_columns(row: &[GridCell], theme: Theme) -> usize {
    let plain = theme.style(Look::default()).on_blank();
    let is_background = |cell: &GridCell| {
        cell.is_blank() && cell.link == 0 && theme.style(cell.look()).on_blank() == plain
    };
    row.iter()
        .rposition(|cell| !is_background(cell))
        .map_or(0, |last| {
            last + usize::from(row.get(last).map_or(1, |cell| cell.width().max(1)))
        })
}

/// Returns true if terminals may draw a row with this cell differently.
///
/// These are symbols of uncertain width, and right-to-left letters, which some terminals reorder or
/// join.
pub(super) fn is_risky(cell: &GridCell) -> bool {
    let symbol = cell.symbol();
    let is_right_to_left = |char| matches!(char, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}');
    !symbol.is_ascii() && (!certain(symbol) || symbol.chars().any(is_right_to_left))
}

/// Returns true if all terminals agree on its width.
fn certain(symbol: &str) -> bool {
    let mut chars = symbol.chars();
    // Planes with emoji: each year adds some, and terminals learn them later.
    // Some terminals do not draw the replacement character.
    // Older symbols include emoji too.
    let is_emoji = |base: char| {
        matches!(base, '\u{2300}'..='\u{2bff}') && base.width() == Some(2) || base >= '\u{1f000}'
    };
    let base = chars
        .next()
        .is_some_and(|base| !is_emoji(base) && base != '\u{fffd}');
    base && chars.all(|mark| matches!(mark, '\u{300}'..='\u{36f}'))
}

/// Returns true if a link is safe to send. It must not end its escape sequence.
fn may_lead(target: &str) -> bool {
    target.len() <= LONGEST_LINK && !target.contains(char::is_control)
}
