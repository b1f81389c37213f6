//! Events that an agent sends to its front end.

use ikigai_core::spelling::spell_out;
use ikigai_core::words::Severity;
use ikigai_core::{AgentId, Row, RowRef};
use ikigai_providers::RetryPause;
use ikigai_store::MailId;

use super::{Outcome, SummaryDraft};
use crate::input::UserInput;

/// Event of an agent for its front end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UiEvent {
    /// A turn has begun, or goes on.
    Began,
    /// The turn has ended.
    Ended(Outcome),
    /// A row was stored.
    Stored(Row),
    /// A row that settled the unfinished turn of a former process.
    Settled(Row),
    /// More text came; it is not yet a row.
    Text(String),
    /// The model thinks; not yet a row.
    Thinking(String),
    /// The model begins to call this tool.
    Calling(String),
    /// The request failed and will be sent again after a pause.
    Waiting(RetryPause),
    /// The answer starts again; discard the text received so far.
    Again,
    /// A call has begun to run.
    Running(RowRef),
    /// The newest line that a running call printed.
    Progress {
        /// The call.
        call: RowRef,
        /// The line.
        line: String,
    },
    /// New whole lines that a running call printed, for screens. They are not in the log.
    Output {
        /// The call.
        call: RowRef,
        /// The lines, each with its end, without control characters and secrets.
        text: String,
    },
    /// A call waits for approval.
    Question(Question),
    /// A question needs no answer any more. A rule allows the call now, or its turn was stopped.
    Unasked(RowRef),
    /// A message waits for the next break.
    Queued {
        /// Id of the mail.
        mail: MailId,
        /// Text of the message.
        text: String,
    },
    /// Queued mail became a row.
    Delivered(MailId),
    /// Queued mail was withdrawn; its text goes back to the user.
    TakenBack {
        /// Id of the mail.
        mail: MailId,
        /// Text of the mail.
        text: String,
    },
    /// A submission is in the log or in the queue, or its command ran.
    Received(MailId),
    /// The store failed, so a submitted message is not stored or its outcome is unknown.
    ///
    /// The front end keeps it and calls [`crate::Engine::store_pending`] until that succeeds.
    Unstored {
        /// Id of the submission.
        id: MailId,
        /// Text of the failure.
        reason: String,
    },
    /// A typed line could not be stored and had no effect.
    NotStored {
        /// Id of the submission, if it has one.
        id: Option<MailId>,
        /// The typed line.
        input: UserInput,
        /// Text of the failure.
        reason: String,
    },
    /// A command asks the front end to do something.
    Next(Next),
    /// A shell command of the user runs.
    ShellStarted {
        /// Id of the submission, if it has one.
        id: Option<MailId>,
        /// The command line.
        command: String,
    },
    /// The shell command of the user ended.
    ShellEnded,
    /// A line that a shell command of the user printed; not yet a row.
    Printed(String),
    /// Output of a read-only command; its row follows.
    Preview {
        /// The line as typed.
        line: String,
        /// Its output, without a sign.
        output: String,
        /// Severity of the output.
        severity: Severity,
    },
    /// Information for the user that is not stored.
    Notice(String),
    /// Warning for the user that is not stored.
    Warning(String),
    /// Mode or rules of the log are not in force here. The text offers to grant them.
    GrantOffer(String),
    /// The store fails and is tried again; nothing is lost so far.
    StoreAway(String),
}

/// A call that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The call.
    pub call: RowRef,
    /// Name of the calling agent.
    pub agent: String,
    /// Name of the tool.
    pub tool: String,
    /// The whole call, spelled out.
    pub shown: String,
    /// Working directory, spelled out.
    pub workdir: String,
    /// The whole diff of an edit, spelled out.
    pub preview: Option<String>,
    /// Exact pattern that *always* allows.
    pub pattern: String,
    /// Hash of the exact call and the pattern; an approval by a program names it.
    pub hash: String,
}

impl Question {
    /// Returns the pattern that *always* would allow, spelled out.
    pub fn spelled_pattern(&self) -> String {
        spell_out(&self.pattern)
    }
}

/// Action of the front end after a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Put this text into the input.
    Input(String),
    /// Show another agent.
    Switch(AgentId),
    /// Copy this text to the clipboard.
    Copy(String),
    /// Show these colours.
    Theme(String),
    /// Take the mouse, or leave it to the terminal.
    Mouse(bool),
    /// Unfold or fold everything; toggle if none.
    View(Option<bool>),
    /// Read and draw everything anew.
    Refresh,
    /// Let the user edit a summary in their editor, then store it.
    EditSummary(Box<SummaryDraft>),
    /// End.
    Quit,
}
