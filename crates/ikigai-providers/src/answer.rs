//! Provider-neutral responses of models.

use std::time::Duration;

pub use ikigai_core::BoxFuture;
use ikigai_core::data::Amounts;
use thiserror::Error;

/// A running response. Dropping it ends it and closes the connection.
pub trait ResponseStream: Send {
    /// Returns the next delta; none after [`Delta::Finished`] or an error.
    ///
    /// Dropping the future before it is ready loses nothing: the next call continues.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta, ProviderError>>>;

    /// Returns the longest silence before the caller gives the response up.
    ///
    /// It exceeds all deadlines of the response, so it only ends one that ignores its deadlines.
    fn patience(&self) -> Duration {
        PATIENCE
    }

    /// Reads the rest of a finished response's body, so that its connection can be reused.
    ///
    /// None if there is no rest. The future ends within seconds and may be dropped at any time;
    /// then the connection closes.
    fn into_rest(self: Box<Self>) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// Longest time without content, unless configured longer. Pings are not content.
pub const PATIENCE: Duration = Duration::from_mins(10);

/// One piece of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// More text of the model.
    Text(String),
    /// More readable thinking.
    Thinking(String),
    /// Start of a call of this tool.
    Call(String),
    /// Content that is not shown: arguments of a call, a signature.
    Progress,
    /// The request failed and will be sent again.
    Waiting(RetryPause),
    /// The response starts over; the previous deltas are void.
    Again,
    /// The complete response.
    Finished(Response),
}

/// Pause before a retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPause {
    /// The failure.
    pub error: ProviderError,
    /// Number of the next attempt.
    pub attempt: u32,
    /// Largest number of attempts.
    pub attempts: u32,
    /// Length of the pause.
    pub pause: Duration,
}

/// A complete response, its blocks in the order in which the model made them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Thinking, text and calls.
    pub blocks: Vec<AnswerBlock>,
    /// Stop reason.
    pub stop: StopReason,
    /// Usage as far as the provider reported it.
    pub usage: Amounts,
}

/// One block of a response. Payloads are the provider's own JSON as text, to send back verbatim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Opaque payload of the block: item id, phase, signature.
        item: Option<String>,
    },
    /// Thinking.
    Thinking {
        /// Readable text.
        text: String,
        /// Signature, redacted data or encrypted reasoning.
        payload: Option<String>,
    },
    /// A tool call.
    Call {
        /// The provider's id; none if it gave none.
        id: Option<String>,
        /// Name of the tool.
        name: String,
        /// The arguments, unchanged.
        arguments: String,
        /// Opaque payload of the block.
        item: Option<String>,
    },
}

/// Reason for the end of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// The model is done.
    #[default]
    End,
    /// The model waits for the results of its calls.
    Calls,
    /// The response reached its longest allowed length.
    Length,
    /// The model or its provider declined.
    Refused,
    /// The context is full.
    ContextFull,
    /// The model wants another request to continue.
    Paused,
    /// Another reason, in the provider's word.
    Other(String),
}

impl Delta {
    /// Returns true if the delta has content, or news of the request.
    pub fn is_content(&self) -> bool {
        match self {
            Self::Text(text) | Self::Thinking(text) => !text.is_empty(),
            Self::Call(_) | Self::Progress | Self::Waiting(_) | Self::Again | Self::Finished(_) => {
                true
            }
        }
    }
}

impl StopReason {
    /// Returns the stored word.
    pub fn word(&self) -> &str {
        match self {
            Self::End => "end",
            Self::Calls => "calls",
            Self::Length => "length",
            Self::Refused => "refused",
            Self::ContextFull => "context_full",
            Self::Paused => "paused",
            Self::Other(word) => word,
        }
    }
}

/// Type of failure; it decides if a retry can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The server was unreachable, or the connection broke.
    Connection,
    /// The server was silent for too long.
    Timeout,
    /// Too many requests.
    RateLimited,
    /// The provider is overloaded or broken.
    Unavailable,
    /// Money or quota are used up.
    Quota,
    /// The key is missing or wrong.
    Unauthorized,
    /// The key may not do this.
    Forbidden,
    /// There is no such model or address.
    NotFound,
    /// The request is too large for the model.
    TooLong,
    /// The provider refuses the request as it is.
    BadRequest,
    /// The response ended before it was complete.
    CutOff,
    /// The response violates the dialect.
    Malformed,
}

/// Failure of a request. It becomes an event, never an error of the program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ProviderError {
    /// Type of failure.
    pub kind: FailureKind,
    /// The provider's own words if it has any, without secrets.
    pub message: String,
    /// HTTP status, if there was one.
    pub status: Option<u16>,
    /// Number of attempts.
    pub attempts: u32,
    /// Wait time that the provider asks for.
    pub retry_after: Option<Duration>,
    /// The provider's statement on retries, which overrides the program's.
    pub should_retry: Option<bool>,
    /// Index of the message that the provider refuses, if its words name one.
    pub names_message: Option<usize>,
    /// Tokens that the model accepts, if a refusal of a long request states them.
    pub stated_window: Option<u64>,
}

impl ProviderError {
    /// Makes a failure without details.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            attempts: 1,
            retry_after: None,
            should_retry: None,
            names_message: None,
            stated_window: None,
        }
    }
}
