//! Work that one agent gives to another of this process.

use ikigai_store::{AgentRecord, CommitError};

use super::Worker;
use crate::EngineError;
use crate::family::Started;
use crate::frontend::{AgentJob, UserRequest};

impl Worker {
    /// Has another agent, which nobody else holds, do something beside this one.
    pub(crate) async fn start_other(
        &mut self,
        other: &AgentRecord,
        job: AgentJob,
    ) -> Result<(), EngineError> {
        let hub = &self.ledger.engine.hub;
        // One of this process is asked: opening it again would settle the turn in which it is.
        if hub.is_working(other.id).is_some() && hub.deliver(other.id, UserRequest::Do(job.clone()))
        {
            self.children.push(Started {
                id: other.id,
                reports: false,
            });
            return Ok(());
        }
        let engine = self.ledger.engine.clone();
        let _door = engine.hub.door.acquire().await;
        let worker = self.open_other(other).await?;
        self.family().start(worker.ledger, job);
        Ok(())
    }

    /// Has another agent go on with a turn that was stopped, if there is one and nobody holds it.
    pub(crate) async fn resume_other(&mut self, other: &AgentRecord) -> Result<bool, EngineError> {
        if self.ledger.engine.hub.is_working(other.id) == Some(true) {
            return Ok(false);
        }
        if self.ledger.engine.hub.is_working(other.id).is_some() {
            self.start_other(other, AgentJob::Resume).await?;
            return Ok(true);
        }
        let engine = self.ledger.engine.clone();
        let _door = engine.hub.door.acquire().await;
        let mut worker = match self.open_other(other).await {
            Ok(worker) => worker,
            Err(EngineError::Commit(CommitError::Held { .. }) | EngineError::Dead(_)) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        match worker.check_resumable().await {
            Ok(()) => {}
            Err(error) => {
                worker.release().await?;
                return match error {
                    EngineError::NothingToResume => Ok(false),
                    error => Err(error),
                };
            }
        }
        self.family().start(worker.ledger, AgentJob::Resume);
        Ok(true)
    }

    async fn open_other(&self, other: &AgentRecord) -> Result<Self, EngineError> {
        let engine = &self.ledger.engine;
        Self::open(engine, other, self.ledger.starter, self.interpreter).await
    }
}
