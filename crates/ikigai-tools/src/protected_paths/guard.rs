//! Guard of a repository during a sandboxed command.
//!
//! Before the command it records the guarded paths; afterwards it reverts the command's changes
//! there. Directories that the sandbox mounted read-only are not compared, so that changes of the
//! user in them stay.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use super::nested_repositories::{NestedRepository, nested_repositories};
use super::snapshot::{
    Attic, DirectorySnapshot, GuardedKind, changed_since, open_directory, read_file, replace_file,
};
use super::{RepositoryPaths, repository_paths, restore_program_settings};

/// Limit on rounds of restoring one directory.
const MOST_ROUNDS: usize = 100;

/// Recorded states of running commands.
///
/// A later command must not take the changes of an earlier one for the original, so it starts from
/// the earlier one's state.
static RUNNING: Mutex<Vec<Weak<GuardedState>>> = Mutex::new(Vec::new());

/// Guard of the repositories below a working directory.
#[derive(Debug)]
pub(crate) struct RepositoryGuard {
    workdir: PathBuf,
    writable: Vec<PathBuf>,
    before: Arc<GuardedState>,
    /// Existing directories that belong to the repository itself.
    mountable: Vec<PathBuf>,
    are_mounted: bool,
}

/// Guarded paths with their content.
#[derive(Debug)]
struct GuardedState {
    workdir: PathBuf,
    started: SystemTime,
    directories: BTreeMap<PathBuf, DirectorySnapshot>,
    configurations: BTreeMap<PathBuf, String>,
    /// Files and links that name a git directory, with their content.
    pointers: BTreeMap<PathBuf, DirectorySnapshot>,
}

impl RepositoryGuard {
    /// Records the guarded paths of `workdir` below the writable directories. Blocks.
    pub(crate) fn begin(workdir: &Path, writable: &[PathBuf]) -> Self {
        let workdir = fs::canonicalize(workdir).unwrap_or_else(|_| workdir.to_path_buf());
        let writable: Vec<PathBuf> = writable
            .iter()
            .filter_map(|path| fs::canonicalize(path).ok())
            .collect();
        let found = find_guarded(&workdir, &writable);
        let mountable = found
            .directories
            .iter()
            .filter(|path| is_of_repository(path, &workdir))
            .filter(|path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()))
            .cloned()
            .collect();
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|state| state.strong_count() > 0);
        let earlier: Vec<_> = running.iter().filter_map(Weak::upgrade).collect();
        let before = Arc::new(GuardedState::take(&found, &workdir, &earlier));
        running.push(Arc::downgrade(&before));
        Self {
            workdir,
            writable,
            before,
            mountable,
            are_mounted: false,
        }
    }

    /// Returns the directories that the sandbox should mount read-only.
    pub(crate) fn mountable(&self) -> &[PathBuf] {
        &self.mountable
    }

    /// Records that all of them are mounted read-only.
    pub(crate) fn set_mounted(&mut self) {
        self.are_mounted = true;
    }

    /// Returns true if a pointer leads to a git directory below the working directory.
    fn leads_inside(&self, pointer: &Path) -> bool {
        let read_pointer = |_| {
            let text = read_text(pointer).unwrap_or_default();
            let text = text.trim();
            PathBuf::from(text.strip_prefix("gitdir:").unwrap_or(text).trim())
        };
        let target = fs::read_link(pointer).unwrap_or_else(read_pointer);
        let target = pointer.parent().unwrap_or(Path::new("/")).join(target);
        fs::canonicalize(target).is_ok_and(|target| target.starts_with(&self.workdir))
    }

    /// Reverts the changes and returns a remark about them. Blocks.
    pub(crate) fn finish(self) -> Option<String> {
        let after = find_guarded(&self.workdir, &self.writable);
        let mut attic = Attic::default();
        let mut changed = Vec::new();
        let directories: BTreeSet<&PathBuf> = self
            .before
            .directories
            .keys()
            .chain(&after.directories)
            .collect();
        let empty = DirectorySnapshot::default();
        let mut parents = after.parents;
        for pointer in &after.pointers {
            let before = self.before.pointers.get(pointer).unwrap_or(&empty);
            let now = DirectorySnapshot::take(pointer);
            if now != *before && !self.leads_inside(pointer) {
                let kind = GuardedKind::Settings;
                changed.extend(now.restore(before, pointer, kind, &mut attic));
            }
        }
        if !changed.is_empty() {
            parents = RealParents::default();
        }
        for directory in directories {
            // The command did not create a path outside that appears only now, but a pointer to it.
            let is_known = self.before.directories.contains_key(directory);
            if !(is_known || directory.starts_with(&self.workdir))
                || !parents.has_no_links(directory)
            {
                continue;
            }
            let before = self.before.directories.get(directory).unwrap_or(&empty);
            let is_mounted = self.are_mounted && self.mountable.contains(directory);
            if is_mounted && before.is_of(directory) {
                continue;
            }
            let kind = GuardedKind::of(directory);
            // A directory over the limit is emptied in several rounds.
            for _ in 0..MOST_ROUNDS {
                let now = DirectorySnapshot::take(directory);
                let restored = now.restore(before, directory, kind, &mut attic);
                let is_done = restored.is_empty() || !now.is_truncated();
                if !restored.is_empty() {
                    parents = RealParents::default();
                }
                changed.extend(restored);
                if is_done {
                    break;
                }
            }
        }
        for file in &after.configurations {
            let before = self.before.configurations.get(file);
            if before.is_none() && !file.starts_with(&self.workdir) {
                continue;
            }
            let before = before.map_or("", String::as_str);
            changed.extend(restore_configuration(file, before, &mut attic));
        }
        let changed: Vec<String> = changed
            .iter()
            .map(
                |path| match path.strip_prefix(&format!("{}/", self.workdir.display())) {
                    Some(relative) => relative.to_owned(),
                    None => path.clone(),
                },
            )
            .collect();
        describe(&changed, &attic)
    }
}

impl GuardedState {
    /// Records paths in their state before the first of the `earlier` commands that still run.
    fn take(found: &GuardedPaths, workdir: &Path, earlier: &[Arc<Self>]) -> Self {
        let started = SystemTime::now();
        // An earlier command may have created a path that it did not record, if the path is new.
        let suspect_since = |path: &Path| {
            let above = earlier
                .iter()
                .filter(|state| path.starts_with(&state.workdir));
            above.map(|state| state.started).min()
        };
        let record = |paths: &[PathBuf], of: fn(&Self) -> &BTreeMap<PathBuf, DirectorySnapshot>| {
            let record_one = |path: &PathBuf| {
                let known = earlier
                    .iter()
                    .find_map(|state| of(state).get(path).cloned());
                known.unwrap_or_else(|| DirectorySnapshot::take_before(path, suspect_since(path)))
            };
            let recorded = paths.iter().map(|path| (path.clone(), record_one(path)));
            recorded.collect::<BTreeMap<_, _>>()
        };
        let configuration = |path: &PathBuf| {
            let known = earlier
                .iter()
                .find_map(|state| state.configurations.get(path).cloned());
            let is_suspect = || suspect_since(path).is_some_and(|since| changed_since(path, since));
            known.or_else(|| read_text(path).filter(|_| !is_suspect()))
        };
        let configurations = found.configurations.iter();
        Self {
            workdir: workdir.to_path_buf(),
            started,
            directories: record(&found.directories, |state| &state.directories),
            configurations: configurations
                .filter_map(|path| Some((path.clone(), configuration(path)?)))
                .collect(),
            pointers: record(&found.pointers, |state| &state.pointers),
        }
    }
}

/// Guarded paths that a command could change, links above them resolved.
struct GuardedPaths {
    directories: Vec<PathBuf>,
    configurations: Vec<PathBuf>,
    /// `.git` where it is a file or link, and `commondir`.
    pointers: Vec<PathBuf>,
    parents: RealParents,
}

/// Returns true if a directory belongs to the repository and checkout of `workdir`.
///
/// Hooks of a submodule belong to it, too. Other checkouts change during ordinary work.
fn is_of_repository(directory: &Path, workdir: &Path) -> bool {
    let Some(parent) = directory.parent() else {
        return false;
    };
    let git = parent
        .ancestors()
        .find(|ancestor| ancestor.file_name() == Some(OsStr::new(".git")));
    let checkout = git.and_then(Path::parent).unwrap_or(parent);
    workdir.starts_with(checkout)
}

/// Finds guarded paths below the writable directories.
fn find_guarded(workdir: &Path, writable: &[PathBuf]) -> GuardedPaths {
    let mut all = repository_paths(workdir);
    for nested in nested_repositories(workdir) {
        let paths = match nested {
            NestedRepository::Checkout(checkout) => repository_paths(&checkout),
            NestedRepository::Settings(directory) => RepositoryPaths::of_settings(&directory),
            NestedRepository::Bare(git) => RepositoryPaths {
                read_only: vec![git.join("hooks")],
                git_configurations: vec![git.join("config")],
                git_directories: vec![git],
                ..RepositoryPaths::default()
            },
        };
        all.read_only.extend(paths.read_only);
        all.git_configurations.extend(paths.git_configurations);
        all.git_directories.extend(paths.git_directories);
        all.checkouts.extend(paths.checkouts);
    }
    all.git_configurations.extend(user_configurations());
    let pointers = all.checkouts.iter().map(|checkout| checkout.join(".git"));
    let common = all.git_directories.iter().map(|git| git.join("commondir"));
    let pointers: Vec<PathBuf> = pointers
        .chain(common)
        .filter(|path| fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir()))
        .collect();
    let mut parents = RealParents::default();
    let mut resolve = |paths: &[PathBuf]| -> Vec<PathBuf> {
        let resolved: BTreeSet<PathBuf> = paths
            .iter()
            .filter_map(|path| parents.resolve(path))
            .filter(|path| writable.iter().any(|root| path.starts_with(root)))
            .collect();
        resolved.into_iter().collect()
    };
    GuardedPaths {
        directories: resolve(&all.read_only),
        configurations: resolve(&all.git_configurations),
        pointers: resolve(&pointers),
        parents,
    }
}

/// Returns the user's git configuration files, which count if they are in the working directory.
fn user_configurations() -> Vec<PathBuf> {
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let settings = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let default = home.as_ref().map(|home| home.join(".config"));
    let directories = settings.into_iter().chain(default);
    let files = directories.map(|directory| directory.join("git/config"));
    let own = home.map(|home| home.join(".gitconfig"));
    files.chain(own).filter(|file| file.is_absolute()).collect()
}

/// Resolves links above entries, each directory once.
#[derive(Default)]
struct RealParents(BTreeMap<PathBuf, Option<PathBuf>>);

impl RealParents {
    /// Resolves links above an entry, but not the entry itself. A missing parent stays as it is.
    fn resolve(&mut self, path: &Path) -> Option<PathBuf> {
        let (parent, name) = (path.parent()?, path.file_name()?);
        match self.real(parent) {
            Some(real) => Some(real.join(name)),
            None => Some(path.to_path_buf()),
        }
    }

    /// Returns true if a path has no links above it.
    fn has_no_links(&mut self, path: &Path) -> bool {
        path.parent().is_some_and(|parent| {
            let real = self.real(parent);
            real.map_or_else(|| !parent.exists(), |real| real == parent)
        })
    }

    fn real(&mut self, directory: &Path) -> Option<&PathBuf> {
        if !self.0.contains_key(directory) {
            // Paths usually have no links, which one call can check.
            let real = if is_normal(directory) && open_directory(directory).is_ok() {
                Some(directory.to_path_buf())
            } else {
                fs::canonicalize(directory).ok()
            };
            self.0.insert(directory.to_path_buf(), real);
        }
        self.0.get(directory)?.as_ref()
    }
}

/// Returns true for an absolute path without `.` and `..`.
fn is_normal(path: &Path) -> bool {
    let is_name = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::RootDir);
    path.is_absolute() && path.components().all(is_name)
}

fn restore_configuration(file: &Path, before: &str, attic: &mut Attic) -> Vec<String> {
    let Some(after) = read_text(file) else {
        return Vec::new();
    };
    let Some((text, keys)) = restore_program_settings(before, &after) else {
        return Vec::new();
    };
    let name = file.file_name().unwrap_or(OsStr::new("config"));
    // If there is no room for the copy, restore the settings all the same.
    let _ = attic.keep(name, after.as_bytes());
    let path = file.display();
    match replace_file(file, text.as_bytes()) {
        Ok(()) => vec![format!("{path} ({})", keys.join(", "))],
        Err(error) => vec![format!("{path} (failed: {error})")],
    }
}

fn read_text(file: &Path) -> Option<String> {
    read_file(file).map(|content| String::from_utf8_lossy(&content).into_owned())
}

fn describe(changed: &[String], attic: &Attic) -> Option<String> {
    const MOST_NAMED: usize = 8;
    if changed.is_empty() {
        return None;
    }
    let first = changed.iter().take(MOST_NAMED).cloned();
    let others = changed.len().saturating_sub(MOST_NAMED);
    let others = (others > 0).then(|| format!("{others} more"));
    let names: Vec<String> = first.chain(others).collect();
    let names = names.join(", ");
    let copy = attic
        .directory()
        .map(|directory| format!("; copies are in {}", directory.display()));
    Some(format!(
        "protected paths were changed and restored: {names}{}. Only the user can change them, \
         outside the sandbox.",
        copy.unwrap_or_default()
    ))
}
