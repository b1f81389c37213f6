//! How the board looks.

use std::fmt::Write as _;
use std::time::Duration;

use ikigai_core::{AgentId, Micros};
use ikigai_engine::figures::{dollars, tokens};

use super::board::{Entry, Group, WIDE};
use super::draw::Eye;
use super::hints::Hints;
use super::tail::Area;
use super::{App, Known, Mode, State, lines, question_rows};
use crate::line::{Line, Span};
use crate::look::{Look, Role};
use crate::paint::Grid;
use crate::text::{clean, cut, one_line};
use crate::width::width;

/// How wide the columns at the right are: silent for, tokens, cost, age.
const SILENT: usize = 6;
const TOKENS: usize = 6;
const COST: usize = 8;
const AGE: usize = 6;

/// The longest name that is shown whole.
const NAME: usize = 20;

/// How wide a state is, with its sign.
const STATE: usize = 9;

/// What can be done with the agent that is marked.
const KEYS: Hints<'_> = Hints {
    gap: " ",
    keys: &[
        "Enter go",
        "n no",
        "Space peek",
        "s mail",
        "i interrupt",
        "m merge",
        "f fork",
        "x kill",
        "t tree",
        "/ filter",
    ],
    way_out: "Esc back",
    look: Look::of(Role::Status),
};

impl App {
    /// Draws the board, if it is open.
    pub(super) fn draw_board(&mut self, grid: &mut Grid) -> bool {
        if !matches!(self.mode, Mode::Board(_)) {
            return false;
        }
        let (marked, bottom) = (self.marked(), self.rows - 1);
        let title = self.board_title();
        grid.line(0, 0, &cut(&title, self.columns, "…"));
        let mut list = Area {
            row: 1,
            rows: bottom.saturating_sub(1),
            column: 0,
            columns: self.columns,
        };
        let question = marked.and_then(|marked| self.question_lines(marked));
        if let Some(marked) = marked.filter(|_| self.peeks()) {
            let area = self.split(&mut list, grid);
            self.draw_peek(marked, question, grid, area);
        } else if let Some(lines) = question {
            let most = list.rows.saturating_sub(2).max(1);
            let rows = u16::try_from(lines.len()).unwrap_or(most).min(most);
            list.rows -= rows;
            draw_lines(&lines, grid, list.row + list.rows, 0, rows);
        }
        self.note_question(marked);
        self.draw_list(grid, list, marked);
        self.draw_board_keys(grid, bottom);
        true
    }

    /// Makes room for what the marked agent does: beside the list, or below it.
    fn split(&self, list: &mut Area, grid: &mut Grid) -> Area {
        if self.columns >= WIDE {
            let left = self.columns / 2;
            list.columns = left - 1;
            for row in list.row..list.row + list.rows {
                grid.put(row, left - 1, "│", Role::Rule);
            }
            return Area {
                column: left + 1,
                columns: self.columns - left - 1,
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

    /// What the marked agent says and does, and what it asks below that.
    fn draw_peek(
        &mut self,
        agent: AgentId,
        question: Option<Vec<Line>>,
        grid: &mut Grid,
        area: Area,
    ) {
        let name = self.name_of(agent).unwrap_or_default();
        let look = Look::of(Role::Heading).with(Look::BOLD);
        let title = Line::new(vec![
            Span::new("─ ", Role::Rule),
            Span::new(format!("{} ", clean(&name)), look),
        ]);
        let title = cut(&title, area.columns, "…");
        let end = grid.line(area.row, area.column, &title);
        let rest = (area.column + area.columns).saturating_sub(end);
        grid.put(area.row, end, &"─".repeat(usize::from(rest)), Role::Rule);
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
        self.draw_tail(agent, grid, tail);
    }

    /// What an agent asks, laid out for where it will be drawn.
    fn question_lines(&self, agent: AgentId) -> Option<Vec<Line>> {
        let known = self.roster.get(agent)?;
        let asked = known.live.questions.first()?;
        let columns = if self.peeks() && self.columns >= WIDE {
            self.columns - self.columns / 2 - 1
        } else {
            self.columns
        };
        let name_of = |agent| self.name_of(agent);
        let manner = Eye::new(self, agent).with_columns(columns).manner(&name_of);
        let most = usize::from(self.rows);
        let mut lines = question_rows::call_lines(asked, &manner, most);
        let key = Look::of(Role::Question).with(Look::BOLD);
        let answers = Line::new(vec![
            Span::new("  Enter", key),
            Span::new(" open and answer · ", Role::Text),
            Span::new("n", key),
            Span::new(" no", Role::Text),
        ]);
        lines.push(cut(&answers, columns, "…"));
        Some(lines)
    }

    /// Remembers since when a question is on the screen.
    fn note_question(&mut self, marked: Option<AgentId>) {
        let known = marked.and_then(|marked| self.roster.get(marked));
        let asked = known.and_then(|known| known.live.questions.first());
        let call = asked.map(|question| question.call);
        let now = self.now;
        if let Some(board) = self.board_mut()
            && board.asked.map(|(before, _)| before) != call
        {
            board.asked = call.map(|call| (call, now));
        }
    }

    fn board_title(&self) -> Line {
        let states: Vec<_> = self.roster.all().map(|(_, known)| known.state()).collect();
        let count = |wanted: State| states.iter().filter(|state| **state == wanted).count();
        let mut parts = vec![match states.len() {
            1 => "1 agent".to_owned(),
            all => format!("{all} agents"),
        }];
        let (asking, working) = (count(State::Asks), count(State::Works));
        if asking > 0 {
            let needs = if asking == 1 { "needs" } else { "need" };
            parts.push(format!("{asking} {needs} you"));
        }
        if working > 0 {
            parts.push(format!("{working} at work"));
        }
        let mut line = Line::of(
            format!(" {}", parts.join(" · ")),
            Look::of(Role::Heading).with(Look::BOLD),
        );
        let filter = self.board().map_or("", |board| &board.filter);
        if !filter.is_empty() {
            let text = format!(" · only names with {}", clean(filter));
            line.spans.push(Span::new(text, Role::Match));
        }
        line
    }

    fn draw_list(&mut self, grid: &mut Grid, area: Area, marked: Option<AgentId>) {
        let entries = self.entries();
        let is_tree = self.board().is_some_and(|board| board.is_tree);
        let place = entries
            .iter()
            .position(|entry| marked.is_some_and(|marked| *entry == Entry::Agent(marked)));
        let height = usize::from(area.rows);
        let top = self.board().map_or(0, |board| board.top);
        let place = place.unwrap_or(0);
        // The heading above the first is seen with it.
        let least = (place + 1).saturating_sub(height);
        let most = place
            .saturating_sub(1)
            .min(entries.len().saturating_sub(height));
        let top = top.clamp(least.min(most), most.max(least));
        let names = entries.iter().filter_map(|entry| match entry {
            Entry::Agent(agent) => Some(self.name_width(*agent, is_tree)),
            Entry::Heading(_) => None,
        });
        let longest = names.max().unwrap_or(0);
        let name_width = longest.min(NAME).min(usize::from(area.columns) / 3);
        let mut drawn = vec![None; usize::from(self.rows)];
        for (row, entry) in (area.row..area.row + area.rows).zip(entries.iter().skip(top)) {
            match entry {
                Entry::Heading(group) => {
                    grid.line(row, area.column, &heading(*group));
                }
                Entry::Agent(agent) => {
                    let line = self.agent_line(*agent, is_tree, name_width, area.columns);
                    grid.line(row, area.column, &line);
                    if marked == Some(*agent) {
                        grid.restyle(row, area.column..area.column + area.columns, Role::Marked);
                        grid.cursor = Some((row, area.column));
                    }
                    if let Some(place) = drawn.get_mut(usize::from(row)) {
                        *place = Some(*agent);
                    }
                }
            }
        }
        if entries.is_empty() {
            let text = "no agent has such a name · Esc shows all";
            grid.put(area.row, area.column, text, Role::Faint);
        }
        if let Some(board) = self.board_mut() {
            board.top = top;
            board.drawn = drawn;
        }
    }

    fn indent(&self, agent: AgentId, is_tree: bool) -> usize {
        let known = self.roster.get(agent).filter(|_| is_tree);
        known.map_or(0, |known| known.branch.depth.min(8) * 2)
    }

    fn name_width(&self, agent: AgentId, is_tree: bool) -> usize {
        let name = self.name_of(agent).unwrap_or_default();
        self.indent(agent, is_tree) + width(&name)
    }

    /// `name  state  last tool or words  silent for  tokens  cost  age`; what there is no room for
    /// goes: age, cost, tokens.
    fn agent_line(&self, agent: AgentId, is_tree: bool, names: usize, columns: u16) -> Line {
        let Some(known) = self.roster.get(agent) else {
            return Line::default();
        };
        let columns = usize::from(columns);
        let name = format!(
            "{}{}",
            " ".repeat(self.indent(agent, is_tree)),
            clean(&known.branch.agent.name)
        );
        let group = Group::of(known);
        let state = match group {
            Group::Done => State::Done,
            _ => known.state(),
        };
        let state = lines::sign(state, self.around.symbols);
        let state = match columns {
            ..50 => state.to_owned(),
            _ => format!("{state} {}", state_word(known)),
        };
        let state_width = if columns < 50 { 1 } else { STATE };
        let here = if agent == self.current { "›" } else { " " };
        let look = match group {
            Group::NeedsYou => Role::Question,
            Group::Working => Role::Busy,
            Group::Failed => Role::Error,
            Group::Done => Role::Good,
            Group::Idle => Role::Text,
            Group::Dead => Role::Faint,
        };
        let before = format!(
            "{here}{} {} ",
            padded(&name, names),
            padded(&state, state_width)
        );
        let facts = self.agent_facts(known, columns);
        let used = width(&before) + width(&facts) + 1;
        let room = columns.saturating_sub(used);
        let question = known.live.questions.first();
        let last = question.map_or_else(
            || lines::last_line(&known.last).to_owned(),
            |question| format!("{}: {}", question.tool, one_line(&question.shown)),
        );
        Line::new(vec![
            Span::new(before, look),
            Span::new(padded(&clean(&last), room), Role::Faint),
            Span::new(format!(" {facts}"), Role::Faint),
        ])
    }

    fn agent_facts(&self, known: &Known, columns: usize) -> String {
        let now = (self.around.now)();
        let since = |at: Micros| {
            let micros = now.0.saturating_sub(at.0);
            Duration::from_micros(u64::try_from(micros).unwrap_or(0))
        };
        let record = &known.branch.agent;
        let heard = known.heard.map(|at| self.now.saturating_duration_since(at));
        let silent = heard.or(record.touched_at.map(since));
        let silent = silent.map_or_else(String::new, short);
        let mut facts = format!("{silent:>SILENT$}");
        if columns >= 44 {
            let used = match known.tokens {
                0 => String::new(),
                used => tokens(used),
            };
            let _ = write!(facts, "{used:>TOKENS$}");
        }
        if columns >= 58 {
            let cost = known.cost.filter(|cost| *cost > 0);
            let cost = cost.map_or_else(String::new, dollars);
            let _ = write!(facts, "{cost:>COST$}");
        }
        if columns >= 72 {
            let _ = write!(facts, "{:>AGE$}", short(since(record.created_at)));
        }
        facts
    }

    /// The last row: what is asked, what was said, or the keys.
    fn draw_board_keys(&mut self, grid: &mut Grid, row: u16) {
        if self.draw_prompt(grid, row) {
            return;
        }
        let line = if let Some(question) = self.kill_question() {
            let look = Look::of(Role::Question).with(Look::BOLD);
            let hints = Hints {
                gap: "  ",
                keys: &["y kill"],
                way_out: "any other key: no",
                look,
            };
            let question = Line::of(format!(" {}", clean(&question)), look);
            hints.after(&question, self.columns)
        } else if let Some((said, _)) = &self.said {
            let said = Line::of(format!(" {}", clean(said)), Role::Busy);
            cut(&said, self.columns, "…")
        } else {
            KEYS.after(&Line::default(), self.columns)
        };
        grid.line(row, 0, &line);
    }
}

fn draw_lines(lines: &[Line], grid: &mut Grid, top: u16, column: u16, rows: u16) {
    // What is asked begins above, and how to answer is always seen.
    let Some((answers, body)) = lines.split_last() else {
        return;
    };
    let body = body.iter().take(usize::from(rows.saturating_sub(1)));
    for (row, line) in (top..).zip(body.chain([answers])) {
        grid.line(row, column, line);
    }
}

fn heading(group: Group) -> Line {
    Line::of(group.heading(), Look::of(Role::Heading).with(Look::BOLD))
}

fn state_word(known: &Known) -> &'static str {
    match (Group::of(known), known.state()) {
        (Group::NeedsYou, _) => "asks",
        (Group::Working, _) => "works",
        (Group::Failed, _) => "failed",
        (Group::Done, _) => "done",
        (_, State::Merged) => "merged",
        (_, State::Stopped) => "stopped",
        (Group::Idle, _) => "idle",
        (Group::Dead, _) => "dead",
    }
}

/// Text in exactly so many columns.
fn padded(text: &str, columns: usize) -> String {
    let line = Line::of(text.replace('\n', " "), Role::Text);
    let text = cut(&line, u16::try_from(columns).unwrap_or(u16::MAX), "…").text();
    let left = columns.saturating_sub(width(&text));
    format!("{text}{}", " ".repeat(left))
}

/// A time span in few letters.
fn short(span: Duration) -> String {
    match span.as_secs() {
        seconds @ ..100 => format!("{seconds}s"),
        seconds @ 100..6000 => format!("{}min", seconds / 60),
        seconds @ 6000..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}
