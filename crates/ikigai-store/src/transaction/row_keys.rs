//! Primary keys of the SQL engines for what a transaction names.

use std::collections::HashMap;

use ikigai_core::{AgentId, RowRef, SessionId};

use crate::error::CommitError;
use crate::sql_common::to_stored;

/// Primary keys of the agents and sessions of a transaction.
#[derive(Debug, Default)]
pub(crate) struct RowKeys {
    pub(crate) agents: HashMap<AgentId, i64>,
    pub(crate) sessions: HashMap<SessionId, i64>,
}

impl RowKeys {
    /// Returns the key of an agent.
    pub(crate) fn agent(&self, agent: AgentId) -> Result<i64, CommitError> {
        let key = self.agents.get(&agent);
        key.copied().ok_or(CommitError::NoAgent(agent))
    }

    /// Returns the key of an agent, if one is named.
    pub(crate) fn optional(&self, agent: Option<AgentId>) -> Result<Option<i64>, CommitError> {
        agent.map(|agent| self.agent(agent)).transpose()
    }

    /// Columns that refer to a row: its agent's key and its number.
    pub(crate) fn row(
        &self,
        row: Option<RowRef>,
    ) -> Result<(Option<i64>, Option<i64>), CommitError> {
        let agent = self.optional(row.map(|row| row.agent))?;
        Ok((agent, row.map(|row| to_stored(row.seq.0))))
    }
}
