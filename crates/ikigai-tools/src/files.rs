//! Regular files: opened without ever blocking, hashed, replaced in one step.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::fs::{self, File, FileType, Metadata, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use ikigai_core::data::TouchedFile;
use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::Output;

/// Larger files are neither hashed nor edited: a call would take long, and nobody edits them by
/// hand. A write to one is therefore not guarded.
pub(crate) const MOST_HASHED_BYTES: u64 = 64 * 1024 * 1024;

/// Why a file cannot be used, for the model. Paths are named by whoever shows it.
#[derive(Debug, Error)]
pub(crate) enum FileError {
    #[error("does not exist")]
    Missing,
    #[error("is {0}")]
    NotAFile(&'static str),
    #[error("is read-only (mode {0:03o}); change its mode first if it is meant to be written")]
    ReadOnly(u32),
    #[error("was changed by somebody else while it was being written; read it again")]
    Changed,
    #[error("cannot be {deed}: {source}")]
    Io {
        deed: &'static str,
        source: io::Error,
    },
}

impl FileError {
    fn of(deed: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| match source.kind() {
            ErrorKind::NotFound => Self::Missing,
            _ => Self::Io { deed, source },
        }
    }
}

/// What tells one state of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Opens a regular file for reading. Links are not followed: the path has been located.
pub(crate) fn open(path: &Path) -> Result<(File, Metadata), FileError> {
    let cannot_read = FileError::of("read");
    // Looked at before it is opened: opening a device can have an effect, opening a pipe shows at
    // its other end.
    let metadata = fs::symlink_metadata(path).map_err(&cannot_read)?;
    check_kind(metadata.file_type())?;
    let flags =
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let descriptor =
        rustix::fs::open(path, flags, Mode::empty()).map_err(|error| cannot_read(error.into()))?;
    let file = File::from(descriptor);
    let metadata = file.metadata().map_err(&cannot_read)?;
    check_kind(metadata.file_type())?;
    Ok((file, metadata))
}

fn check_kind(kind: FileType) -> Result<(), FileError> {
    Err(FileError::NotAFile(if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a directory; glob with this path lists the files in it"
    } else if kind.is_fifo() {
        "a named pipe: there is nothing in it until somebody writes"
    } else if kind.is_socket() {
        "a socket, not a file"
    } else if kind.is_symlink() {
        "a symbolic link that was made meanwhile; call again"
    } else {
        "a device, not a file"
    }))
}

/// A file as it was when it was looked at.
#[derive(Debug)]
pub(crate) enum Found {
    /// There is none.
    Nothing,
    /// It is small enough to be held.
    Whole { bytes: Vec<u8>, stamp: Stamp },
    /// It is larger than [`MOST_HASHED_BYTES`].
    Large { bytes: u64, stamp: Stamp },
}

impl Found {
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::Nothing => None,
            Self::Whole { stamp, .. } | Self::Large { stamp, .. } => Some(*stamp),
        }
    }
}

/// Reads a file that may be missing.
pub(crate) fn find(path: &Path) -> Result<Found, FileError> {
    let (file, metadata) = match open(path) {
        Ok(opened) => opened,
        Err(FileError::Missing) => return Ok(Found::Nothing),
        Err(other) => return Err(other),
    };
    let stamp = Stamp::of(&metadata);
    let mut bytes = Vec::new();
    if metadata.len() <= MOST_HASHED_BYTES {
        // Files of /proc say that they are empty, and any file can grow while it is read.
        file.take(MOST_HASHED_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(FileError::of("read"))?;
    }
    let read = bytes.len() as u64;
    Ok(if metadata.len().max(read) > MOST_HASHED_BYTES {
        let bytes = metadata.len().max(read);
        Found::Large { bytes, stamp }
    } else {
        Found::Whole { bytes, stamp }
    })
}

/// Replaces a file, or makes it and the directories above it, so that whoever looks finds the old
/// bytes or the new ones, also after a loss of power. `seen` is what was found there: if it is
/// something else by now, it is left alone. Mode and, where that is allowed, owner are kept; hard
/// links and extended attributes are not.
pub(crate) fn replace(path: &Path, bytes: &[u8], seen: Option<Stamp>) -> Result<(), FileError> {
    let cannot_write = |source| FileError::Io {
        deed: "written",
        source,
    };
    let Some(directory) = path.parent() else {
        return Err(FileError::NotAFile("a directory"));
    };
    let old = current(path)?;
    if let Some(old) = &old {
        // Renaming does not ask for these bits, and root needs none: but they say what is meant.
        if old.mode() & 0o222 == 0 {
            return Err(FileError::ReadOnly(old.mode() & 0o7777));
        }
        rustix::fs::access(path, rustix::fs::Access::WRITE_OK)
            .map_err(|error| cannot_write(error.into()))?;
    } else {
        fs::create_dir_all(directory).map_err(|source| FileError::Io {
            deed: "written, because its directory cannot be made",
            source,
        })?;
    }
    let draft = Draft::make(directory).map_err(cannot_write)?;
    draft.fill(bytes, old.as_ref()).map_err(cannot_write)?;
    if current(path)?.as_ref().map(Stamp::of) != seen {
        return Err(FileError::Changed);
    }
    draft.put(path, directory).map_err(cannot_write)
}

fn current(path: &Path) -> Result<Option<Metadata>, FileError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => {
            check_kind(metadata.file_type())?;
            Ok(Some(metadata))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::of("written")(error)),
    }
}

/// A file beside the one that it will replace; removed again if it does not come to that.
struct Draft {
    path: PathBuf,
    file: File,
}

impl Draft {
    fn make(directory: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!(".ikigai-{}-{number}.tmp", process::id()));
            match File::create_new(&path) {
                Ok(file) => return Ok(Self { path, file }),
                // Left by a process of the same number that was killed.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn fill(&self, bytes: &[u8], old: Option<&Metadata>) -> io::Result<()> {
        (&self.file).write_all(bytes)?;
        if let Some(old) = old {
            let ours = self.file.metadata()?;
            if (ours.uid(), ours.gid()) != (old.uid(), old.gid()) {
                // Only root may give files away; for others the file becomes theirs, as with any
                // editor that replaces files.
                let _ = std::os::unix::fs::fchown(&self.file, Some(old.uid()), Some(old.gid()));
            }
            // After the owner, because changing that takes special bits away.
            let mode = Permissions::from_mode(old.mode() & 0o7777);
            self.file.set_permissions(mode)?;
        }
        self.file.sync_all()
    }

    fn put(self, path: &Path, directory: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        File::open(directory)?.sync_all()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After the rename there is nothing at this path.
        let _ = fs::remove_file(&self.path);
    }
}

/// A row's word on a file that was read or written.
pub(crate) fn touched(path: &Path, hash: String, wrote: bool) -> TouchedFile {
    TouchedFile {
        path: Some(path.to_string_lossy().into_owned()),
        hash: Some(hash),
        wrote: Some(wrote),
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A size for people: `5.0 GB`.
pub(crate) fn size(bytes: u64) -> String {
    const STEPS: [(u64, &str); 4] = [(40, "TB"), (30, "GB"), (20, "MB"), (10, "KB")];
    for (shift, unit) in STEPS {
        let one = 1_u64 << shift;
        if bytes >= one {
            let tenths = u128::from(bytes) * 10 / u128::from(one);
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    match bytes {
        1 => "1 byte".to_owned(),
        bytes => format!("{bytes} bytes"),
    }
}

/// The answer about a file that does not exist, with names that may be meant.
pub(crate) fn missing(name: &str, path: &Path) -> Output {
    let similar = similar_names(path);
    if similar.is_empty() {
        return Output::failed(format!("`{name}` does not exist"));
    }
    let similar = similar.join("`, `");
    Output::failed(format!(
        "`{name}` does not exist; in the same directory there is `{similar}`"
    ))
}

/// Names in the directory of a missing file that are much like its own, best first.
fn similar_names(path: &Path) -> Vec<String> {
    const MOST_LOOKED_AT: usize = 2_000;
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let names: Vec<String> = entries
        .take(MOST_LOOKED_AT)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let name = name.to_string_lossy();
    similar::get_close_matches(&*name, &names, 3, 0.7)
        .into_iter()
        .map(str::to_owned)
        .collect()
}
