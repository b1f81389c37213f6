//! Plans of context rows: which outputs to shorten next, and which rows a summary should replace.

use std::collections::HashMap;

use crate::data::Elide;
use crate::ids::RowRef;
use crate::message::Message;
use crate::project::Target;
use crate::project::budget::{Budget, TOKENS_PER_BLOCK, estimate_tokens, fixed_tokens};
use crate::project::context_rows::{ContextRows, own_message, row_name};
use crate::project::paired_result::PairedResult;
use crate::project::window::{Window, context_rows};
use crate::state::AgentState;
use crate::view::{Entry, View, turn_starts};

/// Lines that an elided output keeps.
const HEAD_LINES: u32 = 3;
const TAIL_LINES: u32 = 5;

/// Smallest saving of an elision, in percent of the budget, unless the request is too large.
const LEAST_SAVED_PERCENT: u64 = 5;

/// A summary replaces at least this many tokens, else it would not be shorter.
const LEAST_REPLACED_TOKENS: u64 = 100;

/// A summary that is needed replaces at least this share of the budget, in percent.
const LEAST_REPLACED_PERCENT: u64 = 2;

/// Shares of the budget, in percent, at which the conversation is shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextLimits {
    /// Old tool outputs are elided above this share…
    pub elide_above: u64,
    /// … down to this one.
    pub elide_to: u64,
    /// A summary is written above this share; none if summaries are off.
    pub summarise_above: Option<u64>,
    /// The newest tool outputs of this share together stay whole.
    pub newest_outputs: u64,
    /// The user's own messages of this share stay as typed after a summary…
    pub verbatim: u64,
    /// … but no more tokens than this.
    pub verbatim_tokens: u64,
    /// The results of one response have at most this share together…
    pub results: u64,
    /// … and each of them no more bytes than this.
    pub result_bytes: usize,
}

impl Default for ContextLimits {
    fn default() -> Self {
        Self {
            elide_above: 70,
            elide_to: 50,
            summarise_above: Some(80),
            newest_outputs: 40,
            verbatim: 20,
            verbatim_tokens: 20_000,
            results: 25,
            result_bytes: 32 * 1024,
        }
    }
}

/// Tool outputs to shorten, from the root of the path up to a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elision {
    /// Last row of the range.
    pub to: RowRef,
    /// Lines that stay of each output.
    pub lines: Elide,
    /// Number of outputs that become shorter.
    pub outputs: usize,
    /// Estimated tokens that this saves.
    pub saved: u64,
}

/// Rows that a summary should replace, from the root of the path up to a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryRange {
    /// Last row of the range.
    pub to: RowRef,
    /// Oldest of the user's own messages that stay as typed.
    pub verbatim_from: Option<RowRef>,
    /// Estimated tokens of the messages that stay.
    pub verbatim: u64,
    /// Estimated tokens that the range needs now.
    pub tokens: u64,
    /// Estimated tokens of the range without earlier summaries and messages that stay.
    pub fresh: u64,
    /// Number of turns in that part.
    pub turns: usize,
}

impl SummaryRange {
    /// Returns true if a summary can be shorter than the rows that it replaces.
    pub fn is_worth_replacing(&self) -> bool {
        self.tokens >= self.verbatim.saturating_add(LEAST_REPLACED_TOKENS)
    }

    /// Returns true if a summary or cut would free enough of the budget.
    pub fn is_worth_asking(&self, budget: &Budget) -> bool {
        self.fresh >= share(budget.cap, LEAST_REPLACED_PERCENT)
    }
}

/// Part of the conversation that a context row leaves as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The newest response and all after it.
    NewestResponse,
    /// Nothing.
    Nothing,
}

fn share(tokens: u64, percent: u64) -> u64 {
    tokens.saturating_mul(percent) / 100
}

/// Estimates the tokens of the next request, before anything is left out to fit.
pub fn used_tokens(state: &AgentState, view: &View, target: &Target) -> u64 {
    fixed_tokens(state, target) + Window::of(state, view, target).tokens()
}

/// One tool output of the window.
struct WindowOutput {
    row: RowRef,
    /// Tokens that eliding it saves.
    gain: u64,
    tokens: u64,
}

/// Chooses the oldest outputs whose elision makes the request small enough; none if the request is
/// small enough or too little would be saved. The newest outputs stay whole.
pub fn plan_elision(
    state: &AgentState,
    view: &View,
    target: &Target,
    budget: &Budget,
    limits: &ContextLimits,
) -> Option<Elision> {
    let outputs = Outputs::of(state, view, target);
    if outputs.used <= share(budget.cap, limits.elide_above) {
        return None;
    }
    let spared = newest_that_stay(&outputs.responses, share(budget.cap, limits.newest_outputs));
    let goal = share(budget.cap, limits.elide_to);
    let elision = outputs.elide(spared, goal, view)?;
    let is_enough = elision.saved >= share(budget.cap, LEAST_SAVED_PERCENT);
    (is_enough || outputs.used > budget.cap).then_some(elision)
}

/// Chooses the oldest outputs of a request above `goal` that `keep` does not spare; none if it fits.
///
/// For requests that nothing else makes smaller.
pub fn plan_last_elision(
    state: &AgentState,
    view: &View,
    target: &Target,
    goal: u64,
    keep: Keep,
) -> Option<Elision> {
    let outputs = Outputs::of(state, view, target);
    if outputs.used <= goal {
        return None;
    }
    let spared = match keep {
        Keep::NewestResponse => newest_that_stay(&outputs.responses, 0),
        Keep::Nothing => outputs.responses.len(),
    };
    outputs.elide(spared, goal, view)
}

/// Tool outputs of a request, by response.
struct Outputs {
    responses: Vec<Vec<WindowOutput>>,
    /// Tokens of the whole request.
    used: u64,
}

/// Lines that an elision keeps.
const LINES: Elide = Elide {
    head: Some(HEAD_LINES),
    tail: Some(TAIL_LINES),
};

impl Outputs {
    fn of(state: &AgentState, view: &View, target: &Target) -> Self {
        let window = Window::of(state, view, target);
        let measure = |(row, result): (RowRef, &PairedResult)| {
            let name = row_name(row, state.agent());
            let tokens = result.tokens() - TOKENS_PER_BLOCK;
            let short = result.elide(&LINES, &name);
            let short = short.map(|short| short.tokens() - TOKENS_PER_BLOCK);
            let gain = short.map_or(0, |short| tokens.saturating_sub(short));
            WindowOutput { row, gain, tokens }
        };
        let responses = window.responses();
        let responses = responses.map(|response| response.results().map(measure).collect());
        Self {
            responses: responses.collect(),
            used: fixed_tokens(state, target) + window.tokens(),
        }
    }

    /// Elides the oldest outputs among those of the first `responses` until `goal` is reached.
    fn elide(&self, responses: usize, goal: u64, view: &View) -> Option<Elision> {
        let chosen = choose(&self.responses[..responses], self.used, goal);
        let place = places(view);
        let to = chosen.last.iter().max_by_key(|row| place.get(row))?;
        Some(Elision {
            to: *to,
            lines: LINES,
            outputs: chosen.outputs,
            saved: self.used - chosen.after,
        })
    }
}

/// Returns the number of oldest responses whose outputs may be elided: the newest that fit `room`
/// stay whole, and those of the newest response in any case.
fn newest_that_stay(responses: &[Vec<WindowOutput>], mut room: u64) -> usize {
    let mut spared = responses.len();
    for (index, outputs) in responses.iter().enumerate().rev() {
        let tokens = outputs.iter().map(|output| output.tokens).sum();
        let is_newest = responses[index + 1..].iter().all(Vec::is_empty);
        if tokens > room && !is_newest {
            break;
        }
        room = room.saturating_sub(tokens);
        spared = index;
    }
    spared
}

#[derive(Default)]
struct Chosen {
    /// Rows of the newest response whose outputs are elided.
    last: Vec<RowRef>,
    outputs: usize,
    /// Tokens of the request afterwards.
    after: u64,
}

fn choose(responses: &[Vec<WindowOutput>], used: u64, goal: u64) -> Chosen {
    let mut chosen = Chosen {
        after: used,
        ..Chosen::default()
    };
    for outputs in responses {
        if chosen.after <= goal {
            break;
        }
        let gain: u64 = outputs.iter().map(|output| output.gain).sum();
        if gain > 0 {
            chosen.after = chosen.after.saturating_sub(gain);
            chosen.outputs += outputs.iter().filter(|output| output.gain > 0).count();
            chosen.last = outputs.iter().map(|output| output.row).collect();
        }
    }
    chosen
}

fn places(view: &View) -> HashMap<RowRef, usize> {
    let entries = view.entries().iter().enumerate();
    entries.map(|(index, entry)| (entry.at(), index)).collect()
}

/// Chooses the rows that a summary should replace; none if nothing new would be in it.
pub fn plan_summary(
    state: &AgentState,
    view: &View,
    target: &Target,
    budget: &Budget,
    limits: &ContextLimits,
    keep: Keep,
) -> Option<SummaryRange> {
    let window = Window::of(state, view, target);
    let end = match keep {
        Keep::NewestResponse => window.newest_response()?,
        Keep::Nothing => view.entries().len(),
    };
    let to = view.entries().get(end.checked_sub(1)?)?.at();
    let context_rows = context_rows(view);
    let sizes = || {
        window
            .entry_sizes(&context_rows)
            .filter(|size| size.index < end)
    };
    let context = ContextRows::of(view, state.path());
    let is_new = |index: &usize| *index < end && context.replacing(*index).is_none();
    let starts = turn_starts(view, state.path(), |_| false);
    let room = share(budget.cap, limits.verbatim).min(limits.verbatim_tokens);
    let (verbatim_from, verbatim) = newest_messages(view, &context, end, room);
    let tokens: u64 = sizes().map(|size| size.tokens).sum();
    let summaries = sizes().filter(|size| size.is_summary);
    let summaries: u64 = summaries.map(|size| size.tokens).sum();
    let fresh = tokens.saturating_sub(summaries).saturating_sub(verbatim);
    if fresh == 0 {
        return None;
    }
    Some(SummaryRange {
        to,
        verbatim_from,
        verbatim,
        tokens,
        fresh,
        turns: starts.iter().filter(|start| is_new(start)).count().max(1),
    })
}

/// Returns the oldest of the newest user messages that fit `room`, and their tokens.
///
/// The newest is included whatever its size. Messages that an earlier context row left out count too:
/// a summary keeps all messages from one row on.
fn newest_messages(
    view: &View,
    context: &ContextRows,
    end: usize,
    room: u64,
) -> (Option<RowRef>, u64) {
    let first = context.replacing(0);
    let older = first.map_or(&[][..], |summary| context.older_messages(view, summary));
    let rows: Vec<_> = older
        .iter()
        .chain(view.entries().iter().take(end))
        .collect();
    let (mut from, mut tokens) = (None, 0);
    for (text, row) in rows.into_iter().rev().filter_map(own_message) {
        let size = estimate_tokens(&text) + TOKENS_PER_BLOCK;
        if from.is_some() && tokens + size > room {
            break;
        }
        from = Some(row);
        tokens += size;
    }
    (from, tokens)
}

/// Returns the messages of the rows up to `to`, oldest first.
pub fn messages_up_to(
    state: &AgentState,
    view: &View,
    target: &Target,
    to: RowRef,
) -> Vec<Message> {
    let end = view
        .entries()
        .iter()
        .position(|entry: &Entry| entry.at() == to);
    let end = end.map_or(view.entries().len(), |index| index + 1);
    let window = Window::of(state, view, target);
    let sent = window.before(end).into_messages().into_iter();
    sent.map(|sent| sent.message).collect()
}
