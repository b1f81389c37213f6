//! `[context]`: when a conversation is shortened, and what stays of it.

use anyhow::{Result, bail};
use ikigai_core::project::ContextLimits;
use serde::Deserialize;

/// Shortening down to less than this below its threshold would save too little each time.
const LEAST_GAP: u64 = 5;

/// `[context]`. Shares are percents of the budget.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ContextSection {
    /// Old tool outputs are shortened above this share…
    shorten_at: Option<Bounded<1, 95>>,
    /// … down to this one.
    shorten_to: Option<Bounded<1, 95>>,
    /// The newest tool outputs of this share together stay whole.
    keep_outputs: Option<Bounded<0, 95>>,
    /// The user's own messages of this share stay word for word after a summary…
    keep_messages: Option<Bounded<0, 50>>,
    /// … but no more tokens than this.
    keep_messages_tokens: Option<Bounded<0, 10_000_000>>,
    /// The results of one answer have this share together…
    result_percent: Option<Bounded<1, 50>>,
    /// … and each of them at most this many KB.
    result_kb: Option<Bounded<1, 1024>>,
}

/// A number between two bounds, both included.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(try_from = "u64")]
struct Bounded<const LEAST: u64, const MOST: u64>(u64);

impl<const LEAST: u64, const MOST: u64> TryFrom<u64> for Bounded<LEAST, MOST> {
    type Error = String;

    fn try_from(number: u64) -> Result<Self, String> {
        if (LEAST..=MOST).contains(&number) {
            Ok(Self(number))
        } else {
            Err(format!("expected {LEAST} to {MOST}"))
        }
    }
}

/// A share with the key that sets it, for messages.
#[derive(Clone, Copy)]
struct Share {
    key: &'static str,
    percent: u64,
}

impl ContextSection {
    /// Takes the keys of another section over those of this one.
    pub(super) fn replaced_by(self, other: Self) -> Self {
        Self {
            shorten_at: other.shorten_at.or(self.shorten_at),
            shorten_to: other.shorten_to.or(self.shorten_to),
            keep_outputs: other.keep_outputs.or(self.keep_outputs),
            keep_messages: other.keep_messages.or(self.keep_messages),
            keep_messages_tokens: other.keep_messages_tokens.or(self.keep_messages_tokens),
            result_percent: other.result_percent.or(self.result_percent),
            result_kb: other.result_kb.or(self.result_kb),
        }
    }

    /// The limits of the engine. `compact_at` is the share at which summaries begin; 0: never.
    ///
    /// A default gives way to a lower share that is set; two shares that are set must be in order.
    pub(super) fn limits(&self, compact_at: Option<u64>) -> Result<ContextLimits> {
        let usual = ContextLimits::default();
        let summarise_above = match compact_at {
            Some(0) => None,
            percent => percent.or(usual.summarise_above),
        };
        let compact_at = Share {
            key: "compact_at",
            percent: summarise_above.unwrap_or(100),
        };
        let shorten_at = Share {
            key: "context.shorten_at",
            percent: match self.shorten_at {
                Some(set) => set.0,
                None => usual.elide_above.min(compact_at.percent),
            },
        };
        let shorten_to = Share {
            key: "context.shorten_to",
            percent: match self.shorten_to {
                Some(set) => set.0,
                None => scaled(usual.elide_to, usual.elide_above, shorten_at),
            },
        };
        let keep_outputs = Share {
            key: "context.keep_outputs",
            percent: match self.keep_outputs {
                Some(set) => set.0,
                None => scaled(usual.newest_outputs, usual.elide_to, shorten_to),
            },
        };
        if self.shorten_at.is_some() {
            shorten_at.check_below(compact_at, 0)?;
        }
        if self.shorten_to.is_some() {
            shorten_to.check_below(shorten_at, LEAST_GAP)?;
        }
        if self.keep_outputs.is_some() {
            keep_outputs.check_below(shorten_to, 0)?;
        }
        Ok(ContextLimits {
            elide_above: shorten_at.percent,
            elide_to: shorten_to.percent,
            summarise_above,
            newest_outputs: keep_outputs.percent,
            verbatim: self.keep_messages.map_or(usual.verbatim, |set| set.0),
            verbatim_tokens: self
                .keep_messages_tokens
                .map_or(usual.verbatim_tokens, |set| set.0),
            results: self.result_percent.map_or(usual.results, |set| set.0),
            result_bytes: self.result_kb.map_or(usual.result_bytes, |set| {
                usize::try_from(set.0 * 1024).unwrap_or(usize::MAX)
            }),
        })
    }
}

impl Share {
    /// Fails if this share is less than `gap` percent below another one.
    fn check_below(self, upper: Self, gap: u64) -> Result<()> {
        if self.percent.saturating_add(gap) <= upper.percent {
            return Ok(());
        }
        let rule = if gap > 0 {
            format!("must be at least {gap} below")
        } else {
            "must not be above".to_owned()
        };
        bail!(
            "`{}` is {} and {rule} `{}`, which is {}\nhint: change one of them in the configuration",
            self.key,
            self.percent,
            upper.key,
            upper.percent
        )
    }
}

/// A default share, lowered in proportion if the share above it is lower than its own default.
fn scaled(usual: u64, usual_upper: u64, upper: Share) -> u64 {
    usual.min(upper.percent.saturating_mul(usual) / usual_upper.max(1))
}

/// Shares whose defaults depend on other keys: key and percent in force.
pub(crate) fn dependent_shares(limits: &ContextLimits) -> [(&'static str, u64); 3] {
    [
        ("context.shorten_at", limits.elide_above),
        ("context.shorten_to", limits.elide_to),
        ("context.keep_outputs", limits.newest_outputs),
    ]
}

#[cfg(test)]
mod tests;
