//! Context overflow in the words of model servers, and the window that they state.

use serde_json::Value;

use crate::answer::{FailureKind, ProviderError};
use crate::catalogue::PLAUSIBLE_WINDOWS;

/// Phrases that mean an overflow with any status: gateways and small servers send 500 and 503.
const PLAIN_PHRASES: &[&str] = &[
    // Codes and types that gateways quote.
    "context_length_exceeded",
    "contextwindowexceedederror",
    "exceed_context_size",
    // OpenAI, vLLM, SGLang, OpenRouter, Mistral, LiteLLM.
    "maximum context length",
    "maximum model length",
    "max_model_len",
    // OpenAI Responses, MiniMax.
    "exceeds the context window",
    "context window exceeds",
    // Anthropic, Ollama, Amazon Bedrock.
    "prompt is too long",
    "prompt too long",
    "input is too long",
    // Gemini.
    "exceeds the maximum number of tokens",
    // llama.cpp, and LM Studio, which forwards its message.
    "available context size",
    "max context size",
    "context size has been exceeded",
    "n_keep",
    "greater than the context length",
    "context length of only",
    // Ollama, SGLang, Together.
    "longer than the context length",
    "exceeds the context length",
    "longer than the model's context length",
    "maximum allowed input length",
    "maximum allowed length",
    // xAI, Moonshot, DashScope, Groq.
    "maximum prompt length",
    "exceeded model token limit",
    "range of input length should be",
    "reduce the length of the messages",
];

/// Phrases that mean an overflow only if the server refuses the request itself.
const VAGUE_PHRASES: &[&str] = &[
    "context length",
    "context size",
    "context window",
    "context limit",
    "exceeds the limit of",
    "token limit exceeded",
    "too many tokens",
];

/// Phrases of temporary refusals: they count tokens per minute, not per request.
const RATE_PHRASES: &[&str] = &["rate limit", "too many requests", "throttl", "per minute"];

/// Phrases before the number of tokens that a model accepts.
const BEFORE_WINDOW: &[&str] = &[
    "context length",
    "context size",
    "context window",
    "n_ctx",
    "max_model_len",
    "maximum model length",
    "maximum prompt length",
    "maximum number of tokens allowed",
    "maximum allowed input length",
    "maximum allowed length",
    "model token limit",
    "exceeds the limit",
    "input length should be",
];

/// Words between such a phrase and its number.
const FILLERS: &[&str] = &["is", "of", "only", "limit", "at", "most", "[1,"];

/// Phrases after the number of tokens that a model accepts.
const AFTER_WINDOW: &[&str] = &[" maximum context length", " context length"];

/// Recognises a refusal that means an overflow, and records the stated window.
///
/// `body` is the whole body; `error` already has kind and message.
pub(crate) fn recognise(body: &Value, error: &mut ProviderError) {
    let text = error.message.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    let is_plain = says(PLAIN_PHRASES);
    let is_overflow = match error.kind {
        FailureKind::TooLong => true,
        FailureKind::BadRequest => is_plain || says(VAGUE_PHRASES),
        FailureKind::Unavailable if error.status.is_none() => is_plain || says(VAGUE_PHRASES),
        FailureKind::Unavailable | FailureKind::Malformed => is_plain,
        _ => false,
    };
    let is_rate = error.kind != FailureKind::TooLong && says(RATE_PHRASES);
    if !is_overflow || is_rate {
        return;
    }
    error.kind = FailureKind::TooLong;
    error.stated_window = field_window(body).or_else(|| stated_window(&text));
}

/// Returns the window in llama.cpp's own field.
fn field_window(body: &Value) -> Option<u64> {
    let body = body.get(0).unwrap_or(body);
    let places = [body.get("error"), Some(body)];
    let mut fields = places.into_iter().flatten();
    let window = fields.find_map(|place| place.get("n_ctx")?.as_u64());
    window.filter(|window| PLAUSIBLE_WINDOWS.contains(window))
}

/// Returns the window stated in lower-case text; none if it has no number.
fn stated_window(text: &str) -> Option<u64> {
    let before = BEFORE_WINDOW.iter().find_map(|phrase| {
        let mut places = text.match_indices(phrase);
        places.find_map(|(at, _)| number_at(&text[at + phrase.len()..]))
    });
    let after = || {
        AFTER_WINDOW.iter().find_map(|phrase| {
            let mut places = text.match_indices(phrase);
            places.find_map(|(at, _)| number_before(&text[..at]))
        })
    };
    // Anthropic: `213462 tokens > 200000 maximum`, `190000 + 32000 > 200000`.
    let compared = || {
        let (_, rest) = text.rsplit_once("> ")?;
        number_at(rest)
    };
    before.or_else(compared).or_else(after)
}

/// Returns the number at the start of a text, after punctuation and fillers.
fn number_at(text: &str) -> Option<u64> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| " \t\n(:=`'\"\\".contains(c));
        let filler = FILLERS.iter().find_map(|filler| rest.strip_prefix(filler));
        match filler {
            Some(after) => rest = after,
            None => break,
        }
    }
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, ',' | '_');
    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    let (digits, rest) = rest.split_at(end);
    let number: u64 = digits.replace([',', '_'], "").parse().ok()?;
    let factor = match rest.as_bytes() {
        [b'k', rest @ ..] if !rest.first().is_some_and(u8::is_ascii_alphanumeric) => 1_000,
        [next, ..] if next.is_ascii_alphanumeric() => return None,
        _ => 1,
    };
    let window = number.checked_mul(factor)?;
    PLAUSIBLE_WINDOWS.contains(&window).then_some(window)
}

/// Returns the number at the end of a text.
fn number_before(text: &str) -> Option<u64> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, ',' | '_');
    let start = text.rfind(|c| !is_part(c)).map_or(0, |at| at + 1);
    number_at(text.get(start..)?)
}

#[cfg(test)]
mod tests;
