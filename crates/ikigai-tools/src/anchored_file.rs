//! Files opened through directory descriptors, so that no link is followed.
//!
//! A path that was resolved and approved can lead elsewhere a moment later: another process may
//! swap a directory for a link. So the directory of a file is opened without following any link,
//! and all other operations are relative to that descriptor, by the name of the file alone.

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

/// Opens a directory only to pass through it, without the right to list it.
#[cfg(target_os = "linux")]
const PASS: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const PASS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens an entry for its metadata, without an effect on pipes and devices.
#[cfg(target_os = "linux")]
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const LOOK: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Handling of missing directories.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingDirectories {
    /// Return an error.
    Fail,
    /// Create them.
    Create,
}

/// File name in an open directory. The file need not exist.
#[derive(Debug)]
pub(crate) struct AnchoredFile {
    directory: OwnedFd,
    name: OsString,
}

impl AnchoredFile {
    /// Opens the directory of a file by its absolute path, resolved before.
    ///
    /// Fails with `ELOOP` if the path leads through a link.
    pub(crate) fn open(real: &Path, missing: MissingDirectories) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(Errno::ISDIR.into());
        };
        Ok(Self {
            directory: open_directory(parent, missing)?,
            name: name.to_owned(),
        })
    }

    /// Returns another file name in the same directory.
    pub(crate) fn sibling(&self, name: impl Into<OsString>) -> io::Result<Self> {
        Ok(Self {
            directory: self.directory.try_clone()?,
            name: name.into(),
        })
    }

    /// Reads the metadata of the entry itself, even if it is a link.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        let looked = rustix::fs::openat(&self.directory, &self.name, LOOK, Mode::empty())?;
        File::from(looked).metadata()
    }

    /// Reads the target of a link.
    pub(crate) fn read_link(&self) -> io::Result<OsString> {
        use std::os::unix::ffi::OsStringExt;

        let target = rustix::fs::readlinkat(&self.directory, &self.name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    /// Returns a path of the file for calls that take no directory.
    #[cfg(target_os = "linux")]
    pub(crate) fn path_by_descriptor(&self) -> PathBuf {
        use std::os::fd::AsRawFd;

        let directory = self.directory.as_raw_fd();
        Path::new(&format!("/proc/self/fd/{directory}")).join(&self.name)
    }

    /// Returns the open directory.
    pub(crate) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Opens the file without blocking. A link in its place is an error.
    pub(crate) fn open_file(&self, flags: OFlags, mode: Mode) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
        let opened = rustix::fs::openat(&self.directory, &self.name, flags, mode)?;
        Ok(File::from(opened))
    }

    /// Checks that this process may write the file.
    pub(crate) fn check_writable(&self) -> io::Result<()> {
        let flags = AtFlags::empty();
        rustix::fs::accessat(&self.directory, &self.name, Access::WRITE_OK, flags)?;
        Ok(())
    }

    /// Renames the file over another in the same directory, and syncs the directory.
    pub(crate) fn rename_over(&self, other: &Self) -> io::Result<()> {
        rustix::fs::renameat(&self.directory, &self.name, &other.directory, &other.name)?;
        File::from(self.open_directory()?).sync_all()
    }

    /// Opens the directory for more than passing through.
    fn open_directory(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(
            &self.directory,
            ".",
            flags,
            Mode::empty(),
        )?)
    }

    /// Removes the file.
    pub(crate) fn remove(&self) -> io::Result<()> {
        rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty())?;
        Ok(())
    }

    /// Returns the file's name.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Returns the names of the first entries in the file's directory, in no order.
    pub(crate) fn names_beside(&self, most: usize) -> Vec<String> {
        let Ok(entries) = self
            .open_directory()
            .and_then(|opened| Ok(Dir::new(opened)?))
        else {
            return Vec::new();
        };
        let name = |entry: rustix::fs::DirEntry| entry.file_name().to_str().ok().map(str::to_owned);
        entries
            .take(most)
            .filter_map(|entry| name(entry.ok()?))
            .filter(|name| name != "." && name != "..")
            .collect()
    }
}

/// Opens a directory by an absolute path that had no links when resolved.
///
/// Fails with `ELOOP` if the path leads through a link.
pub(crate) fn open_directory(real: &Path, missing: MissingDirectories) -> io::Result<OwnedFd> {
    let inside = real.strip_prefix("/").map_err(|_| Errno::INVAL)?;
    let root = rustix::fs::openat(CWD, "/", PASS, Mode::empty())?;
    if inside.as_os_str().is_empty() {
        return Ok(root);
    }
    match open_at_once(&root, inside) {
        Some(Err(Errno::NOENT)) if missing == MissingDirectories::Create => {}
        Some(outcome) => return Ok(outcome?),
        None => {}
    }
    step_down(root, inside, missing)
}

/// Lets the kernel resolve the path without links, if it can.
///
/// Returns none if `openat2` is missing, a container refuses it, or the error could mean a link or
/// a file.
#[cfg(target_os = "linux")]
fn open_at_once(root: &OwnedFd, inside: &Path) -> Option<Result<OwnedFd, Errno>> {
    use rustix::fs::ResolveFlags;

    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(root, inside, PASS, Mode::empty(), resolve) {
        Err(
            Errno::NOSYS
            | Errno::PERM
            | Errno::INVAL
            | Errno::TOOBIG
            | Errno::AGAIN
            | Errno::NOTDIR,
        ) => None,
        outcome => Some(outcome),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_at_once(_root: &OwnedFd, _inside: &Path) -> Option<Result<OwnedFd, Errno>> {
    None
}

/// Walks a path one directory at a time, following no link.
fn step_down(root: OwnedFd, inside: &Path, missing: MissingDirectories) -> io::Result<OwnedFd> {
    let mut directory = root;
    for part in inside.components() {
        let Component::Normal(name) = part else {
            return Err(Errno::INVAL.into());
        };
        directory = match step(&directory, name) {
            Err(Errno::NOENT) if missing == MissingDirectories::Create => {
                match rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
                    // Another process created it first.
                    Ok(()) | Err(Errno::EXIST) => step(&directory, name)?,
                    Err(error) => return Err(error.into()),
                }
            }
            outcome => outcome?,
        };
    }
    Ok(directory)
}

fn step(directory: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    match rustix::fs::openat(directory, name, PASS, Mode::empty()) {
        // The kernel returns this error for a link, too.
        Err(Errno::NOTDIR) if is_link(directory, name) => Err(Errno::LOOP),
        outcome => outcome,
    }
}

fn is_link(directory: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::readlinkat(directory, name, Vec::new()).is_ok()
}
