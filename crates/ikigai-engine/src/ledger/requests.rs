//! Requests to the processes that hold agents.

use std::time::Duration;

use ikigai_core::{AgentId, Micros};
use ikigai_store::{CommitError, Effect, RequestEffect, RequestId, RequestRecord, RequestState};

use crate::{Engine, EngineError};

impl Engine {
    /// Returns the requests to the processes that hold agents.
    pub fn holder_requests(&self) -> HolderRequests<'_> {
        HolderRequests { engine: self }
    }
}

/// Requests to the processes that hold agents: sends and settles them.
pub struct HolderRequests<'a> {
    engine: &'a Engine,
}

impl HolderRequests<'_> {
    /// Sends a request to the process that holds an agent; it expires if no process takes it in time.
    pub async fn send(
        &self,
        agent: AgentId,
        body: String,
        patience: Duration,
    ) -> Result<RequestId, EngineError> {
        let environment = self.engine.environment();
        let id = RequestId(u128::from_be_bytes(environment.random()));
        let sent_at = environment.now();
        let patience = i64::try_from(patience.as_micros()).unwrap_or(i64::MAX);
        let request = RequestRecord {
            id,
            agent,
            author: self.engine.person(),
            sent_at,
            expires_at: Micros(sent_at.0.saturating_add(patience)),
            state: RequestState::Waiting,
            body,
            answer: None,
        };
        self.commit(RequestEffect::Send(request)).await?;
        Ok(id)
    }

    /// Acknowledges a request to an agent of this process, so that it is executed once.
    pub async fn take(&self, request: &RequestRecord) -> Result<(), EngineError> {
        let (request, agent) = (request.id, request.agent);
        self.commit(RequestEffect::Take { request, agent }).await
    }

    /// Stores the answer to a request that this process took.
    pub async fn answer(&self, request: RequestId, answer: String) -> Result<(), EngineError> {
        self.commit(RequestEffect::Answer { request, answer }).await
    }

    /// Gives up a request that no process took.
    pub async fn expire(&self, request: RequestId) -> Result<(), EngineError> {
        self.commit(RequestEffect::Expire { request }).await
    }

    async fn commit(&self, effect: RequestEffect) -> Result<(), EngineError> {
        let stored: Result<_, CommitError> = self
            .engine
            .commit_effects(vec![Effect::Request(effect)])
            .await;
        stored?;
        Ok(())
    }
}
