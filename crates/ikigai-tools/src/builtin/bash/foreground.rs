//! Commands that a call waits for, and leaves running at their deadline if it can.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::count_lines;
use crate::background::{BackgroundOrder, ForegroundKeeper, LeftCommand, ProcessReport};
use crate::file_history::RecordingPlan;
use crate::output::MOST_KEPT_BYTES;
use crate::process::keeper::{FollowError, FollowedEnd, FollowedJob, KeptJob, run_followed};
use crate::process::{self, Ended, Errors, Job, OutputListeners};
use crate::{Confinement, Output};
use ikigai_core::counts::counted;

/// Command to run.
pub(super) struct ForegroundCommand {
    pub(super) line: String,
    /// The line as the shell gets it.
    pub(super) script: String,
    pub(super) workdir: PathBuf,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) deadline: Duration,
    pub(super) cookie: String,
    pub(super) confinement: Confinement,
    pub(super) recording: Option<RecordingPlan>,
}

/// Outcome of a command.
pub(super) enum CommandEnd {
    Ended(Ended),
    /// It goes on in the background; this is the result of the call.
    Left(Box<Output>),
}

impl ForegroundCommand {
    /// Runs the command; an error is a reason for the model and the user.
    pub(super) async fn run(
        self,
        keeper: Option<ForegroundKeeper>,
        stop: &CancellationToken,
        listeners: OutputListeners,
    ) -> Result<CommandEnd, String> {
        if let Some(place) = keeper {
            match self.run_kept(&place, stop, listeners.clone()).await {
                Ok(FollowedEnd::Ended(ended)) => return Ok(CommandEnd::Ended(ended)),
                Ok(FollowedEnd::Left { output, printed }) => {
                    let left = self.left(place, output, printed);
                    return Ok(CommandEnd::Left(Box::new(left)));
                }
                Err(FollowError::Failed(reason)) => return Err(reason),
                // Nothing has run yet.
                Err(FollowError::NoKeeper) => {}
            }
        }
        let job = Job {
            program: process::shell().into(),
            arguments: self.arguments(),
            workdir: self.workdir,
            variables: self.variables,
            input: None,
            errors: Errors::Together,
            most_bytes: MOST_KEPT_BYTES,
            deadline: self.deadline,
            cookie: self.cookie,
            confinement: self.confinement,
            recording: self.recording,
        };
        let ended = process::run_with(job, stop, listeners).await;
        ended
            .map(CommandEnd::Ended)
            .map_err(|error| error.to_string())
    }

    fn arguments(&self) -> Vec<OsString> {
        vec!["-c".into(), "--".into(), self.script.clone().into()]
    }

    async fn run_kept(
        &self,
        place: &ForegroundKeeper,
        stop: &CancellationToken,
        listeners: OutputListeners,
    ) -> Result<FollowedEnd, FollowError> {
        let job = KeptJob {
            program: process::shell().into(),
            arguments: self.arguments(),
            workdir: self.workdir.clone(),
            variables: self.variables.clone(),
            time_limit: place.time_limit,
            cookie: self.cookie.clone(),
            confinement: self.confinement.clone(),
            // It has the directory of the agent.
            has_temporary: false,
            is_foreground: true,
            recording: self.recording.clone(),
        };
        let followed = FollowedJob {
            job,
            directory: place.directory.clone(),
            deadline: self.deadline,
            most_bytes: MOST_KEPT_BYTES,
        };
        run_followed(&place.keeper, followed, stop, listeners).await
    }

    /// Returns the result of a call that leaves its command running.
    fn left(&self, place: ForegroundKeeper, output: Vec<u8>, printed: u64) -> Output {
        let status = format!("still running after {} s", self.deadline.as_secs());
        let shown = match count_lines(&output) {
            0 => status.clone(),
            lines => format!("{status} · {}", counted(lines, "line")),
        };
        let report = ProcessReport {
            cookie: self.cookie.clone(),
            read_to: Some(printed),
            end: None,
            is_started: false,
            left: Some(LeftCommand {
                order: BackgroundOrder {
                    command: self.line.clone(),
                    workdir: self.workdir.clone(),
                    pattern: None,
                },
                directory: place.directory,
            }),
        };
        Output {
            process: Some(report),
            ..Output::done(output, shown)
        }
        .with_remark(&status)
    }
}
