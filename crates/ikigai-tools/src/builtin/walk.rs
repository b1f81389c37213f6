//! Directory walk of `glob` and `grep`.

use std::fs::FileType;
use std::path::PathBuf;
use std::time::SystemTime;

use ignore::WalkBuilder;

use crate::Place;
use crate::anchored_file::{AnchoredFile, MissingDirectories};
use crate::paths::{Hidden, Located};

pub(super) struct WalkEntry {
    /// Path in the form of [`Located::path`].
    pub(super) path: PathBuf,
    /// Path relative to the start.
    pub(super) inside: PathBuf,
    /// Type of the entry; links are not followed.
    pub(super) kind: FileType,
    /// Path without links.
    real: PathBuf,
}

/// Lists everything below `start`, or `start` itself if it is a file, by name.
///
/// Skips ignored files, paths hidden from tools, `.git` and unreadable entries. Lists links without
/// following them.
///
/// The walk goes by paths, so a directory that becomes a link meanwhile can mislead it. Therefore
/// use an entry only if [`Anchors`] finds it again without following links.
pub(super) fn below(place: &Place, start: &Located) -> impl Iterator<Item = WalkEntry> {
    let Located { path: start, real } = start.clone();
    let hidden = Hidden::of(place);
    let walk = WalkBuilder::new(&real)
        // Dotfiles are ordinary files of a project.
        .hidden(false)
        // Ignore files apply outside of repositories as well.
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
        Some(WalkEntry {
            path,
            inside,
            kind: entry.file_type()?,
            real: entry.into_path(),
        })
    })
}

/// Finds entries of a walk again, without following links.
///
/// Keeps the newest directory open, because its entries usually follow each other.
#[derive(Default)]
pub(super) struct Anchors {
    newest: Option<(PathBuf, AnchoredFile)>,
}

impl Anchors {
    /// Returns the modification time of the entry; none if it is gone.
    pub(super) fn changed(&mut self, found: &WalkEntry) -> Option<SystemTime> {
        let metadata = self.anchor(found)?.metadata().ok()?;
        Some(metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// Opens the entry by its directory; none if that is behind a link.
    pub(super) fn anchor(&mut self, found: &WalkEntry) -> Option<AnchoredFile> {
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
