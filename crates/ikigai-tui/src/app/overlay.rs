//! Text that lies over the scrollback until it is put away: help, lists, what a command shows.

use super::hints::Hints;
use super::lines::NARROW;
use super::{App, Mode};
use crate::keys::{Action, Bindings};
use crate::line::{Line, Span};
use crate::look::{Look, Role};
use crate::paint::Grid;
use crate::text::{clean, wrap};
use crate::width::width;

/// See the module.
pub(super) struct Overlay {
    title: String,
    lines: Vec<Line>,
    top: usize,
}

impl Overlay {
    /// Text as it is.
    pub(super) fn of_text(title: &str, text: &str) -> Self {
        let lines = clean(text);
        Self::of_lines(title, lines.lines().map(in_columns).collect())
    }

    /// Lines as they are.
    pub(super) fn of_lines(title: &str, lines: Vec<Line>) -> Self {
        Self {
            title: clean(title).into_owned(),
            lines,
            top: 0,
        }
    }
}

/// How many columns the keys of the help take at most; who binds more to one action has a row that
/// does not stand in line.
const KEY_COLUMNS: usize = 40;

/// What keys do, in groups.
pub(super) fn help(bindings: &Bindings) -> Overlay {
    let mut lines = Vec::new();
    let groups = bindings.help();
    let keys = groups.iter().flat_map(|group| &group.rows);
    let columns = keys.map(|(keys, _)| width(&keys.join(", "))).max();
    let columns = columns.unwrap_or(0).min(KEY_COLUMNS);
    for group in groups {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        let heading = Look::of(Role::Heading).with(Look::BOLD);
        lines.push(Line::of(group.heading, heading));
        for (keys, entry) in group.rows {
            let keys = format!("  {:<columns$} ", keys.join(", "));
            let mut line = Line::new(vec![
                Span::new(keys, Role::Code),
                Span::new(entry.help, Role::Text),
            ]);
            line.lead = 1;
            lines.push(line);
        }
    }
    Overlay::of_lines("Keys · /help lists the commands", lines)
}

impl App {
    /// Does what a key means for an overlay; says whether it means something there.
    pub(super) fn act_in_overlay(&mut self, action: Action) -> bool {
        let page = usize::from(self.rows.saturating_sub(4)).max(1);
        let Mode::Overlay(overlay) = &mut self.mode else {
            return false;
        };
        match action {
            Action::OverlayUp => overlay.top = overlay.top.saturating_sub(1),
            Action::OverlayDown => overlay.top += 1,
            Action::OverlayPageUp => overlay.top = overlay.top.saturating_sub(page),
            Action::OverlayPageDown => overlay.top += page,
            Action::OverlayTop => overlay.top = 0,
            Action::OverlayBottom => overlay.top = usize::MAX,
            Action::OverlayLeave => self.mode = Mode::Input,
            _ => return false,
        }
        true
    }

    /// Draws an overlay above a row, if there is one.
    pub(super) fn draw_overlay(&mut self, grid: &mut Grid, bottom: u16) -> bool {
        let columns = self.columns;
        let Mode::Overlay(overlay) = &mut self.mode else {
            return false;
        };
        let lines = overlay.lines.iter();
        let rows: Vec<Line> = lines.flat_map(|line| wrapped(line, columns)).collect();
        let room = usize::from(bottom.saturating_sub(2)).max(1);
        overlay.top = overlay.top.min(rows.len().saturating_sub(room));
        let title = Look::of(Role::Heading).with(Look::BOLD);
        grid.put(0, 0, &overlay.title, title);
        for (row, line) in (1..).zip(rows.iter().skip(overlay.top).take(room)) {
            grid.line(row, 0, line);
        }
        let below = rows.len().saturating_sub(overlay.top + room);
        let (more, gap) = match below {
            0 => (Line::default(), ""),
            below => (Line::of(format!("↓ {below} more"), Role::Faint), " · "),
        };
        let hints = Hints {
            gap,
            keys: &["↑↓ scroll"],
            way_out: "Esc back",
            look: Look::of(Role::Faint),
        };
        grid.line(bottom - 1, 0, &hints.after(&more, columns));
        true
    }
}

/// A line of text whose first column, if it has several, is its lead.
fn in_columns(text: &str) -> Line {
    let indent = text.len() - text.trim_start().len();
    let gap = text.get(indent..).and_then(|rest| rest.find("  "));
    // What is in its column alone belongs to the row above.
    let gap = gap
        .map(|gap| indent + gap)
        .or((indent > 4).then_some(indent));
    let (lead, rest) = text.split_at(gap.unwrap_or(0));
    let rest_start = rest.len() - rest.trim_start().len();
    let (space, rest) = rest.split_at(rest_start);
    if lead.is_empty() || rest.is_empty() {
        return Line::of(text, Role::Text);
    }
    let mut line = Line::new(vec![
        Span::new(format!("{lead}{space}"), Role::Text),
        Span::new(rest, Role::Text),
    ]);
    line.lead = 1;
    line
}

/// The rows of a line. Its lead is a column of its own, or, where there are few, a row above.
fn wrapped(line: &Line, columns: u16) -> Vec<Line> {
    let (lead, text) = line.spans.split_at(line.lead.min(line.spans.len()));
    let wide: usize = lead.iter().map(|span| width(&span.text)).sum();
    let indent = |wide: usize| [Span::new(" ".repeat(wide), Role::Text)];
    if width(&line.text()) <= usize::from(columns) {
        return vec![line.clone()];
    }
    if columns >= NARROW || lead.is_empty() {
        return wrap(line, columns, &indent(wide.max(2)));
    }
    let mut rows = wrap(&Line::new(lead.to_vec()), columns, &indent(2));
    rows.retain(|row| !row.text().trim().is_empty());
    let mut text = Line::new([&indent(4)[..], text].concat());
    text.lead = 1;
    rows.extend(wrap(&text, columns, &indent(4)));
    rows
}
