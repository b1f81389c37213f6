//! Snapshot of a guarded directory, and its restoration.
//!
//! Links are entries and are never followed, so nothing outside of the directory is touched.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Mode, OFlags};

/// Limit on the entries of one directory that are recorded.
const MOST_ENTRIES: usize = 2000;

/// Limit on the bytes of one directory that are recorded for restoring.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// Entries of a directory by their relative paths; the directory itself is the empty path.
///
/// Samples among hooks are left out, because git never runs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DirectorySnapshot {
    entries: BTreeMap<PathBuf, Recorded>,
    /// Device and inode, if it is a directory.
    identity: Option<(u64, u64)>,
}

/// Recorded entry.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Recorded {
    File {
        mode: u32,
        /// True if the file has another name, through which it can be changed later.
        is_linked: bool,
        /// None for a file over the limit.
        content: Option<Vec<u8>>,
        bytes: u64,
        /// Modification time, compared instead of the content if that is over the limit.
        modified: Option<(i64, i64)>,
    },
    Link(PathBuf),
    Directory,
    Other,
}

/// Kind of a guarded directory; decides which changes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardedKind {
    /// Hooks of git: only executable or linked files that are no samples count.
    Hooks,
    /// Settings: every file counts.
    Settings,
}

impl GuardedKind {
    pub(super) fn of(directory: &Path) -> Self {
        if directory.ends_with("hooks") {
            Self::Hooks
        } else {
            Self::Settings
        }
    }

    fn counts(self, name: &Path, entry: &Recorded) -> bool {
        match (self, entry) {
            (_, Recorded::Directory) | (Self::Hooks, Recorded::Other) => false,
            (Self::Settings, _) | (Self::Hooks, Recorded::Link(_)) => true,
            (
                Self::Hooks,
                Recorded::File {
                    mode, is_linked, ..
                },
            ) => (*is_linked || mode & 0o111 != 0) && !self.is_sample(name),
        }
    }

    /// Returns true for a sample hook, which git installs and never runs.
    fn is_sample(self, name: &Path) -> bool {
        self == Self::Hooks && name.extension() == Some(OsStr::new("sample"))
    }
}

impl DirectorySnapshot {
    /// Records a directory; a missing one is empty.
    pub(super) fn take(directory: &Path) -> Self {
        Self::take_before(directory, None)
    }

    /// Records the entries that did not change since a time, if one is given.
    pub(super) fn take_before(directory: &Path, since: Option<SystemTime>) -> Self {
        let mut snapshot = Self::default();
        let Ok(metadata) = fs::symlink_metadata(directory) else {
            return snapshot;
        };
        let is_suspect = |metadata: &Metadata| since.is_some_and(|since| is_newer(metadata, since));
        let kind = GuardedKind::of(directory);
        let mut bytes_left = MOST_BYTES;
        let mut pending = Vec::new();
        if metadata.is_dir() {
            snapshot.identity = Some((metadata.dev(), metadata.ino()));
            snapshot.entries.insert(PathBuf::new(), Recorded::Directory);
            pending.push(PathBuf::new());
        } else if let Ok((parent, name)) = open_parent(directory)
            && !is_suspect(&metadata)
        {
            let entry = Recorded::read(&parent, name, &metadata, &mut bytes_left);
            snapshot.entries.insert(PathBuf::new(), entry);
        }
        while let Some(relative) = pending.pop() {
            let path = join(directory, &relative);
            let (Ok(opened), Ok(entries)) = (open_directory(&path), fs::read_dir(&path)) else {
                continue;
            };
            for entry in entries.flatten() {
                if snapshot.entries.len() >= MOST_ENTRIES {
                    return snapshot;
                }
                let name = entry.file_name();
                let relative = relative.join(&name);
                let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
                if is_file && kind.is_sample(&relative) {
                    continue;
                }
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                if metadata.is_dir() {
                    pending.push(relative.clone());
                } else if is_suspect(&metadata) {
                    continue;
                }
                let entry = Recorded::read(&opened, &name, &metadata, &mut bytes_left);
                snapshot.entries.insert(relative, entry);
            }
        }
        snapshot
    }

    /// Returns true if this is a snapshot of the present directory.
    pub(super) fn is_of(&self, directory: &Path) -> bool {
        let found = fs::symlink_metadata(directory).ok();
        let identity = found.map(|metadata| (metadata.dev(), metadata.ino()));
        identity.is_some() && identity == self.identity
    }

    /// Returns true if the directory may have more entries than are recorded.
    pub(super) fn is_truncated(&self) -> bool {
        self.entries.len() >= MOST_ENTRIES
    }

    /// Restores `directory` from `self` to `before`; returns the changed paths.
    ///
    /// Files of the command move to `attic`, which is created for the first of them. Entries that
    /// cannot be restored are listed with the reason.
    pub(super) fn restore(
        &self,
        before: &Self,
        directory: &Path,
        kind: GuardedKind,
        attic: &mut Attic,
    ) -> Vec<String> {
        let mut changed = Vec::new();
        for (relative, entry) in &self.entries {
            let old = before.entries.get(relative);
            let is_same = old.is_some_and(|old| old.is_same(entry));
            let counts =
                kind.counts(relative, entry) || old.is_some_and(|old| kind.counts(relative, old));
            if is_same || !counts {
                continue;
            }
            let path = join(directory, relative);
            let result = attic.take(&path).and_then(|()| match old {
                Some(old) => old.write(&path),
                None => Ok(()),
            });
            changed.push(describe(&path, result));
        }
        for (relative, old) in &before.entries {
            let path = join(directory, relative);
            let is_missing = !self.entries.contains_key(relative);
            // If a whole checkout or git directory was removed, its settings stay removed.
            let is_wanted = directory.parent().is_some_and(Path::exists);
            if is_missing && is_wanted && kind.counts(relative, old) {
                changed.push(describe(&path, old.write(&path)));
            }
        }
        if !changed.is_empty() {
            self.remove_new_directories(before, directory);
        }
        changed
    }

    /// Removes empty directories that the command created.
    fn remove_new_directories(&self, before: &Self, directory: &Path) {
        for (relative, entry) in self.entries.iter().rev() {
            if *entry == Recorded::Directory && !before.entries.contains_key(relative) {
                let path = join(directory, relative);
                // Fails for a directory with content, which stays.
                if let Ok((parent, name)) = open_parent(&path) {
                    let _ = rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR);
                }
            }
        }
    }
}

impl Recorded {
    fn read(parent: &OwnedFd, name: &OsStr, metadata: &Metadata, bytes_left: &mut u64) -> Self {
        if metadata.is_dir() {
            return Self::Directory;
        }
        if metadata.is_symlink() {
            let target = rustix::fs::readlinkat(parent, name, Vec::new());
            let target = target.map(|target| OsString::from_vec(target.into_bytes()));
            return Self::Link(target.unwrap_or_default().into());
        }
        if !metadata.is_file() {
            return Self::Other;
        }
        let bytes = metadata.len();
        let content = (bytes <= *bytes_left)
            .then(|| read_entry(parent, name))
            .flatten();
        if content.is_some() {
            *bytes_left -= bytes;
        }
        Self::File {
            mode: metadata.mode() & 0o7777,
            is_linked: metadata.nlink() > 1,
            modified: content
                .is_none()
                .then(|| (metadata.mtime(), metadata.mtime_nsec())),
            content,
            bytes,
        }
    }

    /// Returns true if two entries have the same content and right to execute.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File {
                    mode,
                    content: Some(content),
                    ..
                },
                Self::File {
                    mode: other_mode,
                    content: Some(other_content),
                    ..
                },
            ) => content == other_content && mode & 0o111 == other_mode & 0o111,
            _ => self == other,
        }
    }

    /// Writes the entry to a path that does not exist.
    fn write(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::File {
                mode,
                content: Some(content),
                ..
            } => write_file(path, content, *mode),
            Self::Link(target) => {
                let (parent, name) = open_parent(path)?;
                Ok(rustix::fs::symlinkat(target, &parent, name)?)
            }
            Self::Directory => Ok(()),
            Self::File { .. } | Self::Other => {
                Err(io::Error::other("it was too large to be recorded"))
            }
        }
    }
}

/// Returns true if an entry, or its name, changed since a time.
pub(super) fn changed_since(path: &Path, since: SystemTime) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| is_newer(&metadata, since))
}

fn is_newer(metadata: &Metadata, since: SystemTime) -> bool {
    // File times have the resolution of the timer tick.
    const TICK: Duration = Duration::from_millis(20);
    let seconds = u64::try_from(metadata.ctime()).unwrap_or(0);
    let nanoseconds = u32::try_from(metadata.ctime_nsec()).unwrap_or(0);
    let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds);
    changed + TICK >= since
}

/// Directory outside of the repository for removed files. Created on first use.
#[derive(Debug, Default)]
pub(super) struct Attic {
    directory: Option<PathBuf>,
    count: usize,
}

impl Attic {
    /// Returns the directory, if it has been created.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Keeps a copy of a small file, then removes the entry.
    fn take(&mut self, path: &Path) -> io::Result<()> {
        let (parent, name) = open_parent(path)?;
        let metadata = fs::symlink_metadata(path)?;
        if metadata.is_dir() {
            return fs::remove_dir_all(path);
        }
        if metadata.is_file()
            && metadata.len() <= MOST_BYTES
            && let Some(content) = read_file(path)
        {
            // If there is no room for the copy, remove the file all the same.
            let _ = self.keep(name, &content);
        }
        Ok(rustix::fs::unlinkat(&parent, name, AtFlags::empty())?)
    }

    /// Keeps a copy of a text.
    pub(super) fn keep(&mut self, name: &OsStr, content: &[u8]) -> io::Result<()> {
        let directory = match &self.directory {
            Some(directory) => directory.clone(),
            None => self.directory.insert(make_private_directory()?).clone(),
        };
        self.count += 1;
        let mut numbered = std::ffi::OsString::from(format!("{}-", self.count));
        numbered.push(name);
        fs::write(directory.join(numbered), content)
    }
}

fn make_private_directory() -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanoseconds = now.unwrap_or_default().as_nanos();
    let name = format!("ikigai-taken-back-{}-{nanoseconds}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::DirBuilder::new().mode(0o700).create(&directory)?;
    Ok(directory)
}

/// Replaces a file's content and keeps its mode. The path must not lead through links.
pub(super) fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mode = fs::symlink_metadata(path)?.mode() & 0o7777;
    let (parent, name) = open_parent(path)?;
    let mut temporary = name.to_owned();
    temporary.push(".ikigai-new");
    let _ = rustix::fs::unlinkat(&parent, &temporary, AtFlags::empty());
    create(&parent, &temporary, content, mode)?;
    Ok(rustix::fs::renameat(&parent, &temporary, &parent, name)?)
}

fn write_file(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    if let Some(parent) = path.parent()
        && !parent.exists()
    {
        fs::create_dir_all(parent)?;
    }
    let (parent, name) = open_parent(path)?;
    create(&parent, name, content, mode)
}

fn create(parent: &OwnedFd, name: &OsStr, content: &[u8], mode: u32) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(mode);
    let mut file = fs::File::from(rustix::fs::openat(parent, name, flags, mode)?);
    file.write_all(content)?;
    Ok(rustix::fs::fchmod(&file, mode)?)
}

/// Reads a regular file, refusing links. A pipe in its place does not block.
pub(super) fn read_file(path: &Path) -> Option<Vec<u8>> {
    read_opened(open_without_links(path, READ_ENTRY).ok()?)
}

fn read_entry(parent: &OwnedFd, name: &OsStr) -> Option<Vec<u8>> {
    let flags = READ_ENTRY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    read_opened(rustix::fs::openat(parent, name, flags, Mode::empty()).ok()?)
}

const READ_ENTRY: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

fn read_opened(file: OwnedFd) -> Option<Vec<u8>> {
    let file = fs::File::from(file);
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() {
        return None;
    }
    // One byte more, so that reading to the end needs no further allocation.
    let bytes = metadata.len().min(MOST_BYTES) + 1;
    let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    file.take(MOST_BYTES).read_to_end(&mut content).ok()?;
    Some(content)
}

/// Opens the directory of an entry, refusing links.
fn open_parent(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    Ok((open_directory(parent)?, name))
}

/// Opens a directory, refusing links.
#[cfg(target_os = "linux")]
pub(super) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    open_without_links(path, OFlags::PATH | OFlags::DIRECTORY)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    open_without_links(path, OFlags::RDONLY | OFlags::DIRECTORY)
}

#[cfg(target_os = "linux")]
fn open_without_links(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    use rustix::fs::{CWD, ResolveFlags};
    let flags = flags | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(
        CWD,
        path,
        flags,
        Mode::empty(),
        resolve,
    )?)
}

#[cfg(not(target_os = "linux"))]
fn open_without_links(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    if fs::canonicalize(parent)? != parent {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn join(directory: &Path, relative: &Path) -> PathBuf {
    if relative.as_os_str().is_empty() {
        directory.to_path_buf()
    } else {
        directory.join(relative)
    }
}

fn describe(path: &Path, result: io::Result<()>) -> String {
    match result {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("{} (failed: {error})", path.display()),
    }
}
