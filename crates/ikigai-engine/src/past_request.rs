//! Rebuilds requests to the provider: a past one, or the next.

use ikigai_core::data::{self, AssistantData, ErrorData};
use ikigai_core::project::assemble;
use ikigai_core::settings::ModelChoice;
use ikigai_core::{AgentId, Kind, PageQuery, Request, Row, RowRef, Seq, Span};
use ikigai_store::{Agent, ReadLog, StoreError, history};

use crate::{EngineError, EngineReader};

/// Rows read at a time.
const PAGE_ROWS: usize = 64;

/// A rebuilt request with its model and agent.
#[derive(Clone, Debug, PartialEq)]
pub struct PastRequest {
    /// Request as the provider gets it.
    pub request: Request,
    /// Model that gets it.
    pub choice: ModelChoice,
    /// Agent that sends it.
    pub agent: AgentId,
}

impl EngineReader {
    /// Builds the agent's next request, without the message that the user has yet to send.
    pub async fn next_request(&self, agent: AgentId) -> Result<Request, EngineError> {
        let agent = Agent::restore(self.reader(), agent).await?;
        Ok(self.request_of(agent).await?.request)
    }

    /// Rebuilds the request that a row answers, else the first request after the row.
    ///
    /// Settings, documents and prompt are those of that time. Tool descriptions are not stored, so
    /// they are today's.
    pub async fn request_at(&self, at: RowRef) -> Result<PastRequest, EngineError> {
        let moment = moment_of(self.reader(), at).await?;
        let agent = Agent::restore_at(self.reader(), moment).await?;
        self.request_of(agent).await
    }

    /// Builds the agent's next request, with its model.
    pub async fn pending_request(&self, agent: AgentId) -> Result<PastRequest, EngineError> {
        self.request_of(Agent::restore(self.reader(), agent).await?)
            .await
    }

    async fn request_of(&self, agent: Agent) -> Result<PastRequest, EngineError> {
        let choice = self.choice(agent.state.settings())?;
        // An agent is large, and this is awaited in many places.
        let ready = Box::pin(self.ready(agent, &choice)).await?;
        let Agent { state, view, .. } = &ready.agent;
        Ok(PastRequest {
            request: assemble(state, view, &ready.target, &ready.budget)?,
            agent: state.agent(),
            choice,
        })
    }
}

/// Finds the last row of the log at the time of the request.
async fn moment_of(store: &dyn ReadLog, at: RowRef) -> Result<RowRef, EngineError> {
    let found = history::row_at(store, at).await?;
    let row = found.ok_or(EngineError::NoSuchRow(at))?;
    match response_of(&row) {
        Some(response) => before_response(store, at, response).await,
        None => before_next_answer(store, at).await,
    }
    .map_err(EngineError::from)
}

async fn before_response(
    store: &dyn ReadLog,
    at: RowRef,
    response: u64,
) -> Result<RowRef, StoreError> {
    let mut first = at;
    while first.seq > Seq(1) {
        let before = RowRef::new(at.agent, first.seq.before());
        let row = history::row_at(store, before).await?;
        if row.as_ref().and_then(response_of) != Some(response) {
            break;
        }
        first = before;
    }
    Ok(RowRef::new(at.agent, first.seq.before()))
}

async fn before_next_answer(store: &dyn ReadLog, at: RowRef) -> Result<RowRef, StoreError> {
    let mut last = at;
    loop {
        let span = Span {
            from: last.seq.next(),
            ..Span::whole(at.agent)
        };
        let query = PageQuery::oldest(span, PAGE_ROWS);
        let rows = store.page(query).await?;
        for row in &rows {
            if ends_the_wait(row) {
                return Ok(last);
            }
            last = row.at;
        }
        if rows.len() < PAGE_ROWS {
            return Ok(last);
        }
    }
}

/// Returns the response number of a row; 0 for older rows without one.
fn response_of(row: &Row) -> Option<u64> {
    let is_part = matches!(row.kind.read_as(), Some(Kind::Assistant | Kind::ToolCall));
    let data: AssistantData = data::read(row.data.as_deref());
    is_part.then(|| data.response.unwrap_or(0))
}

/// Says whether the request before a row was made, or will never be.
fn ends_the_wait(row: &Row) -> bool {
    match row.kind.read_as() {
        Some(Kind::Assistant | Kind::ToolCall | Kind::Interrupted | Kind::Clear | Kind::Rewind) => {
            true
        }
        Some(Kind::Error) => data::read::<ErrorData>(row.data.as_deref()).omit.is_none(),
        Some(
            Kind::System
            | Kind::User
            | Kind::ToolResult
            | Kind::Mark
            | Kind::Fork
            | Kind::Command
            | Kind::AgentKilled
            | Kind::Usage
            | Kind::Summary
            | Kind::Process
            | Kind::Files,
        )
        | None => false,
    }
}
