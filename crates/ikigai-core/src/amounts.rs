//! Sums of tokens and money.

use crate::data::Amounts;

impl Amounts {
    /// Adds two amounts; a field that both lack stays absent.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| {
            a.or(b)
                .map(|_| a.unwrap_or(0).saturating_add(b.unwrap_or(0)))
        };
        Self {
            input: sum(self.input, other.input),
            cache_read: sum(self.cache_read, other.cache_read),
            cache_write: sum(self.cache_write, other.cache_write),
            output: sum(self.output, other.output),
            reasoning: sum(self.reasoning, other.reasoning),
            cost_nano_usd: sum(self.cost_nano_usd, other.cost_nano_usd),
        }
    }

    /// Returns all input tokens, cached ones included.
    pub fn tokens_in(&self) -> u64 {
        let parts = [self.input, self.cache_read, self.cache_write];
        parts.into_iter().flatten().fold(0, u64::saturating_add)
    }

    /// Returns all input and output tokens; output includes reasoning.
    pub fn tokens(&self) -> u64 {
        self.tokens_in().saturating_add(self.output.unwrap_or(0))
    }
}
