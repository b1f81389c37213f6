//! What browse mode looks like: the event that the cursor is on, what was found, and the last row.

use ikigai_core::Kind;
use ikigai_core::project::estimate_tokens;
use ikigai_engine::figures::tokens;
use ikigai_engine::since;

use super::browse::{left_by, row_of};
use super::hints::Hints;
use super::needle::Needle;
use super::{App, Mode, Pane, event, lines};
use crate::line::Line;
use crate::look::{Look, Role};
use crate::paint::Grid;
use crate::rows::Symbols;
use crate::scrollback::Visible;
use crate::text::{clean, cut};
use crate::width::width;

/// The time of day alone tells when something was for so long.
const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

/// What can be done everywhere, after what can be done with the event.
const KEYS: [&str; 6] = [
    "[ ] messages",
    "/ find",
    "o pager",
    "m mark",
    "Y Markdown",
    "O all",
];

impl App {
    /// Marks the event that the cursor is on at the left edge, and what was found.
    pub(super) fn draw_browse(&self, pane: &Pane, visible: &[Visible], grid: &mut Grid) {
        let Mode::Browse(browse) = &self.mode else {
            return;
        };
        let bar = match self.around.symbols {
            Symbols::Utf8 => "▌",
            Symbols::Ascii => "|",
        };
        let needle = Needle::new(&browse.find);
        for (row, seen) in (0..).zip(visible) {
            let Some(line) = seen.line() else { continue };
            for (from, to) in needle.columns(&line.text()) {
                grid.restyle(row, from..to, Role::Match);
            }
            let item = seen.id.and_then(|id| pane.scrollback.item(id));
            if seen.row == 0 && item.is_some_and(|item| left_by(item).is_some()) {
                let hint = Line::of(" · Enter to look · r to go back there", Role::Faint);
                let column = u16::try_from(width(&line.text())).unwrap_or(u16::MAX);
                let room = self.columns.saturating_sub(column);
                grid.line(row, column.min(self.columns), &cut(&hint, room, "…"));
            }
            if seen.id != Some(browse.cursor) {
                continue;
            }
            if grid.cursor.is_none() {
                grid.cursor = Some((row, 0));
            }
            let is_blank = grid.cell(row, 0).is_none_or(|cell| cell.symbol() == " ");
            if is_blank {
                grid.put(row, 0, bar, Role::Question);
            } else {
                grid.restyle(row, 0..1, Role::Marked);
            }
        }
    }

    /// The last row in browse mode: which event it is, and the keys.
    pub(super) fn browse_line(&self, pane: &Pane) -> Option<Line> {
        let Mode::Browse(browse) = &self.mode else {
            return None;
        };
        let row = pane.scrollback.item(browse.cursor).and_then(row_of);
        let mut facts = Vec::new();
        if let Some(row) = row {
            facts.push(self.row_name(row.at));
            // Few columns are better used for keys.
            if self.columns >= lines::NARROW {
                let now = (self.around.now)();
                if now.0.saturating_sub(row.created_at.0) >= DAY_MICROS {
                    facts.push(format!("{} ago", since(row.created_at, now)));
                }
                facts.push((self.around.time_of_day)(row.created_at));
                let count = estimate_tokens(&event::all_text(row));
                facts.push(format!("{} tokens", tokens(count)));
            }
        }
        if pane.is_left() {
            facts.push("not remembered any more".to_owned());
        }
        let facts = format!(" {}", clean(&facts.join(" · ")));
        let facts = Line::of(facts, Look::of(Role::Status).with(Look::BOLD));
        let edit = if self.columns < lines::NARROW {
            "e edit"
        } else {
            "e edit and resend"
        };
        let deeds: &[&str] = match row.and_then(|row| row.kind.read_as()) {
            _ if browse.seek.is_some() => &["reading older pages …"],
            Some(Kind::User) => &[edit, "y copy", "r rewind", "f fork"],
            Some(Kind::Rewind) => &["Enter to look", "r to go back there", "f fork", "y copy"],
            _ => &["Enter unfold", "y copy", "r rewind", "f fork"],
        };
        let (rest, way_out) = match browse.seek {
            Some(_) => (&[][..], "any key stops"),
            None => (&KEYS[..], "Esc back"),
        };
        let hints = Hints {
            gap: "  ",
            keys: &[deeds, rest].concat(),
            way_out,
            look: Look::of(Role::Status),
        };
        Some(hints.after(&facts, self.columns))
    }
}
