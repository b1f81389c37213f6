//! Recorder of a running command: saves the state of each path before a call changes it.
//!
//! The supervisor of the command's system calls asks it before the kernel carries out a call that
//! can change files. Another thread of the command can change a path after it was read here; the
//! recorder then misses a change, but it enforces nothing.

mod calls;
mod ignore_rules;
mod resolve;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ikigai_core::data::FileKind;

use super::link_groups::first_other;
use super::state::look_below_links;
use super::{FileSighting, IGNORED, Journal, MOST_CONTENT_BYTES, RecordingPlan};
pub(crate) use calls::{FILE_CALLS, FileCall, FilterStop};
use ignore_rules::IgnoredDirectories;

/// Most entries of a renamed directory that are recorded.
const MOST_ENTRIES: usize = 50_000;

/// Most entries that are searched for the other names of a file.
const MOST_SEARCHED: usize = 200_000;

/// Recorder of one command.
#[derive(Debug)]
pub(crate) struct Recorder {
    roots: Vec<PathBuf>,
    state: Mutex<RecorderState>,
}

#[derive(Debug)]
struct RecorderState {
    journal: Journal,
    /// Recorded paths.
    seen: HashSet<PathBuf>,
    ignored: IgnoredDirectories,
    /// Recorded paths at which there was nothing.
    fresh: HashSet<PathBuf>,
    /// Ignored directories that the command created, and those that are noted as missed.
    created: HashSet<PathBuf>,
    missed: HashSet<PathBuf>,
    /// Files with several names, by device and inode, once one was met.
    names: Option<BTreeMap<(u64, u64), Vec<PathBuf>>>,
}

impl Recorder {
    /// Begins a recording.
    pub(crate) fn begin(plan: &RecordingPlan) -> io::Result<Self> {
        let real = |root: &PathBuf| root.canonicalize().unwrap_or_else(|_| root.clone());
        let roots: Vec<PathBuf> = plan.roots.iter().map(real).collect();
        let state = RecorderState {
            journal: Journal::create(&plan.directory)?,
            seen: HashSet::new(),
            ignored: IgnoredDirectories::new(roots.clone()),
            fresh: HashSet::new(),
            created: HashSet::new(),
            missed: HashSet::new(),
            names: None,
        };
        Ok(Self {
            roots,
            state: Mutex::new(state),
        })
    }

    /// Records the paths that a call of thread `caller` is about to change.
    pub(crate) fn before(&self, caller: i32, call: FileCall, arguments: [u64; 6]) {
        let targets = calls::targets(caller, call, arguments);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(targets) = targets else {
            return state.miss_call(caller);
        };
        let is_inside = |path: &Path| {
            self.roots
                .iter()
                .any(|root| path != root && path.starts_with(root))
        };
        if let [(from, true), (to, _)] = targets.as_slice()
            && (is_directory(from) || is_directory(to))
        {
            // Two directories may also be exchanged.
            for (from, to) in [(from, to), (to, from)] {
                if is_directory(from) && (is_inside(from) || is_inside(to)) {
                    state.record_tree(from, to, &is_inside);
                }
            }
            return;
        }
        for (path, _) in &targets {
            if is_inside(path) {
                state.record(path, call.makes_directory());
            }
        }
        if let Some(owner) = call.new_owner(arguments) {
            for (path, _) in targets.iter().filter(|(path, _)| is_inside(path)) {
                state.miss_owner(path, owner);
            }
        }
    }
}

impl RecorderState {
    /// Notes that calls cannot be read, unless the caller was killed meanwhile.
    fn miss_call(&mut self, caller: i32) {
        let lives = is_directory(Path::new(&format!("/proc/{caller}")));
        if lives && self.missed.insert(PathBuf::new()) {
            self.journal.miss_all("its system calls could not be read");
        }
    }

    /// Records a path, and the directory above it, unless they are recorded.
    fn record(&mut self, path: &Path, is_new_directory: bool) {
        if self.seen.contains(path) || is_object(path) {
            return;
        }
        if let Some(top) = self.ignored.top(path, is_new_directory) {
            return self.record_ignored(path, &top);
        }
        self.record_directory_above(path);
        self.add(path);
    }

    /// Records the time of the directory in which a name comes or goes.
    fn record_directory_above(&mut self, path: &Path) {
        if let Some(parent) = path.parent()
            && !self.seen.contains(parent)
            && self.ignored.is_below_root(parent)
        {
            self.add(parent);
        }
    }

    fn add(&mut self, path: &Path) {
        let sighting = match look_below_links(path, MOST_CONTENT_BYTES) {
            Ok(sighting) => sighting,
            Err(error) => FileSighting {
                missed: Some(format!("cannot be read: {error}")),
                ..FileSighting::nothing()
            },
        };
        let is_file = sighting.version.kind() == Some(FileKind::File);
        let names = if is_file && sighting.names > 1 {
            self.names_of(sighting.id)
        } else {
            Vec::new()
        };
        self.add_sighting(path, sighting.clone(), &names);
        // A change by one name changes the file of all.
        for name in names.iter().filter(|name| *name != path) {
            if !self.seen.contains(name) {
                self.add_sighting(name, sighting.clone(), &names);
            }
        }
    }

    fn add_sighting(&mut self, path: &Path, mut sighting: FileSighting, names: &[PathBuf]) {
        let other = first_other(names.iter().map(PathBuf::as_path), path);
        sighting.version.same_as = other.and_then(Path::to_str).map(str::to_owned);
        if sighting.version.is_absent() {
            self.fresh.insert(path.to_owned());
        }
        self.journal.add(path, sighting);
        self.seen.insert(path.to_owned());
    }

    /// Records a change in a directory that git ignores: only names that come.
    fn record_ignored(&mut self, path: &Path, top: &Path) {
        if self.created.contains(top) {
            return;
        }
        let is_there = |path: &Path| fs::symlink_metadata(path).is_ok();
        if !is_there(top) {
            self.record_directory_above(top);
            self.journal.add_ignored(top);
            self.created.insert(top.to_owned());
            self.seen.insert(top.to_owned());
        } else if !is_there(path) {
            self.journal.add_ignored(path);
            self.seen.insert(path.to_owned());
        }
        if self.missed.insert(top.to_owned()) {
            self.journal.miss(&format!("{}/", top.display()), IGNORED);
        }
    }

    /// Records a directory that is about to be renamed, at both places.
    fn record_tree(&mut self, from: &Path, to: &Path, is_inside: &impl Fn(&Path) -> bool) {
        let mut left = vec![(from.to_owned(), to.to_owned())];
        let mut count = 0;
        while let Some((from, to)) = left.pop() {
            count += 1;
            if count > MOST_ENTRIES {
                let path = from.to_string_lossy().into_owned();
                self.journal
                    .miss(&path, "the renamed directory is too large");
                return;
            }
            let is_directory = is_directory(&from);
            if is_inside(&from) {
                self.record(&from, is_directory);
            }
            if is_inside(&to) {
                self.record(&to, is_directory);
            }
            let is_ignored = is_directory && self.ignored.top(&from, true).is_some();
            if is_directory
                && !is_ignored
                && let Ok(entries) = fs::read_dir(&from)
            {
                let entries = entries.flatten().map(|entry| entry.file_name());
                left.extend(entries.map(|name| (from.join(&name), to.join(&name))));
            }
        }
    }

    /// Notes a change of the owner, which is not kept, unless the command created the file.
    fn miss_owner(&mut self, path: &Path, (user, group): (u32, u32)) {
        let Ok(found) = fs::symlink_metadata(path) else {
            return;
        };
        let stays = |new: u32, old: u32| new == u32::MAX || new == old;
        let is_same = stays(user, found.uid()) && stays(group, found.gid());
        if !is_same && !self.fresh.contains(path) && self.missed.insert(path.to_owned()) {
            self.journal
                .miss(&path.to_string_lossy(), "the owner is not restored");
        }
    }

    /// Finds the names of a file, in the directories that are recorded.
    ///
    /// The first search is enough: names that come later, and names of other files, are recorded
    /// when they change.
    fn names_of(&mut self, id: (u64, u64)) -> Vec<PathBuf> {
        if self.names.is_none() {
            self.names = Some(self.find_names());
        }
        let names = self.names.as_ref().and_then(|names| names.get(&id));
        names.cloned().unwrap_or_default()
    }

    fn find_names(&mut self) -> BTreeMap<(u64, u64), Vec<PathBuf>> {
        let mut names: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let mut left = self.ignored.roots().to_vec();
        let mut count = 0;
        while let Some(directory) = left.pop() {
            let Ok(entries) = fs::read_dir(&directory) else {
                continue;
            };
            for entry in entries.flatten() {
                count += 1;
                if count > MOST_SEARCHED {
                    return names;
                }
                let path = entry.path();
                let Ok(metadata) = fs::symlink_metadata(&path) else {
                    continue;
                };
                if metadata.is_dir() {
                    if !is_object(&path) && self.ignored.top(&path, true).is_none() {
                        left.push(path);
                    }
                } else if metadata.is_file() && metadata.nlink() > 1 {
                    let id = (metadata.dev(), metadata.ino());
                    names.entry(id).or_default().push(path);
                }
            }
        }
        names
    }
}

/// Returns true for a directory itself, not for a link to one.
fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Returns true for git's objects, which are only added.
fn is_object(path: &Path) -> bool {
    let mut parts = path.components().map(Component::as_os_str);
    while let Some(part) = parts.next() {
        if part == ".git" {
            return parts.next().is_some_and(|next| next == "objects");
        }
    }
    false
}
