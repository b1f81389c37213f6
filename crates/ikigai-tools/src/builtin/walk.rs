//! Going through a tree of files as `glob` and `grep` do.

use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ignore::{DirEntry, WalkBuilder};

use crate::Place;
use crate::paths::{self, Hidden};

/// Something in the tree.
pub(super) struct Found {
    /// Where it is, named as located paths are.
    pub(super) path: PathBuf,
    /// Where it is, seen from the start.
    pub(super) inside: PathBuf,
    /// What it is; links are not followed.
    pub(super) kind: FileType,
    entry: DirEntry,
}

impl Found {
    /// When its content changed; long ago if that cannot be found out.
    pub(super) fn changed(&self) -> SystemTime {
        let metadata = self.entry.metadata().ok();
        metadata
            .and_then(|metadata| metadata.modified().ok())
            .unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

/// Everything below `start`, which has been located, or `start` itself if it is a file, in the
/// order of names. What ignore files name, what is hidden and `.git` are left out; what cannot be
/// read is passed over. Links are found but not followed.
pub(super) fn below(place: &Place, start: &Path) -> impl Iterator<Item = Found> {
    let start = start.to_owned();
    // Hidden paths have their links followed, so the walk must begin at a path without any.
    let real = paths::follow(&start).unwrap_or_else(|| start.clone());
    let hidden = Hidden::of(place);
    let walk = WalkBuilder::new(&real)
        // Files whose name begins with a dot are files of a project like others.
        .hidden(false)
        // Ignore files count wherever they are, not only in a repository.
        .require_git(false)
        .current_dir(&real)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(move |entry| entry.file_name() != ".git" && !hidden.covers(entry.path()))
        .build();
    walk.filter_map(move |entry| {
        let entry = entry.ok()?;
        let inside = entry.path().strip_prefix(&real).ok()?.to_owned();
        let path = if inside.as_os_str().is_empty() {
            start.clone()
        } else {
            start.join(&inside)
        };
        Some(Found {
            path,
            inside,
            kind: entry.file_type()?,
            entry,
        })
    })
}
