//! Calls of the file system on threads that may block.
#![expect(clippy::disallowed_methods, reason = "runs on blocking threads")]

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ikigai_providers::small_file;
use tokio::task::spawn_blocking;

/// Size limit of `.git` and `HEAD` if they are files.
const MOST_HEAD_BYTES: u64 = 4096;

/// Reads the metadata of a file.
pub(crate) async fn metadata(path: &Path) -> io::Result<Metadata> {
    let path = path.to_owned();
    spawn_blocking(move || fs::metadata(path)).await?
}

/// Returns the names of the entries of a directory; none if it cannot be read.
pub(crate) async fn names_in(directory: &Path) -> Vec<String> {
    let directory = directory.to_owned();
    let names = spawn_blocking(move || {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.collect()
    });
    names.await.unwrap_or_default()
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

/// Checkout of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkout {
    pub(crate) root: PathBuf,
    /// Name of the branch; none if a commit is checked out, or if `HEAD` is not readable.
    pub(crate) branch: Option<String>,
}

/// Finds the checkout that holds a directory, without running git.
pub(crate) async fn checkout(directory: &Path) -> Option<Checkout> {
    let directory = directory.to_owned();
    spawn_blocking(move || checkout_above(&directory))
        .await
        .ok()?
}

fn checkout_above(directory: &Path) -> Option<Checkout> {
    let root = directory.ancestors().find(|it| it.join(".git").exists())?;
    let entry = root.join(".git");
    let folder = if entry.is_dir() {
        Some(entry)
    } else {
        // A worktree or submodule names its folder in a file.
        let text = beginning(&entry);
        let path = text.as_deref().and_then(|it| it.strip_prefix("gitdir:"));
        path.map(|path| root.join(path.trim()))
    };
    let head = folder.and_then(|folder| beginning(&folder.join("HEAD")));
    let branch = head.as_deref().and_then(|it| it.strip_prefix("ref:"));
    let branch = branch.map(|it| it.trim().trim_start_matches("refs/heads/").to_owned());
    Some(Checkout {
        root: root.to_owned(),
        branch: branch.filter(|it| !it.is_empty()),
    })
}

/// Reads the first line of a small regular file; none if it is something else or has no text.
fn beginning(path: &Path) -> Option<String> {
    let mut file = small_file::open(path).ok()??;
    let text = small_file::read(&mut file, MOST_HEAD_BYTES).ok()?;
    text.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests;
