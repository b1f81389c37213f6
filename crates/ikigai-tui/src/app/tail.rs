//! The newest of what an agent says and does, beside the board.

use ikigai_core::{AgentId, Seq};

use super::draw::Eye;
use super::{App, lines};
use crate::line::Line;
use crate::look::{Look, Role};
use crate::paint::Grid;
use crate::rows;
use crate::scrollback::Scrollback;
use crate::text::{clean, cut};

/// See the module. It has a scrollback of its own, because it has another width.
#[derive(Default)]
pub(super) struct Tail {
    of: Option<(AgentId, Seq)>,
    scrollback: Scrollback,
}

/// A part of the screen.
#[derive(Clone, Copy)]
pub(super) struct Area {
    pub(super) row: u16,
    pub(super) rows: u16,
    pub(super) column: u16,
    pub(super) columns: u16,
}

impl App {
    /// Draws the newest of what an agent says and does.
    pub(super) fn draw_tail(&mut self, agent: AgentId, grid: &mut Grid, area: Area) {
        let live = self.tail_lines(agent, area.columns);
        let Some(mut tail) = self
            .board_mut()
            .map(|board| std::mem::take(&mut board.tail))
        else {
            return;
        };
        if let Some(pane) = self.panes.get(&agent) {
            let of = Some((agent, pane.agent.state.head()));
            if tail.of != of {
                tail.of = of;
                tail.scrollback = Scrollback::default();
                let (state, view) = (&pane.agent.state, &pane.agent.view);
                tail.scrollback.set(state, view, None);
            }
        } else {
            tail = Tail::default();
        }
        tail.scrollback.set_live(live);
        let eye = Eye::new(self, agent).with_columns(area.columns);
        let height = usize::from(area.rows);
        let visible = tail.scrollback.visible(height, &eye);
        for (row, seen) in (area.row..).zip(&visible) {
            if let Some(line) = seen.line() {
                grid.line(row, area.column, line);
            }
        }
        if let Some(board) = self.board_mut() {
            board.tail = tail;
        }
    }

    /// What is not stored yet.
    fn tail_lines(&mut self, agent: AgentId, columns: u16) -> Vec<Line> {
        let eye = Eye::new(self, agent).with_columns(columns);
        let style = rows::speech(&eye.manner(&|_| None));
        let symbols = self.around.symbols;
        let now = self.now;
        let live = self.roster.live_mut(agent);
        let mut all = Vec::new();
        if !live.text.is_empty() {
            all.extend(live.text.lines(style).iter().cloned());
        }
        if live.is_busy() && live.text.is_empty() {
            let last = live.thinking.trim_end().lines().next_back();
            let look = Look::of(Role::Thinking).with(Look::DIM);
            all.extend(last.map(|last| cut(&Line::of(clean(last), look), columns, "…")));
        }
        // Keys do something else here.
        if let Some((busy, _)) = lines::busy(live, "the model", symbols, now) {
            all.push(cut(&busy, columns, "…"));
        }
        all
    }
}
