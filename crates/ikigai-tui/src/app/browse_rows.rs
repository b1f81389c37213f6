//! Drawing of browse mode: the event at the cursor, matches, and the last row.

use ikigai_core::Kind;
use ikigai_core::project::estimate_tokens;
use ikigai_engine::figures::token_count;
use ikigai_engine::since;

use super::browse::{Browse, left_by, row_of};
use super::hints::Hints;
use super::needle::Needle;
use super::{UiContext, event, lines};
use crate::line::TextLine;
use crate::look::{Look, Tone};
use crate::paint::Grid;
use crate::signs::Symbols;
use crate::text::{clean, cut};
use crate::width::width;

/// Age from which the date is needed besides the time of day.
const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

/// Keys for every event, after those for the one at the cursor.
const KEYS: [&str; 6] = [
    "[ ] messages",
    "/ find",
    "o pager",
    "m mark",
    "Y copy Markdown",
    "O expand all",
];

impl Browse {
    /// Marks the event at the cursor, and matches of the text to find.
    pub(super) fn draw_marks(&self, ctx: &UiContext, grid: &mut Grid) {
        let Some(pane) = ctx.pane() else { return };
        let bar = match ctx.options.symbols {
            Symbols::Utf8 => "▌",
            Symbols::Ascii => "|",
        };
        let needle = Needle::new(&self.find);
        for (row, seen) in (0..).zip(&ctx.visible) {
            let Some(line) = seen.line() else { continue };
            for (from, to) in needle.columns(&line.text()) {
                grid.restyle(row, from..to, Tone::Match);
            }
            let item = seen.id.and_then(|id| pane.scrollback.item(id));
            if seen.row == 0 && item.is_some_and(|item| left_by(item).is_some()) {
                let hint = TextLine::of(" · Enter expand · r restore", Tone::Faint);
                let column = u16::try_from(width(&line.text())).unwrap_or(u16::MAX);
                let room = ctx.columns.saturating_sub(column);
                grid.line(row, column.min(ctx.columns), &cut(&hint, room, "…"));
            }
            if seen.id != Some(self.cursor) {
                continue;
            }
            if grid.cursor.is_none() {
                grid.cursor = Some((row, 0));
            }
            let is_blank = grid.cell(row, 0).is_none_or(|cell| cell.symbol() == " ");
            if is_blank {
                grid.put(row, 0, bar, Tone::Question);
            } else {
                grid.restyle(row, 0..1, Tone::Marked);
            }
        }
    }

    /// Returns the last row of the screen: the event at the cursor, and the keys.
    pub(super) fn status_line(&self, ctx: &UiContext) -> TextLine {
        let Some(pane) = ctx.pane() else {
            return TextLine::default();
        };
        let row = pane.scrollback.item(self.cursor).and_then(row_of);
        let mut facts = Vec::new();
        if let Some(row) = row {
            facts.push(ctx.row_name(row.at));
            // Few columns are better used for keys.
            if ctx.columns >= lines::NARROW {
                let now = (ctx.options.now)();
                if now.0.saturating_sub(row.created_at.0) >= DAY_MICROS {
                    facts.push(format!("{} ago", since(row.created_at, now)));
                }
                facts.push((ctx.options.time_of_day)(row.created_at));
                let count = estimate_tokens(&event::all_text(row));
                facts.push(token_count(count));
            }
        }
        if pane.is_left() {
            facts.push("not in context".to_owned());
        }
        let facts = format!(" {}", clean(&facts.join(" · ")));
        let facts = TextLine::of(facts, Look::of(Tone::Status).with(Look::BOLD));
        let edit = if ctx.columns < lines::NARROW {
            "e edit"
        } else {
            "e edit and resend"
        };
        let kind = row.and_then(|row| row.kind.read_as());
        let deeds: &[&str] = if self.seek.is_some() {
            &["reading older events …"]
        } else if kind == Some(Kind::User) {
            &[edit, "y copy", "r rewind", "f fork"]
        } else if kind == Some(Kind::Rewind) {
            &["Enter expand", "r restore", "f fork", "y copy"]
        } else {
            &["Enter expand", "y copy", "r rewind", "f fork"]
        };
        let (rest, way_out) = match self.seek {
            Some(_) => (&[][..], "any key to stop"),
            None => (&KEYS[..], "Esc back"),
        };
        let hints = Hints {
            gap: "  ",
            keys: &[deeds, rest].concat(),
            way_out,
            look: Look::of(Tone::Status),
        };
        hints.after(&facts, ctx.columns)
    }
}
