//! Command on MCP servers: `/mcp`.

use std::fmt::Write as _;
use std::path::Path;

use ikigai_tools::mcp::{McpStatus, McpStatusPhase};

use super::{Command, Group, Reply, Shows, SlashCommand, Takes, Trouble, Typed};
use crate::turn::CommandContext;

pub(super) const MCP: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[NAME]",
        help: "list the MCP servers, or show the tools and errors of one",
        examples: &[
            ("/mcp", "list the servers of the configuration"),
            ("/mcp git", "show the state, tools and last errors of git"),
        ],
        takes: Takes::Words,
        shows: Shows::Overlay,
        ..Command::new("mcp", Group::Tools)
    },
    handler: |ctx, typed| Box::pin(mcp(ctx, typed)),
};

async fn mcp(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let workdir = ctx.settings().workdir.as_deref().unwrap_or("/");
    let servers = ctx.engine().tool_source().servers(Path::new(workdir)).await;
    let text = match typed.one("mcp")? {
        None if servers.is_empty() => {
            "No MCP servers · ikigai mcp add NAME COMMAND in a shell adds one".to_owned()
        }
        None => list(&servers),
        Some(name) => match servers.iter().find(|server| server.name == name) {
            Some(server) => show(server),
            None => return Trouble::refused(format!("no MCP server {name} · /mcp lists them")),
        },
    };
    // Servers print what they like, keys too.
    let text = (ctx.engine().safety().blank)(text.as_bytes()).into_owned();
    Ok(Reply::says(String::from_utf8_lossy(&text)))
}

fn list(servers: &[McpStatus]) -> String {
    let widths = servers.iter().map(|server| server.name.chars().count());
    let widest = widths.max().unwrap_or(0);
    let mut text = String::new();
    for server in servers {
        let _ = writeln!(
            text,
            "{} {:<widest$}  {}",
            server.symbol(),
            server.name,
            server.describe_phase()
        );
    }
    text.push_str("/mcp NAME shows tools and errors");
    text
}

fn show(server: &McpStatus) -> String {
    let mut text = format!(
        "{} {}  {}",
        server.symbol(),
        server.name,
        server.describe_phase()
    );
    if !server.way.is_empty() {
        let _ = write!(text, "\n{}", server.way);
    }
    for tool in &server.tools {
        let _ = write!(text, "\n  {tool}");
    }
    for (tool, reason) in &server.refused {
        let _ = write!(text, "\n  ⚠ {tool} is not offered: {reason}");
    }
    if !server.errors.is_empty() {
        text.push_str("\nlast errors:");
        for line in &server.errors {
            let _ = write!(text, "\n  {line}");
        }
    }
    if server.phase == McpStatusPhase::Idle {
        text.push_str("\nIt starts with the next message or call");
    }
    text
}
