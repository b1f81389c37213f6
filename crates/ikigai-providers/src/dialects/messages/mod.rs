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
/// A thinking block's payload is `{"signature":…}`, that of a redacted one `{"data":…}`; the
/// readable text is kept beside it. Nothing hangs on texts and calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Messages;

/// The version that gateways and local servers know; nothing that is sent needs a later one.
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

    /// Claude makes a token of 3.5 bytes of English, where the estimate has four.
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

    /// Never sets `names_message`: equal roles are merged, so an index on the wire says nothing
    /// without the request. [`locate`] knows.
    fn explain(&self, body: &Value, error: &mut ProviderError) {
        errors::explain(body, error);
    }

    fn locate(&self, order: &Order<'_>, error: &ProviderError) -> Option<usize> {
        locate(order.request, &error.message)
    }
}

/// The message of a request that a refusal's words name, such as `messages.3.content.1`; none if
/// they name none, or a merged message and no block of it.
pub fn locate(request: &Request, words: &str) -> Option<usize> {
    let (message, block) = errors::place_named(words)?;
    encode::origin(request, message, block)
}
