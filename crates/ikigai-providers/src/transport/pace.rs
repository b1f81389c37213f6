//! How often a stream is looked at. Each look costs a wake-up and a way through all layers, and
//! nobody sees more than some frames a second: when little comes often, it is left to gather.

use std::time::Duration;

/// Less than this is little.
const LITTLE_BYTES: usize = 4 << 10;

/// What came so soon after somebody began to wait came at once.
const AT_ONCE: Duration = Duration::from_millis(2);

/// After so many in a row it is often. A short answer is never held up.
const OFTEN: u32 = 32;

/// How long it is left to gather: less than a frame.
const GATHERING: Duration = Duration::from_millis(8);

/// How quickly an answer comes.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// How often in a row little came at once.
    quick: u32,
}

impl Pace {
    /// Tells that so many bytes came after such a wait.
    pub(super) fn came(&mut self, bytes: usize, after: Duration) {
        self.quick = if bytes < LITTLE_BYTES && after < AT_ONCE {
            self.quick.saturating_add(1)
        } else {
            0
        };
    }

    /// How long to leave it before the next look.
    pub(super) fn pause(&self) -> Option<Duration> {
        (self.quick >= OFTEN).then_some(GATHERING)
    }
}
