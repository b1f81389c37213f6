//! Anthropic Messages: the dialect of Claude, and of local servers that imitate it.

mod decode;
mod encode;
mod errors;
#[cfg(test)]
mod tests;

use ikigai_core::Request;
use ikigai_core::project::Scale;
use serde_json::Value;

use crate::answer::ProviderError;
use crate::dialect::{Decoder, Dialect, Order, ends_in_version};

/// The Messages dialect.
///
/// The payload of a thinking block is `{"signature":…}`, that of a redacted one `{"data":…}`; the
/// readable text is stored separately. Texts and calls have no payload.
#[derive(Clone, Copy, Debug, Default)]
pub struct Messages;

/// API version that gateways and local servers know; requests need no later one.
const VERSION: &str = "2023-06-01";

impl Dialect for Messages {
    fn name(&self) -> &'static str {
        "messages"
    }

    fn default_base(&self) -> &'static str {
        "https://api.anthropic.com/v1"
    }

    fn endpoint(&self, base: &str, _model: &str) -> String {
        if ends_in_version(base) {
            format!("{base}/messages")
        } else {
            format!("{base}/v1/messages")
        }
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let version = ("anthropic-version", VERSION.to_owned());
        let key = key.map(|key| ("x-api-key", key.to_owned()));
        std::iter::once(version).chain(key).collect()
    }

    /// Returns 1.15: a token of Claude has 3.5 bytes of English; the estimate assumes four.
    fn token_scale(&self) -> Scale {
        Scale::thousandths(1150)
    }

    fn requires_max_output(&self) -> bool {
        true
    }

    fn encode(&self, order: &Order<'_>) -> Value {
        encode::encode(order)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<decode::MessagesDecoder>::default()
    }

    /// Reads a refusal, without `names_message`.
    ///
    /// Equal roles are merged, so an index on the wire means nothing without the request;
    /// [`locate`] resolves it.
    fn explain(&self, body: &Value, error: &mut ProviderError) {
        errors::explain(body, error);
    }

    fn locate(&self, order: &Order<'_>, error: &ProviderError) -> Option<usize> {
        locate(order.request, &error.message)
    }
}

/// Returns the message that a refusal's words name, such as `messages.3.content.1`.
///
/// None if they name none, or a merged message and no block of it.
pub fn locate(request: &Request, words: &str) -> Option<usize> {
    let (message, block) = errors::place_named(words)?;
    encode::origin(request, message, block)
}
