//! Builders of agent tool calls, and readers of their outcomes.

use std::time::Duration;

use ikigai_core::AgentId;
use ikigai_engine::{
    AgentJob, EngineError, FrontEnd, Outcome, USER_REQUESTS, UiEvent, UserInput, UserRequest,
    Worker,
};
use ikigai_providers::AnswerBlock;
use ikigai_store::{AgentRecord, MailState, ReadLog, Status};
use ikigai_testkit::Step;
use serde_json::json;
use tokio::sync::mpsc;

use crate::fakes::call;
use crate::support::World;

/// Returns an answer of these calls without text.
pub(crate) fn calls(calls: impl IntoIterator<Item = AnswerBlock>) -> [Step; 1] {
    [Step::FinishWith(calls.into_iter().collect())]
}

/// Returns a call that forks a fresh child.
pub(crate) fn fork(name: &str, prompt: &str) -> AnswerBlock {
    let arguments = json!({ "name": name, "prompt": prompt, "context": "fresh" });
    call("fork", &arguments)
}

pub(super) fn kill(agent: &str) -> AnswerBlock {
    call("kill", &json!({ "agent": agent }))
}

pub(super) fn send(to: &str, message: &str) -> AnswerBlock {
    call("send", &json!({ "to": to, "message": message }))
}

/// Returns a call that waits for these agents; without agents, for any mail.
pub(super) fn wait(seconds: u64, agents: &[&str]) -> AnswerBlock {
    let arguments = json!({ "timeout": seconds, "from_agents": agents });
    call("wait", &arguments)
}

/// Returns an answer that comes after a pause.
pub(super) fn after(seconds: u64, text: &str) -> [Step; 3] {
    [
        Step::Sleep(Duration::from_secs(seconds)),
        Step::Say(text.to_owned()),
        Step::Finish,
    ]
}

/// Runs a job, sends `requests` when they resolve, and returns the events.
pub(super) async fn work_and_say(
    worker: &mut Worker,
    job: AgentJob,
    requests: impl Future<Output = Vec<UserRequest>> + Send,
) -> (Result<Outcome, EngineError>, Vec<UiEvent>) {
    let (sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut told = Vec::new();
    let mut tell = |update| told.push(update);
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    let say = async {
        for request in requests.await {
            sender.send(request).await.unwrap();
        }
        std::future::pending::<()>().await;
    };
    let outcome = tokio::select! {
        outcome = worker.work(job, &mut desk) => outcome,
        () = say => unreachable!("it never ends"),
    };
    (outcome, told)
}

/// Sends a message and waits until the agent and its children are done.
pub(super) async fn work(worker: &mut Worker, text: &str) -> Outcome {
    let job = AgentJob::Say(text.to_owned());
    let (outcome, _) = work_and_say(worker, job, std::future::pending()).await;
    outcome.unwrap()
}

/// Types a line and returns its events; agents that it starts keep running.
pub(super) async fn typed(worker: &mut Worker, line: &str) -> Vec<UiEvent> {
    let (_sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut told = Vec::new();
    let mut tell = |update| told.push(update);
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    worker
        .line(UserInput::parse(line), &mut desk)
        .await
        .unwrap();
    told
}

/// Waits for the agents that lines started.
pub(super) async fn see_out(worker: &mut Worker) {
    let (_sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut tell = |_| {};
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    worker.see_children_out(&mut desk).await.unwrap();
}

impl World {
    pub(super) async fn named(&self, name: &str) -> AgentRecord {
        let agents = self.log().agents(None).await.unwrap();
        let mut found = agents.into_iter().filter(|agent| agent.name == name);
        found
            .next()
            .unwrap_or_else(|| panic!("no agent has the name {name}"))
    }

    pub(super) async fn id_of(&self, name: &str) -> AgentId {
        self.named(name).await.id
    }

    /// Returns the names of all agents with their status.
    pub(super) async fn census(&self) -> Vec<(String, Status)> {
        let agents = self.log().agents(None).await.unwrap().into_iter();
        agents.map(|agent| (agent.name, agent.status)).collect()
    }

    /// Returns the mail of an agent with its state.
    pub(super) async fn mail_of(&self, agent: AgentId) -> Vec<(String, MailState)> {
        let mail = self.log().mail(agent).await.unwrap().into_iter();
        mail.map(|mail| (mail.text, mail.state)).collect()
    }

    /// Returns the outputs of an agent's calls, in the order of the results.
    pub(super) async fn outputs(&self, agent: AgentId) -> Vec<String> {
        let results = self.results(agent).await.into_iter();
        results.map(|result| result.output).collect()
    }

    /// Returns the texts of an agent's rows of a kind.
    pub(super) async fn texts(&self, agent: AgentId, kind: &str) -> Vec<String> {
        let rows = self.rows(agent).await.into_iter();
        let of_kind = rows.filter(|row| row.kind.name() == kind);
        of_kind.map(|row| row.content.unwrap_or_default()).collect()
    }
}
