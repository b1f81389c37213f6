//! Activation and deactivation of agents for front ends.
//!
//! Several agents run in parallel; a front end sends requests by agent id and gets events by the
//! observer.

mod held_forks;
mod lines;
mod live;
mod stopped_turns;
mod submissions;

use std::time::Duration;

use ikigai_core::data::{Cause, ForkContext};
use ikigai_core::{AgentId, Epoch};
use ikigai_store::{AgentRecord, CommitError};
use tokio::sync::watch;

use crate::commands::Dispatcher;
use crate::family::{ChildSeat, ForkRequest, hide_root};
use crate::frontend::AgentJob;
use crate::frontend::{Stop, UserRequest};
use crate::hub::{Opening, UseObserver};
use crate::last_turn::last_turn;
use crate::ledger::Ledger;
use crate::{Engine, EngineError, Worker};

pub use held_forks::HeldFork;
pub use stopped_turns::Stopped;

use self::live::start;

/// Time for an agent to store its outcome before its lease goes to another process.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Longest wait for an agent that is being opened when the program exits.
const DOOR_WITHIN: Duration = Duration::from_millis(200);

/// Longest wait for agents when the program exits, which takes at most two seconds.
const LEAVE_WITHIN: Duration = Duration::from_millis(1100);

impl Engine {
    /// Activates an agent: takes its lease, settles an unfinished turn, starts its task.
    ///
    /// Sends no request. Does nothing if the agent is active here already.
    pub async fn activate(&self, agent: &AgentRecord) -> Result<(), EngineError> {
        let _door = self.hub().door.acquire().await;
        if self.hub().is_working(agent.id).is_none() {
            let mut worker = self.open(agent).await?;
            worker.apply_opening(Some(agent.id)).await?;
            start(worker.into_ledger(), None);
        }
        Ok(())
    }

    /// Creates a root agent in a directory's session and activates it.
    pub async fn activate_new(
        &self,
        directory: &str,
        workdir: &str,
    ) -> Result<AgentId, EngineError> {
        let mut worker = self.create_root(directory, workdir).await?;
        worker.apply_opening(None).await?;
        let agent = worker.agent().state.agent();
        start(worker.into_ledger(), None);
        Ok(agent)
    }

    /// Sets the recorder of the agents that the user chooses.
    pub fn observe_use(&self, observer: UseObserver) {
        self.hub().set_use_observer(observer);
    }

    /// Records that the user talks or switches to an agent.
    pub fn note_use(&self, agent: AgentId) {
        if let Some(observer) = self.hub().use_observer() {
            observer(agent);
        }
    }

    /// Sets model and approval mode for the first agent that a front end starts.
    pub fn set_opening(&self, opening: Opening) {
        self.hub().set_opening(opening);
    }

    /// Sends a request to an agent, activating it first if necessary.
    pub async fn say(&self, agent: AgentId, request: UserRequest) -> Result<(), EngineError> {
        if matches!(request, UserRequest::Line(_) | UserRequest::Submit(_)) {
            self.note_use(agent);
        }
        if self.hub().is_working(agent).is_none() {
            let record = self.reader().agent(agent).await?;
            let record = record.ok_or_else(|| EngineError::NoSuchAgent(agent.to_string()))?;
            self.activate(&record).await?;
        }
        if self.hub().deliver(agent, request) {
            Ok(())
        } else {
            Err(EngineError::DoesNotListen)
        }
    }

    /// Returns true if an agent of this process works; none for other agents.
    pub fn is_working(&self, agent: AgentId) -> Option<bool> {
        self.hub().is_working(agent)
    }

    /// Returns true if an agent has handled all requests but its current job.
    pub fn is_caught_up(&self, agent: AgentId) -> bool {
        self.hub().is_caught_up(agent)
    }

    /// Returns true if no agent of this process works or has pending requests.
    pub fn is_idle(&self) -> bool {
        let mut active_agents = self.hub().active_agents().into_iter();
        self.hub().working().is_empty() && active_agents.all(|agent| self.hub().is_caught_up(agent))
    }

    /// Returns a watch that changes when an agent here starts or ends work.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.hub().subscribe()
    }

    /// Returns the agents of this process.
    pub fn active_agents(&self) -> Vec<AgentId> {
        self.hub().active_agents()
    }

    /// Gives back an agent's lease, so that another process may take it. Interrupts a running turn,
    /// as an exit does. Returns true if there was one; none if the agent is not of this process.
    pub async fn release(&self, agent: AgentId) -> Option<bool> {
        let worked = self.hub().is_working(agent)?;
        if worked {
            let mut activity = self.hub().subscribe();
            self.hub()
                .deliver(agent, UserRequest::Stop(Stop::Interrupt(Cause::Exit)));
            let ended = async {
                loop {
                    activity.mark_unchanged();
                    if self.hub().is_working(agent) != Some(true)
                        || activity.changed().await.is_err()
                    {
                        return;
                    }
                }
            };
            // The next process that opens the agent settles an unfinished turn.
            let _ = tokio::time::timeout(LAST_WORDS, ended).await;
        }
        let gone = self.hub().let_go(agent);
        let _ = tokio::time::timeout(LAST_WORDS, gone).await;
        Some(worked)
    }

    /// Ends a root and all agents below it, and hides them. Their rows stay.
    ///
    /// Interrupts a turn that runs here. Fails if another process holds the root.
    pub async fn hide_family(&self, root: &AgentRecord) -> Result<(), EngineError> {
        self.release(root.id).await;
        let mut worker = self.open(root).await?;
        let hidden = hide_root(worker.family()).await;
        // The lease ends with the process anyway.
        let _ = worker.release().await;
        hidden
    }

    /// Activates agents that another process handed over, and continues their stopped turns.
    ///
    /// A turn with a call of unknown outcome waits for its user.
    pub async fn take_over(&self, agents: &[AgentId]) -> Result<(), EngineError> {
        for agent in agents {
            let Some(record) = self.reader().agent(*agent).await? else {
                continue;
            };
            match self.activate(&record).await {
                Ok(()) => {}
                // Another process took it, or it was killed.
                Err(EngineError::Commit(CommitError::Held { .. }) | EngineError::Dead(_)) => {
                    continue;
                }
                Err(error) => return Err(error),
            }
            if let Some((_, false)) = last_turn(self.reader(), record.id).await?.stop() {
                self.hub()
                    .deliver(*agent, UserRequest::Do(AgentJob::Resume));
            }
        }
        Ok(())
    }

    /// Returns the agents of this process that work.
    pub fn working(&self) -> Vec<AgentId> {
        self.hub().working()
    }

    /// Gives back the leases of all idle agents of this process.
    pub async fn dismiss(&self) {
        for agent in self.hub().active_agents() {
            if self.hub().is_working(agent) == Some(false) {
                self.hub().let_go(agent).await;
            }
        }
    }

    /// Interrupts all agents of this process, and waits a little more than a second.
    /// Meanwhile they store their outcomes and give their leases back. Agents that start later end
    /// at once.
    pub async fn leave(&self) {
        // A line may be on its way to an agent that is being opened.
        let _ = tokio::time::timeout(DOOR_WITHIN, self.hub().door.acquire()).await;
        let mut changes = self.hub().subscribe();
        self.hub().dismiss_all();
        let gone = async {
            loop {
                changes.mark_unchanged();
                if self.hub().active_agents().is_empty() || changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // The next process that opens an agent settles an unfinished turn.
        let _ = tokio::time::timeout(LEAVE_WITHIN, gone).await;
    }
}

impl Engine {
    /// Takes an agent's lease, and settles a former holder's unfinished turn.
    pub async fn open(&self, agent: &AgentRecord) -> Result<Worker, EngineError> {
        Box::pin(Worker::open(self, agent, start, &Dispatcher)).await
    }

    /// Creates a root agent in a directory's session, and opens it.
    pub async fn create_root(&self, directory: &str, workdir: &str) -> Result<Worker, EngineError> {
        let ledger = Box::pin(Ledger::create_root(self, directory, workdir, start)).await?;
        Ok(Worker::new(ledger, &Dispatcher))
    }

    /// Creates a child of an agent of any process, and opens it.
    ///
    /// Appends the parent's row without its lease, so its owner continues. This process owns the
    /// child.
    pub async fn fork_held(
        &self,
        parent: AgentId,
        wish: &ForkRequest,
    ) -> Result<Worker, EngineError> {
        let ledger = Box::pin(crate::family::fork_held_ledger(self, parent, wish, start)).await?;
        Ok(Worker::new(ledger, &Dispatcher))
    }
}

impl Worker {
    /// Creates a fresh child and continues as it.
    pub async fn into_fresh_child(mut self) -> Result<Self, EngineError> {
        let wish = ForkRequest {
            name: None,
            prompt: None,
            context: ForkContext::Fresh,
            at: None,
            model: None,
            call: None,
            worktree: None,
            seat: ChildSeat::default(),
        };
        let (forked, _) = self.family().fork(&wish, |_| Vec::new(), None).await?;
        let engine = self.ledger().engine.clone();
        let child = Ledger::begin(engine, forked.id, Epoch(1), start).await?;
        self.release().await?;
        Ok(Self::new(child, &Dispatcher))
    }

    /// Lets another agent of this process answer its messages in parallel.
    pub fn answer_beside(&mut self, other: Self) {
        self.family().start(other.into_ledger(), AgentJob::Answer);
    }

    /// Stores the front end's settings for its first agent.
    async fn apply_opening(&mut self, agent: Option<AgentId>) -> Result<(), EngineError> {
        let Some(opening) = self.ledger().engine.hub().take_opening(agent) else {
            return Ok(());
        };
        // A screen may have loaded the agent before.
        if let Some(choice) = opening.model {
            let rows = self.choose_model(choice).await?;
            self.ledger_mut().settled.extend(rows);
        }
        if let Some(mode) = opening.approve {
            let rows = self.approve_for_now(mode).await?;
            self.ledger_mut().settled.extend(rows);
        }
        Ok(())
    }
}
