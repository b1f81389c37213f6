//! OpenAI Chat Completions, the dialect of every compatible server.
//!
//! A thinking payload is `{"field": NAME}`, the field of the reasoning, or
//! `{"reasoning_details": [..]}` with the collected details; the block has the readable text. Order
//! within an assistant message is lost on the wire: all text is one field, all calls another.

mod decode;
mod encode;
mod reasoning;
mod strict;

use serde_json::Value;

use crate::answer::ProviderError;
use crate::dialect::{Decoder, Dialect, Order};
use crate::dialects::{openai, refusal};

/// The dialect.
#[derive(Clone, Copy, Debug)]
pub struct Chat;

impl Dialect for Chat {
    fn name(&self) -> &'static str {
        "chat"
    }

    fn default_base(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn endpoint(&self, base: &str, _model: &str) -> String {
        format!("{base}/chat/completions")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        openai::headers(key)
    }

    fn encode(&self, order: &Order<'_>) -> Value {
        encode::body(order)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<decode::ChatDecoder>::default()
    }

    fn explain(&self, body: &Value, error: &mut ProviderError) {
        refusal::explain(body, error);
    }

    fn locate(&self, order: &Order<'_>, error: &ProviderError) -> Option<usize> {
        locate(order, error)
    }
}

/// Returns the message that a refusal names by its index.
///
/// None if it names none, or the system prompt. [`ProviderError::names_message`] counts the
/// messages of the wire: the system prompt is one, and every result.
pub fn locate(order: &Order<'_>, error: &ProviderError) -> Option<usize> {
    let messages = encode::messages(order);
    messages.get(error.names_message?)?.0
}
