//! Encoder of Anthropic Messages.

use ikigai_core::message::{Block, Image, Message, Payload, Role, arguments_object};
use ikigai_core::project::{Request, ToolSpec};
use serde_json::{Map, Value, json};

use crate::catalogue::ThinkingStyle;
use crate::dialect::Order;
use crate::dialects::images::{NOT_SHOWN, base64_of};
use crate::dialects::schema::object_schema;

/// Tokens reserved for the answer if the thinking budget would take all.
const ANSWER_ROOM: u64 = 4096;

/// Placeholder for a blank tool output: an error needs words, and blank texts are refused.
const NO_OUTPUT: &str = "(no output)";

/// Number of last user messages that end in a cache mark.
///
/// The next request reads the cache up to the last mark; this request reads up to the one before,
/// which the previous request wrote, however many blocks came since.
const MARKED_MESSAGES: usize = 2;

/// Encodes a request.
pub(super) fn encode(order: &Order<'_>) -> Value {
    let request = order.request;
    let mut turns = turns_of(request);
    let of_user = turns.iter_mut().rev().filter(|turn| turn.role == "user");
    for turn in of_user.take(MARKED_MESSAGES) {
        turn.mark();
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(order.model));
    body.insert("stream".to_owned(), json!(true));
    if let Some(system) = &request.system {
        let block = json!({"type": "text", "text": system, "cache_control": mark()});
        body.insert("system".to_owned(), json!([block]));
    }
    add_tools(request, &mut body);
    add_thinking(order, &mut body, may_think_on(&turns));
    let messages: Vec<_> = turns.into_iter().map(WireMessage::into_value).collect();
    body.insert("messages".to_owned(), json!(messages));
    Value::Object(body)
}

/// Returns the neutral message that a block of an encoded request comes from.
///
/// Without a block: that of the whole encoded message, if it comes from one.
pub(super) fn origin(request: &Request, message: usize, block: Option<usize>) -> Option<usize> {
    let turns = turns_of(request);
    let turn = turns.get(message)?;
    if let Some(block) = block {
        return turn.blocks.get(block).map(|(origin, _)| *origin);
    }
    let (first, _) = turn.blocks.first()?;
    let of_one = turn.blocks.iter().all(|(origin, _)| origin == first);
    of_one.then_some(*first)
}

fn mark() -> Value {
    json!({"type": "ephemeral"})
}

/// One message on the wire: neighbours of the same role are merged into it.
struct WireMessage {
    role: &'static str,
    /// Blocks with the index of their neutral message. Never empty.
    blocks: Vec<(usize, Value)>,
}

impl WireMessage {
    /// Marks the end of this message, so that the provider caches everything up to it.
    fn mark(&mut self) {
        if let Some((_, Value::Object(block))) = self.blocks.last_mut() {
            block.insert("cache_control".to_owned(), mark());
        }
    }

    fn into_value(self) -> Value {
        let blocks: Vec<_> = self.blocks.into_iter().map(|(_, block)| block).collect();
        json!({"role": self.role, "content": blocks})
    }
}

/// Returns the conversation without cache marks; blocks of a prefix are a prefix.
fn turns_of(request: &Request) -> Vec<WireMessage> {
    let mut turns: Vec<WireMessage> = Vec::new();
    for (index, message) in request.messages.iter().enumerate() {
        let (role, blocks) = match message.role {
            Role::User => ("user", contents(request, message)),
            Role::Tool => ("user", results(request, message)),
            Role::Assistant => ("assistant", encode_answer(message)),
        };
        if blocks.is_empty() {
            continue;
        }
        let blocks = blocks.into_iter().map(|block| (index, block));
        match turns.last_mut() {
            Some(turn) if turn.role == role => turn.blocks.extend(blocks),
            _ => turns.push(WireMessage {
                role,
                blocks: blocks.collect(),
            }),
        }
    }
    turns
}

/// Makes a text block; none for a blank text, which is refused.
fn text_block(text: &str) -> Option<Value> {
    let says = !text.trim().is_empty();
    says.then(|| json!({"type": "text", "text": text}))
}

fn image_block(request: &Request, image: &Image) -> Value {
    match base64_of(request, image) {
        Some(data) => json!({
            "type": "image",
            "source": {"type": "base64", "media_type": image.media_type, "data": data},
        }),
        None => json!({"type": "text", "text": NOT_SHOWN}),
    }
}

fn contents(request: &Request, message: &Message) -> Vec<Value> {
    let contents = message.blocks.iter().filter_map(|block| match block {
        Block::Text { text } => text_block(text),
        Block::Image(image) => Some(image_block(request, image)),
        _ => None,
    });
    contents.collect()
}

fn results(request: &Request, message: &Message) -> Vec<Value> {
    let results = message.blocks.iter().filter_map(|block| match block {
        Block::ToolResult {
            tool_call_id,
            content,
            is_error,
            images,
        } => {
            let text = match content.trim() {
                "" => NO_OUTPUT,
                _ => content,
            };
            let content = if images.is_empty() {
                json!(text)
            } else {
                let images = images.iter().map(|image| image_block(request, image));
                text_block(text).into_iter().chain(images).collect()
            };
            let mut result = json!({
                "type": "tool_result", "tool_use_id": tool_call_id, "content": content,
            });
            if *is_error {
                result["is_error"] = json!(true);
            }
            Some(result)
        }
        _ => None,
    });
    results.collect()
}

fn encode_answer(message: &Message) -> Vec<Value> {
    let mut blocks = Vec::new();
    let mut spoken = 0;
    for block in &message.blocks {
        match block {
            Block::Text { text } => blocks.extend(text_block(text)),
            Block::ToolCall {
                id,
                name,
                arguments,
            } => blocks.push(json!({
                "type": "tool_use", "id": id, "name": name, "input": arguments_object(arguments),
            })),
            Block::Thinking {
                text,
                payload: Some(payload),
            } => {
                blocks.extend(thinking_block(text, payload));
                continue;
            }
            Block::Thinking { .. } | Block::ToolResult { .. } | Block::Image(_) => continue,
        }
        spoken = blocks.len();
    }
    // A message must not end in thinking, and thinking without an outcome is no loss.
    blocks.truncate(spoken);
    blocks
}

/// Returns the block unchanged; none without signature or data, which would be refused.
fn thinking_block(text: &str, payload: &Payload) -> Option<Value> {
    let payload: Value = serde_json::from_str(&payload.payload).ok()?;
    if let Some(data) = payload.get("data").and_then(Value::as_str) {
        return Some(json!({"type": "redacted_thinking", "data": data}));
    }
    let signature = payload.get("signature")?.as_str()?;
    Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
}

/// Adds the tools, which must be present if the history has calls.
///
/// Without tools, placeholders with the names of the calls are added and disabled.
fn add_tools(request: &Request, body: &mut Map<String, Value>) {
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if tools.is_empty() {
        tools = called_names(request).into_iter().map(stand_in).collect();
        if !tools.is_empty() {
            body.insert("tool_choice".to_owned(), json!({"type": "none"}));
        }
    }
    if let Some(last) = tools.last_mut() {
        last["cache_control"] = mark();
        body.insert("tools".to_owned(), json!(tools));
    }
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": object_schema(&tool.parameters),
    })
}

fn stand_in(name: &str) -> Value {
    json!({
        "name": name,
        "description": "Cannot be called any more.",
        "input_schema": {"type": "object", "properties": {}},
    })
}

/// Returns the distinct names of called tools, in order of their first calls.
fn called_names(request: &Request) -> Vec<&str> {
    let mut names = Vec::new();
    for block in request.messages.iter().flat_map(|message| &message.blocks) {
        if let Block::ToolCall { name, .. } = block
            && !names.contains(&name.as_str())
        {
            names.push(name);
        }
    }
    names
}

/// Returns true if the provider accepts a thinking budget.
///
/// A turn that continues with results must have started with thinking of this model.
fn may_think_on(turns: &[WireMessage]) -> bool {
    let is_a = |value: &Value, kind: &str| value["type"] == kind;
    let [.., previous, last] = turns else {
        return true;
    };
    let goes_on = last
        .blocks
        .iter()
        .any(|(_, block)| is_a(block, "tool_result"));
    let thought = previous
        .blocks
        .first()
        .is_some_and(|(_, block)| is_a(block, "thinking") || is_a(block, "redacted_thinking"));
    !goes_on || thought
}

/// Adds thinking and the output limit, which must exceed the thinking budget.
fn add_thinking(order: &Order<'_>, body: &mut Map<String, Value>, can_think: bool) {
    let mut max_tokens = order.max_output.max(1);
    if let Some(thinking) = order.thinking {
        match (thinking.style, &thinking.value) {
            (_, Value::String(word)) if word == "disabled" || word == "between_tools" => {
                body.insert("thinking".to_owned(), json!({"type": word}));
            }
            (ThinkingStyle::Adaptive, Value::String(effort)) => {
                let adaptive = json!({"type": "adaptive", "display": "summarized"});
                body.insert("thinking".to_owned(), adaptive);
                body.insert("output_config".to_owned(), json!({"effort": effort}));
            }
            (ThinkingStyle::Budget, Value::Number(_)) if !can_think => {
                body.insert("thinking".to_owned(), json!({"type": "disabled"}));
            }
            (ThinkingStyle::Budget, Value::Number(budget)) => {
                let enabled = json!({"type": "enabled", "budget_tokens": budget});
                body.insert("thinking".to_owned(), enabled);
                if let Some(budget) = budget.as_u64().filter(|budget| *budget >= max_tokens) {
                    max_tokens = budget.saturating_add(ANSWER_ROOM);
                }
            }
            _ => {}
        }
    }
    body.insert("max_tokens".to_owned(), json!(max_tokens));
}
