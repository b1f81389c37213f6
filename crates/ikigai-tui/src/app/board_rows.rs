//! Drawing of the board.

use std::fmt::Write as _;
use std::time::Duration;

use ikigai_core::counts::counted;
use ikigai_core::{AgentId, Micros};
use ikigai_engine::ListedProcess;
use ikigai_engine::figures::{dollars, tokens};

use super::board::{Board, BoardGroup, BoardPrompt, BoardRow, WIDE};
use super::draw::ItemLayout;
use super::hints::Hints;
use super::layer::Area;
use super::{AgentActivity, KnownAgent, UiContext, lines, question_rows};
use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::paint::Grid;
use crate::text::{clean, cut, one_line};
use crate::width::width;

/// Widths of the columns at the right: silent for, tokens, cost, age.
const SILENT: usize = 6;
const TOKENS: usize = 7;
const COST: usize = 8;
const AGE: usize = 6;

/// Widest column of names.
const NAME: usize = 20;

/// Width of a state with its sign.
const STATE: usize = 9;

/// Key that only an agent with a question takes.
const REJECT: &str = "n reject";

/// Keys of the board.
const KEYS: Hints<'_> = Hints {
    gap: " ",
    keys: &[
        "Enter open",
        REJECT,
        "Space preview",
        "s mail",
        "i interrupt",
        "m merge",
        "f fork",
        "x kill",
        "t tree",
        "/ filter",
    ],
    way_out: "Esc back",
    look: Look::of(Tone::Status),
};

impl Board {
    /// Draws the board on the whole screen.
    pub(super) fn draw_board(&mut self, ctx: &mut UiContext, grid: &mut Grid) {
        let (marked, bottom) = (self.selected(ctx), ctx.rows - 1);
        let title = self.title(ctx);
        let title_end = grid.line(0, 0, &cut(&title, ctx.columns, "…"));
        let mut list = Area {
            row: 1,
            rows: bottom.saturating_sub(1),
            column: 0,
            columns: ctx.columns,
        };
        let question = marked.and_then(|marked| self.question_lines(marked, ctx));
        if let Some(marked) = marked.filter(|_| self.peeks(ctx)) {
            let area = split(&mut list, grid);
            self.draw_peek(marked, question, ctx, grid, area);
        } else if let Some(lines) = question {
            let most = list.rows.saturating_sub(2).max(1);
            let rows = u16::try_from(lines.len()).unwrap_or(most).min(most);
            list.rows -= rows;
            draw_lines(&lines, grid, list.row + list.rows, 0, rows);
        }
        self.note_question(marked, ctx);
        let names = fact_names(usize::from(list.columns));
        let begin = usize::from(list.columns).saturating_sub(width(&names));
        if begin > usize::from(title_end) {
            let begin = u16::try_from(begin).unwrap_or(u16::MAX);
            grid.put(0, begin, &names, Tone::Faint);
        }
        self.draw_list(list, marked, ctx, grid);
        self.draw_keys(bottom, ctx, grid);
    }

    /// Draws the selected agent's activity, and its question below.
    fn draw_peek(
        &mut self,
        agent: AgentId,
        question: Option<Vec<TextLine>>,
        ctx: &mut UiContext,
        grid: &mut Grid,
        area: Area,
    ) {
        let name = ctx.name_of(agent).unwrap_or_default();
        let look = Look::of(Tone::Heading).with(Look::BOLD);
        let title = TextLine::new(vec![
            TextSpan::new("─ ", Tone::Rule),
            TextSpan::new(format!("{} ", clean(&name)), look),
        ]);
        let title = cut(&title, area.columns, "…");
        let end = grid.line(area.row, area.column, &title);
        let rest = (area.column + area.columns).saturating_sub(end);
        grid.put(area.row, end, &"─".repeat(usize::from(rest)), Tone::Rule);
        let mut tail = Area {
            row: area.row + 1,
            rows: area.rows.saturating_sub(1),
            ..area
        };
        if let Some(lines) = question {
            let most = tail.rows * 2 / 3;
            let rows = u16::try_from(lines.len()).unwrap_or(most).min(most);
            tail.rows -= rows;
            draw_lines(&lines, grid, tail.row + tail.rows, tail.column, rows);
        }
        self.tail.draw(agent, tail, ctx, grid);
    }

    /// Returns the rows of an agent's question.
    fn question_lines(&self, agent: AgentId, ctx: &UiContext) -> Option<Vec<TextLine>> {
        let known = ctx.roster.get(agent)?;
        let question_since = known.live.questions.first()?;
        let columns = if self.peeks(ctx) && ctx.columns >= WIDE {
            ctx.columns - ctx.columns / 2 - 1
        } else {
            ctx.columns
        };
        let name_of = |agent| ctx.name_of(agent);
        let context = ItemLayout::new(ctx, agent)
            .with_columns(columns)
            .context(&name_of);
        let most = usize::from(ctx.rows);
        Some(question_rows::call_lines(question_since, &context, most))
    }

    /// Records the time at which a question appeared on the screen.
    fn note_question(&mut self, marked: Option<AgentId>, ctx: &UiContext) {
        let known = marked.and_then(|marked| ctx.roster.get(marked));
        let question_since = known.and_then(|known| known.live.questions.first());
        let call = question_since.map(|question| question.call);
        if self.question_since.map(|(before, _)| before) != call {
            self.question_since = call.map(|call| (call, ctx.now));
        }
    }

    fn title(&self, ctx: &UiContext) -> TextLine {
        let states: Vec<_> = ctx.roster.all().map(|(_, known)| known.state()).collect();
        let count = |wanted: AgentActivity| states.iter().filter(|state| **state == wanted).count();
        let shown = self
            .entries(ctx)
            .iter()
            .filter(|entry| matches!(entry, BoardRow::Agent(_)))
            .count();
        let all = counted(states.len(), "agent");
        let mut parts = vec![if self.filter.is_empty() {
            all
        } else {
            format!("{shown} of {all}")
        }];
        let (asking, working) = (count(AgentActivity::Asks), count(AgentActivity::Works));
        if asking > 0 {
            let needs = if asking == 1 { "needs" } else { "need" };
            parts.push(format!("{asking} {needs} approval"));
        }
        if working > 0 {
            parts.push(format!("{working} working"));
        }
        let mut line = TextLine::of(
            format!(" {}", parts.join(" · ")),
            Look::of(Tone::Heading).with(Look::BOLD),
        );
        // While it is typed, the last row shows it.
        let is_typed = matches!(self.prompt, Some((BoardPrompt::Filter, _)));
        if !self.filter.is_empty() && !is_typed {
            let text = format!(" · filter: {}", clean(&self.filter));
            line.spans.push(TextSpan::new(text, Tone::Match));
        }
        line
    }

    fn draw_list(&mut self, area: Area, marked: Option<AgentId>, ctx: &UiContext, grid: &mut Grid) {
        let entries = self.entries(ctx);
        let place = entries
            .iter()
            .position(|entry| marked.is_some_and(|marked| *entry == BoardRow::Agent(marked)));
        let height = usize::from(area.rows);
        let place = place.unwrap_or(0);
        // The heading above the first agent stays on the screen with it.
        let least = (place + 1).saturating_sub(height);
        let most = place
            .saturating_sub(1)
            .min(entries.len().saturating_sub(height));
        let top = self.top.clamp(least.min(most), most.max(least));
        let names = entries.iter().filter_map(|entry| match entry {
            BoardRow::Agent(agent) => Some(self.name_width(*agent, ctx)),
            BoardRow::Heading(_) | BoardRow::Process(_) => None,
        });
        let longest = names.max().unwrap_or(0);
        let name_width = longest.min(NAME).min(usize::from(area.columns) / 3);
        let mut drawn = vec![None; usize::from(ctx.rows)];
        for (row, entry) in (area.row..area.row + area.rows).zip(entries.iter().skip(top)) {
            match entry {
                BoardRow::Heading(group) => {
                    grid.line(row, area.column, &heading(*group));
                }
                BoardRow::Process(index) => {
                    if let Some(process) = ctx.processes.get(*index) {
                        let indent = self.indent(process.agent, ctx);
                        let line = process_line(process, indent, area.columns);
                        grid.line(row, area.column, &line);
                    }
                }
                BoardRow::Agent(agent) => {
                    let line = self.agent_line(*agent, name_width, area.columns, ctx);
                    grid.line(row, area.column, &line);
                    if marked == Some(*agent) {
                        grid.restyle(row, area.column..area.column + area.columns, Tone::Marked);
                        grid.cursor = Some((row, area.column));
                    }
                    if let Some(place) = drawn.get_mut(usize::from(row)) {
                        *place = Some(*agent);
                    }
                }
            }
        }
        if entries.is_empty() {
            let text = "No match. Esc shows all";
            grid.put(area.row, area.column, text, Tone::Faint);
        }
        self.top = top;
        self.drawn = drawn;
    }

    fn indent(&self, agent: AgentId, ctx: &UiContext) -> usize {
        let known = ctx.roster.get(agent).filter(|_| self.is_tree);
        known.map_or(0, |known| known.branch.depth.min(8) * 2)
    }

    fn name_width(&self, agent: AgentId, ctx: &UiContext) -> usize {
        let name = ctx.name_of(agent).unwrap_or_default();
        self.indent(agent, ctx) + width(&name)
    }

    /// Renders an agent: `name  state  last words  silent for  tokens  cost  age`.
    ///
    /// Narrow screens omit age, then cost, then tokens.
    fn agent_line(&self, agent: AgentId, names: usize, columns: u16, ctx: &UiContext) -> TextLine {
        let Some(known) = ctx.roster.get(agent) else {
            return TextLine::default();
        };
        let columns = usize::from(columns);
        let name = format!(
            "{}{}",
            " ".repeat(self.indent(agent, ctx)),
            clean(&known.branch.agent.name)
        );
        let group = BoardGroup::of(known);
        let state = match group {
            BoardGroup::Done => AgentActivity::Done,
            _ => known.state(),
        };
        let state = lines::sign(state, ctx.options.symbols);
        let state = match columns {
            ..50 => state.to_owned(),
            _ => format!("{state} {}", state_word(known)),
        };
        let state_width = if columns < 50 { 1 } else { STATE };
        let here = if agent == ctx.current { "›" } else { " " };
        let look = match group {
            BoardGroup::NeedsYou => Tone::Question,
            BoardGroup::Working => Tone::Busy,
            BoardGroup::Failed => Tone::Error,
            BoardGroup::Done => Tone::Good,
            BoardGroup::Idle => Tone::Text,
            BoardGroup::Dead => Tone::Faint,
        };
        let before = format!("{here}{} {} ", pad(&name, names), pad(&state, state_width));
        let facts = agent_facts(known, columns, ctx);
        let used = width(&before) + width(&facts) + 1;
        let room = columns.saturating_sub(used);
        let question = known.live.questions.first();
        let last = question.map_or_else(
            || lines::last_line(&known.live.summary.last).to_owned(),
            |question| format!("{}: {}", question.tool, one_line(&question.shown)),
        );
        TextLine::new(vec![
            TextSpan::new(before, look),
            TextSpan::new(pad(&clean(&last), room), Tone::Faint),
            TextSpan::new(format!(" {facts}"), Tone::Faint),
        ])
    }

    /// Draws the last row: a prompt, a question, a toast, or the keys.
    fn draw_keys(&mut self, row: u16, ctx: &UiContext, grid: &mut Grid) {
        if let Some((_, prompt)) = &mut self.prompt {
            return prompt.draw(grid, row, ctx.columns);
        }
        let line = if let Some(question) = self.kill_question(ctx) {
            let look = Look::of(Tone::Question).with(Look::BOLD);
            let hints = Hints {
                gap: "  ",
                keys: &["y kill"],
                way_out: "any other key: cancel",
                look,
            };
            let question = TextLine::of(format!(" {}", clean(&question)), look);
            hints.after(&question, ctx.columns)
        } else if let Some(toast) = &ctx.toast {
            cut(&toast.line(" ", ctx.options.symbols), ctx.columns, "…")
        } else {
            let live = self.selected(ctx).and_then(|agent| ctx.roster.live(agent));
            let asks = live.is_some_and(|live| !live.questions.is_empty());
            let keys = KEYS.keys.iter().copied();
            let keys: Vec<_> = keys.filter(|key| asks || *key != REJECT).collect();
            let hints = Hints {
                keys: &keys,
                ..KEYS
            };
            hints.after(&TextLine::default(), ctx.columns)
        };
        grid.line(row, 0, &line);
    }
}

/// Renders a process of the agent above: `process 1  COMMAND · last line`.
pub(super) fn process_line(process: &ListedProcess, indent: usize, columns: u16) -> TextLine {
    let command = one_line(&clean(&process.command)).into_owned();
    let command = TextLine::of(command, Tone::Text);
    // A long command leaves room for the last line.
    let most = if process.last_line.is_empty() {
        columns
    } else {
        columns / 2
    };
    let mut spans = vec![TextSpan::new(
        format!("   {}process {}  ", " ".repeat(indent), process.number),
        Tone::Busy,
    )];
    spans.extend(cut(&command, most, "…").spans);
    if !process.last_line.is_empty() {
        let last = format!(" · {}", one_line(&clean(&process.last_line)));
        spans.push(TextSpan::new(last, Tone::Faint));
    }
    cut(&TextLine::new(spans), columns, "…")
}

/// Splits the list's area. Returns the part to its right or below, for the activity.
fn split(list: &mut Area, grid: &mut Grid) -> Area {
    let columns = list.columns;
    if columns >= WIDE {
        let left = columns / 2;
        list.columns = left - 1;
        for row in list.row..list.row + list.rows {
            grid.put(row, left - 1, "│", Tone::Rule);
        }
        return Area {
            column: left + 1,
            columns: columns - left - 1,
            ..*list
        };
    }
    let rows = list.rows / 2;
    list.rows -= rows;
    Area {
        row: list.row + list.rows,
        rows,
        ..*list
    }
}

fn draw_lines(lines: &[TextLine], grid: &mut Grid, top: u16, column: u16, rows: u16) {
    for (row, line) in (top..top + rows).zip(lines) {
        grid.line(row, column, line);
    }
}

/// Names of the columns that `agent_facts` fills.
fn fact_names(columns: usize) -> String {
    let mut names = format!("{:>SILENT$}", "quiet");
    for (name, size, least) in [("tokens", TOKENS, 44), ("cost", COST, 58), ("age", AGE, 72)] {
        if columns >= least {
            let _ = write!(names, "{name:>size$}");
        }
    }
    names
}

fn agent_facts(known: &KnownAgent, columns: usize, ctx: &UiContext) -> String {
    let now = (ctx.options.now)();
    let since = |at: Micros| {
        let micros = now.0.saturating_sub(at.0);
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    let record = &known.branch.agent;
    let last_event = known
        .live
        .last_event
        .map(|at| ctx.now.saturating_duration_since(at));
    let silent = last_event.or(record.touched_at.map(since));
    let silent = silent.map_or_else(String::new, short);
    let mut facts = format!("{silent:>SILENT$}");
    if columns >= 44 {
        let used = match known.live.summary.tokens {
            0 => String::new(),
            used => tokens(used),
        };
        let _ = write!(facts, "{used:>TOKENS$}");
    }
    if columns >= 58 {
        let cost = known.live.summary.cost.filter(|cost| *cost > 0);
        let cost = cost.map_or_else(String::new, dollars);
        let _ = write!(facts, "{cost:>COST$}");
    }
    if columns >= 72 {
        let _ = write!(facts, "{:>AGE$}", short(since(record.created_at)));
    }
    facts
}

fn heading(group: BoardGroup) -> TextLine {
    TextLine::of(group.heading(), Look::of(Tone::Heading).with(Look::BOLD))
}

fn state_word(known: &KnownAgent) -> &'static str {
    match (BoardGroup::of(known), known.state()) {
        (BoardGroup::NeedsYou, _) => "waiting",
        (BoardGroup::Working, _) => "working",
        (BoardGroup::Failed, _) => "failed",
        (BoardGroup::Done, _) => "done",
        (_, AgentActivity::Merged) => "merged",
        (_, AgentActivity::Stopped) => "stopped",
        (BoardGroup::Idle, _) => "idle",
        (BoardGroup::Dead, _) => "ended",
    }
}

/// Pads or cuts text to a number of columns.
fn pad(text: &str, columns: usize) -> String {
    let line = TextLine::of(text.replace('\n', " "), Tone::Text);
    let text = cut(&line, u16::try_from(columns).unwrap_or(u16::MAX), "…").text();
    let left = columns.saturating_sub(width(&text));
    format!("{text}{}", " ".repeat(left))
}

/// Spells a time span briefly.
fn short(span: Duration) -> String {
    match span.as_secs() {
        seconds @ ..100 => format!("{seconds}s"),
        seconds @ 100..6000 => format!("{}min", seconds / 60),
        seconds @ 6000..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}
