//! Ids that look random and are equal in every run.

use std::sync::atomic::{AtomicU64, Ordering};

use ikigai_core::{AgentId, ProcessId, SessionId};
use ikigai_store::{MailId, RunId};

/// Draws ids from a seed: equal seeds draw equal ids.
#[derive(Debug)]
pub struct IdSource {
    // State of a splitmix64 generator: it only ever grows by a constant, so drawing is one
    // atomic addition and needs no exclusive access.
    state: AtomicU64,
}

impl IdSource {
    /// Makes a source.
    pub const fn new(seed: u64) -> Self {
        Self {
            state: AtomicU64::new(seed),
        }
    }

    /// Draws 64 bits.
    pub fn bits(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self
            .state
            .fetch_add(STEP, Ordering::Relaxed)
            .wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws 128 bits.
    pub fn wide_bits(&self) -> u128 {
        u128::from(self.bits()) << 64 | u128::from(self.bits())
    }

    /// Draws an agent's id.
    pub fn agent(&self) -> AgentId {
        self.draw(AgentId::from_random)
    }

    /// Draws a session's id.
    pub fn session(&self) -> SessionId {
        self.draw(SessionId::from_random)
    }

    /// Draws a process's id.
    pub fn process(&self) -> ProcessId {
        self.draw(ProcessId::from_random)
    }

    /// Draws a mail's id.
    pub fn mail(&self) -> MailId {
        MailId(self.wide_bits())
    }

    /// Draws a tool run's id.
    pub fn run(&self) -> RunId {
        RunId(self.wide_bits())
    }

    fn draw<T>(&self, make: fn([u8; 16]) -> Option<T>) -> T {
        loop {
            if let Some(id) = make(self.wide_bits().to_be_bytes()) {
                return id;
            }
        }
    }
}
