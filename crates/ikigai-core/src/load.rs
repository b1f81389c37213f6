//! Conversion of rows to messages.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::data::{self, AssistantData, Opaque, StoredImage, StoredThinking, Tagged, UserData};
use crate::event::Row;
use crate::ids::RowRef;
use crate::json::take;
use crate::kind::Kind;
use crate::message::{Block, BlockItem, Image, Message, Payload, Role};

/// Conversation part of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// The row is a message.
    Message(Part),
    /// The row is no message.
    Nothing,
}

/// A message with its links to others. Row JSON is parsed here once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The message: the row's block, after the thinking that preceded it.
    pub message: Message,
    /// Number of the response that it belongs to; older rows have none.
    pub response: Option<u64>,
    /// The call that a result answers; older rows have none.
    pub answers: Option<RowRef>,
    /// Tool of a result, for the screen; older rows may lack it.
    pub tool: Option<String>,
}

/// Error for a row that is not the message its kind promises. Owned: it outlives the row.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// This program does not know the kind.
    #[error("unknown kind `{0}`")]
    UnknownKind(String),
    /// A conversation row has no text.
    #[error("the text is missing")]
    NoContent,
    /// A tool row has no data.
    #[error("the data is missing")]
    NoData,
    /// The data is no JSON.
    #[error("the data is not valid JSON")]
    NotJson,
    /// The data is JSON, but no object.
    #[error("the data is not a JSON object")]
    NotObject,
    /// A field is missing or has the wrong type.
    #[error("the field `{0}` is missing or not a string")]
    Field(&'static str),
    /// A rewind names no row that its agent holds.
    #[error("the rewind names no row that the agent holds")]
    RewindTarget,
}

/// Loads a row. Total: no stored bytes can make it panic.
pub fn load(row: &Row) -> Result<Loaded, LoadError> {
    let Some(kind) = row.kind.read_as() else {
        return Err(LoadError::UnknownKind(
            row.kind.name().chars().take(64).collect(),
        ));
    };
    match kind {
        Kind::User => load_user(row).map(Loaded::Message),
        Kind::Assistant => load_assistant(row).map(Loaded::Message),
        Kind::ToolCall => load_tool_call(row).map(Loaded::Message),
        Kind::ToolResult => load_tool_result(row).map(Loaded::Message),
        Kind::System => content_of(row).map(|_| Loaded::Nothing),
        Kind::Clear
        | Kind::Mark
        | Kind::Rewind
        | Kind::Fork
        | Kind::Command
        | Kind::AgentKilled
        | Kind::Usage
        | Kind::Interrupted
        | Kind::Error
        | Kind::Summary
        | Kind::Process
        | Kind::Files => Ok(Loaded::Nothing),
    }
}

fn content_of(row: &Row) -> Result<&str, LoadError> {
    row.content.as_deref().ok_or(LoadError::NoContent)
}

fn load_user(row: &Row) -> Result<Part, LoadError> {
    let mut message = Message::text(Role::User, content_of(row)?);
    // Few rows have images, and every row of a view is loaded.
    let with_images = row.data.as_deref().filter(|data| data.contains("images"));
    let data: UserData = data::read(with_images);
    message
        .blocks
        .extend(images_of(data.images).map(Block::Image));
    Ok(Part {
        message,
        response: None,
        answers: None,
        tool: None,
    })
}

fn load_assistant(row: &Row) -> Result<Part, LoadError> {
    let text = content_of(row)?;
    let data: AssistantData = data::read(row.data.as_deref());
    let block = Block::Text {
        text: text.to_owned(),
    };
    Ok(Part {
        message: assistant_message(block, data.opaque.unwrap_or_default()),
        response: data.response,
        answers: None,
        tool: None,
    })
}

fn images_of(stored: Option<Vec<StoredImage>>) -> impl Iterator<Item = Image> {
    stored.into_iter().flatten().filter_map(Image::of)
}

/// Puts the thinking before its block and attaches the item to the block.
fn assistant_message(block: Block, opaque: Opaque) -> Message {
    let thinking = opaque.thinking.unwrap_or_default();
    let mut blocks: Vec<_> = thinking.into_iter().map(thinking_block).collect();
    let metadata = opaque.item.and_then(payload_of).map(|item| BlockItem {
        block: blocks.len(),
        item,
    });
    blocks.push(block);
    Message {
        role: Role::Assistant,
        blocks,
        metadata: metadata.into_iter().collect(),
    }
}

fn thinking_block(stored: StoredThinking) -> Block {
    let StoredThinking {
        text,
        provider,
        model,
        payload,
    } = stored;
    Block::Thinking {
        text: text.unwrap_or_default(),
        payload: payload_of(Tagged {
            provider,
            model,
            payload,
        }),
    }
}

/// Returns the payload; without provider and model it may not be sent, so none.
fn payload_of(tagged: Tagged) -> Option<Payload> {
    Some(Payload {
        provider: tagged.provider?,
        model: tagged.model?,
        payload: tagged.payload?,
    })
}

fn object_of(row: &Row) -> Result<Map<String, Value>, LoadError> {
    let text = match row.data.as_deref() {
        None | Some("") => return Err(LoadError::NoData),
        Some(text) => text,
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(LoadError::NotObject),
        Err(_) => Err(LoadError::NotJson),
    }
}

fn take_string(map: &mut Map<String, Value>, field: &'static str) -> Result<String, LoadError> {
    match map.remove(field) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(LoadError::Field(field)),
    }
}

fn load_tool_call(row: &Row) -> Result<Part, LoadError> {
    let mut map = object_of(row)?;
    let response = take(&mut map, "response");
    let opaque = take(&mut map, "opaque").unwrap_or_default();
    let neutral = neutral_shape(&mut map);
    let (block, opaque) = match neutral {
        Ok(block) => (block, opaque),
        // For data of no known shape, report the error of the neutral one.
        Err(error) => older_shape(&map).ok_or(error)?,
    };
    Ok(Part {
        message: assistant_message(block, opaque),
        response,
        answers: None,
        tool: None,
    })
}

/// Reads `{"tool_call_id","name","arguments"}`; leaves a map of another shape unchanged.
fn neutral_shape(map: &mut Map<String, Value>) -> Result<Block, LoadError> {
    for field in ["tool_call_id", "name", "arguments"] {
        if !map.get(field).is_some_and(Value::is_string) {
            return Err(LoadError::Field(field));
        }
    }
    Ok(Block::ToolCall {
        id: take_string(map, "tool_call_id")?,
        name: take_string(map, "name")?,
        arguments: take_string(map, "arguments")?,
    })
}

/// Reads the two shapes of older programs; none if the data has neither.
fn older_shape(map: &Map<String, Value>) -> Option<(Block, Opaque)> {
    function_shape(map)
        .map(|block| (block, Opaque::default()))
        .or_else(|| tool_args_shape(map))
}

/// Reads `{"id","type","function":{"name","arguments"}}`.
fn function_shape(map: &Map<String, Value>) -> Option<Block> {
    let function = map.get("function")?.as_object()?;
    Some(Block::ToolCall {
        id: map.get("id")?.as_str()?.to_owned(),
        name: function.get("name")?.as_str()?.to_owned(),
        arguments: function.get("arguments")?.as_str()?.to_owned(),
    })
}

/// Reads `{"tool_call_id","tool_name","tool_args"}`, perhaps with untagged thinking.
fn tool_args_shape(map: &Map<String, Value>) -> Option<(Block, Opaque)> {
    let block = Block::ToolCall {
        id: map.get("tool_call_id")?.as_str()?.to_owned(),
        name: map.get("tool_name")?.as_str()?.to_owned(),
        arguments: map.get("tool_args")?.as_str()?.to_owned(),
    };
    let thinking = map.get("thinking").filter(|value| !value.is_null());
    let redacted = map
        .get("redacted_thinking")
        .filter(|value| !value.is_null());
    let opaque = Opaque {
        thinking: Some(
            thinking
                .map(untagged_thinking)
                .into_iter()
                .chain(redacted.map(|_| load_untagged("")))
                .collect(),
        ),
        item: None,
    };
    Some((block, opaque))
}

/// Returns the readable text of an older row's thinking.
fn untagged_thinking(value: &Value) -> StoredThinking {
    let inner = || value.get("thinking").or_else(|| value.get("text"));
    let text = value.as_str().or_else(|| inner()?.as_str());
    load_untagged(text.unwrap_or_default())
}

/// Makes thinking of an unknown provider, which is never sent; its payload stays in the row.
fn load_untagged(text: &str) -> StoredThinking {
    StoredThinking {
        text: Some(text.to_owned()),
        ..StoredThinking::default()
    }
}

fn load_tool_result(row: &Row) -> Result<Part, LoadError> {
    let mut map = object_of(row)?;
    let tool_call_id = take_string(&mut map, "tool_call_id")?;
    let output = take_string(&mut map, "output")?;
    let success = matches!(map.get("success"), Some(Value::Bool(true)));
    let mut message = Message::tool_result(tool_call_id, output, !success);
    if let Some(Block::ToolResult { images, .. }) = message.blocks.last_mut() {
        images.extend(images_of(take(&mut map, "images")));
    }
    Ok(Part {
        message,
        response: None,
        answers: take(&mut map, "call"),
        tool: take(&mut map, "name"),
    })
}
