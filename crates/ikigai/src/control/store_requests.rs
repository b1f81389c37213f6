//! Requests through the store: to agents that processes of other machines hold, and from them.

use std::time::Duration;

use anyhow::Result;
use ikigai_core::AgentId;
use ikigai_engine::{Engine, RequestRecord, RequestState};
use ikigai_tui::control::{PendingRequest, RequestOutcome};
use ikigai_tui::protocol::{ControlAnswer, ControlRequest};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Time for the holder of an agent to take a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time for the holder to answer a request that it took.
const WORK: Duration = Duration::from_secs(10);

/// Longest time between two looks at a request: a notification may be lost.
const POLL: Duration = Duration::from_secs(1);

/// Largest expected difference between the clocks of two machines.
const SKEW: i64 = 60_000_000;

/// Pause between two looks for requests while others write.
const PAUSE: Duration = Duration::from_millis(200);

/// Answers requests to the agents of this process until it is dropped.
pub(crate) struct StoreRequests {
    task: JoinHandle<()>,
}

impl StoreRequests {
    /// Starts to answer. Call it within a runtime.
    pub(crate) fn start(orders: mpsc::Sender<PendingRequest>, engine: Engine) -> Self {
        let task = tokio::spawn(async move {
            // A store that is away comes back; its next commit wakes this task.
            let Ok(mut watch) = engine.reader().watch() else {
                return;
            };
            serve_all(&engine, &orders).await;
            while watch.changed().await {
                sleep(PAUSE).await;
                let changes = watch.take();
                let is_mail = !(changes.own.mail.is_empty() && changes.others.mail.is_empty());
                if changes.is_partial() || is_mail {
                    serve_all(&engine, &orders).await;
                }
            }
        });
        Self { task }
    }
}

impl Drop for StoreRequests {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers all requests that wait. A store that is away is asked again later.
async fn serve_all(engine: &Engine, orders: &mpsc::Sender<PendingRequest>) {
    let waiting = engine.reader().waiting_requests().await;
    for request in waiting.unwrap_or_default() {
        serve(engine, orders, request).await;
    }
}

/// Takes one request, executes it and stores the answer.
async fn serve(engine: &Engine, orders: &mpsc::Sender<PendingRequest>, request: RequestRecord) {
    let is_stale = engine.now().0 > request.expires_at.0.saturating_add(SKEW);
    if is_stale || engine.holder_requests().take(&request).await.is_err() {
        return;
    }
    let answer = match accepted(engine, &request) {
        Ok(order) => match timeout(WORK, execute(orders, order)).await {
            Ok(answer) => answer,
            Err(_) => ControlAnswer::error("the process that holds the agent is too busy"),
        },
        Err(reason) => ControlAnswer::error(reason),
    };
    if let Err(error) = engine
        .holder_requests()
        .answer(request.id, answer.to_line())
        .await
    {
        tracing::warn!(error = %error, "an answer to a request is lost");
    }
}

/// Reads a request and checks whether its author may make it. The error is for the author.
fn accepted(engine: &Engine, request: &RequestRecord) -> Result<ControlRequest, String> {
    let read = serde_json::from_str(&request.body);
    let order: ControlRequest = read.map_err(|error| format!("invalid request: {error}"))?;
    let agent = match &order {
        ControlRequest::Interrupt { agent }
        | ControlRequest::Release { agent }
        | ControlRequest::Approve { agent, .. } => agent.as_deref(),
        _ => return Err("this request is not possible from another machine".to_owned()),
    };
    if agent.and_then(|agent| agent.parse::<AgentId>().ok()) != Some(request.agent) {
        return Err("the request names another agent".to_owned());
    }
    let person = engine.person();
    let is_own = person.is_some() && request.author == person;
    if !is_own && !matches!(order, ControlRequest::Interrupt { .. }) {
        let person = person.map_or_else(|| "its person".to_owned(), |person| person.to_string());
        return Err(format!("only {person} may do this to the agent"));
    }
    Ok(order)
}

async fn execute(orders: &mpsc::Sender<PendingRequest>, request: ControlRequest) -> ControlAnswer {
    let (reply, replied) = oneshot::channel();
    let order = PendingRequest {
        request,
        peer: None,
        reply,
    };
    if orders.send(order).await.is_err() {
        return ControlAnswer::error("the program ends");
    }
    match replied.await {
        Ok(RequestOutcome::Answer(answer)) => answer,
        Ok(RequestOutcome::Events { .. }) | Err(_) => ControlAnswer::error("the program ends"),
    }
}

/// Sends a request to the process that holds an agent, wherever it is, and waits for the answer.
///
/// A request that is not taken in time stays in the store as expired.
pub(super) async fn ask_through_store(
    engine: &Engine,
    agent: AgentId,
    request: &ControlRequest,
    holder: &str,
) -> Result<ControlAnswer, String> {
    let fail = |error: &dyn std::fmt::Display| error.to_string();
    let body = serde_json::to_string(request).map_err(|error| fail(&error))?;
    let mut watch = engine.reader().watch().map_err(|error| fail(&error))?;
    let sent = engine.holder_requests().send(agent, body, PATIENCE).await;
    let id = sent.map_err(|error| fail(&error))?;
    let answered = timeout(PATIENCE + WORK, async {
        loop {
            let record = engine.reader().request(id).await;
            let Some(record) = record.map_err(|error| fail(&error))? else {
                return Err("the request is not in the store any more".to_owned());
            };
            match record.state {
                RequestState::Answered => {
                    let answer = record.answer.unwrap_or_default();
                    return serde_json::from_str(&answer).map_err(|error| fail(&error));
                }
                RequestState::Expired => return Err(format!("{holder} did not take the request")),
                RequestState::Waiting if engine.now() > record.expires_at => {
                    // The holder may take it at the same moment; the next look shows it.
                    let _ = engine.holder_requests().expire(id).await;
                    continue;
                }
                RequestState::Waiting | RequestState::Taken => {}
            }
            let _ = timeout(POLL, watch.changed()).await;
        }
    });
    answered
        .await
        .unwrap_or_else(|_| Err(format!("{holder} took the request and does not answer")))
}
