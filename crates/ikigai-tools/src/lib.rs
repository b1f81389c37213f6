//! Tools of models: built-in and external, child processes, sandbox, permission.
//!
//! A tool parses its arguments ([`Tool::prepare`]) before anything happens; the result describes
//! the effects of the call, so that it can be approved, journalled and scheduled. Only then it
//! runs. This crate does not know the log: callers pass in the rows that a call needs and store its
//! result.

mod anchored_file;
pub mod arguments;
pub mod background;
pub mod builtin;
mod diff;
mod directory_stamp;
pub mod extensions;
mod external;
pub mod file_history;
mod files;
pub mod front_matter;
mod host_proxy;
pub mod images;
pub mod mcp;
pub mod output;
mod owner_file;
pub mod paths;
pub mod permission;
pub mod process;
pub mod protected_paths;
mod refusals;
pub mod sandbox;
pub mod schedule;
mod temporary_directory;
pub mod tool_names;
pub mod toolbox;
pub mod trust;
mod web;
pub mod worktree;

use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::project::ToolSpec;
use tokio_util::sync::CancellationToken;

use crate::background::{BackgroundOrder, BackgroundPlace, ForegroundKeeper, KnownProcess};

pub use arguments::BadArguments;
pub use diff::{line_sources, whole as line_changes};
pub use external::Broken;
pub use host_proxy::AllowedHost;
pub use output::{CallEnding, Output, Stale};
pub use schedule::{Paths, Touches};
pub use temporary_directory::{TemporaryDirectory, remove_abandoned_directories};

/// Future that a tool returns.
pub type ToolFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Tool that a model can call.
pub trait Tool: Send + Sync {
    /// Returns the tool's description for the model.
    fn spec(&self) -> ToolSpec;

    /// Parses a call without running it: no effects, no waiting. `arguments` is the text that the
    /// model wrote, which may be anything.
    fn prepare(&self, arguments: &str, place: &Place) -> Result<Prepared, BadArguments>;
}

/// Working directory and hidden paths of an agent's calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Working directory, absolute.
    pub workdir: PathBuf,
    /// Files and directories that no tool may read or write: keys, and the store itself.
    pub hidden: Arc<[PathBuf]>,
}

/// Call with parsed arguments.
pub struct Prepared {
    /// Effect class.
    pub class: EffectClass,
    /// Files that it reads and writes, for running calls in parallel.
    pub touches: Touches,
    /// Whole call for the user, exact, without the tool's name.
    pub shown: String,
    /// Text that permission patterns match: the command line, the path, the address.
    pub subject: String,
    /// Pattern that *always* would allow; it matches `subject`.
    pub pattern: String,
    /// Makes the text that a question shows below the call, such as a diff.
    pub preview: Option<Preview>,
    /// Time after which the call is stopped.
    pub deadline: Duration,
    /// Facts from the log that the call needs.
    pub needs: Vec<Need>,
    /// Reason to run outside the sandbox, if the call asks for that.
    pub unconfined: Option<String>,
    /// Function that runs the call.
    pub run: Run,
}

impl Prepared {
    /// Adds a remark about the arguments to the end of the call's output.
    #[must_use]
    pub(crate) fn with_remark(mut self, remark: Option<String>) -> Self {
        let Some(remark) = remark else {
            return self;
        };
        self.run = match self.run {
            Run::Blocking(run) => {
                Run::Blocking(Box::new(move |context| run(context).with_remark(&remark)))
            }
            Run::Async(run) => Run::Async(Box::new(move |context| {
                Box::pin(async move { run(context).await.with_remark(&remark) })
            })),
        };
        self
    }
}

/// Makes the exact effect of a call as text; empty if there is none.
///
/// An error is the output of a call that will fail. It may read files, so call it on a blocking
/// thread.
pub type Preview = Arc<dyn Fn(&CallInputs) -> Result<String, Box<Output>> + Send + Sync>;

/// Fact from the log that a call needs before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Hash of this file when the agent last read or wrote it.
    File(PathBuf),
    /// Last result of the `todo` tool.
    List,
    /// Content of a blob, by its hash in hexadecimal.
    Blob(String),
    /// Whole text of a row of the agent, as a blob.
    Row(u64),
    /// Files that the agent has read or written, newest first.
    ReadFiles,
    /// A number and a place for a background process, which the call starts.
    Background(BackgroundOrder),
    /// A keeper for a command that may go on in the background.
    Keeper,
    /// The background process of this name; without one, all that the agent may act on.
    Processes(Option<String>),
}

/// File that the agent has read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFile {
    /// Its path.
    pub path: PathBuf,
    /// Hash of the content that the agent knows, in hexadecimal.
    pub hash: String,
}

/// Answers to [`Need`]s.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallInputs {
    /// Hash of the file in hexadecimal; none if the agent has not touched it.
    pub file: Option<String>,
    /// Last result of the `todo` tool; none if there is none.
    pub list: Option<String>,
    /// Content of the blob; none if there is no such blob.
    pub blob: Option<Vec<u8>>,
    /// Files that the agent knows, each once.
    pub read_files: Vec<ReadFile>,
    /// Place of the background process that the call starts.
    pub background: Option<BackgroundPlace>,
    /// Keeper of the command, if it may go on in the background.
    pub keeper: Option<ForegroundKeeper>,
    /// Background processes that the call may act on.
    pub processes: Vec<KnownProcess>,
    /// Cookies of the agent's background processes, to whose servers the call may connect.
    pub own_runs: Vec<String>,
    /// Directory for the recording of changed files, if there is one.
    pub recording: Option<PathBuf>,
}

/// Way of running a call.
pub enum Run {
    /// On a separate thread, because it reads and writes files.
    Blocking(Box<dyn FnOnce(&CallContext) -> Output + Send>),
    /// As a task.
    Async(Box<dyn FnOnce(CallContext) -> ToolFuture<Output> + Send>),
}

/// Context of a running call.
#[derive(Clone)]
pub struct CallContext {
    /// Working directory and hidden paths.
    pub place: Place,
    /// Cancelled to stop the call: by the user or at its deadline. The call then ends soon, with
    /// its partial result and [`CallEnding::Stopped`].
    pub stop: CancellationToken,
    /// Facts from the log.
    pub inputs: CallInputs,
    /// Receives progress for front ends: the newest line of output.
    pub progress: Arc<dyn Fn(&str) + Send + Sync>,
    /// Receives whole lines of output for front ends, cleaned of control characters.
    pub output: process::OutputListener,
    /// Value of [`COOKIE_VARIABLE`] in the environment of the call's processes, by which they are
    /// found.
    pub cookie: String,
    /// Restrictions of its processes.
    pub confinement: Confinement,
    /// Directory for temporary files of its processes; none for calls that may not write.
    pub temporary: Option<Arc<TemporaryDirectory>>,
}

impl CallContext {
    /// Sets `TMPDIR` to the directory for temporary files, if there is one.
    pub(crate) fn set_temporary(&self, variables: &mut Vec<(OsString, OsString)>) {
        let temporary = self.temporary.as_ref();
        if let Some(path) = temporary.and_then(|temporary| temporary.path()) {
            variables.retain(|(name, _)| name != "TMPDIR");
            variables.push(("TMPDIR".into(), path.into()));
        }
    }
}

/// Environment variable that marks the processes of a call.
pub const COOKIE_VARIABLE: &str = "IKIGAI_RUN";

/// Servers on loopback that a sandboxed command may connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoopbackServer {
    /// Whatever listens on this port.
    Port(u16),
    /// The processes of the run with this cookie, on any port.
    ///
    /// A port says nothing about the program behind it: another one may have the same port on
    /// another loopback address, or take it later.
    Run(String),
}

/// Restrictions of a child process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// No restrictions.
    None,
    /// Sandbox with these exceptions.
    Sandbox {
        /// Directories that it may write, with everything below.
        write: Vec<PathBuf>,
        /// True if it may use the network.
        network: bool,
        /// Hosts that it may reach through a proxy, if it may not use the network.
        hosts: Arc<[AllowedHost]>,
        /// Servers on loopback that it may connect to, besides its own.
        loopback: Arc<[LoopbackServer]>,
        /// Paths that it may not even read.
        hidden: Arc<[PathBuf]>,
        /// Directories in which hooks and settings of repositories are protected.
        guarded: Vec<PathBuf>,
    },
}

impl Confinement {
    /// Returns true if processes may write nowhere.
    pub fn is_reading(&self) -> bool {
        matches!(self, Self::Sandbox { write, .. } if write.is_empty())
    }

    /// Lets a sandbox that may write reach these hosts through a proxy.
    #[must_use]
    pub fn with_hosts(mut self, allowed: Arc<[AllowedHost]>) -> Self {
        if let Self::Sandbox { hosts, .. } = &mut self {
            *hosts = allowed;
        }
        self
    }

    /// Returns the servers on loopback that a command may connect to, besides its own.
    pub(crate) fn loopback(&self) -> &[LoopbackServer] {
        match self {
            Self::Sandbox { loopback, .. } => loopback,
            Self::None => &[],
        }
    }

    /// Returns the hosts for which a command needs a proxy.
    pub(crate) fn proxied_hosts(&self) -> Option<&Arc<[AllowedHost]>> {
        match self {
            Self::Sandbox {
                write,
                network: false,
                hosts,
                ..
            } if !write.is_empty() && !hosts.is_empty() => Some(hosts),
            _ => None,
        }
    }

    /// Lets a sandbox connect to these ports of other programs on loopback.
    #[must_use]
    pub fn with_loopback_ports(self, ports: &[u16]) -> Self {
        self.with_loopback(ports.iter().copied().map(LoopbackServer::Port))
    }

    /// Lets a sandbox connect to the servers of these runs on loopback.
    #[must_use]
    pub fn with_servers_of(self, cookies: &[String]) -> Self {
        self.with_loopback(cookies.iter().cloned().map(LoopbackServer::Run))
    }

    fn with_loopback(mut self, more: impl Iterator<Item = LoopbackServer>) -> Self {
        if let Self::Sandbox { loopback, .. } = &mut self {
            *loopback = loopback.iter().cloned().chain(more).collect();
        }
        self
    }

    /// Adds directories and files that a sandbox may write, except for hooks and settings of
    /// repositories.
    #[must_use]
    pub fn with_writable(mut self, paths: &[PathBuf]) -> Self {
        if let Self::Sandbox { guarded, .. } = &mut self {
            guarded.extend_from_slice(paths);
        }
        self.with_caches(paths)
    }

    /// Adds caches that a sandbox may write, with everything in them.
    #[must_use]
    pub fn with_caches(mut self, paths: &[PathBuf]) -> Self {
        if let Self::Sandbox { write, .. } = &mut self {
            write.extend_from_slice(paths);
            write.sort();
            write.dedup();
        }
        self
    }
}
