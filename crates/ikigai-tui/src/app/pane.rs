//! Pane of one agent: its history, the viewport, and its input.

use std::collections::BTreeSet;
use std::sync::Arc;

use ikigai_core::render::render;
use ikigai_core::{AgentId, Kind, PageQuery, Row, RowRef, Seq, Span};
use ikigai_engine::{Agent, AgentError, Engine, StoreError};

use super::detached_view::DetachedView;
use super::hidden_rows::HiddenRows;
use crate::complete::Completion;
use crate::input::Editor;
use crate::scrollback::{ItemContent, Scrollback};

/// Rows read for the first frame.
const FIRST_ROWS: usize = 120;

/// Most reads for the first frame.
const MOST_STEPS: usize = 8;

/// Rows read when the user scrolls up.
const MORE_ROWS: usize = 400;

/// Rows kept while the viewport is at the end.
const KEPT_ROWS: usize = 2_000;

/// Rows read at a time when catching up.
const PAGE_ROWS: usize = 256;

/// One agent on the screen.
pub struct Pane {
    /// The agent, with the rows read.
    pub agent: Agent,
    /// Its rows as drawn.
    pub scrollback: Scrollback,
    /// Its input.
    pub editor: Editor,
    /// Text that a command put into the input, until a line is sent.
    pub put_back: Option<String>,
    /// Completion at the cursor.
    pub completion: Completion,
    /// True if all older rows are read.
    pub is_complete: bool,
    past: HiddenRows,
    /// View detached from the end of its history.
    detached: Option<Box<DetachedView>>,
}

impl Pane {
    /// Reads the rows of the first frame.
    pub async fn open(engine: &Engine, agent: AgentId) -> Result<Self, StoreError> {
        let mut pane = Self {
            agent: Agent::restore(engine.reader(), agent).await?,
            scrollback: Scrollback::default(),
            editor: Editor::default(),
            put_back: None,
            completion: Completion::default(),
            is_complete: false,
            past: HiddenRows::default(),
            detached: None,
        };
        pane.fill(engine).await?;
        pane.show();
        Ok(pane)
    }

    /// Reads the rows of one screen, span by span.
    async fn fill(&mut self, engine: &Engine) -> Result<(), StoreError> {
        for _ in 0..MOST_STEPS {
            let is_enough = self.agent.view.entries().len() >= FIRST_ROWS / 2;
            if is_enough || !self.agent.lengthen(engine.reader(), FIRST_ROWS).await? {
                break;
            }
        }
        Ok(())
    }

    /// Shows the rows around a row; returns false if it is not in the log.
    pub async fn go_to(&mut self, engine: &Engine, row: RowRef) -> Result<bool, StoreError> {
        let Some(mut found) = DetachedView::at(engine, &mut self.agent, row).await? else {
            return Ok(false);
        };
        self.come_back();
        found.here = std::mem::take(&mut self.scrollback);
        self.detached = Some(Box::new(found));
        self.show();
        Ok(true)
    }

    /// Returns to the end of the history.
    pub fn come_back(&mut self) {
        if let Some(detached) = self.detached.take() {
            self.scrollback = detached.here;
            self.show();
        }
    }

    /// Reports whether the view is detached from the end.
    pub fn is_elsewhere(&self) -> bool {
        self.detached.is_some()
    }

    /// Reports whether the detached view is off the agent's path.
    pub fn is_left(&self) -> bool {
        self.detached.as_ref().is_some_and(|it| it.is_left)
    }

    /// Reports whether newer rows can be read.
    pub fn has_newer(&self) -> bool {
        self.detached.as_ref().is_some_and(|it| it.has_newer)
    }

    /// Returns the agent as shown.
    pub fn shown(&self) -> &Agent {
        self.detached.as_ref().map_or(&self.agent, |it| &it.agent)
    }

    /// Returns the agents that the rows mention, each once.
    pub fn mentions(&self) -> Vec<AgentId> {
        let names_agents = |row: &&Arc<Row>| {
            let kind = row.kind.read_as();
            kind.is_some_and(|kind| matches!(kind, Kind::AgentKilled | Kind::Rewind | Kind::User))
        };
        let rows = self.scrollback.items().iter();
        let rows = rows.filter_map(|item| match &item.what {
            ItemContent::Row { row, .. } => Some(row),
            ItemContent::Turn(_) | ItemContent::Context { .. } => None,
        });
        let mentioned = rows
            .filter(names_agents)
            .flat_map(|row| render(row).mentions());
        let mentioned: BTreeSet<AgentId> = mentioned.collect();
        mentioned.into_iter().collect()
    }

    /// Reads older rows; returns false if there are none.
    pub async fn read_older(&mut self, engine: &Engine) -> Result<bool, StoreError> {
        let (past, agent) = match &mut self.detached {
            Some(it) => (&mut it.past, &mut it.agent),
            None => (&mut self.past, &mut self.agent),
        };
        let more = past.read_older(engine, agent, MORE_ROWS).await?;
        self.show();
        Ok(more)
    }

    /// Reads newer rows.
    pub async fn read_newer(&mut self, engine: &Engine) -> Result<(), StoreError> {
        if let Some(it) = &mut self.detached {
            it.read_newer(engine, &self.agent).await?;
            self.show();
        }
        Ok(())
    }

    /// Shows or hides the rows that a rewind left.
    pub async fn toggle_left(&mut self, engine: &Engine, by: RowRef) -> Result<(), StoreError> {
        let (past, agent) = match &mut self.detached {
            Some(it) => (&mut it.past, &it.agent),
            None => (&mut self.past, &self.agent),
        };
        past.toggle_left(engine, agent, by).await?;
        self.show();
        Ok(())
    }

    /// Returns true if the rows that a rewind left are visible.
    pub fn shows_left(&self, by: RowRef) -> bool {
        let past = self.detached.as_ref().map_or(&self.past, |it| &it.past);
        past.shows_left(by)
    }

    /// Applies a stored row. Reads rows that others appended before it.
    pub async fn apply(&mut self, engine: &Engine, row: &Row) -> Result<(), AgentError> {
        let head = self.agent.state.head();
        if row.at.seq <= head {
            return Ok(());
        }
        if row.at.seq > head.next() {
            return self.catch_up(engine).await;
        }
        let bends = bends_path(row);
        self.agent.apply(engine.reader(), row.clone()).await?;
        self.settle(engine, bends).await?;
        Ok(())
    }

    /// Reads and applies newer rows of the log.
    pub async fn catch_up(&mut self, engine: &Engine) -> Result<(), AgentError> {
        let (mut came, mut bends) = (false, false);
        loop {
            let agent = self.agent.state.agent();
            let span = Span::new(agent, self.agent.state.head().next(), Seq(i64::MAX as u64));
            let query = PageQuery::oldest(span, PAGE_ROWS);
            let rows = engine.reader().page(query).await?;
            let is_last = rows.len() < PAGE_ROWS;
            came |= !rows.is_empty();
            for row in rows {
                bends |= bends_path(&row);
                self.agent.apply(engine.reader(), row).await?;
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

    /// Updates the view after rows were applied.
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
        let (past, agent) = match &self.detached {
            Some(it) => (&it.past, &it.agent),
            None => (&self.past, &self.agent),
        };
        self.is_complete = past.is_complete(agent);
        let beside = Some(past.beside());
        self.scrollback.set(&agent.state, &agent.view, beside);
    }
}

/// Reports whether a row can change the beginning of the path.
fn bends_path(row: &Row) -> bool {
    matches!(row.kind.read_as(), Some(Kind::Clear | Kind::Rewind))
}
