//! Correcting estimates: how many tokens a provider counts where we estimate a thousand.

use crate::data::{self, Amounts, UsageData};
use crate::kind::Kind;
use crate::project::{Budget, Target};
use crate::view::{Entry, View};

/// How many of a view's newest rows are looked at for what a provider counted. Every answer has a
/// row for it, so that only a change of model, or a great many calls at once, leads further back.
pub const SCALE_ROWS: usize = 64;

/// So many tokens count as estimated rightly, whatever was reported: what a provider adds to every
/// request would else rule the correction after a short one.
const TRUSTED_TOKENS: u64 = 1000;

/// Estimates are never corrected beyond these, in thousandths.
const LEAST: u64 = 500;
const MOST: u64 = 3000;

/// A report of less than a quarter of the estimate is none of the whole request: some servers
/// leave out what they had in their cache.
const LEAST_SHARE: u64 = 4;

/// Thousandths of a token that a provider counts for one that is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(u64);

impl Default for Scale {
    /// Estimates as they are.
    fn default() -> Self {
        Self(1000)
    }
}

impl Scale {
    /// A scale in thousandths, within what is believed.
    pub const fn thousandths(thousandths: u64) -> Self {
        if thousandths < LEAST {
            Self(LEAST)
        } else if thousandths > MOST {
            Self(MOST)
        } else {
            Self(thousandths)
        }
    }

    /// The scale after what the target's model reported last, as the newest [`SCALE_ROWS`] rows of
    /// the view tell; `first` if they tell nothing.
    pub fn of(view: &View, target: &Target, first: Self) -> Self {
        let rows = view.entries().iter().rev().take(SCALE_ROWS);
        let mut reports = rows.filter_map(|entry| Self::reported(entry, target, first));
        reports.next().unwrap_or(first)
    }

    fn reported(entry: &Entry, target: &Target, first: Self) -> Option<Self> {
        if entry.kind() != Some(Kind::Usage) {
            return None;
        }
        let usage: UsageData = data::read(entry.row.data.as_deref());
        let is_of_target = usage.provider.as_deref() == Some(target.provider.as_str())
            && usage.model.as_deref() == Some(target.model.as_str());
        let estimate = usage.estimate.filter(|estimate| *estimate > 0)?;
        let counted = sent_tokens(&usage.amounts);
        if !is_of_target || counted < estimate / LEAST_SHARE || counted == 0 {
            return None;
        }
        let trusted = TRUSTED_TOKENS.saturating_mul(first.0);
        let counted = counted.saturating_mul(1000).saturating_add(trusted);
        Some(Self::thousandths(
            counted / estimate.saturating_add(TRUSTED_TOKENS),
        ))
    }

    /// The budget in estimated tokens, given one in the provider's.
    pub fn apply_to(self, budget: Budget) -> Budget {
        let estimated = |tokens: u64| {
            let scaled = u128::from(tokens) * 1000 / u128::from(self.0);
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        Budget {
            window: estimated(budget.window),
            cap: estimated(budget.cap),
        }
    }
}

/// All that was read for an answer, afresh or from a cache.
fn sent_tokens(amounts: &Amounts) -> u64 {
    let parts = [amounts.input, amounts.cache_read, amounts.cache_write];
    let parts = parts.into_iter().flatten();
    parts.fold(0, u64::saturating_add)
}
