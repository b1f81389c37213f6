//! One agent on the screen: what it remembers, where it is looked at, and what is typed for it.

use ikigai_core::{AgentId, Direction, PageQuery, Row, Seq, Span};
use ikigai_engine::{Agent, AgentError, Engine, StoreError};

use crate::complete::Completion;
use crate::input::Editor;
use crate::scrollback::Scrollback;

/// How many rows the first screen reads.
const FIRST_ROWS: usize = 120;

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
        };
        pane.lengthen(engine, FIRST_ROWS).await?;
        Ok(pane)
    }

    /// Reads more above; says whether there was any.
    pub async fn read_older(&mut self, engine: &Engine) -> Result<bool, StoreError> {
        self.lengthen(engine, MORE_ROWS).await
    }

    async fn lengthen(&mut self, engine: &Engine, rows: usize) -> Result<bool, StoreError> {
        let more = self.agent.lengthen(engine.store(), rows).await?;
        self.is_complete = self.agent.view.is_complete(self.agent.state.path());
        self.show();
        Ok(more)
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
        self.agent.apply(engine.store(), row.clone()).await?;
        self.settle();
        Ok(())
    }

    /// Takes in what is in the log and was not told.
    pub async fn catch_up(&mut self, engine: &Engine) -> Result<(), AgentError> {
        let mut came = false;
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
                self.agent.apply(engine.store(), row).await?;
            }
            if is_last {
                break;
            }
        }
        if came {
            self.settle();
        }
        Ok(())
    }

    /// After rows were applied.
    fn settle(&mut self) {
        if self.scrollback.is_at_end() && self.agent.view.entries().len() > 2 * KEPT_ROWS {
            self.agent.view.shorten(KEPT_ROWS);
        }
        self.is_complete = self.agent.view.is_complete(self.agent.state.path());
        self.show();
    }

    fn show(&mut self) {
        self.scrollback.set(&self.agent.state, &self.agent.view);
    }
}
