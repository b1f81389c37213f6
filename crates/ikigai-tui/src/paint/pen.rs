//! Pen: cursor position and style of a terminal, changed by the shortest sequences.

use std::io::Write as _;

use super::theme::{CellStyle, Colour};
use crate::look::Look;

/// Known state of a terminal between two bytes.
#[derive(Debug, Default)]
pub(super) struct Pen {
    /// The row of the cursor, if it is known.
    row: Option<u16>,
    /// Its column, if known; unknown behind the last column.
    column: Option<u16>,
    /// Current style; unknown at the beginning.
    style: Option<CellStyle>,
}

impl Pen {
    /// Returns the cursor position, if known.
    pub(super) fn at(&self) -> Option<(u16, u16)> {
        self.row.zip(self.column)
    }

    /// Returns the current style, if known.
    pub(super) fn style(&self) -> Option<CellStyle> {
        self.style
    }

    /// Forgets the position, because another sequence moved the cursor.
    pub(super) fn lose(&mut self) {
        self.row = None;
        self.column = None;
    }

    /// Records written text that ends before this column, or at an unknown one.
    pub(super) fn wrote(&mut self, column: Option<u16>) {
        self.column = column;
    }

    /// Goes to a cell by as few bytes as it takes.
    pub(super) fn go(&mut self, row: u16, column: u16, out: &mut Vec<u8>) {
        let start = out.len();
        match (self.row, self.column) {
            (Some(r), Some(c)) if r == row && c == column => {}
            (Some(r), _) if r == row && column == 0 => out.push(b'\r'),
            (Some(r), _) if r.checked_add(1) == Some(row) && column == 0 => {
                out.extend_from_slice(b"\r\n");
            }
            (Some(r), known) if r == row => {
                csi(out, &[column + 1], b'G');
                if let Some(known) = known {
                    let mut other = Vec::new();
                    if column > known {
                        csi(&mut other, &[column - known], b'C');
                    } else {
                        csi(&mut other, &[known - column], b'D');
                    }
                    if other.len() < out.len() - start {
                        out.truncate(start);
                        out.append(&mut other);
                    }
                }
            }
            _ if column == 0 => csi(out, &[row + 1], b'H'),
            _ => csi(out, &[row + 1, column + 1], b'H'),
        }
        self.row = Some(row);
        self.column = Some(column);
    }

    /// Sets a style by the fewest bytes.
    pub(super) fn look(&mut self, style: CellStyle, out: &mut Vec<u8>) {
        if self.style == Some(style) {
            return;
        }
        let anew = codes(CellStyle::default(), style);
        let changed = self.style.map(|known| codes(known, style));
        out.extend_from_slice(b"\x1b[");
        match changed {
            Some(changed) if changed.len() < anew.len() + usize::from(!anew.is_empty()) * 2 => {
                out.extend_from_slice(&changed);
            }
            _ if anew.is_empty() => {}
            _ => {
                out.extend_from_slice(b"0;");
                out.extend_from_slice(&anew);
            }
        }
        out.push(b'm');
        self.style = Some(style);
    }
}

/// Writes a control sequence. Omits a last parameter of 1.
pub(super) fn csi(out: &mut Vec<u8>, parameters: &[u16], last: u8) {
    out.extend_from_slice(b"\x1b[");
    for (place, parameter) in parameters.iter().enumerate() {
        if place > 0 {
            out.push(b';');
        }
        if *parameter != 1 {
            number(out, *parameter);
        }
    }
    out.push(last);
}

/// Writes a number. Writing into memory cannot fail.
fn number(out: &mut Vec<u8>, number: u16) {
    let _ = write!(out, "{number}");
}

/// Returns the parameters that turn one style into another.
fn codes(from: CellStyle, to: CellStyle) -> Vec<u8> {
    let mut out = Vec::new();
    let mut code = |code: u16| {
        if !out.is_empty() {
            out.push(b';');
        }
        number(&mut out, code);
    };
    let weight = Look::BOLD | Look::DIM;
    let mut from_set_off = from.set_off;
    if from.set_off & weight & !to.set_off != 0 {
        // Both go at once.
        code(22);
        from_set_off &= !weight;
    }
    let ways = [
        (Look::BOLD, 1, 22),
        (Look::DIM, 2, 22),
        (Look::ITALIC, 3, 23),
        (Look::UNDERLINE, 4, 24),
        (Look::REVERSE, 7, 27),
        (Look::STRIKE, 9, 29),
    ];
    for (way, on, off) in ways {
        match (from_set_off & way != 0, to.set_off & way != 0) {
            (false, true) => code(on),
            (true, false) => code(off),
            _ => {}
        }
    }
    for (from, to, base) in [(from.fg, to.fg, 30), (from.bg, to.bg, 40)] {
        if from == to {
            continue;
        }
        match to {
            Colour::Default => code(base + 9),
            Colour::Indexed(index @ 0..8) => code(base + u16::from(index)),
            Colour::Indexed(index @ 8..16) => code(base + 52 + u16::from(index)),
            Colour::Indexed(index) => {
                code(base + 8);
                code(5);
                code(u16::from(index));
            }
        }
    }
    out
}
