//! Requests of front ends to an agent.

use ikigai_core::data::AnsweredBy;
use ikigai_core::{Micros, RowRef};
use ikigai_store::MailId;

use super::{MergePreview, Stop, SummaryDraft};

/// What a front end asks of an agent at work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserRequest {
    /// To stop.
    Stop(Stop),
    /// To take this message in at the next break.
    Say(String),
    /// To carry out this line: a command, or one for the user's shell.
    Command(String),
    /// The same as `Command`, with an id under which the line is stored exactly once.
    Submit(Submission),
    /// To show what this command would print, if it is one that only shows something.
    Preview(String),
    /// To do this as soon as it has nothing else to do.
    Do(AgentJob),
    /// Not to send a message that waits.
    TakeBack(MailId),
    /// To do with a call as somebody answered.
    Answer {
        /// Which call.
        call: RowRef,
        /// What was answered.
        answer: Answer,
        /// By whom.
        by: AnsweredBy,
    },
}

/// What somebody answered to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This once.
    Once,
    /// From now on, whatever fits the pattern.
    Always(String),
    /// No; the model is told why, if a reason is given.
    No(Option<String>),
}

/// What is asked of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentJob {
    /// To answer this.
    Say(String),
    /// To answer what is in its log already.
    Answer,
    /// To take its mail in and answer that.
    Mail,
    /// To go on with a stopped turn.
    Resume,
    /// To send the last turn again.
    Retry,
    /// To go on with what its log says is not done: open calls, or a message without an answer.
    GoOn,
    /// To carry out this line: a command, or one for the user's shell.
    Line(String),
    /// To answer or carry out a submitted line.
    Submit(Submission),
    /// To store that a program of the user ran on the terminal.
    TerminalRan(TerminalRun),
    /// To take over what came of a child, in these words.
    Merge(Box<MergePreview>, String),
    /// To store a summary as the user edited it, or to say why the user did not.
    StoreSummary(Box<SummaryDraft>, Result<String, String>),
}

/// A line of the user's shell that a front end ran on its terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalRun {
    /// The command line.
    pub command: String,
    /// Exit code; none if it is not known.
    pub exit: Option<i32>,
    /// True if the model sees that it ran.
    pub sent: bool,
}

/// A typed line with an id, so that it is stored exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Id of the submission, and of the mail if it becomes mail.
    pub id: MailId,
    /// Time of the submission; also the time of its row if it becomes a row directly.
    pub at: Micros,
    /// The typed line.
    pub line: String,
}

/// A command line that waits for a break or for the end of the turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitingLine {
    pub(crate) line: String,
    /// Id of the submission, if it has one.
    pub(crate) id: Option<MailId>,
}

impl WaitingLine {
    pub(super) fn into_intent(self) -> UserRequest {
        match self.id {
            // Only the row of a message has the time of its submission, and this is a command.
            Some(id) => UserRequest::Submit(Submission {
                id,
                at: Micros(0),
                line: self.line,
            }),
            None => UserRequest::Command(self.line),
        }
    }
}

impl From<String> for WaitingLine {
    fn from(line: String) -> Self {
        Self { line, id: None }
    }
}

impl From<Submission> for WaitingLine {
    fn from(submission: Submission) -> Self {
        Self {
            id: Some(submission.id),
            line: submission.line,
        }
    }
}
