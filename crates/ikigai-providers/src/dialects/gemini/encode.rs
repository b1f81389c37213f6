//! Encoder of Gemini.

use ikigai_core::message::{Block, Message, Role, arguments_object};
use ikigai_core::project::ToolSpec;
use serde_json::{Map, Value, json};

use crate::catalogue::ThinkingStyle;
use crate::dialect::Order;
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
    let demands = demands_signatures(order.model);
    body.insert(
        "contents".to_owned(),
        json!(contents_of(&request.messages, demands)),
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

/// Returns true for models that check signatures of calls, from the third generation on.
fn demands_signatures(model: &str) -> bool {
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
fn contents_of(messages: &[Message], demands_signatures: bool) -> Vec<Value> {
    let mut calls: Vec<RepeatedCall<'_>> = Vec::new();
    let mut contents = Vec::new();
    for message in messages {
        let (role, mut parts) = match message.role {
            Role::User => ("user", texts(message)),
            Role::Tool => ("user", responses(message, &calls)),
            Role::Assistant => {
                calls.clear();
                (
                    "model",
                    encode_turn(message, demands_signatures, &mut calls),
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

fn texts(message: &Message) -> Vec<Value> {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text { text } if !text.is_empty() => Some(json!({"text": text})),
        _ => None,
    });
    texts.collect()
}

fn responses(message: &Message, calls: &[RepeatedCall<'_>]) -> Vec<Value> {
    let responses = message.blocks.iter().filter_map(|block| match block {
        Block::ToolResult {
            tool_call_id,
            content,
            is_error,
        } => {
            let call = calls.iter().find(|call| call.id == tool_call_id)?;
            let key = if *is_error { "error" } else { "output" };
            let mut response = json!({"name": call.name, "response": {key: content}});
            if call.sends_id {
                response["id"] = json!(call.id);
            }
            Some(json!({"functionResponse": response}))
        }
        _ => None,
    });
    responses.collect()
}

fn encode_turn<'a>(
    message: &'a Message,
    demands_signatures: bool,
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
            Block::Text { .. } | Block::Thinking { .. } | Block::ToolResult { .. } => continue,
        };
        // The first call of every step must be signed. Steps of past turns need not be, but a dummy
        // stays once it was sent: otherwise the prefix would change with every turn.
        let is_first_call = calls.len() == 1 && matches!(block, Block::ToolCall { .. });
        let dummy = (demands_signatures && is_first_call).then_some(DUMMY_SIGNATURE);
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
