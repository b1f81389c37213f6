//! What the two dialects of OpenAI spell and read alike.

use serde_json::{Map, Value};

use ikigai_core::data::Amounts;

use crate::answer::ProviderError;
use crate::dialects::refusal;
use crate::sse::Frame;

/// The longest prompt cache key that is taken.
const LONGEST_CACHE_KEY: usize = 64;

/// A tool's result as text; there is no other place to say that it failed.
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

/// Arguments as the model wrote them, or an empty object if they are none.
pub(super) fn arguments(written: &str) -> &str {
    if serde_json::from_str::<Map<String, Value>>(written).is_ok() {
        written
    } else {
        "{}"
    }
}

/// The cache key as it may be sent, if it may.
pub(super) fn cache_key(key: &str) -> Option<&str> {
    let end = key.floor_char_boundary(LONGEST_CACHE_KEY);
    Some(&key[..end]).filter(|key| !key.is_empty())
}

/// The headers of a request.
pub(super) fn headers(key: Option<&str>) -> Vec<(&'static str, String)> {
    let bearer = key.map(|key| ("authorization", format!("Bearer {key}")));
    bearer.into_iter().collect()
}

/// The object in a frame; none if it says nothing. An event named `error` is one, whatever it holds.
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
        Ok(_) => Err(refusal::malformed(event, "it is no object")),
        Err(error) => Err(refusal::malformed(event, error)),
    }
}

/// A text that may be absent or null, but nothing else.
pub(super) fn text_at<'a>(
    object: &'a Value,
    key: &str,
    event: &str,
) -> Result<Option<&'a str>, ProviderError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(refusal::malformed(
            event,
            format_args!("`{key}` is no text"),
        )),
    }
}

/// A text that is there and not empty.
pub(super) fn word_at(object: &Value, key: &str) -> Option<String> {
    let word = object.get(key)?.as_str()?;
    Some(word.to_owned()).filter(|word| !word.is_empty())
}

/// Counts of tokens as the wire has them: all that was read, and what of it was cached.
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
    /// The same with cached tokens counted once, and reasoning among what was answered.
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

    /// The reasoning that a server counts beside its output: then only all three make the total.
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
