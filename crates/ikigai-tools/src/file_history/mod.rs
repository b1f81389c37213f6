//! History of files: their states before and after calls, and the way back.

mod link_groups;
mod patch;
mod paths_before;
mod reach;
#[cfg(not(target_os = "linux"))]
#[path = "no_recorder.rs"]
mod recorder;
#[cfg(target_os = "linux")]
pub(crate) mod recorder;
mod restore;
mod run_journal;
mod state;

use std::path::{Path, PathBuf};

use ikigai_core::data::{FileChange, FileVersion, MissedChange};

pub use link_groups::LinkPlan;
pub use patch::{FilePatch, PatchText};
pub(crate) use paths_before::PathsBefore;
pub use reach::RestoreReach;
pub(crate) use recorder::Recorder;
pub use restore::{
    PathStanding, RestoreStep, content_hash, in_order, present, remove_left, restore, set_times,
    standing,
};
pub(crate) use run_journal::{Journal, miss_unwatched};
pub use run_journal::{RecordingPlan, collect, remove_recording};
pub(crate) use state::{FileSighting, look};

/// Largest content of a file that is kept.
pub const MOST_CONTENT_BYTES: u64 = 16 * 1024 * 1024;

/// Reason of changes in directories that git ignores.
pub const IGNORED: &str = "ignored";

/// Content of a file that is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptContent {
    /// In memory.
    Bytes(Vec<u8>),
    /// A part of a file with this hash.
    Part {
        /// Hash of the part.
        hash: String,
        /// The file.
        file: PathBuf,
        /// First byte of the part.
        at: u64,
        /// Length of the part.
        bytes: u64,
    },
    /// A file that had this hash a moment ago.
    Present {
        /// Its hash then.
        hash: String,
        /// Its path.
        path: PathBuf,
    },
}

impl KeptContent {
    /// Reads the content; an error is the hash of one that is lost. Blocks.
    pub fn load(self) -> Result<Vec<u8>, String> {
        let (hash, content) = match self {
            Self::Bytes(bytes) => return Ok(bytes),
            Self::Part {
                hash,
                file,
                at,
                bytes,
            } => (hash, run_journal::read_part(&file, at, bytes)),
            Self::Present { hash, path } => (hash, present(&path).1),
        };
        let content = content.filter(|content| content_hash(content) == hash);
        content.ok_or(hash)
    }
}

/// Changes of files that a call made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedChanges {
    /// Changed paths.
    pub entries: Vec<FileChange>,
    /// Changes that could not be recorded.
    pub missed: Vec<MissedChange>,
    /// Contents that the entries name by their hashes.
    pub contents: Vec<KeptContent>,
}

impl RecordedChanges {
    /// Adds a change, unless nothing changed.
    pub(crate) fn add(&mut self, path: &Path, before: FileSighting, after: FileSighting) {
        let bytes = |content: Option<Vec<u8>>| content.map(KeptContent::Bytes);
        let before_content = bytes(before.content);
        if let Some(reason) = before.missed.filter(|_| before.version != after.version) {
            self.miss(path, &reason);
        }
        let after_content = bytes(after.content);
        let after = (after.version, after_content, after.missed);
        self.compare(path, (before.version, before_content), after);
    }

    /// Adds a change, unless both states are the same.
    pub(crate) fn compare(
        &mut self,
        path: &Path,
        (before, content): (FileVersion, Option<KeptContent>),
        (after, after_content, missed): (FileVersion, Option<KeptContent>, Option<String>),
    ) {
        if before == after {
            return;
        }
        let Some(name) = path.to_str() else {
            self.miss(path, "its name is not UTF-8");
            return;
        };
        if let Some(reason) = missed {
            self.miss(path, &reason);
        }
        self.contents
            .extend(content.into_iter().chain(after_content));
        self.entries.push(FileChange {
            path: Some(name.to_owned()),
            before: Some(before),
            after: Some(after),
        });
    }

    /// Adds a source of changes that could not be recorded.
    pub fn miss_what(&mut self, what: &str, why: &str) {
        self.missed.push(MissedChange {
            what: Some(what.to_owned()),
            why: Some(why.to_owned()),
            ..MissedChange::default()
        });
    }

    /// Adds a change that could not be recorded.
    pub(crate) fn miss(&mut self, path: &Path, why: &str) {
        let missed = MissedChange {
            path: Some(path.to_string_lossy().into_owned()),
            why: Some(why.to_owned()),
            ..MissedChange::default()
        };
        if !self.missed.contains(&missed) {
            self.missed.push(missed);
        }
    }

    /// Returns true if nothing changed, as far as is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.missed.is_empty()
    }
}
