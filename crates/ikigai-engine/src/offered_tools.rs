//! Tools of servers that an agent is offered: stored before its first request.
//!
//! Servers come and go while an agent works. Its requests keep the stored list, so that they begin
//! with the same bytes, until a context row or the user changes them anyway. A fact with the next
//! message names the difference, and `mcp_call` reaches tools that are not in the list.

use std::fmt::Write as _;

use ikigai_core::Settings;
use ikigai_core::project::{ToolSpec, estimate_tokens};
use ikigai_store::ReadLog;
use ikigai_tools::mcp::{PREFIX, SEARCH, is_server_tool, server_tool_facts};
use serde_json::{Value, json};

use crate::tools::Toolset;

/// Share of the window, as a divisor, above which schemas are left to `tool_search`.
const DEFERRED_ABOVE: u64 = 10;

/// Share of the window, as a divisor, that a list of names may take.
const NAMES_ABOVE: u64 = 20;

/// Most names in the fact about changes.
const MOST_NAMES: usize = 20;

/// Reads the stored list of an agent; none if it has none or it is unreadable.
pub(crate) async fn stored(store: &dyn ReadLog, settings: &Settings) -> Option<Vec<ToolSpec>> {
    let hash = settings.tools.as_ref()?.hash.as_deref()?.parse().ok()?;
    let bytes = store.blob(hash).await.ok().flatten()?;
    decode(&bytes)
}

fn decode(bytes: &[u8]) -> Option<Vec<ToolSpec>> {
    let list: Vec<Value> = serde_json::from_slice(bytes).ok()?;
    let spec = |tool: Value| {
        let text = |key: &str| Some(tool.get(key)?.as_str()?.to_owned());
        let name = text("name").filter(|name| is_server_tool(name))?;
        Some(ToolSpec {
            facts: server_tool_facts(&name),
            description: text("description")?,
            parameters: tool.get("parameters")?.clone(),
            name,
        })
    };
    Some(list.into_iter().filter_map(spec).collect())
}

/// Encodes a list for its blob.
pub(crate) fn encode(specs: &[ToolSpec]) -> Vec<u8> {
    json!(specs).to_string().into_bytes()
}

/// Returns the tools of servers to offer from now on, within a window of this many tokens.
///
/// Above a tenth of the window only their names are sent, in the description of `tool_search`.
pub(crate) fn to_offer(tools: &Toolset, window: u64) -> Vec<ToolSpec> {
    let mut specs = tools.specs();
    specs.retain(|spec| is_server_tool(&spec.name));
    let size = estimate_tokens(&String::from_utf8_lossy(&encode(&specs)));
    if size <= window / DEFERRED_ABOVE {
        return specs;
    }
    let names = catalogue(&specs, window / NAMES_ABOVE);
    specs.retain(|spec| !spec.name.starts_with(PREFIX));
    for spec in specs.iter_mut().filter(|spec| spec.name == SEARCH) {
        let _ = write!(spec.description, "\n\n{names}");
    }
    specs
}

/// Lists tools with a line each, or by name, or only their number, as the limit allows.
fn catalogue(specs: &[ToolSpec], most_tokens: u64) -> String {
    let tools = || specs.iter().filter(|spec| spec.name.starts_with(PREFIX));
    let with_lines = tools().map(|spec| {
        let first = spec.description.lines().next().unwrap_or_default();
        let first: String = first.chars().take(100).collect();
        format!("{}: {first}", spec.name)
    });
    let head = "Tools of the servers, all through mcp_call:";
    let text = format!("{head}\n{}", with_lines.collect::<Vec<_>>().join("\n"));
    if estimate_tokens(&text) <= most_tokens {
        return text;
    }
    let names: Vec<_> = tools().map(|spec| spec.name.as_str()).collect();
    let text = format!("{head} {}", names.join(", "));
    if estimate_tokens(&text) <= most_tokens {
        return text;
    }
    format!(
        "The servers have {} tools, all through mcp_call.",
        names.len()
    )
}

/// Describes how the tools of servers differ from the stored list; none if they do not.
pub(crate) fn difference(tools: &Toolset, window: u64) -> Option<String> {
    let offered = tools.offered.as_ref()?;
    // Deferred tools are not in the list, and found by searching.
    let present = to_offer(tools, window);
    let names = |specs: &[ToolSpec]| {
        let names = specs.iter().map(|spec| spec.name.clone());
        let names = names.filter(|name| name.starts_with(PREFIX));
        names.collect::<Vec<_>>()
    };
    let (before, now) = (names(offered), names(&present));
    let mut parts = Vec::new();
    let added: Vec<_> = now.iter().filter(|name| !before.contains(name)).collect();
    if !added.is_empty() {
        parts.push(format!("also there, through mcp_call: {}", join(&added)));
    }
    let all: Vec<String> = tools.specs().into_iter().map(|spec| spec.name).collect();
    let gone: Vec<_> = before.iter().filter(|name| !all.contains(name)).collect();
    if !gone.is_empty() {
        parts.push(format!("not there now: {}", join(&gone)));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn join(names: &[&String]) -> String {
    let shown: Vec<&str> = names
        .iter()
        .take(MOST_NAMES)
        .map(|it| it.as_str())
        .collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    let shown = shown.join(", ");
    if more == 0 {
        shown
    } else {
        format!("{shown} and {more} more, which tool_search finds")
    }
}
