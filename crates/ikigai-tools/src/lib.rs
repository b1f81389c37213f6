//! What models can do: built-in and external tools, child processes, the sandbox, permission.
//!
//! A tool understands its arguments ([`Tool::prepare`]) before anything happens; what comes back
//! says what the call would do, so that it can be asked about, journalled and scheduled. Only then
//! is it run. Nothing here knows the log: what a call needs of it is handed in, and what belongs
//! into it is handed out.

mod anchored_file;
pub mod arguments;
pub mod builtin;
mod diff;
mod directory_stamp;
mod external;
mod files;
pub mod output;
pub mod paths;
pub mod permission;
pub mod process;
pub mod protected_paths;
pub mod sandbox;
pub mod schedule;
pub mod toolbox;
mod web;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::project::ToolSpec;
use tokio_util::sync::CancellationToken;

pub use arguments::BadArguments;
pub use external::Broken;
pub use output::{Ending, Output, Stale};
pub use schedule::{Paths, Touches};

/// A future that a tool returns.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Something that a model can call.
pub trait Tool: Send + Sync {
    /// What the model is told of it.
    fn spec(&self) -> ToolSpec;

    /// Understands a call without carrying it out: no effect, no waiting. `arguments` is the text
    /// that the model wrote, which may be anything.
    fn prepare(&self, arguments: &str, place: &Place) -> Result<Prepared, BadArguments>;
}

/// Where calls of an agent take place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The agent's working directory, absolute.
    pub workdir: PathBuf,
    /// Files and directories that no tool may read or write: keys, and the store itself.
    pub hidden: Arc<[PathBuf]>,
}

/// A call whose arguments are understood.
pub struct Prepared {
    /// What it does to the world.
    pub class: EffectClass,
    /// Which files it reads and writes, for running calls side by side.
    pub touches: Touches,
    /// The whole call for a person, exactly, without the tool's name.
    pub shown: String,
    /// What permission patterns are matched with: the command line, the path, the address.
    pub subject: String,
    /// What *always* would allow, if a person is asked: a pattern that matches `subject`.
    pub pattern: String,
    /// Makes what a question shows below the call, such as a diff.
    pub preview: Option<Preview>,
    /// After so long it is stopped.
    pub deadline: Duration,
    /// What it must be told of the log.
    pub needs: Vec<Need>,
    /// The deed.
    pub run: Run,
}

/// Makes the exact effect of a call as text, empty if there is nothing to show.
///
/// An error is the output of a call that is known to fail before it runs. It may read files, so
/// call it on a blocking thread.
pub type Preview = Arc<dyn Fn(&Given) -> Result<String, Box<Output>> + Send + Sync>;

/// What a call must be told of the log before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// The hash of this file when the agent last read or wrote it.
    File(PathBuf),
    /// What the `list` tool last answered.
    List,
    /// The bytes of a blob, by its hash in hexadecimal.
    Blob(String),
}

/// The answers to [`Need`]s.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// The file's hash in hexadecimal; none if the agent has not touched it.
    pub file: Option<String>,
    /// The list as it was last answered; none if there is none.
    pub list: Option<String>,
    /// The blob's bytes; none if there is no such blob.
    pub blob: Option<Vec<u8>>,
}

/// How a call is carried out.
pub enum Run {
    /// On a thread of its own, because it reads and writes files.
    Blocking(Box<dyn FnOnce(&Context) -> Output + Send>),
    /// As a task.
    Async(Box<dyn FnOnce(Context) -> BoxFuture<Output> + Send>),
}

/// What a running call has at hand.
#[derive(Clone)]
pub struct Context {
    /// Where it takes place.
    pub place: Place,
    /// Becomes cancelled when the call is to stop: by the user or at its deadline. The call then
    /// ends soon, with what it has so far and [`Ending::Stopped`].
    pub stop: CancellationToken,
    /// What it was told of the log.
    pub given: Given,
    /// Tells a front end how it goes: the newest line of output.
    pub progress: Arc<dyn Fn(&str) + Send + Sync>,
    /// Receives whole lines of output for front ends, cleaned of control characters.
    pub output: process::OutputListener,
    /// Goes into the environment of every process that the call starts, as [`COOKIE_VARIABLE`],
    /// so that these can be found.
    pub cookie: String,
    /// What its processes are kept from.
    pub confinement: Confinement,
}

/// The variable by which processes of a call are found.
pub const COOKIE_VARIABLE: &str = "IKIGAI_RUN";

/// What a child process is kept from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// Nothing.
    None,
    /// Everything but these.
    Sandbox {
        /// Where it may write, with everything below.
        write: Vec<PathBuf>,
        /// Whether it may use the network.
        network: bool,
        /// What it may not even read.
        hidden: Arc<[PathBuf]>,
        /// Working directory in which hooks and settings of repositories are protected.
        guarded: Option<PathBuf>,
    },
}

impl Confinement {
    /// True if processes may write nowhere.
    pub fn is_reading(&self) -> bool {
        matches!(self, Self::Sandbox { write, .. } if write.is_empty())
    }
}
