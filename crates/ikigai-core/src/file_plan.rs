//! Plan to take files back to an earlier moment, computed from `files` rows.

use std::collections::BTreeMap;

use crate::data::{FileKind, FileVersion, FilesData, MissedChange};

/// Path that is to be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// State that the newest change left.
    pub expected: FileVersion,
    /// State before the oldest change.
    pub target: FileVersion,
    /// True if each change began with the state that the one before it left.
    ///
    /// Otherwise a person or another program changed the file in between.
    pub is_continuous: bool,
}

/// Files to restore, by path, and changes that cannot be taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePlan {
    /// Paths whose state differs.
    pub files: BTreeMap<String, PlannedFile>,
    /// Changes that were not recorded.
    pub missed: Vec<MissedChange>,
}

impl FilePlan {
    /// Takes back these rows, given newest first with all their entries.
    pub fn of_rows(rows: impl IntoIterator<Item = FilesData>) -> Self {
        let mut plan = Self::default();
        for row in rows {
            for entry in row.entries.unwrap_or_default() {
                if let (Some(path), Some(before), Some(after)) =
                    (entry.path, entry.before, entry.after)
                {
                    plan.add(path, before, after);
                }
            }
            for missed in row.missed.unwrap_or_default() {
                if !plan.missed.contains(&missed) {
                    plan.missed.push(missed);
                }
            }
        }
        plan.files.retain(|_, file| file.expected != file.target);
        plan
    }

    fn add(&mut self, path: String, before: FileVersion, after: FileVersion) {
        if let Some(file) = self.files.get_mut(&path) {
            if file.overlaps(&before, &after) {
                file.target.mtime_ns = file.target.mtime_ns.min(before.mtime_ns);
                file.expected.mtime_ns = file.expected.mtime_ns.max(after.mtime_ns);
            } else {
                file.is_continuous &= after.is_like(&file.target);
                file.target = before;
            }
            return;
        }
        let file = PlannedFile {
            expected: after,
            target: before,
            is_continuous: true,
        };
        self.files.insert(path, file);
    }

    /// Returns true if there is nothing to take back.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.missed.is_empty()
    }
}

impl PlannedFile {
    /// Returns true for times of a directory in which two calls worked at once.
    ///
    /// The rows are in the order in which the calls ended; each saw times of the other.
    fn overlaps(&self, before: &FileVersion, after: &FileVersion) -> bool {
        self.is_only_time()
            && before.is_like(&self.target)
            && after.is_like(&self.target)
            && after.mtime_ns != self.target.mtime_ns
    }

    /// Returns true for a directory of which only the time changes.
    ///
    /// It changes with every file in it, so it is not named.
    pub fn is_only_time(&self) -> bool {
        self.target.kind() == Some(FileKind::Directory) && self.target.is_like(&self.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::FileChange;

    fn file(hash: &str) -> FileVersion {
        FileVersion {
            hash: Some(hash.to_owned()),
            ..FileVersion::default()
        }
    }

    fn row(path: &str, before: FileVersion, after: FileVersion) -> FilesData {
        FilesData {
            entries: Some(vec![FileChange {
                path: Some(path.to_owned()),
                before: Some(before),
                after: Some(after),
            }]),
            ..FilesData::default()
        }
    }

    #[test]
    fn several_changes_of_a_file_are_taken_back_at_once() {
        let rows = [
            row("/a", file("2"), file("3")),
            row("/b", file("x"), FileVersion::absent()),
            row("/a", FileVersion::absent(), file("2")),
        ];

        let plan = FilePlan::of_rows(rows);

        let expected = PlannedFile {
            expected: file("3"),
            target: FileVersion::absent(),
            is_continuous: true,
        };
        assert_eq!(plan.files["/a"], expected);
        assert_eq!(plan.files["/b"].target, file("x"));
    }

    #[test]
    fn a_change_by_others_in_between_breaks_the_chain() {
        let rows = [
            row("/a", file("theirs"), file("3")),
            row("/a", file("1"), file("2")),
        ];

        let plan = FilePlan::of_rows(rows);

        assert!(!plan.files["/a"].is_continuous);
        assert_eq!(plan.files["/a"].target, file("1"));
    }

    #[test]
    fn of_a_directory_in_which_two_calls_worked_at_once_the_outer_times_count() {
        let directory = |mtime_ns| FileVersion {
            kind: Some(FileKind::Directory),
            mtime_ns: Some(mtime_ns),
            ..FileVersion::default()
        };
        // The first call began at 1 and ended last; the second began at 2 and ended first.
        let rows = [
            row("/d", directory(1), directory(3)),
            row("/d", directory(2), directory(4)),
        ];

        let plan = FilePlan::of_rows(rows);

        assert_eq!(plan.files["/d"].target, directory(1));
        assert_eq!(plan.files["/d"].expected, directory(4));
        let touched = [
            row("/d", directory(1), directory(5)),
            row("/d", directory(4), directory(1)),
        ];
        assert_eq!(
            FilePlan::of_rows(touched).files["/d"].target,
            directory(4),
            "a time set by a command is no overlap"
        );
    }

    #[test]
    fn a_change_and_its_reversal_need_no_restoring() {
        let rows = [
            row("/a", file("2"), file("1")),
            row("/a", file("1"), file("2")),
        ];

        assert!(FilePlan::of_rows(rows).is_empty());
    }
}
