//! Agents by their ancestry.

use std::collections::HashMap;

use ikigai_core::AgentId;
use ikigai_store::{AgentRecord, Status};

/// All agents, by how they are related.
pub(crate) struct FamilyTree {
    agents: Vec<AgentRecord>,
}

impl FamilyTree {
    pub(crate) fn new(agents: Vec<AgentRecord>) -> Self {
        Self { agents }
    }

    pub(crate) fn get(&self, id: AgentId) -> Option<&AgentRecord> {
        self.agents.iter().find(|agent| agent.id == id)
    }

    /// Returns an agent and all its descendants that live, parents before children.
    pub(crate) fn living_below(&self, id: AgentId) -> Vec<AgentId> {
        let mut found = self.below(id);
        let lives = |id: &AgentId| {
            self.get(*id)
                .is_some_and(|agent| agent.status == Status::Running)
        };
        found.retain(lives);
        found
    }

    /// Returns an agent and all its descendants, dead ones too, parents before children.
    pub(crate) fn below(&self, id: AgentId) -> Vec<AgentId> {
        let mut children: HashMap<AgentId, Vec<AgentId>> = HashMap::new();
        for agent in &self.agents {
            if let Some(parent) = agent.parent {
                children.entry(parent).or_default().push(agent.id);
            }
        }
        let mut found = vec![id];
        let mut next = 0;
        while let Some(parent) = found.get(next) {
            // A cycle of ancestors in the log must not loop forever.
            let below = children.remove(parent).unwrap_or_default();
            found.extend(below.into_iter().filter(|child| *child != id));
            next += 1;
        }
        found
    }

    /// Returns the ancestors of an agent, the nearest first.
    pub(crate) fn ancestors(&self, id: AgentId) -> Vec<AgentId> {
        let mut found = Vec::new();
        let mut parent = self.get(id).and_then(|agent| agent.parent);
        while let Some(next) = parent.filter(|next| !found.contains(next)) {
            found.push(next);
            parent = self.get(next).and_then(|agent| agent.parent);
        }
        found
    }
}
