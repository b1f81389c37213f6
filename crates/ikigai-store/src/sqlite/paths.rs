//! Paths of the database and the files next to it, for the owner alone.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::errors::file_error;
use crate::error::StoreError;

const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// Path of the database and of the files next to it.
///
/// Links are resolved, since processes that use different links must find the same files.
#[derive(Clone, Debug)]
pub(super) struct StorePaths {
    pub(super) database: PathBuf,
    /// Kind of the network file system below it, on which it is only read.
    pub(super) network: Option<&'static str>,
}

impl StorePaths {
    /// Finds or creates directory and file, without opening an existing file.
    ///
    /// With `reading`, an existing file may be on a network file system.
    pub(super) fn prepare(path: &Path, reading: bool) -> Result<Self, StoreError> {
        let name = path.file_name().ok_or_else(|| not_a_file(path))?;
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        make_directories(directory)?;
        let directory = directory
            .canonicalize()
            .map_err(|error| file_error(directory, error))?;
        let network = network_kind(&directory)?;
        if let Some(kind) = network
            && !(reading && directory.join(name).is_file())
        {
            return Err(StoreError::NetworkFileSystem {
                path: directory,
                kind,
            });
        }
        let database = directory.join(name);
        match fs::metadata(&database) {
            Ok(metadata) if metadata.is_file() => {
                let database = database
                    .canonicalize()
                    .map_err(|error| file_error(&database, error))?;
                Ok(Self { database, network })
            }
            Ok(_) => Err(not_a_file(&database)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_file(&database)?;
                Ok(Self { database, network })
            }
            Err(error) => Err(file_error(&database, error)),
        }
    }

    /// Returns the directory of all these files.
    pub(super) fn directory(&self) -> &Path {
        self.database.parent().unwrap_or(Path::new("/"))
    }

    /// Returns the file that is written after each commit, for other processes to watch.
    pub(super) fn notify(&self) -> PathBuf {
        self.beside("-notify")
    }

    /// Returns the directory of the processes' lock files.
    pub(super) fn locks(&self) -> PathBuf {
        self.beside("-locks")
    }

    /// Returns the write-ahead log of SQLite.
    pub(super) fn wal(&self) -> PathBuf {
        self.beside("-wal")
    }

    /// Returns the shared index of that log.
    pub(super) fn shm(&self) -> PathBuf {
        self.beside("-shm")
    }

    /// Returns the path of the backup before version `version` is migrated.
    pub(super) fn backup(&self, version: u32, attempt: u32) -> PathBuf {
        if attempt == 1 {
            self.beside(&format!(".backup-v{version}"))
        } else {
            self.beside(&format!(".backup-v{version}.{attempt}"))
        }
    }

    /// Returns the path of the database with a suffix.
    pub(super) fn beside(&self, suffix: &str) -> PathBuf {
        let mut path = OsString::from(&self.database);
        path.push(suffix);
        PathBuf::from(path)
    }
}

fn not_a_file(path: &Path) -> StoreError {
    StoreError::Place {
        path: path.to_owned(),
        source: "not a regular file".into(),
    }
}

/// Opens a small file of ours, creating it if it is missing.
pub(super) fn open_own(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .open(path)
}

/// Creates a file that must not exist yet.
pub(super) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)
}

/// Creates one directory, unless it exists. It is durable after [`sync_parent`].
pub(super) fn make_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Makes the names in the directory of `path` durable.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

fn make_directories(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(_) => {
            return Err(StoreError::Place {
                path: path.to_owned(),
                source: "not a directory".into(),
            });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(directory_error(path, error)),
    }
    if let Some(parent) = path.parent()
        && !parent.as_os_str().is_empty()
    {
        make_directories(parent)?;
    }
    make_directory(path)
        .and_then(|()| sync_parent(path))
        .map_err(|error| directory_error(path, error))
}

fn directory_error(path: &Path, error: io::Error) -> StoreError {
    StoreError::Place {
        path: path.to_owned(),
        source: Box::new(error),
    }
}

fn create_file(path: &Path) -> Result<(), StoreError> {
    match create_new(path) {
        Ok(_) => sync_parent(path).map_err(|error| file_error(path, error)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(file_error(path, error)),
    }
}

/// Network file systems, on which neither locks nor shared memory are reliable.
///
/// 9p is not among them: sandboxes show their local disk that way.
#[cfg(target_os = "linux")]
const NETWORK_KINDS: [(u32, &str); 9] = [
    (0x0000_6969, "nfs"),
    (0x0000_517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "afs"),
    (0x7375_7245, "coda"),
    (0x00c3_6400, "ceph"),
    (0x0bd0_0bd0, "lustre"),
];

#[cfg(target_os = "linux")]
fn network_kind(directory: &Path) -> Result<Option<&'static str>, StoreError> {
    let found = rustix::fs::statfs(directory)
        .map_err(|error| directory_error(directory, error.into()))?
        .f_type;
    Ok(kind_of(i128::from(found)))
}

/// Returns the name of a network file system, by the kernel's number; its width and sign differ
/// between machines.
#[cfg(target_os = "linux")]
fn kind_of(number: i128) -> Option<&'static str> {
    NETWORK_KINDS
        .iter()
        .find(|(magic, _)| i128::from(*magic) == number & 0xffff_ffff)
        .map(|(_, kind)| *kind)
}

#[cfg(not(target_os = "linux"))]
fn network_kind(_directory: &Path) -> Result<Option<&'static str>, StoreError> {
    Ok(None)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::kind_of;

    #[test]
    fn a_network_file_system_is_known_by_its_number_of_either_sign() {
        assert_eq!(kind_of(0x6969), Some("nfs"));
        assert_eq!(kind_of(0xff53_4d42), Some("cifs"));
        assert_eq!(
            kind_of(i128::from(0xff53_4d42_u32.cast_signed())),
            Some("cifs")
        );
        assert_eq!(kind_of(0xef53), None);
    }
}
