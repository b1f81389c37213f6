//! Background work after the screen is left.
//!
//! Another ikigai takes the agents over, without a terminal and in a separate session, and ends
//! when they are done.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use ikigai_core::AgentId;
use ikigai_tui::terminal::exit_time_left;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::store_location::StoreLocation;

/// Part of the time for leaving reserved for final output on the terminal.
const EXIT_MARGIN: Duration = Duration::from_millis(100);

/// Starts the background process and waits until it has the agents.
///
/// It uses the same store, and the sandbox only if this process does. The wait is limited by the
/// time for leaving.
pub(crate) fn hand_over(store: &StoreLocation, no_sandbox: bool, agents: &[AgentId]) -> Result<()> {
    let Some(first) = agents.first() else {
        return Ok(());
    };
    let program = std::env::current_exe().context("cannot find the program file")?;
    let mut command = Command::new(program);
    command.args(["--headless", "--until-idle"]);
    if no_sandbox {
        command.arg("--no-sandbox");
    }
    store.pass_to(&mut command);
    command.args(["--agent", &first.to_string()]);
    for agent in agents {
        command.args(["--take-over", &agent.to_string()]);
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the background process")?;
    let ready = child
        .stdout
        .take()
        .context("cannot read the output of the background process")?;
    let patience = Timespec::try_from(exit_time_left().saturating_sub(EXIT_MARGIN))?;
    // It prints its socket once it has the agents, and closes its output if it fails.
    let mut waits = [PollFd::new(&ready, PollFlags::IN)];
    poll(&mut waits, Some(&patience)).context("cannot wait for the background process")?;
    let [waits] = waits;
    let is_ready = waits.revents().contains(PollFlags::IN);
    // A process that is still starting takes the agents over later.
    if !is_ready && child.try_wait().is_ok_and(|ended| ended.is_some()) {
        bail!("the background process failed to start");
    }
    Ok(())
}
