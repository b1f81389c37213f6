//! Arguments of `workspace`.

use clap::{Args, Subcommand};

/// Arguments of `workspace`.
#[derive(Debug, Args)]
pub(crate) struct WorkspaceOrder {
    /// Print one JSON line per workspace
    #[arg(long)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) verb: Option<WorkspaceVerb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceVerb {
    /// Give the agents of a workspace to this directory of this machine
    ///
    /// Use it after the machine was renamed, restored or replaced, or after the directory was
    /// moved. Agents that another running ikigai holds are not taken.
    Adopt {
        /// Name, id or directory of the workspace, as `ikigai workspace` lists them
        #[arg(value_name = "OLD")]
        old: String,
    },
}
