//! Channel between an agent and its front end: requests in, events out.

mod agent_summary;
mod events;
mod live;
mod live_change;
mod merge_preview;
mod outcome;
mod requests;
mod summary_draft;
mod tool_output;

use std::collections::VecDeque;

use ikigai_core::data::Cause;
use ikigai_core::{Row, RowRef};
use ikigai_store::{MailId, MailRecord};
use tokio::sync::mpsc;

use crate::EngineError;

pub use agent_summary::AgentSummary;
pub use events::{Next, Question, UiEvent};
pub use live::{Live, Phase, RunningCall, RunningTurn, ShellRun};
pub use live_change::{LineChange, LiveChange};
pub use merge_preview::MergePreview;
pub use outcome::{Outcome, Stop, TurnEnd};
pub(crate) use requests::WaitingLine;
pub use requests::{AgentJob, Answer, Listing, ListingView, Submission, TerminalRun, UserRequest};
pub use summary_draft::SummaryDraft;
pub use tool_output::ToolOutput;

/// Capacity of the request channel.
pub const USER_REQUESTS: usize = 64;

/// The front end of a turn, as the agent at work sees it.
pub struct FrontEnd<'a> {
    requests: &'a mut mpsc::Receiver<UserRequest>,
    /// Requests of other agents of this process: kills and mail.
    others: Option<mpsc::Receiver<UserRequest>>,
    updates: &'a mut (dyn FnMut(UiEvent) + Send),
    /// True if this front end can answer questions.
    pub(crate) answers: bool,
    /// Requests that were received and not handled yet.
    pub(crate) pending: Vec<UserRequest>,
    /// Queued messages of this front end.
    pub(crate) queued: Vec<(MailId, String)>,
    /// Commands for the next request boundary.
    pub(crate) at_break: VecDeque<WaitingLine>,
    /// Commands that ended the turn and run after it.
    pub(crate) after_turn: VecDeque<WaitingLine>,
    /// Jobs for the idle agent.
    pub(crate) jobs: VecDeque<AgentJob>,
}

impl<'a> FrontEnd<'a> {
    /// Creates a front end from its request channel and its event handler.
    pub fn new(
        requests: &'a mut mpsc::Receiver<UserRequest>,
        updates: &'a mut (dyn FnMut(UiEvent) + Send),
    ) -> Self {
        Self {
            requests,
            others: None,
            updates,
            answers: true,
            pending: Vec::new(),
            queued: Vec::new(),
            at_break: VecDeque::new(),
            after_turn: VecDeque::new(),
            jobs: VecDeque::new(),
        }
    }

    /// Refuses calls that would need an answer.
    #[must_use]
    pub fn without_answers(mut self) -> Self {
        self.answers = false;
        self
    }

    /// Puts requests before the received ones.
    pub(crate) fn push_first(&mut self, requests: Vec<UserRequest>) {
        self.pending.splice(0..0, requests);
    }

    /// Returns true if an unhandled request answers the call's question.
    pub(crate) fn is_answered(&self, call: RowRef) -> bool {
        let answers = |request: &UserRequest| matches!(request, UserRequest::Answer { call: of, .. } if *of == call);
        self.pending.iter().any(answers)
    }

    /// Waits for the next request, forever if the front end is gone. Safe to cancel.
    pub(crate) async fn next(&mut self) -> UserRequest {
        if !self.pending.is_empty() {
            return self.pending.remove(0);
        }
        tokio::select! {
            biased;
            Some(request) = self.requests.recv() => request,
            Some(request) = next_of(self.others.as_mut()) => request,
            else => std::future::pending().await,
        }
    }

    /// Adds the requests of other agents of this process.
    pub(crate) fn listen_to(&mut self, others: mpsc::Receiver<UserRequest>) {
        self.others = Some(others);
    }

    /// Returns true if lines, messages or jobs wait for the idle agent.
    pub(crate) fn has_something_to_do(&self) -> bool {
        let lines = self.at_break.len() + self.after_turn.len();
        lines + self.queued.len() + self.jobs.len() > 0
    }

    /// Returns a received request without waiting.
    pub(crate) fn next_pending(&mut self) -> Option<UserRequest> {
        if !self.pending.is_empty() {
            return Some(self.pending.remove(0));
        }
        let request = self.requests.try_recv().ok();
        request.or_else(|| self.others.as_mut()?.try_recv().ok())
    }

    pub(crate) fn emit(&mut self, update: UiEvent) {
        (self.updates)(update);
    }

    /// Returns withdrawn messages to the user.
    pub(crate) fn hand_back(&mut self, mail: Vec<MailRecord>) {
        for mail in mail {
            self.queued.retain(|(queued, _)| *queued != mail.id);
            self.emit(UiEvent::TakenBack {
                mail: mail.id,
                text: mail.text,
            });
        }
    }

    /// Returns the cause of a stop request that is not handled yet.
    pub(crate) fn pending_stop(&self) -> Option<Cause> {
        self.pending.iter().find_map(|request| match request {
            UserRequest::Stop(Stop::Interrupt(cause)) => Some(*cause),
            _ => None,
        })
    }

    /// Reports lines that a failed turn did not handle.
    pub(crate) fn give_back(&mut self, error: &EngineError) {
        while let Some(request) = self.next_pending() {
            match request {
                UserRequest::Line(input) => self.after_turn.push_back(input.into()),
                UserRequest::Submit(submission) => self.after_turn.push_back(submission.into()),
                _ => {}
            }
        }
        let waiting = self.at_break.drain(..).chain(self.after_turn.drain(..));
        for waiting in waiting.collect::<Vec<_>>() {
            self.not_stored(waiting, error);
        }
    }

    /// Reports why the agent ends and the lines that it did not handle.
    pub(crate) fn end(&mut self, error: &EngineError) {
        self.emit(UiEvent::Warning(error.to_string()));
        self.requests.close();
        self.give_back(error);
    }

    /// Reports a line that was not stored. The front end keeps a message or shows the line again.
    pub(crate) fn not_stored(&mut self, waiting: WaitingLine, error: &EngineError) {
        let WaitingLine { input, id } = waiting;
        let reason = error.to_string();
        let update = match id {
            Some(id) if input.is_message() && error.may_pass() => UiEvent::Unstored { id, reason },
            id => UiEvent::NotStored { id, input, reason },
        };
        self.emit(update);
    }

    /// Takes all waiting requests, for the front end of the next job.
    pub(crate) fn take_waiting(&mut self) -> Vec<UserRequest> {
        let lines = self.at_break.drain(..).chain(self.after_turn.drain(..));
        let mut waiting: Vec<_> = lines.map(WaitingLine::into_request).collect();
        waiting.extend(self.jobs.drain(..).map(UserRequest::Do));
        waiting.append(&mut self.pending);
        waiting
    }

    /// Returns true if a waiting request ends the process or kills the agent.
    pub(crate) fn has_pending_end(&self) -> bool {
        let ends = |request: &UserRequest| {
            matches!(
                request,
                UserRequest::Stop(Stop::Interrupt(Cause::Exit | Cause::Kill))
            )
        };
        self.pending.iter().any(ends)
    }

    pub(crate) fn emit_rows(&mut self, rows: Vec<Row>) {
        for row in rows {
            self.emit(UiEvent::Stored(row));
        }
    }
}

/// Waits for a request of other agents; none without a channel.
async fn next_of(others: Option<&mut mpsc::Receiver<UserRequest>>) -> Option<UserRequest> {
    others?.recv().await
}
