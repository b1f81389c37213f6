//! The built-in tools, one file each. A tool is its file and its line in [`all`].

pub mod bash;

use std::sync::Arc;

use crate::Tool;

/// All of them that need nothing but a machine.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(bash::Bash::default())]
}
