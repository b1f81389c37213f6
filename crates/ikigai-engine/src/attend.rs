//! Agents that a front end with a screen takes care of: they live beside each other, and whoever
//! looks at one of them says things to it by its id and is told by the observer.

use std::time::Duration;

use ikigai_core::AgentId;
use ikigai_core::data::Cause;
use ikigai_store::{AgentRecord, CommitError};
use tokio::sync::watch;

use crate::agents::start;
use crate::front::{Intent, Stop};
use crate::{Engine, EngineError, Errand};

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

    /// Whether an agent of this process works; none if it is not of this process.
    pub fn is_working(&self, agent: AgentId) -> Option<bool> {
        self.hub.is_working(agent)
    }

    /// Whether an agent has heard and seen to all that it was told, but for the work that it does.
    pub fn has_heard(&self, agent: AgentId) -> bool {
        self.hub.has_heard(agent)
    }

    /// Whether no agent of this process works or was told something that it has not heard.
    pub fn is_idle(&self) -> bool {
        let mut attended = self.hub.attended().into_iter();
        self.hub.working().is_empty() && attended.all(|agent| self.hub.has_heard(agent))
    }

    /// Tells whenever an agent of this process may have begun or ended its work.
    pub fn stirs(&self) -> watch::Receiver<u64> {
        self.hub.stirs()
    }

    /// The agents of this process.
    pub fn attended(&self) -> Vec<AgentId> {
        self.hub.attended()
    }

    /// Gives back the lease of an agent of this process, so that another may take it. A turn is
    /// interrupted, as by leaving. Returns whether there was one; none if the agent is not of this
    /// process.
    pub async fn release(&self, agent: AgentId) -> Option<bool> {
        let worked = self.hub.is_working(agent)?;
        if worked {
            let mut stirs = self.hub.stirs();
            self.hub
                .deliver(agent, Intent::Stop(Stop::Interrupt(Cause::Exit)));
            let ended = async {
                loop {
                    stirs.mark_unchanged();
                    if self.hub.is_working(agent) != Some(true) || stirs.changed().await.is_err() {
                        return;
                    }
                }
            };
            // What is not stored by then is settled by whoever opens the agent next.
            let _ = tokio::time::timeout(LAST_WORDS, ended).await;
        }
        let gone = self.hub.let_go(agent);
        let _ = tokio::time::timeout(LAST_WORDS, gone).await;
        Some(worked)
    }

    /// Takes care of agents that another process has handed over, and goes on with those of their
    /// turns that stopped in the middle. One with a call of unknown outcome waits for its user.
    pub async fn take_over(&self, agents: &[AgentId]) -> Result<(), EngineError> {
        for agent in agents {
            let Some(record) = self.store.agent(*agent).await? else {
                continue;
            };
            match self.attend(&record).await {
                Ok(()) => {}
                // Somebody else was quicker, or has killed it.
                Err(EngineError::Commit(CommitError::Held { .. }) | EngineError::Dead(_)) => {
                    continue;
                }
                Err(error) => return Err(error),
            }
            if let Some((_, false)) = self.stop_of(&record).await? {
                self.hub.deliver(*agent, Intent::Do(Errand::Resume));
            }
        }
        Ok(())
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
