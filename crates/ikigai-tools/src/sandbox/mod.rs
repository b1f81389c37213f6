//! Sandbox of child processes: Landlock for files and signals, seccomp for everything else.
//!
//! The parent builds a sandbox before it creates the child; the child enters it just before `exec`.
//! Its descendants inherit it, and no process can leave it. [`in_force`] finds out by trial which
//! parts work on this machine.

#[cfg(target_os = "linux")]
mod bpf;
#[cfg(target_os = "linux")]
mod call_lists;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod jail;
#[cfg(not(target_os = "linux"))]
#[path = "no_jail.rs"]
mod jail;
#[cfg(target_os = "linux")]
mod listener;
#[cfg(target_os = "linux")]
mod loopback;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod ruleset_cache;
#[cfg(target_os = "linux")]
mod unix_sockets;

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::Confinement;
use crate::file_history::RecordingPlan;
use crate::refusals::RefusalLog;
pub(crate) use jail::{Jail, Listener, ListenerReceiver, give_up_namespaces};

/// Looks up the inodes of sockets. Blocks.
pub(crate) type SocketLookup = Arc<dyn Fn() -> HashSet<u64> + Send + Sync>;

/// Stop of calls that can change files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileStops {
    /// A supervisor sees each call before the kernel carries it out.
    Recorded,
    /// Such calls pass.
    None,
}

impl FileStops {
    /// Stops calls if a recording is planned.
    pub(crate) fn of(plan: Option<&RecordingPlan>) -> Self {
        match plan {
            Some(_) => Self::Recorded,
            None => Self::None,
        }
    }
}

/// Addresses on loopback that a command may connect to, besides its own servers.
#[derive(Clone, Default)]
pub(crate) struct LoopbackReach {
    /// Ports of other programs.
    pub(crate) ports: Arc<[u16]>,
    /// Sockets of other commands of the same agent.
    pub(crate) sockets: Option<SocketLookup>,
    /// The proxy to listed hosts.
    pub(crate) proxy: Option<SocketAddr>,
    /// Record of refused connections.
    pub(crate) refusals: RefusalLog,
}

/// Protection that the sandbox gives on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Force {
    /// All protections work.
    Full,
    /// All protections work except these.
    Partly(Vec<Gap>),
    /// No protection works, for this reason.
    None(String),
}

/// Action that the sandbox does not prevent on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// Writing outside of the given directories.
    Write,
    /// Truncating files outside of the given directories, though not writing to them.
    Truncate,
    /// Reading hidden files.
    Hidden,
    /// Reading the memory and the environment of other processes, ikigai's among them.
    Processes,
    /// Using the network.
    Network,
    /// Connecting to local daemons through sockets.
    Sockets,
    /// Sending signals to processes outside.
    Signals,
}

impl Force {
    /// Returns true if a read-only command may run without approval.
    ///
    /// The sandbox then keeps it from writing, reading secrets and using the network.
    pub fn makes_reading_safe(&self) -> bool {
        match self {
            Self::Full => true,
            // A missing signal protection does not matter: reading commands cannot send any.
            Self::Partly(gaps) => gaps.iter().all(|gap| *gap == Gap::Signals),
            Self::None(_) => false,
        }
    }
}

impl fmt::Display for Force {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => formatter.write_str("in force"),
            Self::Partly(gaps) => {
                formatter.write_str("in force, but does not prevent ")?;
                for (index, gap) in gaps.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(formatter, "{separator}{gap}")?;
                }
                Ok(())
            }
            Self::None(reason) => write!(formatter, "not in force: {reason}"),
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Write => "writing outside",
            Self::Truncate => "emptying files outside",
            Self::Hidden => "reading hidden files",
            Self::Processes => "reading other processes",
            Self::Network => "network",
            Self::Sockets => "sockets of daemons",
            Self::Signals => "signals to processes outside",
        })
    }
}

/// Returns the protection that works on this machine.
///
/// The first call tries it on a thread that enters a sandbox, and blocks for a few milliseconds;
/// later calls return the cached result.
pub fn in_force() -> Force {
    static FOUND: OnceLock<Force> = OnceLock::new();
    FOUND.get_or_init(try_it).clone()
}

#[cfg(target_os = "linux")]
fn try_it() -> Force {
    probe::run()
}

#[cfg(not(target_os = "linux"))]
fn try_it() -> Force {
    Force::None("only Linux has a sandbox".to_owned())
}

/// Builds the sandbox of a program.
///
/// If no sandbox works here, returns none and a warning for the result. Directories in `read_only`
/// cannot be changed if namespaces work.
pub(crate) fn jail(
    confinement: &Confinement,
    program: &Path,
    read_only: &[PathBuf],
    files: FileStops,
    in_force: impl FnOnce() -> Force,
) -> io::Result<(Option<Jail>, Option<String>)> {
    if *confinement == Confinement::None {
        return Ok((None, None));
    }
    match in_force() {
        Force::None(reason) => Ok((None, Some(format!("ran without a sandbox: {reason}")))),
        Force::Full | Force::Partly(_) => {
            let jail = Jail::of(confinement, program, files)?;
            let enter = |jail: Jail| jail.with_namespaces(confinement, read_only);
            Ok((jail.map(enter), None))
        }
    }
}

/// Returns the usual sandbox of a call.
///
/// It can write to the working directory, the directories for temporary files and shared memory.
pub fn usual(workdir: &Path, network: bool, hidden: Arc<[PathBuf]>) -> Confinement {
    let mut write = vec![
        workdir.to_path_buf(),
        std::env::temp_dir(),
        PathBuf::from("/tmp"),
        PathBuf::from("/var/tmp"),
        PathBuf::from("/dev/shm"),
    ];
    write.sort();
    write.dedup();
    Confinement::Sandbox {
        write,
        network,
        hosts: Arc::default(),
        loopback: Arc::default(),
        hidden,
        guarded: vec![workdir.to_path_buf()],
    }
}

/// Returns the sandbox of a read-only call: no writes and no network.
pub fn reading(hidden: Arc<[PathBuf]>) -> Confinement {
    Confinement::Sandbox {
        write: Vec::new(),
        network: false,
        hosts: Arc::default(),
        loopback: Arc::default(),
        hidden,
        guarded: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
