//! Reader that follows an agent of any process: each row once, in order.

use std::sync::Arc;

use ikigai_core::{AgentId, PageQuery, Row, Seq, Span};
use ikigai_store::{ReadLog, StoreError, Watch};

use crate::Engine;

/// Rows returned at a time.
const PAGE_ROWS: usize = 256;

/// Reader of one agent's log that waits for new rows.
pub struct Follow {
    store: Arc<dyn ReadLog>,
    watch: Watch,
    agent: AgentId,
    /// Last returned row.
    after: Seq,
    /// Last returned draft.
    draft: String,
    /// Something may have changed since the last complete read.
    is_due: bool,
}

/// News about a followed agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// Rows.
    Rows(Vec<Row>),
    /// Stored part of the running answer; empty if there is none any more.
    Draft(String),
    /// The store is closed.
    Closed,
}

impl Engine {
    /// Follows an agent's log from the row after `after` on, without its lease.
    pub fn follow(&self, agent: AgentId, after: Seq) -> Result<Follow, StoreError> {
        Ok(Follow {
            // Before the first read, so that no commit is missed.
            watch: self.reader().watch()?,
            store: self.shared_reader().clone(),
            agent,
            after,
            draft: String::new(),
            is_due: true,
        })
    }
}

impl Follow {
    /// Waits for the next rows; none if the store is closed.
    /// Cancel safe: rows that were not returned come with the next call.
    pub async fn next(&mut self) -> Result<Vec<Row>, StoreError> {
        loop {
            if self.is_due {
                let rows = self.rows().await?;
                if !rows.is_empty() {
                    return Ok(rows);
                }
                self.is_due = false;
            }
            if !self.changed().await {
                return Ok(Vec::new());
            }
        }
    }

    /// Waits for the next rows or a longer draft. Cancel safe.
    pub async fn next_live(&mut self) -> Result<Followed, StoreError> {
        loop {
            if self.is_due {
                let rows = self.rows().await?;
                if !rows.is_empty() {
                    // The draft is among the rows, or was dropped.
                    self.draft.clear();
                    return Ok(Followed::Rows(rows));
                }
                let draft = self.store.draft(self.agent).await?;
                let text = draft.map(|draft| draft.text).unwrap_or_default();
                if text != self.draft {
                    self.draft.clone_from(&text);
                    return Ok(Followed::Draft(text));
                }
                self.is_due = false;
            }
            if !self.changed().await {
                return Ok(Followed::Closed);
            }
        }
    }

    /// Waits until the agent may have changed; `false` once the store is closed. Cancel safe.
    async fn changed(&mut self) -> bool {
        while !self.is_due {
            if !self.watch.changed().await {
                return false;
            }
            self.is_due = self.watch.take().may_concern(self.agent);
        }
        true
    }

    async fn rows(&mut self) -> Result<Vec<Row>, StoreError> {
        let query = PageQuery::oldest(
            Span::new(self.agent, self.after.next(), Seq(i64::MAX as u64)),
            PAGE_ROWS,
        );
        let rows = self.store.page(query).await?;
        if let Some(last) = rows.last() {
            self.after = last.at.seq;
        }
        Ok(rows)
    }
}
