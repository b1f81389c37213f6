//! `[context]`: thresholds for shortening a conversation.

use anyhow::{Result, bail};
use ikigai_core::project::ContextLimits;
use serde::Deserialize;

/// Least gap between a threshold and its target; a smaller one would save too little each time.
const LEAST_GAP: u64 = 5;

/// `[context]`. Shares are percentages of the budget.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ContextSection {
    /// Share above which old tool outputs are shortened…
    shorten_at: Option<Bounded<1, 95>>,
    /// … and target share.
    shorten_to: Option<Bounded<1, 95>>,
    /// Share of the newest tool outputs that stay whole.
    keep_outputs: Option<Bounded<0, 95>>,
    /// Share of the user's messages that stay verbatim after a summary…
    keep_messages: Option<Bounded<0, 50>>,
    /// … and their limit in tokens.
    keep_messages_tokens: Option<Bounded<0, 10_000_000>>,
    /// Share of all results of one response…
    result_percent: Option<Bounded<1, 50>>,
    /// … and limit of each in KB.
    result_kb: Option<Bounded<1, 1024>>,
}

/// Number between two bounds, both included.
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

/// Share with its key, for error messages.
#[derive(Clone, Copy)]
struct NamedShare {
    key: &'static str,
    percent: u64,
}

impl ContextSection {
    /// Overrides the keys of this section by another section.
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

    /// Returns the limits for the engine. Summaries begin at `compact_at` percent; 0: never.
    ///
    /// A default share gives way to a lower one that is set; two shares that are set must be in
    /// order.
    pub(super) fn limits(&self, compact_at: Option<u64>) -> Result<ContextLimits> {
        let usual = ContextLimits::default();
        let summarise_above = match compact_at {
            Some(0) => None,
            percent => percent.or(usual.summarise_above),
        };
        let compact_at = NamedShare {
            key: "compact_at",
            percent: summarise_above.unwrap_or(100),
        };
        let shorten_at = NamedShare {
            key: "context.shorten_at",
            percent: match self.shorten_at {
                Some(set) => set.0,
                None => usual.elide_above.min(compact_at.percent),
            },
        };
        let shorten_to = NamedShare {
            key: "context.shorten_to",
            percent: match self.shorten_to {
                Some(set) => set.0,
                None => scale(usual.elide_to, usual.elide_above, shorten_at),
            },
        };
        let keep_outputs = NamedShare {
            key: "context.keep_outputs",
            percent: match self.keep_outputs {
                Some(set) => set.0,
                None => scale(usual.newest_outputs, usual.elide_to, shorten_to),
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

impl NamedShare {
    /// Fails if this share is less than `gap` percent below another one.
    fn check_below(self, upper: Self, gap: u64) -> Result<()> {
        if self.percent.saturating_add(gap) <= upper.percent {
            return Ok(());
        }
        let rule = if gap > 0 {
            format!("must be at least {gap} below")
        } else {
            "must not exceed".to_owned()
        };
        bail!(
            "`{}` ({}) {rule} `{}` ({})\nhint: change one of them in the config",
            self.key,
            self.percent,
            upper.key,
            upper.percent
        )
    }
}

/// Scales a default share down if the share above it is below its default.
fn scale(usual: u64, usual_upper: u64, upper: NamedShare) -> u64 {
    usual.min(upper.percent.saturating_mul(usual) / usual_upper.max(1))
}

/// Returns shares with defaults that depend on other keys: key and percent in force.
pub(crate) fn dependent_shares(limits: &ContextLimits) -> [(&'static str, u64); 3] {
    [
        ("context.shorten_at", limits.elide_above),
        ("context.shorten_to", limits.elide_to),
        ("context.keep_outputs", limits.newest_outputs),
    ]
}

#[cfg(test)]
mod tests;
