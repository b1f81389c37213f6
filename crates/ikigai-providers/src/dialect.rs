//! Dialects: encoding of requests and decoding of responses. One folder each, one line in the
//! table.

use serde_json::Value;

use ikigai_core::Request;
use ikigai_core::project::Scale;

use crate::answer::{Delta, ProviderError, Response};
use crate::catalogue::ThinkingValue;
use crate::sse::Frame;

/// Request with the model and its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The conversation.
    pub request: &'a Request,
    /// The model's name on the wire.
    pub model: &'a str,
    /// Thinking level; none: no thinking field is sent.
    pub thinking: Option<&'a ThinkingValue>,
    /// The longest answer in tokens, thinking included; 0: the server decides.
    pub max_output: u64,
    /// Id of the conversation, for the provider's prompt cache.
    pub cache_key: &'a str,
    /// Peculiarities of the server.
    pub quirks: Quirks,
}

/// Differences between servers of one dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a separate fact about a server"
)]
pub struct Quirks {
    /// The server accepts `max_tokens` and not `max_completion_tokens`.
    pub old_max_tokens: bool,
    /// The server expects `reasoning_content` (or its variant) back on assistant messages.
    pub echoes_reasoning: bool,
    /// The server accepts a prompt cache key.
    pub cache_key: bool,
    /// The server has no encrypted reasoning, so none is requested.
    pub no_encrypted_reasoning: bool,
    /// The server accepts only call ids of nine letters and digits.
    pub short_call_ids: bool,
    /// The server requires alternating user and assistant messages, apart from calls and results.
    pub alternating_roles: bool,
}

/// Returns true if a URL ends in a version, like `/v1`.
pub(crate) fn ends_in_version(base: &str) -> bool {
    let last = base.rsplit('/').next().unwrap_or_default();
    let number = last.strip_prefix('v').unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Wire format of a provider family.
pub trait Dialect: Send + Sync {
    /// Returns its name in configuration: `responses`, `chat`, `messages`, `gemini`.
    fn name(&self) -> &'static str;

    /// Returns the base URL of its inventor's own service.
    fn default_base(&self) -> &'static str;

    /// Returns the URL of a request, given a base URL without a trailing slash.
    fn endpoint(&self, base: &str, model: &str) -> String;

    /// Returns the headers of every request, with the key.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// Returns the counted tokens per estimated token, if known for all its models.
    fn token_scale(&self) -> Scale {
        Scale::default()
    }

    /// Returns true if every request needs a limit for its response.
    fn requires_max_output(&self) -> bool {
        false
    }

    /// Encodes a request. Pure.
    fn encode(&self, order: &Order<'_>) -> Value;

    /// Makes a decoder for one response.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// Reads the body of a refusal: message, and type of failure if the status leaves it open.
    ///
    /// `error` already has status and kind.
    fn explain(&self, body: &Value, error: &mut ProviderError);

    /// Returns the message of the neutral request that a refusal names, if any.
    fn locate(&self, _order: &Order<'_>, error: &ProviderError) -> Option<usize> {
        error.names_message
    }
}

/// Decoder of a response, frame by frame. Pure: it is pushed, and never waits.
pub trait Decoder: Send {
    /// Decodes a frame.
    ///
    /// Unknown events and fields are ignored; malformed events and errors inside the stream fail.
    fn push(&mut self, frame: &Frame) -> Result<Vec<Delta>, ProviderError>;

    /// Returns the complete response at the end of the body, or an error.
    ///
    /// Never a [`Delta`]: the caller makes [`Delta::Finished`] of it.
    fn finish(self: Box<Self>) -> Result<Response, ProviderError>;

    /// Returns true after the terminal event, so that the caller need not wait for more.
    fn is_done(&self) -> bool;

    /// Returns the bytes of content so far: text, thinking, arguments, signatures, and each block.
    fn content_bytes(&self) -> usize;
}

/// Bytes that a block counts besides its content, so that empty blocks are bounded too.
pub(crate) const BLOCK_BYTES: usize = 16;
