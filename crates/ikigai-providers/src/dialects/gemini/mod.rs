//! Gemini `streamGenerateContent`: the dialect of Google's models.

mod decode;
mod encode;
mod errors;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::answer::ProviderError;
use crate::dialect::{Decoder, Dialect, Order};

/// The Gemini dialect.
///
/// The opaque payload of a block is `{"id":…,"thoughtSignature":…}`, each field if it came. A call
/// whose payload has no `id` got a generated one, or comes from another model: neither it nor its
/// result is sent with an id. A signature on an empty part becomes a thinking block without text,
/// whose payload is `{"text":…,"thoughtSignature":…}`, so that it keeps its position.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gemini;

impl Dialect for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn default_base(&self) -> &'static str {
        "https://generativelanguage.googleapis.com/v1beta"
    }

    fn endpoint(&self, base: &str, model: &str) -> String {
        let model = model.strip_prefix("models/").unwrap_or(model);
        format!("{base}/models/{model}:streamGenerateContent?alt=sse")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let key = key.map(|key| ("x-goog-api-key", key.to_owned()));
        key.into_iter().collect()
    }

    fn encode(&self, order: &Order<'_>) -> Value {
        encode::encode(order)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<decode::GeminiDecoder>::default()
    }

    /// Names a message by its index on the wire: each content is one message of the request.
    fn explain(&self, body: &Value, error: &mut ProviderError) {
        errors::explain(body, error);
    }
}
