//! A path and the directories around it, before a tool writes to it.

use std::path::{Path, PathBuf};

use super::{FileSighting, MOST_CONTENT_BYTES, RecordedChanges, look};

/// Paths that one write can change, as they were before it.
pub(crate) struct PathsBefore(Vec<(PathBuf, FileSighting)>);

impl PathsBefore {
    /// Looks at a file, at the directories that a write would create, and at the one above them.
    pub(crate) fn of(real: &Path) -> Self {
        let mut paths = vec![(real.to_owned(), seen(real))];
        for directory in real.ancestors().skip(1) {
            let found = seen(directory);
            let exists = !found.version.is_absent();
            paths.push((directory.to_owned(), found));
            if exists {
                break;
            }
        }
        Self(paths)
    }

    /// Returns what changed since then.
    pub(crate) fn changes(self) -> RecordedChanges {
        let mut changes = RecordedChanges::default();
        for (path, before) in self.0 {
            let after = seen(&path);
            changes.add(&path, before, after);
        }
        changes
    }
}

fn seen(path: &Path) -> FileSighting {
    look(path, MOST_CONTENT_BYTES).unwrap_or_else(|error| FileSighting {
        missed: Some(format!("cannot be read: {error}")),
        ..FileSighting::nothing()
    })
}
