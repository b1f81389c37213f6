//! Child processes: started clean, read whatever they write, ended with all that they started.

mod describe;
mod environment;
#[cfg(target_os = "linux")]
mod family;
#[cfg(not(target_os = "linux"))]
#[path = "family_elsewhere.rs"]
mod family;
mod reading_git;
mod spawn;
mod streams;
mod ticker;
mod unseen_lines;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::{Child, Command};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::protected_paths::guard::RepositoryGuard;
use crate::sandbox::{self, Jail, Listener, ListenerReceiver};
use crate::{COOKIE_VARIABLE, Confinement};
pub(crate) use describe::{describe_exit, describe_left_behind};
pub use environment::Environment;
use family::Mark;
pub(crate) use reading_git::restrict as restrict_git;
use streams::Streams;

/// How long a process has between being asked to end and being killed. Short enough for an
/// interrupt to be over within a second, whatever it interrupts.
pub const GRACE: Duration = Duration::from_millis(250);

/// How long what the main process started may outlive it: `make > >(tee log)` ends before `tee`.
const LINGER: Duration = Duration::from_millis(200);

/// How often the dead are reaped that a running process left to us.
const REAPING: Duration = Duration::from_secs(1);

/// A process to be run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The executable: a path, or a name that is looked up in `PATH`.
    pub program: OsString,
    /// What it is given.
    pub arguments: Vec<OsString>,
    /// Where it starts.
    pub workdir: PathBuf,
    /// All variables of its environment but the cookie.
    pub variables: Vec<(OsString, OsString)>,
    /// What it reads; without it there is nothing to read.
    pub input: Option<Vec<u8>>,
    /// Whether what it reports as errors is kept apart.
    pub errors: Errors,
    /// How much of its output is kept, and as much of its errors.
    pub most_bytes: usize,
    /// After so long it is stopped.
    pub deadline: Duration,
    /// The run that it belongs to.
    pub cookie: String,
    /// What it is kept from.
    pub confinement: Confinement,
}

/// Where standard error goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// Into the output, in the order in which it was written.
    Together,
    /// Beside the output.
    Apart,
}

/// What came of a process.
#[derive(Debug)]
pub struct Ended {
    /// Why it ended.
    pub cause: Cause,
    /// What came out of it.
    pub output: Vec<u8>,
    /// What it reported as errors, if that was kept apart.
    pub errors: Vec<u8>,
    /// How many processes it left behind, which were ended.
    pub left_behind: usize,
    /// Remark for the user and the model: it ran without its sandbox, or changes were taken back.
    pub warning: Option<String>,
}

/// Why a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// By itself.
    Exited(ExitStatus),
    /// It was told to.
    Stopped,
    /// It took too long.
    Deadline,
}

/// Why a process could not be run.
#[derive(Debug, Error)]
pub enum RunError {
    /// It could not be started.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// What was to be started.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// It was started, and then the system failed us. It has ended.
    #[error("cannot watch `{program}`: {source}")]
    Watch {
        /// What was watched.
        program: String,
        /// Why not.
        source: io::Error,
    },
}

/// Callbacks for the output of a running process. They must return at once.
#[derive(Clone)]
pub struct OutputListeners {
    /// Receives the newest line, whole or not, at most every 50 ms.
    pub line: OutputListener,
    /// Receives new whole lines, cleaned of control characters, at most every 50 ms. If very much
    /// comes at once, a note stands for the oldest lines.
    pub output: OutputListener,
}

impl OutputListeners {
    /// Listens to the newest line only.
    fn of_line(line: OutputListener) -> Self {
        let output = Arc::new(|_: &str| {});
        Self { line, output }
    }
}

/// Receives text that a process printed.
pub type OutputListener = Arc<dyn Fn(&str) + Send + Sync>;

/// Runs a process until it ends, is stopped or takes too long, and reports its newest line.
///
/// Afterwards nothing is left of it or of what it started. If the future is dropped, everything is
/// killed at once.
pub async fn run(
    job: Job,
    stop: &CancellationToken,
    line: OutputListener,
) -> Result<Ended, RunError> {
    run_with(job, stop, OutputListeners::of_line(line)).await
}

/// The same, and reports its output too.
pub async fn run_with(
    job: Job,
    stop: &CancellationToken,
    listeners: OutputListeners,
) -> Result<Ended, RunError> {
    let program = job.program.to_string_lossy().into_owned();
    let deadline = Instant::now() + job.deadline;
    let start_error = |source| RunError::Start {
        program: program.clone(),
        source,
    };

    // Building the sandbox reads directories, and a fork of a large process takes its time.
    let started = tokio::task::spawn_blocking(move || Running::start(job, listeners))
        .await
        .map_err(|error| start_error(io::Error::other(error)))?;
    let (mut running, mut streams) = started.map_err(start_error)?;

    let cause = running
        .watch(&mut streams, stop, deadline)
        .await
        .map_err(|source| RunError::Watch {
            program: program.clone(),
            source,
        })?;
    let left_behind = match cause {
        Cause::Exited(_) => running.end_what_is_left(&mut streams).await,
        Cause::Stopped | Cause::Deadline => {
            running.end_everything(&mut streams).await;
            0
        }
    };
    running.is_over = true;
    let remark = running.finish_guard().await;

    let (output, errors) = streams.finish();
    Ok(Ended {
        cause,
        output: output.into_body(),
        errors: errors.into_body(),
        left_behind,
        warning: join_warnings(running.warning.take(), remark),
    })
}

/// True if sandboxed commands get private namespaces and mounts here, by starting one.
pub async fn has_namespaces() -> bool {
    let job = Job {
        program: shell().into(),
        arguments: vec!["-c".into(), "true".into()],
        workdir: PathBuf::from("/"),
        variables: Environment::default().variables(),
        input: None,
        errors: Errors::Together,
        most_bytes: 0,
        deadline: GRACE,
        cookie: format!("namespaces-{}", std::process::id()),
        confinement: Confinement::Sandbox {
            write: vec![std::env::temp_dir()],
            network: false,
            hidden: Arc::from([]),
            guarded: None,
        },
    };
    let has_namespaces = || {
        let started = Running::start(job, OutputListeners::of_line(Arc::new(|_| {})));
        started.is_ok_and(|(running, _)| running.has_namespaces)
    };
    let found = tokio::task::spawn_blocking(has_namespaces).await;
    found.unwrap_or(false)
}

/// Keeps other processes of the same user, such as tools outside of the sandbox, from looking into
/// this one: its environment and its memory, where keys are. Root can look anyway. There are no
/// core dumps then.
pub fn protect() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // It cannot fail for this value.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Finds every process that carries a cookie, whoever started it, ends it and all below it.
/// Returns how many there were. Blocks for [`GRACE`] and a little more if there are any. Meant for
/// what an ikigai that died left: runs of this process end what they started themselves.
pub fn end_cookie(cookie: &str) -> usize {
    family::end_foreign(&Mark::new(cookie), GRACE)
}

/// The shell: bash where there is one.
pub fn shell() -> &'static str {
    let has_bash = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|directory| directory.join("bash").is_file())
    });
    if has_bash || std::path::Path::new("/bin/bash").is_file() {
        "bash"
    } else {
        "sh"
    }
}

/// A process that runs, and all that it started.
struct Running {
    child: Child,
    /// Its number, for as long as it was not waited for.
    main: Option<i32>,
    mark: Mark,
    warning: Option<String>,
    guard: Option<RepositoryGuard>,
    has_namespaces: bool,
    is_over: bool,
}

impl Running {
    /// Starts a process. Blocks.
    fn start(job: Job, listeners: OutputListeners) -> io::Result<(Self, Streams)> {
        let program = Path::new(&job.program);
        let mut guard = guard_of(&job.confinement);
        let read_only = guard.as_ref().map_or(&[][..], RepositoryGuard::mountable);
        let (mut jail, warning) =
            sandbox::jail(&job.confinement, program, read_only, sandbox::in_force)?;
        let mark = Mark::new(&job.cookie);
        let (output, output_end) = io::pipe()?;
        let mut command = Command::new(&job.program);
        command
            .args(&job.arguments)
            .current_dir(&job.workdir)
            .env_clear()
            .envs(job.variables)
            // What ikigai has there is where ikigai was started.
            .env("PWD", &job.workdir)
            .env(COOKIE_VARIABLE, &job.cookie);
        let errors = match job.errors {
            // One pipe for both is what keeps their order.
            Errors::Together => {
                command.stderr(output_end.try_clone()?);
                None
            }
            Errors::Apart => {
                let (errors, errors_end) = io::pipe()?;
                command.stderr(errors_end);
                Some(receiver(errors)?)
            }
        };
        command.stdout(output_end);
        let input = if let Some(bytes) = job.input {
            let (input_end, input) = io::pipe()?;
            command.stdin(input_end);
            Some((sender(input)?, bytes))
        } else {
            command.stdin(Stdio::null());
            None
        };
        let streams = Streams::new(input, receiver(output)?, errors, job.most_bytes, listeners);
        let listener = jail.as_mut().map(Jail::supervised).transpose()?;
        let child = spawn::spawn(&mut command, &mark, jail)?;
        let listener = listener.and_then(ListenerReceiver::receive);
        let has_namespaces = listener.as_ref().is_some_and(Listener::has_mounts);
        if let Some(guard) = guard.as_mut().filter(|_| has_namespaces) {
            guard.set_mounted();
        }
        if let Some(listener) = listener {
            let mark = mark.clone();
            // Without a thread for it, calls on other processes fail.
            let _ = listener.serve(move |pid| mark.is_in_limits(pid));
        }
        let main = child.id().and_then(|pid| i32::try_from(pid).ok());
        let running = Self {
            child,
            main,
            mark,
            warning,
            guard,
            has_namespaces,
            is_over: false,
        };
        Ok((running, streams))
    }

    /// Waits until the main process ends or is to end.
    async fn watch(
        &mut self,
        streams: &mut Streams,
        stop: &CancellationToken,
        deadline: Instant,
    ) -> io::Result<Cause> {
        let mut reaping = tokio::time::interval_at(Instant::now() + REAPING, REAPING);
        reaping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(Cause::Stopped),
                () = tokio::time::sleep_until(deadline) => return Ok(Cause::Deadline),
                status = self.child.wait() => {
                    let status = status?;
                    self.main = None;
                    return Ok(Cause::Exited(status));
                }
                _ = reaping.tick() => family::reap(&self.mark, self.main),
                () = streams.pump() => {}
            }
        }
    }

    /// Ends what outlives the main process, after a moment in which it may end by itself. Returns
    /// how many there were.
    async fn end_what_is_left(&self, streams: &mut Streams) -> usize {
        let until = Instant::now() + LINGER;
        while streams.is_open() {
            tokio::select! {
                () = tokio::time::sleep_until(until) => break,
                () = streams.pump() => {}
            }
        }
        if family::has_no_children() {
            return 0;
        }
        if !family::is_left(&self.mark) {
            family::reap(&self.mark, None);
            return 0;
        }
        let mark = self.mark.clone();
        let ending = move || {
            if family::wait_until_gone(&mark, until.into_std()) {
                family::reap(&mark, None);
                0
            } else {
                family::end(&mark, None, GRACE)
            }
        };
        read_while(streams, ending).await
    }

    /// Takes back changes to protected paths; nothing of the run is left to make more.
    async fn finish_guard(&mut self) -> Option<String> {
        let guard = self.guard.take()?;
        let finished = tokio::task::spawn_blocking(move || guard.finish()).await;
        finished.ok().flatten()
    }

    /// Ends the main process and everything that it started.
    async fn end_everything(&mut self, streams: &mut Streams) {
        let (mark, main) = (self.mark.clone(), self.main);
        read_while(streams, move || family::end(&mark, main, GRACE)).await;
        // It is dead, so this does not wait.
        let _ = self.child.wait().await;
        self.main = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over {
            family::end(&self.mark, self.main, Duration::ZERO);
        }
        if let Some(guard) = self.guard.take() {
            guard.finish();
        }
    }
}

/// Records protected paths, for a command that may write beside them.
fn guard_of(confinement: &Confinement) -> Option<RepositoryGuard> {
    match confinement {
        Confinement::Sandbox {
            write,
            guarded: Some(workdir),
            ..
        } if !write.is_empty() => Some(RepositoryGuard::begin(workdir, write)),
        _ => None,
    }
}

fn join_warnings(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}\n{second}")),
        (first, second) => first.or(second),
    }
}

/// Does something that blocks while the pipes are read on, so that nobody waits for them.
async fn read_while(streams: &mut Streams, work: impl FnOnce() -> usize + Send + 'static) -> usize {
    let mut work = tokio::task::spawn_blocking(work);
    loop {
        tokio::select! {
            done = &mut work => return done.unwrap_or_default(),
            () = streams.pump() => {}
        }
    }
}

fn receiver(pipe: io::PipeReader) -> io::Result<Receiver> {
    Receiver::from_owned_fd(OwnedFd::from(pipe))
}

fn sender(pipe: io::PipeWriter) -> io::Result<Sender> {
    Sender::from_owned_fd(OwnedFd::from(pipe))
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
