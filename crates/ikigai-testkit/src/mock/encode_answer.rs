//! Encodes one response in each dialect as a stream of events.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::MockAnswer;
use super::cache::CacheUse;
use crate::wire::WireDialect;

/// Ids differ in all responses of a test run, as those of real servers do.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Tokens of a request, as its server counts them.
#[derive(Clone, Copy, Debug)]
pub(super) struct MockUsage {
    pub(super) input: usize,
    /// None if the server has no prompt cache.
    pub(super) cached: Option<CacheUse>,
}

/// Returns the parts of the stream, in order. A response that stalls lacks its end.
pub(super) fn parts(spoken: WireDialect, said: &MockAnswer, usage: MockUsage) -> Vec<String> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let answer = EncodedAnswer {
        said,
        number,
        tokens: usage.input,
        cached: usage.cached,
        output: tokens_of(said),
    };
    let (mut parts, end) = match spoken {
        WireDialect::Chat => answer.chat(),
        WireDialect::Responses => answer.responses(),
        WireDialect::Messages => answer.messages(),
        WireDialect::Gemini => answer.gemini(),
    };
    if !said.stalls {
        parts.extend(end);
    }
    parts
}

fn tokens_of(said: &MockAnswer) -> usize {
    let calls = said.calls.iter();
    let called: usize = calls
        .map(|(name, arguments)| name.len() + arguments.len())
        .sum();
    let spoken = said.content.as_ref().map_or(0, String::len);
    1 + (spoken + called) / 4
}

/// Parts of a stream, and its end.
type Parts = (Vec<String>, Vec<String>);

struct EncodedAnswer<'a> {
    said: &'a MockAnswer,
    number: u64,
    tokens: usize,
    cached: Option<CacheUse>,
    output: usize,
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn event(value: &Value) -> String {
    let name = value["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {value}\n\n")
}

/// Splits a text into halves, so that it streams.
fn halves(text: &str) -> [&str; 2] {
    let middle = text.len() / 2;
    let middle = (middle..=text.len()).find(|at| text.is_char_boundary(*at));
    let (first, second) = text.split_at(middle.unwrap_or(0));
    [first, second]
}

impl EncodedAnswer<'_> {
    fn id(&self, kind: &str, index: usize) -> String {
        format!("{kind}_{}_{index}", self.number)
    }

    fn text(&self) -> Option<[&str; 2]> {
        self.said.content.as_deref().map(halves)
    }

    fn chat(&self) -> Parts {
        let chunk = |delta: Value| data(&json!({"choices": [{"index": 0, "delta": delta}]}));
        let mut parts = Vec::new();
        for half in self.text().into_iter().flatten() {
            parts.push(chunk(json!({"content": half})));
        }
        for (index, (name, arguments)) in self.said.calls.iter().enumerate() {
            let id = self.id("call", index);
            parts.push(chunk(json!({"tool_calls": [{
                "index": index, "id": id, "type": "function",
                "function": {"name": name, "arguments": arguments},
            }]})));
        }
        let reason = if self.said.calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        let choice = json!({"index": 0, "delta": {}, "finish_reason": reason});
        let mut usage = json!({"prompt_tokens": self.tokens, "completion_tokens": self.output});
        if let Some(cached) = self.cached {
            usage["prompt_tokens_details"] = json!({"cached_tokens": cached.read});
        }
        let end = vec![
            data(&json!({"choices": [choice]})),
            data(&json!({"choices": [], "usage": usage})),
            "data: [DONE]\n\n".to_owned(),
        ];
        (parts, end)
    }

    fn responses(&self) -> Parts {
        let mut parts = vec![event(&json!({
            "type": "response.created",
            "response": {"id": self.id("resp", 0), "status": "in_progress", "output": []},
        }))];
        let mut output = Vec::new();
        if let Some(halves) = self.text() {
            let id = self.id("msg", 0);
            let begun = json!({
                "id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": [],
            });
            parts.push(event(&json!({
                "type": "response.output_item.added", "output_index": 0, "item": begun,
            })));
            for half in halves {
                parts.push(event(&json!({
                    "type": "response.output_text.delta", "item_id": id, "output_index": 0,
                    "content_index": 0, "delta": half,
                })));
            }
            let text = json!({"type": "output_text", "text": halves.concat(), "annotations": []});
            output.push(json!({
                "id": id, "type": "message", "role": "assistant", "status": "completed",
                "content": [text],
            }));
        }
        for (index, (name, arguments)) in self.said.calls.iter().enumerate() {
            output.push(json!({
                "id": self.id("fc", index), "type": "function_call", "status": "completed",
                "call_id": self.id("call", index), "name": name, "arguments": arguments,
            }));
        }
        let mut end: Vec<_> = output
            .iter()
            .enumerate()
            .map(|(index, item)| {
                event(&json!({
                    "type": "response.output_item.done", "output_index": index, "item": item,
                }))
            })
            .collect();
        let usage = json!({
            "input_tokens": self.tokens, "input_tokens_details": {"cached_tokens": self.cached.unwrap_or_default().read},
            "output_tokens": self.output, "output_tokens_details": {"reasoning_tokens": 0},
        });
        end.push(event(&json!({
            "type": "response.completed",
            "response": {
                "id": self.id("resp", 0), "status": "completed", "output": output, "usage": usage,
            },
        })));
        (parts, end)
    }

    fn messages(&self) -> Parts {
        let mut usage = json!({"input_tokens": self.tokens, "output_tokens": 1});
        if let Some(CacheUse { read, written }) = self.cached {
            usage["input_tokens"] = json!(self.tokens.saturating_sub(read + written));
            usage["cache_read_input_tokens"] = json!(read);
            usage["cache_creation_input_tokens"] = json!(written);
        }
        let mut parts = vec![event(&json!({
            "type": "message_start",
            "message": {
                "id": self.id("msg", 0), "type": "message", "role": "assistant", "content": [],
                "stop_reason": null, "usage": usage,
            },
        }))];
        let mut index = 0;
        let mut end = Vec::new();
        let begin = |index: usize, block: Value| {
            event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
        };
        let delta = |index: usize, delta: Value| {
            event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
        };
        let stop = |index: usize| event(&json!({"type": "content_block_stop", "index": index}));
        if let Some(halves) = self.text() {
            parts.push(begin(index, json!({"type": "text", "text": ""})));
            for half in halves {
                parts.push(delta(index, json!({"type": "text_delta", "text": half})));
            }
            end.push(stop(index));
            index += 1;
        }
        for (name, arguments) in &self.said.calls {
            let id = self.id("toolu", index);
            let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            end.push(begin(index, block));
            let input = json!({"type": "input_json_delta", "partial_json": arguments});
            end.push(delta(index, input));
            end.push(stop(index));
            index += 1;
        }
        let reason = if self.said.calls.is_empty() {
            "end_turn"
        } else {
            "tool_use"
        };
        end.push(event(&json!({
            "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": self.output},
        })));
        end.push(event(&json!({"type": "message_stop"})));
        (parts, end)
    }

    fn gemini(&self) -> Parts {
        let chunk = |part: Value| {
            data(&json!({"candidates": [{
                "index": 0, "content": {"role": "model", "parts": [part]},
            }]}))
        };
        let mut parts = Vec::new();
        for half in self.text().into_iter().flatten() {
            parts.push(chunk(json!({"text": half})));
        }
        for (name, arguments) in &self.said.calls {
            let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
            parts.push(chunk(
                json!({"functionCall": {"name": name, "args": arguments}}),
            ));
        }
        let mut usage = json!({
            "promptTokenCount": self.tokens, "candidatesTokenCount": self.output,
        });
        if let Some(cached) = self.cached {
            usage["cachedContentTokenCount"] = json!(cached.read);
        }
        let end = data(&json!({
            "candidates": [{
                "index": 0, "content": {"role": "model", "parts": [{"text": ""}]},
                "finishReason": "STOP",
            }],
            "usageMetadata": usage,
        }));
        (parts, vec![end])
    }
}
