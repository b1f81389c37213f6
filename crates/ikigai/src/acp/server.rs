//! The agent's side of the protocol: answers the client, and shows it the engine's events.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ikigai_core::data::{AnsweredBy, Cause};
use ikigai_core::render::render;
use ikigai_core::words::Severity;
use ikigai_core::{AgentId, RowRef};
use ikigai_engine::{
    Answer, Engine, MailId, Opening, Question, Stop, UiEvent, UserRequest, mark_all_read,
};
use ikigai_store::history::row_at;
use ikigai_tui::driver::EventQueue;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::child_calls::ChildCall;
use super::foreign_sessions::{ForeignNews, WAITING};
use super::methods::ClientFeatures;
use super::row_updates::question_call;
use super::session::{AcpSession, ViewChange};
use super::stdio::MessageWriter;
use super::updates::{ContentChunk, SessionNotification, SessionUpdate};
use super::wire::{ClientMessage, RpcError, answer_line, notification_line, request_line};

/// Shortest interval between two updates with the output of running calls.
const OUTPUT_PAUSE: Duration = Duration::from_millis(250);

const ALLOW_ONCE: &str = "allow-once";
const ALLOW_ALWAYS: &str = "allow-always";
const REJECT: &str = "reject";

/// State of one client.
pub(super) struct AcpServer {
    pub(super) engine: Engine,
    pub(super) events: EventQueue,
    pub(super) writer: MessageWriter,
    pub(super) client: ClientFeatures,
    pub(super) sessions: HashMap<AgentId, AcpSession>,
    /// Agents below those of the sessions; none for agents of no session.
    pub(super) children: HashMap<AgentId, Option<ChildCall>>,
    /// Questions that the client was asked, by the id of the request.
    asked: HashMap<u64, Question>,
    requests: u64,
    /// Names of agents that rows mention.
    names: HashMap<AgentId, String>,
    /// Model and mode of new sessions.
    pub(super) opening: Opening,
    /// Time of the newest update with output.
    output_at: Option<Instant>,
    /// Queue of news about agents of other processes.
    pub(super) foreign_news: mpsc::Sender<ForeignNews>,
}

impl AcpServer {
    /// Creates a server, and the queue of news about agents of other processes.
    pub(super) fn new(
        engine: Engine,
        writer: MessageWriter,
        opening: Opening,
    ) -> (Self, mpsc::Receiver<ForeignNews>) {
        let (foreign_news, news) = mpsc::channel(WAITING);
        let events = EventQueue::default();
        engine.observe(events.observer(), true);
        let server = Self {
            foreign_news,
            engine,
            events,
            writer,
            client: ClientFeatures::default(),
            sessions: HashMap::new(),
            children: HashMap::new(),
            asked: HashMap::new(),
            requests: 0,
            names: HashMap::new(),
            opening,
            output_at: None,
        };
        (server, news)
    }

    /// Handles a message of the client.
    pub(super) async fn handle(&mut self, message: ClientMessage) {
        match message {
            ClientMessage::Call { id, method, params } => {
                // The answer to a prompt comes when its turn has ended.
                if let Some(answer) = self.call(&id, &method, params).await {
                    self.answer(&id, answer).await;
                }
            }
            ClientMessage::Notification { method, params } => self.notice(&method, params),
            ClientMessage::Response { id, result } => self.answered(&id, result).await,
            ClientMessage::Invalid { id, error } => self.answer(&id, Err(error)).await,
        }
    }

    pub(super) async fn answer(&self, id: &Value, answer: Result<Value, RpcError>) {
        self.writer.send(answer_line(id, answer)).await;
    }

    /// Shows queued events, then answers the prompts whose turns have ended.
    pub(super) async fn advance(&mut self) {
        let sessions = self.sessions.values();
        let waiting = sessions.filter(|session| !session.prompts.is_empty());
        let agents = waiting.map(|session| session.agent);
        // Read before the events, so that all events of an idle agent are among them.
        let idle: Vec<AgentId> = agents.filter(|agent| self.is_idle(*agent)).collect();
        for (agent, event) in self.events.take() {
            self.show_event(agent, &event).await;
        }
        if self.output_due().is_some_and(|due| due <= Instant::now()) {
            self.send_output().await;
        }
        for agent in idle {
            self.finish_prompts(agent).await;
        }
    }

    fn is_idle(&self, agent: AgentId) -> bool {
        self.engine.is_working(agent) != Some(true) && self.engine.is_caught_up(agent)
    }

    /// Returns the time of the next update with output, if there is some.
    pub(super) fn output_due(&self) -> Option<Instant> {
        let has_output = self.sessions.values().any(AcpSession::has_output);
        let last = self.output_at.unwrap_or_else(Instant::now);
        has_output.then(|| match self.output_at {
            Some(_) => last + OUTPUT_PAUSE,
            None => last,
        })
    }

    async fn send_output(&mut self) {
        self.output_at = Some(Instant::now());
        let agents: Vec<AgentId> = self.sessions.keys().copied().collect();
        for agent in agents {
            let updates = self.sessions.get_mut(&agent).map(AcpSession::take_output);
            for update in updates.unwrap_or_default() {
                self.update(agent, &update).await;
            }
        }
    }

    pub(super) async fn show_event(&mut self, agent: AgentId, event: &UiEvent) {
        self.learn_names(event).await;
        let names = |agent: AgentId| self.names.get(&agent).cloned();
        let Some(session) = self.sessions.get_mut(&agent) else {
            return self.show_child_event(agent, event).await;
        };
        for change in session.apply(event, Instant::now(), &names) {
            self.show_change(agent, change).await;
        }
    }

    /// Carries out a change of a session.
    pub(super) async fn show_change(&mut self, agent: AgentId, change: ViewChange) {
        match change {
            ViewChange::Update(update) => self.update(agent, &update).await,
            ViewChange::Note(severity, text) => self.note(agent, severity, &text).await,
            ViewChange::Ask(question) => self.ask(agent, question).await,
            ViewChange::Unask(call) => self.unask(call).await,
            ViewChange::Rejected(submission, reason) => {
                self.reject_prompt(agent, submission, &reason).await;
            }
        }
    }

    /// Reads the names of the agents that a row mentions.
    async fn learn_names(&mut self, event: &UiEvent) {
        let (UiEvent::Stored(row) | UiEvent::Settled(row)) = event else {
            return;
        };
        for agent in render(row).mentions() {
            self.learn_name(agent).await;
        }
    }

    pub(super) async fn learn_name(&mut self, agent: AgentId) {
        if !self.names.contains_key(&agent)
            && let Ok(Some(record)) = self.engine.reader().agent(agent).await
        {
            self.names.insert(agent, record.name);
        }
    }

    /// Returns the name of an agent, if it was read.
    pub(super) fn name_of(&self, agent: AgentId) -> Option<String> {
        self.names.get(&agent).cloned()
    }

    pub(super) async fn update(&self, agent: AgentId, update: &SessionUpdate) {
        if let Some(session) = self.sessions.get(&agent) {
            let params = SessionNotification {
                session_id: &session.id,
                update,
            };
            let line = notification_line("session/update", &params);
            self.writer.send(line).await;
        }
    }

    /// Shows a text that is not stored.
    pub(super) async fn note(&self, agent: AgentId, severity: Severity, text: &str) {
        let update = if self.client.has_notices() {
            SessionUpdate::notice(severity, text)
        } else {
            let text = format!("{}\n\n", severity.signed(text));
            SessionUpdate::AgentMessageChunk(ContentChunk::new(text, None))
        };
        self.update(agent, &update).await;
    }

    /// Asks the client about a call of a session's agent, or of one below it.
    pub(super) async fn ask(&mut self, agent: AgentId, question: Question) {
        let Some(session) = self.sessions.get(&agent) else {
            return;
        };
        let row = row_at(self.engine.reader(), question.call).await;
        let row = row.unwrap_or_default();
        self.requests += 1;
        let id = self.requests;
        let always = format!(
            "Always allow {} \"{}\"",
            question.tool,
            question.spelled_pattern()
        );
        let params = json!({
            "sessionId": session.id,
            "toolCall": question_call(&question, row.as_ref(), question.call.agent == agent),
            "options": [
                {"optionId": ALLOW_ONCE, "name": "Allow once", "kind": "allow_once"},
                {"optionId": ALLOW_ALWAYS, "name": always, "kind": "allow_always"},
                {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
            ],
        });
        // An earlier request about the same call is void.
        self.unask(question.call).await;
        self.asked.insert(id, question);
        let line = request_line(id, "session/request_permission", &params);
        self.writer.send(line).await;
    }

    /// Withdraws the request about a call.
    async fn unask(&mut self, call: RowRef) {
        self.withdraw(|question| question.call == call).await;
    }

    /// Withdraws the requests about calls of a session's agents.
    pub(super) async fn withdraw_questions(&mut self, agent: AgentId, below: &[AgentId]) {
        let is_of = |of: AgentId| of == agent || below.contains(&of);
        self.withdraw(|question| is_of(question.call.agent)).await;
    }

    async fn withdraw(&mut self, is_void: impl Fn(&Question) -> bool) {
        let asked = self.asked.iter();
        let void: Vec<u64> = asked
            .filter(|(_, question)| is_void(question))
            .map(|(id, _)| *id)
            .collect();
        for id in void {
            self.asked.remove(&id);
            let line = notification_line("$/cancel_request", &json!({"requestId": id}));
            self.writer.send(line).await;
        }
    }

    /// Handles the client's answer to a question.
    async fn answered(&mut self, id: &Value, result: Option<Value>) {
        // Questions that were withdrawn need no answer.
        let asked = id.as_u64().and_then(|id| self.asked.remove(&id));
        let Some(question) = asked else {
            return;
        };
        let agent = question.call.agent;
        let outcome = result.as_ref().map(|result| &result["outcome"]);
        let chosen = outcome.and_then(|outcome| outcome["optionId"].as_str());
        let is_cancelled = outcome.is_some_and(|outcome| outcome["outcome"] == "cancelled");
        let answer = match chosen {
            Some(ALLOW_ONCE) => Answer::Once,
            Some(ALLOW_ALWAYS) => Answer::Always(question.pattern),
            Some(REJECT) => Answer::No(None),
            _ if is_cancelled => {
                self.stop(agent);
                return;
            }
            _ => Answer::No(Some("the client gave no valid answer".to_owned())),
        };
        let request = UserRequest::Answer {
            call: question.call,
            answer,
            by: AnsweredBy::User,
        };
        if let Err(error) = self.engine.say(agent, request).await {
            let reason = format!("the answer was not stored: {error}");
            self.note(agent, Severity::Warning, &reason).await;
        }
    }

    /// Interrupts the turn of an agent, as its user.
    pub(super) fn stop(&self, agent: AgentId) {
        let stop = UserRequest::Stop(Stop::Interrupt(Cause::User));
        self.engine.send_request(agent, stop);
    }

    /// Answers the prompts of an idle agent.
    pub(super) async fn finish_prompts(&mut self, agent: AgentId) {
        let Some(session) = self.sessions.get_mut(&agent) else {
            return;
        };
        // An agent that has ended stores nothing any more.
        let is_gone = self.engine.is_working(agent).is_none();
        let (done, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut session.prompts)
            .into_iter()
            .partition(|prompt| prompt.is_received || is_gone);
        session.prompts = waiting;
        if done.is_empty() {
            return;
        }
        session.sent.clear();
        let reason = session.stop_reason();
        for prompt in done {
            let answer = match &reason {
                _ if prompt.is_cancelled => Ok(json!({"stopReason": "cancelled"})),
                Ok(reason) if prompt.is_received => Ok(json!({"stopReason": reason})),
                Ok(_) => Err(RpcError::failed("the agent has ended")),
                Err(reason) => Err(RpcError::failed(reason)),
            };
            self.answer(&prompt.request, answer).await;
        }
        // If that cannot be stored, the inbox lists the answer.
        let _ = mark_all_read(&self.engine, agent).await;
    }

    /// Answers a prompt that was not stored.
    pub(super) async fn reject_prompt(
        &mut self,
        agent: AgentId,
        submission: Option<MailId>,
        reason: &str,
    ) {
        let Some(session) = self.sessions.get_mut(&agent) else {
            return;
        };
        let prompts = session.prompts.iter();
        let index = prompts
            .enumerate()
            .find(|(_, prompt)| Some(prompt.submission) == submission);
        let Some((index, _)) = index else {
            return self.note(agent, Severity::Warning, reason).await;
        };
        let prompt = session.prompts.remove(index);
        self.answer(&prompt.request, Err(RpcError::failed(reason)))
            .await;
    }

    /// Ends: interrupts the agents, shows their ends, and writes all messages.
    pub(super) async fn leave(&mut self) {
        self.engine.leave().await;
        for (agent, event) in self.events.take() {
            self.show_event(agent, &event).await;
        }
        let agents: Vec<AgentId> = self.sessions.keys().copied().collect();
        for agent in agents {
            self.finish_prompts(agent).await;
        }
    }
}
