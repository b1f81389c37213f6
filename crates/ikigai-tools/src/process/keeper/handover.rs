//! Processes that a call waits for, and leaves to their keepers at its deadline.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::KeeperProgram;
use super::client::{KeptState, request_stop, start_job, start_keeper, stop, wait_for_end};
use super::job::KeptJob;
use super::protocol::{ProcessEnd, StopCause};
use crate::process::streams::Streams;
use crate::process::{Cause, Ended, OutputListeners, OutputPump, end_cookie};

/// Longest wait for the rest of the output after the end.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// Process to run under a keeper while a call waits for it.
#[derive(Debug)]
pub(crate) struct FollowedJob {
    pub(crate) job: KeptJob,
    /// Directory for its socket and output; removed when it ends while the call waits.
    pub(crate) directory: PathBuf,
    /// Time after which the call waits no longer.
    pub(crate) deadline: Duration,
    /// Most bytes of output for the call.
    pub(crate) most_bytes: usize,
}

/// Outcome of the wait.
#[derive(Debug)]
pub(crate) enum FollowedEnd {
    /// The process has ended.
    Ended(Ended),
    /// It goes on under its keeper.
    Left {
        /// Its output so far.
        output: Vec<u8>,
        /// Number of bytes that it printed by then.
        printed: u64,
    },
}

/// Failure to run a process under a keeper.
#[derive(Debug)]
pub(crate) enum FollowError {
    /// No keeper could be started, so nothing ran.
    NoKeeper,
    /// The process could not be started or watched, for this reason. None of it is left.
    Failed(String),
}

/// Runs a process until it ends, is stopped, or the deadline passes, at which it goes on.
///
/// Dropping the future ends the process.
pub(crate) async fn run_followed(
    keeper: &KeeperProgram,
    followed: FollowedJob,
    stop_token: &CancellationToken,
    listeners: OutputListeners,
) -> Result<FollowedEnd, FollowError> {
    let until = Instant::now() + followed.deadline;
    let directory = &followed.directory;
    let cookie = followed.job.cookie.clone();
    let (output, connection) = begin(keeper, directory)
        .await
        .map_err(|_| FollowError::NoKeeper)?;
    let mut guard = KeptGuard {
        directory,
        is_armed: true,
    };
    let started = start_job(connection, directory, followed.job).await;
    if let Err(reason) = started {
        end_without_keeper(cookie).await;
        return Err(FollowError::Failed(reason));
    }
    let mut streams = Streams::new(None, output, None, followed.most_bytes, listeners);
    let state = {
        let mut end = std::pin::pin!(wait_for_end(directory));
        loop {
            tokio::select! {
                biased;
                () = stop_token.cancelled() => break None,
                state = &mut end => break Some(state),
                () = sleep_until(until) => {
                    guard.is_armed = false;
                    let (output, _) = streams.finish();
                    let printed = output.total();
                    return Ok(FollowedEnd::Left { output: output.into_body(), printed });
                }
                () = streams.pump() => {}
            }
        }
    };
    let state = if let Some(state) = state {
        state
    } else {
        let mut stopping = std::pin::pin!(stop(directory, StopCause::Request));
        loop {
            tokio::select! {
                state = &mut stopping => break state,
                () = streams.pump() => {}
            }
        }
    };
    let rest = async {
        while streams.is_open() {
            streams.pump().await;
        }
    };
    let _ = timeout(LAST_OUTPUT, rest).await;
    guard.is_armed = false;
    let (output, _) = streams.finish();
    remove(directory).await;
    match state {
        KeptState::Ended(end) => Ok(FollowedEnd::Ended(ended(end, output.into_body()))),
        KeptState::Running | KeptState::Gone => {
            end_without_keeper(cookie).await;
            let reason = "the process that kept the command was killed".to_owned();
            Err(FollowError::Failed(reason))
        }
    }
}

/// Starts the keeper with a pipe for output.
async fn begin(
    keeper: &KeeperProgram,
    directory: &Path,
) -> io::Result<(Receiver, super::protocol::KeeperConnection)> {
    let (output, output_end) = io::pipe()?;
    let errors = Stdio::from(OwnedFd::from(output_end));
    let connection = start_keeper(keeper, directory, errors).await?;
    let output = Receiver::from_owned_fd(OwnedFd::from(output))?;
    Ok((output, connection))
}

/// Returns the end as a call reports it.
fn ended(end: ProcessEnd, output: Vec<u8>) -> Ended {
    let status = match (end.exit, end.signal) {
        (Some(code), _) => ExitStatus::from_raw((code & 0xff) << 8),
        (None, signal) => ExitStatus::from_raw(signal.unwrap_or_default()),
    };
    let cause = match end.stopped {
        None => Cause::Exited(status),
        Some(StopCause::Deadline) => Cause::Deadline,
        Some(StopCause::Request | StopCause::OwnerKilled) => Cause::Stopped,
    };
    Ended {
        cause,
        output,
        errors: Vec::new(),
        left_behind: end.left_behind,
        refused: end.refused,
        warning: end.warning,
    }
}

/// Ends what is left of a process whose keeper died.
async fn end_without_keeper(cookie: String) {
    let _ = tokio::task::spawn_blocking(move || end_cookie(&cookie)).await;
}

/// Removes the files of a process that is not recorded.
pub async fn remove(directory: &Path) {
    let directory = directory.to_owned();
    // A directory that cannot be removed costs little room.
    let _ = tokio::task::spawn_blocking(move || fs::remove_dir_all(directory)).await;
}

/// Ends the process if the call is dropped.
struct KeptGuard<'a> {
    directory: &'a Path,
    is_armed: bool,
}

impl Drop for KeptGuard<'_> {
    fn drop(&mut self) {
        if self.is_armed {
            let _ = request_stop(self.directory);
        }
    }
}
