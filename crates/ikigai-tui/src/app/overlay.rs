//! Overlay: text over the conversation, such as help and the output of a command.

use super::UiContext;
use super::draw::draw_status;
use super::hints::Hints;
use super::layer::{Area, Handled, Layer};
use super::lines::NARROW;
use super::mouse::WHEEL_ROWS;
use crate::key::{MouseAction, MouseEvent};
use crate::keys::{self, Action, Bindings};
use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::paint::Grid;
use crate::text::{clean, wrap};
use crate::width::width;

/// Text with a title that can be scrolled.
pub(super) struct Overlay {
    title: String,
    lines: Vec<TextLine>,
    top: usize,
}

impl Overlay {
    /// Creates an overlay of plain text.
    pub(super) fn of_text(title: &str, text: &str) -> Self {
        let lines = clean(text);
        Self::of_lines(title, lines.lines().map(in_columns).collect())
    }

    /// Creates an overlay of styled lines.
    pub(super) fn of_lines(title: &str, lines: Vec<TextLine>) -> Self {
        Self {
            title: clean(title).into_owned(),
            lines,
            top: 0,
        }
    }
}

/// Widest column of keys in the help; a row with more keys is not aligned.
const KEY_COLUMNS: usize = 24;

/// Creates the help on keys, in groups.
pub(super) fn help(bindings: &Bindings) -> Overlay {
    let mut lines = Vec::new();
    let mut groups = vec![bindings.essential_help()];
    groups.extend(bindings.help());
    let keys = groups.iter().flat_map(|group| &group.rows);
    let columns = keys.map(|(keys, _)| width(&labels(keys))).max();
    let columns = columns.unwrap_or(0).min(KEY_COLUMNS);
    for group in groups {
        if !lines.is_empty() {
            lines.push(TextLine::default());
        }
        let heading = Look::of(Tone::Heading).with(Look::BOLD);
        lines.push(TextLine::of(group.heading, heading));
        for (keys, entry) in group.rows {
            let keys = format!("  {:<columns$} ", labels(&keys));
            let mut line = TextLine::new(vec![
                TextSpan::new(keys, Tone::Code),
                TextSpan::new(entry.help, Tone::Text),
            ]);
            line.lead = 1;
            lines.push(line);
        }
    }
    Overlay::of_lines("Keys · /help for commands", lines)
}

/// Returns the keys of an action as the screen shows them.
fn labels(keys: &[String]) -> String {
    let labels: Vec<_> = keys.iter().map(|names| keys::label(names)).collect();
    labels.join(", ")
}

/// Returns the help on keys as text.
pub(super) fn keys_text(bindings: &Bindings) -> String {
    let lines = help(bindings).lines;
    let lines: Vec<_> = lines.iter().map(TextLine::text).collect();
    lines.join("\n")
}

impl Layer for Overlay {
    fn bindings(&self, _ctx: &UiContext) -> Vec<keys::KeyMode> {
        vec![keys::KeyMode::Overlay]
    }

    fn act(&mut self, action: Action, ctx: &mut UiContext) -> Handled {
        let page = usize::from(ctx.rows.saturating_sub(4)).max(1);
        match action {
            Action::OverlayUp => self.top = self.top.saturating_sub(1),
            Action::OverlayDown => self.top += 1,
            Action::OverlayPageUp => self.top = self.top.saturating_sub(page),
            Action::OverlayPageDown => self.top += page,
            Action::OverlayTop => self.top = 0,
            Action::OverlayBottom => self.top = usize::MAX,
            Action::OverlayLeave => ctx.close(),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    /// Closes the overlay and types into the input.
    fn text(&mut self, _text: &str, ctx: &mut UiContext) -> Handled {
        ctx.close();
        Handled::No
    }

    fn mouse(&mut self, mouse: MouseEvent, _ctx: &mut UiContext) -> Handled {
        let rows = match mouse.action {
            MouseAction::WheelUp => -WHEEL_ROWS,
            MouseAction::WheelDown => WHEEL_ROWS,
            MouseAction::Press | MouseAction::Drag | MouseAction::Release => 0,
        };
        self.top = self.top.saturating_add_signed(rows);
        Handled::Yes
    }

    fn covers_input(&self) -> bool {
        true
    }

    fn draw(&mut self, area: Area, ctx: &mut UiContext, grid: &mut Grid) -> Area {
        let bottom = area.bottom() - 1;
        draw_status(ctx, grid, bottom);
        let lines = self.lines.iter();
        let rows: Vec<TextLine> = lines
            .flat_map(|line| wrap_line(line, area.columns))
            .collect();
        let room = usize::from(bottom.saturating_sub(2)).max(1);
        self.top = self.top.min(rows.len().saturating_sub(room));
        let title = Look::of(Tone::Heading).with(Look::BOLD);
        grid.put(0, 0, &self.title, title);
        for (row, line) in (1..).zip(rows.iter().skip(self.top).take(room)) {
            grid.line(row, 0, line);
        }
        let below = rows.len().saturating_sub(self.top + room);
        let (more, gap) = match below {
            0 => (TextLine::default(), ""),
            below => (TextLine::of(format!("↓ {below} more"), Tone::Faint), " · "),
        };
        let hints = Hints {
            gap,
            keys: &["↑↓ scroll"],
            way_out: "Esc close",
            look: Look::of(Tone::Faint),
        };
        grid.line(bottom - 1, 0, &hints.after(&more, area.columns));
        area.above(area.row)
    }
}

/// Splits a line into its first column and the rest.
fn in_columns(text: &str) -> TextLine {
    let indent = text.len() - text.trim_start().len();
    let gap = text.get(indent..).and_then(|rest| rest.find("  "));
    // Text in the second column alone continues the row above.
    let gap = gap
        .map(|gap| indent + gap)
        .or((indent > 4).then_some(indent));
    let (lead, rest) = text.split_at(gap.unwrap_or(0));
    let rest_start = rest.len() - rest.trim_start().len();
    let (space, rest) = rest.split_at(rest_start);
    if lead.is_empty() || rest.is_empty() {
        return TextLine::of(text, Tone::Text);
    }
    let mut line = TextLine::new(vec![
        TextSpan::new(format!("{lead}{space}"), Tone::Text),
        TextSpan::new(rest, Tone::Text),
    ]);
    line.lead = 1;
    line
}

/// Wraps a line. Its lead is a column, or a row above on narrow screens.
fn wrap_line(line: &TextLine, columns: u16) -> Vec<TextLine> {
    let (lead, text) = line.spans.split_at(line.lead.min(line.spans.len()));
    let wide: usize = lead.iter().map(|span| width(&span.text)).sum();
    let indent = |wide: usize| [TextSpan::new(" ".repeat(wide), Tone::Text)];
    if width(&line.text()) <= usize::from(columns) {
        return vec![line.clone()];
    }
    if columns >= NARROW || lead.is_empty() {
        return wrap(line, columns, &indent(wide.max(2)));
    }
    let mut rows = wrap(&TextLine::new(lead.to_vec()), columns, &indent(2));
    rows.retain(|row| !row.text().trim().is_empty());
    let mut text = TextLine::new([&indent(4)[..], text].concat());
    text.lead = 1;
    rows.extend(wrap(&text, columns, &indent(4)));
    rows
}
