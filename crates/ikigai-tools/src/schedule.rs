//! Which calls may run side by side: those that touch nothing of each other.

use std::path::{Path, PathBuf};

/// Which files a call reads and writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    /// What it reads.
    pub reads: Paths,
    /// What it writes.
    pub writes: Paths,
}

/// A set of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Paths {
    /// None.
    #[default]
    None,
    /// These, each with everything below it. Absolute, without `.` and `..`.
    Below(Vec<PathBuf>),
    /// Perhaps any.
    All,
}

impl Touches {
    /// Reads these and writes nothing.
    pub fn reading(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            reads: Paths::Below(paths.into_iter().collect()),
            writes: Paths::None,
        }
    }

    /// Reads and writes these.
    pub fn writing(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let paths = Paths::Below(paths.into_iter().collect());
        Self {
            reads: paths.clone(),
            writes: paths,
        }
    }

    /// May read and write anything.
    pub fn everything() -> Self {
        Self {
            reads: Paths::All,
            writes: Paths::All,
        }
    }

    /// Whether the two must not run at the same time.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        self.writes.meets(&other.reads)
            || self.writes.meets(&other.writes)
            || self.reads.meets(&other.writes)
    }
}

impl Paths {
    /// Whether there is a file in both.
    fn meets(&self, other: &Self) -> bool {
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
