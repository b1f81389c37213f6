//! Agents that a front end with a screen takes care of: they live beside each other, and whoever
//! looks at one of them says things to it by its id and is told by the observer.

use std::time::Duration;

use ikigai_core::AgentId;
use ikigai_core::data::Cause;
use ikigai_store::AgentRecord;

use crate::agents::start;
use crate::front::Intent;
use crate::{Engine, EngineError};

/// How long agents at work have to store how they ended when the program is left.
const LAST_WORDS: Duration = Duration::from_secs(3);

impl Engine {
    /// Takes care of an agent: takes its lease, settles what a former process left unfinished, and
    /// has it listen. Nothing is sent. One that lives here already is left alone.
    pub async fn attend(&self, agent: &AgentRecord) -> Result<(), EngineError> {
        let _door = self.hub.door.acquire().await;
        if self.hub.is_working(agent.id).is_none() {
            start(self.open(agent).await?, None);
        }
        Ok(())
    }

    /// Makes a root agent in a directory's session, and takes care of it.
    pub async fn attend_new(&self, directory: &str, workdir: &str) -> Result<AgentId, EngineError> {
        let worker = self.create_root(directory, workdir).await?;
        let agent = worker.agent().state.agent();
        start(worker, None);
        Ok(agent)
    }

    /// Says something to an agent, taking care of it first if nobody does.
    pub async fn say(&self, agent: AgentId, intent: Intent) -> Result<(), EngineError> {
        if self.hub.is_working(agent).is_none() {
            let record = self.store.agent(agent).await?;
            let record = record.ok_or_else(|| EngineError::NoSuchAgent(agent.to_string()))?;
            self.attend(&record).await?;
        }
        if self.hub.deliver(agent, intent) {
            Ok(())
        } else {
            Err(EngineError::DoesNotListen)
        }
    }

    /// The agents of this process that work.
    pub fn working(&self) -> Vec<AgentId> {
        self.hub.working()
    }

    /// Interrupts all agents of this process, waits a little until they have stored how they ended,
    /// and gives their leases back.
    pub async fn leave(&self) {
        let mut changes = self.hub.changes(&self.store);
        self.hub.stop_working(Cause::Exit);
        let ended = async {
            loop {
                changes.mark_unchanged();
                if self.hub.working().is_empty() || changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // What is not stored by then is settled by whoever opens the agent next.
        let _ = tokio::time::timeout(LAST_WORDS, ended).await;
        self.dismiss().await;
    }
}
