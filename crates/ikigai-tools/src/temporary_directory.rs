//! Private directory for the temporary files of an agent's commands.

use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Attempts to find a name that is not taken.
const ATTEMPTS: usize = 8;

/// Directory that only the user can read, made when it is first used.
///
/// Dropping it removes it with its content, and blocks for that.
#[derive(Debug, Default)]
pub struct TemporaryDirectory {
    path: OnceLock<Option<PathBuf>>,
}

impl TemporaryDirectory {
    /// Returns the directory; none if it cannot be made.
    pub fn path(&self) -> Option<&Path> {
        self.path.get_or_init(|| make().ok()).as_deref()
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Some(Some(path)) = self.path.get() {
            // A directory that cannot be removed is left to the system.
            let _ = fs::remove_dir_all(path);
        }
    }
}

fn make() -> io::Result<PathBuf> {
    let mut failure = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..ATTEMPTS {
        let number = RandomState::new().build_hasher().finish();
        let path = std::env::temp_dir().join(format!("ikigai-{number:016x}"));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
