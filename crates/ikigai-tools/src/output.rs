//! What a call leaves: bytes for the model, a line for people, files that it touched.

mod clean;
mod collect;
mod present;
#[cfg(test)]
mod tests;

use ikigai_core::data::TouchedFile;

pub use clean::{clean, visible};
pub use collect::Collector;
pub use present::{Presented, present, present_within};

/// How much of one output is kept; of more, the head and the tail.
pub const MOST_KEPT_BYTES: usize = 16 * 1024 * 1024;

/// How much of an output the model is given; of more, the head and the tail.
pub const MOST_SENT_BYTES: usize = 32 * 1024;

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Everything that came, as it came; at most [`MOST_KEPT_BYTES`], with a line in the middle
    /// that says what was left out if there was more.
    pub body: Vec<u8>,
    /// Whether it did what was asked.
    pub success: bool,
    /// How it ended.
    pub ending: Ending,
    /// One line for a person; further lines are shown when it is unfolded, such as a diff.
    pub shown: String,
    /// Files that it read or wrote, with the hashes of their bytes afterwards.
    pub files: Vec<TouchedFile>,
    /// The file that somebody else changed, if that is why it was refused.
    pub stale: Option<Stale>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself.
    Ran,
    /// Because it was told to.
    Stopped,
}

/// A file that is not as the agent last saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// Its path as rows name it.
    pub path: String,
    /// The hash of its bytes.
    pub hash: String,
}

impl Output {
    /// A call that did what was asked.
    pub fn done(body: impl Into<Vec<u8>>, shown: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            success: true,
            ending: Ending::Ran,
            shown: shown.into(),
            files: Vec::new(),
            stale: None,
        }
    }

    /// A call that could not; `reason` is for the model and for people.
    pub fn failed(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        let shown = reason.lines().next().unwrap_or_default().to_owned();
        Self {
            success: false,
            ..Self::done(reason, shown)
        }
    }

    /// A call that was stopped before it had anything.
    pub fn stopped() -> Self {
        Self {
            ending: Ending::Stopped,
            ..Self::failed("stopped before it was done")
        }
    }

    /// The same, stopped before it was all.
    #[must_use]
    pub fn cut_short(mut self) -> Self {
        self.body
            .extend_from_slice(b"[stopped before it was done]\n");
        self.success = false;
        self.ending = Ending::Stopped;
        self
    }
}
