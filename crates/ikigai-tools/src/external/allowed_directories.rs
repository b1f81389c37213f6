//! Project directories that the user allowed to bring tools.
//!
//! One small file for each, named by the hash of the directory's path and with the path as its
//! content: creating one needs no lock, and users can inspect and remove it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::files::sha256_hex;

/// Set of allowed directories.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    /// Directory of the files; without it nothing is ever allowed.
    directory: Option<PathBuf>,
}

impl Allowed {
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self { directory }
    }

    /// Allows a directory from now on, with any future content.
    pub(crate) fn allow(&self, tools: &Path) -> io::Result<()> {
        let tools = tools.canonicalize()?;
        let Some(marker) = self.marker(&tools) else {
            return Err(io::Error::other("no home directory to save it"));
        };
        if let Some(directory) = marker.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)?;
        }
        fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(marker)?
            .write_all(tools.as_os_str().as_bytes())
    }

    /// Returns true if a directory was allowed. The path must have no links.
    pub(crate) fn contains(&self, tools: &Path) -> bool {
        self.marker(tools)
            .and_then(|marker| fs::read(marker).ok())
            .is_some_and(|path| path == tools.as_os_str().as_bytes())
    }

    fn marker(&self, tools: &Path) -> Option<PathBuf> {
        let name = sha256_hex(tools.as_os_str().as_bytes());
        Some(self.directory.as_ref()?.join(name))
    }
}
