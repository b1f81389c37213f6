//! Cache of the names of agents that rows mention, reaped ones included.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use ikigai_core::names::{free_name, stem};
use ikigai_core::render::{Names, Shown};
use ikigai_core::{AgentId, RowRef, SessionId};
use ikigai_store::StoreError;

use crate::{EngineError, EngineReader};

/// Names of agents; each is read once.
#[derive(Debug, Default)]
pub struct NameCache(HashMap<AgentId, Option<String>>);

impl NameCache {
    /// Reads the names of agents that are not cached.
    pub async fn load(
        &mut self,
        engine: &EngineReader,
        agents: impl IntoIterator<Item = AgentId>,
    ) -> Result<(), StoreError> {
        for agent in agents {
            if let Entry::Vacant(unknown) = self.0.entry(agent) {
                let found = engine.reader().agent(agent).await?;
                unknown.insert(found.map(|found| found.name));
            }
        }
        Ok(())
    }

    /// Returns the agent's name, if it is cached and the agent exists.
    pub fn name_of(&self, agent: AgentId) -> Option<String> {
        self.0.get(&agent).cloned().flatten()
    }

    /// Formats an event for a plain terminal, as one agent sees it.
    pub async fn plain_text(
        &mut self,
        engine: &EngineReader,
        own: AgentId,
        shown: &Shown,
    ) -> Result<String, StoreError> {
        self.load(engine, shown.mentions()).await?;
        let name_of = |agent| self.name_of(agent);
        Ok(shown.plain(names(own, &name_of)).to_string())
    }

    /// Returns `#12`, or `#docs.12` if it is another agent's row.
    pub async fn row(
        &mut self,
        engine: &EngineReader,
        own: AgentId,
        row: RowRef,
    ) -> Result<String, StoreError> {
        if row.agent != own {
            self.load(engine, [row.agent]).await?;
        }
        let name_of = |agent| self.name_of(agent);
        Ok(names(own, &name_of).row(row))
    }
}

fn names(own: AgentId, name_of: &dyn Fn(AgentId) -> Option<String>) -> Names<'_> {
    Names {
        own: Some(own),
        name_of,
    }
}

/// Finds a name that no living agent of a session has and that is not in `taken`.
///
/// Without a session it is about to be made, and has no agents.
pub(crate) async fn find_free_name(
    engine: &EngineReader,
    session: Option<SessionId>,
    wanted: &str,
    taken: &[String],
) -> Result<String, EngineError> {
    let living = match session {
        Some(session) => engine.reader().living_names(session, stem(wanted)).await?,
        None => Vec::new(),
    };
    let living: HashSet<String> = living.into_iter().collect();
    let is_taken = |name: &str| living.contains(name) || taken.iter().any(|one| one == name);
    Ok(free_name(wanted, is_taken))
}
