//! Calls of the file system on threads that may block.
#![expect(clippy::disallowed_methods, reason = "runs on blocking threads")]

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;

/// Reads the metadata of a file.
pub(crate) async fn metadata(path: &Path) -> io::Result<Metadata> {
    let path = path.to_owned();
    spawn_blocking(move || fs::metadata(path)).await?
}

/// Creates a file that only its owner can read.
pub(crate) async fn create_private(path: &Path) -> io::Result<File> {
    let path = path.to_owned();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    spawn_blocking(move || options.open(path)).await?
}

/// Removes a file.
pub(crate) async fn remove(path: &Path) -> io::Result<()> {
    let path = path.to_owned();
    spawn_blocking(move || fs::remove_file(path)).await?
}

/// Finds the root of the repository that holds a directory.
pub(crate) async fn repository_root(directory: &Path) -> Option<PathBuf> {
    let directory = directory.to_owned();
    let find = move || {
        let mut above = directory.ancestors();
        let root = above.find(|ancestor| ancestor.join(".git").exists());
        root.map(Path::to_owned)
    };
    spawn_blocking(find).await.ok()?
}
