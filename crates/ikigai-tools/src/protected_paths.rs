//! Paths that tools must not use, and paths that tools change only after approval.

mod git_settings;
pub(crate) mod guard;
mod nested_repositories;
mod repository;
mod snapshot;
#[cfg(test)]
mod tests;

use std::path::{Component, Path, PathBuf};

pub use git_settings::{program_settings, restore_program_settings, runs_program};
pub use repository::{RepositoryPaths, repository_paths};

/// Names of directories that run programs or instruct agents later.
///
/// `.git` counts as a whole: besides `hooks` and `config` it has `config.worktree`, `commondir` and
/// the directories of submodules and worktrees, and may be a file that names another directory.
pub const GUARDED_NAMES: [&str; 4] = [".git", ".ikigai", ".claude", ".vscode"];

/// Directories in which ikigai keeps its own files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnDirectories {
    /// Settings, credentials, the user's external tools.
    pub configuration: Vec<PathBuf>,
    /// The store at its default location.
    pub data: Vec<PathBuf>,
    /// Diagnostics, input drafts, the grant key, sockets.
    pub state: Vec<PathBuf>,
    /// Descriptions of external tools.
    pub cache: Vec<PathBuf>,
}

impl OwnDirectories {
    /// Returns all of them. No tool may read or write below them, in any mode.
    pub fn all(&self) -> impl Iterator<Item = &PathBuf> {
        let directories = [&self.configuration, &self.data, &self.state, &self.cache];
        directories.into_iter().flatten()
    }
}

/// Returns true if a path leads through one of [`GUARDED_NAMES`]; links must be resolved.
pub fn is_guarded(path: &Path) -> bool {
    path.components().any(|part| match part {
        Component::Normal(name) => name.to_str().is_some_and(is_guarded_name),
        _ => false,
    })
}

/// Returns true if a file name is one of [`GUARDED_NAMES`].
pub fn is_guarded_name(name: &str) -> bool {
    // Some file systems do not distinguish upper from lower case.
    let is_same = |guarded: &&str| guarded.eq_ignore_ascii_case(name);
    GUARDED_NAMES.iter().any(is_same)
}
