//! Hard links of files that are to be restored: which paths shall be one file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ikigai_core::data::{FileKind, FileVersion};

use super::RestoreStep;

/// Hard links that one path is to get or to lose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkPlan {
    /// Paths of which it shall be another name, the best first.
    pub(super) twins: Vec<PathBuf>,
    /// True if its present file belongs to other paths, which keep it.
    pub(super) is_parted: bool,
}

/// Place of a path in the order in which paths are restored: directories before their files.
pub(super) fn place_in_order(path: &Path) -> (usize, PathBuf) {
    (path.components().count(), path.to_owned())
}

/// Returns the first other name of a file: that which a recorded state names.
pub(super) fn first_other<'a>(
    names: impl IntoIterator<Item = &'a Path>,
    path: &Path,
) -> Option<&'a Path> {
    let others = names.into_iter().filter(|name| *name != path);
    others.min_by_key(|name| place_in_order(name))
}

/// Paths that are one file; each group is named by its first path.
#[derive(Default)]
struct LinkGroups {
    before: BTreeMap<PathBuf, PathBuf>,
}

impl LinkGroups {
    fn first<'a>(&'a self, path: &'a Path) -> &'a Path {
        let mut first = path;
        while let Some(before) = self.before.get(first) {
            first = before;
        }
        first
    }

    fn join(&mut self, one: &Path, other: &Path) {
        let (one, other) = (self.first(one).to_owned(), self.first(other).to_owned());
        let (first, last) = if place_in_order(&one) <= place_in_order(&other) {
            (one, other)
        } else {
            (other, one)
        };
        if first != last {
            self.before.insert(last, first);
        }
    }
}

fn other_name(version: &FileVersion) -> Option<&Path> {
    let is_file = version.kind() == Some(FileKind::File);
    version
        .same_as
        .as_deref()
        .map(Path::new)
        .filter(|_| is_file)
}

/// Decides about the hard links of all steps, which are in the order of their restoring.
pub(super) fn plan_links(steps: &mut [RestoreStep]) {
    let is_file = |step: &RestoreStep| step.target.kind() == Some(FileKind::File);
    let paths: BTreeMap<PathBuf, bool> = steps
        .iter()
        .map(|step| (step.path.clone(), is_file(step)))
        .collect();
    // A path without a step stays as it is.
    let stays = |path: &Path| !paths.contains_key(path);
    let (mut now, mut wanted) = (LinkGroups::default(), LinkGroups::default());
    let mut members = BTreeSet::new();
    let mut staying = BTreeSet::new();
    for step in steps.iter() {
        if let Some(other) = other_name(&step.expected) {
            now.join(&step.path, other);
            members.extend([place_in_order(&step.path), place_in_order(other)]);
        }
        if let Some(other) = other_name(&step.target)
            && paths.get(other).is_none_or(|is_file| *is_file)
        {
            wanted.join(&step.path, other);
            if stays(other) {
                staying.insert(other.to_owned());
            }
        }
    }
    let mut keepers: BTreeMap<&Path, &Path> = BTreeMap::new();
    for is_staying in [true, false] {
        for (_, path) in &members {
            if stays(path) == is_staying && paths.get(path).is_none_or(|is_file| *is_file) {
                keepers.entry(now.first(path)).or_insert(wanted.first(path));
            }
        }
    }
    let mut twins: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for path in staying {
        let group = wanted.first(&path).to_owned();
        twins.entry(group).or_default().push(path);
    }
    let mut met = BTreeSet::new();
    for step in steps.iter_mut().filter(|step| is_file(step)) {
        let group = wanted.first(&step.path).to_owned();
        let keeper = keepers.get(now.first(&step.path));
        step.links.is_parted = keeper.is_some_and(|keeper| **keeper != *group);
        let twins = twins.entry(group.clone()).or_default();
        step.links.twins.clone_from(twins);
        if met.insert(group) {
            twins.push(step.path.clone());
        }
    }
}
