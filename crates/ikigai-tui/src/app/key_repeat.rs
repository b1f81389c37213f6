//! Detection of a held key, so that it approves no question that appears meanwhile.

use std::time::{Duration, Instant};

use ikigai_core::RowRef;

use crate::keys::Action;

/// Longest interval at which terminals repeat a held key, within their usual settings.
const INTERVAL: Duration = Duration::from_millis(60);

/// Approving keys that follow each other.
#[derive(Debug, Default)]
pub(super) struct KeyRepeat {
    /// Time of the newest approving key.
    newest: Option<Instant>,
    /// The key is held.
    is_held: bool,
    /// Answer of a key that may be the first repetition, or a quick answer.
    waiting: Option<(RowRef, Action, Instant)>,
}

impl KeyRepeat {
    /// Takes an approving key; returns true if it answers the question at once.
    ///
    /// A key soon after another one waits for the next. If that comes as soon, the key is held, and
    /// answers nothing until it is released.
    pub(super) fn press(&mut self, call: RowRef, action: Action, now: Instant) -> bool {
        let before = self.newest.replace(now);
        let is_quick =
            before.is_some_and(|before| now.saturating_duration_since(before) < INTERVAL);
        let was_waiting = self.waiting.take().is_some();
        if !is_quick {
            self.is_held = false;
            return true;
        }
        self.is_held |= was_waiting;
        if !self.is_held {
            self.waiting = Some((call, action, now + INTERVAL));
        }
        false
    }

    /// Forgets the waiting answer: another key followed.
    pub(super) fn cancel(&mut self) {
        self.waiting = None;
    }

    /// Returns the time at which the waiting answer is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.waiting.map(|(_, _, due)| due)
    }

    /// Takes the waiting answer, if it is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<(RowRef, Action)> {
        let due = self.waiting.take_if(|(_, _, due)| now >= *due);
        due.map(|(call, action, _)| (call, action))
    }
}

#[cfg(test)]
mod tests;
