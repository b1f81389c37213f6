//! Refusals in the shape of OpenAI's, which compatible servers vary: what is said, and what kind
//! of failure it means.

use serde_json::Value;

use super::overflow;
use crate::answer::{FailureKind, ProviderError};
use crate::retry::kind_of_status;

/// No more of a provider's words is kept: some send whole pages.
const LONGEST_MESSAGE_BYTES: usize = 2000;

/// Words that say what failed, whatever the status.
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

/// Words that a status says better; they count only inside a stream.
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

/// Reads the body of a refusal into an error that has its status and kind already.
pub(crate) fn explain(body: &Value, error: &mut ProviderError) {
    let Some(words) = Words::of(body) else {
        return;
    };
    error.kind = words.kind(error.status.is_some()).unwrap_or(error.kind);
    error.names_message = words.named_index().or(error.names_message);
    if let Some(message) = words.message {
        error.message = message;
    }
    overflow::recognise(body, error);
}

/// Makes an error of what a provider sends inside a stream. The stream itself began well, so what
/// is not explained is a failure of the provider.
pub(crate) fn in_stream(body: &Value) -> ProviderError {
    let mut error = ProviderError::new(
        FailureKind::Unavailable,
        "the provider reported an error without saying which",
    );
    if let Some(status) = Words::of(body).and_then(|words| words.status) {
        error.kind = kind_of_status(status);
    }
    explain(body, &mut error);
    error
}

/// Makes an error of an event that is not what the dialect promises.
pub(crate) fn malformed(event: &str, why: impl std::fmt::Display) -> ProviderError {
    ProviderError::new(
        FailureKind::Malformed,
        format!("the provider sent a malformed `{event}`: {why}"),
    )
}

/// Makes the error for a stream that ended before its end.
pub(crate) fn cut_off() -> ProviderError {
    ProviderError::new(FailureKind::CutOff, "the answer ended before it was whole")
}

/// What a refusal says.
#[derive(Default)]
struct Words {
    message: Option<String>,
    /// Code, then type, as far as they are words.
    named: Vec<String>,
    /// A code that is a number.
    status: Option<u16>,
    parameter: Option<String>,
}

impl Words {
    /// The words, if the body has any.
    fn of(body: &Value) -> Option<Self> {
        // Some gateways wrap the object in a list.
        let body = body.get(0).unwrap_or(body);
        let inner = body.get("error").filter(|inner| !inner.is_null());
        let inner = inner.unwrap_or(body);
        if let Some(text) = inner.as_str() {
            return Some(Self {
                message: shortened(text),
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
            message: shortened(&said.join(": ")),
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

    /// The index of the message, counted on the wire, that is refused.
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

/// The words of a provider, as far as they are kept; none if there are none.
pub(super) fn shortened(text: &str) -> Option<String> {
    let text = text.trim();
    let end = text.floor_char_boundary(LONGEST_MESSAGE_BYTES);
    Some(text[..end].to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
