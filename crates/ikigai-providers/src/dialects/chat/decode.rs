//! Decoder of Chat Completions chunks.

use serde_json::{Value, json};

use ikigai_core::data::Amounts;

use super::reasoning::{ContentPiece, DETAILS, THINK_TAG, ThinkTag, details_in, field_in, gather};
use crate::answer::{AnswerBlock, Delta, FailureKind, ProviderError, Response, StopReason};
use crate::catalogue::nano_of;
use crate::dialect::{BLOCK_BYTES, Decoder};
use crate::dialects::openai::{Counted, object_in, text_at, word_at};
use crate::dialects::refusal;
use crate::sse::Frame;

/// Name of a chunk in errors.
const CHUNK: &str = "chat.completion.chunk";

#[derive(Debug, Default)]
pub(super) struct ChatDecoder {
    pieces: Vec<ChatPiece>,
    details: Vec<Value>,
    tag: ThinkTag,
    /// True after the first chunk of the response.
    begun: bool,
    refused: bool,
    stop: Option<StopReason>,
    usage: Option<Amounts>,
    /// True after `[DONE]`.
    done: bool,
    content_bytes: usize,
}

#[derive(Debug)]
enum ChatPiece {
    Text(String),
    Thinking { text: String, field: &'static str },
    Call(ChatCall),
}

#[derive(Debug, Default)]
struct ChatCall {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: String,
}

impl Decoder for ChatDecoder {
    fn push(&mut self, frame: &Frame) -> Result<Vec<Delta>, ProviderError> {
        let mut deltas = Vec::new();
        if self.done {
            return Ok(deltas);
        }
        if frame.data.trim() == "[DONE]" {
            self.done = true;
            self.let_go(&mut deltas);
            return Ok(deltas);
        }
        let Some(body) = object_in(frame)? else {
            return Ok(deltas);
        };
        if is_error(&body) {
            return Err(refusal::in_stream(&body));
        }
        let usage = body.get("usage").and_then(usage_of);
        self.usage = usage.or(self.usage.take());
        let choices = match body.get("choices") {
            None | Some(Value::Null) => return Ok(deltas),
            Some(Value::Array(choices)) => choices,
            Some(_) => return Err(refusal::malformed_error(CHUNK, "`choices` is not a list")),
        };
        let is_first = |choice: &&Value| choice.get("index").is_none_or(|index| index == 0);
        if let Some(choice) = choices.iter().find(is_first) {
            self.take_in(choice, &mut deltas)?;
        }
        Ok(deltas)
    }

    fn finish(mut self: Box<Self>) -> Result<Response, ProviderError> {
        let ended = self.stop.is_some() || (self.done && self.begun);
        if !ended {
            return Err(refusal::cut_off());
        }
        self.let_go(&mut Vec::new());
        let stop = self.stop_reason();
        let usage = self.usage.take().unwrap_or_default();
        Ok(Response {
            blocks: self.blocks(),
            stop,
            usage,
        })
    }

    fn is_done(&self) -> bool {
        self.done || (self.stop.is_some() && self.usage.is_some())
    }

    fn content_bytes(&self) -> usize {
        self.content_bytes
    }
}

impl ChatDecoder {
    fn take_in(&mut self, choice: &Value, deltas: &mut Vec<Delta>) -> Result<(), ProviderError> {
        self.begun = true;
        // A server that does not stream sends the whole message.
        let delta = choice.get("delta").or_else(|| choice.get("message"));
        match delta {
            None | Some(Value::Null) => {}
            Some(delta @ Value::Object(_)) => self.take_in_delta(delta, deltas)?,
            Some(_) => return Err(refusal::malformed_error(CHUNK, "`delta` is not an object")),
        }
        let Some(reason) = text_at(choice, "finish_reason", CHUNK)?.filter(|word| !word.is_empty())
        else {
            return Ok(());
        };
        match reason {
            "error" => return Err(refusal::in_stream(choice)),
            "insufficient_system_resource" => {
                let said = "the provider ran out of resources in the middle of the answer";
                return Err(ProviderError::new(FailureKind::Unavailable, said));
            }
            reason => self.stop = Some(stop_of(reason)),
        }
        self.let_go(deltas);
        Ok(())
    }

    fn take_in_delta(
        &mut self,
        delta: &Value,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), ProviderError> {
        let thought = field_in(delta);
        let has_details = details_in(delta).next().is_some();
        for detail in details_in(delta) {
            self.content_bytes += gather(&mut self.details, detail);
        }
        if thought.is_some() || has_details {
            // Reasoning has a separate field here, so a tag in the text is text.
            self.let_go(deltas);
            let (field, text) = thought.unwrap_or((DETAILS, String::new()));
            self.content_bytes += text.len();
            self.think(field, text, deltas);
        }
        if let Some(Value::Array(parts)) = delta.get("content") {
            self.take_in_parts(parts, deltas);
        } else {
            let text = text_at(delta, "content", CHUNK)?.unwrap_or_default();
            self.content_bytes += text.len();
            for said in self.tag.push(text) {
                self.say(said, deltas);
            }
        }
        if let Some(text) = text_at(delta, "refusal", CHUNK)?.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.content_bytes += text.len();
            self.say(ContentPiece::Text(text.to_owned()), deltas);
        }
        match delta.get("tool_calls") {
            None | Some(Value::Null) => Ok(()),
            Some(Value::Array(calls)) => calls
                .iter()
                .try_for_each(|call| self.take_in_call(call, deltas)),
            Some(_) => Err(refusal::malformed_error(
                CHUNK,
                "`tool_calls` is not a list",
            )),
        }
    }

    /// Adds content in parts, some of which may be reasoning.
    fn take_in_parts(&mut self, parts: &[Value], deltas: &mut Vec<Delta>) {
        for part in parts {
            if let Some(text) = word_at(part, "text") {
                self.content_bytes += text.len();
                self.let_go(deltas);
                self.say(ContentPiece::Text(text), deltas);
            }
            let thoughts = part.get("thinking").and_then(Value::as_array);
            for thought in thoughts.into_iter().flatten() {
                let text = word_at(thought, "text").unwrap_or_default();
                self.content_bytes += text.len();
                self.let_go(deltas);
                self.think("content", text, deltas);
            }
        }
    }

    fn take_in_call(
        &mut self,
        piece: &Value,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), ProviderError> {
        let function = piece.get("function").unwrap_or(&Value::Null);
        let arguments = match function.get("arguments") {
            // Some servers send an object instead of a text.
            Some(object @ Value::Object(_)) => object.to_string(),
            _ => text_at(function, "arguments", CHUNK)?
                .unwrap_or_default()
                .to_owned(),
        };
        self.content_bytes += arguments.len();
        let piece = ChatCall {
            index: piece.get("index").and_then(Value::as_u64),
            id: word_at(piece, "id"),
            name: word_at(function, "name").unwrap_or_default(),
            arguments,
        };
        self.let_go(deltas);
        let calls = self.pieces.iter_mut().rev();
        let mut calls = calls.filter_map(|known| match known {
            ChatPiece::Call(call) => Some(call),
            _ => None,
        });
        if let Some(call) = calls.find(|call| call.goes_on_with(&piece)) {
            deltas.extend(call.add(piece));
        } else {
            let name = Some(piece.name.clone()).filter(|name| !name.is_empty());
            deltas.extend(name.map(Delta::Call));
            self.content_bytes += BLOCK_BYTES + piece.name.len();
            self.pieces.push(ChatPiece::Call(piece));
        }
        Ok(())
    }

    /// Releases text that was held back as a possible tag.
    fn let_go(&mut self, deltas: &mut Vec<Delta>) {
        if let Some(said) = self.tag.flush() {
            self.say(said, deltas);
        }
    }

    fn say(&mut self, said: ContentPiece, deltas: &mut Vec<Delta>) {
        match said {
            ContentPiece::Thinking(text) => self.think(THINK_TAG, text, deltas),
            ContentPiece::Text(text) => {
                if let Some(ChatPiece::Text(before)) = self.pieces.last_mut() {
                    before.push_str(&text);
                } else {
                    self.content_bytes += BLOCK_BYTES;
                    self.pieces.push(ChatPiece::Text(text.clone()));
                }
                deltas.push(Delta::Text(text));
            }
        }
    }

    fn think(&mut self, field: &'static str, more: String, deltas: &mut Vec<Delta>) {
        if let Some(ChatPiece::Thinking { text, .. }) = self.pieces.last_mut() {
            text.push_str(&more);
        } else {
            self.content_bytes += BLOCK_BYTES;
            let text = more.clone();
            self.pieces.push(ChatPiece::Thinking { text, field });
        }
        if !more.is_empty() {
            deltas.push(Delta::Thinking(more));
        }
    }

    /// Returns the stop reason; some servers send `stop` with calls.
    fn stop_reason(&mut self) -> StopReason {
        let calls = self
            .pieces
            .iter()
            .any(|piece| matches!(piece, ChatPiece::Call(_)));
        match self.stop.take().unwrap_or_default() {
            StopReason::End if self.refused => StopReason::Refused,
            StopReason::End | StopReason::Calls if calls => StopReason::Calls,
            StopReason::Calls => StopReason::End,
            other => other,
        }
    }

    fn blocks(self) -> Vec<AnswerBlock> {
        // The details are one list; they go back with the first thinking of the response.
        let mut details = Some(self.details).filter(|details| !details.is_empty());
        let blocks = self.pieces.into_iter().filter_map(|piece| match piece {
            ChatPiece::Text(text) if text.trim().is_empty() => None,
            ChatPiece::Text(text) => Some(AnswerBlock::Text { text, item: None }),
            ChatPiece::Thinking { text, field } => {
                let details = details.take();
                if text.is_empty() && details.is_none() {
                    return None;
                }
                let payload = details.map_or_else(
                    || json!({"field": field}),
                    |details| json!({DETAILS: details}),
                );
                let payload = Some(payload.to_string());
                Some(AnswerBlock::Thinking { text, payload })
            }
            ChatPiece::Call(call) => Some(AnswerBlock::Call {
                id: call.id,
                name: call.name,
                arguments: call.arguments,
                item: None,
            }),
        });
        blocks.collect()
    }
}

impl ChatCall {
    /// Returns true if a piece continues this call.
    ///
    /// Some servers leave the index out, or send whole calls all with one index.
    fn goes_on_with(&self, piece: &Self) -> bool {
        let other_index = piece.index.is_some() && piece.index != self.index;
        let same_id = piece.id.is_some() && piece.id == self.id;
        let other_id = piece.id.is_some() && !same_id;
        let is_whole = || serde_json::from_str::<Value>(&self.arguments).is_ok();
        let begins = !piece.name.is_empty() && !self.name.is_empty();
        let another = begins
            && (other_id
                || piece.name != self.name
                || (piece.index.is_none() && !same_id)
                || (!piece.arguments.is_empty() && is_whole()));
        !other_index && !another
    }

    fn add(&mut self, piece: Self) -> Option<Delta> {
        self.arguments.push_str(&piece.arguments);
        self.id = self.id.take().or(piece.id);
        if !self.name.is_empty() || piece.name.is_empty() {
            return None;
        }
        self.name.clone_from(&piece.name);
        Some(Delta::Call(piece.name))
    }
}

fn is_error(body: &Value) -> bool {
    let is = |key: &str| body.get(key).is_some_and(|word| word == "error");
    let has_error = body.get("error").is_some_and(|error| !error.is_null());
    has_error || is("object") || is("type")
}

fn stop_of(reason: &str) -> StopReason {
    match reason {
        "stop" | "end_turn" | "eos" => StopReason::End,
        "tool_calls" | "function_call" => StopReason::Calls,
        "length" | "max_tokens" => StopReason::Length,
        "content_filter" | "refusal" => StopReason::Refused,
        other => StopReason::Other(other.to_owned()),
    }
}

fn usage_of(usage: &Value) -> Option<Amounts> {
    let count = |place: &str| usage.pointer(place).and_then(Value::as_u64);
    let cached = count("/prompt_tokens_details/cached_tokens");
    let counted = Counted {
        input: count("/prompt_tokens"),
        cache_read: cached.or_else(|| count("/prompt_cache_hit_tokens")),
        cache_write: count("/prompt_tokens_details/cache_write_tokens"),
        output: count("/completion_tokens"),
        reasoning: count("/completion_tokens_details/reasoning_tokens"),
        total: count("/total_tokens"),
    };
    let is_told = counted.input.is_some() || counted.output.is_some();
    let cost = usage.get("cost").and_then(Value::as_f64);
    is_told.then(|| Amounts {
        // The charge in dollars: OpenRouter reports it, and the model table has no price.
        cost_nano_usd: cost.and_then(nano_of),
        ..counted.amounts()
    })
}
