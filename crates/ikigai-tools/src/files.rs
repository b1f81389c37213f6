//! Regular files: opened without blocking, hashed, replaced atomically.

mod replace;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::fs::{File, FileType, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use ikigai_core::counts::counted;
use ikigai_core::data::TouchedFile;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::Output;
use crate::anchored_file::{AnchoredFile, MissingDirectories};
pub(crate) use replace::replace;

/// Largest file that is hashed or edited.
///
/// Larger ones would take too long and are rarely edited. So writes to them are not checked for
/// staleness.
pub(crate) const MOST_HASHED_BYTES: u64 = 64 * 1024 * 1024;

/// Advice for a call that names a directory.
const DIRECTORY: &str = "a directory; glob with this path lists the files in it";

/// Reason why a file cannot be used, for the model. The caller adds the path.
#[derive(Debug, Error)]
pub(crate) enum FileError {
    #[error("does not exist")]
    Missing,
    #[error("is {0}")]
    NotAFile(&'static str),
    #[error("is read-only (mode {0:03o}); change its mode first if it is meant to be written")]
    ReadOnly(u32),
    #[error("was changed by another program during the write; read it again")]
    Changed,
    #[error("leads through a new symbolic link; check where it leads and call again")]
    Relinked,
    #[error("cannot be {failure}: {source}")]
    Io {
        failure: &'static str,
        source: io::Error,
    },
}

impl FileError {
    /// Converts an error of the system; `deed` completes "cannot be …".
    pub(crate) fn of(failure: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| match source.kind() {
            ErrorKind::NotFound => Self::Missing,
            ErrorKind::IsADirectory => Self::NotAFile(DIRECTORY),
            _ if source.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Self::Relinked,
            _ => Self::Io { failure, source },
        }
    }
}

/// Metadata that identifies a state of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Opens a regular file for reading, by a path resolved before.
pub(crate) fn open(real: &Path) -> Result<(File, Metadata), FileError> {
    let file = AnchoredFile::open(real, MissingDirectories::Fail).map_err(FileError::of("read"))?;
    open_anchored(&file)
}

/// Opens a regular file for reading.
pub(crate) fn open_anchored(file: &AnchoredFile) -> Result<(File, Metadata), FileError> {
    let cannot_read = FileError::of("read");
    // Opening a device can have an effect, and opening a pipe is visible at its other end.
    let metadata = file.metadata().map_err(&cannot_read)?;
    check_kind(metadata.file_type())?;
    let opened = file.open_file(OFlags::RDONLY, Mode::empty());
    let opened = opened.map_err(&cannot_read)?;
    let metadata = opened.metadata().map_err(&cannot_read)?;
    check_kind(metadata.file_type())?;
    Ok((opened, metadata))
}

fn check_kind(kind: FileType) -> Result<(), FileError> {
    if kind.is_symlink() {
        return Err(FileError::Relinked);
    }
    Err(FileError::NotAFile(if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        DIRECTORY
    } else if kind.is_fifo() {
        "a named pipe: it has no content until a program writes to it"
    } else if kind.is_socket() {
        "a socket, not a file"
    } else {
        "a device, not a file"
    }))
}

/// File at the time of a read.
#[derive(Debug)]
pub(crate) enum FileSnapshot {
    /// It does not exist.
    Nothing,
    /// It fits into the limit.
    Whole { bytes: Vec<u8>, stamp: Stamp },
    /// It is larger than [`MOST_HASHED_BYTES`].
    Large { bytes: u64, stamp: Stamp },
}

impl FileSnapshot {
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::Nothing => None,
            Self::Whole { stamp, .. } | Self::Large { stamp, .. } => Some(*stamp),
        }
    }
}

/// Reads a file that may be missing, by a path resolved before.
pub(crate) fn find(real: &Path) -> Result<FileSnapshot, FileError> {
    let (file, metadata) = match open(real) {
        Ok(opened) => opened,
        Err(FileError::Missing) => return Ok(FileSnapshot::Nothing),
        Err(other) => return Err(other),
    };
    let stamp = Stamp::of(&metadata);
    let mut bytes = Vec::new();
    if metadata.len() <= MOST_HASHED_BYTES {
        // Files of /proc report zero bytes, and any file can grow while it is read.
        file.take(MOST_HASHED_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(FileError::of("read"))?;
    }
    let length = metadata.len().max(bytes.len() as u64);
    Ok(if length > MOST_HASHED_BYTES {
        let bytes = length;
        FileSnapshot::Large { bytes, stamp }
    } else {
        FileSnapshot::Whole { bytes, stamp }
    })
}

/// Returns the entry of a result for a file that was read.
pub(crate) fn read(path: &Path, hash: String) -> TouchedFile {
    TouchedFile {
        path: Some(path.to_string_lossy().into_owned()),
        hash: Some(hash),
        wrote: Some(false),
        ..TouchedFile::default()
    }
}

/// Returns the SHA-256 in hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Formats a size: `5.0 GB`.
pub(crate) fn size(bytes: u64) -> String {
    const STEPS: [(u64, &str); 4] = [(40, "TB"), (30, "GB"), (20, "MB"), (10, "KB")];
    for (shift, unit) in STEPS {
        let one = 1_u64 << shift;
        if bytes >= one {
            let tenths = u128::from(bytes) * 10 / u128::from(one);
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    counted(bytes, "byte")
}

/// Returns the output for a missing file, with similar names.
pub(crate) fn missing(name: &str, real: &Path) -> Output {
    let similar = similar_names(real);
    if similar.is_empty() {
        return Output::failed(format!("`{name}` does not exist"));
    }
    let similar = similar.join("`, `");
    Output::failed(format!(
        "`{name}` does not exist; in the same directory there is `{similar}`"
    ))
}

/// Returns similar names from the directory of a missing file, best first.
fn similar_names(real: &Path) -> Vec<String> {
    const MOST_LOOKED_AT: usize = 2_000;
    let Ok(file) = AnchoredFile::open(real, MissingDirectories::Fail) else {
        return Vec::new();
    };
    let names = file.names_beside(MOST_LOOKED_AT);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let name = file.name().to_string_lossy();
    similar::get_close_matches(&*name, &names, 3, 0.7)
        .into_iter()
        .map(str::to_owned)
        .collect()
}
