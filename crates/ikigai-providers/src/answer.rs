//! Answers: what comes from a provider, in no provider's form.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use ikigai_core::data::Amounts;
use thiserror::Error;

/// A future that a provider returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An answer on its way. Dropping it ends it and closes the connection.
pub trait Answer: Send {
    /// The next piece; none after [`Delta::Finished`] or an error. Dropping the future before it is
    /// ready loses nothing: the next call goes on where it was.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta, ProviderError>>>;

    /// How long it may say nothing before somebody gives it up; longer than any wait of its own, so
    /// that only an answer that has forgotten its deadlines is given up so.
    fn patience(&self) -> Duration {
        PATIENCE
    }

    /// Reads the rest of a finished answer's body, so that its connection can be reused.
    ///
    /// None if there is no rest. The future ends within seconds and may be dropped at any time;
    /// then the connection closes.
    fn into_rest(self: Box<Self>) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// Longest time without content, unless configured longer. Pings are not content.
pub const PATIENCE: Duration = Duration::from_mins(10);

/// One piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// More words of the model.
    Text(String),
    /// More of what it thinks, as far as it can be read.
    Thinking(String),
    /// It begins to call this tool.
    Call(String),
    /// Content came that is not shown: arguments of a call, a signature.
    Progress,
    /// The request failed and will be sent again.
    Waiting(Wait),
    /// The answer begins anew: what came of it so far does not count.
    Again,
    /// The answer is whole.
    Finished(Response),
}

/// A pause before a request is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What failed.
    pub error: ProviderError,
    /// Number of the try that comes next.
    pub attempt: u32,
    /// How many tries there are.
    pub attempts: u32,
    /// How long the pause is.
    pub pause: Duration,
}

/// A whole answer, its blocks in the order in which the model made them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// What the model thought, said and called.
    pub blocks: Vec<AnswerBlock>,
    /// Why it stopped.
    pub stop: StopReason,
    /// What it cost, as far as the provider told.
    pub usage: Amounts,
}

/// One block of an answer. Payloads are the provider's own JSON as text, to be sent back verbatim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerBlock {
    /// Words.
    Text {
        /// What was said.
        text: String,
        /// What hangs on the block: item id, phase, signature.
        item: Option<String>,
    },
    /// Thinking.
    Thinking {
        /// What can be read of it.
        text: String,
        /// Signature, redacted data or encrypted reasoning.
        payload: Option<String>,
    },
    /// A tool call.
    Call {
        /// The provider's id; none if it gave none.
        id: Option<String>,
        /// Which tool.
        name: String,
        /// The arguments as they came.
        arguments: String,
        /// What hangs on the block.
        item: Option<String>,
    },
}

/// Why a model stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// It has said all it had to say.
    #[default]
    End,
    /// It waits for the results of its calls.
    Calls,
    /// It reached the longest answer allowed.
    Length,
    /// It, or its provider, declined.
    Refused,
    /// The context is full.
    ContextFull,
    /// It wants to be asked again to go on.
    Paused,
    /// Something else, in the provider's word.
    Other(String),
}

impl Delta {
    /// Says whether this brings content, or news of the request.
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
    /// The word that is stored.
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

/// What kind of failure it is; decides whether trying again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// Nobody could be reached, or the connection broke.
    Connection,
    /// Nothing came for too long.
    Timeout,
    /// Too many requests.
    RateLimited,
    /// The provider is overloaded or broken.
    Unavailable,
    /// The money or quota is used up.
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
    /// The answer ended before it was whole.
    CutOff,
    /// The answer is not what the dialect promises.
    Malformed,
}

/// Why there is no whole answer. It becomes an event, never a failure of ours.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ProviderError {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// The provider's own words where it has any, without secrets.
    pub message: String,
    /// HTTP status, if there was one.
    pub status: Option<u16>,
    /// How often it was tried.
    pub attempts: u32,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// The provider's own word on whether to try again, which overrides ours.
    pub should_retry: Option<bool>,
    /// Index of the message that the provider refuses, if its words name one.
    pub names_message: Option<usize>,
    /// Tokens that the model takes, if a refusal of a long request states them.
    pub stated_window: Option<u64>,
}

impl ProviderError {
    /// A failure without further particulars.
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
