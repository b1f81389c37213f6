//! Agent that this user last used in a directory, stored outside of the log.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ikigai_core::AgentId;

use crate::config;
use crate::store_location::StoreLocation;

/// Largest file that is read.
const MOST_BYTES: u64 = 64 * 1024;

/// File with the agent last used in one session of one store.
pub(crate) struct LastAgent {
    file: PathBuf,
    /// Store and session; a file of another pair is ignored.
    key: String,
    /// Locked while the file is replaced.
    writing: Mutex<()>,
}

impl LastAgent {
    /// Creates it; none if this machine has no state directory.
    pub(crate) fn of(store: &StoreLocation, session: &str) -> Option<Self> {
        let directory = config::state_home()?.join("last-agents");
        Some(Self::in_directory(
            &directory,
            &format!("{store}\n{session}"),
        ))
    }

    fn in_directory(directory: &Path, key: &str) -> Self {
        Self {
            file: directory.join(format!("{:016x}", hash(key))),
            key: key.to_owned(),
            writing: Mutex::default(),
        }
    }

    /// Reads the agent; none if the file is missing or damaged.
    pub(crate) fn read(&self) -> Option<AgentId> {
        let file = fs::File::open(&self.file).ok()?;
        let mut text = String::new();
        file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
        let (agent, key) = text.split_once('\n')?;
        agent.parse().ok().filter(|_| key == self.key)
    }

    /// Writes the agent if it changed. A failure only loses this convenience.
    ///
    /// Other processes write the same file, so each call reads it.
    pub(crate) fn write(&self, agent: AgentId) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.read() == Some(agent) {
            return;
        }
        if let Err(error) = self.replace(agent) {
            tracing::debug!(error = %error, "cannot remember the agent used last");
        }
    }

    fn replace(&self, agent: AgentId) -> io::Result<()> {
        if let Some(directory) = self.file.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)?;
        }
        let new = self.file.with_extension(std::process::id().to_string());
        let mut text = String::new();
        let _ = write!(text, "{agent}\n{}", self.key);
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&new)?.write_all(text.as_bytes())?;
        fs::rename(&new, &self.file)
    }
}

/// Hashes with FNV-1a: stable across releases, and short enough for a file name.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::LastAgent;

    #[test]
    fn the_agent_written_last_is_read_for_its_own_key_only() {
        let directory = tempfile::tempdir().unwrap();
        let own = LastAgent::in_directory(directory.path(), "store\n/src");
        let other = LastAgent::in_directory(directory.path(), "store\n/other");
        let [first, second] = ["fke-1EabSM2M2Nm-7PN3lw", "xMo3t_itSv-UJOPerzagcQ"];
        let [first, second] = [first, second].map(|id| id.parse().unwrap());

        let before = own.read();
        own.write(first);
        own.write(second);

        let again = LastAgent::in_directory(directory.path(), "store\n/src");
        assert_eq!(
            (before, again.read(), other.read()),
            (None, Some(second), None)
        );
        again.write(first);
        own.write(second);
        assert_eq!(again.read(), Some(second), "written by another process");
        std::fs::copy(&own.file, &other.file).unwrap();
        assert_eq!(other.read(), None, "a file of another key");
        std::fs::write(&own.file, "damaged").unwrap();
        assert_eq!(own.read(), None);
    }
}
