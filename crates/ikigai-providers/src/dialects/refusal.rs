//! Refusals in the form of OpenAI and compatible servers.

use serde_json::Value;

use super::overflow;
use crate::answer::{FailureKind, ProviderError};
use crate::retry::kind_of_status;

/// Largest kept part of a provider's message: some send whole pages.
const LONGEST_MESSAGE_BYTES: usize = 2000;

/// Codes and types that determine the failure with any status.
const PLAIN_WORDS: &[(&str, FailureKind)] = &[
    ("authentication_error", FailureKind::Unauthorized),
    ("billing_hard_limit_reached", FailureKind::Quota),
    ("context_length_exceeded", FailureKind::TooLong),
    ("engine_overloaded_error", FailureKind::Unavailable),
    ("exceed_context_size_error", FailureKind::TooLong),
    ("exceeded_current_quota_error", FailureKind::Quota),
    ("insufficient_quota", FailureKind::Quota),
    ("invalid_api_key", FailureKind::Unauthorized),
    ("invalid_authentication_error", FailureKind::Unauthorized),
    ("model_not_found", FailureKind::NotFound),
    ("overloaded_error", FailureKind::Unavailable),
    ("permission_error", FailureKind::Forbidden),
    ("rate_limit_error", FailureKind::RateLimited),
    ("rate_limit_exceeded", FailureKind::RateLimited),
    ("rate_limit_reached_error", FailureKind::RateLimited),
    ("request_too_large", FailureKind::TooLong),
    ("service_unavailable", FailureKind::Unavailable),
    ("slow_down", FailureKind::Unavailable),
    ("unavailable_error", FailureKind::Unavailable),
];

/// Codes that are less exact than a status; they count only inside a stream.
const VAGUE_WORDS: &[(&str, FailureKind)] = &[
    ("api_error", FailureKind::Unavailable),
    ("internal_error", FailureKind::Unavailable),
    ("internal_server_error", FailureKind::Unavailable),
    ("invalid_prompt", FailureKind::BadRequest),
    ("invalid_request_error", FailureKind::BadRequest),
    ("not_found_error", FailureKind::NotFound),
    ("server_error", FailureKind::Unavailable),
    ("timeout", FailureKind::Timeout),
];

/// Reads the body of a refusal into an error with status and kind.
pub(crate) fn explain(body: &Value, error: &mut ProviderError) {
    let Some(words) = RefusalText::of(body) else {
        return;
    };
    error.kind = words.kind(error.status.is_some()).unwrap_or(error.kind);
    error.names_message = words.named_index().or(error.names_message);
    if let Some(message) = words.message {
        error.message = message;
    }
    overflow::recognise(body, error);
}

/// Makes an error of a failure inside a stream.
///
/// The stream started well, so an unexplained failure is the provider's.
pub(crate) fn in_stream(body: &Value) -> ProviderError {
    let mut error = ProviderError::new(
        FailureKind::Unavailable,
        "the provider reported an error without a message",
    );
    if let Some(status) = RefusalText::of(body).and_then(|words| words.status) {
        error.kind = kind_of_status(status);
    }
    explain(body, &mut error);
    error
}

/// Makes the error for an event that violates the dialect.
pub(crate) fn malformed_error(event: &str, why: impl std::fmt::Display) -> ProviderError {
    ProviderError::new(
        FailureKind::Malformed,
        format!("the provider sent a malformed `{event}`: {why}"),
    )
}

/// Makes the error for a stream that ended early.
pub(crate) fn cut_off() -> ProviderError {
    ProviderError::new(FailureKind::CutOff, "the answer ended before it was whole")
}

/// Message and codes of a refusal.
#[derive(Default)]
struct RefusalText {
    message: Option<String>,
    /// Code, then type, if they are words.
    named: Vec<String>,
    /// Code, if it is a number.
    status: Option<u16>,
    parameter: Option<String>,
}

impl RefusalText {
    /// Returns the words of a body, if it has any.
    fn of(body: &Value) -> Option<Self> {
        // Some gateways wrap the object in a list.
        let body = body.get(0).unwrap_or(body);
        let inner = body.get("error").filter(|inner| !inner.is_null());
        let inner = inner.unwrap_or(body);
        if let Some(text) = inner.as_str() {
            return Some(Self {
                message: shorten(text),
                ..Self::default()
            });
        }
        let object = inner.as_object()?;
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let message = ["message", "detail", "msg"].into_iter().find_map(text);
        let raw = object
            .get("metadata")
            .and_then(|metadata| metadata.get("raw")?.as_str());
        let said: Vec<_> = message.into_iter().chain(raw).collect();
        let code = object.get("code");
        let numbered = code.and_then(|code| match code {
            Value::Number(number) => number.as_u64(),
            Value::String(digits) => digits.parse().ok(),
            _ => None,
        });
        Some(Self {
            message: shorten(&said.join(": ")),
            named: ["code", "type"]
                .into_iter()
                .filter_map(text)
                .map(str::to_owned)
                .collect(),
            status: numbered
                .and_then(|number| u16::try_from(number).ok())
                .filter(|status| (400..600).contains(status)),
            parameter: text("param").map(str::to_owned),
        })
    }

    fn kind(&self, has_status: bool) -> Option<FailureKind> {
        let find = |table: &[(&str, FailureKind)]| {
            let mut named = self.named.iter();
            named.find_map(|word| {
                let row = table.iter().find(|(known, _)| known == word);
                row.map(|(_, kind)| *kind)
            })
        };
        find(PLAIN_WORDS).or_else(|| find(VAGUE_WORDS).filter(|_| !has_status))
    }

    /// Returns the index of the refused message, counted on the wire.
    fn named_index(&self) -> Option<usize> {
        let texts = self.parameter.iter().chain(&self.message);
        texts.map(String::as_str).find_map(index_in)
    }
}

fn index_in(text: &str) -> Option<usize> {
    ["input[", "messages[", "message at index "]
        .into_iter()
        .find_map(|before| {
            let mut places = text.match_indices(before);
            places.find_map(|(at, _)| {
                let rest = &text[at + before.len()..];
                let digits = rest.find(|c: char| !c.is_ascii_digit());
                rest[..digits.unwrap_or(rest.len())].parse().ok()
            })
        })
}

/// Shortens a provider's message; none if it is empty.
pub(super) fn shorten(text: &str) -> Option<String> {
    let text = text.trim();
    let end = text.floor_char_boundary(LONGEST_MESSAGE_BYTES);
    Some(text[..end].to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
