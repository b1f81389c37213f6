//! View detached from the end: rows around one row, without the newest ones.

use ikigai_core::{Kind, PageQuery, RowRef, Seq, Span};
use ikigai_engine::{Agent, Engine, StoreError};

use super::hidden_rows::HiddenRows;
use crate::scrollback::Scrollback;

/// Rows read at a time, and rows kept above newer ones.
const STEP_ROWS: usize = 400;

/// Rows read below the target.
const ROWS_BELOW: usize = 200;

/// Rows around one row of a history.
pub(super) struct DetachedView {
    /// The agent at the last row of the view.
    pub(super) agent: Agent,
    /// Visible hidden rows.
    pub(super) past: HiddenRows,
    /// Scrollback at the end of the history.
    pub(super) here: Scrollback,
    /// True if the row is off the agent's path.
    pub(super) is_left: bool,
    /// True if newer rows can be read.
    pub(super) has_newer: bool,
}

/// Newest row of the view.
struct ViewEnd {
    at: RowRef,
    is_last: bool,
}

impl DetachedView {
    /// Reads around a row; none if it is not in the log. `now` is the agent that wrote it.
    pub(super) async fn at(
        engine: &Engine,
        now: &mut Agent,
        row: RowRef,
    ) -> Result<Option<Self>, StoreError> {
        if row.agent != now.state.agent() || row.seq > now.state.head() || row.seq == Seq(0) {
            return Ok(None);
        }
        now.know_down_to(engine.reader(), row.seq).await?;
        let end = end_after(engine, now, row, ROWS_BELOW).await?;
        let agent = read_back(engine, &end, row).await?;
        let is_there = agent.view.entries().iter().any(|entry| entry.at() == row);
        Ok(is_there.then(|| Self {
            agent,
            past: HiddenRows::default(),
            here: Scrollback::default(),
            is_left: !now.state.path().contains(row),
            has_newer: !end.is_last,
        }))
    }

    /// Reads newer rows; drops old ones, which are read again on demand.
    pub(super) async fn read_newer(
        &mut self,
        engine: &Engine,
        now: &Agent,
    ) -> Result<(), StoreError> {
        let last = RowRef::new(self.agent.state.agent(), self.agent.state.head());
        let end = end_after(engine, now, last, STEP_ROWS).await?;
        if end.at != last {
            self.agent = read_back(engine, &end, last).await?;
            self.past.turn_page();
        }
        self.has_newer = !end.is_last;
        Ok(())
    }
}

/// Finds the row a number of rows below another, on the same path or branch.
async fn end_after(
    engine: &Engine,
    now: &Agent,
    row: RowRef,
    rows: usize,
) -> Result<ViewEnd, StoreError> {
    if let Some(at) = now.state.path().row_after(row, rows) {
        let is_last = at == RowRef::new(row.agent, now.state.head());
        return Ok(ViewEnd { at, is_last });
    }
    let query = PageQuery::oldest(Span::new(row.agent, row.seq.next(), now.state.head()), rows);
    let below = engine.reader().page(query).await?;
    let count = below.len();
    let goes_on = below
        .iter()
        .take_while(|row| !matches!(row.kind.read_as(), Some(Kind::Clear | Kind::Rewind)));
    let kept = goes_on.clone().count();
    Ok(ViewEnd {
        at: goes_on.last().map_or(row, |last| last.at),
        is_last: kept < count || count < rows,
    })
}

/// Reads back from an end until a row and some before it are there.
async fn read_back(engine: &Engine, end: &ViewEnd, row: RowRef) -> Result<Agent, StoreError> {
    let mut agent = Agent::restore_at(engine.reader(), end.at).await?;
    loop {
        let mut entries = agent.view.entries().iter();
        let place = entries.position(|entry| entry.at() == row);
        let is_enough = place.is_some_and(|above| above >= STEP_ROWS / 2);
        if is_enough || !agent.lengthen(engine.reader(), STEP_ROWS).await? {
            return Ok(agent);
        }
    }
}
