//! The sandbox of child processes: Landlock for files and signals, seccomp for everything else.
//!
//! A sandbox is built before the child is made and entered by the child just before `exec`; all
//! that it starts inherits it, and nobody can leave it. What is in force on this machine is found
//! out by trying: [`in_force`].

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
mod namespaces;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod ruleset_cache;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::Confinement;
pub(crate) use jail::{Jail, Listener, ListenerReceiver, give_up_namespaces};

/// What a sandbox is worth on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Force {
    /// It keeps everything that it promises.
    Full,
    /// It keeps what it promises but for these.
    Partly(Vec<Gap>),
    /// It keeps nothing, for this reason.
    None(String),
}

/// Something that the sandbox does not keep a process from on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// Writing outside of the given directories.
    Write,
    /// Emptying files outside of the given directories, though not writing to them.
    Truncate,
    /// Reading hidden files.
    Hidden,
    /// Reading the memory and the environment of other processes, ikigai's among them.
    Processes,
    /// Using the network.
    Network,
    /// Talking to daemons of this machine through sockets.
    Sockets,
    /// Sending signals to processes outside.
    Signals,
}

impl Force {
    /// Whether a command that should only read cannot write, read secrets or use the network even
    /// if it tries, so that it may run unasked.
    pub fn makes_reading_safe(&self) -> bool {
        match self {
            Self::Full => true,
            // A signal is no reading command's slip: these have no way to send one.
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

/// What the sandbox is worth on this machine. The first call tries it, on a thread of its own that
/// enters a sandbox; later ones remember. Blocks for a few milliseconds.
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
    Force::None("there is a sandbox only on Linux".to_owned())
}

/// Builds the sandbox of a program. Where none is in force the run goes without, and a warning comes
/// back that belongs into its result. `read_only` directories cannot be changed where namespaces
/// work.
pub(crate) fn jail(
    confinement: &Confinement,
    program: &Path,
    read_only: &[PathBuf],
    in_force: impl FnOnce() -> Force,
) -> io::Result<(Option<Jail>, Option<String>)> {
    if *confinement == Confinement::None {
        return Ok((None, None));
    }
    match in_force() {
        Force::None(reason) => Ok((None, Some(format!("ran without a sandbox: {reason}")))),
        Force::Full | Force::Partly(_) => {
            let jail = Jail::of(confinement, program)?;
            let enter = |jail: Jail| jail.with_namespaces(confinement, read_only);
            Ok((jail.map(enter), None))
        }
    }
}

/// The usual sandbox of a call: it writes in the working directory and where temporary files go,
/// shared memory among them.
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
        hidden,
        guarded: Some(workdir.to_path_buf()),
    }
}

/// The sandbox of a call that should only read: it writes nowhere and has no network.
pub fn reading(hidden: Arc<[PathBuf]>) -> Confinement {
    Confinement::Sandbox {
        write: Vec::new(),
        network: false,
        hidden,
        guarded: None,
    }
}

#[cfg(test)]
mod tests;
