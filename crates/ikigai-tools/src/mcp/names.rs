//! Names and descriptions of a server's tools, bounded and cleaned.

use ikigai_core::project::{ToolFacts, ToolSpec};
use ikigai_core::spelling;
use serde_json::{Map, Value, json};

use super::connection::ListedTool;
use crate::files::sha256_hex;

/// Prefix of all tools of servers.
pub const PREFIX: &str = "mcp__";

/// Longest name that all providers accept.
const MOST_NAME_BYTES: usize = 64;

/// Digits of the hash that makes a shortened name unique.
const HASH_DIGITS: usize = 6;

/// Longest description, in characters.
const MOST_DESCRIPTION_CHARS: usize = 2_000;

/// Largest schema, as JSON.
const MOST_SCHEMA_BYTES: usize = 32 * 1024;

/// Returns the name under which models call a tool: `mcp__server__tool`.
///
/// Other characters than letters, digits, `_` and `-` become `_`; a hash ends a name that is too
/// long.
pub fn tool_name(server: &str, tool: &str) -> String {
    let name = format!("{PREFIX}{}__{}", legal(server), legal(tool));
    if name.len() <= MOST_NAME_BYTES {
        return name;
    }
    let hash = sha256_hex(format!("{server}\0{tool}").as_bytes());
    let head = &name[..MOST_NAME_BYTES - HASH_DIGITS - 1];
    format!("{head}_{}", &hash[..HASH_DIGITS])
}

fn legal(name: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.chars()
        .map(|c| if keep(c) { c } else { '_' })
        .collect()
}

/// Returns the description of a tool for models; the error says why it cannot be offered.
pub(super) fn spec_of(server: &str, tool: &ListedTool) -> Result<ToolSpec, String> {
    let parameters = parameters_of(&tool.schema)?;
    Ok(ToolSpec {
        name: tool_name(server, &tool.name),
        description: shorten(&spelling::clean(&tool.description)),
        parameters,
        facts: ToolFacts::default(),
    })
}

fn parameters_of(schema: &Map<String, Value>) -> Result<Value, String> {
    let mut schema = schema.clone();
    // It says nothing about arguments, and some providers refuse it.
    schema.remove("$schema");
    let kind = schema.entry("type").or_insert_with(|| json!("object"));
    if kind != "object" {
        return Err("its arguments are not an object".to_owned());
    }
    schema.entry("properties").or_insert_with(|| json!({}));
    let schema = Value::Object(schema);
    let text = schema.to_string();
    if text.len() > MOST_SCHEMA_BYTES {
        let most = MOST_SCHEMA_BYTES / 1024;
        return Err(format!("its schema is larger than {most} KB"));
    }
    match spelling::clean(&text) {
        cleaned if cleaned == text => Ok(schema),
        cleaned => serde_json::from_str(&cleaned).map_err(|error| error.to_string()),
    }
}

fn shorten(text: &str) -> String {
    match text.trim().char_indices().nth(MOST_DESCRIPTION_CHARS) {
        None => text.trim().to_owned(),
        Some((end, _)) => format!("{}…", &text.trim()[..end]),
    }
}
