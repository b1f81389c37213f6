//! Dialects: how a request is spelled and an answer read. One folder each, one line in the table.

use serde_json::Value;

use ikigai_core::Request;
use ikigai_core::project::Scale;

use crate::answer::{Delta, ProviderError, Response};
use crate::catalogue::ThinkingValue;
use crate::sse::Frame;

/// What is to be asked of whom.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The conversation.
    pub request: &'a Request,
    /// The model's name on the wire.
    pub model: &'a str,
    /// How much it shall think; none: no thinking field is sent.
    pub thinking: Option<&'a ThinkingValue>,
    /// The longest answer in tokens, thinking included; 0: the server decides.
    pub max_output: u64,
    /// Names the conversation, for the provider's prompt cache.
    pub cache_key: &'a str,
    /// Peculiarities of the server.
    pub quirks: Quirks,
}

/// What servers of one dialect differ in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about a server"
)]
pub struct Quirks {
    /// It takes `max_tokens` and not `max_completion_tokens`.
    pub old_max_tokens: bool,
    /// It wants `reasoning_content` (or the name it came with) back on assistant messages.
    pub echoes_reasoning: bool,
    /// It takes a prompt cache key.
    pub cache_key: bool,
    /// It is no reasoning service of OpenAI's own: nothing encrypted is asked for.
    pub no_encrypted_reasoning: bool,
    /// It takes ids of calls only if they are nine letters and digits.
    pub short_call_ids: bool,
    /// It wants user and assistant to take turns, with nothing but calls and results between.
    pub alternating_roles: bool,
}

/// Says whether an address ends in a version, like `/v1`.
pub(crate) fn ends_in_version(base: &str) -> bool {
    let last = base.rsplit('/').next().unwrap_or_default();
    let number = last.strip_prefix('v').unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// One way of talking to a model.
pub trait Dialect: Send + Sync {
    /// Its name in configuration: `responses`, `chat`, `messages`, `gemini`.
    fn name(&self) -> &'static str;

    /// The base address of its inventor's own service.
    fn default_base(&self) -> &'static str;

    /// Where a request goes, given a base address without a trailing slash.
    fn endpoint(&self, base: &str, model: &str) -> String;

    /// The headers that carry a key and whatever else every request has.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// How many tokens its models count for one that is estimated, as far as that is known of all
    /// of them.
    fn token_scale(&self) -> Scale {
        Scale::default()
    }

    /// Says whether a request without a limit for its answer is refused.
    fn requires_max_output(&self) -> bool {
        false
    }

    /// Spells a request. Pure.
    fn encode(&self, order: &Order<'_>) -> Value;

    /// Begins to read an answer.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// Reads the body of a refusal: the provider's words, and what kind of failure they mean if
    /// the status does not tell. `error` has status and kind already.
    fn explain(&self, body: &Value, error: &mut ProviderError);

    /// The message of the neutral request that a refusal names; none if it names none.
    fn locate(&self, _order: &Order<'_>, error: &ProviderError) -> Option<usize> {
        error.names_message
    }
}

/// Reads an answer frame by frame. Pure: it is pushed, and never waits.
pub trait Decoder: Send {
    /// Takes in a frame. Unknown events and fields are ignored; malformed ones are an error that
    /// names them; an error that the provider sends inside the stream is one too.
    fn push(&mut self, frame: &Frame) -> Result<Vec<Delta>, ProviderError>;

    /// The whole answer at the end of the body, or the failure that it did not end well. Never a
    /// [`Delta`]: the caller makes [`Delta::Finished`] of it.
    fn finish(self: Box<Self>) -> Result<Response, ProviderError>;

    /// Says whether the terminal event has come, so that nothing more need be waited for.
    fn is_done(&self) -> bool;

    /// Bytes of content held so far: text, thinking, arguments, signatures, and each block.
    fn content_bytes(&self) -> usize;
}

/// Bytes that a block counts beside its content, so that empty blocks are bounded too.
pub(crate) const BLOCK_BYTES: usize = 16;
