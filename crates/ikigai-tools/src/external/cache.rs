//! Cache of tools' schemas, valid as long as the files stay the same.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ikigai_core::project::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::owner_file;

/// Format version; changes if older files would be misread.
const VERSION: u32 = 1;

/// Largest cache file; a larger one is ignored.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Most cached tools of all projects.
const MOST_ENTRIES: usize = 1000;

/// Time after which a tool that timed out is tried again: the machine may be less busy.
const TRIED_AGAIN_AFTER: Duration = Duration::from_mins(10);

/// Metadata that identifies a version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Outcome of asking a tool for its schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ProbeOutcome {
    /// It printed a valid schema.
    Tool {
        name: String,
        description: String,
        parameters: Value,
    },
    /// It cannot be used.
    Broken(String),
    /// It timed out or could not be started, at this second of Unix time.
    Slow { reason: String, at: u64 },
}

/// Cached outcomes by path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cache {
    version: u32,
    entries: BTreeMap<PathBuf, CachedTool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct CachedTool {
    identity: Identity,
    outcome: ProbeOutcome,
}

impl Identity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl ProbeOutcome {
    pub(super) fn of(spec: ToolSpec) -> Self {
        Self::Tool {
            name: spec.name,
            description: spec.description,
            parameters: spec.parameters,
        }
    }

    pub(super) fn slow(reason: String) -> Self {
        Self::Slow { reason, at: now() }
    }
}

impl Cache {
    /// Reads the cache; empty if the file is missing or damaged.
    pub(crate) fn load(path: &Path) -> Self {
        let is_ours = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MOST_BYTES);
        if !is_ours {
            return Self::default();
        }
        fs::read(path)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok())
            .filter(|cache| cache.version == VERSION)
            .unwrap_or_default()
    }

    /// Returns the outcome for a file that has not changed.
    pub(super) fn get(&self, path: &Path, identity: Identity) -> Option<&ProbeOutcome> {
        let entry = self.entries.get(path)?;
        let is_stale = match &entry.outcome {
            ProbeOutcome::Slow { at, .. } => {
                now().saturating_sub(*at) >= TRIED_AGAIN_AFTER.as_secs()
            }
            ProbeOutcome::Tool { .. } | ProbeOutcome::Broken(_) => false,
        };
        (entry.identity == identity && !is_stale).then_some(&entry.outcome)
    }

    /// Stores the outcome of a tool.
    pub(super) fn put(&mut self, path: PathBuf, identity: Identity, outcome: ProbeOutcome) {
        if self.entries.len() >= MOST_ENTRIES {
            self.entries.retain(|path, _| path.exists());
        }
        if self.entries.len() < MOST_ENTRIES {
            self.entries.insert(path, CachedTool { identity, outcome });
        }
    }

    /// Writes the cache atomically, readable only by its owner.
    ///
    /// It lists programs, and a process that could write it could change their descriptions.
    pub(crate) fn save(&mut self, path: &Path) -> io::Result<()> {
        self.version = VERSION;
        let bytes = serde_json::to_vec(self).map_err(io::Error::other)?;
        owner_file::write(path, &bytes)
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

#[cfg(test)]
mod tests;
