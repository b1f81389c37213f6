//! Updates of a session, as the client gets them.

use ikigai_core::project::ToolAction;
use ikigai_core::words::Severity;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Update of a session.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
pub(super) enum SessionUpdate {
    /// Message of the user.
    UserMessageChunk(ContentChunk),
    /// Text of the agent.
    AgentMessageChunk(ContentChunk),
    /// Thinking of the agent.
    AgentThoughtChunk(ContentChunk),
    /// A tool call has begun.
    ToolCall(ToolCallChange),
    /// Changed fields of a tool call.
    ToolCallUpdate(ToolCallChange),
    /// Text for the user that is no part of the conversation.
    Notice(NoticeText),
}

impl SessionUpdate {
    /// Makes a notice.
    pub(super) fn notice(severity: Severity, text: &str) -> Self {
        Self::Notice(NoticeText {
            severity: match severity {
                Severity::Info => "info",
                Severity::Warning => "warning",
            },
            title: text.to_owned(),
        })
    }
}

/// Text of a notice.
#[derive(Clone, Debug, Serialize)]
pub(super) struct NoticeText {
    severity: &'static str,
    title: String,
}

/// Part of a message.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContentChunk {
    content: TextContent,
    /// Message that it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
}

/// Text, as a block of content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct TextContent {
    #[serde(rename = "type")]
    kind: &'static str,
    text: String,
}

impl TextContent {
    fn new(text: impl Into<String>) -> Self {
        Self {
            kind: "text",
            text: text.into(),
        }
    }
}

impl ContentChunk {
    pub(super) fn new(text: impl Into<String>, message_id: Option<String>) -> Self {
        Self {
            content: TextContent::new(text),
            message_id,
        }
    }
}

/// A tool call, or its changed fields.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolCallChange {
    pub(super) tool_call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// Name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<CallKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<CallStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<Vec<CallContent>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) locations: Option<Vec<CallLocation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_input: Option<Value>,
}

/// Kind of a tool call, for its icon.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallKind(pub(super) ToolAction);

impl Serialize for CallKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self.0 {
            ToolAction::Read => "read",
            ToolAction::Edit => "edit",
            ToolAction::Search => "search",
            ToolAction::Execute => "execute",
            ToolAction::Fetch => "fetch",
            ToolAction::Think => "think",
            ToolAction::Other => "other",
        })
    }
}

/// Status of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CallStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

/// Part of a tool call's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum CallContent {
    Content {
        content: TextContent,
    },
    #[serde(rename_all = "camelCase")]
    Diff {
        path: String,
        old_text: Option<String>,
        new_text: String,
    },
}

impl CallContent {
    /// Makes text that is shown as it is, in a code block.
    pub(super) fn verbatim(text: &str) -> Self {
        let longest = text.split(|character| character != '`').map(str::len).max();
        let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
        Self::text(format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n')))
    }

    pub(super) fn text(text: String) -> Self {
        Self::Content {
            content: TextContent::new(text),
        }
    }
}

/// File of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct CallLocation {
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u64>,
}

/// Updates of a session, with its id.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionNotification<'a> {
    pub(super) session_id: &'a str,
    pub(super) update: &'a SessionUpdate,
}
