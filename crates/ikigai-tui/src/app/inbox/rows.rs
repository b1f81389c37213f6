//! Drawing of the inbox.

use ikigai_core::counts::counted;
use ikigai_core::render::Shown;
use ikigai_engine::{InboxEntry, InboxKind, since};

use super::super::UiContext;
use super::super::draw::{ItemLayout, draw_status};
use super::super::hints::Hints;
use super::super::layer::Area;
use super::{InboxItem, InboxLayer, waiting, waiting_count};
use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::paint::Grid;
use crate::rows::{self, FoldState};
use crate::signs::Symbols;
use crate::text::{clean, clean_line, cut, one_line, wrap};
use crate::width::width;

/// Longest text of a notification, in characters.
const NOTICE_CHARS: usize = 80;

/// Most entries of the list above the selected one.
const MOST_LISTED: u16 = 8;

/// Widest column of names.
const NAME: usize = 20;

/// Keys of the inbox.
const KEYS: Hints<'_> = Hints {
    gap: " ",
    keys: &[
        "Alt-I next",
        "Enter open agent",
        "d dismiss",
        "↑↓ select",
        "PgDn scroll",
    ],
    way_out: "Esc back",
    look: Look::of(Tone::Status),
};

/// Keys of the empty inbox.
const NO_KEYS: Hints<'_> = Hints { keys: &[], ..KEYS };

/// Returns the text of a notification.
pub(super) fn notification(entry: &InboxEntry) -> String {
    let name = clean_line(&entry.agent.name);
    let text = one_line(&entry.text);
    let text: String = text.chars().take(NOTICE_CHARS).collect();
    match entry.kind {
        InboxKind::Question => format!("{name} needs approval: {text}"),
        InboxKind::Failed | InboxKind::Budget => format!("{name} failed: {text}"),
        InboxKind::Interrupted => format!("{name} was interrupted"),
        InboxKind::Report => format!("{name} is done"),
        InboxKind::Process => format!("{name}: {text}"),
    }
}

const fn sign(kind: InboxKind, symbols: Symbols) -> &'static str {
    match (symbols, kind) {
        (Symbols::Utf8, _) | (_, InboxKind::Question | InboxKind::Budget) => kind.sign(),
        (Symbols::Ascii, InboxKind::Failed) => "x",
        (Symbols::Ascii, InboxKind::Interrupted) => "=",
        (Symbols::Ascii, InboxKind::Report) => "+",
        (Symbols::Ascii, InboxKind::Process) => "#",
    }
}

const fn tone(kind: InboxKind) -> Tone {
    match kind {
        InboxKind::Question => Tone::Question,
        InboxKind::Failed | InboxKind::Process => Tone::Error,
        InboxKind::Budget | InboxKind::Interrupted => Tone::Warning,
        InboxKind::Report => Tone::Good,
    }
}

impl InboxItem<'_> {
    /// Returns the whole text.
    fn text(&self) -> String {
        match (self.question, self.entry) {
            (Some(question), _) => format!("{}: {}", question.tool, question.shown),
            (None, Some(entry)) => entry.text.clone(),
            (None, None) => String::new(),
        }
    }

    fn name(&self, ctx: &UiContext) -> String {
        let entry = self.entry.map(|entry| entry.agent.name.clone());
        let name = ctx.name_of(self.agent).or(entry);
        clean_line(&name.unwrap_or_default()).into_owned()
    }

    /// Renders its row of the list: `sign name  age  word: text`.
    fn line(&self, names: usize, ctx: &UiContext) -> TextLine {
        let now = (ctx.options.now)();
        let age = self.entry.map(|entry| since(entry.at, now));
        let age = age.unwrap_or_else(|| "now".to_owned());
        let name = self.name(ctx);
        let head = format!(" {} {name:<names$} ", sign(self.kind, ctx.options.symbols));
        let text = one_line(&self.text()).into_owned();
        let line = TextLine::new(vec![
            TextSpan::new(head, tone(self.kind)),
            TextSpan::new(format!("{age:>7}  "), Tone::Faint),
            TextSpan::new(format!("{}: ", self.kind.word()), tone(self.kind)),
            TextSpan::new(clean(&text).into_owned(), Tone::Text),
        ]);
        cut(&line, ctx.columns, "…")
    }

    /// Lays out the whole entry.
    fn body(&self, ctx: &UiContext) -> Vec<TextLine> {
        let name_of = |agent| ctx.name_of(agent);
        let context = ItemLayout::new(ctx, self.agent).context(&name_of);
        let text = self.text();
        if self.kind == InboxKind::Report {
            let thinking = Vec::new();
            let shown = Shown::Assistant { thinking, text };
            return rows::block(&shown, FoldState::Open, &context).lines;
        }
        let indent = [TextSpan::new("  ", Tone::Text)];
        let lines = text.lines().flat_map(|line| {
            let look = match (self.kind, line.chars().next()) {
                (InboxKind::Question, Some('+')) => Tone::Added,
                (InboxKind::Question, Some('-')) => Tone::Removed,
                (InboxKind::Question, _) => Tone::Code,
                _ => Tone::Text,
            };
            let line = TextLine::new(vec![
                TextSpan::new("  ", Tone::Text),
                TextSpan::new(clean(line).into_owned(), look),
            ]);
            wrap(&line, ctx.columns, &indent)
        });
        lines.collect()
    }
}

impl InboxLayer {
    /// Draws the inbox on the whole screen.
    pub(super) fn draw_inbox(&mut self, ctx: &mut UiContext, grid: &mut Grid) {
        let ctx = &*ctx;
        let bottom = ctx.rows - 1;
        draw_status(ctx, grid, bottom);
        let items = waiting(ctx);
        let title = match items.len() {
            0 => " Inbox · nothing waits for you".to_owned(),
            count => format!(" Inbox · {}", counted(count, "entry")),
        };
        let look = Look::of(Tone::Heading).with(Look::BOLD);
        grid.line(0, 0, &cut(&TextLine::of(title, look), ctx.columns, "…"));
        let keys_row = bottom - 1;
        self.drawn = vec![None; usize::from(ctx.rows)];
        let most = MOST_LISTED.min(keys_row / 3).max(1);
        let listed = u16::try_from(items.len()).unwrap_or(most).min(most);
        self.draw_list(&items, listed, ctx, grid);
        if let Some(item) = self.index(&items).and_then(|index| items.get(index)) {
            self.draw_rule(item, listed + 1, ctx, grid);
            let area = Area {
                row: listed + 2,
                rows: keys_row.saturating_sub(listed + 2),
                column: 0,
                columns: ctx.columns,
            };
            if item.question.is_some() {
                // The question stands below its rule, not at the bottom of the screen.
                self.question.draw_rows(area, area.rows, ctx, grid);
            } else {
                self.draw_body(item, area, ctx, grid);
            }
        }
        self.note_shown(ctx);
        let line = match &ctx.toast {
            Some(toast) => cut(&toast.line(" ", ctx.options.symbols), ctx.columns, "…"),
            None if items.is_empty() => NO_KEYS.after(&TextLine::default(), ctx.columns),
            None => KEYS.after(&TextLine::default(), ctx.columns),
        };
        grid.line(keys_row, 0, &line);
    }

    fn draw_list(
        &mut self,
        items: &[InboxItem<'_>],
        listed: u16,
        ctx: &UiContext,
        grid: &mut Grid,
    ) {
        let height = usize::from(listed).max(1);
        let index = self.index(items).unwrap_or(0);
        let least = (index + 1).saturating_sub(height);
        self.list_top = self.list_top.clamp(least, index);
        let names = items.iter().map(|item| width(&item.name(ctx)));
        let names = names.max().unwrap_or(0).min(NAME);
        let visible = items.iter().enumerate().skip(self.list_top);
        for (row, (place, item)) in (1..=listed).zip(visible) {
            grid.line(row, 0, &item.line(names, ctx));
            if place == index {
                grid.restyle(row, 0..ctx.columns, Tone::Marked);
                grid.cursor = Some((row, 0));
            }
            if let Some(drawn) = self.drawn.get_mut(usize::from(row)) {
                *drawn = Some(item.row);
            }
        }
    }

    /// Draws the rule above the selected entry.
    fn draw_rule(&self, item: &InboxItem<'_>, row: u16, ctx: &UiContext, grid: &mut Grid) {
        let rule = match ctx.options.symbols {
            Symbols::Utf8 => "─",
            Symbols::Ascii => "-",
        };
        let place = self.index(&waiting(ctx)).map_or(0, |index| index + 1);
        let text = format!(" {} · {} ", item.name(ctx), item.kind.word());
        let count = format!(" {place}/{} ", waiting_count(ctx));
        let used = 1 + width(&text) + width(&count) + 1;
        let rest = usize::from(ctx.columns).saturating_sub(used);
        let line = TextLine::new(vec![
            TextSpan::new(rule, Tone::Rule),
            TextSpan::new(text, Look::of(tone(item.kind)).with(Look::BOLD)),
            TextSpan::new(rule.repeat(rest), Tone::Rule),
            TextSpan::new(count, Tone::Faint),
            TextSpan::new(rule, Tone::Rule),
        ]);
        grid.line(row, 0, &cut(&line, ctx.columns, "…"));
    }

    /// Draws an entry that is no question of this process.
    fn draw_body(&mut self, item: &InboxItem<'_>, area: Area, ctx: &UiContext, grid: &mut Grid) {
        let is_same = |(row, columns, _): &(_, u16, _)| *row == item.row && *columns == ctx.columns;
        if !self.body.as_ref().is_some_and(is_same) {
            self.body = Some((item.row, ctx.columns, item.body(ctx)));
        }
        let body = self.body.as_ref().map(|(_, _, lines)| lines.as_slice());
        let body = body.unwrap_or_default();
        let room = usize::from(area.rows).max(1);
        let fits = body.len() <= room;
        self.page = if fits {
            room
        } else {
            room.saturating_sub(1).max(1)
        };
        self.top = self.top.min(body.len().saturating_sub(self.page));
        let left = body.len() - self.top;
        let shown = body.iter().skip(self.top).take(self.page);
        for (row, line) in (area.row..area.bottom()).zip(shown) {
            grid.line(row, 0, &cut(line, area.columns, "…"));
        }
        self.is_end_seen |= left <= self.page;
        if left > self.page {
            let more = format!("  … {} · PgDn", counted(left - self.page, "more line"));
            let more = TextLine::of(more, Tone::Faint);
            grid.line(area.bottom() - 1, 0, &cut(&more, area.columns, "…"));
        }
    }
}

/// Returns the part of the status line about the inbox; none if nothing waits.
pub(in crate::app) fn status(ctx: &UiContext, with_key: bool) -> Option<String> {
    let waiting = waiting_count(ctx);
    let key = if with_key { " · Alt-I" } else { "" };
    (waiting > 0).then(|| format!(" inbox {waiting}{key} ·"))
}

#[cfg(test)]
mod tests {
    use super::{InboxKind, Symbols, sign};

    #[test]
    fn signs_are_plain_on_plain_terminals() {
        let kinds = [
            InboxKind::Question,
            InboxKind::Failed,
            InboxKind::Budget,
            InboxKind::Interrupted,
            InboxKind::Report,
            InboxKind::Process,
        ];
        let signs = kinds.map(|kind| sign(kind, Symbols::Ascii));
        assert_eq!(signs, ["?", "x", "$", "=", "+", "#"]);
    }
}
