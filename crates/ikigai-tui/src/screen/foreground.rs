//! Programs in the foreground. They stop and continue together with this one.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::terminal::{is_watched, stop_group};

/// Shell of lines that the user types, if `SHELL` names none.
const USUAL_SHELL: &str = "/bin/sh";

/// Runs a program on the terminal until it ends.
///
/// If Ctrl-Z or the program itself stops it, this process stops too, so that the shell gets the
/// terminal; `fg` continues both. Without such a shell the program is continued at once.
#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
pub(super) async fn run(mut command: Command) -> io::Result<ExitStatus> {
    let work = move || {
        let child = command.spawn()?;
        let program = Pid::from_child(&child);
        loop {
            match waitpid(Some(program), WaitOptions::UNTRACED) {
                Ok(Some((_, status))) if status.stopped() => stop_with(program)?,
                Ok(Some((_, status))) => return Ok(ExitStatus::from_raw(status.as_raw())),
                Ok(None) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    };
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|_| Err(io::Error::other("cannot wait for the program")))
}

/// Stops this process and its group, with the program. The shell's `fg` continues all.
///
/// Without such a shell the program is continued at once. With one it must not be: the stop may
/// take effect a moment after this returns, and the program would read the shell's input.
fn stop_with(program: Pid) -> io::Result<()> {
    if is_watched() {
        stop_group()?;
    } else {
        kill_process(program, Signal::CONT)?;
    }
    Ok(())
}

/// Runs a shell command on the terminal, without secret variables.
pub(super) async fn run_line(
    line: &str,
    workdir: &Path,
    secrets: &[String],
) -> io::Result<ExitStatus> {
    let shell = std::env::var_os("SHELL").filter(|shell| Path::new(shell).is_absolute());
    let mut command = Command::new(shell.unwrap_or_else(|| USUAL_SHELL.into()));
    command.arg("-c").arg(line).current_dir(workdir);
    for name in secrets {
        command.env_remove(name);
    }
    run(command).await
}
