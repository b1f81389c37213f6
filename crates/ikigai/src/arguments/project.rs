//! Arguments of the commands about a project: `tools` and `trust`.

use clap::Args;

/// Arguments of `tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsOrder {
    /// Trust the project's tools in `.ikigai/tools` as they are now
    #[arg(long)]
    pub(crate) allow: bool,

    /// Print one JSON line per tool: name, description and schema
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `trust`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct TrustOrder {
    /// Trust everything that is listed, as it is now
    #[arg(long, short = 'y', conflicts_with_all = ["no", "revoke"])]
    pub(crate) yes: bool,

    /// Refuse everything that is listed, as it is now
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) no: bool,

    /// Forget all decisions about this project
    #[arg(long)]
    pub(crate) revoke: bool,

    /// Print one JSON line per item
    #[arg(long)]
    pub(crate) json: bool,
}
