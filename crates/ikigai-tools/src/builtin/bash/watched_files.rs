//! Files that the model has read, and that a command changes.

use std::path::{Path, PathBuf};

use crate::files::{self, FileSnapshot, Stamp};
use crate::{Place, ReadFile, paths};

/// Most files that are named.
const MOST_NAMED: usize = 10;

/// Files that the model has read, as they are before a command.
pub(super) struct WatchedFiles(Vec<WatchedFile>);

struct WatchedFile {
    path: PathBuf,
    /// Hash of the content that the model knows.
    known: String,
    /// State before the command; none if the file did not exist.
    before: Option<Stamp>,
}

impl WatchedFiles {
    /// Records the present state of files. Blocks.
    pub(super) fn record(read: Vec<ReadFile>) -> Self {
        let watch = |file: ReadFile| WatchedFile {
            before: stamp(&file.path),
            path: file.path,
            known: file.hash,
        };
        Self(read.into_iter().map(watch).collect())
    }

    /// Describes the files that a command changed or removed since then. Blocks.
    pub(super) fn describe_changes(&self, place: &Place) -> Option<String> {
        let changed = self.0.iter().filter(|file| file.has_changed());
        let names: Vec<String> = changed
            .map(|file| format!("`{}`", paths::display_path(place, &file.path)))
            .collect();
        let mut list = names[..names.len().min(MOST_NAMED)].join(", ");
        if names.len() > MOST_NAMED {
            list = format!("{list} and {} more", names.len() - MOST_NAMED);
        }
        let text = format!("this changed files that you had read: {list}; read them again");
        (!names.is_empty()).then_some(text)
    }
}

impl WatchedFile {
    fn has_changed(&self) -> bool {
        let Some(before) = self.before else {
            return false;
        };
        let now = stamp(&self.path);
        if now == Some(before) {
            return false;
        }
        // Another stamp alone may be a change of rights, or a change and its reversal.
        let content = self.path.canonicalize().map(|real| files::find(&real));
        match content {
            Ok(Ok(FileSnapshot::Whole { bytes, .. })) => files::sha256_hex(&bytes) != self.known,
            Ok(Ok(FileSnapshot::Large { .. } | FileSnapshot::Nothing)) | Err(_) => true,
            Ok(Err(_)) => false,
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    path.metadata().ok().map(|metadata| Stamp::of(&metadata))
}
