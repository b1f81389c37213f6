//! Output of a call: bytes for the model, a line for the user, touched files.

mod clean;
mod collect;
mod present;
#[cfg(test)]
mod tests;

use ikigai_core::data::{SandboxRefusal, TouchedFile};

use crate::background::ProcessReport;
use crate::file_history::RecordedChanges;
use crate::images::SentImage;

pub use clean::{clean, visible};
pub use collect::Collector;
pub use present::{OutputLimit, Presented, present, present_within};

/// Most bytes stored of one output; of more, head and tail.
pub const MOST_KEPT_BYTES: usize = 16 * 1024 * 1024;

/// Most bytes of an output sent to the model; of more, head and tail.
pub const MOST_SENT_BYTES: usize = 32 * 1024;

/// Output of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Raw output, at most [`MOST_KEPT_BYTES`]; a line in the middle replaces the rest.
    pub body: Vec<u8>,
    /// True if the call succeeded.
    pub success: bool,
    /// Kind of the end.
    pub ending: CallEnding,
    /// One line for the user; further lines, such as a diff, are shown unfolded.
    pub shown: String,
    /// Files that it read or wrote, with their hashes afterwards.
    pub files: Vec<TouchedFile>,
    /// Accesses that the sandbox refused.
    pub refused: Vec<SandboxRefusal>,
    /// File that changed since the agent saw it, if the call was refused for that.
    pub stale: Option<Stale>,
    /// Facts about a background process that the call learned.
    pub process: Option<ProcessReport>,
    /// Images for the model.
    pub images: Vec<SentImage>,
    /// Changes of files that it made.
    pub changes: RecordedChanges,
}

/// End of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnding {
    /// It ran to its end.
    Ran,
    /// It was stopped.
    Stopped,
}

/// File that is not as the agent last saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// Path as in rows.
    pub path: String,
    /// Hash of the present content.
    pub hash: String,
}

impl Output {
    /// Returns the output of a call that succeeded.
    pub fn done(body: impl Into<Vec<u8>>, shown: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            success: true,
            ending: CallEnding::Ran,
            shown: shown.into(),
            files: Vec::new(),
            refused: Vec::new(),
            stale: None,
            process: None,
            images: Vec::new(),
            changes: RecordedChanges::default(),
        }
    }

    /// Returns the output of a call that failed; the model and the user see `reason`.
    pub fn failed(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        let shown = reason.lines().next().unwrap_or_default().to_owned();
        Self {
            success: false,
            ..Self::done(reason, shown)
        }
    }

    /// Returns the output of a call that was stopped without a result.
    pub fn stopped() -> Self {
        Self {
            ending: CallEnding::Stopped,
            ..Self::failed("stopped before it was done")
        }
    }

    /// Adds a remark for the model at the end.
    #[must_use]
    pub(crate) fn with_remark(mut self, remark: &str) -> Self {
        if !self.body.is_empty() && !self.body.ends_with(b"\n") {
            self.body.push(b'\n');
        }
        self.body
            .extend_from_slice(format!("[{remark}]\n").as_bytes());
        self
    }

    /// Names the background process as which a command goes on.
    pub fn go_on_as(&mut self, number: u64) {
        self.shown = format!("{} · process {number}", self.shown);
        let remark = format!(
            "[it goes on in the background as process {number}: `process` reads, awaits or stops it, \
             and you are notified when it ends]\n"
        );
        self.body.extend_from_slice(remark.as_bytes());
    }

    /// Marks an output as incomplete because the call was stopped.
    #[must_use]
    pub fn cut_short(mut self) -> Self {
        self.body
            .extend_from_slice(b"[stopped before it was done]\n");
        self.success = false;
        self.ending = CallEnding::Stopped;
        self
    }
}
