//! Cache of Landlock rulesets.
//!
//! A ruleset grants inodes, so it is current as long as its paths lead to the same ones. Landlock
//! keeps the inodes of a ruleset in memory, so their numbers are not given to other files; a mount
//! or unmount discards all rulesets.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use landlock::{RulesetCreated, RulesetError};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::directory_stamp::DirectoryStamp;

/// Limit on cached rulesets, each of which has a descriptor.
const MOST_CACHED: usize = 8;

static CACHE: Mutex<RulesetCache> = Mutex::new(RulesetCache {
    mounts: None,
    rulesets: Vec::new(),
});

/// Paths that a ruleset is made for, links resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RulesetKey {
    pub(super) write: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
    /// Directory of the program, if it is known.
    pub(super) program: Option<PathBuf>,
}

/// Paths that a ruleset depends on, as they were found while it was built.
#[derive(Debug, Default)]
pub(super) struct RulesetPaths {
    /// Directories that are granted entry by entry.
    listed: Vec<(PathBuf, Option<DirectoryStamp>)>,
    /// Other granted paths, with device and inode if they exist.
    granted: Vec<(PathBuf, Option<(u64, u64)>)>,
}

impl RulesetPaths {
    /// Records a directory; call it before reading the entries.
    pub(super) fn add_listed(&mut self, directory: &Path) {
        let stamp = DirectoryStamp::before_listing(directory);
        self.listed.push((directory.to_path_buf(), stamp));
    }

    /// Records a granted path. Listed directories cover their entries.
    pub(super) fn add_granted(&mut self, path: &Path) {
        let is_listed = |parent: &Path| self.listed.iter().any(|(listed, _)| listed == parent);
        if !path.parent().is_some_and(is_listed) {
            self.granted.push((path.to_path_buf(), identity(path)));
        }
    }

    /// Returns true if changes of the paths will be noticed.
    fn can_be_cached(&self) -> bool {
        self.listed.iter().all(|(_, stamp)| stamp.is_some())
    }

    fn are_current(&self) -> bool {
        let is_unchanged =
            |(directory, stamp): &(PathBuf, _)| DirectoryStamp::read(directory) == *stamp;
        let is_same = |(path, found): &(PathBuf, _)| identity(path) == *found;
        self.listed.iter().all(is_unchanged) && self.granted.iter().all(is_same)
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

struct RulesetCache {
    /// Mount table of this process; none before the first use.
    mounts: Option<File>,
    /// Most recently used last.
    rulesets: Vec<(RulesetKey, RulesetPaths, RulesetCreated)>,
}

/// Returns the ruleset for `key`, built by `build` unless a cached one is current.
pub(super) fn get(
    key: RulesetKey,
    build: impl FnOnce(&RulesetKey) -> Result<(RulesetCreated, RulesetPaths), RulesetError>,
) -> Result<RulesetCreated, RulesetError> {
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if !cache.are_mounts_same() {
        cache.rulesets.clear();
    }
    let known = cache.rulesets.iter().position(|(known, ..)| *known == key);
    if let Some(index) = known {
        let entry = cache.rulesets.remove(index);
        if entry.1.are_current()
            && let Ok(ruleset) = entry.2.try_clone()
        {
            cache.rulesets.push(entry);
            return Ok(ruleset);
        }
    }
    let (ruleset, paths) = build(&key)?;
    if cache.mounts.is_some()
        && paths.can_be_cached()
        && let Ok(copy) = ruleset.try_clone()
    {
        if cache.rulesets.len() >= MOST_CACHED {
            cache.rulesets.remove(0);
        }
        cache.rulesets.push((key, paths, copy));
    }
    Ok(ruleset)
}

impl RulesetCache {
    /// Returns true if no mount was made or removed since the last call.
    ///
    /// Opens the mount table if necessary.
    fn are_mounts_same(&mut self) -> bool {
        let Some(mounts) = &self.mounts else {
            self.mounts = File::open("/proc/self/mountinfo").ok();
            return false;
        };
        let mut polled = [PollFd::new(mounts, PollFlags::PRI)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let is_same = rustix::event::poll(&mut polled, Some(&at_once)) == Ok(0);
        is_same && polled[0].revents().is_empty()
    }
}

#[cfg(test)]
mod tests;
