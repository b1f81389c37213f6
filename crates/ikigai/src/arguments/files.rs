//! Arguments of the commands about changed files.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffOrder {
    /// Agent (name, id, or start of an id)
    #[arg(value_name = "AGENT")]
    pub(crate) agent: String,

    /// Only the changes of these events, such as 12..40
    #[arg(value_name = "A..B")]
    pub(crate) range: Option<String>,

    /// Also the changes of all agents below it
    #[arg(long)]
    pub(crate) family: bool,
}

/// Arguments of `blame`.
#[derive(Debug, Args)]
pub(crate) struct BlameOrder {
    /// File, and perhaps a line of it: `src/main.rs` or `src/main.rs:12`
    #[arg(value_name = "FILE[:LINE]")]
    pub(crate) file: PathBuf,

    /// Print the facts about each line for programs
    #[arg(long)]
    pub(crate) porcelain: bool,
}
