//! A clock that a test moves by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ikigai_core::Micros;

/// Clock with the time that a test has set. Clones share the time.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// Makes a clock with the time `start`.
    pub fn new(start: Micros) -> Self {
        Self(Arc::new(AtomicI64::new(start.0)))
    }

    /// Returns the current time.
    pub fn now(&self) -> Micros {
        Micros(self.0.load(Ordering::SeqCst))
    }

    /// Moves it forwards.
    pub fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).expect("a test lasts less than 292,000 years");
        self.0.fetch_add(micros, Ordering::SeqCst);
    }

    /// Moves it to any time, earlier ones included.
    pub fn set(&self, to: Micros) {
        self.0.store(to.0, Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    /// Starts at 14 November 2023, 22:13:20 UTC, with as many digits as now.
    fn default() -> Self {
        Self::new(Micros(1_700_000_000_000_000))
    }
}
