//! Sessions: directories with agents, and the agent used last in each.

use std::collections::HashMap;

use ikigai_core::{Micros, SessionId};
use ikigai_store::{AgentRecord, SessionRecord, Status};

use crate::{EngineError, EngineReader};

/// Session with its agents' data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEntry {
    /// The session.
    pub session: SessionRecord,
    /// Number of its living agents.
    pub living: usize,
    /// Living root that was used last.
    pub latest: Option<AgentRecord>,
    /// Time of its last event.
    pub touched_at: Micros,
}

impl EngineReader {
    /// Returns all sessions, the last used one first.
    pub async fn session_entries(&self) -> Result<Vec<SessionEntry>, EngineError> {
        let sessions = self.sessions().await?.into_iter();
        let mut entries: HashMap<SessionId, SessionEntry> = sessions
            .map(|session| {
                let entry = SessionEntry {
                    touched_at: session.created_at,
                    living: 0,
                    latest: None,
                    session,
                };
                (entry.session.id, entry)
            })
            .collect();
        for agent in self.agents().await? {
            if let Some(entry) = entries.get_mut(&agent.session) {
                entry.add(agent);
            }
        }
        let mut entries: Vec<_> = entries.into_values().collect();
        entries.sort_by(|one, other| {
            let newest_first = other.touched_at.cmp(&one.touched_at);
            newest_first.then_with(|| one.session.directory.cmp(&other.session.directory))
        });
        Ok(entries)
    }
}

impl SessionEntry {
    fn add(&mut self, agent: AgentRecord) {
        let touched = agent.touched_at.unwrap_or(agent.created_at);
        self.touched_at = self.touched_at.max(touched);
        if agent.status != Status::Running {
            return;
        }
        self.living += 1;
        let last = self.latest.as_ref();
        let is_newer = last.is_none_or(|last| agent.touched_at >= last.touched_at);
        if agent.parent.is_none() && is_newer {
            self.latest = Some(agent);
        }
    }
}
