//! Keys with another effect on a second press: Esc, Ctrl-C, Ctrl-Z, Enter.

use std::time::{Duration, Instant};

use super::UiContext;

/// Longest time between two presses.
pub(super) const AGAIN: Duration = Duration::from_secs(2);

/// An Esc this soon after an interrupt was meant for it.
pub(super) const LATE_ESCAPE: Duration = Duration::from_secs(1);

/// Effect of a second press, and its time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Armed {
    what: Again,
    until: Instant,
}

/// Effect of a second press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    Clears,
    Browses,
    Quits,
    Suspends,
    Sends,
    /// None: the interrupt was just requested.
    Interrupted,
}

impl UiContext {
    /// Arms a second press for some time.
    pub(super) fn arm(&mut self, what: Again, time: Duration) {
        let until = self.now + time;
        self.armed = Some(Armed { what, until });
    }

    /// Takes the effect of a second press.
    pub(super) fn take_armed(&mut self) -> Option<Again> {
        self.armed.take().map(|armed| armed.what)
    }

    /// Takes one effect of a second press; returns true if it was armed.
    pub(super) fn take_armed_as(&mut self, what: Again) -> bool {
        self.armed.take_if(|armed| armed.what == what).is_some()
    }

    /// Forgets a second press whose time is over.
    pub(super) fn disarm(&mut self) {
        self.armed = self.armed.filter(|armed| self.now < armed.until);
    }

    pub(super) fn armed_until(&self) -> Option<Instant> {
        self.armed.map(|armed| armed.until)
    }
}
