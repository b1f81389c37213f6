//! Provider-neutral messages of a conversation.

use serde::Serialize;
use serde_json::{Map, Value};

/// Author of a message. There is no system role: requests have a system field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user, or an agent or program in the user's place.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// Opaque payload, for the provider and model that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Payload {
    /// The provider that made it.
    pub provider: String,
    /// The model that made it.
    pub model: String,
    /// The provider's own JSON, as text, verbatim.
    pub payload: String,
}

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A tool call of the model.
    ToolCall {
        /// Pairs the call with its result.
        id: String,
        /// Name of the tool.
        name: String,
        /// Its arguments as the model wrote them.
        arguments: String,
    },
    /// Result of a tool call.
    ToolResult {
        /// The call that is answered.
        tool_call_id: String,
        /// Output of the tool.
        content: String,
        /// True if the tool failed.
        is_error: bool,
    },
    /// Thinking of the model.
    Thinking {
        /// Readable text of the thinking.
        text: String,
        /// Signature, redacted data or encrypted reasoning.
        #[serde(skip_serializing_if = "Option::is_none")]
        payload: Option<Payload>,
    },
}

/// Opaque payload of one block of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockItem {
    /// Index of the block.
    pub block: usize,
    /// The payload.
    #[serde(flatten)]
    pub item: Payload,
}

/// A role, an ordered list of blocks, and opaque provider metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Author of the message.
    pub role: Role,
    /// Parts of the message, in order.
    pub blocks: Vec<Block>,
    /// Opaque payloads of the blocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metadata: Vec<BlockItem>,
}

impl Message {
    /// Makes a message of one text block.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::of(role, Block::Text { text: text.into() })
    }

    /// Makes an assistant message of one tool call.
    pub fn tool_call(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        let block = Block::ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        };
        Self::of(Role::Assistant, block)
    }

    /// Makes a tool message of one result.
    pub fn tool_result(
        tool_call_id: impl Into<String>,
        content: impl Into<String>,
        is_error: bool,
    ) -> Self {
        let block = Block::ToolResult {
            tool_call_id: tool_call_id.into(),
            content: content.into(),
            is_error,
        };
        Self::of(Role::Tool, block)
    }

    fn of(role: Role, block: Block) -> Self {
        Self {
            role,
            blocks: vec![block],
            metadata: Vec::new(),
        }
    }
}

/// Parses a call's arguments for a provider that requires an object; anything else becomes empty.
///
/// A [`Block::ToolCall`] keeps the model's text unchanged.
pub fn arguments_object(arguments: &str) -> Map<String, Value> {
    serde_json::from_str(arguments).unwrap_or_default()
}

/// The messages of one agent, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Conversation {
    messages: Vec<Message>,
}

impl Conversation {
    /// Appends a message and returns it.
    pub fn add(&mut self, message: Message) -> &Message {
        let at = self.messages.len();
        self.messages.push(message);
        &self.messages[at]
    }

    /// Removes all messages.
    pub fn clear(&mut self) {
        self.messages.clear();
    }

    /// Returns the messages, oldest first.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns true if there are no messages.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}
