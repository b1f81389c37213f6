//! Connection to a server, independent of the library that speaks the protocol.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;
use tokio::sync::Notify;

use crate::ToolFuture;

/// Failure of a connection or a request.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum McpFailure {
    /// The server answered with an error.
    #[error("{0}")]
    Answered(String),
    /// The connection ended.
    #[error("the connection ended")]
    Closed,
    /// The server wants a login.
    #[error(
        "it needs a login, which ikigai cannot do: set its token in `headers` or `bearer_token_env_var`"
    )]
    Unauthorized,
    /// It speaks no revision that ikigai speaks, or is no MCP server.
    #[error("{0}")]
    Protocol(String),
}

/// Revision of the protocol that a server speaks.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum McpRevision {
    /// With a handshake, until 2025-11-25.
    Handshake,
    /// Without one, since 2026-07-28.
    Stateless,
}

/// Tool as a server lists it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListedTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) schema: Map<String, Value>,
    /// Hint of the server that it changes nothing.
    pub(crate) is_reading: bool,
}

/// Answer of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ToolAnswer {
    pub(crate) parts: Vec<AnswerPart>,
    /// Structured answer, for servers that give nothing else.
    pub(crate) structured: Option<Value>,
    pub(crate) is_error: bool,
}

/// Part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AnswerPart {
    Text(String),
    /// Encoded image, in base64.
    Image(String),
    /// Something that no model gets, described.
    Other(String),
}

/// Changes that a server reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct McpChanges {
    /// Its list of tools changed.
    pub(crate) tools: Arc<Notify>,
}

/// Open connection to a server.
pub(crate) trait McpConnection: Send + Sync {
    /// Returns the revision of the protocol.
    fn revision(&self) -> McpRevision;

    /// Lists the tools; at most `most` of them.
    fn list_tools(&self, most: usize) -> ToolFuture<Result<Vec<ListedTool>, McpFailure>>;

    /// Calls a tool. Dropping the future cancels the call.
    fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> ToolFuture<Result<ToolAnswer, McpFailure>>;

    /// Ends the connection; running calls fail.
    fn close(&self);

    /// Returns true if the connection has ended.
    fn is_closed(&self) -> bool;
}
