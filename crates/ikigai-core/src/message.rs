//! Provider-neutral messages of a conversation.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::data::StoredImage;

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

/// Image of a message: a blob, whose bytes the request has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Image {
    /// Hash of the bytes.
    pub hash: String,
    /// Media type, such as `image/png`.
    pub media_type: String,
    /// Width in pixels; 0 if unknown.
    #[serde(skip)]
    pub width: u32,
    /// Height in pixels; 0 if unknown.
    #[serde(skip)]
    pub height: u32,
    /// Number of bytes; 0 if unknown.
    #[serde(skip)]
    pub bytes: u64,
}

impl Image {
    /// Reads a stored image; none without hash or type.
    pub fn of(stored: StoredImage) -> Option<Self> {
        Some(Self {
            hash: stored.hash?,
            media_type: stored.r#type?,
            width: stored.width.unwrap_or(0),
            height: stored.height.unwrap_or(0),
            bytes: stored.bytes.unwrap_or(0),
        })
    }
}

/// Bytes of the images of a request, by their hashes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ImageBytes(BTreeMap<String, Arc<[u8]>>);

impl ImageBytes {
    /// Adds an image.
    pub fn insert(&mut self, hash: String, bytes: Arc<[u8]>) {
        self.0.insert(hash, bytes);
    }

    /// Returns the bytes of an image; none if it is not stored or the model takes no images.
    pub fn get(&self, image: &Image) -> Option<&[u8]> {
        self.0.get(&image.hash).map(AsRef::as_ref)
    }
}

impl fmt::Debug for ImageBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
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
        /// Images of the output.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// Image of the user.
    Image(Image),
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
            images: Vec::new(),
        };
        Self::of(Role::Tool, block)
    }

    /// Returns its images, those of results included.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.blocks.iter().flat_map(|block| match block {
            Block::Image(image) => std::slice::from_ref(image),
            Block::ToolResult { images, .. } => images,
            Block::Text { .. } | Block::ToolCall { .. } | Block::Thinking { .. } => &[],
        })
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
