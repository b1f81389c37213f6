//! Stands for the library where ikigai is built without it.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::{McpChanges, McpConnection, McpFailure, McpRevision};
use super::settings::McpAddress;

fn missing() -> McpFailure {
    McpFailure::Protocol("ikigai was built without MCP".to_owned())
}

/// Fails: there is no library.
pub(super) async fn connect_pipes(
    _output: impl AsyncRead + Send + Unpin + 'static,
    _input: impl AsyncWrite + Send + Unpin + 'static,
    _revision: Option<McpRevision>,
    _changes: McpChanges,
) -> Result<Arc<dyn McpConnection>, McpFailure> {
    Err(missing())
}

/// Fails: there is no library.
pub(super) async fn connect_http(
    _address: &McpAddress,
    _revision: Option<McpRevision>,
    _changes: McpChanges,
) -> Result<Arc<dyn McpConnection>, McpFailure> {
    Err(missing())
}
