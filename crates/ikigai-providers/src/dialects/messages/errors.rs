//! Failures of Anthropic, before a response and inside one.

use serde_json::Value;

use crate::answer::{FailureKind, ProviderError};
use crate::dialects::overflow;
use crate::dialects::refusal::shorten;

/// Returns the failure of an error event inside a stream.
pub(super) fn inside_stream(event: &Value) -> ProviderError {
    let words = "the provider reported an error without a message";
    let mut error = ProviderError::new(FailureKind::Unavailable, words);
    explain(event, &mut error);
    error
}

/// Reads message and kind from a body like `{"error":{"type":…,"message":…}}`.
pub(super) fn explain(body: &Value, error: &mut ProviderError) {
    let Some(error_object) = body.get("error") else {
        return overflow::recognise(body, error);
    };
    let text = |field: &str| error_object.get(field).and_then(Value::as_str);
    let kind = text("type").unwrap_or_default();
    let message = text("message").or_else(|| error_object.as_str());
    if let Some(words) = message.and_then(shorten) {
        error.message = words;
    } else if !kind.is_empty() {
        kind.clone_into(&mut error.message);
    }
    if let Some(kind) = kind_of(kind, &error.message) {
        error.kind = kind;
    }
    overflow::recognise(body, error);
}

fn kind_of(kind: &str, words: &str) -> Option<FailureKind> {
    let says = |phrase: &str| words.contains(phrase);
    let kind = match kind {
        "invalid_request_error" if says("credit balance is too low") => FailureKind::Quota,
        "invalid_request_error" => FailureKind::BadRequest,
        "authentication_error" => FailureKind::Unauthorized,
        "billing_error" => FailureKind::Quota,
        "permission_error" => FailureKind::Forbidden,
        "not_found_error" => FailureKind::NotFound,
        // The latter is llama.cpp's.
        "request_too_large" | "exceed_context_size_error" => FailureKind::TooLong,
        "rate_limit_error" => FailureKind::RateLimited,
        // The last two are llama.cpp's.
        "api_error" | "overloaded_error" | "timeout_error" | "server_error"
        | "unavailable_error" => FailureKind::Unavailable,
        _ => return None,
    };
    Some(kind)
}

/// Returns message and block that words like `messages.3.content.1: …` name.
pub(super) fn place_named(words: &str) -> Option<(usize, Option<usize>)> {
    let (_, rest) = words.split_once("messages.")?;
    let (message, rest) = leading_number(rest)?;
    let block = rest.strip_prefix(".content.").and_then(leading_number);
    Some((message, block.map(|(block, _)| block)))
}

fn leading_number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    Some((digits.parse().ok()?, rest))
}
