//! Rows off an agent's path: cleared pages, and rows that rewinds left.

use std::collections::HashMap;

use ikigai_core::data::{self, RewindData};
use ikigai_core::path::Path;
use ikigai_core::view::Entry;
use ikigai_core::{Kind, RowRef};
use ikigai_engine::{Agent, Engine, StoreError};

use crate::scrollback::ExtraRows;

/// Rows read at a time.
const PAGE_ROWS: usize = 256;

/// Most rows shown of one rewind.
const MOST_LEFT_ROWS: usize = 2_000;

/// Most rewinds shown; one more hides the others.
const MOST_LEFT: usize = 16;

/// Rows off an agent's path.
#[derive(Default)]
pub(super) struct HiddenRows {
    /// Cleared pages, newest first.
    before: Vec<Agent>,
    left: HashMap<RowRef, Vec<Entry>>,
}

impl HiddenRows {
    /// Returns the rows for the scrollback.
    pub(super) fn beside(&self) -> ExtraRows<'_> {
        ExtraRows {
            before: &self.before,
            left: &self.left,
        }
    }

    /// Reports whether all older rows are read.
    pub(super) fn is_complete(&self, agent: &Agent) -> bool {
        let oldest = self.before.last().unwrap_or(agent);
        oldest.view.is_complete(oldest.state.path()) && cleared_at(oldest).is_none()
    }

    /// Forgets cleared pages, because the path changed.
    pub(super) fn turn_page(&mut self) {
        self.before.clear();
    }

    /// Reads older rows; returns false if there are none.
    pub(super) async fn read_older(
        &mut self,
        engine: &Engine,
        agent: &mut Agent,
        rows: usize,
    ) -> Result<bool, StoreError> {
        let oldest = self.before.last_mut().unwrap_or(agent);
        if oldest.lengthen(engine.reader(), rows).await? {
            return Ok(true);
        }
        let Some(end) = cleared_at(oldest) else {
            return Ok(false);
        };
        let mut page = Agent::restore_at(engine.reader(), end).await?;
        page.lengthen(engine.reader(), rows).await?;
        self.before.push(page);
        Ok(true)
    }

    /// Returns true if the rows that a rewind left are visible.
    pub(super) fn shows_left(&self, rewind: RowRef) -> bool {
        self.left.contains_key(&rewind)
    }

    /// Shows or hides the rows that a rewind left.
    pub(super) async fn toggle_left(
        &mut self,
        engine: &Engine,
        agent: &Agent,
        rewind: RowRef,
    ) -> Result<(), StoreError> {
        if self.left.remove(&rewind).is_some() {
            return Ok(());
        }
        let pages = [agent].into_iter().chain(&self.before);
        let found = pages.into_iter().find_map(|page| {
            let is_it = |entry: &&Entry| entry.at() == rewind;
            let entry = page.view.entries().iter().find(is_it)?;
            let data: RewindData = data::read(entry.row.data.as_deref());
            Some((page.state.path(), data.from?))
        });
        let Some((path, from)) = found else {
            return Ok(());
        };
        let left = left_for(engine, path, from).await?;
        if self.left.len() >= MOST_LEFT {
            self.left.clear();
        }
        self.left.insert(rewind, left);
        Ok(())
    }
}

/// Returns the newest row of the cleared page before an agent's first row.
fn cleared_at(agent: &Agent) -> Option<RowRef> {
    let first = agent.view.entries().front()?;
    let is_clear = first.kind() == Some(Kind::Clear) && agent.view.is_complete(agent.state.path());
    let before = first.at().seq.0.checked_sub(1).filter(|seq| *seq > 0)?;
    is_clear.then(|| RowRef::new(first.at().agent, ikigai_core::Seq(before)))
}

/// Returns the rows up to `from` that are off a path, oldest first.
async fn left_for(engine: &Engine, path: &Path, from: RowRef) -> Result<Vec<Entry>, StoreError> {
    let mut there = Agent::restore_at(engine.reader(), from).await?;
    loop {
        let entries = there.view.entries();
        let common = entries.iter().rposition(|entry| path.contains(entry.at()));
        let is_enough = common.is_some() || entries.len() >= MOST_LEFT_ROWS;
        if is_enough || !there.lengthen(engine.reader(), PAGE_ROWS).await? {
            let first = common.map_or(0, |common| common + 1);
            return Ok(entries_from(&there, first));
        }
    }
}

fn entries_from(agent: &Agent, first: usize) -> Vec<Entry> {
    agent.view.entries().iter().skip(first).cloned().collect()
}
