//! Paths of a stopped call, read from the memory of its caller and resolved as the kernel will.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Longest path (`PATH_MAX`).
const MOST_PATH_BYTES: usize = 4096;

/// Most links that the kernel follows in one path (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

/// Bytes read at a time, so that most paths take one read.
const CHUNK_BYTES: usize = 256;

/// Handling of a link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastLink {
    /// The call acts on its target.
    Followed,
    /// The call acts on the link itself.
    Kept,
}

/// Memory of a thread of the command.
pub(super) struct CallerMemory {
    caller: i32,
    memory: File,
}

impl CallerMemory {
    pub(super) fn open(caller: i32) -> Option<Self> {
        let memory = File::open(format!("/proc/{caller}/mem")).ok()?;
        Some(Self { caller, memory })
    }

    /// Reads a number.
    pub(super) fn number(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, address).ok()?;
        Some(u64::from_ne_bytes(bytes))
    }

    /// Reads a path.
    fn path(&self, address: u64) -> Option<OsString> {
        let mut path = Vec::new();
        while path.len() < MOST_PATH_BYTES {
            let mut chunk = [0; CHUNK_BYTES];
            let at = address.checked_add(path.len() as u64)?;
            // Not past the end of a page, behind which there may be no memory.
            let in_page = 4096 - usize::try_from(at % 4096).ok()?;
            let chunk = chunk.get_mut(..in_page.min(CHUNK_BYTES))?;
            let read = self
                .memory
                .read_at(chunk, at)
                .ok()
                .filter(|read| *read > 0)?;
            let read = chunk.get(..read)?;
            match read.iter().position(|byte| *byte == 0) {
                Some(end) => {
                    path.extend_from_slice(read.get(..end)?);
                    return Some(OsString::from_vec(path));
                }
                None => path.extend_from_slice(read),
            }
        }
        None
    }

    /// Returns the file of a descriptor.
    pub(super) fn of_descriptor(&self, descriptor: u64) -> Option<PathBuf> {
        let number = number_of(descriptor);
        let path = std::fs::read_link(format!("/proc/{}/fd/{number}", self.caller)).ok()?;
        (path.is_absolute() && !is_deleted(&path)).then_some(path)
    }

    /// Returns the path that a call names, without links.
    pub(super) fn resolve(
        &self,
        directory: Option<u64>,
        address: u64,
        last: LastLink,
    ) -> Option<PathBuf> {
        let named = self.path(address)?;
        if named.is_empty() {
            return None;
        }
        let caller = self.caller;
        let path = if named.as_bytes().starts_with(b"/") {
            self.own_process(&named)
        } else {
            let directory = directory.map(number_of);
            let base = match directory {
                Some(number) if number != libc::AT_FDCWD => format!("/proc/{caller}/fd/{number}"),
                _ => format!("/proc/{caller}/cwd"),
            };
            Path::new(&base).join(&named)
        };
        let is_inner = path.file_name().is_some() && !path.as_os_str().as_bytes().ends_with(b"/.");
        if last == LastLink::Followed || !is_inner {
            followed(path)
        } else {
            kept(&path)
        }
    }

    /// Replaces the names under which a process finds itself.
    fn own_process(&self, named: &OsStr) -> PathBuf {
        let path = Path::new(named);
        for own in ["/proc/self", "/proc/thread-self"] {
            if let Ok(rest) = path.strip_prefix(own) {
                return Path::new(&format!("/proc/{}", self.caller)).join(rest);
            }
        }
        path.to_owned()
    }
}

/// Follows links at the end of a path, also those to a file that the call would create.
fn followed(mut path: PathBuf) -> Option<PathBuf> {
    for _ in 0..MOST_LINKS {
        if let Some(real) = real_path(&path) {
            return Some(real);
        }
        let itself = kept(&path)?;
        match std::fs::read_link(&itself) {
            Ok(target) => path = itself.parent()?.join(target),
            Err(_) => return Some(itself),
        }
    }
    kept(&path)
}

/// Resolves all but the last name of a path.
fn kept(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    Some(real_path(path.parent()?)?.join(name))
}

/// Lets the kernel resolve a path that exists.
fn real_path(path: &Path) -> Option<PathBuf> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let real = std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).ok()?;
    (real.is_absolute() && !is_deleted(&real)).then_some(real)
}

fn is_deleted(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b" (deleted)")
}

fn number_of(argument: u64) -> i32 {
    // The kernel reads the lower half.
    let low = u32::try_from(argument & u64::from(u32::MAX)).unwrap_or_default();
    low.cast_signed()
}
