//! Commands that are started in the background.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{check_workdir, plan_of, restrict_git};
use crate::background::{BackgroundOrder, ProcessReport, compile};
use crate::output::MOST_SENT_BYTES;
use crate::process::keeper::{
    self, KeptJob, KeptState, OutputFollower, OutputNews, OutputPart, ProcessEnd, read_output,
};
use crate::process::{self, ChildEnvironment};
use crate::{BadArguments, CallContext, Output};

/// Time limit of the start.
pub(super) const DEADLINE: Duration = Duration::from_secs(30);

/// Time for first output, and for a command that fails at once.
const FIRST: Duration = Duration::from_secs(1);

/// Returns the order of a call to start a background process, if it is one.
pub(super) fn order(
    command: &str,
    workdir: &Path,
    is_background: bool,
    pattern: Option<String>,
) -> Result<Option<BackgroundOrder>, BadArguments> {
    let pattern = pattern.filter(|pattern| !pattern.is_empty());
    if !is_background {
        return match pattern {
            None => Ok(None),
            Some(_) => Err(BadArguments("`notify` needs `background: true`".to_owned())),
        };
    }
    if let Some(pattern) = &pattern {
        compile(pattern)?;
    }
    Ok(Some(BackgroundOrder {
        command: command.to_owned(),
        workdir: workdir.to_owned(),
        pattern,
    }))
}

/// Starts a command in the background, and returns its first output.
pub(super) async fn start(
    command: String,
    workdir: PathBuf,
    environment: ChildEnvironment,
    context: CallContext,
) -> Output {
    let Some(place) = context.inputs.background else {
        return Output::failed("background processes are not available here");
    };
    let report = |end: Option<ProcessEnd>, read_to| ProcessReport {
        cookie: context.cookie.clone(),
        read_to,
        end,
        is_started: true,
        left: None,
    };
    let failed = |reason: String| {
        let end = ProcessEnd {
            failure: Some(reason.clone()),
            ..ProcessEnd::default()
        };
        Output {
            process: Some(report(Some(end), None)),
            ..Output::failed(reason)
        }
    };
    if let Err(reason) = check_workdir(&workdir) {
        return failed(reason);
    }
    let mut variables = environment.variables();
    let is_reading = context.confinement.is_reading();
    let command = restrict_git(&command, &context.confinement, &mut variables);
    let recording = plan_of(context.inputs.recording, &context.confinement);
    let job = KeptJob {
        program: process::shell().into(),
        arguments: vec!["-c".into(), "--".into(), command.into()],
        workdir,
        variables,
        time_limit: place.time_limit,
        cookie: context.cookie.clone(),
        confinement: context.confinement,
        has_temporary: !is_reading,
        is_foreground: false,
        recording,
    };
    if let Err(reason) = keeper::start(&place.keeper, &place.directory, job).await {
        return failed(reason);
    }
    let end = first_end(&place.directory, &context.stop).await;
    let part = read(&place.directory).await;
    let number = place.number;
    let (line, success) = match &end {
        Some(end) => {
            let success = end.exit == Some(0);
            (
                format!("process {number} has ended: {}", end.describe()),
                success,
            )
        }
        None => (format!("process {number} runs in the background"), true),
    };
    let warning = end.as_ref().and_then(|end| end.warning.clone());
    let mut output = Output {
        success,
        process: Some(report(end, Some(part.to))),
        ..Output::done(part.bytes, line.clone())
    };
    if let Some(warning) = warning {
        output = output.with_remark(&warning);
    }
    output.with_remark(&line)
}

/// Waits a moment for the end of the process.
async fn first_end(directory: &Path, stop: &CancellationToken) -> Option<ProcessEnd> {
    let until = Instant::now() + FIRST;
    let mut follower = OutputFollower::new(directory).await;
    loop {
        tokio::select! {
            news = follower.next() => match news {
                OutputNews::Printed(_) => {}
                OutputNews::Over(KeptState::Ended(end)) => return Some(end),
                OutputNews::Over(KeptState::Running | KeptState::Gone) => return None,
            },
            () = sleep_until(until) => return None,
            () = stop.cancelled() => return None,
        }
    }
}

async fn read(directory: &Path) -> OutputPart {
    let directory = directory.to_owned();
    let read = move || read_output(&directory, 0, MOST_SENT_BYTES);
    let read = tokio::task::spawn_blocking(read).await;
    read.ok().and_then(Result::ok).unwrap_or_default()
}
