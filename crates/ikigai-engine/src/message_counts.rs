//! Cache of message counts on agents' paths.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ikigai_core::{AgentId, RowRef};

/// Cache of message counts before a row, per agent.
/// The path of a row never changes, so a count stays valid.
#[derive(Debug, Default)]
pub(crate) struct MessageCounts(Mutex<HashMap<AgentId, (RowRef, u64)>>);

impl MessageCounts {
    pub(crate) fn before(&self, agent: AgentId, row: RowRef) -> Option<u64> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (counted, messages) = *known.get(&agent)?;
        (counted == row).then_some(messages)
    }

    pub(crate) fn remember(&self, agent: AgentId, row: RowRef, messages: u64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(agent, (row, messages));
    }
}
