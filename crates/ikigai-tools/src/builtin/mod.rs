//! Built-in tools, one file each, with a line in [`all`] and in [`FACTS`].

pub mod bash;
mod change;
mod file_edit;
mod file_read;
mod file_write;
mod glob;
mod grep;
mod process;
pub mod skill;
mod text_suggestion;
mod todo;
mod walk;
pub mod web_fetch;
pub mod web_search;

use std::sync::Arc;

use ikigai_core::project::ToolFacts;

use crate::Tool;
use crate::process::ChildEnvironment;
use crate::tool_names::current_name;

/// Returns the tools that need no configuration; their processes get this environment.
pub fn all(environment: ChildEnvironment) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(bash::Bash::new(environment)),
        Arc::new(file_edit::FileEdit),
        Arc::new(file_read::FileRead),
        Arc::new(file_write::FileWrite),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
        Arc::new(process::ProcessTool),
        Arc::new(todo::Todo),
    ]
}

/// Facts of all built-in tools, by name.
const FACTS: &[(&str, ToolFacts)] = &[
    (bash::NAME, bash::FACTS),
    (file_edit::NAME, file_edit::FACTS),
    (file_read::NAME, file_read::FACTS),
    (file_write::NAME, file_write::FACTS),
    (glob::NAME, glob::FACTS),
    (grep::NAME, grep::FACTS),
    (process::NAME, process::FACTS),
    (skill::NAME, skill::FACTS),
    (todo::NAME, todo::FACTS),
    (web_fetch::NAME, web_fetch::FACTS),
    (web_search::NAME, web_search::FACTS),
];

/// Returns the facts of a built-in tool, switched on or not.
pub fn facts(name: &str) -> Option<ToolFacts> {
    let name = current_name(name);
    let found = FACTS.iter().find(|(tool, _)| *tool == name);
    found.map(|(_, facts)| *facts)
}

#[cfg(test)]
mod tests;
