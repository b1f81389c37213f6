//! Changes that an event makes to the live state of an agent.

use std::time::Duration;

use ikigai_core::words::Severity;
use ikigai_core::{Row, RowRef};
use ikigai_providers::RetryPause;
use ikigai_store::MailId;

use crate::input::UserInput;

use super::{Next, Outcome, Question};

/// Change of [`super::Live`] that a front end may have to show or carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveChange<'e> {
    /// Only the state changed: the phase, a running call, the thinking.
    State,
    /// A turn has begun, or goes on.
    Began,
    /// The streamed answer grew by this text.
    Answer(&'e str),
    /// The streamed answer was discarded; it comes again.
    Restarted,
    /// The request failed and is sent again after a pause.
    Retry(&'e RetryPause),
    /// A row was stored.
    Row(&'e Row),
    /// A row settled the turn of a former process.
    Settled(&'e Row),
    /// A running call printed this line.
    ToolLine(&'e str),
    /// The user's shell command printed this line.
    ShellLine(&'e str),
    /// A call waits for approval.
    Question(&'e Question),
    /// A question needs no answer any more.
    Unasked(RowRef),
    /// The turn has ended.
    Ended {
        /// Its end.
        outcome: &'e Outcome,
        /// Time since its start, if the start is known.
        took: Option<Duration>,
    },
    /// A line of the user moved on.
    Line(LineChange<'e>),
    /// Output of a command that leaves no row.
    Preview {
        /// The line as typed.
        line: &'e str,
        /// Its output, without a sign.
        output: &'e str,
        /// Severity of the output.
        severity: Severity,
    },
    /// Information that is not stored.
    Notice(&'e str),
    /// Warning that is not stored.
    Warning(&'e str),
    /// Offer to grant the mode or rules of the log.
    GrantOffer(&'e str),
    /// The store fails, and did not before.
    StoreAway(&'e str),
    /// A command asks the front end to do something.
    Next(&'e Next),
}

/// New place of a line that the user typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineChange<'e> {
    /// It waits for the next break.
    Queued(&'e str),
    /// It left the queue and became a row.
    Delivered,
    /// It left the queue and goes back to the user.
    TakenBack(&'e str),
    /// It is in the log or in the queue, or its command ran.
    Received(MailId),
    /// The store failed; the front end keeps it and stores it later.
    Unstored {
        /// Id of the submission.
        id: MailId,
        /// Text of the failure.
        reason: &'e str,
    },
    /// It could not be stored and had no effect.
    NotStored {
        /// Id of the submission, if it has one.
        id: Option<MailId>,
        /// The typed line.
        input: &'e UserInput,
        /// Text of the failure.
        reason: &'e str,
    },
    /// Its shell command runs; the id of the submission, if it has one.
    Running(Option<MailId>),
}
