//! Correction of estimates by the providers' counts.
//!
//! Both are in the rows: a `usage` row has the provider's count of its request, and that request
//! had the rows before the response. The fixed parts of an older request are unknown, but they are
//! in both counts; so the difference of two counts is compared with the rows between them.

use crate::data::{self, CommandData, CountScale, ErrorData, SummaryData, UsageData};
use crate::kind::Kind;
use crate::load::Loaded;
use crate::message::Role;
use crate::project::budget::{block_tokens, fixed_tokens};
use crate::project::{Budget, Target};
use crate::state::AgentState;
use crate::view::{Entry, View};

/// Number of a view's newest rows that are searched for a provider's counts.
pub const SCALE_ROWS: usize = 64;

/// Tokens that count as correctly estimated in every correction.
///
/// Providers add tokens to every request, which would otherwise dominate after a short one.
const TRUSTED_TOKENS: u64 = 250;

/// Smallest and largest correction, in thousandths.
const LEAST: u64 = 500;
const MOST: u64 = 3000;

/// Divisor of the estimate below which a count is ignored.
///
/// Such a count is not of the whole request: some servers leave out cached tokens.
const LEAST_SHARE: u64 = 4;

/// Thousandths of a counted token per estimated token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(u64);

impl Default for Scale {
    /// Returns the scale that changes nothing.
    fn default() -> Self {
        Self(1000)
    }
}

impl Scale {
    /// Makes a scale in thousandths, limited to the allowed range.
    pub const fn thousandths(thousandths: u64) -> Self {
        if thousandths < LEAST {
            Self(LEAST)
        } else if thousandths > MOST {
            Self(MOST)
        } else {
            Self(thousandths)
        }
    }

    /// Returns the scale from counts of the target's model in the newest [`SCALE_ROWS`] rows.
    ///
    /// `first` if there are none. The scale survives context rows, which store it.
    pub fn of(state: &AgentState, view: &View, target: &Target, first: Self) -> Self {
        let unseen = view.entries().len().saturating_sub(SCALE_ROWS);
        let is_whole = unseen == 0 && view.is_complete(state.path());
        let mut reports = Reports::new(is_whole.then(|| fixed_tokens(state, target)), first);
        for entry in view.entries().iter().skip(unseen) {
            reports.add(entry, target);
        }
        reports.scale()
    }

    /// Returns the form of a scale in a context row; none if it is the model's `first` one.
    pub fn stored(self, target: &Target, first: Self) -> Option<CountScale> {
        (self != first).then(|| CountScale {
            provider: Some(target.provider.clone()),
            model: Some(target.model.clone()),
            thousandths: Some(self.0),
        })
    }

    /// Returns the model's likely count for a number of estimated tokens.
    pub fn counted(self, estimated: u64) -> u64 {
        let counted = u128::from(estimated) * u128::from(self.0) / 1000;
        u64::try_from(counted).unwrap_or(u64::MAX)
    }

    /// Converts a budget in the provider's tokens to estimated tokens.
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

/// Estimates the tokens of the next request without reading all of it.
///
/// The newest count of a provider in the view, and estimates of the messages since. None if the
/// view has no such count, or a summary or a cut came after it.
pub fn expected_tokens(view: &View) -> Option<u64> {
    let mut since: u64 = 0;
    let mut entries = view.entries().iter().rev();
    while let Some(entry) = entries.next() {
        if let Ok(Loaded::Message(part)) = &entry.loaded {
            let tokens: u64 = part.message.blocks.iter().map(block_tokens).sum();
            since = since.saturating_add(tokens);
        }
        match entry.kind() {
            Some(Kind::Summary | Kind::Clear) => return None,
            Some(Kind::Usage) => {}
            Some(
                Kind::System
                | Kind::User
                | Kind::Assistant
                | Kind::ToolCall
                | Kind::ToolResult
                | Kind::Mark
                | Kind::Rewind
                | Kind::Fork
                | Kind::Command
                | Kind::AgentKilled
                | Kind::Interrupted
                | Kind::Error
                | Kind::Process
                | Kind::Files,
            )
            | None => continue,
        }
        let usage: UsageData = data::read(entry.row.data.as_deref());
        let newest = entries.clone().find_map(|older| match &older.loaded {
            Ok(Loaded::Message(part)) => Some(part.response),
            _ => None,
        });
        let is_of_response = usage.response.is_none() || newest == Some(usage.response);
        let counted = usage.amounts.tokens_in();
        if is_of_response && counted > 0 {
            let answer = usage.amounts.output.unwrap_or(0);
            return Some(counted.saturating_add(answer).saturating_add(since));
        }
    }
    None
}

/// Count of a request, and the estimate of its rows since some row.
#[derive(Clone, Copy)]
struct Report {
    counted: u64,
    estimated: u64,
}

/// Collector of counts and estimates over rows.
struct Reports {
    /// Estimated tokens of the rows so far.
    estimated: u64,
    /// Estimated tokens before the newest response: those of its request.
    before_response: u64,
    response: Option<u64>,
    /// True if a message was among the rows.
    has_messages: bool,
    oldest: Option<Report>,
    newest: Option<Report>,
    /// The scale until there are two reports.
    known: Scale,
}

impl Reports {
    /// Starts before the first row.
    ///
    /// `fixed` are the tokens of the fixed parts, if the conversation begins here: its count is 0.
    fn new(fixed: Option<u64>, first: Scale) -> Self {
        Self {
            estimated: fixed.unwrap_or(0),
            before_response: 0,
            response: None,
            has_messages: false,
            oldest: fixed.map(|_| Report {
                counted: 0,
                estimated: 0,
            }),
            newest: None,
            known: first,
        }
    }

    fn add(&mut self, entry: &Entry, target: &Target) {
        if changes_what_is_sent(entry) && self.has_messages {
            // Rows before and after it are not in one request; the model's scale stays.
            self.known = self.scale();
            self.oldest = None;
            self.newest = None;
        }
        if let Some(scale) = stored_scale(entry, target) {
            self.known = scale;
        }
        if let Ok(Loaded::Message(part)) = &entry.loaded {
            if part.message.role == Role::Assistant && part.response != self.response {
                self.response = part.response;
                self.before_response = self.estimated;
            }
            self.has_messages = true;
            let tokens: u64 = part.message.blocks.iter().map(block_tokens).sum();
            self.estimated = self.estimated.saturating_add(tokens);
        }
        let Some(counted) = reported_tokens(entry, target, self.response) else {
            return;
        };
        let report = Report {
            counted,
            estimated: self.before_response,
        };
        if self.oldest.is_none() {
            self.oldest = Some(report);
        } else {
            self.newest = Some(report);
        }
    }

    fn scale(&self) -> Scale {
        let (Some(oldest), Some(newest)) = (self.oldest, self.newest) else {
            return self.known;
        };
        let counted = newest.counted.saturating_sub(oldest.counted);
        let estimated = newest.estimated.saturating_sub(oldest.estimated);
        if counted < estimated / LEAST_SHARE || counted == 0 {
            return self.known;
        }
        let trusted = TRUSTED_TOKENS.saturating_mul(self.known.0);
        let counted = counted.saturating_mul(1000).saturating_add(trusted);
        Scale::thousandths(counted / estimated.saturating_add(TRUSTED_TOKENS))
    }
}

/// Returns the target model's count for this response's request, if the row has it.
///
/// The request of a summary has a number that no response has.
fn reported_tokens(entry: &Entry, target: &Target, response: Option<u64>) -> Option<u64> {
    if entry.kind() != Some(Kind::Usage) {
        return None;
    }
    let usage: UsageData = data::read(entry.row.data.as_deref());
    let is_of_target = usage.provider.as_deref() == Some(target.provider.as_str())
        && usage.model.as_deref() == Some(target.model.as_str());
    let is_of_response = usage.response.is_none() || usage.response == response;
    let counted = usage.amounts.tokens_in();
    (is_of_target && is_of_response && counted > 0).then_some(counted)
}

/// Returns the scale of the target's model that a context row has.
fn stored_scale(entry: &Entry, target: &Target) -> Option<Scale> {
    if entry.kind() != Some(Kind::Summary) {
        return None;
    }
    let scale = data::read::<SummaryData>(entry.row.data.as_deref()).scale?;
    let is_of_target = scale.provider.as_deref() == Some(target.provider.as_str())
        && scale.model.as_deref() == Some(target.model.as_str());
    let thousandths = scale.thousandths.filter(|_| is_of_target)?;
    Some(Scale::thousandths(thousandths))
}

/// Returns true if the row changes later requests other than by adding to them.
fn changes_what_is_sent(entry: &Entry) -> bool {
    let data = entry.row.data.as_deref();
    match entry.kind() {
        Some(Kind::Clear | Kind::Rewind | Kind::Summary | Kind::System | Kind::Fork) => true,
        Some(Kind::Command) => data::read::<CommandData>(data).set.is_some(),
        Some(Kind::Error) => data::read::<ErrorData>(data).omit.is_some(),
        Some(
            Kind::User
            | Kind::Assistant
            | Kind::ToolCall
            | Kind::ToolResult
            | Kind::Mark
            | Kind::AgentKilled
            | Kind::Usage
            | Kind::Interrupted
            | Kind::Process
            | Kind::Files,
        )
        | None => false,
    }
}
