//! Changes of files that a call made: each path before and after it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::BlobRef;
use crate::ids::RowRef;
use crate::json::{data_type, words};

words! {
    /// Type of a file.
    FileKind {
        /// Regular file.
        File,
        /// Directory.
        Directory,
        /// Symbolic link.
        Link,
        /// Named pipe.
        Fifo,
    }
}
data_type! {
    /// A path at one moment: a file with its metadata, or nothing.
    FileVersion {
        /// True if there is nothing.
        absent: bool,
        /// Hash of the content of a regular file, which is a blob.
        hash: String,
        /// Type of the file; a regular one if not given.
        kind: FileKind,
        /// Permission bits.
        mode: u32,
        /// Time of the last modification, in nanoseconds since 1970.
        mtime_ns: i64,
        /// Target of a symbolic link.
        link: String,
        /// Extended attributes: values in hexadecimal.
        xattrs: BTreeMap<String, String>,
        /// Another path of the same file.
        same_as: String,
    }
}
data_type! {
    /// A path before and after a call.
    FileChange {
        /// Absolute path.
        path: String,
        /// State before the call.
        before: FileVersion,
        /// State after the call.
        after: FileVersion,
    }
}
data_type! {
    /// Change that could not be recorded.
    MissedChange {
        /// Its path, if one is known.
        path: String,
        /// Its source, if no path is known.
        what: String,
        /// Reason.
        why: String,
    }
}
data_type! {
    /// Data of `files`.
    FilesData {
        /// The call, or the rewind, that made the changes.
        call: RowRef,
        /// Changed paths.
        entries: Vec<FileChange>,
        /// Blob with the entries as JSON, if there are many.
        blob: BlobRef,
        /// Changes that could not be recorded.
        missed: Vec<MissedChange>,
    }
}

impl FileVersion {
    /// Returns the state of a path without a file.
    pub fn absent() -> Self {
        Self {
            absent: Some(true),
            ..Self::default()
        }
    }

    /// Returns true if there is no file.
    pub fn is_absent(&self) -> bool {
        self.absent == Some(true)
    }

    /// Returns the type of the file; none if there is none.
    pub fn kind(&self) -> Option<FileKind> {
        (!self.is_absent()).then(|| self.kind.unwrap_or(FileKind::File))
    }

    /// Returns true if both are the same but for times and other names of the file.
    pub fn is_like(&self, other: &Self) -> bool {
        let same_attributes =
            self.xattrs.clone().unwrap_or_default() == other.xattrs.clone().unwrap_or_default();
        self.kind() == other.kind()
            && self.hash == other.hash
            && self.mode == other.mode
            && self.link == other.link
            && same_attributes
    }
}
