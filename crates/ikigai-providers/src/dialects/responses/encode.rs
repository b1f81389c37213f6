//! Encoder of `POST /responses`.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use ikigai_core::message::{Block, Image, Message, Role};
use ikigai_core::project::{Request, ToolSpec};

use crate::catalogue::ThinkingStyle;
use crate::dialect::Order;
use crate::dialects::images::{NOT_SHOWN, data_url};
use crate::dialects::{openai, schema};

/// Smallest output limit that the provider accepts.
const LEAST_OUTPUT: u64 = 16;

/// Largest id of an item that the provider accepts.
const LONGEST_ID: usize = 64;

/// Makes the whole body.
pub(super) fn body(order: &Order<'_>) -> Value {
    let items = items(order).into_iter().map(|(_, item)| item);
    let mut body = json!({
        "model": order.model,
        "stream": true,
        "store": false,
        "input": items.collect::<Vec<_>>(),
    });
    if let Some(system) = &order.request.system {
        body["instructions"] = json!(system);
    }
    if !order.request.tools.is_empty() {
        body["tools"] = order.request.tools.iter().map(tool).collect();
    }
    if order.max_output > 0 {
        body["max_output_tokens"] = json!(order.max_output.max(LEAST_OUTPUT));
    }
    let is_own = !order.quirks.no_encrypted_reasoning;
    if let Some(effort) = effort(order) {
        body["reasoning"] = if effort == "none" {
            json!({"effort": effort})
        } else {
            json!({"effort": effort, "summary": "auto"})
        };
        // A model without reasoning refuses this field.
        if is_own {
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
    }
    if let Some(key) =
        openai::cache_key(order.cache_key).filter(|_| is_own || order.quirks.cache_key)
    {
        body["prompt_cache_key"] = json!(key);
    }
    body
}

fn effort(order: &Order<'_>) -> Option<Value> {
    let thinking = order.thinking?;
    if thinking.style != ThinkingStyle::Effort || thinking.value.is_null() {
        return None;
    }
    // The table has this word if thinking is not switched off by an effort.
    if thinking.value == "disabled" {
        return Some(json!("none"));
    }
    Some(thinking.value.clone())
}

fn tool(tool: &ToolSpec) -> Value {
    let parameters = schema::object_schema(&tool.parameters);
    // Without `strict` the provider tries strict mode, and refuses schemas that are not.
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "strict": schema::is_strict(&parameters),
        "parameters": parameters,
    })
}

/// Returns the input items, each with the index of its message.
pub(super) fn items(order: &Order<'_>) -> Vec<(usize, Value)> {
    let mut items = Items {
        request: order.request,
        list: Vec::new(),
        ids: HashSet::new(),
        encrypted: !order.quirks.no_encrypted_reasoning,
    };
    for (index, message) in order.request.messages.iter().enumerate() {
        match message.role {
            Role::User => items.user(index, message),
            Role::Assistant => items.assistant(index, message),
            Role::Tool => items.results(index, message),
        }
    }
    items.list
}

struct Items<'a> {
    request: &'a Request,
    list: Vec<(usize, Value)>,
    /// Ids of the items so far: the provider refuses duplicates.
    ids: HashSet<String>,
    /// True if reasoning is sent back encrypted, else in the open.
    encrypted: bool,
}

impl Items<'_> {
    fn user(&mut self, index: usize, message: &Message) {
        let parts = message.blocks.iter().filter_map(|block| match block {
            Block::Text { text } => Some(input_text(text)),
            Block::Image(image) => Some(input_image(self.request, image)),
            _ => None,
        });
        let content: Vec<_> = parts.collect();
        if !content.is_empty() {
            let item = json!({"type": "message", "role": "user", "content": content});
            self.list.push((index, item));
        }
    }

    fn assistant(&mut self, index: usize, message: &Message) {
        // Reasoning is refused unless its outcome follows directly.
        let mut reasoning = Vec::new();
        for (at, block) in message.blocks.iter().enumerate() {
            let mut item = match block {
                Block::Thinking { payload, .. } => {
                    let payload = payload.as_ref().map(|payload| payload.payload.as_str());
                    reasoning.extend(payload.and_then(|payload| self.reasoning(payload)));
                    continue;
                }
                Block::Text { text } => json!({
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": text, "annotations": []}],
                }),
                Block::ToolCall {
                    id,
                    name,
                    arguments,
                } => json!({
                    "type": "function_call",
                    "call_id": id,
                    "name": name,
                    "arguments": openai::arguments(arguments),
                }),
                Block::ToolResult { .. } | Block::Image(_) => continue,
            };
            for thought in reasoning.drain(..) {
                self.think(index, thought);
            }
            let mut hanging = message.metadata.iter();
            if let Some(hanging) = hanging.find(|hanging| hanging.block == at) {
                self.hang(&hanging.item.payload, &mut item);
            }
            self.list.push((index, item));
        }
    }

    /// Returns a reasoning item that can be sent back.
    fn reasoning(&self, payload: &str) -> Option<Value> {
        let mut item: Map<String, Value> = serde_json::from_str(payload).ok()?;
        if item.get("type").and_then(Value::as_str) != Some("reasoning") {
            return None;
        }
        item.retain(|_, value| !value.is_null());
        let is_encrypted = item
            .get("encrypted_content")
            .and_then(Value::as_str)
            .is_some_and(|content| !content.is_empty());
        let is_open = item
            .get("content")
            .and_then(Value::as_array)
            .is_some_and(|content| !content.is_empty());
        // A provider that stores nothing needs it encrypted; one that does not encrypt needs it
        // open.
        if !(if self.encrypted {
            is_encrypted
        } else {
            is_open
        }) {
            return None;
        }
        item.entry("summary").or_insert_with(|| json!([]));
        if !item.get("id").and_then(Value::as_str).is_some_and(is_short) {
            item.remove("id");
        }
        Some(Value::Object(item))
    }

    fn think(&mut self, index: usize, reasoning: Value) {
        let id = reasoning.get("id").and_then(Value::as_str);
        if id.is_none_or(|id| self.ids.insert(id.to_owned())) {
            self.list.push((index, reasoning));
        }
    }

    /// Adds id and phase to a message or call.
    fn hang(&mut self, payload: &str, item: &mut Value) {
        let Ok(Value::Object(hanging)) = serde_json::from_str(payload) else {
            return;
        };
        let word = |key: &str| hanging.get(key).and_then(Value::as_str);
        if item["type"] == "message"
            && let Some(phase) = word("phase")
        {
            item["phase"] = json!(phase);
        }
        // An item with its id requires the reasoning before it; without its id it does not.
        let is_led_to = word("after").is_none_or(|reasoning| self.ids.contains(reasoning));
        if let Some(id) = word("id")
            && is_short(id)
            && is_led_to
            && self.ids.insert(id.to_owned())
        {
            item["id"] = json!(id);
        }
    }

    fn results(&mut self, index: usize, message: &Message) {
        for block in &message.blocks {
            if let Block::ToolResult {
                tool_call_id,
                content,
                is_error,
                images,
            } = block
            {
                let text = openai::result_text(content, *is_error);
                let output = if images.is_empty() {
                    json!(text)
                } else {
                    let images = images.iter().map(|image| input_image(self.request, image));
                    [input_text(&text)].into_iter().chain(images).collect()
                };
                let item = json!({
                    "type": "function_call_output",
                    "call_id": tool_call_id,
                    "output": output,
                });
                self.list.push((index, item));
            }
        }
    }
}

fn input_text(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

fn input_image(request: &Request, image: &Image) -> Value {
    match data_url(request, image) {
        Some(url) => json!({"type": "input_image", "image_url": url, "detail": "auto"}),
        None => input_text(NOT_SHOWN),
    }
}

fn is_short(id: &str) -> bool {
    (1..=LONGEST_ID).contains(&id.len())
}
