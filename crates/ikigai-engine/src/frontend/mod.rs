//! Channel between an agent and its front end: requests in, events out.

mod events;
mod line_form;
mod merge_preview;
mod outcome;
mod requests;
mod summary_draft;

use std::collections::VecDeque;

use ikigai_core::data::Cause;
use ikigai_core::{Row, RowRef};
use ikigai_store::{MailId, MailRecord};
use tokio::sync::mpsc;

use crate::EngineError;

pub use events::{Next, Question, UiEvent};
pub(crate) use line_form::{LineForm, command_word};
pub use merge_preview::MergePreview;
pub use outcome::{Outcome, Stop, TurnEnd};
pub(crate) use requests::WaitingLine;
pub use requests::{AgentJob, Answer, Submission, TerminalRun, UserRequest};
pub use summary_draft::SummaryDraft;

/// How many intents may wait to be heard.
pub const USER_REQUESTS: usize = 64;

/// The front end of a turn, as the agent at work sees it.
pub struct FrontEnd<'a> {
    requests: &'a mut mpsc::Receiver<UserRequest>,
    /// What is said by others of this process: that the agent was killed, or has mail to answer.
    others: Option<mpsc::Receiver<UserRequest>>,
    updates: &'a mut (dyn FnMut(UiEvent) + Send),
    /// Whether somebody is there who can answer questions.
    pub(crate) answers: bool,
    /// What was heard while it could not be heeded.
    pub(crate) heard: Vec<UserRequest>,
    /// Messages of this front end that wait.
    pub(crate) queued: Vec<(MailId, String)>,
    /// Commands that wait for the next break of the turn.
    pub(crate) at_break: VecDeque<WaitingLine>,
    /// Commands that ended the turn, to be carried out after it.
    pub(crate) after_turn: VecDeque<WaitingLine>,
    /// What others ask the agent to do when it has nothing else to do.
    pub(crate) jobs: VecDeque<AgentJob>,
}

impl<'a> FrontEnd<'a> {
    /// A front end that says things over a channel and is told things by a call.
    pub fn new(
        requests: &'a mut mpsc::Receiver<UserRequest>,
        updates: &'a mut (dyn FnMut(UiEvent) + Send),
    ) -> Self {
        Self {
            requests,
            others: None,
            updates,
            answers: true,
            heard: Vec::new(),
            queued: Vec::new(),
            at_break: VecDeque::new(),
            after_turn: VecDeque::new(),
            jobs: VecDeque::new(),
        }
    }

    /// Nobody is there to answer questions: what would be asked is refused.
    #[must_use]
    pub fn without_answers(mut self) -> Self {
        self.answers = false;
        self
    }

    /// Has something heeded first that was said before.
    pub(crate) fn hear_first(&mut self, requests: Vec<UserRequest>) {
        self.heard.splice(0..0, requests);
    }

    /// Whether an answer to the question about a call was heard and not yet heeded.
    pub(crate) fn is_answered(&self, call: RowRef) -> bool {
        let answers = |request: &UserRequest| matches!(request, UserRequest::Answer { call: of, .. } if *of == call);
        self.heard.iter().any(answers)
    }

    /// The next intent; never, once the front end is gone. Safe to drop.
    pub(crate) async fn next(&mut self) -> UserRequest {
        if !self.heard.is_empty() {
            return self.heard.remove(0);
        }
        tokio::select! {
            biased;
            Some(request) = self.requests.recv() => request,
            Some(request) = said_by(self.others.as_mut()) => request,
            else => std::future::pending().await,
        }
    }

    /// Listens to others of this process too.
    pub(crate) fn listen_to(&mut self, others: mpsc::Receiver<UserRequest>) {
        self.others = Some(others);
    }

    /// Says whether something waits until the agent has nothing else to do.
    pub(crate) fn has_something_to_do(&self) -> bool {
        let lines = self.at_break.len() + self.after_turn.len();
        lines + self.queued.len() + self.jobs.len() > 0
    }

    /// An intent that was said already, if there is one.
    pub(crate) fn next_said(&mut self) -> Option<UserRequest> {
        if !self.heard.is_empty() {
            return Some(self.heard.remove(0));
        }
        let said = self.requests.try_recv().ok();
        said.or_else(|| self.others.as_mut()?.try_recv().ok())
    }

    pub(crate) fn tell(&mut self, update: UiEvent) {
        (self.updates)(update);
    }

    /// Hands messages that waited back to their user.
    pub(crate) fn hand_back(&mut self, mail: Vec<MailRecord>) {
        for mail in mail {
            self.queued.retain(|(queued, _)| *queued != mail.id);
            self.tell(UiEvent::TakenBack {
                mail: mail.id,
                text: mail.text,
            });
        }
    }

    /// Who wants the agent to stop and was not heeded yet.
    pub(crate) fn stop_heard(&self) -> Option<Cause> {
        self.heard.iter().find_map(|request| match request {
            UserRequest::Stop(Stop::Interrupt(cause)) => Some(*cause),
            _ => None,
        })
    }

    /// Hands back what was said and was never heeded, because the turn failed.
    pub(crate) fn give_back(&mut self, error: &EngineError) {
        while let Some(request) = self.next_said() {
            match request {
                UserRequest::Say(text) | UserRequest::Command(text) => {
                    self.after_turn.push_back(text.into());
                }
                UserRequest::Submit(submission) => self.after_turn.push_back(submission.into()),
                _ => {}
            }
        }
        let waiting = self.at_break.drain(..).chain(self.after_turn.drain(..));
        for waiting in waiting.collect::<Vec<_>>() {
            self.not_stored(waiting, error);
        }
    }

    /// Reports why the agent ends, and hands back everything that it was told and did not do.
    pub(crate) fn end(&mut self, error: &EngineError) {
        self.tell(UiEvent::Warning(error.to_string()));
        self.requests.close();
        self.give_back(error);
    }

    /// Reports a line that was not stored: the front end keeps a message or shows the line again.
    pub(crate) fn not_stored(&mut self, waiting: WaitingLine, error: &EngineError) {
        let WaitingLine { line: text, id } = waiting;
        let reason = error.to_string();
        let is_message = LineForm::of(&text) == LineForm::Message;
        let update = match id {
            Some(id) if is_message && error.may_pass() => UiEvent::Unstored { id, reason },
            id => UiEvent::NotStored { id, text, reason },
        };
        self.tell(update);
    }

    /// Takes out everything that waits, for the desk of the next errand.
    pub(crate) fn take_waiting(&mut self) -> Vec<UserRequest> {
        let lines = self.at_break.drain(..).chain(self.after_turn.drain(..));
        let mut waiting: Vec<_> = lines.map(WaitingLine::into_intent).collect();
        waiting.extend(self.jobs.drain(..).map(UserRequest::Do));
        waiting.append(&mut self.heard);
        waiting
    }

    /// Returns whether the process ends or the agent was killed, by an intent still waiting.
    pub(crate) fn hears_end(&self) -> bool {
        let ends = |request: &UserRequest| {
            matches!(
                request,
                UserRequest::Stop(Stop::Interrupt(Cause::Exit | Cause::Kill))
            )
        };
        self.heard.iter().any(ends)
    }

    pub(crate) fn told(&mut self, rows: Vec<Row>) {
        for row in rows {
            self.tell(UiEvent::Stored(row));
        }
    }
}

/// What others of this process say; nothing if they are not listened to.
async fn said_by(others: Option<&mut mpsc::Receiver<UserRequest>>) -> Option<UserRequest> {
    others?.recv().await
}
