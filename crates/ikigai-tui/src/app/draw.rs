//! Drawing: where everything stands on the screen.

use ikigai_core::render::{Names, Shown, render};
use ikigai_core::{AgentId, Kind};

use super::hints::Hints;
use super::{App, Mode, Pane, lines, welcome};
use crate::line::{Line, Span};
use crate::look::{Look, Role};
use crate::paint::Grid;
use crate::rows::{self, Fold, Manner, Sign, Symbols};
use crate::scrollback::{Id, Item, Layout, What};
use crate::text::{clean, cut, wrap};

/// Below this the screen says only that it is too small.
const LEAST_COLUMNS: u16 = 20;
const LEAST_ROWS: u16 = 6;

/// Below this many rows everything is drawn tightly.
const ROOMY_ROWS: u16 = 15;

/// How many rows the input grows to.
const INPUT_ROWS: u16 = 10;
const TIGHT_INPUT_ROWS: u16 = 3;

/// The sign before the input.
const PROMPT_COLUMNS: u16 = 2;

/// How many of the last lines that a shell printed are shown before they are stored.
const PRINTED_ROWS: usize = 12;

/// How many rows something that is said to the user takes at most.
const SAID_ROWS: usize = 3;

/// What stands before rows that a rewind left.
const LEFT_COLUMNS: u16 = 2;

/// What can be done with a message that waits.
const QUEUED_KEYS: Hints<'_> = Hints {
    gap: "   ",
    keys: &[],
    way_out: "↑ edit · Ctrl-S send now",
    look: Look::of(Role::Faint),
};

/// The same for a line that its agent has not taken in yet.
const UNHEARD_KEYS: Hints<'_> = Hints {
    way_out: "",
    ..QUEUED_KEYS
};

/// How items are laid out at the moment.
pub(super) struct Eye<'a> {
    app: &'a App,
    agent: AgentId,
    columns: u16,
}

impl Layout for Eye<'_> {
    fn lay_out(&self, item: &Item, unfolded: bool) -> Vec<Line> {
        let name_of = |agent| self.app.name_of(agent);
        let mut manner = self.manner(&name_of);
        let is_left = matches!(item.id, Id::Left { .. });
        if is_left {
            manner.width = manner.width.saturating_sub(LEFT_COLUMNS);
        }
        let fold = if unfolded { Fold::Open } else { Fold::Folded };
        let mut lines = match &item.what {
            What::Row { row, problem: None } => rows::block(&render(row), fold, &manner).lines,
            What::Row {
                row,
                problem: Some(problem),
            } => {
                let warning = format!("row {} is skipped: {problem}", row.at);
                rows::block(&Shown::Warning(warning), fold, &manner).lines
            }
            What::Turn(turn) => {
                let clock = (self.app.around.time_of_day)(turn.ended);
                let turn = rows::Turn {
                    took: turn.took(),
                    tools: turn.calls,
                    tokens: turn.tokens,
                    cost_nano_usd: turn.cost,
                    clock,
                };
                vec![rows::turn_line(&turn, manner.symbols)]
            }
            What::Context => {
                let cut = Shown::Summary {
                    range: None,
                    text: None,
                    elides: false,
                    undo: None,
                };
                rows::block(&cut, fold, &manner).lines
            }
        };
        if is_left {
            let sign = match manner.symbols {
                Symbols::Utf8 => "┊ ",
                Symbols::Ascii => ": ",
            };
            for line in &mut lines {
                line.spans.insert(0, Span::new(sign, Role::Faint));
                line.lead += 1;
            }
        }
        lines
    }

    fn generation(&self) -> u64 {
        u64::from(self.columns) << 16 | u64::from(self.is_airy()) << 8 | self.app.names
    }

    fn is_airy(&self) -> bool {
        self.app.rows >= ROOMY_ROWS
    }
}

impl<'a> Eye<'a> {
    pub(super) fn new(app: &'a App, agent: AgentId) -> Self {
        Self {
            app,
            agent,
            columns: app.columns,
        }
    }

    /// The same in another width.
    pub(super) fn with_columns(self, columns: u16) -> Self {
        Self { columns, ..self }
    }

    pub(super) fn manner<'n>(&self, name_of: &'n dyn Fn(AgentId) -> Option<String>) -> Manner<'n> {
        Manner {
            width: self.columns,
            symbols: self.app.around.symbols,
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
        grid.resize(self.columns, self.rows);
        grid.cursor = None;
        if self.columns < LEAST_COLUMNS || self.rows < LEAST_ROWS {
            let text = format!("too small: {}×{}", self.columns, self.rows);
            grid.put(0, 0, &text, Role::Warning);
            return;
        }
        if self.draw_board(grid) {
            return;
        }
        // Taken out, because laying out looks at everything else.
        let Some(mut pane) = self.panes.remove(&self.current) else {
            return;
        };
        self.draw_pane(&mut pane, grid);
        self.panes.insert(self.current, pane);
    }

    fn draw_pane(&mut self, pane: &mut Pane, grid: &mut Grid) {
        let columns = self.columns;
        let status = self.browse_line(pane);
        let status = status.unwrap_or_else(|| lines::status(self, &pane.agent.state, columns));
        let mut bottom = self.rows - 1;
        grid.line(bottom, 0, &status);
        if self.draw_overlay(grid, bottom) || self.draw_merging(grid, bottom) {
            return;
        }
        if let Some(bottom) = self.draw_picker(grid, bottom) {
            return self.draw_scrollback(pane, grid, bottom);
        }
        for line in self.completion_lines(pane).iter().rev() {
            bottom -= 1;
            grid.line(bottom, 0, line);
        }
        self.list_row = bottom;
        let most = if self.is_tight() {
            TIGHT_INPUT_ROWS
        } else {
            INPUT_ROWS
        };
        let layout = pane
            .editor
            .layout(columns - PROMPT_COLUMNS, most.min(bottom - 2));
        let input = u16::try_from(layout.rows.len()).unwrap_or(most).max(1);
        bottom -= input;
        self.input_row = bottom;
        let prompt = Sign::User.text(self.around.symbols);
        grid.put(bottom, 0, prompt, Role::User);
        for (row, line) in (bottom..).zip(&layout.rows) {
            grid.line(row, PROMPT_COLUMNS, line);
        }
        let mut cursor_row = bottom + narrow(layout.cursor.0);
        let mut cursor_column = PROMPT_COLUMNS + narrow(layout.cursor.1);
        if let Some(line) = self.search_line() {
            grid.fill(bottom, Role::Text);
            grid.line(bottom, 0, &line);
        }
        if let Some((line, column)) = self.secret_line() {
            grid.fill(bottom, Role::Text);
            grid.line(bottom, 0, &line);
            (cursor_row, cursor_column) = (bottom, column);
        }
        grid.cursor = Some((cursor_row, cursor_column.min(columns - 1)));
        if matches!(self.mode, Mode::Browse(_)) {
            grid.cursor = None;
        }
        bottom = self.draw_question(pane, grid, bottom);
        if bottom == 0 {
            return;
        }
        bottom -= 1;
        grid.line(bottom, 0, &lines::tree(self, columns));
        let above = self.pending_lines();
        for line in above.iter().rev().chain(self.busy_lines(pane).iter().rev()) {
            if bottom > 1 {
                bottom -= 1;
                grid.line(bottom, 0, line);
            }
        }
        self.draw_scrollback(pane, grid, bottom);
        self.draw_prompt(grid, self.rows - 1);
    }

    pub(super) fn is_tight(&self) -> bool {
        self.rows < ROOMY_ROWS
    }

    /// What goes on, or what was said to the user a moment ago.
    fn busy_lines(&self, pane: &Pane) -> Vec<Line> {
        if let Some((text, _)) = &self.said {
            let mut lines = wrap(&Line::of(clean(text), Role::Busy), self.columns, &[]);
            lines.truncate(SAID_ROWS);
            return lines;
        }
        let model = pane.agent.state.settings().model.as_ref();
        let provider = model.and_then(|model| model.provider.as_deref());
        let live = self.roster.live(self.current);
        let provider = provider.unwrap_or("the model");
        let busy = live.and_then(|live| lines::busy(live, provider, self.around.symbols, self.now));
        let shown = busy.map(|(line, hints)| match hints {
            Some(hints) => hints.after(&line, self.columns),
            None => cut(&line, self.columns, "…"),
        });
        shown.into_iter().collect()
    }

    fn draw_scrollback(&mut self, pane: &mut Pane, grid: &mut Grid, height: u16) {
        let live = if pane.is_elsewhere() {
            Vec::new()
        } else {
            self.live_lines(pane)
        };
        pane.scrollback.set_live(live);
        let eye = Eye::new(self, self.current);
        let visible = pane.scrollback.visible(usize::from(height), &eye);
        let places = |id: Id| pane.scrollback.place(id);
        // What does not fill the screen stands at its top.
        for (row, visible) in (0..).zip(&visible) {
            if let Some(line) = visible.line() {
                grid.line(row, 0, line);
            }
            let selected = self.selection.as_ref();
            if let Some((from, to)) = selected.and_then(|all| all.columns(visible, &places)) {
                let columns = narrow(from)..narrow(to);
                grid.restyle(row, columns, Role::Selected);
            }
        }
        self.draw_browse(pane, &visible, grid);
        let is_elsewhere = pane.is_elsewhere();
        if (is_elsewhere || !pane.scrollback.is_at_end()) && height > 0 {
            let new = pane.scrollback.new_rows(&eye);
            let text = match new {
                _ if is_elsewhere => " history · ↓ End ".to_owned(),
                0 => " ↓ End ".to_owned(),
                new => format!(" ↓ {new} new lines · End "),
            };
            let column = self
                .columns
                .saturating_sub(narrow(crate::width::width(&text)));
            grid.put(
                height - 1,
                column,
                &text,
                Look::of(Role::Status).with(Look::REVERSE),
            );
        }
        self.visible = visible;
    }

    /// What is not stored yet, below everything that is.
    fn live_lines(&mut self, pane: &Pane) -> Vec<Line> {
        let said = self.said_lines();
        let symbols = self.around.symbols;
        let mut lines = Vec::new();
        let is_new = pane.is_complete && !pane.scrollback.items().iter().any(is_begun);
        if is_new {
            lines.extend(welcome::lines(
                &self.around,
                pane.agent.state.settings(),
                self.columns,
            ));
        }
        for note in self.notes.iter().chain(&self.grant_offer) {
            let role = if note.starts_with('⚠') {
                Role::Warning
            } else {
                Role::Agent
            };
            part(&mut lines);
            lines.extend(wrap(&Line::of(clean(note), role), self.columns, &[]));
        }
        let Some(live) = self.roster.live(self.current) else {
            return lines;
        };
        if !live.thinking.is_empty() && live.is_busy() {
            part(&mut lines);
            lines.push(thinking(&live.thinking, symbols, self.columns));
        }
        if !said.is_empty() {
            part(&mut lines);
            lines.extend(said);
        }
        let output = self.tool_output_lines(live);
        if !output.is_empty() {
            part(&mut lines);
            lines.extend(output);
        }
        if !live.printed.is_empty() {
            part(&mut lines);
            let first = live.printed.len().saturating_sub(PRINTED_ROWS);
            for printed in &live.printed[first..] {
                lines.push(cut(
                    &Line::of(format!("  {}", clean(printed)), Role::Faint),
                    self.columns,
                    "…",
                ));
            }
        }
        let children = self.roster.children(self.current);
        let at_work = children.filter(|(_, known)| known.is_worth_a_row());
        let at_work: Vec<_> = at_work.map(|(_, known)| known).collect();
        let names = at_work.iter().map(|known| known.branch.agent.name.len());
        let most = usize::from(self.columns / 2);
        let room = (self.columns, names.max().unwrap_or(0).min(most));
        let rows: Vec<_> = at_work
            .iter()
            .map(|known| lines::child(known, symbols, room, self.now))
            .collect();
        if !rows.is_empty() {
            part(&mut lines);
            lines.extend(rows);
        }
        let queued = live.queued.iter().map(|(_, text)| (text, QUEUED_KEYS));
        let unheard = self.outbox.queued(self.current);
        let unheard = unheard.map(|entry| (&entry.submission.line, UNHEARD_KEYS));
        for (index, (text, keys)) in queued.chain(unheard).enumerate() {
            if index == 0 {
                part(&mut lines);
            }
            let text = lines::first_line(text);
            let queued = Line::of(format!("⋯ queued: {}", clean(text)), Role::Faint);
            lines.push(keys.after(&queued, self.columns));
        }
        lines
    }
}

impl App {
    /// What the model says at the moment.
    fn said_lines(&mut self) -> Vec<Line> {
        let style = rows::speech(&Eye::new(self, self.current).manner(&|_| None));
        let said = &mut self.roster.live_mut(self.current).text;
        if said.is_empty() {
            return Vec::new();
        }
        said.lines(style).to_vec()
    }
}

/// Parts what follows from what is there.
fn part(lines: &mut Vec<Line>) {
    if !lines.is_empty() {
        lines.push(Line::default());
    }
}

/// The newest line of what the model thinks.
fn thinking(text: &str, symbols: Symbols, columns: u16) -> Line {
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    let sign = Sign::Thought.text(symbols);
    let look = Look::of(Role::Thinking).with(Look::DIM);
    cut(
        &Line::of(format!("{sign} {}", clean(last)), look),
        columns,
        "…",
    )
}

/// Whether somebody has used the agent before: something was said, be it gone from its memory.
fn is_begun(item: &Item) -> bool {
    let What::Row { row, .. } = &item.what else {
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
