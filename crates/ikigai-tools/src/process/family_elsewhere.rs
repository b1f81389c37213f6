//! Everything that a run started, where there is no `/proc`: its process group, and no more.
//!
//! A daemon that begins a session of its own is not found here.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// How often it is looked whether the group is gone.
const PAUSE: Duration = Duration::from_millis(5);

/// How long the ending of a killed group is waited for.
const MOST_WAITED: Duration = Duration::from_secs(5);

/// By what the processes of one run would be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark;

impl Mark {
    /// There is nothing to mark.
    pub(crate) fn new(_cookie: &str) -> Self {
        Self
    }

    /// There is no tag.
    pub(crate) fn tag(&self) -> Tag {
        Tag
    }
}

/// A tag that nobody has.
#[derive(Clone, Copy)]
pub(crate) struct Tag;

impl Tag {
    /// Does nothing.
    pub(crate) fn put_on(self) {}
}

/// Nobody else can be the parent of orphans here.
pub(crate) fn adopt_orphans() {}

/// Not known here.
pub(crate) fn has_no_children() -> bool {
    false
}

/// Not known here.
pub(crate) fn is_left(_mark: &Mark) -> bool {
    false
}

/// Not known here.
pub(crate) fn wait_until_gone(_mark: &Mark, _until: Instant) -> bool {
    true
}

/// Ends the process group: asks it to, waits for `grace`, then kills. Blocks.
pub(crate) fn end(_mark: &Mark, main: Option<i32>, grace: Duration) -> usize {
    let Some(group) = main.and_then(Pid::from_raw) else {
        return 0;
    };
    for (signal, patience) in [(Signal::TERM, grace), (Signal::KILL, MOST_WAITED)] {
        let until = Instant::now() + patience;
        let _ = kill_process_group(group, signal);
        while Instant::now() < until {
            // A group of which only the dead main process is left cannot be told from a living
            // one, so at worst the grace is spent in vain.
            if test_kill_process_group(group).is_err() || signal == Signal::KILL {
                break;
            }
            std::thread::sleep(PAUSE);
        }
    }
    0
}

/// Not known here.
pub(crate) fn end_foreign(_mark: &Mark, _grace: Duration) -> usize {
    0
}

/// There are none.
pub(crate) fn reap(_mark: &Mark, _main: Option<i32>) {}
