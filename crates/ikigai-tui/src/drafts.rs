//! Unsent input, kept in files that only its user can read.
//!
//! Each process writes its own files, named after its instance, and holds a lock while it lives.
//! The next process claims the files of instances whose lock is free, so `kill -9` loses nothing
//! and two living processes never share a draft.
#![expect(
    clippy::disallowed_methods,
    reason = "runs on the thread of the writer"
)]

mod writer;

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ikigai_core::{AgentId, Micros};
use ikigai_engine::{MailId, Submission, UserInput};
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use serde::{Deserialize, Serialize};

pub(crate) use writer::{DraftJob, DraftReport, DraftWriter};

/// Size limit of a file.
const LONGEST_BYTES: u64 = 32 * 1024 * 1024;

/// Age after which the lock file of an instance without drafts is removed.
const STALE_LOCK: Duration = Duration::from_mins(1);

const DRAFT: &str = "draft";
const PENDING: &str = "pending";
const LOCK: &str = "lock";

/// A message that is not stored yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingMessage {
    /// Receiver of the message.
    pub agent: AgentId,
    /// Id, time and text of the message.
    pub submission: Submission,
}

/// A draft of a former process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedDraft {
    /// Text of the input.
    pub text: String,
    /// Time of its last change.
    pub at: Micros,
}

/// The files of one process.
pub struct DraftFiles {
    directory: PathBuf,
    instance: String,
    /// Held while the process lives; the kernel frees it.
    lock: Option<OwnedFd>,
}

#[derive(Serialize, Deserialize)]
struct PendingJson {
    agent: String,
    id: String,
    at: i64,
    text: String,
}

impl DraftFiles {
    /// Uses a directory, which is created with the first file.
    pub fn at(directory: PathBuf) -> Self {
        let mut number = [0; 4];
        // The number distinguishes instances with the same process id.
        let _ = rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty());
        let number = u32::from_ne_bytes(number);
        Self {
            directory,
            instance: format!("{}-{number:08x}", std::process::id()),
            lock: None,
        }
    }

    /// Writes the draft of an agent; an empty one is removed.
    pub fn save_draft(&mut self, agent: AgentId, text: &str) -> io::Result<()> {
        let path = self.path(&agent.to_string(), DRAFT);
        if text.is_empty() {
            return ignore_missing(fs::remove_file(path));
        }
        self.take_lock()?;
        replace(&path, text.as_bytes(), Sync::No)
    }

    /// Writes a pending message, durably.
    pub fn save_pending(&mut self, pending: &PendingMessage) -> io::Result<()> {
        self.take_lock()?;
        let PendingMessage { agent, submission } = pending;
        let json = PendingJson {
            agent: agent.to_string(),
            id: id_name(submission.id),
            at: submission.at.0,
            text: submission.line().to_owned(),
        };
        let bytes = serde_json::to_vec(&json)?;
        replace(&self.path(&json.id, PENDING), &bytes, Sync::Yes)
    }

    /// Removes a message that is stored or back in the input.
    pub fn drop_pending(&self, id: MailId) -> io::Result<()> {
        ignore_missing(fs::remove_file(self.path(&id_name(id), PENDING)))
    }

    /// Takes over the drafts of an agent from dead processes, joined by time.
    pub fn claim_draft(&mut self, agent: AgentId) -> io::Result<Option<SavedDraft>> {
        let agent_name = agent.to_string();
        let mut found = Vec::new();
        for (path, name) in self.left_behind(DRAFT)? {
            if name != agent_name {
                continue;
            }
            if let Some(bytes) = read(&path)
                && let Ok(text) = String::from_utf8(bytes)
            {
                found.push((changed_at(&path), text, path));
            }
        }
        found.sort();
        let Some(at) = found.last().map(|(at, ..)| *at) else {
            return Ok(None);
        };
        let mut texts: Vec<&str> = found.iter().map(|(_, text, _)| text.as_str()).collect();
        texts.dedup();
        let text = texts.join("\n");
        self.save_draft(agent, &text)?;
        for (_, _, path) in &found {
            ignore_missing(fs::remove_file(path))?;
        }
        Ok(Some(SavedDraft { text, at }))
    }

    /// Takes over the pending messages of dead processes, oldest first.
    pub fn claim_pending(&mut self) -> io::Result<Vec<PendingMessage>> {
        let mut claimed = Vec::new();
        for (path, name) in self.left_behind(PENDING)? {
            let Some(pending) = read(&path).as_deref().and_then(parse_pending) else {
                continue;
            };
            self.take_lock()?;
            // Only one of two processes that start together succeeds.
            match fs::rename(&path, self.path(&name, PENDING)) {
                Ok(()) => claimed.push(pending),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        claimed.sort_by_key(|pending| pending.submission.at);
        Ok(claimed)
    }

    fn path(&self, name: &str, kind: &str) -> PathBuf {
        let instance = &self.instance;
        self.directory.join(format!("{name}.{instance}.{kind}"))
    }

    /// Creates the directory and locks this instance.
    fn take_lock(&mut self) -> io::Result<()> {
        if self.lock.is_some() {
            return Ok(());
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        fs::set_permissions(&self.directory, Permissions::from_mode(0o700))?;
        let path = self.directory.join(format!("{}.{LOCK}", self.instance));
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        self.lock = Some(file);
        Ok(())
    }

    /// Finds files of dead processes, each with its name without the instance.
    fn left_behind(&self, kind: &str) -> io::Result<Vec<(PathBuf, String)>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut left = Vec::new();
        for entry in entries.flatten() {
            let file = entry.file_name();
            let parts: Vec<_> = file.to_str().unwrap_or_default().split('.').collect();
            match parts.as_slice() {
                [name, instance, of] if *of == kind && self.is_dead(instance) => {
                    left.push((entry.path(), (*name).to_owned()));
                }
                [instance, LOCK] if self.is_dead(instance) && is_stale(&entry.path()) => {
                    ignore_missing(fs::remove_file(entry.path()))?;
                }
                _ => {}
            }
        }
        Ok(left)
    }

    fn is_dead(&self, instance: &str) -> bool {
        if instance == self.instance {
            return false;
        }
        let path = self.directory.join(format!("{instance}.{LOCK}"));
        match File::open(path) {
            Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// True if a write must survive a power loss.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sync {
    Yes,
    No,
}

/// Replaces a file atomically, readable only by its user.
fn replace(path: &Path, bytes: &[u8], sync: Sync) -> io::Result<()> {
    let next = path.with_extension("new");
    let flags =
        OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut file = File::from(rustix::fs::open(&next, flags, Mode::RUSR | Mode::WUSR)?);
    let written = file.write_all(bytes).and_then(|()| match sync {
        Sync::Yes => file.sync_all(),
        Sync::No => Ok(()),
    });
    let replaced = written.and_then(|()| fs::rename(&next, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&next);
    }
    replaced
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let length = fs::metadata(path).ok()?.len();
    (length <= LONGEST_BYTES).then(|| fs::read(path).ok())?
}

fn is_stale(path: &Path) -> bool {
    let changed = fs::metadata(path).and_then(|found| found.modified());
    let age = changed.ok().and_then(|changed| changed.elapsed().ok());
    age.is_some_and(|age| age > STALE_LOCK)
}

fn changed_at(path: &Path) -> Micros {
    let changed = fs::metadata(path).and_then(|found| found.modified());
    let since = changed.ok().and_then(|changed| {
        let since = changed.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_micros()).ok()
    });
    Micros(since.unwrap_or_default())
}

fn id_name(id: MailId) -> String {
    format!("{:032x}", id.0)
}

fn parse_pending(bytes: &[u8]) -> Option<PendingMessage> {
    let json: PendingJson = serde_json::from_slice(bytes).ok()?;
    Some(PendingMessage {
        agent: json.agent.parse().ok()?,
        submission: Submission {
            id: MailId(u128::from_str_radix(&json.id, 16).ok()?),
            at: Micros(json.at),
            input: UserInput::parse(json.text),
        },
    })
}

#[cfg(test)]
mod tests;
