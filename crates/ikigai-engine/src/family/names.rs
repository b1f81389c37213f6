//! Resolution of agents' names, and relations between agents.

use ikigai_core::names::PARENT;
use ikigai_store::AgentRecord;

use super::Family;
use crate::EngineError;
use crate::family_tree::FamilyTree;

impl Family<'_> {
    pub(crate) async fn family_tree(&self) -> Result<FamilyTree, EngineError> {
        Ok(FamilyTree::new(self.ledger.engine.agents().await?))
    }

    /// Finds an agent by name, id, prefix of an id, or `parent`.
    /// The inner error is for the model.
    pub(super) async fn named(
        &self,
        name: &str,
    ) -> Result<Result<AgentRecord, String>, EngineError> {
        if name == PARENT {
            let family = self.family_tree().await?;
            let own = family.get(self.ledger.agent.state.agent());
            let parent = own.and_then(|own| family.get(own.parent?));
            return Ok(parent
                .cloned()
                .ok_or_else(|| "you have no parent".to_owned()));
        }
        match self.ledger.engine.find_near(self.ledger.id(), name).await {
            Ok(agent) => Ok(Ok(agent)),
            Err(error @ (EngineError::NoSuchAgent(_) | EngineError::Ambiguous { .. })) => {
                Ok(Err(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }
}
