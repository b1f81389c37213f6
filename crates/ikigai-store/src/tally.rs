//! Tally of a log: two logs with the same tally are equal.

use ikigai_core::counts::counted;
use std::collections::BTreeMap;
use std::fmt;

use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use crate::error::StoreError;
use crate::log::ReadLog;

/// Capacity of the channel of lines.
const LINES: usize = 64;

/// Counts of dumped lines by their kind, and a digest of all of them.
#[derive(Clone, Default)]
pub struct LogTally {
    counts: BTreeMap<String, u64>,
    digest: Sha256,
}

impl LogTally {
    /// Counts everything in a store; `heard` receives the number of rows so far.
    pub async fn of(
        store: &dyn ReadLog,
        mut progress: impl FnMut(u64),
    ) -> Result<Self, StoreError> {
        let (lines, mut receiver) = mpsc::channel::<String>(LINES);
        let count = async {
            let mut tally = Self::default();
            while let Some(line) = receiver.recv().await {
                tally.add(&line);
                progress(tally.count("row"));
            }
            tally
        };
        let (dumped, tally) = tokio::join!(store.dump(None, lines), count);
        dumped.map(|()| tally)
    }

    /// Counts one line.
    pub fn add(&mut self, line: &str) {
        self.digest.update(line);
        // The first and the last line hold nothing.
        let name = line
            .strip_prefix("{\"")
            .and_then(|it| it.split_once("\":{"));
        if let Some((name, _)) = name.filter(|(name, _)| *name != "end") {
            *self.counts.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// Returns the number of lines of one kind.
    pub fn count(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// Returns true if the log is empty.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the digest over every line, in hexadecimal.
    pub fn digest(&self) -> String {
        use fmt::Write as _;
        let mut text = String::new();
        for byte in self.digest.clone().finalize() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

impl PartialEq for LogTally {
    fn eq(&self, other: &Self) -> bool {
        self.counts == other.counts && self.digest() == other.digest()
    }
}

impl fmt::Debug for LogTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogTally({self}; {})", self.digest())
    }
}

impl fmt::Display for LogTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counts = self.counts.iter().map(|(name, count)| {
            let noun = match name.as_str() {
                "blob" => "blob part",
                "draft" => "draft part",
                "mail" => "message",
                "run" => "tool run",
                "agent" => "agent",
                "session" => "session",
                _ => "event",
            };
            counted(*count, noun)
        });
        f.write_str(&counts.next().unwrap_or_else(|| "nothing".to_owned()))?;
        counts.try_for_each(|count| write!(f, ", {count}"))
    }
}
