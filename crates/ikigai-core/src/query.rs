//! What core asks of a store: two shapes of reading, both bounded.

use crate::ids::{AgentId, RowRef, Seq};

/// Rows `from..=to` of one agent: a piece of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Whose rows.
    pub agent: AgentId,
    /// The first of them.
    pub from: Seq,
    /// The last of them.
    pub to: Seq,
}

impl Span {
    /// The rows `from..=to` of `agent`.
    pub const fn new(agent: AgentId, from: Seq, to: Seq) -> Self {
        Self { agent, from, to }
    }

    /// All rows of `agent`, also those to come.
    pub const fn whole(agent: AgentId) -> Self {
        // As much as every store can count to.
        Self::new(agent, Seq(1), Seq(i64::MAX as u64))
    }

    /// Says whether the row is one of these.
    pub fn contains(&self, row: RowRef) -> bool {
        row.agent == self.agent && (self.from..=self.to).contains(&row.seq)
    }

    /// How many rows these are.
    pub const fn len(&self) -> u64 {
        self.to.0.saturating_add(1).saturating_sub(self.from.0)
    }

    /// Says whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.to.0 < self.from.0
    }
}

/// Asks for the newest `limit` control rows of `span`, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlQuery {
    /// Where to look.
    pub span: Span,
    /// How many at most.
    pub limit: usize,
}

/// From which end of a span rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The oldest first, in order.
    Forwards,
    /// The newest first, in reverse order.
    Backwards,
}

/// Asks for at most `limit` rows of `span`, of every kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageQuery {
    /// Where to read.
    pub span: Span,
    /// From which end, and in which order the rows come.
    pub direction: Direction,
    /// How many at most.
    pub limit: usize,
}
