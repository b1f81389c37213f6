//! Failures that tests bring about, because a real disk does not fail on demand.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

/// What goes wrong with the next commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CommitFault {
    /// Nothing.
    None = 0,
    /// It fails and was not stored.
    Lost = 1,
    /// It fails although it was stored.
    Stored = 2,
    /// It fails although it was stored, and cannot be read back.
    Unreadable = 3,
}

/// The failures asked for.
#[derive(Debug, Default)]
pub struct Faults {
    commit: AtomicU8,
    page_limit: AtomicU32,
    slow_search: AtomicBool,
    lost_look: AtomicBool,
}

impl Faults {
    /// Lets the next commit fail.
    pub fn fail_commit(&self, fault: CommitFault) {
        self.commit.store(fault as u8, Ordering::SeqCst);
    }

    /// Lets the answer be lost to whoever looks next what became of a commit.
    pub fn lose_look(&self) {
        self.lost_look.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_look_lost(&self) -> bool {
        self.lost_look.swap(false, Ordering::SeqCst)
    }

    /// Lets the database have at most so many pages; 0 is no limit.
    pub fn limit_pages(&self, pages: u32) {
        self.page_limit.store(pages, Ordering::SeqCst);
    }

    /// Lets searches for words that may go on take too long.
    pub fn slow_search(&self) {
        self.slow_search.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_search_slow(&self) -> bool {
        self.slow_search.load(Ordering::SeqCst)
    }

    pub(crate) fn take_commit(&self) -> CommitFault {
        match self.commit.swap(0, Ordering::SeqCst) {
            1 => CommitFault::Lost,
            2 => CommitFault::Stored,
            3 => CommitFault::Unreadable,
            _ => CommitFault::None,
        }
    }

    pub(crate) fn page_limit(&self) -> u32 {
        self.page_limit.load(Ordering::SeqCst)
    }
}
