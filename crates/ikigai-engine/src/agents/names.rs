//! Whom a name means, and how agents are related.

use ikigai_core::names::PARENT;
use ikigai_store::AgentRecord;

use crate::family_tree::FamilyTree;
use crate::{EngineError, Worker};

impl Worker {
    pub(crate) async fn family(&self) -> Result<FamilyTree, EngineError> {
        Ok(FamilyTree::new(self.engine.agents().await?))
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
