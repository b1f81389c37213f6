//! Common encoding and decoding of the two OpenAI dialects.

use serde_json::{Map, Value};

use ikigai_core::data::Amounts;

use crate::answer::ProviderError;
use crate::dialects::refusal;
use crate::sse::Frame;

/// Largest accepted prompt cache key.
const LONGEST_CACHE_KEY: usize = 64;

/// Returns a tool's result as text, which also marks an error: there is no field for it.
pub(super) fn result_text(content: &str, is_error: bool) -> String {
    let said = if content.trim().is_empty() {
        "(no output)"
    } else {
        content
    };
    let says_so = said
        .get(..6)
        .is_some_and(|start| start.eq_ignore_ascii_case("error:"));
    if is_error && !says_so {
        format!("error: {said}")
    } else {
        said.to_owned()
    }
}

/// Returns the model's arguments, or an empty object if they are not an object.
pub(super) fn arguments(written: &str) -> &str {
    if serde_json::from_str::<Map<String, Value>>(written).is_ok() {
        written
    } else {
        "{}"
    }
}

/// Returns the cache key, if it can be sent.
pub(super) fn cache_key(key: &str) -> Option<&str> {
    let end = key.floor_char_boundary(LONGEST_CACHE_KEY);
    Some(&key[..end]).filter(|key| !key.is_empty())
}

/// Returns the headers of a request.
pub(super) fn headers(key: Option<&str>) -> Vec<(&'static str, String)> {
    let bearer = key.map(|key| ("authorization", format!("Bearer {key}")));
    bearer.into_iter().collect()
}

/// Returns the object in a frame; none if it is empty.
///
/// An event named `error` is an error, whatever its content.
pub(super) fn object_in(frame: &Frame) -> Result<Option<Value>, ProviderError> {
    let data = frame.data.trim();
    if data.is_empty() || data == "[DONE]" {
        return Ok(None);
    }
    if frame.event == "error" {
        let body = serde_json::from_str(data).unwrap_or_else(|_| Value::from(data));
        return Err(refusal::in_stream(&body));
    }
    let event = if frame.event.is_empty() {
        "data"
    } else {
        &frame.event
    };
    match serde_json::from_str::<Value>(data) {
        Ok(body) if body.is_object() => Ok(Some(body)),
        Ok(_) => Err(refusal::malformed_error(event, "it is not an object")),
        Err(error) => Err(refusal::malformed_error(event, error)),
    }
}

/// Returns a text that may be absent or null, but of no other type.
pub(super) fn text_at<'a>(
    object: &'a Value,
    key: &str,
    event: &str,
) -> Result<Option<&'a str>, ProviderError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(refusal::malformed_error(
            event,
            format_args!("`{key}` is not a string"),
        )),
    }
}

/// Returns a text that is present and not empty.
pub(super) fn word_at(object: &Value, key: &str) -> Option<String> {
    let word = object.get(key)?.as_str()?;
    Some(word.to_owned()).filter(|word| !word.is_empty())
}

/// Token counts of the wire: all input, and its cached part.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) input: Option<u64>,
    pub(super) cache_read: Option<u64>,
    pub(super) cache_write: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) reasoning: Option<u64>,
    pub(super) total: Option<u64>,
}

impl Counted {
    /// Returns amounts with cached tokens counted once, and reasoning as part of the output.
    pub(super) fn amounts(&self) -> Amounts {
        let cached = self.cache_read.unwrap_or(0);
        let written = self.cache_write.unwrap_or(0);
        let rest = |input: u64| input.saturating_sub(cached).saturating_sub(written);
        Amounts {
            input: self.input.map(rest),
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            output: self
                .output
                .map(|output| output.saturating_add(self.unsaid())),
            reasoning: self.reasoning,
            cost_nano_usd: None,
        }
    }

    /// Returns reasoning tokens that the server counts separately from its output.
    ///
    /// It does so if only all three counts make the total.
    fn unsaid(&self) -> u64 {
        let parts = [self.input, self.output, self.reasoning];
        let sum: u64 = parts.iter().flatten().fold(0, |a, b| a.saturating_add(*b));
        let reasoning = self.reasoning.unwrap_or(0);
        if self.total == Some(sum) {
            reasoning
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests;
