//! Decoder of Gemini.

use ikigai_core::data::Amounts;
use serde_json::{Map, Value, json};

use super::errors;
use crate::answer::{AnswerBlock, Delta, ProviderError, Response, StopReason};
use crate::dialect::{BLOCK_BYTES, Decoder};
use crate::dialects::refusal::{cut_off, malformed_error};
use crate::sse::Frame;

/// Decoder of one response.
#[derive(Debug, Default)]
pub(super) struct GeminiDecoder {
    blocks: Vec<AnswerBlock>,
    usage: GeminiUsage,
    finish: Option<String>,
    content_bytes: usize,
}

/// Token counts; the last of each is valid.
#[derive(Debug, Default)]
struct GeminiUsage {
    prompt: Option<u64>,
    tool_prompt: Option<u64>,
    cached: Option<u64>,
    candidates: Option<u64>,
    thoughts: Option<u64>,
}

impl Decoder for GeminiDecoder {
    fn push(&mut self, frame: &Frame) -> Result<Vec<Delta>, ProviderError> {
        if matches!(frame.data.trim(), "" | "[DONE]") {
            return Ok(Vec::new());
        }
        let chunk: Value = serde_json::from_str(&frame.data)
            .map_err(|error| malformed_error("GenerateContentResponse", error))?;
        let mut deltas = Vec::new();
        match &chunk {
            Value::Array(chunks) => {
                for chunk in chunks {
                    self.take_in(chunk, &mut deltas)?;
                }
            }
            chunk => self.take_in(chunk, &mut deltas)?,
        }
        Ok(deltas)
    }

    fn finish(self: Box<Self>) -> Result<Response, ProviderError> {
        let Some(reason) = &self.finish else {
            return Err(cut_off());
        };
        let calls = |block: &AnswerBlock| matches!(block, AnswerBlock::Call { .. });
        let stop = match stop_reason(reason) {
            // There is no separate reason for calls.
            StopReason::End if self.blocks.iter().any(calls) => StopReason::Calls,
            stop => stop,
        };
        Ok(Response {
            stop,
            usage: self.usage.amounts(),
            blocks: self.blocks,
        })
    }

    /// Returns false: only the end of the body is the end.
    ///
    /// Some servers give every chunk a finish reason, and a signature or the counts may follow it.
    fn is_done(&self) -> bool {
        false
    }

    fn content_bytes(&self) -> usize {
        self.content_bytes
    }
}

impl GeminiDecoder {
    fn take_in(&mut self, chunk: &Value, deltas: &mut Vec<Delta>) -> Result<(), ProviderError> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(errors::inside_stream(chunk));
        }
        if let Some(feedback) = chunk.get("promptFeedback")
            && let Some(reason) = feedback.get("blockReason").and_then(Value::as_str)
        {
            let words = feedback.get("blockReasonMessage").and_then(Value::as_str);
            return Err(errors::blocked_error(reason, words));
        }
        if let Some(candidate) = chunk.pointer("/candidates/0") {
            let parts = candidate
                .pointer("/content/parts")
                .and_then(Value::as_array);
            for part in parts.into_iter().flatten() {
                deltas.extend(self.add_part(part)?);
            }
            if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
                self.finish = Some(reason.to_owned());
            }
        }
        if let Some(usage) = chunk.get("usageMetadata").filter(|usage| usage.is_object()) {
            self.usage.take_in(usage);
        }
        Ok(())
    }

    fn add_part(&mut self, part: &Value) -> Result<Option<Delta>, ProviderError> {
        let signature = part.get("thoughtSignature").and_then(Value::as_str);
        let signature = signature.filter(|signature| !signature.is_empty());
        self.content_bytes += signature.map_or(0, |signature| BLOCK_BYTES + signature.len());
        if let Some(call) = part.get("functionCall").filter(|call| !call.is_null()) {
            return self.add_call(call, signature).map(Some);
        }
        let text = part.get("text").and_then(Value::as_str);
        if text.is_none() && signature.is_none() {
            return Ok(None);
        }
        let text = text.unwrap_or_default();
        self.content_bytes += text.len();
        if part.get("thought").and_then(Value::as_bool) == Some(true) {
            let delta = self.think(text);
            // Thoughts are not sent back; signatures must be.
            self.blocks
                .extend(signature.map(|signature| signed_nothing("", signature)));
            return Ok(delta);
        }
        let Some(signature) = signature else {
            return Ok(self.say(text));
        };
        if text.trim().is_empty() {
            self.blocks.push(signed_nothing(text, signature));
        } else {
            self.blocks.push(AnswerBlock::Text {
                text: text.to_owned(),
                item: Some(json!({"thoughtSignature": signature}).to_string()),
            });
        }
        Ok((!text.is_empty()).then(|| Delta::Text(text.to_owned())))
    }

    fn add_call(&mut self, call: &Value, signature: Option<&str>) -> Result<Delta, ProviderError> {
        let text = |field: &str| call.get(field).and_then(Value::as_str);
        let name = text("name").ok_or_else(|| malformed_error("functionCall", "it has no name"))?;
        let id = text("id").filter(|id| !id.is_empty());
        let arguments = match call.get("args") {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(arguments) => arguments.to_string(),
        };
        self.content_bytes += BLOCK_BYTES + name.len() + arguments.len();
        let mut item = Map::new();
        item.extend(id.map(|id| ("id".to_owned(), json!(id))));
        item.extend(signature.map(|value| ("thoughtSignature".to_owned(), json!(value))));
        let item = Some(item).filter(|item| !item.is_empty());
        self.blocks.push(AnswerBlock::Call {
            id: id.map(str::to_owned),
            name: name.to_owned(),
            arguments,
            item: item.map(|item| Value::Object(item).to_string()),
        });
        Ok(Delta::Call(name.to_owned()))
    }

    fn think(&mut self, more: &str) -> Option<Delta> {
        match self.blocks.last_mut() {
            _ if more.is_empty() => return None,
            Some(AnswerBlock::Thinking {
                text,
                payload: None,
            }) => text.push_str(more),
            _ => self.blocks.push(AnswerBlock::Thinking {
                text: more.to_owned(),
                payload: None,
            }),
        }
        Some(Delta::Thinking(more.to_owned()))
    }

    /// Appends to an unsigned text; a signed one stays unchanged.
    fn say(&mut self, more: &str) -> Option<Delta> {
        match self.blocks.last_mut() {
            _ if more.is_empty() => return None,
            Some(AnswerBlock::Text { text, item: None }) => text.push_str(more),
            _ => self.blocks.push(AnswerBlock::Text {
                text: more.to_owned(),
                item: None,
            }),
        }
        Some(Delta::Text(more.to_owned()))
    }
}

/// Makes a block for a signature on an empty part.
///
/// A blank text would not be sent back; thinking with a payload is, at its position.
fn signed_nothing(text: &str, signature: &str) -> AnswerBlock {
    let payload = json!({"text": text, "thoughtSignature": signature});
    AnswerBlock::Thinking {
        text: String::new(),
        payload: Some(payload.to_string()),
    }
}

impl GeminiUsage {
    fn take_in(&mut self, usage: &Value) {
        let set = |count: &mut Option<u64>, field: &str| {
            *count = usage.get(field).and_then(Value::as_u64).or(*count);
        };
        set(&mut self.prompt, "promptTokenCount");
        set(&mut self.tool_prompt, "toolUsePromptTokenCount");
        set(&mut self.cached, "cachedContentTokenCount");
        set(&mut self.candidates, "candidatesTokenCount");
        set(&mut self.thoughts, "thoughtsTokenCount");
    }

    fn amounts(&self) -> Amounts {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
        };
        let cached = self.cached.unwrap_or(0);
        let input = sum(self.prompt, self.tool_prompt);
        Amounts {
            input: input.map(|input| input.saturating_sub(cached)),
            cache_read: self.cached,
            output: sum(self.candidates, self.thoughts),
            reasoning: self.thoughts,
            ..Amounts::default()
        }
    }
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "STOP" => StopReason::End,
        // A request to Gemini 4 ends at its limit; continuing needs a token that is not stored.
        "MAX_TOKENS" | "CONTINUATION" => StopReason::Length,
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "IMAGE_SAFETY" => StopReason::Refused,
        other => StopReason::Other(other.to_owned()),
    }
}
