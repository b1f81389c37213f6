//! One agent on the screen: what it remembers, where it is looked at, and what is typed for it.

use ikigai_core::{AgentId, Direction, Kind, PageQuery, Row, RowRef, Seq, Span};
use ikigai_engine::{Agent, AgentError, Engine, StoreError};

use super::past::Past;
use crate::complete::Completion;
use crate::input::Editor;
use crate::scrollback::Scrollback;

/// How many rows the first screen reads.
const FIRST_ROWS: usize = 120;

/// In how many steps at most.
const MOST_STEPS: usize = 8;

/// How many rows are read at a time when somebody scrolls up.
const MORE_ROWS: usize = 400;

/// How many rows are kept while the end is looked at.
const KEPT_ROWS: usize = 2_000;

/// How many rows are read at a time when catching up.
const PAGE_ROWS: usize = 256;

/// See the module.
pub struct Pane {
    /// Its agent, as far as it was read.
    pub agent: Agent,
    /// What is seen of it.
    pub scrollback: Scrollback,
    /// What is typed for it.
    pub editor: Editor,
    /// What could stand where the cursor is.
    pub completion: Completion,
    /// Whether everything above was read.
    pub is_complete: bool,
    past: Past,
}

impl Pane {
    /// Reads what the first screen shows.
    pub async fn open(engine: &Engine, agent: AgentId) -> Result<Self, StoreError> {
        let mut pane = Self {
            agent: Agent::restore(engine.store(), agent).await?,
            scrollback: Scrollback::default(),
            editor: Editor::default(),
            completion: Completion::default(),
            is_complete: false,
            past: Past::default(),
        };
        pane.fill(engine).await?;
        pane.show();
        Ok(pane)
    }

    /// Reads what a screen shows. What is inherited, or was gone back to, is read step by step.
    async fn fill(&mut self, engine: &Engine) -> Result<(), StoreError> {
        for _ in 0..MOST_STEPS {
            let is_enough = self.agent.view.entries().len() >= FIRST_ROWS / 2;
            if is_enough || !self.agent.lengthen(engine.store(), FIRST_ROWS).await? {
                break;
            }
        }
        Ok(())
    }

    /// Reads more above; says whether there was any.
    pub async fn read_older(&mut self, engine: &Engine) -> Result<bool, StoreError> {
        let past = &mut self.past;
        let more = past.read_older(engine, &mut self.agent, MORE_ROWS).await?;
        self.show();
        Ok(more)
    }

    /// Shows what a rewind left, or not any more.
    pub async fn toggle_left(&mut self, engine: &Engine, by: RowRef) -> Result<(), StoreError> {
        self.past.toggle_left(engine, &self.agent, by).await?;
        self.show();
        Ok(())
    }

    /// Whether what a rewind left is shown.
    pub fn shows_left(&self, by: RowRef) -> bool {
        self.past.shows_left(by)
    }

    /// Takes in a row that was stored. Rows that others appended before it are read.
    pub async fn apply(&mut self, engine: &Engine, row: &Row) -> Result<(), AgentError> {
        let head = self.agent.state.head();
        if row.at.seq <= head {
            return Ok(());
        }
        if row.at.seq > head.next() {
            return self.catch_up(engine).await;
        }
        let bends = bends_path(row);
        self.agent.apply(engine.store(), row.clone()).await?;
        self.settle(engine, bends).await?;
        Ok(())
    }

    /// Takes in what is in the log and was not told.
    pub async fn catch_up(&mut self, engine: &Engine) -> Result<(), AgentError> {
        let (mut came, mut bends) = (false, false);
        loop {
            let agent = self.agent.state.agent();
            let span = Span::new(agent, self.agent.state.head().next(), Seq(i64::MAX as u64));
            let query = PageQuery {
                span,
                direction: Direction::Forwards,
                limit: PAGE_ROWS,
            };
            let rows = engine.store().page(query).await?;
            let is_last = rows.len() < PAGE_ROWS;
            came |= !rows.is_empty();
            for row in rows {
                bends |= bends_path(&row);
                self.agent.apply(engine.store(), row).await?;
            }
            if is_last {
                break;
            }
        }
        if came {
            self.settle(engine, bends).await?;
        }
        Ok(())
    }

    /// After rows were applied.
    async fn settle(&mut self, engine: &Engine, bends: bool) -> Result<(), StoreError> {
        let is_long = self.agent.view.entries().len() > 2 * KEPT_ROWS;
        let shortens = self.scrollback.is_at_end() && is_long;
        if shortens {
            self.agent.view.shorten(KEPT_ROWS);
        }
        if shortens || bends {
            self.past.turn_page();
            self.fill(engine).await?;
        }
        self.show();
        Ok(())
    }

    fn show(&mut self) {
        self.is_complete = self.past.is_complete(&self.agent);
        let beside = Some(self.past.beside());
        self.scrollback
            .set(&self.agent.state, &self.agent.view, beside);
    }
}

/// Whether what is remembered may begin somewhere else after a row.
fn bends_path(row: &Row) -> bool {
    matches!(row.kind.read_as(), Some(Kind::Clear | Kind::Rewind))
}
