//! Search for repositories and guarded directories below a working directory.
//!
//! The search lists every directory up to a limit. Listings are cached by the stamp of their
//! directory, so that a later search reads only directories that changed.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::is_guarded_name;
use crate::directory_stamp::DirectoryStamp;

/// Limit on directories that are searched.
const MOST_SEARCHED: usize = 3000;

/// Limit on working directories with a cached tree.
const MOST_TREES: usize = 4;

/// Directories of downloaded or built files, in which repositories are not searched for.
const NOT_SEARCHED: &[&str] = &[".git", "node_modules", "target"];

/// Trees of working directories, most recently used last.
static CACHE: Mutex<Vec<Directory>> = Mutex::new(Vec::new());

/// Repository or guarded directory below a working directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NestedRepository {
    /// Directory with a `.git`.
    Checkout(PathBuf),
    /// Directory that git takes for a repository without a checkout.
    Bare(PathBuf),
    /// Directory with settings of agents or editors, such as `.vscode`, and without a `.git`.
    Settings(PathBuf),
}

/// Directory as it was when the search last read it.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    /// None if the directory must be read again.
    stamp: Option<DirectoryStamp>,
    subdirectories: Vec<Directory>,
    has_git: bool,
    /// True if it has another guarded directory.
    has_settings: bool,
    /// True if it has the three entries by which git knows a repository.
    is_bare: bool,
}

impl Directory {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            stamp: None,
            subdirectories: Vec::new(),
            has_git: false,
            has_settings: false,
            is_bare: false,
        }
    }

    /// Reads the directory again if it changed. Keeps at most `room` subdirectories.
    fn refresh(&mut self, room: usize) {
        if self.stamp.is_none() || DirectoryStamp::read(&self.path) != self.stamp {
            self.stamp = DirectoryStamp::before_listing(&self.path);
            self.read();
        }
        if self.subdirectories.len() > room {
            self.subdirectories.truncate(room);
            self.stamp = None;
        }
    }

    fn read(&mut self) {
        let known = std::mem::take(&mut self.subdirectories);
        let mut known: HashMap<_, _> = known
            .into_iter()
            .map(|known| (known.path.clone(), known))
            .collect();
        let mut bare_parts = 0;
        (self.has_git, self.has_settings) = (false, false);
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(is_guarded_name) {
                let is_git = name.eq_ignore_ascii_case(".git");
                self.has_git |= is_git;
                self.has_settings |= !is_git;
            }
            if ["HEAD", "objects", "refs"].iter().any(|part| name == *part) {
                bare_parts += 1;
            }
            let is_searched = !NOT_SEARCHED.iter().any(|skipped| name == *skipped);
            if is_searched && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let path = self.path.join(name);
                let known = known.remove(&path);
                self.subdirectories
                    .push(known.unwrap_or_else(|| Self::new(path)));
            }
        }
        self.is_bare = bare_parts == 3;
    }
}

/// Searches for repositories, from the top down and up to a limit.
pub(super) fn nested_repositories(workdir: &Path) -> Vec<NestedRepository> {
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = cache.iter().position(|tree| tree.path == workdir);
    let mut tree = match known {
        Some(index) => cache.remove(index),
        None => Directory::new(workdir.to_path_buf()),
    };
    let found = tree.search();
    if cache.len() >= MOST_TREES {
        cache.remove(0);
    }
    cache.push(tree);
    found
}

impl Directory {
    /// Refreshes the tree below this directory and returns its repositories.
    fn search(&mut self) -> Vec<NestedRepository> {
        let mut found = Vec::new();
        self.refresh(MOST_SEARCHED);
        if self.is_bare {
            found.push(NestedRepository::Bare(self.path.clone()));
        }
        let mut room = MOST_SEARCHED - self.subdirectories.len();
        let mut pending = VecDeque::from_iter(&mut self.subdirectories);
        while let Some(directory) = pending.pop_front() {
            directory.refresh(room);
            room -= directory.subdirectories.len();
            if directory.has_git {
                found.push(NestedRepository::Checkout(directory.path.clone()));
            } else if directory.is_bare {
                found.push(NestedRepository::Bare(directory.path.clone()));
            }
            if directory.has_settings && !directory.has_git {
                found.push(NestedRepository::Settings(directory.path.clone()));
            }
            pending.extend(&mut directory.subdirectories);
        }
        found
    }
}

#[cfg(test)]
mod tests;
