//! Conflicts between calls: calls without common touches run in parallel.

use std::path::{Path, PathBuf};

/// Files that a call reads and writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    /// Files that it reads.
    pub reads: Paths,
    /// Files that it writes.
    pub writes: Paths,
}

/// Set of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Paths {
    /// No files.
    #[default]
    None,
    /// These paths, each with everything below it. Absolute, without `.` and `..`.
    Below(Vec<PathBuf>),
    /// Possibly any file.
    All,
}

impl Touches {
    /// Returns touches that read these paths and write nothing.
    pub fn reading(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            reads: Paths::Below(paths.into_iter().collect()),
            writes: Paths::None,
        }
    }

    /// Returns touches that read and write these paths.
    pub fn writing(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let paths = Paths::Below(paths.into_iter().collect());
        Self {
            reads: paths.clone(),
            writes: paths,
        }
    }

    /// Returns touches that may read and write any file.
    pub fn everything() -> Self {
        Self {
            reads: Paths::All,
            writes: Paths::All,
        }
    }

    /// Returns true if the two calls must not run at the same time.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        self.writes.overlaps(&other.reads)
            || self.writes.overlaps(&other.writes)
            || self.reads.overlaps(&other.writes)
    }
}

impl Paths {
    /// Returns true if both sets may have a common file.
    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, _) | (_, Self::None) => false,
            (Self::All, _) | (_, Self::All) => true,
            (Self::Below(ours), Self::Below(theirs)) => ours
                .iter()
                .any(|one| theirs.iter().any(|other| is_within(one, other))),
        }
    }
}

fn is_within(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}
