//! Test of the sandbox: enters one and tries to get out.
//!
//! A thread enters it instead of a process: both are confined alike, and no helper program has to
//! be installed. The thread ends with its sandbox.

use std::fs::{self, File};
use std::io;
use std::net::UdpSocket;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use landlock::{AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};

use super::{FileStops, Force, Gap, Jail};
use crate::Confinement;

/// Most names tried in one directory.
const MOST_NAMES: usize = 16;

pub(super) fn run() -> Force {
    match ProbeDirectory::make() {
        Ok(place) => {
            let attempt = std::thread::scope(|scope| {
                std::thread::Builder::new()
                    .name("sandbox probe".to_owned())
                    .spawn_scoped(scope, || attempt(&place))
                    .map(std::thread::ScopedJoinHandle::join)
            });
            match attempt {
                Ok(Ok(force)) => force,
                Ok(Err(_)) => Force::None("the attempt failed".to_owned()),
                Err(error) => Force::None(format!("cannot try it: {error}")),
            }
        }
        Err(error) => Force::None(format!("cannot try it: {error}")),
    }
}

fn attempt(place: &ProbeDirectory) -> Force {
    let confinement = Confinement::Sandbox {
        write: vec![place.inside.clone()],
        network: false,
        hosts: Arc::default(),
        loopback: Arc::default(),
        hidden: Arc::from([place.secret.clone()]),
        guarded: Vec::new(),
    };
    match Jail::of(&confinement, Path::new(""), FileStops::None) {
        Ok(Some(jail)) => {
            if let Err(error) = jail.enter() {
                return Force::None(format!("this kernel refuses it: {error}"));
            }
        }
        Ok(None) => return Force::None("none available".to_owned()),
        Err(error) => return Force::None(format!("this kernel lacks it: {error}")),
    }
    if File::create(place.inside.join("new")).is_err() || fs::read(&place.plain).is_err() {
        return Force::None("it blocks what is allowed".to_owned());
    }
    judge(gaps(place))
}

/// Tries forbidden actions in a sandbox and returns the successful ones.
fn gaps(place: &ProbeDirectory) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut gap_if = |gap, is_open| {
        if is_open {
            gaps.push(gap);
        }
    };
    gap_if(Gap::Write, File::create(place.root.join("new")).is_ok());
    gap_if(Gap::Truncate, !knows_truncate());
    gap_if(Gap::Hidden, fs::read(&place.secret).is_ok());
    let parent = rustix::process::getppid();
    if let Some(parent) = parent {
        let environment = format!("/proc/{}/environ", parent.as_raw_nonzero());
        gap_if(Gap::Processes, fs::read(environment).is_ok());
    }
    gap_if(Gap::Network, UdpSocket::bind("127.0.0.1:0").is_ok());
    gap_if(Gap::Sockets, UnixDatagram::unbound().is_ok());
    if let Some(parent) = parent {
        let signalled = rustix::process::test_kill_process(parent);
        gap_if(Gap::Signals, signalled.is_ok());
    }
    gaps
}

/// Rates the gaps. The kernel guards files and calls separately, so one may work alone.
fn judge(gaps: Vec<Gap>) -> Force {
    match gaps.as_slice() {
        [] => Force::Full,
        gaps if gaps.contains(&Gap::Write) && gaps.contains(&Gap::Network) => {
            Force::None("this kernel has neither Landlock nor seccomp".to_owned())
        }
        _ => Force::Partly(gaps),
    }
}

fn knows_truncate() -> bool {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Truncate)
        .is_ok()
}

/// Temporary directory of the test, removed at the end.
struct ProbeDirectory {
    root: PathBuf,
    inside: PathBuf,
    plain: PathBuf,
    secret: PathBuf,
}

impl ProbeDirectory {
    fn make() -> io::Result<Self> {
        let root = make_directory()?;
        let place = Self {
            inside: root.join("inside"),
            plain: root.join("plain"),
            secret: root.join("secret"),
            root,
        };
        fs::create_dir(&place.inside)?;
        write(&place.plain)?;
        write(&place.secret)?;
        Ok(place)
    }
}

/// Creates a private directory in the first place that allows it.
///
/// Other users must not be able to disable the sandbox by taking a name or filling a disk.
fn make_directory() -> io::Result<PathBuf> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for parent in [
        &*std::env::temp_dir(),
        Path::new("/dev/shm"),
        Path::new("/var/tmp"),
    ] {
        for _ in 0..MOST_NAMES {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let nanoseconds = now.unwrap_or_default().as_nanos();
            let name = format!("ikigai-sandbox-{}-{nanoseconds}", std::process::id());
            let root = parent.join(name);
            match fs::DirBuilder::new().mode(0o700).create(&root) {
                Ok(()) => return Ok(root),
                Err(error) => failure = error,
            }
            if failure.kind() != io::ErrorKind::AlreadyExists {
                break;
            }
        }
    }
    Err(failure)
}

impl Drop for ProbeDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn write(path: &Path) -> io::Result<()> {
    fs::write(path, "to be read or not")
}
