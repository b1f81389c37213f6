//! Encoder of `POST /chat/completions`.

use serde_json::{Map, Value, json};

use ikigai_core::message::{Block, Image, Message, Role};
use ikigai_core::project::{Request, ToolSpec};

use super::reasoning::{DETAILS, REASONING, REASONING_CONTENT, THINK_TAG};
use super::strict::{self, Spelled};
use crate::catalogue::ThinkingStyle;
use crate::dialect::Order;
use crate::dialects::images::{NOT_SHOWN, data_url};
use crate::dialects::{openai, schema};

/// Names of the fields that carry readable reasoning back.
const ECHOED: [&str; 3] = [REASONING_CONTENT, REASONING, THINK_TAG];

/// Text before the images of tool results.
const IMAGES_OF_RESULTS: &str = "[The images of the tool results above, in their order:]";

/// Makes the whole body.
pub(super) fn body(order: &Order<'_>) -> Value {
    let messages = messages(order).into_iter().map(|(_, message)| message);
    let mut body = json!({
        "model": order.model,
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": messages.collect::<Vec<_>>(),
    });
    if !order.request.tools.is_empty() {
        body["tools"] = order.request.tools.iter().map(tool).collect();
    }
    if order.max_output > 0 {
        let name = if order.quirks.old_max_tokens {
            "max_tokens"
        } else {
            "max_completion_tokens"
        };
        body[name] = json!(order.max_output);
    }
    let thinking = order
        .thinking
        .map(|thinking| (thinking.style, &thinking.value));
    if let Some((ThinkingStyle::Effort, value)) = thinking
        && !value.is_null()
    {
        // These words are no efforts, but values of another field.
        if value == "disabled" || value == "between_tools" {
            body["thinking"] = json!({"type": value});
        } else {
            body["reasoning_effort"] = value.clone();
        }
    }
    if let Some(key) = openai::cache_key(order.cache_key).filter(|_| order.quirks.cache_key) {
        body["prompt_cache_key"] = json!(key);
    }
    body
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": schema::object_schema(&tool.parameters),
        },
    })
}

/// Encodes the messages, each with the index of its neutral message.
///
/// The system prompt, and messages merged or added for a strict server, have no index.
pub(super) fn messages(order: &Order<'_>) -> Vec<Spelled> {
    let system = order.request.system.as_ref();
    let system = system.map(|text| (None, json!({"role": "system", "content": text})));
    let mut messages: Vec<_> = system.into_iter().collect();
    for (index, message) in order.request.messages.iter().enumerate() {
        let spelled = match message.role {
            Role::User => user(order.request, message).into_iter().collect(),
            Role::Assistant => assistant(message, order.quirks.echoes_reasoning)
                .into_iter()
                .collect(),
            Role::Tool => results(order.request, message),
        };
        messages.extend(spelled.into_iter().map(|message| (Some(index), message)));
    }
    if order.quirks.alternating_roles {
        messages = strict::alternate(messages);
    }
    if order.quirks.short_call_ids {
        strict::shorten_ids(&mut messages);
    }
    messages
}

fn user(request: &Request, message: &Message) -> Option<Value> {
    let text = text_of(message);
    let images = message.blocks.iter().filter_map(|block| match block {
        Block::Image(image) => Some(image),
        _ => None,
    });
    let images: Vec<_> = images.collect();
    if images.is_empty() {
        return (!text.is_empty()).then(|| json!({"role": "user", "content": text}));
    }
    Some(with_images(request, &text, &images))
}

/// Makes a user message of a text and images. Only such messages have a list as their content.
fn with_images(request: &Request, text: &str, images: &[&Image]) -> Value {
    let text = (!text.is_empty()).then(|| strict::text_part(text));
    let images = images.iter().map(|image| match data_url(request, image) {
        Some(url) => json!({"type": "image_url", "image_url": {"url": url}}),
        None => strict::text_part(NOT_SHOWN),
    });
    json!({"role": "user", "content": text.into_iter().chain(images).collect::<Vec<_>>()})
}

fn text_of(message: &Message) -> String {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn assistant(message: &Message, echoes_reasoning: bool) -> Option<Value> {
    let mut text = text_of(message);
    let calls: Vec<_> = message.blocks.iter().filter_map(call).collect();
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut fields = if echoes_reasoning {
        reasoning_of(message, !calls.is_empty())
    } else {
        Map::new()
    };
    if let Some(Value::String(thought)) = fields.remove(THINK_TAG) {
        text = format!("<think>{thought}</think>\n\n{text}");
    }
    fields.insert("role".to_owned(), json!("assistant"));
    let content = if text.is_empty() {
        Value::Null
    } else {
        json!(text)
    };
    fields.insert("content".to_owned(), content);
    if !calls.is_empty() {
        fields.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    Some(Value::Object(fields))
}

fn call(block: &Block) -> Option<Value> {
    let Block::ToolCall {
        id,
        name,
        arguments,
    } = block
    else {
        return None;
    };
    Some(json!({
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": openai::arguments(arguments)},
    }))
}

/// Returns the reasoning in the fields in which it came.
fn reasoning_of(message: &Message, calls: bool) -> Map<String, Value> {
    let mut fields = Map::new();
    for block in &message.blocks {
        let Block::Thinking {
            text,
            payload: Some(payload),
        } = block
        else {
            continue;
        };
        let Ok(Value::Object(mut payload)) = serde_json::from_str(&payload.payload) else {
            continue;
        };
        let came = payload.remove(DETAILS).filter(Value::is_array);
        if let Some(Value::Array(details)) = came {
            let list = fields.entry(DETAILS).or_insert_with(|| json!([]));
            if let Value::Array(list) = list {
                list.extend(details);
            }
        } else if let Some(Value::String(field)) = payload.remove("field")
            && ECHOED.contains(&field.as_str())
        {
            let said = fields.entry(field).or_insert_with(|| json!(""));
            if let Value::String(said) = said {
                said.push_str(text);
            }
        }
    }
    // The details contain the text.
    if fields.contains_key(DETAILS) {
        fields.retain(|field, _| field == DETAILS);
    }
    // Servers that require it refuse a call without it, even one of another model.
    if fields.is_empty() && calls {
        fields.insert(REASONING_CONTENT.to_owned(), json!(""));
    }
    fields
}

/// Makes a message of each result, and one of all their images, because results have only text.
fn results(request: &Request, message: &Message) -> Vec<Value> {
    let mut all_images = Vec::new();
    let results = message.blocks.iter().filter_map(|block| match block {
        Block::ToolResult {
            tool_call_id,
            content,
            is_error,
            images,
        } => Some((tool_call_id, content, is_error, images)),
        _ => None,
    });
    let results = results.map(|(tool_call_id, content, is_error, images)| {
        all_images.extend(images);
        json!({
            "role": "tool",
            "tool_call_id": tool_call_id,
            "content": openai::result_text(content, *is_error),
        })
    });
    let mut messages: Vec<_> = results.collect();
    if !all_images.is_empty() {
        messages.push(with_images(request, IMAGES_OF_RESULTS, &all_images));
    }
    messages
}
