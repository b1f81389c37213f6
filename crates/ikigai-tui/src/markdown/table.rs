//! Tables: in columns if they fit, else as a list of names and values.

use pulldown_cmark::Alignment;

use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::signs::{Sign, Symbols};
use crate::text::wrap;
use crate::width::width;

/// Minimum width of a shrunk column.
const LEAST_COLUMN: usize = 8;

/// Tables of more columns are drawn as lists.
const MOST_COLUMNS: usize = 32;

type Spans = Vec<TextSpan>;

/// Table, header first.
pub(super) struct MarkdownTable {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Spans>>,
    row: Vec<Spans>,
}

impl MarkdownTable {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
            row: Vec::new(),
        }
    }

    pub(super) fn cell(&mut self, spans: Spans) {
        self.row.push(spans);
    }

    pub(super) fn row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// Draws the table's lines in `room` columns.
    pub(super) fn draw(mut self, room: usize, symbols: Symbols) -> Vec<Spans> {
        for cell in self.rows.first_mut().into_iter().flatten() {
            for span in cell {
                span.look.set_off |= Look::BOLD;
            }
        }
        match self.columns(room) {
            Some(widths) => self.in_columns(&widths, symbols),
            None => self.list_lines(symbols),
        }
    }

    /// Returns the widths of the columns, if all fit.
    fn columns(&self, room: usize) -> Option<Vec<usize>> {
        let count = self.alignments.len();
        if count == 0 || count > MOST_COLUMNS {
            return None;
        }
        let room = room.checked_sub(3 * (count - 1))?;
        let mut widths = vec![1; count];
        for row in &self.rows {
            for (most, cell) in widths.iter_mut().zip(row) {
                *most = (*most).max(width_of(cell));
            }
        }
        let least: usize = widths.iter().map(|width| *width.min(&LEAST_COLUMN)).sum();
        if least > room {
            return None;
        }
        // Shrink the widest columns until all fit.
        let mut limit = widths.iter().copied().max().unwrap_or_default().min(room);
        let total = |limit: usize| widths.iter().map(|width| *width.min(&limit)).sum::<usize>();
        while limit > LEAST_COLUMN && total(limit) > room {
            limit -= 1;
        }
        let mut left = room.saturating_sub(total(limit));
        let fitted = widths.iter().map(|width| {
            let more = width.saturating_sub(limit).min(left);
            left -= more;
            *width.min(&limit) + more
        });
        Some(fitted.collect())
    }

    fn in_columns(self, widths: &[usize], symbols: Symbols) -> Vec<Spans> {
        let mut lines = Vec::new();
        let bar = TextSpan::new(format!(" {} ", Sign::Column.text(symbols)), Tone::Faint);
        for (index, row) in self.rows.into_iter().enumerate() {
            let mut row = row.into_iter();
            let cells: Vec<Vec<TextLine>> = widths
                .iter()
                .map(|width| {
                    let line = TextLine::new(row.next().unwrap_or_default());
                    wrap(&line, u16::try_from(*width).unwrap_or(u16::MAX), &[])
                })
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or_default();
            for level in 0..height {
                let mut line = Vec::new();
                for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                    if column > 0 {
                        line.push(bar.clone());
                    }
                    let spans = cell.get(level).map(|line| line.spans.clone());
                    let alignment = self.alignments.get(column).copied();
                    let is_last = column + 1 == widths.len();
                    align(
                        &mut line,
                        spans.unwrap_or_default(),
                        *width,
                        alignment,
                        is_last,
                    );
                }
                lines.push(line);
            }
            if index == 0 {
                lines.push(vec![TextSpan::new(divide(widths, symbols), Tone::Faint)]);
            }
        }
        lines
    }

    /// Lists `name: value` for each cell, with an empty line between rows.
    fn list_lines(self, symbols: Symbols) -> Vec<Spans> {
        let mut rows = self.rows.into_iter();
        let head = rows.next().unwrap_or_default();
        let mut lines: Vec<Spans> = Vec::new();
        for row in rows {
            if !lines.is_empty() {
                lines.push(Vec::new());
            }
            for (name, value) in head.iter().zip(row) {
                let mut line = name.clone();
                line.push(TextSpan::new(": ", Tone::Faint));
                line.extend(value);
                lines.push(line);
            }
        }
        if lines.is_empty() {
            let between = TextSpan::new(format!(" {} ", Sign::Dot.text(symbols)), Tone::Faint);
            let names = head.into_iter().flat_map(|mut name| {
                name.push(between.clone());
                name
            });
            let mut names: Spans = names.collect();
            names.pop();
            lines.push(names);
        }
        lines
    }
}

fn width_of(spans: &[TextSpan]) -> usize {
    spans.iter().map(|span| width(&span.text)).sum()
}

fn align(
    line: &mut Spans,
    spans: Spans,
    width: usize,
    alignment: Option<Alignment>,
    is_last: bool,
) {
    let left = width.saturating_sub(width_of(&spans));
    let (before, after) = match alignment {
        Some(Alignment::Right) => (left, 0),
        Some(Alignment::Center) => (left / 2, left - left / 2),
        Some(Alignment::Left | Alignment::None) | None => (0, left),
    };
    let mut space = |columns: usize| {
        if columns > 0 {
            line.push(TextSpan::new(" ".repeat(columns), Tone::Text));
        }
    };
    space(before);
    line.extend(spans);
    if after > 0 && !is_last {
        line.push(TextSpan::new(" ".repeat(after), Tone::Text));
    }
}

fn divide(widths: &[usize], symbols: Symbols) -> String {
    let dash = Sign::Dash.text(symbols);
    let cross = format!("{dash}{}{dash}", Sign::Cross.text(symbols));
    let columns: Vec<_> = widths.iter().map(|width| dash.repeat(*width)).collect();
    columns.join(&cross)
}
