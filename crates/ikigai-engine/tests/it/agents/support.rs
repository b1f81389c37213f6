//! Calls of the tools that deal with agents, and looking at what came of them.

use std::time::Duration;

use ikigai_core::AgentId;
use ikigai_engine::{
    AgentJob, EngineError, FrontEnd, Outcome, USER_REQUESTS, UiEvent, UserRequest, Worker,
};
use ikigai_providers::AnswerBlock;
use ikigai_store::{AgentRecord, MailState, ReadLog, Status};
use ikigai_testkit::Step;
use serde_json::json;
use tokio::sync::mpsc;

use crate::fakes::call;
use crate::support::World;

/// An answer that makes these calls and says nothing.
pub(super) fn calls(calls: impl IntoIterator<Item = AnswerBlock>) -> [Step; 1] {
    [Step::FinishWith(calls.into_iter().collect())]
}

/// Forks a child that knows nothing but its prompt.
pub(super) fn fork(name: &str, prompt: &str) -> AnswerBlock {
    let arguments = json!({ "name": name, "prompt": prompt, "context": "fresh" });
    call("fork", &arguments)
}

pub(super) fn kill(agent: &str) -> AnswerBlock {
    call("kill", &json!({ "agent": agent }))
}

pub(super) fn send(to: &str, message: &str) -> AnswerBlock {
    call("send", &json!({ "to": to, "message": message }))
}

/// Waits so many seconds for these agents, or for the next mail of anybody.
pub(super) fn wait(seconds: u64, agents: &[&str]) -> AnswerBlock {
    let arguments = json!({ "timeout": seconds, "from_agents": agents });
    call("wait", &arguments)
}

/// Silence, then these words.
pub(super) fn after(seconds: u64, text: &str) -> [Step; 3] {
    [
        Step::Sleep(Duration::from_secs(seconds)),
        Step::Say(text.to_owned()),
        Step::Finish,
    ]
}

/// Has an agent do something, says what comes of `intents` meanwhile, and returns what was told.
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

/// Says something to an agent and lets it and its children work to their end.
pub(super) async fn work(worker: &mut Worker, text: &str) -> Outcome {
    let job = AgentJob::Say(text.to_owned());
    let (outcome, _) = work_and_say(worker, job, std::future::pending()).await;
    outcome.unwrap()
}

/// Types a line, and lets what it starts go on beside.
pub(super) async fn typed(worker: &mut Worker, line: &str) -> Vec<UiEvent> {
    let (_sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut told = Vec::new();
    let mut tell = |update| told.push(update);
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    worker.line(line, &mut desk).await.unwrap();
    told
}

/// Waits for what lines started.
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
            .unwrap_or_else(|| panic!("nobody is called {name}"))
    }

    pub(super) async fn id_of(&self, name: &str) -> AgentId {
        self.named(name).await.id
    }

    /// Names of all agents, with their status.
    pub(super) async fn census(&self) -> Vec<(String, Status)> {
        let agents = self.log().agents(None).await.unwrap().into_iter();
        agents.map(|agent| (agent.name, agent.status)).collect()
    }

    /// What was sent to an agent, and what became of it.
    pub(super) async fn mail_of(&self, agent: AgentId) -> Vec<(String, MailState)> {
        let mail = self.log().mail(agent).await.unwrap().into_iter();
        mail.map(|mail| (mail.text, mail.state)).collect()
    }

    /// The outputs of an agent's calls, in the order in which they came.
    pub(super) async fn outputs(&self, agent: AgentId) -> Vec<String> {
        let results = self.results(agent).await.into_iter();
        results.map(|result| result.output).collect()
    }

    /// The texts of an agent's rows of a kind.
    pub(super) async fn texts(&self, agent: AgentId, kind: &str) -> Vec<String> {
        let rows = self.rows(agent).await.into_iter();
        let of_kind = rows.filter(|row| row.kind.name() == kind);
        of_kind.map(|row| row.content.unwrap_or_default()).collect()
    }
}
