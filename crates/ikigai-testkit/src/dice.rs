//! Random numbers whose seed is printed, so that a failure can be repeated.

use std::hash::{BuildHasher as _, RandomState};

use crate::tell;

/// A small random generator.
pub struct Dice(u64);

impl Dice {
    /// Takes the seed from `IKIGAI_TEST_SEED` or draws one, and prints it.
    pub fn roll() -> Self {
        let seed = std::env::var("IKIGAI_TEST_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok())
            .unwrap_or_else(|| RandomState::new().hash_one(0_u8));
        tell(&format!("IKIGAI_TEST_SEED={seed}"));
        Self(seed | 1)
    }

    /// Makes dice with the same numbers in every run.
    pub fn seeded(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// Draws a number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
