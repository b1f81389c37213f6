//! Time of a repeated read, which many events ask for.

use std::time::{Duration, Instant};

/// Minimum interval between two reads.
const PAUSE: Duration = Duration::from_millis(250);

/// Time of the next read of something.
#[derive(Debug, Default)]
pub(super) struct ReadTimer {
    due: Option<Instant>,
    begun: Option<Instant>,
}

impl ReadTimer {
    /// Asks for a read, at the earliest after the pause.
    pub(super) fn want(&mut self) {
        let earliest = self.begun.map(|begun| begun + PAUSE);
        self.due = Some(earliest.unwrap_or_else(Instant::now));
    }

    /// Asks for a read at once, unless one of these is due.
    pub(super) fn want_now_unless(&mut self, other: &Self) {
        if other.due.is_none() {
            self.due.get_or_insert_with(Instant::now);
        }
    }

    /// Notes that a read begins, and returns true.
    pub(super) fn begin(&mut self) -> bool {
        self.due = None;
        self.begun = Some(Instant::now());
        true
    }

    /// Returns the time of the next read, if one is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns the time at which the last read began.
    pub(super) fn begun(&self) -> Option<Instant> {
        self.begun
    }

    /// Reports whether a read is due by now.
    pub(super) fn is_due(&self) -> bool {
        self.due.is_some_and(|due| Instant::now() >= due)
    }
}
