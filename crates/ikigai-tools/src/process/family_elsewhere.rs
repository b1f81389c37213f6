//! Processes of a run on systems without `/proc`: only its process group.
//!
//! A daemon that starts a new session is not found here.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// Interval between checks for the end of the group.
const PAUSE: Duration = Duration::from_millis(5);

/// Longest wait for the end of a killed group.
const MOST_WAITED: Duration = Duration::from_secs(5);

/// Mark of a run; empty on this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark;

impl Mark {
    /// Returns the empty mark.
    pub(crate) fn new(_cookie: &str) -> Self {
        Self
    }

    /// Returns the empty tag.
    pub(crate) fn tag(&self) -> Tag {
        Tag
    }
}

/// Tag of a run; empty on this system.
#[derive(Clone, Copy)]
pub(crate) struct Tag;

impl Tag {
    /// Does nothing.
    pub(crate) fn put_on(self) {}
}

/// Does nothing: there are no subreapers here.
pub(crate) fn adopt_orphans() {}

/// Returns false, because children cannot be listed here.
pub(crate) fn has_no_children() -> bool {
    false
}

/// Returns false, because processes cannot be listed here.
pub(crate) fn is_left(_mark: &Mark) -> bool {
    false
}

/// Returns true, because processes cannot be listed here.
pub(crate) fn wait_until_gone(_mark: &Mark, _until: Instant) -> bool {
    true
}

/// Ends the process group: asks it, waits for `grace`, then kills. Blocks.
pub(crate) fn end(_mark: &Mark, main: Option<i32>, grace: Duration) -> usize {
    let Some(group) = main.and_then(Pid::from_raw) else {
        return 0;
    };
    for (signal, patience) in [(Signal::TERM, grace), (Signal::KILL, MOST_WAITED)] {
        let until = Instant::now() + patience;
        let _ = kill_process_group(group, signal);
        while Instant::now() < until {
            // A group with only the dead main process looks like a living one, so the whole grace
            // may pass for nothing.
            if test_kill_process_group(group).is_err() || signal == Signal::KILL {
                break;
            }
            std::thread::sleep(PAUSE);
        }
    }
    0
}

/// Does nothing, because processes cannot be found here.
pub(crate) fn end_foreign(_mark: &Mark, _grace: Duration) -> usize {
    0
}

/// Does nothing: there are no adopted children.
pub(crate) fn reap(_mark: &Mark, _main: Option<i32>) {}
