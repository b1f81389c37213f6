//! Text on the normal screen after quitting.

use std::fmt::Write as _;

use ikigai_core::counts::counted;
use ikigai_core::{Kind, Row};
use ikigai_engine::figures::dollars;

use super::App;
use super::inbox::waiting_count;
use crate::scrollback::ItemContent;
use crate::text::clean;

/// Most lines of the last answer.
const LINES: usize = 20;

/// Text on the normal screen after quitting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Farewell {
    /// The end of the last answer.
    pub answer: String,
    /// Name of the agent, and the command to continue.
    pub line: String,
}

/// Fate of working agents after quitting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They pause.
    Pause,
    /// They go on without the screen.
    GoOn,
}

impl App {
    /// Returns the text after quitting while a number of agents worked.
    pub fn farewell(&self, working: usize, fate: Fate) -> Farewell {
        let Some(pane) = self.pane() else {
            return Farewell::default();
        };
        let rows = pane
            .scrollback
            .items()
            .iter()
            .rev()
            .filter_map(|item| match &item.what {
                ItemContent::Row { row, .. } => Some(row),
                ItemContent::Turn(_) | ItemContent::Context { .. } => None,
            });
        let is_answer = |row: &&std::sync::Arc<Row>| {
            let text = row.content.as_deref().unwrap_or_default();
            row.kind.read_as() == Some(Kind::Assistant) && !text.trim().is_empty()
        };
        let answer = { rows }.find(is_answer).and_then(|row| row.content.clone());
        let answer = clean(&answer.unwrap_or_default()).into_owned();
        let lines: Vec<_> = answer.trim().lines().collect();
        let first = lines.len().saturating_sub(LINES);
        let settings = pane.agent.state.settings();
        let name = settings.name.as_deref().unwrap_or_default();
        let mut line = format!("ikigai: {name}");
        // Only the end of a long history was read, and exiting does not read the rest to count it.
        let (path, view) = (pane.agent.state.path(), &pane.agent.view);
        if view.is_complete(path) {
            let turns = counted(view.turn_starts(path).len(), "turn");
            let _ = write!(line, " · {turns}");
        }
        let known = self.ctx.roster.get(self.ctx.current);
        if let Some(cost) = known
            .and_then(|known| known.live.summary.cost)
            .filter(|cost| *cost > 0)
        {
            let _ = write!(line, " · {}", dollars(cost));
        }
        let fate = match fate {
            Fate::Pause => "paused",
            Fate::GoOn => "in the background",
        };
        if working > 0 {
            let _ = write!(line, " · {} {fate}", counted(working, "agent"));
        }
        let _ = write!(line, " · resume with: ikigai --agent {name}");
        Farewell {
            answer: lines[first..].join("\n"),
            line,
        }
    }

    /// Returns the title of the window.
    pub fn title(&self) -> String {
        let name = self.ctx.name_of(self.ctx.current).unwrap_or_default();
        let sign = if self.ctx.is_busy() { " ◐" } else { "" };
        let waiting = match waiting_count(&self.ctx) {
            0 => String::new(),
            count => format!("({count}) "),
        };
        format!("{waiting}ikigai {name}{sign}")
    }
}
