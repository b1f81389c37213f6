//! Encoder of Gemini.

use ikigai_core::message::{Block, Image, Message, Role, arguments_object};
use ikigai_core::project::{Request, ToolSpec};
use serde_json::{Map, Value, json};

use crate::catalogue::ThinkingStyle;
use crate::dialect::Order;
use crate::dialects::images::{NOT_SHOWN, base64_of};
use crate::dialects::schema::object_schema;

/// Placeholder for the signature of a call of another model.
const DUMMY_SIGNATURE: &str = "skip_thought_signature_validator";

/// Encodes a request.
pub(super) fn encode(order: &Order<'_>) -> Value {
    let request = order.request;
    let mut body = Map::new();
    if let Some(system) = &request.system {
        let instruction = json!({"parts": [{"text": system}]});
        body.insert("systemInstruction".to_owned(), instruction);
    }
    let is_third_generation = is_third_generation(order.model);
    body.insert(
        "contents".to_owned(),
        json!(contents_of(request, is_third_generation)),
    );
    if !request.tools.is_empty() {
        let declarations: Vec<_> = request.tools.iter().map(declaration).collect();
        let tools = json!([{"functionDeclarations": declarations}]);
        body.insert("tools".to_owned(), tools);
    }
    let config = generation_config(order);
    if config.as_object().is_some_and(|config| !config.is_empty()) {
        body.insert("generationConfig".to_owned(), config);
    }
    Value::Object(body)
}

/// Returns true for models from the third generation on: they check signatures of calls, and take
/// images inside results.
fn is_third_generation(model: &str) -> bool {
    let name = model.strip_prefix("models/").unwrap_or(model);
    !["gemini-1", "gemini-2"]
        .iter()
        .any(|old| name.starts_with(old))
}

fn declaration(tool: &ToolSpec) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": object_schema(&tool.parameters),
    })
}

fn generation_config(order: &Order<'_>) -> Value {
    let mut config = json!({});
    if order.max_output > 0 {
        config["maxOutputTokens"] = json!(order.max_output);
    }
    if let Some(thinking) = order.thinking {
        match (thinking.style, &thinking.value) {
            (ThinkingStyle::Level, Value::String(level)) => {
                config["thinkingConfig"] = json!({"thinkingLevel": level, "includeThoughts": true});
            }
            (ThinkingStyle::Budget, Value::Number(budget)) => {
                let thinks = budget.as_u64() != Some(0);
                config["thinkingConfig"] =
                    json!({"thinkingBudget": budget, "includeThoughts": thinks});
            }
            _ => {}
        }
    }
    config
}

/// A call of the model's newest message, in the form that its result must repeat.
struct RepeatedCall<'a> {
    id: &'a str,
    name: &'a str,
    sends_id: bool,
}

/// Makes one content for each message, so that indices are equal.
fn contents_of(request: &Request, is_third_generation: bool) -> Vec<Value> {
    let mut calls: Vec<RepeatedCall<'_>> = Vec::new();
    let mut contents = Vec::new();
    for message in &request.messages {
        let (role, mut parts) = match message.role {
            Role::User => ("user", parts_of(request, message)),
            Role::Tool => (
                "user",
                responses(request, message, &calls, is_third_generation),
            ),
            Role::Assistant => {
                calls.clear();
                (
                    "model",
                    encode_turn(message, is_third_generation, &mut calls),
                )
            }
        };
        if parts.is_empty() {
            // The message has no content for Gemini, which refuses a content without parts.
            parts.push(json!({"text": " "}));
        }
        contents.push(json!({"role": role, "parts": parts}));
    }
    contents
}

fn parts_of(request: &Request, message: &Message) -> Vec<Value> {
    let parts = message.blocks.iter().filter_map(|block| match block {
        Block::Text { text } if !text.is_empty() => Some(json!({"text": text})),
        Block::Image(image) => {
            let part = image_part(request, image);
            Some(part.unwrap_or_else(|| json!({"text": NOT_SHOWN})))
        }
        _ => None,
    });
    parts.collect()
}

fn image_part(request: &Request, image: &Image) -> Option<Value> {
    let data = base64_of(request, image)?;
    Some(json!({"inlineData": {"mimeType": image.media_type, "data": data}}))
}

/// Makes a part of each result. Older models take its images as parts beside it.
fn responses(
    request: &Request,
    message: &Message,
    calls: &[RepeatedCall<'_>],
    has_images_inside: bool,
) -> Vec<Value> {
    let mut parts = Vec::new();
    for block in &message.blocks {
        let Block::ToolResult {
            tool_call_id,
            content,
            is_error,
            images,
        } = block
        else {
            continue;
        };
        let Some(call) = calls.iter().find(|call| call.id == tool_call_id) else {
            continue;
        };
        let shown = images.iter().filter_map(|image| image_part(request, image));
        let shown: Vec<_> = shown.collect();
        let mut content = content.clone();
        if shown.len() < images.len() {
            content.push('\n');
            content.push_str(NOT_SHOWN);
        }
        let key = if *is_error { "error" } else { "output" };
        let mut response = json!({"name": call.name, "response": {key: content}});
        if call.sends_id {
            response["id"] = json!(call.id);
        }
        if has_images_inside && !shown.is_empty() {
            response["parts"] = json!(shown);
        }
        parts.push(json!({"functionResponse": response}));
        if !has_images_inside {
            parts.extend(shown);
        }
    }
    parts
}

fn encode_turn<'a>(
    message: &'a Message,
    is_third_generation: bool,
    calls: &mut Vec<RepeatedCall<'a>>,
) -> Vec<Value> {
    let mut parts = Vec::new();
    for (index, block) in message.blocks.iter().enumerate() {
        let item = item_of(message, index);
        let signature = item.get("thoughtSignature").and_then(Value::as_str);
        let mut part = match block {
            Block::Text { text } if !text.is_empty() => json!({"text": text}),
            Block::ToolCall {
                id,
                name,
                arguments,
            } => {
                let sends_id = item.get("id").is_some();
                let mut call = json!({"name": name, "args": arguments_object(arguments)});
                if sends_id {
                    call["id"] = json!(id);
                }
                calls.push(RepeatedCall { id, name, sends_id });
                json!({"functionCall": call})
            }
            Block::Thinking {
                payload: Some(payload),
                ..
            } => {
                parts.extend(signed_nothing(&payload.payload));
                continue;
            }
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::ToolResult { .. }
            | Block::Image(_) => continue,
        };
        // The first call of every step must be signed. Steps of past turns need not be, but a dummy
        // stays once it was sent: otherwise the prefix would change with every turn.
        let is_first_call = calls.len() == 1 && matches!(block, Block::ToolCall { .. });
        let dummy = (is_third_generation && is_first_call).then_some(DUMMY_SIGNATURE);
        if let Some(signature) = signature.or(dummy) {
            part["thoughtSignature"] = json!(signature);
        }
        parts.push(part);
    }
    parts
}

/// Makes the part of a separate signature, unchanged.
fn signed_nothing(payload: &str) -> Option<Value> {
    let payload: Value = serde_json::from_str(payload).ok()?;
    let signature = payload.get("thoughtSignature")?.as_str()?;
    let text = payload.get("text").and_then(Value::as_str);
    Some(json!({"text": text.unwrap_or_default(), "thoughtSignature": signature}))
}

/// Returns the opaque payload of a block; empty if it cannot be parsed.
fn item_of(message: &Message, block: usize) -> Map<String, Value> {
    let item = message.metadata.iter().find(|item| item.block == block);
    let item = item.and_then(|item| serde_json::from_str(&item.item.payload).ok());
    item.unwrap_or_default()
}
