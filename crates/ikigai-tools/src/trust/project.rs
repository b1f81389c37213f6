//! Extent of a project: its root, and the directories that can bring items.

use std::fs;
use std::path::{Path, PathBuf};

/// Largest `.git` file of a worktree.
const MOST_LINK_BYTES: usize = 8 * 1024;

/// Directories of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProjectExtent {
    /// Root of the checkout: the top of the repository, or the working directory.
    pub(super) root: PathBuf,
    /// Directory to which decisions belong: the main checkout of a worktree, else the root.
    pub(super) identity: PathBuf,
    /// Working directory and the directories above it up to the root, nearest first.
    pub(super) directories: Vec<PathBuf>,
}

impl ProjectExtent {
    /// Finds the project around a working directory. Links are resolved: trust belongs to real
    /// directories.
    pub(super) fn around(workdir: &Path) -> Self {
        let workdir = workdir
            .canonicalize()
            .unwrap_or_else(|_| workdir.to_owned());
        let mut directories = Vec::new();
        for directory in workdir.ancestors() {
            directories.push(directory.to_owned());
            let git = directory.join(".git");
            if git.exists() {
                let identity = main_checkout(&git).unwrap_or_else(|| directory.to_owned());
                return Self {
                    root: directory.to_owned(),
                    identity,
                    directories,
                };
            }
        }
        Self {
            root: workdir.clone(),
            identity: workdir.clone(),
            directories: vec![workdir],
        }
    }
}

/// Returns the main checkout of a worktree.
///
/// Only if the repository knows this worktree: a foreign directory can name any repository in its
/// `.git` file, but cannot write into that repository.
fn main_checkout(git: &Path) -> Option<PathBuf> {
    if !git.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let text = read_line(git)?;
    let private = PathBuf::from(text.strip_prefix("gitdir:")?.trim());
    let private = git.parent()?.join(private).canonicalize().ok()?;
    let back = PathBuf::from(read_line(&private.join("gitdir"))?);
    if back.canonicalize().ok()? != git.canonicalize().ok()? {
        return None;
    }
    let worktrees = private.parent()?;
    let common = worktrees.parent()?;
    let is_usual = worktrees.ends_with("worktrees") && common.ends_with(".git");
    is_usual.then(|| common.parent().map(Path::to_owned))?
}

fn read_line(path: &Path) -> Option<String> {
    let is_small = |found: &fs::Metadata| found.is_file() && found.len() <= MOST_LINK_BYTES as u64;
    fs::metadata(path).ok().filter(is_small)?;
    let text = fs::read_to_string(path).ok()?;
    Some(text.lines().next().unwrap_or_default().trim().to_owned())
}
