//! Short status of a git repository, read without running programs that it configures.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Cause, ChildEnvironment, Errors, Job, own_cookie, restrict_git, run, shell};
use crate::Confinement;

/// Command line whose output is read; bash gets a `git` that starts no other program.
const COMMAND: &str = "git status --porcelain=v1 --branch --ignore-submodules=all";

/// Returns the lines of `git status --porcelain --branch`; none if it fails or takes too long.
///
/// Without bash there is no safe `git`, so there is no status either.
pub async fn git_status(
    workdir: PathBuf,
    environment: &ChildEnvironment,
    confinement: Confinement,
    deadline: Duration,
    most_bytes: usize,
) -> Option<String> {
    if shell() != "bash" {
        return None;
    }
    let mut variables = environment.variables();
    restrict_git(&mut variables);
    let job = Job {
        program: OsString::from(shell()),
        arguments: vec!["-c".into(), "--".into(), COMMAND.into()],
        workdir,
        variables,
        input: None,
        errors: Errors::Apart,
        most_bytes,
        deadline,
        cookie: own_cookie("git-status"),
        confinement,
        recording: None,
    };
    let stop = CancellationToken::new();
    // Dropping the run kills the process at once.
    let ended = tokio::time::timeout(deadline, run(job, &stop, Arc::new(|_: &str| {}))).await;
    let ended = ended.ok()?.ok()?;
    let is_done = matches!(ended.cause, Cause::Exited(status) if status.success());
    is_done.then(|| String::from_utf8_lossy(&ended.output).into_owned())
}
