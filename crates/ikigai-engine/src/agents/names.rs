//! Whom a name means, and how agents are related.

use std::collections::HashMap;

use ikigai_core::AgentId;
use ikigai_core::names::PARENT;
use ikigai_store::{AgentRecord, Status};

use crate::{EngineError, Worker};

/// All agents, by how they are related.
pub(crate) struct Family {
    agents: Vec<AgentRecord>,
}

impl Family {
    pub(crate) fn new(agents: Vec<AgentRecord>) -> Self {
        Self { agents }
    }

    pub(crate) fn get(&self, id: AgentId) -> Option<&AgentRecord> {
        self.agents.iter().find(|agent| agent.id == id)
    }

    /// An agent and all its descendants that live, parents before children.
    pub(crate) fn living_below(&self, id: AgentId) -> Vec<AgentId> {
        let mut found = self.below(id);
        let lives = |id: &AgentId| {
            self.get(*id)
                .is_some_and(|agent| agent.status == Status::Running)
        };
        found.retain(lives);
        found
    }

    /// An agent and all its descendants, dead ones too, parents before children.
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
            // A log that calls somebody their own ancestor must not keep us here for ever.
            let below = children.remove(parent).unwrap_or_default();
            found.extend(below.into_iter().filter(|child| *child != id));
            next += 1;
        }
        found
    }

    /// The ancestors of an agent, the nearest first.
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

impl Worker {
    pub(crate) async fn family(&self) -> Result<Family, EngineError> {
        Ok(Family::new(self.engine.agents().await?))
    }

    /// The agent that a model names: by name, id or a prefix of it, or `parent`. In words for the
    /// model if there is none.
    pub(super) async fn named(
        &self,
        name: &str,
    ) -> Result<Result<AgentRecord, String>, EngineError> {
        if name == PARENT {
            let family = self.family().await?;
            let own = family.get(self.agent.state.agent());
            let parent = own.and_then(|own| family.get(own.parent?));
            return Ok(parent
                .cloned()
                .ok_or_else(|| "you have no parent".to_owned()));
        }
        match self.engine.find(name).await {
            Ok(agent) => Ok(Ok(agent)),
            Err(error @ (EngineError::NoSuchAgent(_) | EngineError::Ambiguous { .. })) => {
                Ok(Err(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }
}
