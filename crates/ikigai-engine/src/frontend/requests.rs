//! Requests of front ends to an agent.

use ikigai_core::data::AnsweredBy;
use ikigai_core::{Micros, RowRef};
use ikigai_store::MailId;

use crate::input::{CommandLine, UserInput};

use super::{MergePreview, Stop, SummaryDraft};

/// Request of a front end to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserRequest {
    /// Stop.
    Stop(Stop),
    /// Add this message at the next request boundary, or run this command or shell line.
    Line(UserInput),
    /// The same, with an id under which the line is stored exactly once.
    Submit(Submission),
    /// Run this command, if it only reads.
    List(Listing),
    /// Do this job when idle.
    Do(AgentJob),
    /// Withdraw a queued message.
    TakeBack(MailId),
    /// Answer the question about a call.
    Answer {
        /// The call.
        call: RowRef,
        /// The answer.
        answer: Answer,
        /// Author of the answer.
        by: AnsweredBy,
    },
}

impl UserRequest {
    /// Returns true if an idle agent works when it receives this.
    pub(crate) fn starts_work(&self) -> bool {
        match self {
            Self::Line(_) | Self::Submit(_) | Self::Do(_) | Self::Answer { .. } => true,
            Self::Stop(_) | Self::List(_) | Self::TakeBack(_) => false,
        }
    }
}

/// A read-only command that the user typed. Its row is stored, however its output is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The command.
    pub command: CommandLine,
    /// View of the output.
    pub view: ListingView,
}

/// View of a listing's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListingView {
    /// The engine sends the output, and the front end shows it as text.
    Overlay,
    /// The front end has its own view of the same data, such as a picker.
    Screen,
    /// The front end shows this text, which the engine does not have.
    Text(String),
}

/// Answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Allow this call.
    Once,
    /// Allow all calls that match the pattern.
    Always(String),
    /// Refuse; the model gets the reason, if any.
    No(Option<String>),
}

/// Job for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentJob {
    /// Answer this message.
    Say(String),
    /// Answer the messages that are in its log.
    Answer,
    /// Take its mail and answer it.
    Mail,
    /// Store news of its background processes, and answer the notices about them.
    Processes,
    /// Continue a stopped turn.
    Resume,
    /// Repeat the last turn.
    Retry,
    /// Finish open calls, or answer an unanswered message.
    GoOn,
    /// Run this line: a command, or one for the user's shell.
    Line(UserInput),
    /// Answer or run a submitted line.
    Submit(Submission),
    /// Store that a program of the user ran on the terminal.
    TerminalRan(TerminalRun),
    /// Merge a child with this text.
    Merge(Box<MergePreview>, String),
    /// Store an edited summary, or the reason why there is none.
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
    /// Time of the submission, and of its row if it becomes one directly.
    pub at: Micros,
    /// The typed line.
    pub input: UserInput,
}

impl Submission {
    /// Returns the line as typed.
    pub fn line(&self) -> &str {
        self.input.line()
    }
}

/// A command line that waits for a break or for the end of the turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitingLine {
    pub(crate) input: UserInput,
    /// Id of the submission, if it has one.
    pub(crate) id: Option<MailId>,
}

impl WaitingLine {
    pub(super) fn into_request(self) -> UserRequest {
        match self.id {
            // Only the row of a message has the time of its submission, and this is a command.
            Some(id) => UserRequest::Submit(Submission {
                id,
                at: Micros(0),
                input: self.input,
            }),
            None => UserRequest::Line(self.input),
        }
    }
}

impl From<UserInput> for WaitingLine {
    fn from(input: UserInput) -> Self {
        Self { input, id: None }
    }
}

impl From<Submission> for WaitingLine {
    fn from(submission: Submission) -> Self {
        Self {
            id: Some(submission.id),
            input: submission.input,
        }
    }
}
