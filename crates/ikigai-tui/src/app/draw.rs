//! Drawing of the whole screen: layers, conversation, work.

use ikigai_core::data::{self, CommandData};
use ikigai_core::render::{Names, Shown, render};
use ikigai_core::words::Severity;
use ikigai_core::{AgentId, Kind, Row};

use super::hints::Hints;
use super::layer::{Area, Layer as _};
use super::toast::with_sign;
use super::{App, Pane, UiContext, lines, welcome};
use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::paint::Grid;
use crate::rows::{self, FoldState, RenderContext};
use crate::scrollback::{Id, ItemContent, ItemRenderer, ScrollbackItem};
use crate::signs::{Sign, Symbols};
use crate::text::{clean, cut, wrap};
use crate::width::width;

/// Smallest screen that is drawn.
const LEAST_COLUMNS: u16 = 20;
const LEAST_ROWS: u16 = 6;

/// Limit of visible lines of a shell command before it is stored.
const PRINTED_ROWS: usize = 12;

/// Most rows of a toast.
const SAID_ROWS: usize = 3;

/// Columns before rows that a rewind hid.
const LEFT_COLUMNS: u16 = 2;

/// Keys for a queued message.
const QUEUED_KEYS: Hints<'_> = Hints {
    gap: "   ",
    keys: &[],
    way_out: "↑ edit · Ctrl-S send now",
    look: Look::of(Tone::Faint),
};

/// Keys for a line that its agent has not received: none.
const UNHEARD_KEYS: Hints<'_> = Hints {
    way_out: "",
    ..QUEUED_KEYS
};

/// Returns true for the later output of a command, whose first row shows the typed line.
fn is_late(row: &Row) -> bool {
    row.kind.read_as() == Some(Kind::Command)
        && data::read::<CommandData>(row.data.as_deref()).of.is_some()
}

/// Layout of items: width, symbols and names.
pub(super) struct ItemLayout<'a> {
    ctx: &'a UiContext,
    agent: AgentId,
    columns: u16,
}

impl ItemRenderer for ItemLayout<'_> {
    fn lay_out(&self, item: &ScrollbackItem, unfolded: bool) -> Vec<TextLine> {
        let name_of = |agent| self.ctx.name_of(agent);
        let mut context = self.context(&name_of);
        let is_left = matches!(item.id, Id::Left { .. });
        if is_left {
            context.width = context.width.saturating_sub(LEFT_COLUMNS);
        }
        let fold = if unfolded {
            FoldState::Open
        } else {
            FoldState::Folded
        };
        let mut lines = match &item.what {
            ItemContent::Row {
                report: Some(report),
                problem: None,
                ..
            } => rows::report(&render(report), fold, &context).lines,
            ItemContent::Row {
                row, problem: None, ..
            } if is_late(row) => rows::late_output(&render(row), fold, &context).lines,
            ItemContent::Row {
                row, problem: None, ..
            } => rows::block(&render(row), fold, &context).lines,
            ItemContent::Row {
                row,
                problem: Some(problem),
                ..
            } => {
                let warning = format!("event {} is skipped: {problem}", row.at);
                rows::block(&Shown::Warning(warning), fold, &context).lines
            }
            ItemContent::Turn(turn) => {
                let clock = (self.ctx.options.time_of_day)(turn.ended);
                let turn = rows::TurnSummary {
                    took: turn.took(),
                    tools: turn.calls,
                    tokens: turn.tokens,
                    cost_nano_usd: turn.cost,
                    clock,
                };
                vec![rows::turn_line(&turn, context.symbols)]
            }
            ItemContent::Context { by, replaced } => {
                rows::context_start(*by, *replaced, &context).lines
            }
        };
        if is_left {
            let sign = match context.symbols {
                Symbols::Utf8 => "┊ ",
                Symbols::Ascii => ": ",
            };
            for line in &mut lines {
                line.spans.insert(0, TextSpan::new(sign, Tone::Faint));
                line.lead += 1;
            }
        }
        lines
    }

    fn generation(&self) -> u64 {
        u64::from(self.columns) << 16 | u64::from(self.is_airy()) << 8 | self.ctx.names
    }

    fn is_airy(&self) -> bool {
        !self.ctx.is_tight()
    }
}

impl<'a> ItemLayout<'a> {
    pub(super) fn new(ctx: &'a UiContext, agent: AgentId) -> Self {
        Self {
            ctx,
            agent,
            columns: ctx.columns,
        }
    }

    /// Changes the width.
    pub(super) fn with_columns(self, columns: u16) -> Self {
        Self { columns, ..self }
    }

    pub(super) fn context<'n>(
        &self,
        name_of: &'n dyn Fn(AgentId) -> Option<String>,
    ) -> RenderContext<'n> {
        RenderContext {
            width: self.columns,
            symbols: self.ctx.options.symbols,
            names: Names {
                own: Some(self.agent),
                name_of,
            },
        }
    }
}

impl App {
    /// Draws everything.
    pub fn draw(&mut self, grid: &mut Grid) {
        let ctx = &mut self.ctx;
        grid.resize(ctx.columns, ctx.rows);
        grid.cursor = None;
        if ctx.columns < LEAST_COLUMNS || ctx.rows < LEAST_ROWS {
            let text = format!("too small: {}×{}", ctx.columns, ctx.rows);
            grid.put(0, 0, &text, Tone::Warning);
            return;
        }
        let covering = self.stack.iter().rposition(|layer| layer.covers_input());
        let mut area = ctx.screen();
        if covering.is_none() {
            area = self.input.draw(area, ctx, grid);
            area = self.question.draw(area, ctx, grid);
        }
        let layers = self.stack.iter_mut().skip(covering.unwrap_or(0));
        for layer in layers {
            area = layer.draw(area, ctx, grid);
        }
        if area.rows == 0 {
            return;
        }
        if covering.is_none() {
            area = draw_activity(area, ctx, grid);
        }
        draw_scrollback(area, ctx, grid);
        for layer in &mut self.stack {
            layer.draw_over(ctx, grid);
        }
        draw_end_hint(area, ctx, grid);
    }
}

/// Draws the status of the current agent.
pub(super) fn draw_status(ctx: &UiContext, grid: &mut Grid, row: u16) {
    if let Some(pane) = ctx.pane() {
        grid.line(row, 0, &lines::status(ctx, &pane.agent.state, ctx.columns));
    }
}

/// Draws the rows between conversation and input: work, pending messages, the tree.
fn draw_activity(area: Area, ctx: &UiContext, grid: &mut Grid) -> Area {
    let mut bottom = area.bottom() - 1;
    grid.line(bottom, 0, &lines::tree(ctx, area.columns));
    let above = ctx.pending_lines();
    for line in above.iter().rev().chain(busy_lines(ctx).iter().rev()) {
        if bottom > 1 {
            bottom -= 1;
            grid.line(bottom, 0, line);
        }
    }
    area.above(bottom)
}

/// Returns the rows of the toast, or of the agent's activity.
fn busy_lines(ctx: &UiContext) -> Vec<TextLine> {
    if let Some(toast) = &ctx.toast {
        let mut lines = wrap(&toast.line("", ctx.options.symbols), ctx.columns, &[]);
        lines.truncate(SAID_ROWS);
        return lines;
    }
    let settings = ctx.pane().map(|pane| pane.agent.state.settings());
    let model = settings.and_then(|settings| settings.model.as_ref());
    let provider = model.and_then(|model| model.provider.as_deref());
    let live = ctx.roster.live(ctx.current);
    let provider = provider.unwrap_or("the model");
    let busy = live.and_then(|live| lines::busy(live, provider, ctx.options.symbols, ctx.now));
    let shown = busy.map(|(line, hints)| match hints {
        Some(hints) => hints.after(&line, ctx.columns),
        None => cut(&line, ctx.columns, "…"),
    });
    shown.into_iter().collect()
}

fn draw_scrollback(area: Area, ctx: &mut UiContext, grid: &mut Grid) {
    // Taken out, because the layout reads everything else.
    let Some(mut pane) = ctx.panes.remove(&ctx.current) else {
        return;
    };
    let live = if pane.is_elsewhere() {
        Vec::new()
    } else {
        live_lines(&pane, ctx)
    };
    pane.scrollback.set_live(live);
    let eye = ItemLayout::new(ctx, ctx.current);
    let visible = pane.scrollback.visible(usize::from(area.rows), &eye);
    let places = |id: Id| pane.scrollback.place(id);
    // A short conversation is at the top of the screen.
    for (row, visible) in (0..).zip(&visible) {
        if let Some(line) = visible.line() {
            grid.line(row, 0, line);
        }
        let selected = ctx.selection.as_ref();
        if let Some((from, to)) = selected.and_then(|all| all.columns(visible, &places)) {
            let columns = narrow(from)..narrow(to);
            grid.restyle(row, columns, Tone::Selected);
        }
    }
    ctx.visible = visible;
    ctx.panes.insert(ctx.current, pane);
}

/// Draws the hint to return to the end, unless the end is on the screen.
fn draw_end_hint(area: Area, ctx: &mut UiContext, grid: &mut Grid) {
    let text = ctx.with_pane(|pane, eye| {
        if pane.is_elsewhere() {
            return Some(" history · ↓ End ".to_owned());
        }
        if pane.scrollback.is_at_end() {
            return None;
        }
        Some(match pane.scrollback.new_rows(eye) {
            0 => " ↓ End ".to_owned(),
            new => format!(" ↓ {new} new lines · End "),
        })
    });
    if let Some(text) = text.flatten() {
        let column = area.columns.saturating_sub(narrow(width(&text)));
        let look = Look::of(Tone::Status).with(Look::REVERSE);
        grid.put(area.bottom() - 1, column, &text, look);
    }
}

/// Returns the rows that are not stored yet, below the stored ones.
fn live_lines(pane: &Pane, ctx: &mut UiContext) -> Vec<TextLine> {
    let speech = speech_lines(ctx);
    let ctx = &*ctx;
    let (symbols, columns) = (ctx.options.symbols, ctx.columns);
    let mut lines = Vec::new();
    let is_new = pane.is_complete && !pane.scrollback.items().iter().any(is_begun);
    if is_new {
        let settings = pane.agent.state.settings();
        lines.extend(welcome::lines(&ctx.options, settings, columns));
    }
    let offer = ctx.grant_offer.iter();
    let offer = offer.map(|text| (Severity::Warning, text));
    let notes = ctx.notes.iter().map(|(severity, text)| (*severity, text));
    for (severity, text) in notes.chain(offer) {
        let role = match severity {
            Severity::Info => Tone::Agent,
            Severity::Warning => Tone::Warning,
        };
        let note = with_sign(severity, text, symbols);
        part(&mut lines);
        lines.extend(wrap(&TextLine::of(clean(&note), role), columns, &[]));
    }
    let Some(live) = ctx.roster.live(ctx.current) else {
        return lines;
    };
    if !live.thinking.is_empty() && live.is_busy() {
        part(&mut lines);
        lines.push(thinking(&live.thinking, symbols, columns));
    }
    if !speech.is_empty() {
        part(&mut lines);
        lines.extend(speech);
    }
    let output = ctx.tool_output_lines(live);
    if !output.is_empty() {
        part(&mut lines);
        lines.extend(output);
    }
    if !live.printed.is_empty() {
        part(&mut lines);
        let first = live.printed.len().saturating_sub(PRINTED_ROWS);
        for printed in &live.printed[first..] {
            let printed = TextLine::of(format!("  {}", clean(printed)), Tone::Faint);
            lines.push(cut(&printed, columns, "…"));
        }
    }
    let processes = ctx.process_lines();
    if !processes.is_empty() {
        part(&mut lines);
        lines.extend(processes);
    }
    let children = child_lines(ctx);
    if !children.is_empty() {
        part(&mut lines);
        lines.extend(children);
    }
    let queued = live.queued.iter();
    let queued = queued.map(|(_, text)| (text.as_str(), QUEUED_KEYS));
    let unheard = ctx.outbox.queued(ctx.current);
    let unheard = unheard.map(|entry| (entry.submission.line(), UNHEARD_KEYS));
    for (index, (text, keys)) in queued.chain(unheard).enumerate() {
        if index == 0 {
            part(&mut lines);
        }
        let text = lines::first_line(text);
        let queued = TextLine::of(format!("⋯ queued: {}", clean(text)), Tone::Faint);
        lines.push(keys.after(&queued, columns));
    }
    lines
}

/// Returns the rows of children at work.
fn child_lines(ctx: &UiContext) -> Vec<TextLine> {
    let children = ctx.roster.children(ctx.current);
    let at_work = children.filter(|(_, known)| known.is_worth_a_row());
    let at_work: Vec<_> = at_work.map(|(_, known)| known).collect();
    let names = at_work.iter().map(|known| known.branch.agent.name.len());
    let most = usize::from(ctx.columns / 2);
    let room = (ctx.columns, names.max().unwrap_or(0).min(most));
    let rows = at_work
        .iter()
        .map(|known| lines::child(known, ctx.options.symbols, room, ctx.now));
    rows.collect()
}

/// Returns the text that the model streams.
fn speech_lines(ctx: &mut UiContext) -> Vec<TextLine> {
    let style = rows::speech(&ItemLayout::new(ctx, ctx.current).context(&|_| None));
    ctx.roster.answer_lines(ctx.current, style).to_vec()
}

/// Adds an empty row between two parts.
fn part(lines: &mut Vec<TextLine>) {
    if !lines.is_empty() {
        lines.push(TextLine::default());
    }
}

/// Returns the newest line of the model's thinking.
fn thinking(text: &str, symbols: Symbols, columns: u16) -> TextLine {
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    let sign = Sign::Thought.text(symbols);
    let look = Look::of(Tone::Thinking).with(Look::DIM);
    cut(
        &TextLine::of(format!("{sign} {}", clean(last)), look),
        columns,
        "…",
    )
}

/// Reports whether an item shows that the agent was used before.
fn is_begun(item: &ScrollbackItem) -> bool {
    let ItemContent::Row { row, .. } = &item.what else {
        return false;
    };
    matches!(
        row.kind.read_as(),
        Some(Kind::User | Kind::Rewind | Kind::Clear)
    )
}

fn narrow(columns: usize) -> u16 {
    u16::try_from(columns).unwrap_or(u16::MAX)
}
