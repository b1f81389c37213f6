//! An agent read from the log: its whole state, and its rows as far back as needed.

use ikigai_core::path::Path;
use ikigai_core::state::{Applied, ApplyError, ReadSnapshot};
use ikigai_core::view::{Entry, Wants};
use ikigai_core::{AgentId, AgentState, ControlQuery, PageQuery, Row, RowRef, Seq, Span, View};

use crate::batch::{Batch, Effect};
use crate::error::{CommitError, StoreError};
use crate::log::{Log, ReadLog};
use crate::records::{RestorePoint, Snapshot};

/// Control rows that a restore reads at a time.
const CONTROL_PAGE: usize = 256;

/// Control rows after which a running agent stores a snapshot.
///
/// Opening it then reads few control rows, each of which lies on a separate page.
pub const CONTROL_ROWS_PER_SNAPSHOT: usize = 8;

/// Limit of user rows that are read before a view.
const MOST_OLDER_MESSAGES: usize = 4096;

/// Rows that are scanned between two commits of snapshots.
const WINDOW_ROWS: u64 = 4096;

/// An agent in memory: its state, and the newest part of its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its folded state.
    pub state: AgentState,
    /// The newest rows of its path that were read so far.
    pub view: View,
    /// A row that is missing in the log; the path ends before it.
    pub missing: Option<RowRef>,
}

impl Agent {
    /// Creates an agent without rows.
    pub fn new(agent: AgentId) -> Self {
        Self {
            state: AgentState::new(agent),
            view: View::default(),
            missing: None,
        }
    }

    /// Reads the state of an agent at its newest row. Its rows are read later, as far as needed.
    pub async fn restore(store: &dyn ReadLog, agent: AgentId) -> Result<Self, StoreError> {
        let point = store.restore_point(agent, CONTROL_PAGE).await?;
        let point = point.ok_or_else(|| StoreError::Value(format!("there is no agent {agent}")))?;
        let at = RowRef::new(agent, point.head);
        let RestorePoint {
            snapshot,
            mut control,
            ..
        } = point;
        let read = snapshot
            .as_ref()
            .map(|found| ReadSnapshot::read(&found.folded));
        if control.len() == CONTROL_PAGE || matches!(read, Some(None)) {
            return Self::restore_at(store, at).await;
        }
        control.reverse();
        Self::fold(store, at, read.flatten(), &control).await
    }

    /// Reads the state of an agent at one of its rows.
    pub async fn restore_at(store: &dyn ReadLog, at: RowRef) -> Result<Self, StoreError> {
        let snapshot = newest_snapshot(store, at).await?;
        let after = snapshot.as_ref().map_or(Seq(0), |(upto, _)| *upto);
        let control = control_since(store, at, after).await?;
        Self::fold(store, at, snapshot.map(|(_, read)| read), &control).await
    }

    async fn fold(
        store: &dyn ReadLog,
        at: RowRef,
        snapshot: Option<ReadSnapshot>,
        control: &[Row],
    ) -> Result<Self, StoreError> {
        let mut state = AgentState::restored(at.agent, at.seq, snapshot, control);
        if let Some(row) = state.wants_system() {
            let found = row_at(store, row).await?;
            state.supply_system(found.as_ref().and_then(|row| row.content.as_deref()));
        }
        Ok(Self {
            state,
            view: View::default(),
            missing: None,
        })
    }

    /// Applies the agent's next row, reading more of the inherited path if needed.
    pub async fn apply(&mut self, store: &dyn ReadLog, row: Row) -> Result<Applied, AgentError> {
        loop {
            match self.state.apply(&row) {
                Ok(applied) => {
                    self.view.apply(row, applied.change);
                    if let Some(row) = self.state.wants_system() {
                        let found = row_at(store, row).await?;
                        let text = found.as_ref().and_then(|row| row.content.as_deref());
                        self.state.supply_system(text);
                    }
                    return Ok(applied);
                }
                Err(ApplyError::NeedsOlder) => {
                    extend(store, self.state.inherited_mut()).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads at most `limit` rows more at the beginning of the view; `false` if there are none.
    pub async fn lengthen(
        &mut self,
        store: &dyn ReadLog,
        limit: usize,
    ) -> Result<bool, StoreError> {
        loop {
            match self.view.wants(self.state.path(), limit) {
                Wants::Nothing => return Ok(false),
                Wants::Path => extend(store, self.state.path_mut()).await?,
                Wants::Rows { spans, limit } => {
                    let rows = store.pages(spans.clone(), limit).await?;
                    if let Some(missing) = first_missing(&spans, &rows) {
                        // A referenced row is missing. The rows that exist are restored all the
                        // same.
                        self.missing = Some(missing);
                        let is_there = !rows.is_empty();
                        self.view.prepend(rows);
                        let oldest = self.view.entries().front().map(Entry::at);
                        self.state.path_mut().end_at(oldest);
                        return Ok(is_there);
                    }
                    self.view.prepend(rows);
                    return Ok(true);
                }
            }
        }
    }

    /// Reads the user rows from `from` to the view, which a summary keeps.
    pub async fn read_older_messages(
        &mut self,
        store: &dyn ReadLog,
        from: RowRef,
    ) -> Result<(), StoreError> {
        while !self.state.path().contains(from) && !self.state.path().is_complete() {
            extend(store, self.state.path_mut()).await?;
        }
        let front = self.view.entries().front().map(Entry::at);
        let mut spans = Vec::new();
        if self.state.path().contains(from) {
            for span in self.state.path().spans_before(front, usize::MAX) {
                if span.contains(from) {
                    spans.push(Span::new(span.agent, from.seq, span.to));
                    break;
                }
                spans.push(span);
            }
        }
        let mut rows = store.user_rows(spans, MOST_OLDER_MESSAGES).await?;
        rows.reverse();
        self.view.set_older_messages(from, rows);
        Ok(())
    }

    /// Reads the whole path.
    pub async fn read_all(&mut self, store: &dyn ReadLog) -> Result<(), StoreError> {
        while self.lengthen(store, 1024).await? {}
        Ok(())
    }

    /// Reads the path down to one of the agent's own rows.
    ///
    /// Own rows follow all inherited ones, in the order of their numbers.
    pub async fn know_down_to(&mut self, store: &dyn ReadLog, row: Seq) -> Result<(), StoreError> {
        let own = self.state.agent();
        loop {
            let path = self.state.path_mut();
            let oldest = path.spans().next();
            let is_below = oldest.is_some_and(|span| span.agent != own || span.from <= row);
            if path.is_complete() || is_below {
                return Ok(());
            }
            extend(store, path).await?;
        }
    }

    /// Reads path and inherited path down to their roots.
    pub async fn know_all(&mut self, store: &dyn ReadLog) -> Result<(), StoreError> {
        while !self.state.path().is_complete() {
            extend(store, self.state.path_mut()).await?;
        }
        while self.state.inherited_mut().wants().is_some() {
            extend(store, self.state.inherited_mut()).await?;
        }
        Ok(())
    }
}

/// Reason why a row could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The row is not the agent's next one.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The log could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns the first missing row among rows read from the newest end.
fn first_missing(spans: &[Span], rows: &[Row]) -> Option<RowRef> {
    let mut left = rows.iter().map(|row| row.at).peekable();
    for span in spans {
        let mut seq = span.to;
        while seq >= span.from && seq > Seq(0) {
            let wanted = RowRef::new(span.agent, seq);
            match left.next() {
                Some(found) if found == wanted => seq = seq.before(),
                Some(_) => return Some(wanted),
                // The limit was reached, or a row is missing at the very end.
                None => return rows.is_empty().then_some(wanted),
            }
        }
    }
    None
}

/// Reads the next section of a path.
pub async fn extend(store: &dyn ReadLog, path: &mut Path) -> Result<(), StoreError> {
    if let Some(query) = path.wants() {
        path.supply(&store.control(query).await?);
    }
    Ok(())
}

/// Returns the newest readable snapshot at or before a row.
async fn newest_snapshot(
    store: &dyn ReadLog,
    at: RowRef,
) -> Result<Option<(Seq, ReadSnapshot)>, StoreError> {
    let found = store.snapshot(at).await?;
    Ok(found.and_then(|found| Some((found.upto.seq, ReadSnapshot::read(&found.folded)?))))
}

/// Counts the control rows that no snapshot covers, up to `most`.
pub async fn control_rows_since_snapshot(
    store: &dyn ReadLog,
    at: RowRef,
    most: usize,
) -> Result<usize, StoreError> {
    let snapshot = newest_snapshot(store, at).await?;
    let after = snapshot.map_or(Seq(0), |(upto, _)| upto);
    let span = Span::new(at.agent, after.next(), at.seq);
    let limit = most;
    Ok(store.control(ControlQuery { span, limit }).await?.len())
}

/// Stores the snapshots of an agent whose rows were imported.
///
/// Snapshots are derived, so a dump does not contain them.
pub async fn store_snapshots(store: &dyn Log, agent: AgentId) -> Result<(), CommitError> {
    let Some(head) = store.head(agent).await? else {
        return Ok(());
    };
    let mut snapshots = Vec::new();
    let mut folded: Option<ReadSnapshot> = None;
    let mut waiting = Vec::new();
    let mut read = Seq(0);
    while read < head.seq {
        let to = head.seq.min(Seq(read.0.saturating_add(WINDOW_ROWS)));
        let span = Span::new(agent, read.next(), to);
        let limit = usize::try_from(WINDOW_ROWS).unwrap_or(usize::MAX);
        let control = store.control(ControlQuery { span, limit }).await?;
        waiting.extend(control.into_iter().rev());
        read = to;
        let whole = waiting.len() - waiting.len() % CONTROL_ROWS_PER_SNAPSHOT;
        let due: Vec<Row> = waiting.drain(..whole).collect();
        for control in due.chunks(CONTROL_ROWS_PER_SNAPSHOT) {
            let Some(upto) = control.last().map(|row| row.at) else {
                continue;
            };
            let then = Agent::fold(store, upto, folded.take(), control).await?;
            let snapshot = then.state.to_snapshot();
            folded = ReadSnapshot::read(&snapshot);
            snapshots.push(Effect::PutSnapshot(Snapshot {
                upto,
                folded: snapshot,
            }));
        }
        if !snapshots.is_empty() {
            let with = std::mem::take(&mut snapshots);
            store
                .commit(Batch {
                    with,
                    ..Batch::default()
                })
                .await?;
        }
    }
    Ok(())
}

/// Reads one row.
pub async fn row_at(store: &dyn ReadLog, row: RowRef) -> Result<Option<Row>, StoreError> {
    let span = Span::new(row.agent, row.seq, row.seq);
    let query = PageQuery::oldest(span, 1);
    Ok(store.page(query).await?.pop())
}

/// Returns the control rows after `after` up to `at`, oldest first.
async fn control_since(
    store: &dyn ReadLog,
    at: RowRef,
    after: Seq,
) -> Result<Vec<Row>, StoreError> {
    let mut found = Vec::new();
    let mut to = at.seq;
    while to > after {
        let span = Span::new(at.agent, after.next(), to);
        let rows = store
            .control(ControlQuery {
                span,
                limit: CONTROL_PAGE,
            })
            .await?;
        let exhausted = rows.len() < CONTROL_PAGE;
        to = rows.last().map_or(after, |oldest| oldest.at.seq.before());
        found.extend(rows);
        if exhausted {
            break;
        }
    }
    found.reverse();
    Ok(found)
}
