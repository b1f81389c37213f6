//! Decoder of Anthropic Messages.

use std::collections::BTreeMap;

use ikigai_core::data::Amounts;
use serde_json::{Map, Value, json};

use super::errors;
use crate::answer::{AnswerBlock, Delta, ProviderError, Response, StopReason};
use crate::dialect::{BLOCK_BYTES, Decoder};
use crate::dialects::refusal::{cut_off, malformed_error};
use crate::sse::Frame;

/// Decoder of one response.
#[derive(Debug, Default)]
pub(super) struct MessagesDecoder {
    /// Blocks by their index.
    blocks: BTreeMap<u64, OpenBlock>,
    usage: Amounts,
    stop: Option<String>,
    done: bool,
    content_bytes: usize,
}

/// An incomplete block.
#[derive(Debug)]
enum OpenBlock {
    Text(String),
    Thinking {
        text: String,
        signature: Option<String>,
    },
    Redacted(String),
    Call {
        id: Option<String>,
        name: String,
        /// Input from the start event; used if no JSON follows.
        input: Option<Value>,
        json: String,
    },
    /// A block of an unknown type.
    Unknown,
}

const EVENTS: [&str; 7] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
];

impl Decoder for MessagesDecoder {
    fn push(&mut self, frame: &Frame) -> Result<Vec<Delta>, ProviderError> {
        if self.done || matches!(frame.data.trim(), "" | "[DONE]") {
            return Ok(Vec::new());
        }
        let event: Value = match serde_json::from_str(&frame.data) {
            Ok(event) => event,
            // An unknown event.
            Err(_) if !frame.event.is_empty() && !EVENTS.contains(&frame.event.as_str()) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(malformed_error(name_of(frame), error)),
        };
        let kind = event.get("type").and_then(Value::as_str);
        let delta = match kind.unwrap_or(&frame.event) {
            "message_start" => {
                self.count(event.pointer("/message/usage"));
                None
            }
            "content_block_start" => self.start(&event)?,
            "content_block_delta" => self.extend(&event)?,
            "message_delta" => {
                self.count(event.get("usage"));
                let stop = event.pointer("/delta/stop_reason").and_then(Value::as_str);
                self.stop = stop.map(str::to_owned).or(self.stop.take());
                None
            }
            "message_stop" => {
                self.done = true;
                None
            }
            // llama.cpp sends an error without a type.
            _ if event.get("error").is_some_and(|error| !error.is_null()) => {
                return Err(errors::inside_stream(&event));
            }
            "error" => return Err(errors::inside_stream(&event)),
            _ => None,
        };
        Ok(delta.into_iter().collect())
    }

    fn finish(self: Box<Self>) -> Result<Response, ProviderError> {
        if !self.done {
            return Err(cut_off());
        }
        let mut stop = self.stop.as_deref().map_or(StopReason::End, stop_reason);
        let cut_short = !matches!(stop, StopReason::End | StopReason::Calls);
        let last = self.blocks.keys().next_back().copied();
        let mut blocks = Vec::new();
        for (index, open) in self.blocks {
            let may_be_partial = cut_short && Some(index) == last;
            blocks.extend(open.into_block(may_be_partial));
        }
        let calls = |block: &AnswerBlock| matches!(block, AnswerBlock::Call { .. });
        if stop == StopReason::End && blocks.iter().any(calls) {
            stop = StopReason::Calls;
        }
        Ok(Response {
            blocks,
            stop,
            usage: self.usage,
        })
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn content_bytes(&self) -> usize {
        self.content_bytes
    }
}

impl MessagesDecoder {
    fn start(&mut self, event: &Value) -> Result<Option<Delta>, ProviderError> {
        let broken = |what: &str| malformed_error("content_block_start", what);
        let block = event.get("content_block").and_then(Value::as_object);
        let block = block.ok_or_else(|| broken("there is no block"))?;
        let next = self.blocks.keys().next_back().map_or(0, |last| last + 1);
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(next);
        let (open, delta) = match text_of(block, "type").unwrap_or_default() {
            "text" => {
                let text = string_field(block, "text");
                (OpenBlock::Text(text.clone()), Delta::Text(text))
            }
            "thinking" => {
                let text = string_field(block, "thinking");
                // The start event has an empty signature: the real one follows.
                let signature = text_of(block, "signature").filter(|text| !text.is_empty());
                let open = OpenBlock::Thinking {
                    text: text.clone(),
                    signature: signature.map(str::to_owned),
                };
                (open, Delta::Thinking(text))
            }
            "redacted_thinking" => {
                let data = text_of(block, "data").ok_or_else(|| broken("there is no data"))?;
                (OpenBlock::Redacted(data.to_owned()), nothing())
            }
            "tool_use" => {
                let name = text_of(block, "name").ok_or_else(|| broken("a call has no name"))?;
                let open = OpenBlock::Call {
                    id: text_of(block, "id").map(str::to_owned),
                    name: name.to_owned(),
                    input: block
                        .get("input")
                        .filter(|input| input.is_object())
                        .cloned(),
                    json: String::new(),
                };
                (open, Delta::Call(name.to_owned()))
            }
            _ => (OpenBlock::Unknown, nothing()),
        };
        self.content_bytes += BLOCK_BYTES + open.len();
        if self.blocks.insert(index, open).is_some() {
            return Err(broken(&format!("block {index} begins again")));
        }
        Ok(Some(delta).filter(says))
    }

    fn extend(&mut self, event: &Value) -> Result<Option<Delta>, ProviderError> {
        let broken = |what: &str| malformed_error("content_block_delta", what);
        let delta = event.get("delta").and_then(Value::as_object);
        let delta = delta.ok_or_else(|| broken("there is no delta"))?;
        let last = self.blocks.keys().next_back().copied();
        let index = event.get("index").and_then(Value::as_u64).or(last);
        let open = index.and_then(|index| self.blocks.get_mut(&index));
        let open = open.ok_or_else(|| broken("its block has not begun"))?;
        let field = match text_of(delta, "type").unwrap_or_default() {
            "text_delta" => "text",
            "thinking_delta" => "thinking",
            "signature_delta" => "signature",
            "input_json_delta" => "partial_json",
            _ => return Ok(None),
        };
        let more = text_of(delta, field);
        let more = more.ok_or_else(|| broken(&format!("there is no `{field}`")))?;
        self.content_bytes += more.len();
        let said = match (open, field) {
            (OpenBlock::Text(text), "text") => {
                text.push_str(more);
                Delta::Text(more.to_owned())
            }
            (OpenBlock::Thinking { text, .. }, "thinking") => {
                text.push_str(more);
                Delta::Thinking(more.to_owned())
            }
            (OpenBlock::Thinking { signature, .. }, "signature") => {
                // The signature comes once, complete.
                *signature = Some(more.to_owned());
                return Ok(None);
            }
            (OpenBlock::Call { json, .. }, "partial_json") => {
                json.push_str(more);
                return Ok(None);
            }
            (OpenBlock::Unknown, _) => return Ok(None),
            _ => return Err(broken(&format!("`{field}` does not fit its block"))),
        };
        Ok(Some(said).filter(says))
    }

    /// Updates token counts.
    ///
    /// They are cumulative, so a lower count is ignored; a server that knows only some at the end
    /// sends zero for the rest.
    fn count(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else {
            return;
        };
        let raise = |amount: &mut Option<u64>, pointer: &str| {
            *amount = usage.pointer(pointer).and_then(Value::as_u64).max(*amount);
        };
        raise(&mut self.usage.input, "/input_tokens");
        raise(&mut self.usage.cache_read, "/cache_read_input_tokens");
        raise(&mut self.usage.cache_write, "/cache_creation_input_tokens");
        raise(&mut self.usage.output, "/output_tokens");
        let thinking = "/output_tokens_details/thinking_tokens";
        raise(&mut self.usage.reasoning, thinking);
    }
}

impl OpenBlock {
    /// Returns the bytes of content in its start event.
    fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Redacted(text) => text.len(),
            Self::Thinking { text, signature } => {
                text.len() + signature.as_ref().map_or(0, String::len)
            }
            Self::Call {
                id, name, input, ..
            } => {
                let input = input.as_ref().map_or(0, |input| input.to_string().len());
                id.as_ref().map_or(0, String::len) + name.len() + input
            }
            Self::Unknown => 0,
        }
    }

    /// Returns the block of the response; none if it is empty, or a call that was cut off.
    fn into_block(self, may_be_partial: bool) -> Option<AnswerBlock> {
        match self {
            Self::Text(text) => {
                let item = None;
                (!text.is_empty()).then_some(AnswerBlock::Text { text, item })
            }
            Self::Thinking { text, signature } => {
                let payload = signature.map(|signature| json!({"signature": signature}));
                let payload = payload.map(|payload| payload.to_string());
                let says = payload.is_some() || !text.is_empty();
                says.then_some(AnswerBlock::Thinking { text, payload })
            }
            Self::Redacted(data) => Some(AnswerBlock::Thinking {
                text: String::new(),
                payload: Some(json!({"data": data}).to_string()),
            }),
            Self::Call {
                id,
                name,
                input,
                json,
            } => {
                let is_object = serde_json::from_str::<Map<String, Value>>(&json).is_ok();
                let given = input.filter(|input| input.as_object().is_some_and(|o| !o.is_empty()));
                let arguments = match given {
                    Some(input) if json.trim().is_empty() => input.to_string(),
                    _ if may_be_partial && !is_object => return None,
                    _ if json.trim().is_empty() => "{}".to_owned(),
                    _ => json,
                };
                Some(AnswerBlock::Call {
                    id,
                    name,
                    arguments,
                    item: None,
                })
            }
            Self::Unknown => None,
        }
    }
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "end_turn" | "stop_sequence" => StopReason::End,
        "tool_use" => StopReason::Calls,
        "max_tokens" => StopReason::Length,
        "pause_turn" => StopReason::Paused,
        "refusal" => StopReason::Refused,
        "model_context_window_exceeded" => StopReason::ContextFull,
        other => StopReason::Other(other.to_owned()),
    }
}

fn text_of<'a>(object: &'a Map<String, Value>, field: &str) -> Option<&'a str> {
    object.get(field).and_then(Value::as_str)
}

fn string_field(object: &Map<String, Value>, field: &str) -> String {
    text_of(object, field).unwrap_or_default().to_owned()
}

fn nothing() -> Delta {
    Delta::Text(String::new())
}

/// Returns true if the delta has something to show.
fn says(delta: &Delta) -> bool {
    !matches!(delta, Delta::Text(text) | Delta::Thinking(text) if text.is_empty())
}

/// Returns the name of an unreadable event, for errors.
fn name_of(frame: &Frame) -> &str {
    match frame.event.as_str() {
        "" => "data",
        name => name,
    }
}
