//! Private directories for the temporary files of commands.
//!
//! The process that made a directory holds a lock on it, which the kernel releases when that process
//! dies. So a directory without a lock is abandoned, and a later process removes it.

use std::ffi::CStr;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Prefix of the names. Versions that held no lock used `ikigai-`.
const PREFIX: &str = "ikigai-tmp-";

/// Hexadecimal digits after the prefix.
const DIGITS: usize = 16;

/// Attempts to find a name that is not taken.
const ATTEMPTS: usize = 8;

/// Deepest directory that is removed; each level needs a descriptor.
const MOST_LEVELS: usize = 256;

/// Flags that open a directory itself, not the target of a link.
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Directory that only the user can read, made when it is first used.
///
/// Dropping it removes it with its content, and blocks for that.
#[derive(Debug, Default)]
pub struct TemporaryDirectory {
    made: OnceLock<Option<LockedDirectory>>,
}

/// A directory with the descriptor that holds its lock.
#[derive(Debug)]
struct LockedDirectory {
    path: PathBuf,
    lock: OwnedFd,
    /// True if a process still uses it.
    is_left: AtomicBool,
}

impl TemporaryDirectory {
    /// Returns the directory; none if it cannot be made.
    pub fn path(&self) -> Option<&Path> {
        let made = self
            .made
            .get_or_init(|| LockedDirectory::make(&std::env::temp_dir()).ok());
        made.as_ref().map(|made| made.path.as_path())
    }

    /// Leaves the directory to a process that goes on; a later start of ikigai removes it.
    pub fn leave(&self) {
        if let Some(Some(made)) = self.made.get() {
            made.is_left.store(true, Ordering::Relaxed);
        }
    }
}

impl LockedDirectory {
    /// Makes a directory in `parent`.
    fn make(parent: &Path) -> io::Result<Self> {
        let mut failure = Errno::EXIST;
        for _ in 0..ATTEMPTS {
            let number = RandomState::new().build_hasher().finish();
            let path = parent.join(format!("{PREFIX}{number:0DIGITS$x}"));
            match Self::make_at(path) {
                Ok(made) => return Ok(made),
                Err(error) => failure = error,
            }
        }
        Err(failure.into())
    }

    fn make_at(path: PathBuf) -> Result<Self, Errno> {
        rustix::fs::mkdir(&path, Mode::RWXU)?;
        let lock = rustix::fs::openat(CWD, &path, DIRECTORY, Mode::empty())?;
        let locked = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive);
        // A process that cleans up may take the new directory for an abandoned one. On a file system
        // without locks no process can.
        let is_taken = locked == Err(Errno::WOULDBLOCK);
        if !is_taken && is_at(CWD, path.as_os_str().as_bytes(), &rustix::fs::fstat(&lock)?) {
            let is_left = AtomicBool::new(false);
            Ok(Self {
                path,
                lock,
                is_left,
            })
        } else {
            Err(Errno::NOENT)
        }
    }
}

impl Drop for LockedDirectory {
    fn drop(&mut self) {
        if *self.is_left.get_mut() {
            return;
        }
        // A directory that cannot be removed is left to the system.
        let _ = remove_content(self.lock.as_fd(), MOST_LEVELS);
        let _ = rustix::fs::rmdir(&self.path);
    }
}

/// Removes the temporary directories of processes that died; returns their number.
///
/// It removes only directories of this user, whose lock is free and which no running process has as
/// `TMPDIR`. It follows no link. Blocks.
pub fn remove_abandoned_directories() -> usize {
    remove_abandoned_in(&std::env::temp_dir()).unwrap_or(0)
}

fn remove_abandoned_in(parent: &Path) -> io::Result<usize> {
    let opened = rustix::fs::open(
        parent,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut removed = 0;
    for entry in Dir::read_from(&opened)? {
        let entry = entry?;
        if is_name(entry.file_name())
            && remove_if_abandoned(parent, opened.as_fd(), entry.file_name()).is_ok()
        {
            removed += 1;
        }
    }
    Ok(removed)
}

/// Returns true for the names that [`LockedDirectory::make`] gives.
fn is_name(name: &CStr) -> bool {
    let name = name.to_bytes().strip_prefix(PREFIX.as_bytes());
    name.is_some_and(|digits| {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        digits.len() == DIGITS && digits.iter().all(is_digit)
    })
}

fn remove_if_abandoned(path: &Path, parent: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    let opened = rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())?;
    let status = rustix::fs::fstat(&opened)?;
    if status.st_uid != geteuid().as_raw() {
        return Err(Errno::PERM);
    }
    rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive)?;
    if is_in_use(path, name) {
        return Err(Errno::BUSY);
    }
    // Another process may have put something else in its place before the lock was ours.
    if !is_at(parent, name.to_bytes(), &status) {
        return Err(Errno::NOENT);
    }
    remove_content(opened.as_fd(), MOST_LEVELS)?;
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Returns true if the entry of this name is the file with this status.
fn is_at(parent: BorrowedFd<'_>, name: &[u8], status: &Stat) -> bool {
    let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| (found.st_dev, found.st_ino) == (status.st_dev, status.st_ino))
}

/// Returns true if a running process was started with this directory as its `TMPDIR`.
///
/// Commands of a process that was killed may still run, until another process ends them.
fn is_in_use(parent: &Path, name: &CStr) -> bool {
    let mut wanted = b"TMPDIR=".to_vec();
    wanted.extend_from_slice(parent.as_os_str().as_bytes());
    if !wanted.ends_with(b"/") {
        wanted.push(b'/');
    }
    wanted.extend_from_slice(name.to_bytes());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("environ")).ok())
        .any(|all| all.split(|byte| *byte == 0).any(|entry| entry == wanted))
}

/// Removes everything in a directory, down to a number of levels. Follows no link.
fn remove_content(directory: BorrowedFd<'_>, levels: usize) -> Result<(), Errno> {
    let levels = levels.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
    // Programs leave directories without write permission behind.
    let _ = rustix::fs::fchmod(directory, Mode::RWXU);
    let mut failure = None;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let is_directory = match entry.file_type() {
            FileType::Directory => true,
            FileType::Unknown => {
                rustix::fs::openat(directory, name, DIRECTORY, Mode::empty()).is_ok()
            }
            _ => false,
        };
        let removed = if is_directory {
            rustix::fs::openat(directory, name, DIRECTORY, Mode::empty())
                .and_then(|below| remove_content(below.as_fd(), levels))
                .and_then(|()| rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR))
        } else {
            rustix::fs::unlinkat(directory, name, AtFlags::empty())
        };
        if let Err(error) = removed {
            failure = Some(error);
        }
    }
    failure.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests;
