//! Fixed tools for all servers: a search, and a call by name.
//!
//! Their descriptions change with no server, so that a request keeps its beginning while servers
//! come and go.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::counts::counted;
use ikigai_core::project::{ToolFacts, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::names::PREFIX;
use super::servers::McpServers;
use crate::arguments::{self, ToolArguments};
use crate::{BadArguments, Output, Place, Prepared, Run, Tool, Touches};

/// Name of the tool that calls others by name.
pub const CALL: &str = "mcp_call";

/// Name of the tool that finds others.
pub const SEARCH: &str = "tool_search";

/// Most tools that a search returns with their schemas.
const MOST_FOUND: usize = 10;

/// Limit of a search, which only reads memory.
const DEADLINE: Duration = Duration::from_secs(10);

/// Returns true for a tool of a server and for the fixed ones.
pub fn is_server_tool(name: &str) -> bool {
    name.starts_with(PREFIX) || name == CALL || name == SEARCH
}

/// Returns the facts of a fixed tool or a tool of a server.
pub fn server_tool_facts(name: &str) -> ToolFacts {
    if name == SEARCH {
        ToolFacts::READING
    } else {
        ToolFacts::default()
    }
}

/// Returns tool and arguments of a call by name; none if it is another call or malformed.
pub fn called_by_name(name: &str, arguments: &str) -> Option<(String, String)> {
    if name != CALL {
        return None;
    }
    let call: Value = serde_json::from_str(arguments).ok()?;
    let tool = call.get("tool")?.as_str()?;
    let given = match call.get("arguments") {
        None | Some(Value::Null) => "{}".to_owned(),
        // Models often encode an object twice.
        Some(Value::String(text)) => text.clone(),
        Some(given) => given.to_string(),
    };
    tool.starts_with(PREFIX).then(|| (tool.to_owned(), given))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct McpSearchArguments {
    /// Words of names and descriptions; the best tools come first. Empty: all names.
    #[serde(default)]
    query: String,
}

impl ToolArguments for McpSearchArguments {}

/// Finds tools of servers.
pub(super) struct McpSearch(pub(super) Arc<McpServers>);

impl Tool for McpSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: SEARCH.to_owned(),
            description: "Finds tools of MCP servers by words of their names and descriptions, \
                          and returns the schemas of their arguments. Call them directly if they \
                          are among your tools, else through mcp_call."
                .to_owned(),
            parameters: arguments::schema_of::<McpSearchArguments>(),
            facts: server_tool_facts(SEARCH),
        }
    }

    fn prepare(&self, text: &str, place: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read::<McpSearchArguments>(text)?;
        let (servers, workdir) = (self.0.clone(), place.workdir.clone());
        let query = call.values.query;
        let prepared = Prepared {
            class: EffectClass::Read,
            touches: Touches::default(),
            shown: call.shown,
            subject: query.clone(),
            pattern: "*".to_owned(),
            preview: None,
            deadline: DEADLINE,
            needs: Vec::new(),
            unconfined: None,
            run: Run::Async(Box::new(move |_| {
                Box::pin(async move {
                    let tools = servers.tools_of_servers(&workdir).await;
                    let specs = tools.iter().map(|tool| tool.spec()).collect();
                    found(specs, &query)
                })
            })),
        };
        Ok(prepared.with_remark(call.remark))
    }
}

fn found(specs: Vec<ToolSpec>, query: &str) -> Output {
    let query = query.to_lowercase();
    let words: Vec<&str> = query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    if words.is_empty() {
        let names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
        return Output::done(names.join("\n"), counted(names.len(), "tool"));
    }
    let mut scored: Vec<_> = specs
        .into_iter()
        .map(|spec| (score(&spec, &words), spec))
        .filter(|(score, _)| *score > 0)
        .collect();
    scored.sort_by(|(one, first), (other, second)| {
        other.cmp(one).then_with(|| first.name.cmp(&second.name))
    });
    let all = scored.len();
    let mut body = String::new();
    for (_, spec) in scored.into_iter().take(MOST_FOUND) {
        let tool = json!({
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
        });
        let _ = writeln!(body, "{tool}");
    }
    if all > MOST_FOUND {
        let _ = writeln!(body, "[{} more: use other words]", all - MOST_FOUND);
    }
    if all == 0 {
        body.push_str("no tool has these words; an empty query lists all names\n");
    }
    Output::done(body, counted(all, "tool"))
}

/// Counts words that a tool has: names weigh more.
fn score(spec: &ToolSpec, words: &[&str]) -> usize {
    let (name, description) = (spec.name.to_lowercase(), spec.description.to_lowercase());
    let weigh = |word: &&str| {
        3 * usize::from(name.contains(*word)) + usize::from(description.contains(*word))
    };
    words.iter().map(weigh).sum()
}

/// Calls a tool of a server by name.
///
/// The engine takes such calls for calls of the named tool, so only malformed ones come here.
pub(super) struct McpCall;

impl Tool for McpCall {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: CALL.to_owned(),
            description: "Calls a tool of an MCP server that is not among your tools: one that \
                          tool_search found, or that a note named."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "tool": {"type": "string", "description": "name of the tool: mcp__SERVER__TOOL"},
                    "arguments": {"type": "object", "description": "its arguments, as its schema says"},
                },
                "required": ["tool"],
            }),
            facts: server_tool_facts(CALL),
        }
    }

    fn prepare(&self, _text: &str, _place: &Place) -> Result<Prepared, BadArguments> {
        Err(BadArguments(
            "the arguments do not fit: `tool` must be the name of a tool of an MCP server, such as \
             mcp__git__status, and `arguments` an object"
                .to_owned(),
        ))
    }
}

#[cfg(test)]
mod tests;
