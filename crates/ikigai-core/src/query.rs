//! Two bounded queries of a store.

use crate::ids::{AgentId, RowRef, Seq};

/// Rows `from..=to` of one agent: a piece of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The agent.
    pub agent: AgentId,
    /// The first of them.
    pub from: Seq,
    /// The last of them.
    pub to: Seq,
}

impl Span {
    /// Makes the span `from..=to` of `agent`.
    pub const fn new(agent: AgentId, from: Seq, to: Seq) -> Self {
        Self { agent, from, to }
    }

    /// Makes the span of all rows of `agent`, future ones included.
    pub const fn whole(agent: AgentId) -> Self {
        // Largest sequence number that every store can represent.
        Self::new(agent, Seq(1), Seq(i64::MAX as u64))
    }

    /// Returns true if the span contains the row.
    pub fn contains(&self, row: RowRef) -> bool {
        row.agent == self.agent && (self.from..=self.to).contains(&row.seq)
    }

    /// Returns the number of rows.
    pub const fn len(&self) -> u64 {
        self.to.0.saturating_add(1).saturating_sub(self.from.0)
    }

    /// Returns true if there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.to.0 < self.from.0
    }
}

/// Query for the newest `limit` control rows of `span`, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlQuery {
    /// The rows to search.
    pub span: Span,
    /// Largest number of rows.
    pub limit: usize,
}

/// Order in which rows of a span are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The oldest first, in order.
    Forwards,
    /// The newest first, in reverse order.
    Backwards,
}

/// Query for at most `limit` rows of `span`, of every kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageQuery {
    /// The rows to read.
    pub span: Span,
    /// Order of the rows, which also selects the end of the span.
    pub direction: Direction,
    /// Largest number of rows.
    pub limit: usize,
}

impl PageQuery {
    /// Reads the oldest rows of a span, oldest first.
    pub const fn oldest(span: Span, limit: usize) -> Self {
        Self {
            span,
            direction: Direction::Forwards,
            limit,
        }
    }

    /// Reads the newest rows of a span, newest first.
    pub const fn newest(span: Span, limit: usize) -> Self {
        Self {
            span,
            direction: Direction::Backwards,
            limit,
        }
    }
}
