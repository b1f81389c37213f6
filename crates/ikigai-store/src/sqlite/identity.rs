//! Identity of the store's files: a commit notices that they were removed or replaced.
//!
//! SQLite keeps writing to an unlinked file. Rows in it would be lost with the process, so the
//! writer compares device and inode of each path with the files it has open.

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::paths::StorePaths;
use crate::error::StoreError;

/// Device and inode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

/// Identity, size and time of change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileVersion {
    id: FileId,
    bytes: u64,
    modified: (i64, i64),
}

impl FileVersion {
    /// Reads the version of the file at `path`; none if there is no file.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(Self::of(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn of(metadata: &Metadata) -> Self {
        Self {
            id: FileId {
                device: metadata.dev(),
                inode: metadata.ino(),
            },
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Reason why the files at the store's paths are not the open ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    Removed(PathBuf),
    Replaced(PathBuf),
    Unreachable(PathBuf, String),
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removed(path) => {
                let name = name(path);
                write!(
                    f,
                    "`{name}` was removed or renamed; put it back, or restart ikigai"
                )
            }
            Self::Replaced(path) => write!(
                f,
                "`{}` was replaced; restart ikigai to use the new file, or put the old one back",
                name(path)
            ),
            Self::Unreachable(path, error) => write!(f, "`{}`: {error}", name(path)),
        }
    }
}

/// Files that the connections of this process have open.
#[derive(Debug)]
pub(super) struct OpenFiles {
    place: StorePaths,
    known: Mutex<KnownFiles>,
}

#[derive(Debug, Default)]
struct KnownFiles {
    database: Option<FileId>,
    wal: Option<FileId>,
    shm: Option<FileId>,
    /// Version of the database file after the last use, while its log was in place.
    content: Option<FileVersion>,
}

impl OpenFiles {
    pub(super) fn new(place: &StorePaths) -> Self {
        Self {
            place: place.clone(),
            known: Mutex::default(),
        }
    }

    /// Records the files that a connection has just opened and that are not known yet.
    pub(super) fn record(&self) {
        let id = |path: &Path| {
            let version = FileVersion::read(path).ok().flatten();
            version.map(|version| version.id)
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.database.is_none() {
            known.database = id(&self.place.database);
        }
        if known.wal.is_none() {
            known.wal = id(&self.place.wal());
        }
        if known.shm.is_none() {
            known.shm = id(&self.place.shm());
        }
    }

    /// Forgets the log and its index, which SQLite may recreate after a connection broke.
    pub(super) fn forget_log(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.wal = None;
        known.shm = None;
    }

    /// Compares each path with the recorded file. Costs three calls of `stat`.
    pub(super) fn check(&self) -> Result<(), Absence> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        compare(&self.place.database, known.database)?;
        compare(&self.place.wal(), known.wal)?;
        compare(&self.place.shm(), known.shm)
    }

    /// Compares the database alone.
    pub(super) fn check_database(&self) -> Result<(), Absence> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        compare(&self.place.database, known.database)
    }

    /// Remembers the database's version, after this process may have changed it.
    pub(super) fn record_content(&self) {
        let version = FileVersion::read(&self.place.database).ok().flatten();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.content = version;
    }

    /// Returns true if a closing connection may move its log into the database.
    ///
    /// A log that was unlinked still holds committed rows. They are saved if no other process has
    /// changed the database since; SQLite takes the exclusive lock for it.
    pub(super) fn may_fold(&self) -> bool {
        let Err(absence) = self.check() else {
            return true;
        };
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_log_unlinked = matches!(&absence, Absence::Removed(path) if *path != self.place.database)
            && matches!(FileVersion::read(&self.place.wal()), Ok(None));
        let now = FileVersion::read(&self.place.database).ok().flatten();
        is_log_unlinked && known.content.is_some() && known.content == now
    }
}

impl Absence {
    /// Makes the error for callers: the store is away.
    pub(super) fn store_error(&self, place: &StorePaths) -> StoreError {
        StoreError::Away {
            server: place.directory().display().to_string(),
            reason: self.to_string(),
        }
    }
}

/// Returns the file's name; the error names its directory.
fn name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

fn compare(path: &Path, known: Option<FileId>) -> Result<(), Absence> {
    let Some(known) = known else {
        return Ok(());
    };
    match FileVersion::read(path) {
        Ok(Some(found)) if found.id == known => Ok(()),
        Ok(Some(_)) => Err(Absence::Replaced(path.to_owned())),
        Ok(None) => Err(Absence::Removed(path.to_owned())),
        Err(error) => Err(Absence::Unreachable(path.to_owned(), error.to_string())),
    }
}
