//! Child processes: clean start, bounded output, end with all descendants.

mod describe;
mod environment;
#[cfg(target_os = "linux")]
mod family;
#[cfg(not(target_os = "linux"))]
#[path = "family_elsewhere.rs"]
mod family;
mod git_status;
pub mod keeper;
mod reading_git;
#[cfg(target_os = "linux")]
mod run_sockets;
mod server_process;
mod servers;
mod spawn;
mod streams;
mod ticker;
mod unseen_lines;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ikigai_core::data::SandboxRefusal;
use thiserror::Error;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::{Child, Command};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::file_history::{Recorder, RecordingPlan, miss_unwatched};
use crate::host_proxy::HostProxy;
use crate::protected_paths::guard::RepositoryGuard;
use crate::refusals::RefusalLog;
use crate::sandbox::{self, FileStops, Jail, Listener, ListenerReceiver, LoopbackReach};
use crate::{COOKIE_VARIABLE, Confinement};
pub(crate) use describe::{describe_exit, describe_left_behind};
pub use environment::ChildEnvironment;
use family::Mark;
pub use git_status::git_status;
pub(crate) use reading_git::{
    is_enforced as enforces_git, restrict as restrict_git, restrict_line as restrict_git_line,
};
pub(crate) use server_process::ServerProcess;
use servers::{ports_of, runs_of};
use streams::Streams;

/// Time between the request to end and the kill.
///
/// Short enough that an interrupt takes less than a second.
pub const GRACE: Duration = Duration::from_millis(250);

/// Time that descendants may outlive the main process: `make > >(tee log)` ends before `tee`.
const LINGER: Duration = Duration::from_millis(200);

/// Interval between reaping orphans of a running process.
pub(crate) const REAPING: Duration = Duration::from_secs(1);

/// Process to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Executable: a path, or a name to look up in `PATH`.
    pub program: OsString,
    /// Command-line arguments.
    pub arguments: Vec<OsString>,
    /// Working directory.
    pub workdir: PathBuf,
    /// All environment variables except for the cookie.
    pub variables: Vec<(OsString, OsString)>,
    /// Standard input; empty if none.
    pub input: Option<Vec<u8>>,
    /// Destination of standard error.
    pub errors: Errors,
    /// Most bytes kept of standard output, and as many of standard error.
    pub most_bytes: usize,
    /// Time after which the process is stopped.
    pub deadline: Duration,
    /// Cookie of the run.
    pub cookie: String,
    /// Restrictions of the process.
    pub confinement: Confinement,
    /// Recording of the files that it changes.
    pub recording: Option<RecordingPlan>,
}

/// Destination of standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// Merged into the output, in the order of writing.
    Together,
    /// Collected separately.
    Apart,
}

/// Result of a process.
#[derive(Debug)]
pub struct Ended {
    /// Reason of the end.
    pub cause: Cause,
    /// Standard output.
    pub output: Vec<u8>,
    /// Standard error, if it is collected separately.
    pub errors: Vec<u8>,
    /// Number of background processes that were ended.
    pub left_behind: usize,
    /// Accesses that the sandbox refused.
    pub refused: Vec<SandboxRefusal>,
    /// Remark for the user and the model: it ran without a sandbox, or changes were reverted.
    pub warning: Option<String>,
}

/// Reason why a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It exited.
    Exited(ExitStatus),
    /// It was stopped on request.
    Stopped,
    /// It exceeded the deadline.
    Deadline,
}

/// Failure to run a process.
#[derive(Debug, Error)]
pub enum RunError {
    /// It could not be started.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// Program that was started.
        program: String,
        /// Error of the system.
        source: io::Error,
    },
    /// Watching it failed. It has been ended.
    #[error("cannot watch `{program}`: {source}")]
    Watch {
        /// Program that was watched.
        program: String,
        /// Error of the system.
        source: io::Error,
    },
}

/// Callbacks for the output of a running process. They must return at once.
#[derive(Clone)]
pub struct OutputListeners {
    /// Receives the newest line, whole or not, at most every 50 ms.
    pub line: OutputListener,
    /// Receives new whole lines, cleaned of control characters, at most every 50 ms. A note
    /// replaces the oldest lines if there are too many.
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

/// Runs a process until it ends, is stopped or times out; reports its newest line.
///
/// Afterwards the process and all its descendants are gone. Dropping the future kills them at once.
pub async fn run(
    job: Job,
    stop: &CancellationToken,
    line: OutputListener,
) -> Result<Ended, RunError> {
    run_with(job, stop, OutputListeners::of_line(line)).await
}

/// Like [`run`], and reports whole output lines too.
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

    // Building the sandbox reads directories, and forking a large process takes time.
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
    let warning = running.conclude().await;

    let (output, errors) = streams.finish();
    Ok(Ended {
        cause,
        output: output.into_body(),
        errors: errors.into_body(),
        left_behind,
        refused: running.refusals.all(),
        warning,
    })
}

/// Returns the cookie of a run that ikigai makes for itself, with no row in the log.
///
/// A run ends all processes with its cookie, so no two runs may share one.
pub fn own_cookie(purpose: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{purpose}-{}-{count}", std::process::id())
}

/// Returns true if sandboxed commands get private namespaces and mounts; starts one.
pub async fn has_namespaces() -> bool {
    let job = Job {
        program: shell().into(),
        arguments: vec!["-c".into(), "true".into()],
        workdir: PathBuf::from("/"),
        variables: ChildEnvironment::default().variables(),
        input: None,
        errors: Errors::Together,
        most_bytes: 0,
        deadline: GRACE,
        cookie: own_cookie("namespaces"),
        confinement: Confinement::Sandbox {
            write: vec![std::env::temp_dir()],
            network: false,
            hosts: Arc::default(),
            loopback: Arc::default(),
            hidden: Arc::from([]),
            guarded: Vec::new(),
        },
        recording: None,
    };
    let has_namespaces = || {
        let started = Running::start(job, OutputListeners::of_line(Arc::new(|_| {})));
        started.is_ok_and(|(running, _)| running.has_namespaces)
    };
    let found = tokio::task::spawn_blocking(has_namespaces).await;
    found.unwrap_or(false)
}

/// Hides environment and memory, where keys are, from other processes of the user.
///
/// This includes tools outside of the sandbox. Root can still read them. Disables core dumps.
pub fn protect() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // This value cannot fail.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Ends every process with this cookie and all its descendants; returns their number.
///
/// Blocks for [`GRACE`] and a little more if there are any. Meant for the processes of an ikigai
/// that died; a living one ends its runs itself.
pub fn end_cookie(cookie: &str) -> usize {
    family::end_foreign(&Mark::new(cookie), GRACE)
}

/// Returns the shell: bash if it is installed.
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

/// Our ends of the pipes of a started process.
struct Pipes {
    input: Option<Sender>,
    output: Receiver,
    errors: Option<Receiver>,
}

/// Pipes of a process whose data is moved while ikigai waits for something else.
trait OutputPump {
    /// Returns true if an output pipe is open.
    fn is_open(&self) -> bool;

    /// Moves the next available data. Waits for ever if everything is closed. Safe to cancel.
    async fn pump(&mut self);
}

/// Running process with all its descendants.
struct Running {
    child: Child,
    /// Process number, until it was waited for.
    main: Option<i32>,
    mark: Mark,
    warning: Option<String>,
    guards: Vec<RepositoryGuard>,
    has_namespaces: bool,
    refusals: RefusalLog,
    /// Way to listed hosts, until the run ends.
    _proxy: Option<HostProxy>,
    is_over: bool,
}

impl Running {
    /// Starts a process whose output is collected. Blocks.
    fn start(mut job: Job, listeners: OutputListeners) -> io::Result<(Self, Streams)> {
        let (input, most_bytes) = (job.input.take(), job.most_bytes);
        let (running, pipes) = Self::launch(job, input.is_some())?;
        let input = pipes.input.zip(input);
        let streams = Streams::new(input, pipes.output, pipes.errors, most_bytes, listeners);
        Ok((running, streams))
    }

    /// Starts a process; `has_input` gives it a pipe as standard input. Blocks.
    fn launch(job: Job, has_input: bool) -> io::Result<(Self, Pipes)> {
        let program = Path::new(&job.program);
        let mut guards = guards_of(&job.confinement);
        let read_only: Vec<PathBuf> = guards
            .iter()
            .flat_map(|guard| guard.mountable().iter().cloned())
            .collect();
        let files = FileStops::of(job.recording.as_ref());
        let (mut jail, warning) = sandbox::jail(
            &job.confinement,
            program,
            &read_only,
            files,
            sandbox::in_force,
        )?;
        // The journal exists before the first change.
        let recorder = job.recording.as_ref().map(|plan| {
            let can_watch = jail.is_some();
            Recorder::begin(plan).ok().filter(|_| can_watch)
        });
        let mark = Mark::new(&job.cookie);
        let (output, output_end) = io::pipe()?;
        let mut command = Command::new(&job.program);
        command
            .args(&job.arguments)
            .current_dir(&job.workdir)
            .env_clear()
            .envs(job.variables)
            // The inherited value is the directory in which ikigai was started.
            .env("PWD", &job.workdir)
            .env(COOKIE_VARIABLE, &job.cookie);
        let refusals = RefusalLog::default();
        let hosts = job.confinement.proxied_hosts().filter(|_| jail.is_some());
        let proxy = hosts.map(|hosts| HostProxy::start(hosts.clone(), refusals.clone()));
        let proxy = proxy.transpose()?;
        if let Some(proxy) = &proxy {
            command.envs(proxy.variables());
        }
        let errors = match job.errors {
            // Sharing one pipe keeps the order of writes.
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
        let input = if has_input {
            let (input_end, input) = io::pipe()?;
            command.stdin(input_end);
            Some(sender(input)?)
        } else {
            command.stdin(Stdio::null());
            None
        };
        let pipes = Pipes {
            input,
            output: receiver(output)?,
            errors,
        };
        let listener = jail.as_mut().map(Jail::supervise).transpose()?;
        let child = spawn::spawn(&mut command, &mark, jail)?;
        let listener = listener.and_then(ListenerReceiver::receive);
        miss_unwatched(
            job.recording.as_ref(),
            listener.is_some() && recorder.as_ref().is_some_and(Option::is_some),
        )?;
        let has_namespaces = listener.as_ref().is_some_and(Listener::has_mounts);
        if has_namespaces {
            guards.iter_mut().for_each(RepositoryGuard::set_mounted);
        }
        if let Some(listener) = listener {
            let mark = mark.clone();
            let servers = job.confinement.loopback();
            let runs = runs_of(servers);
            // If the thread cannot start, calls on other processes fail.
            let reach = LoopbackReach {
                ports: ports_of(servers).into(),
                sockets: (!runs.is_empty())
                    .then(|| Arc::new(move || run_sockets::sockets_of_runs(&runs)) as _),
                proxy: proxy.as_ref().map(HostProxy::address),
                refusals: refusals.clone(),
            };
            let recorder = recorder.flatten();
            let _ = listener.serve(reach, recorder, move |pid| mark.is_in_limits(pid));
        }
        let main = child.id().and_then(|pid| i32::try_from(pid).ok());
        let running = Self {
            child,
            main,
            mark,
            warning,
            guards,
            has_namespaces,
            refusals,
            _proxy: proxy,
            is_over: false,
        };
        Ok((running, pipes))
    }

    /// Waits until the main process ends or has to be ended.
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
                status = self.wait_main() => return Ok(Cause::Exited(status?)),
                _ = reaping.tick() => self.reap(),
                () = streams.pump() => {}
            }
        }
    }

    /// Waits for the end of the main process. Safe to cancel.
    async fn wait_main(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.main = None;
        Ok(status)
    }

    /// Reaps orphans of the run that have ended.
    fn reap(&self) {
        family::reap(&self.mark, self.main);
    }

    /// Ends processes that outlive the main process, after a short grace period. Returns their
    /// number.
    async fn end_what_is_left(&self, streams: &mut impl OutputPump) -> usize {
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

    /// Reverts changes to protected paths; no process is left to make more.
    async fn finish_guards(&mut self) -> Option<String> {
        let guards = std::mem::take(&mut self.guards);
        if guards.is_empty() {
            return None;
        }
        let finish = move || {
            let remarks = guards.into_iter().map(RepositoryGuard::finish);
            remarks.fold(None, join_warnings)
        };
        tokio::task::spawn_blocking(finish).await.ok().flatten()
    }

    /// Ends the main process and all its descendants.
    async fn end_everything(&mut self, streams: &mut impl OutputPump) -> Option<ExitStatus> {
        let (mark, main) = (self.mark.clone(), self.main);
        read_while(streams, move || family::end(&mark, main, GRACE)).await;
        // It is dead, so this does not wait.
        let status = self.child.wait().await;
        self.main = None;
        status.ok()
    }

    /// Finishes once no process is left; returns the remark about the run.
    async fn conclude(&mut self) -> Option<String> {
        self.is_over = true;
        let remark = self.finish_guards().await;
        join_warnings(self.warning.take(), remark)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over {
            family::end(&self.mark, self.main, Duration::ZERO);
        }
        for guard in self.guards.drain(..) {
            guard.finish();
        }
    }
}

/// Records the protected paths, for a command that may write near them.
fn guards_of(confinement: &Confinement) -> Vec<RepositoryGuard> {
    let Confinement::Sandbox { write, guarded, .. } = confinement else {
        return Vec::new();
    };
    if write.is_empty() {
        return Vec::new();
    }
    let roots: BTreeSet<&PathBuf> = guarded.iter().filter(|root| root.is_dir()).collect();
    let guards = roots.into_iter();
    guards
        .map(|root| RepositoryGuard::begin(root, write))
        .collect()
}

fn join_warnings(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}\n{second}")),
        (first, second) => first.or(second),
    }
}

/// Runs blocking work while reading the pipes, so that no process waits for them.
async fn read_while(
    streams: &mut impl OutputPump,
    work: impl FnOnce() -> usize + Send + 'static,
) -> usize {
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
