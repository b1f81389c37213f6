//! Arguments of `ikigai mcp`.

use clap::{Args, Subcommand};

/// Arguments of `mcp`.
#[derive(Debug, Args)]
pub(crate) struct McpOrder {
    #[command(subcommand)]
    pub(crate) verb: McpVerb,
}

/// Action on MCP servers.
#[derive(Debug, Subcommand)]
pub(crate) enum McpVerb {
    /// Add a server to your config: a command that speaks MCP on its standard streams, or an
    /// address
    #[command(after_help = ADD_HELP)]
    Add(McpAddOrder),
    /// Connect to all servers, and list their states; exit code 1 if one does not run
    List(McpListOrder),
    /// Remove a server from your config
    Remove(McpRemoveOrder),
}

const ADD_HELP: &str = "\
Examples:
  ikigai mcp add everything npx -y @modelcontextprotocol/server-everything
  ikigai mcp add --env 'GITHUB_TOKEN=${GITHUB_TOKEN}' github docker run -i ghcr.io/github/github-mcp-server
  ikigai mcp add docs https://example.com/mcp";

/// Arguments of `mcp add`.
#[derive(Debug, Args)]
pub(crate) struct McpAddOrder {
    /// Environment variable of a command: `NAME=VALUE`; `${NAME}` in the value is one of yours
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,

    /// HTTP header of an address: `NAME: VALUE`; `${NAME}` in the value is one of your variables
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,

    /// Name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Command, or address that begins with http:// or https://
    #[arg(value_name = "COMMAND_OR_URL")]
    pub(crate) target: String,

    /// Arguments of the command
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) arguments: Vec<String>,
}

/// Arguments of `mcp list`.
#[derive(Debug, Args)]
pub(crate) struct McpListOrder {
    /// Print one JSON line per server
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `mcp remove`.
#[derive(Debug, Args)]
pub(crate) struct McpRemoveOrder {
    /// Name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}
