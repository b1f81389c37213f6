//! Servers of the Model Context Protocol: programs and addresses that bring tools.
//!
//! A server is started in the background when an agent needs it, and again when it ends. Its tools
//! are cached, so that no request waits for a known server. Everything that a server sends is
//! bounded and cleaned. Only [`library`] knows the library that speaks the protocol.

mod answer;
mod connection;
mod error_tail;
#[cfg(feature = "mcp")]
mod library;
#[cfg(not(feature = "mcp"))]
#[path = "no_library.rs"]
mod library;
mod line_filter;
mod list_cache;
mod names;
mod search;
mod server;
mod servers;
mod settings;
mod tool;

pub use names::{PREFIX, tool_name};
pub use search::{CALL, SEARCH, called_by_name, is_server_tool, server_tool_facts};
pub use servers::{
    McpPlaces, McpServers, McpStatus, McpStatusPhase, ProjectServers, ProjectServersReader,
};
pub use settings::{
    McpAddress, McpDefinition, McpLaunch, McpProcess, McpServerSettings, VariableLookup,
};
