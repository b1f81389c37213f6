//! Fault injection for tests, because a real disk does not fail on demand.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

/// Fault of the next commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum InjectedFault {
    /// Nothing.
    None = 0,
    /// The commit fails and is not stored.
    Lost = 1,
    /// The commit fails although it is stored.
    Stored = 2,
    /// The commit fails although it is stored, and cannot be read back.
    Unreadable = 3,
}

/// Faults to inject.
#[derive(Debug, Default)]
pub struct Faults {
    commit: AtomicU8,
    page_limit: AtomicU32,
    slow_search: AtomicBool,
    lost_look: AtomicBool,
}

impl Faults {
    /// Injects a fault: the next commit fails.
    pub fn fail_commit(&self, fault: InjectedFault) {
        self.commit.store(fault as u8, Ordering::SeqCst);
    }

    /// Injects a fault: the next commit-outcome lookup loses its reply.
    pub fn lose_look(&self) {
        self.lost_look.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_look_lost(&self) -> bool {
        self.lost_look.swap(false, Ordering::SeqCst)
    }

    /// Injects a fault: the database is full at this number of pages; 0 is no limit.
    pub fn limit_pages(&self, pages: u32) {
        self.page_limit.store(pages, Ordering::SeqCst);
    }

    /// Injects a fault: prefix searches time out.
    pub fn slow_search(&self) {
        self.slow_search.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_search_slow(&self) -> bool {
        self.slow_search.load(Ordering::SeqCst)
    }

    pub(crate) fn take_commit(&self) -> InjectedFault {
        match self.commit.swap(0, Ordering::SeqCst) {
            1 => InjectedFault::Lost,
            2 => InjectedFault::Stored,
            3 => InjectedFault::Unreadable,
            _ => InjectedFault::None,
        }
    }

    pub(crate) fn page_limit(&self) -> u32 {
        self.page_limit.load(Ordering::SeqCst)
    }
}
