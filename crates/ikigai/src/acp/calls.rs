//! Methods that the client calls.

use std::path::Path;

use ikigai_core::Seq;
use ikigai_core::words::Severity;
use ikigai_engine::{UserInput, UserRequest, looks_like_key};
use serde_json::{Value, json};

use super::methods::{InitializeParams, NewSessionParams, PromptParams, ServerName, SessionParams};
use super::server::AcpServer;
use super::session::{AcpSession, PendingPrompt};
use super::stored_sessions::{close_session, delete_session, list_sessions, load_session};
use super::wire::{RpcError, parameters};
use crate::store_location::Here;

/// Version of the protocol.
const VERSION: u32 = 1;

impl AcpServer {
    /// Carries out a method; none if the answer comes later.
    pub(super) async fn call(
        &mut self,
        id: &Value,
        method: &str,
        params: Value,
    ) -> Option<Result<Value, RpcError>> {
        match method {
            "initialize" => Some(self.initialize(params)),
            // There is no method to choose from: keys are in the configuration.
            "authenticate" => Some(Ok(json!({}))),
            "session/new" => Some(self.new_session(params).await),
            "session/load" => Some(load_session(self, params, true).await),
            "session/resume" => Some(load_session(self, params, false).await),
            "session/list" => Some(list_sessions(self, params).await),
            "session/close" => Some(close_session(self, params).await),
            "session/delete" => Some(delete_session(self, params).await),
            "session/prompt" => self.prompt(id, params).await.err().map(Err),
            method => Some(Err(RpcError::unknown_method(method))),
        }
    }

    /// Handles a message that wants no answer. Unknown ones are ignored.
    pub(super) fn notice(&mut self, method: &str, params: Value) {
        match method {
            "session/cancel" => {
                if let Ok(params) = parameters::<SessionParams>(params) {
                    self.cancel(&params.session_id);
                }
            }
            "$/cancel_request" => {
                let request = params.get("requestId").cloned().unwrap_or_default();
                let mut sessions = self.sessions.values();
                let is_meant = |session: &&AcpSession| {
                    let mut prompts = session.prompts.iter();
                    prompts.any(|prompt| prompt.request == request)
                };
                let session = sessions.find(is_meant);
                if let Some(id) = session.map(|session| session.id.clone()) {
                    self.cancel(&id);
                }
            }
            _ => {}
        }
    }

    fn initialize(&mut self, params: Value) -> Result<Value, RpcError> {
        let params: InitializeParams = parameters(params)?;
        self.client = params.client_capabilities;
        Ok(json!({
            "protocolVersion": VERSION,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": false, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": false, "sse": false},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
            },
            "authMethods": [],
            "agentInfo": {
                "name": "ikigai",
                "title": "ikigai",
                "version": env!("CARGO_PKG_VERSION"),
            },
        }))
    }

    async fn new_session(&mut self, params: Value) -> Result<Value, RpcError> {
        let params: NewSessionParams = parameters(params)?;
        let here = directory_of(&params.cwd)?;
        let (session, workdir) = (&here.session, &here.workdir);
        self.engine.set_opening(self.opening.clone());
        let agent = self.engine.activate_new(session, workdir).await;
        let agent = agent.map_err(RpcError::failed)?;
        let session = AcpSession::new(agent, here.workdir, Seq(0));
        let id = session.id.clone();
        self.sessions.insert(agent, session);
        self.note_servers(agent, &params.mcp_servers).await;
        Ok(json!({"sessionId": id}))
    }

    /// Says that servers of the client are not used.
    pub(super) async fn note_servers(&self, agent: ikigai_core::AgentId, servers: &[ServerName]) {
        if servers.is_empty() {
            return;
        }
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let text = format!(
            "MCP servers of the editor are not used: {}",
            names.join(", ")
        );
        self.note(agent, Severity::Warning, &text).await;
    }

    /// Finds an open session.
    pub(super) fn session(&mut self, id: &str) -> Result<&mut AcpSession, RpcError> {
        let agent = id.parse().ok();
        let session = agent.and_then(|agent| self.sessions.get_mut(&agent));
        session.ok_or_else(|| {
            let id: String = id.chars().take(80).collect();
            RpcError::not_found(format!("no open session `{id}`: load it first"))
        })
    }

    async fn prompt(&mut self, id: &Value, params: Value) -> Result<(), RpcError> {
        let params: PromptParams = parameters(params)?;
        let agent = self.session(&params.session_id)?.agent;
        let message = params.message().map_err(RpcError::invalid)?;
        if looks_like_key(&message) {
            let reason = "this looks like an API key, so it was not sent";
            return Err(RpcError::invalid(reason));
        }
        let input = UserInput::parse(message.clone());
        let submission = self.engine.submission(input);
        let is_ours = self.engine.is_working(agent).is_some();
        if !is_ours {
            // Another process may have taken the agent, or given it back.
            let taken = self.take_or_follow(agent).await;
            taken.map_err(RpcError::failed)?;
        }
        let session = self.session(&params.session_id)?;
        if session.follower.is_some() {
            session.sent.push_back(message);
            self.post(agent, &submission).await?;
            self.answer(id, Ok(json!({"stopReason": "end_turn"}))).await;
            return Ok(());
        }
        session.sent.push_back(message);
        session.add_prompt(PendingPrompt {
            request: id.clone(),
            submission: submission.id,
            is_received: false,
            is_cancelled: false,
        });
        let submitted = submission.id;
        let request = UserRequest::Submit(submission);
        if let Err(error) = self.engine.say(agent, request).await {
            self.reject_prompt(agent, Some(submitted), &error.to_string())
                .await;
        }
        Ok(())
    }

    fn cancel(&mut self, id: &str) {
        let Ok(session) = self.session(id) else {
            return;
        };
        session.cancel_prompts();
        let agent = session.agent;
        self.stop(agent);
    }
}

/// Checks a directory of the client and finds its session.
pub(super) fn directory_of(cwd: &str) -> Result<Here, RpcError> {
    let path = Path::new(cwd);
    if !path.is_absolute() {
        return Err(RpcError::invalid("`cwd` is no absolute path"));
    }
    if !path.is_dir() {
        return Err(RpcError::invalid("`cwd` is no directory"));
    }
    Here::of(path).map_err(|error| RpcError::invalid(format!("{error:#}")))
}
