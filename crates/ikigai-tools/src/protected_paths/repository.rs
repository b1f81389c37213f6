//! Guarded paths of a repository, its submodules and its worktrees.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::GUARDED_NAMES;
use super::git_settings::parse;
use crate::paths::normal;

/// Limit on git directories below one repository, so that a hostile tree cannot cost much.
const MOST_GIT_DIRECTORIES: usize = 200;

/// Limit on one of git's own files that is read here.
const MOST_FILE_BYTES: u64 = 64 * 1024;

/// Paths of a repository that run programs or instruct agents. They may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositoryPaths {
    /// Directories that processes may read but not change: hooks, `.ikigai`, `.claude`, `.vscode`.
    pub read_only: Vec<PathBuf>,
    /// Configuration files of git, in which [`super::program_settings`] must stay the same.
    pub git_configurations: Vec<PathBuf>,
    /// Git directories: of the repository, its submodules and its worktrees.
    pub git_directories: Vec<PathBuf>,
    /// Checkouts: of the repository, its submodules and its worktrees.
    pub checkouts: Vec<PathBuf>,
}

/// Finds the guarded paths of the repository that contains `directory`.
///
/// Outside of a repository, `directory` itself counts as a checkout without git directory. Reads
/// only git's own files; runs no program. Nested repositories that are not submodules are not
/// found.
pub fn repository_paths(directory: &Path) -> RepositoryPaths {
    let mut paths = RepositoryPaths::default();
    let root = directory
        .ancestors()
        .find(|ancestor| ancestor.join(".git").symlink_metadata().is_ok());
    paths.add_checkout(directory);
    if let Some(root) = root {
        paths.add_checkout(root);
        if let Some(git) = git_directory(root) {
            paths.add_git_directory(&common_directory(&git));
            paths.add_git_directory(&git);
        } else {
            // A `.git` that leads nowhere may lead somewhere after a change.
            paths.add_git_directory(&root.join(".git"));
        }
    } else {
        paths.add_git_directory(&directory.join(".git"));
    }
    paths
}

impl RepositoryPaths {
    /// Returns the settings of agents and editors in a directory that is no repository.
    pub(super) fn of_settings(directory: &Path) -> Self {
        let mut paths = Self::default();
        paths.add_checkout(directory);
        paths
    }

    fn add_checkout(&mut self, checkout: &Path) {
        if self.checkouts.iter().any(|known| known == checkout) {
            return;
        }
        let names = GUARDED_NAMES.iter().filter(|name| **name != ".git");
        self.read_only.extend(names.map(|name| checkout.join(name)));
        self.checkouts.push(checkout.to_path_buf());
    }

    fn add_git_directory(&mut self, git: &Path) {
        let is_known = self.git_directories.iter().any(|known| known == git);
        if is_known || self.git_directories.len() >= MOST_GIT_DIRECTORIES {
            return;
        }
        self.git_directories.push(git.to_path_buf());
        self.read_only.push(git.join("hooks"));
        self.git_configurations.push(git.join("config"));
        self.git_configurations.push(git.join("config.worktree"));
        self.add_worktrees(git);
        self.add_modules(&git.join("modules"));
    }

    /// Adds linked worktrees, and the main one if the directory is its `.git`.
    fn add_worktrees(&mut self, git: &Path) {
        if let Some(checkout) = git.parent().filter(|_| git.ends_with(".git")) {
            self.add_checkout(checkout);
        }
        for worktree in subdirectories(&git.join("worktrees")) {
            // It names the `.git` file of the checkout.
            let pointer = read_pointer(&worktree.join("gitdir"), "");
            if let Some(checkout) = pointer.as_deref().and_then(Path::parent) {
                self.add_checkout(checkout);
            }
            self.add_git_directory(&worktree);
        }
    }

    /// Adds submodules. Their names may contain slashes, so directories in between are followed.
    fn add_modules(&mut self, modules: &Path) {
        for directory in subdirectories(modules) {
            if self.git_directories.len() >= MOST_GIT_DIRECTORIES {
                return;
            }
            if directory.join("HEAD").is_file() {
                if let Some(checkout) = configured_checkout(&directory) {
                    self.add_checkout(&checkout);
                }
                self.add_git_directory(&directory);
            } else {
                self.add_modules(&directory);
            }
        }
    }
}

/// Returns the git directory of a checkout; `.git` is a directory or names one.
fn git_directory(checkout: &Path) -> Option<PathBuf> {
    let git = checkout.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    read_pointer(&git, "gitdir:")
}

/// Returns the directory that the worktrees of a repository share.
fn common_directory(git: &Path) -> PathBuf {
    read_pointer(&git.join("commondir"), "").unwrap_or_else(|| git.to_path_buf())
}

/// Returns the checkout of a submodule, from `core.worktree` in its git directory.
fn configured_checkout(git: &Path) -> Option<PathBuf> {
    let text = read_small(&git.join("config"))?;
    let settings = parse(&text);
    let named = settings.iter().rfind(|one| one.key == "core.worktree")?;
    Some(normal(&git.join(&named.value)))
}

/// Reads a file that contains a path, relative to its directory.
fn read_pointer(file: &Path, prefix: &str) -> Option<PathBuf> {
    let text = read_small(file)?;
    let named = text.trim().strip_prefix(prefix)?.trim();
    let directory = file.parent()?;
    (!named.is_empty()).then(|| normal(&directory.join(named)))
}

fn read_small(file: &Path) -> Option<String> {
    // A pipe would block.
    let bytes = fs::metadata(file).ok().filter(fs::Metadata::is_file)?.len();
    let bytes = usize::try_from(bytes.min(MOST_FILE_BYTES)).ok()?;
    // One byte more, so that reading to the end needs no further allocation.
    let mut text = String::with_capacity(bytes + 1);
    let opened = fs::File::open(file).ok()?;
    opened
        .take(MOST_FILE_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

fn subdirectories(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut found: Vec<PathBuf> = entries
        .filter(is_directory)
        .take(MOST_GIT_DIRECTORIES)
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
