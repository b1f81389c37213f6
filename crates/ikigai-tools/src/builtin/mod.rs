//! The built-in tools, one file each. A tool is its file and its line in [`all`].

pub mod bash;
mod change;
mod file_edit;
mod file_read;
mod file_write;
mod glob;
mod grep;
mod list;
mod near;
mod walk;
pub mod web_fetch;
pub mod web_search;

use std::sync::Arc;

use crate::Tool;
use crate::process::Environment;

/// All of them that need nothing but a machine; their processes get this environment.
pub fn all(environment: Environment) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(bash::Bash::new(environment)),
        Arc::new(file_edit::FileEdit),
        Arc::new(file_read::FileRead),
        Arc::new(file_write::FileWrite),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
        Arc::new(list::List),
    ]
}
