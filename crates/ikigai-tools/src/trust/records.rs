//! Stored decisions: one file for each project, named by the hash of its path.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::TrustState;
use crate::files::sha256_hex;
use crate::owner_file;

/// Format version; a file of another version is ignored, so that everything is asked again.
const VERSION: u32 = 1;

/// Largest file of decisions.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// Most decisions about one project.
const MOST_DECISIONS: usize = 10_000;

/// Decisions about a project, by item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TrustRecords {
    version: u32,
    /// Project, for people who read the file, and against collisions.
    project: PathBuf,
    #[serde(default)]
    decisions: BTreeMap<String, TrustDecision>,
}

/// Decision about one content of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TrustDecision {
    digest: String,
    trusted: bool,
}

impl TrustRecords {
    /// Reads the decisions about a project; none if the file is missing, damaged or not private.
    pub(super) fn load(directory: Option<&Path>, project: &Path) -> Self {
        let read = directory.and_then(|directory| {
            let bytes = owner_file::read(&file_of(directory, project), MOST_BYTES).ok()?;
            serde_json::from_slice::<Self>(&bytes).ok()
        });
        let is_usable = |records: &Self| records.version == VERSION && records.project == project;
        read.filter(is_usable).unwrap_or_else(|| Self {
            version: VERSION,
            project: project.to_owned(),
            decisions: BTreeMap::new(),
        })
    }

    pub(super) fn state(&self, id: &str, digest: &str) -> TrustState {
        match self.decisions.get(id) {
            None => TrustState::Undecided,
            Some(decision) if decision.digest != digest => TrustState::Changed,
            Some(decision) if decision.trusted => TrustState::Trusted,
            Some(_) => TrustState::Refused,
        }
    }

    pub(super) fn set(&mut self, id: &str, digest: &str, trusted: bool) {
        if self.decisions.len() >= MOST_DECISIONS && !self.decisions.contains_key(id) {
            return;
        }
        let digest = digest.to_owned();
        self.decisions
            .insert(id.to_owned(), TrustDecision { digest, trusted });
    }

    pub(super) fn save(&self, directory: Option<&Path>) -> io::Result<()> {
        let directory = directory.ok_or_else(no_directory)?;
        let bytes = serde_json::to_vec_pretty(self).map_err(io::Error::other)?;
        owner_file::write(&file_of(directory, &self.project), &bytes)
    }
}

/// Removes all decisions about a project; returns false if there were none.
pub(super) fn forget(directory: Option<&Path>, project: &Path) -> io::Result<bool> {
    let directory = directory.ok_or_else(no_directory)?;
    match std::fs::remove_file(file_of(directory, project)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn no_directory() -> io::Error {
    io::Error::other("no home directory to save it")
}

fn file_of(directory: &Path, project: &Path) -> PathBuf {
    directory.join(format!(
        "{}.json",
        sha256_hex(project.as_os_str().as_bytes())
    ))
}
