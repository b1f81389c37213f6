//! Newest rows of an agent, next to the board.

use ikigai_core::{AgentId, Seq};

use super::draw::ItemLayout;
use super::layer::Area;
use super::{UiContext, lines};
use crate::line::TextLine;
use crate::look::{Look, Tone};
use crate::paint::Grid;
use crate::rows;
use crate::scrollback::Scrollback;
use crate::text::{clean, cut};

/// Newest rows of one agent. Its scrollback has another width than the pane's.
#[derive(Default)]
pub(super) struct Tail {
    of: Option<(AgentId, Seq)>,
    scrollback: Scrollback,
}

impl Tail {
    /// Draws the newest rows of an agent.
    pub(super) fn draw(
        &mut self,
        agent: AgentId,
        area: Area,
        ctx: &mut UiContext,
        grid: &mut Grid,
    ) {
        let live = live_lines(agent, area.columns, ctx);
        if let Some(pane) = ctx.panes.get(&agent) {
            let of = Some((agent, pane.agent.state.head()));
            if self.of != of {
                self.of = of;
                self.scrollback = Scrollback::default();
                let (state, view) = (&pane.agent.state, &pane.agent.view);
                self.scrollback.set(state, view, None);
            }
        } else {
            *self = Self::default();
        }
        self.scrollback.set_live(live);
        let eye = ItemLayout::new(ctx, agent).with_columns(area.columns);
        let height = usize::from(area.rows);
        let visible = self.scrollback.visible(height, &eye);
        for (row, seen) in (area.row..).zip(&visible) {
            if let Some(line) = seen.line() {
                grid.line(row, area.column, line);
            }
        }
    }
}

/// Returns the rows that are not stored yet.
fn live_lines(agent: AgentId, columns: u16, ctx: &mut UiContext) -> Vec<TextLine> {
    let eye = ItemLayout::new(ctx, agent).with_columns(columns);
    let style = rows::speech(&eye.context(&|_| None));
    let (symbols, now) = (ctx.options.symbols, ctx.now);
    let mut all = ctx.roster.answer_lines(agent, style).to_vec();
    let Some(live) = ctx.roster.live(agent) else {
        return all;
    };
    if live.is_busy() && live.text.is_empty() {
        let last = live.thinking.trim_end().lines().next_back();
        let look = Look::of(Tone::Thinking).with(Look::DIM);
        all.extend(last.map(|last| cut(&TextLine::of(clean(last), look), columns, "…")));
    }
    // The keys named by `busy` have other effects on the board.
    if let Some((busy, _)) = lines::busy(live, "the model", symbols, now) {
        all.push(cut(&busy, columns, "…"));
    }
    all
}
