//! Stub for systems on which commands cannot be watched.

use std::io;

use super::RecordingPlan;

/// Recorder; has no values.
#[derive(Debug)]
pub(crate) enum Recorder {}

impl Recorder {
    /// Fails: nothing can be recorded.
    pub(crate) fn begin(_plan: &RecordingPlan) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
