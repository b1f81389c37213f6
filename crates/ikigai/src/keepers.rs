//! Keepers of background processes: the hidden subcommand, and the place of their files.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use ikigai_engine::Keepers;
use ikigai_tools::process::keeper::{self, KeeperProgram};

use crate::config::{self, Work};

/// Name of the subcommand.
const VERB: &str = "keeper";

/// Directory of the processes' files in the local state directory.
const DIRECTORY: &str = "processes";

/// Runs as a keeper.
pub(crate) fn keep() -> Result<ExitCode> {
    keeper::keep().context("cannot keep the background process")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the name of this machine.
pub(crate) fn this_host() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

/// Returns the keepers of this program; none without a state directory.
pub(crate) fn keepers(work: &Work) -> Option<Keepers> {
    Some(Keepers {
        program: KeeperProgram::this([VERB.into()]).ok()?,
        directory: config::state_home()?.join(DIRECTORY),
        time_limit: work.limits.process_time(),
        host: this_host(),
    })
}
