//! Agents below a session's agent, shown as tool calls with progress.

use std::time::Instant;

use ikigai_core::AgentId;
use ikigai_core::project::ToolAction;
use ikigai_core::spelling::{clean, clean_line};
use ikigai_engine::{Live, LiveChange, Outcome, UiEvent};

use super::server::AcpServer;
use super::session::ViewChange;
use super::updates::{CallContent, CallKind, CallStatus, SessionUpdate, ToolCallChange};

/// An agent below a session's agent.
pub(super) struct ChildCall {
    /// Agent of the session.
    pub(super) session: AgentId,
    live: Live,
    is_shown: bool,
}

impl AcpServer {
    /// Shows an event of an agent that has no session.
    pub(super) async fn show_child_event(&mut self, agent: AgentId, event: &UiEvent) {
        if !self.children.contains_key(&agent) {
            let found = self.session_above(agent).await;
            let child = found.map(|session| ChildCall {
                session,
                live: Live::default(),
                is_shown: false,
            });
            self.learn_name(agent).await;
            self.children.insert(agent, child);
        }
        let name = self.name_of(agent);
        let name = name.unwrap_or_else(|| agent.to_string());
        let Some(Some(child)) = self.children.get_mut(&agent) else {
            return;
        };
        let session = child.session;
        let changes = child.apply(agent, &name, event);
        for change in changes {
            self.show_change(session, change).await;
        }
    }

    /// Finds the nearest agent above that has a session.
    async fn session_above(&self, agent: AgentId) -> Option<AgentId> {
        let ancestry = self.engine.reader().ancestry(agent, 1).await.ok()??;
        let mut above = ancestry.ancestors.into_iter();
        above.find(|agent| self.sessions.contains_key(agent))
    }
}

impl ChildCall {
    fn apply(&mut self, agent: AgentId, name: &str, event: &UiEvent) -> Vec<ViewChange> {
        match self.live.apply(event, Instant::now()) {
            LiveChange::Question(question) => vec![ViewChange::Ask(question.clone())],
            LiveChange::Unasked(call) => vec![ViewChange::Unask(call)],
            LiveChange::Began | LiveChange::Row(_) => {
                vec![self.progress(agent, name, CallStatus::InProgress)]
            }
            LiveChange::Ended { outcome, .. } => {
                let status = match outcome {
                    Outcome::Completed => CallStatus::Completed,
                    Outcome::Interrupted(_) | Outcome::Failed(_) => CallStatus::Failed,
                };
                vec![self.progress(agent, name, status)]
            }
            LiveChange::Warning(text) => {
                let text = format!("{}: {text}", clean_line(name));
                vec![ViewChange::Note(
                    ikigai_core::words::Severity::Warning,
                    text,
                )]
            }
            LiveChange::State
            | LiveChange::Answer(_)
            | LiveChange::Restarted
            | LiveChange::Retry(_)
            | LiveChange::Settled(_)
            | LiveChange::ToolLine(_)
            | LiveChange::ShellLine(_)
            | LiveChange::Line(_)
            | LiveChange::Preview { .. }
            | LiveChange::Notice(_)
            | LiveChange::GrantOffer(_)
            | LiveChange::StoreAway(_)
            | LiveChange::Next(_) => Vec::new(),
        }
    }

    /// Makes the update with the newest words of the agent.
    fn progress(&mut self, agent: AgentId, name: &str, status: CallStatus) -> ViewChange {
        let newest = clean(&self.live.summary.last).into_owned();
        let change = ToolCallChange {
            tool_call_id: agent.to_string(),
            status: Some(status),
            content: (!newest.trim().is_empty()).then(|| vec![CallContent::text(newest)]),
            ..ToolCallChange::default()
        };
        ViewChange::Update(if std::mem::replace(&mut self.is_shown, true) {
            SessionUpdate::ToolCallUpdate(change)
        } else {
            SessionUpdate::ToolCall(ToolCallChange {
                title: Some(format!("agent {}", clean_line(name))),
                kind: Some(CallKind(ToolAction::Other)),
                ..change
            })
        })
    }
}
