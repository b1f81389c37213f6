//! Arguments of `ikigai acp`.

use clap::Args;

use super::APPROVE_MODES;

/// Arguments of `acp`.
#[derive(Debug, Args)]
pub(crate) struct AcpOrder {
    /// Model of new sessions: `[PROVIDER:]NAME[/LEVEL]`; `ikigai models` lists them
    #[arg(long, short = 'm', value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Permission mode of new sessions: `read`, `ask`, `edits` or `all`
    #[arg(long, short = 'a', value_name = "MODE", value_parser = APPROVE_MODES, hide_possible_values = true)]
    pub(crate) approve: Option<String>,

    /// Run tools without the sandbox: they can change all your files
    #[arg(long)]
    pub(crate) no_sandbox: bool,
}
