//! OpenAI Responses.
//!
//! The provider stores nothing, so every request has all that it needs again: reasoning items with
//! their encrypted content, ids and phases of messages and calls. A thinking payload is the
//! reasoning item from `response.output_item.done`, without null fields; an item payload is
//! `{"id", "phase", "after"}`, where `after` is the id of the reasoning item before it. The order
//! of keys may change; every string stays the same.

mod decode;
mod encode;

use serde_json::Value;

use crate::answer::ProviderError;
use crate::dialect::{Decoder, Dialect, Order};
use crate::dialects::{openai, refusal};

/// The dialect.
#[derive(Clone, Copy, Debug)]
pub struct Responses;

impl Dialect for Responses {
    fn name(&self) -> &'static str {
        "responses"
    }

    fn default_base(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn endpoint(&self, base: &str, _model: &str) -> String {
        format!("{base}/responses")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        openai::headers(key)
    }

    fn encode(&self, order: &Order<'_>) -> Value {
        encode::body(order)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<decode::ResponsesDecoder>::default()
    }

    fn explain(&self, body: &Value, error: &mut ProviderError) {
        refusal::explain(body, error);
    }

    fn locate(&self, order: &Order<'_>, error: &ProviderError) -> Option<usize> {
        locate(order, error)
    }
}

/// Returns the message that a refusal names, by index or id of an input item.
///
/// None if it names none. [`ProviderError::names_message`] counts the items of the wire, of which a
/// message may have several.
pub fn locate(order: &Order<'_>, error: &ProviderError) -> Option<usize> {
    let items = encode::items(order);
    let by_index = error.names_message.and_then(|index| items.get(index));
    let is_named = |(_, item): &&(usize, Value)| {
        let id = item.get("id").and_then(Value::as_str);
        id.is_some_and(|id| error.message.contains(&format!("'{id}'")))
    };
    let found = by_index.or_else(|| items.iter().find(is_named));
    found.map(|(message, _)| *message)
}
