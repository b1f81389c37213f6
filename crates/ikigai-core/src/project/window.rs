//! The window: which turns are sent, and what stands in the place of those that are not.

use std::collections::{HashMap, HashSet};

use crate::data::{self, ErrorData, SummaryData};
use crate::ids::RowRef;
use crate::kind::Kind;
use crate::message::{Message, Role};
use crate::path::Path;
use crate::project::Target;
use crate::project::budget::{Budget, TOKENS_PER_BLOCK, estimate_tokens, fixed_tokens};
use crate::project::filling::TurnSize;
use crate::project::pairing::{CallIds, Exchange, Pairing, Response, Sent};
use crate::state::AgentState;
use crate::summary::cut_middle;
use crate::turns::turn_starts;
use crate::view::View;

/// A cut goes down to this share of the budget, so that the next one is some turns away.
const CUT_TO_PERCENT: u64 = 60;

/// No tool output is cut below this, so that something can still be read.
const SHORTEST_OUTPUT_BYTES: usize = 512;

/// The conversation as it can be sent, turn by turn.
pub struct Window {
    turns: Vec<WindowTurn>,
}

struct WindowTurn {
    /// Index of the entry it begins with.
    start: usize,
    /// Whether a summary covers it.
    covered: bool,
    exchanges: Vec<Exchange>,
    tokens: u64,
}

impl Window {
    /// Reads the window off a view: rows in the range of a summary are replaced by its text.
    ///
    /// The text stands where the range ends and is a turn of its own: so a view that begins inside
    /// the range yields the same from there on.
    pub fn of(state: &AgentState, view: &View, target: &Target) -> Self {
        let covers = Covers::of(view, state.path());
        let mut pairing = Pairing::new(state, view, target, omitted_rows(view));
        let ends = covers.ends();
        for (index, entry) in view.entries().iter().enumerate() {
            match covers.by.get(&index) {
                None => pairing.add(index, entry),
                Some(summary) => {
                    let ends_here = ends.get(summary) == Some(&index);
                    let text = ends_here.then(|| summary_text(view, *summary));
                    let row = view.entries()[*summary].at();
                    pairing.add_covered(index, row, text.flatten());
                }
            }
        }
        let covered = |index: usize| covers.by.get(&index);
        let changes = |at: usize| at > 0 && covered(at) != covered(at - 1);
        let is_after_range = |at: usize| changes(at) && covered(at - 1).is_some();
        let mut starts = turn_starts(view, state.path(), is_after_range);
        starts.extend((0..view.entries().len()).filter(|at| changes(*at)));
        // What precedes the first turn goes with the first row, unless the view begins somewhere
        // in the middle: then it is part of a turn that is not whole.
        if view.is_complete(state.path()) || covers.by.contains_key(&0) {
            starts.push(0);
        }
        starts.sort_unstable();
        starts.dedup();
        Self::split(&starts, pairing.finish(), |at| covered(at).is_some())
    }

    fn split(
        starts: &[usize],
        exchanges: Vec<(usize, Exchange)>,
        is_covered: impl Fn(usize) -> bool,
    ) -> Self {
        let mut turns: Vec<_> = starts
            .iter()
            .map(|start| WindowTurn {
                start: *start,
                covered: is_covered(*start),
                exchanges: Vec::new(),
                tokens: 0,
            })
            .collect();
        for (index, exchange) in exchanges {
            let turn = starts
                .partition_point(|start| *start <= index)
                .checked_sub(1);
            if let Some(turn) = turn.and_then(|turn| turns.get_mut(turn)) {
                turn.tokens += tokens_of(&exchange);
                turn.exchanges.push(exchange);
            }
        }
        Self { turns }
    }

    /// What the turns need together.
    pub fn tokens(&self) -> u64 {
        self.turns.iter().map(|turn| turn.tokens).sum()
    }

    /// What each turn that says anything needs, oldest first.
    pub(crate) fn sizes(&self, view: &View) -> Vec<TurnSize> {
        let speaking = self.turns.iter().filter(|turn| !turn.exchanges.is_empty());
        let sizes = speaking.filter_map(|turn| {
            Some(TurnSize {
                from: view.entries().get(turn.start)?.at(),
                tokens: turn.tokens,
                is_summary: turn.covered,
            })
        });
        sizes.collect()
    }

    /// Leaves out the last turn in which the user says anything, and what follows it; returns the
    /// index of the entry with which it begins.
    pub(crate) fn drop_last_turn(&mut self) -> Option<usize> {
        let last = self.last_of_user()?;
        let first_left = self.turns.get(last)?.start;
        self.turns.truncate(last);
        Some(first_left)
    }

    /// The last turn in which the user says anything: without it there would be no request.
    fn last_of_user(&self) -> Option<usize> {
        let says = |turn: &WindowTurn| turn.exchanges.iter().any(is_of_user);
        self.turns.iter().rposition(says)
    }

    /// How many of the oldest turns must go for the rest to need at most `room`; never the last in
    /// which the user says anything.
    fn surplus(&self, room: u64) -> usize {
        let most = self.last_of_user().unwrap_or(0);
        let mut tokens = self.tokens();
        let mut surplus = 0;
        while tokens > room && surplus < most {
            tokens -= self.turns[surplus].tokens;
            surplus += 1;
        }
        surplus
    }

    /// Leaves out the oldest turns, then cuts tool outputs of the rest, until `room` suffices.
    pub(crate) fn fit(&mut self, room: u64) {
        let surplus = self.surplus(room);
        self.turns.drain(..surplus);
        self.begin_with_user();
        self.cut_outputs(room);
    }

    /// Leaves out what stands before the first message of a user.
    fn begin_with_user(&mut self) {
        for turn in &mut self.turns {
            let first = turn.exchanges.iter().position(is_of_user);
            let silent = first.unwrap_or(turn.exchanges.len());
            turn.exchanges.drain(..silent);
            turn.tokens = turn.exchanges.iter().map(tokens_of).sum();
            if first.is_some() {
                return;
            }
        }
    }

    fn cut_outputs(&mut self, room: u64) {
        if self.tokens() <= room {
            return;
        }
        let whole: Vec<_> = self.outputs_mut().map(|output| output.clone()).collect();
        let mut limit = whole.iter().map(String::len).max().unwrap_or(0);
        while self.tokens() > room && limit > SHORTEST_OUTPUT_BYTES {
            limit = (limit / 2).max(SHORTEST_OUTPUT_BYTES);
            for (output, whole) in self.outputs_mut().zip(&whole) {
                *output = cut_middle(whole, limit);
            }
            for turn in &mut self.turns {
                turn.tokens = turn.exchanges.iter().map(tokens_of).sum();
            }
        }
    }

    fn outputs_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let exchanges = self.turns.iter_mut().flat_map(|turn| &mut turn.exchanges);
        let responses = exchanges.filter_map(|exchange| match exchange {
            Exchange::Response(response) => Some(response),
            Exchange::User(..) | Exchange::Note(_) => None,
        });
        responses.flat_map(Response::outputs_mut)
    }

    /// The messages of a window that was made to fit.
    pub(crate) fn into_messages(self) -> Vec<Sent> {
        let mut sent = Vec::new();
        let mut ids = CallIds::default();
        let exchanges = self.turns.into_iter().flat_map(|turn| turn.exchanges);
        for exchange in exchanges {
            match exchange {
                Exchange::User(text, row) => sent.push(Sent {
                    message: Message::text(Role::User, text),
                    rows: vec![row],
                }),
                Exchange::Note(text) => sent.push(Sent {
                    message: Message::text(Role::User, text),
                    rows: Vec::new(),
                }),
                Exchange::Response(response) => response.emit(&mut ids, &mut sent),
            }
        }
        sent
    }
}

fn tokens_of(exchange: &Exchange) -> u64 {
    match exchange {
        Exchange::User(text, _) | Exchange::Note(text) => estimate_tokens(text) + TOKENS_PER_BLOCK,
        Exchange::Response(response) => response.tokens(),
    }
}

fn is_of_user(exchange: &Exchange) -> bool {
    matches!(exchange, Exchange::User(..))
}

/// Which entries are in the range of which summary.
struct Covers {
    /// Index of an entry → index of the newest summary that covers it.
    by: HashMap<usize, usize>,
}

impl Covers {
    fn of(view: &View, path: &Path) -> Self {
        let place: HashMap<RowRef, usize> = view
            .entries()
            .iter()
            .enumerate()
            .map(|(index, entry)| (entry.at(), index))
            .collect();
        let mut active: Vec<(usize, SummaryData)> = Vec::new();
        for (index, entry) in view.entries().iter().enumerate() {
            if entry.kind() == Some(Kind::Summary) {
                let summary: SummaryData = data::read(entry.row.data.as_deref());
                match summary.undo {
                    Some(undone) => {
                        let undone = place.get(&undone);
                        active.retain(|(other, _)| Some(other) != undone);
                    }
                    None => active.push((index, summary)),
                }
            }
        }
        let mut by = HashMap::new();
        for (index, summary) in active {
            let Some((from, to)) = summary.from.zip(summary.to) else {
                continue;
            };
            let Some(last) = place.get(&to).filter(|last| **last < index) else {
                continue;
            };
            // A range whose beginning is not in the view began before it, or never was one.
            let first = match place.get(&from) {
                Some(first) => *first,
                None if path.is_complete() && !path.contains(from) => continue,
                None => 0,
            };
            by.extend((first..=*last).map(|covered| (covered, index)));
        }
        Self { by }
    }

    /// The last entry that each summary covers.
    fn ends(&self) -> HashMap<usize, usize> {
        let mut ends = HashMap::new();
        for (index, summary) in &self.by {
            let end = ends.entry(*summary).or_insert(*index);
            *end = *index.max(end);
        }
        ends
    }
}

fn summary_text(view: &View, summary: usize) -> Option<String> {
    let text = view.entries().get(summary)?.row.content.clone();
    text.filter(|text| !text.trim().is_empty())
}

fn omitted_rows(view: &View) -> HashSet<RowRef> {
    let errors = view
        .entries()
        .iter()
        .filter(|entry| entry.kind() == Some(Kind::Error));
    errors
        .filter_map(|entry| data::read::<ErrorData>(entry.row.data.as_deref()).omit)
        .flatten()
        .collect()
}

/// The last row that a turn's start has to cut off the window, if the request would exceed the
/// budget; none if it does not, or if there is only one turn.
pub fn cut_for(
    state: &AgentState,
    view: &View,
    target: &Target,
    budget: &Budget,
) -> Option<RowRef> {
    let fixed = fixed_tokens(state, target);
    let window = Window::of(state, view, target);
    if fixed + window.tokens() <= budget.cap {
        return None;
    }
    let surplus = window.surplus((budget.cap * CUT_TO_PERCENT / 100).saturating_sub(fixed));
    let first_kept = window.turns.get(surplus).filter(|_| surplus > 0)?.start;
    Some(view.entries().get(first_kept.checked_sub(1)?)?.at())
}

/// Says whether nothing older than the view could change the request: its turns fill the model's
/// window already, and the user says something in them.
pub fn is_full(state: &AgentState, view: &View, target: &Target, budget: &Budget) -> bool {
    let window = Window::of(state, view, target);
    let fills = fixed_tokens(state, target) + window.tokens() > budget.window;
    fills && window.last_of_user().is_some()
}

/// The row at which the summary begins that covers the view's first row. If that row is a root,
/// nothing older than the view is sent.
pub fn covered_since(state: &AgentState, view: &View) -> Option<RowRef> {
    let summary = Covers::of(view, state.path()).by.get(&0).copied()?;
    let data = view.entries().get(summary)?.row.data.as_deref();
    data::read::<SummaryData>(data).from
}
