//! Going through a tree of files as `glob` and `grep` do.

use std::fs::FileType;
use std::path::PathBuf;
use std::time::SystemTime;

use ignore::WalkBuilder;

use crate::Place;
use crate::anchored_file::{AnchoredFile, MissingDirectories};
use crate::paths::{Hidden, Located};

/// Something in the tree, as the walk saw it.
pub(super) struct Found {
    /// Where it is, named as located paths are.
    pub(super) path: PathBuf,
    /// Where it is, seen from the start.
    pub(super) inside: PathBuf,
    /// What it is; links are not followed.
    pub(super) kind: FileType,
    /// Where it is, without links.
    real: PathBuf,
}

/// Everything below `start`, or `start` itself if it is a file, in the order of names. What ignore
/// files name, what is hidden and `.git` are left out; what cannot be read is passed over. Links
/// are found but not followed.
///
/// The walk goes by paths, so it can be led astray by a directory that becomes a link meanwhile.
/// Therefore an entry counts only if [`Anchors`] finds it again without following links.
pub(super) fn below(place: &Place, start: &Located) -> impl Iterator<Item = Found> {
    let Located { path: start, real } = start.clone();
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
            real: entry.into_path(),
        })
    })
}

/// Finds entries of a walk again, without following links.
///
/// Keeps the newest directory open: entries of one directory often come in a row.
#[derive(Default)]
pub(super) struct Anchors {
    newest: Option<(PathBuf, AnchoredFile)>,
}

impl Anchors {
    /// The time at which the entry's content changed; none if there is no such entry.
    pub(super) fn changed(&mut self, found: &Found) -> Option<SystemTime> {
        let metadata = self.anchor(found)?.metadata().ok()?;
        Some(metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// The entry, by its open directory; none if that is behind a link.
    pub(super) fn anchor(&mut self, found: &Found) -> Option<AnchoredFile> {
        let path = &found.real;
        let (parent, name) = (path.parent()?, path.file_name()?);
        match &self.newest {
            Some((known, file)) if known == parent => file.sibling(name).ok(),
            _ => {
                let file = AnchoredFile::open(path, MissingDirectories::Fail).ok()?;
                let kept = file.sibling(name).ok()?;
                self.newest = Some((parent.to_path_buf(), kept));
                Some(file)
            }
        }
    }
}
