//! Server processes: they live long and are spoken to through their pipes.

use std::io;
use std::process::ExitStatus;

use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::{Errors, GRACE, Job, OutputPump, REAPING, RunError, Running};

/// Running server process with all its descendants; dropping it kills them at once.
pub(crate) struct ServerProcess {
    running: Running,
}

/// Our ends of the pipes of a server process.
pub(crate) struct ServerPipes {
    pub(crate) input: Sender,
    pub(crate) output: Receiver,
    pub(crate) errors: Receiver,
}

impl ServerProcess {
    /// Starts a server; deadline and size of the job do not count.
    ///
    /// Protected paths are read-only where namespaces work. Elsewhere they stay as the server
    /// leaves them: it may live for days, and reverting then would undo changes of the user.
    pub(crate) async fn start(job: Job) -> Result<(Self, ServerPipes), RunError> {
        let program = job.program.to_string_lossy().into_owned();
        let failed = |source| RunError::Start { program, source };
        let job = Job {
            errors: Errors::Apart,
            ..job
        };
        let launch = move || Running::launch(job, true);
        let launched = tokio::task::spawn_blocking(launch).await;
        let started = launched
            .map_err(io::Error::other)
            .and_then(|started| started);
        let (mut running, pipes) = match started {
            Ok(started) => started,
            Err(error) => return Err(failed(error)),
        };
        running.guards.clear();
        let (Some(input), Some(errors)) = (pipes.input, pipes.errors) else {
            return Err(failed(io::Error::other("its pipes are missing")));
        };
        let pipes = ServerPipes {
            input,
            output: pipes.output,
            errors,
        };
        Ok((Self { running }, pipes))
    }

    /// Waits for the end of the main process. Safe to cancel.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let mut reaping = interval_at(Instant::now() + REAPING, REAPING);
        reaping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                status = self.running.wait_main() => return status,
                _ = reaping.tick() => self.running.reap(),
            }
        }
    }

    /// Ends the process and its descendants; first waits a moment for it to end by itself.
    ///
    /// Close its input before: servers end then.
    pub(crate) async fn end(mut self) {
        let _ = tokio::time::timeout(GRACE, self.wait()).await;
        self.running.end_everything(&mut ClosedPipes).await;
        self.running.conclude().await;
    }
}

/// The pipes of a server, which others read.
struct ClosedPipes;

impl OutputPump for ClosedPipes {
    fn is_open(&self) -> bool {
        false
    }

    async fn pump(&mut self) {
        std::future::pending::<()>().await;
    }
}
