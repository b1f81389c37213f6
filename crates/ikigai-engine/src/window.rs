//! Reading as much of an agent's path as a request can hold, and no more.

use ikigai_core::path::is_root;
use ikigai_core::project::{SCALE_ROWS, Scale, covered_since, is_full, missing_messages};
use ikigai_core::{Budget, RowRef, Target};
use ikigai_store::{Agent, ReadLog, StoreError, history};

/// Size of the first page, as the scale needs. Each further page is twice as long.
pub(crate) const FIRST_PAGE_ROWS: usize = SCALE_ROWS;

/// No page is longer than this, so that one read stays short.
const LONGEST_PAGE_ROWS: usize = 4096;

/// Lengthens the view until no older row could change the request.
/// Returns the budget in estimated tokens; `first` is the scale of a model without reported counts.
pub(crate) async fn read(
    store: &dyn ReadLog,
    agent: &mut Agent,
    target: &Target,
    budget: Budget,
    first: Scale,
) -> Result<Budget, StoreError> {
    let mut rows = FIRST_PAGE_ROWS;
    // A restored view and one that has grown must find the same reports.
    let missing = rows.saturating_sub(agent.view.entries().len());
    if missing > 0 && lengthen(store, agent, missing).await? {
        rows *= 2;
    }
    let budget = Scale::of(&agent.state, &agent.view, target, first).apply_to(budget);
    loop {
        if let Some(from) = missing_messages(&agent.state, &agent.view)
            && is_covered_from_root(store, agent).await?
        {
            agent.read_older_messages(store, from).await?;
        }
        if is_enough(store, agent, target, &budget).await? || !lengthen(store, agent, rows).await? {
            return Ok(budget);
        }
        rows = (rows * 2).min(LONGEST_PAGE_ROWS);
    }
}

/// Reads `rows` more; `false` if there are none. One read ends where the path bends, and to look
/// whether it is enough costs more than to read.
pub(crate) async fn lengthen(
    store: &dyn ReadLog,
    agent: &mut Agent,
    rows: usize,
) -> Result<bool, StoreError> {
    let before = agent.view.entries().len();
    while let missing @ 1.. = (before + rows).saturating_sub(agent.view.entries().len())
        && agent.lengthen(store, missing).await?
    {}
    Ok(agent.view.entries().len() > before)
}

async fn is_enough(
    store: &dyn ReadLog,
    agent: &Agent,
    target: &Target,
    budget: &Budget,
) -> Result<bool, StoreError> {
    if agent.view.entries().is_empty() {
        return Ok(false);
    }
    if is_full(&agent.state, &agent.view, target, budget) {
        return Ok(true);
    }
    is_covered_from_root(store, agent).await
}

/// Says whether a summary replaces all rows from the path's root into the view.
async fn is_covered_from_root(store: &dyn ReadLog, agent: &Agent) -> Result<bool, StoreError> {
    match covered_since(&agent.state, &agent.view) {
        Some(from) => is_root_row(store, from).await,
        None => Ok(false),
    }
}

async fn is_root_row(store: &dyn ReadLog, row: RowRef) -> Result<bool, StoreError> {
    let row = history::row_at(store, row).await?;
    Ok(row.as_ref().is_some_and(is_root))
}

/// Returns the root of the agent's path. An earlier cut names it, since cuts begin there; without
/// one, the path is read through its bends.
pub(crate) async fn root_of(
    store: &dyn ReadLog,
    agent: &mut Agent,
) -> Result<Option<RowRef>, StoreError> {
    for (_, from, _) in agent.state.summaries().into_iter().rev() {
        if is_root_row(store, from).await? {
            return Ok(Some(from));
        }
    }
    agent.know_all(store).await?;
    Ok(agent.state.path().root())
}
