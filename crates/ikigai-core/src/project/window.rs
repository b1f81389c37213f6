//! Window: the turns that are sent, and the replacements of the others.

use std::collections::HashSet;

use crate::cut::cut_middle;
use crate::data::{self, ErrorData, SummaryData};
use crate::ids::{AgentId, RowRef};
use crate::kind::Kind;
use crate::message::{Block, Message, Role};
use crate::project::Target;
use crate::project::budget::{
    Budget, TOKENS_PER_BLOCK, estimate_tokens, fixed_tokens, image_tokens,
};
use crate::project::call_names::CallIds;
use crate::project::context_rows::{ContextRows, is_elided, replacement, row_name};
use crate::project::paired_result::PairedResult;
use crate::project::pairing::{ConversationPart, PairedResponse, Pairing, Sent};
use crate::project::window_sizes::{FillingParts, TurnSize};
use crate::state::AgentState;
use crate::view::{Entry, View, turn_starts};

/// Smallest size of a cut tool output, so that it stays readable.
const SHORTEST_OUTPUT_BYTES: usize = 512;

/// The conversation as it can be sent, turn by turn.
pub struct Window {
    turns: Vec<WindowTurn>,
    /// Index of the entry with which the newest response that is sent begins.
    newest_response: Option<usize>,
}

struct WindowTurn {
    /// Index of the entry it begins with.
    start: usize,
    /// True if a summary covers the turn.
    covered: bool,
    exchanges: Vec<ConversationPart>,
    /// Index of the entry with which each exchange begins.
    places: Vec<usize>,
    tokens: u64,
}

/// Size of one exchange of a window.
pub(crate) struct EntrySize {
    /// Index of the entry with which it begins.
    pub(crate) index: usize,
    /// True for the text of a context row.
    pub(crate) is_summary: bool,
    pub(crate) tokens: u64,
}

impl Window {
    /// Builds the window of a view: the text of a context row replaces its range.
    ///
    /// The text is placed at the end of the range as a separate turn, so that a view that begins
    /// inside the range gives the same from there on. The user's own messages that the row keeps
    /// follow the text.
    pub fn of(state: &AgentState, view: &View, target: &Target) -> Self {
        let mut context = ContextRows::of(view, state.path());
        let elided = context.take_elided();
        let mut pairing = Pairing::new(state, view, target, omitted_rows(view), elided);
        let ends = context.ends();
        for (index, entry) in view.entries().iter().enumerate() {
            let Some(summary) = context.replacing(index) else {
                pairing.add(index, entry);
                continue;
            };
            pairing.skip();
            if ends.get(&summary) == Some(&index) {
                let row = view.entries()[summary].at();
                if let Some(text) = replacement(view, summary, state.agent()) {
                    pairing.quote(index, text, row);
                }
                for (text, row) in context.verbatim(view, summary) {
                    pairing.quote(index, text, row);
                }
            }
        }
        let covered = |index: usize| context.replacing(index);
        let changes = |at: usize| at > 0 && covered(at) != covered(at - 1);
        let is_after_range = |at: usize| changes(at) && covered(at - 1).is_some();
        let mut starts = turn_starts(view, state.path(), is_after_range);
        starts.extend((0..view.entries().len()).filter(|at| changes(*at)));
        // Rows before the first turn go with the first row, unless the view begins in the middle:
        // then they are part of an incomplete turn.
        if view.is_complete(state.path()) || covered(0).is_some() {
            starts.push(0);
        }
        starts.sort_unstable();
        starts.dedup();
        Self::split(&starts, pairing.finish(), |at| covered(at).is_some())
    }

    fn split(
        starts: &[usize],
        exchanges: Vec<(usize, ConversationPart)>,
        is_covered: impl Fn(usize) -> bool,
    ) -> Self {
        let mut turns: Vec<_> = starts
            .iter()
            .map(|start| WindowTurn {
                start: *start,
                covered: is_covered(*start),
                exchanges: Vec::new(),
                places: Vec::new(),
                tokens: 0,
            })
            .collect();
        let mut newest_response = None;
        for (index, exchange) in exchanges {
            if matches!(&exchange, ConversationPart::Response(response) if response.speaks()) {
                newest_response = Some(index);
            }
            let turn = starts
                .partition_point(|start| *start <= index)
                .checked_sub(1);
            if let Some(turn) = turn.and_then(|turn| turns.get_mut(turn)) {
                turn.tokens += tokens_of(&exchange);
                turn.exchanges.push(exchange);
                turn.places.push(index);
            }
        }
        Self {
            turns,
            newest_response,
        }
    }

    /// Returns the index of the entry with which the newest response that is sent begins.
    pub(crate) fn newest_response(&self) -> Option<usize> {
        self.newest_response
    }

    /// Returns the responses that are sent, oldest first.
    pub(crate) fn responses(&self) -> impl Iterator<Item = &PairedResponse> {
        let exchanges = self.turns.iter().flat_map(|turn| &turn.exchanges);
        exchanges.filter_map(|exchange| match exchange {
            ConversationPart::Response(response) => Some(response),
            ConversationPart::User(..)
            | ConversationPart::Quoted(..)
            | ConversationPart::Note(_) => None,
        })
    }

    /// Returns the sizes of the exchanges, oldest first. `context_rows` are the context rows of the view.
    pub(crate) fn entry_sizes(
        &self,
        context_rows: &HashSet<RowRef>,
    ) -> impl Iterator<Item = EntrySize> {
        let exchanges = self
            .turns
            .iter()
            .flat_map(|turn| turn.places.iter().zip(&turn.exchanges));
        exchanges.map(|(index, exchange)| EntrySize {
            index: *index,
            is_summary: matches!(exchange, ConversationPart::Quoted(_, row) if context_rows.contains(row)),
            tokens: tokens_of(exchange),
        })
    }

    /// Returns the part of the window before the entry at `end`.
    pub(crate) fn before(mut self, end: usize) -> Self {
        for turn in &mut self.turns {
            let kept = turn.places.iter().filter(|place| **place < end).count();
            turn.exchanges.truncate(kept);
            turn.places.truncate(kept);
            turn.tokens = turn.exchanges.iter().map(tokens_of).sum();
        }
        self.begin_with_user();
        self
    }

    /// Returns the tokens of all turns.
    pub fn tokens(&self) -> u64 {
        self.turns.iter().map(|turn| turn.tokens).sum()
    }

    /// Returns the sizes of the turns with messages, oldest first.
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

    /// Returns the sizes of the messages by type of content.
    pub(crate) fn parts(&self, view: &View, own: AgentId) -> FillingParts {
        let context_rows = context_rows(view);
        let mut parts = FillingParts::default();
        for exchange in self.turns.iter().flat_map(|turn| &turn.exchanges) {
            let tokens = tokens_of(exchange);
            match exchange {
                ConversationPart::Quoted(_, row) if context_rows.contains(row) => {
                    parts.summaries.add(tokens);
                }
                ConversationPart::Quoted(..) => parts.verbatim.add(tokens),
                ConversationPart::User(..) | ConversationPart::Note(_) => {
                    parts.messages.add(tokens);
                }
                ConversationPart::Response(response) if response.speaks() => {
                    let mut rest = tokens;
                    for (row, result) in response.results() {
                        let tokens = result.tokens();
                        rest = rest.saturating_sub(tokens);
                        if is_elided(&result.content, &row_name(row, own)) {
                            parts.elided_outputs.add(tokens);
                        } else {
                            parts.whole_outputs.add(tokens);
                        }
                    }
                    parts.messages.add(rest);
                }
                ConversationPart::Response(_) => {}
            }
        }
        parts
    }

    /// Returns the last turn with a user message: without it there would be no request.
    fn last_of_user(&self) -> Option<usize> {
        let says = |turn: &WindowTurn| turn.exchanges.iter().any(is_of_user);
        self.turns.iter().rposition(says)
    }

    /// Returns the number of oldest turns to drop so that the rest fits `room`.
    ///
    /// The last turn with a user message always stays.
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

    /// Drops the oldest turns, then cuts tool outputs of the rest, until `room` suffices.
    pub(crate) fn fit(&mut self, room: u64) {
        let surplus = self.surplus(room);
        self.turns.drain(..surplus);
        self.begin_with_user();
        self.cut_outputs(room);
    }

    /// Drops everything before the first user message.
    fn begin_with_user(&mut self) {
        for turn in &mut self.turns {
            let first = turn.exchanges.iter().position(is_of_user);
            let silent = first.unwrap_or(turn.exchanges.len());
            turn.exchanges.drain(..silent);
            turn.places.drain(..silent);
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
        let whole: Vec<_> = self
            .results_mut()
            .map(|result| result.content.clone())
            .collect();
        let mut limit = whole.iter().map(String::len).max().unwrap_or(0);
        while self.tokens() > room && limit > SHORTEST_OUTPUT_BYTES {
            limit = (limit / 2).max(SHORTEST_OUTPUT_BYTES);
            for (result, whole) in self.results_mut().zip(&whole) {
                result.content = cut_middle(whole, limit);
            }
            self.measure();
        }
        if self.tokens() > room {
            self.results_mut().for_each(PairedResult::leave_images_out);
            self.measure();
        }
    }

    /// Estimates the tokens of each turn again.
    fn measure(&mut self) {
        for turn in &mut self.turns {
            turn.tokens = turn.exchanges.iter().map(tokens_of).sum();
        }
    }

    fn results_mut(&mut self) -> impl Iterator<Item = &mut PairedResult> {
        let exchanges = self.turns.iter_mut().flat_map(|turn| &mut turn.exchanges);
        let responses = exchanges.filter_map(|exchange| match exchange {
            ConversationPart::Response(response) => Some(response),
            ConversationPart::User(..)
            | ConversationPart::Quoted(..)
            | ConversationPart::Note(_) => None,
        });
        responses.flat_map(PairedResponse::results_mut)
    }

    /// Returns the messages of a fitted window.
    pub(crate) fn into_messages(self) -> Vec<Sent> {
        let mut sent = Vec::new();
        let mut ids = CallIds::default();
        let exchanges = self.turns.into_iter().flat_map(|turn| turn.exchanges);
        for exchange in exchanges {
            match exchange {
                ConversationPart::User(text, images, row) => {
                    let mut message = Message::text(Role::User, text);
                    message.blocks.extend(images.into_iter().map(Block::Image));
                    sent.push(Sent {
                        message,
                        rows: vec![row],
                        quoted: false,
                    });
                }
                ConversationPart::Quoted(text, row) => sent.push(Sent {
                    message: Message::text(Role::User, text),
                    rows: vec![row],
                    quoted: true,
                }),
                ConversationPart::Note(text) => sent.push(Sent {
                    message: Message::text(Role::User, text),
                    rows: Vec::new(),
                    quoted: false,
                }),
                ConversationPart::Response(response) => response.emit(&mut ids, &mut sent),
            }
        }
        sent
    }
}

fn tokens_of(exchange: &ConversationPart) -> u64 {
    match exchange {
        ConversationPart::User(text, images, _) => {
            let images = images
                .iter()
                .map(|image| image_tokens(image) + TOKENS_PER_BLOCK);
            estimate_tokens(text) + TOKENS_PER_BLOCK + images.sum::<u64>()
        }
        ConversationPart::Quoted(text, _) | ConversationPart::Note(text) => {
            estimate_tokens(text) + TOKENS_PER_BLOCK
        }
        ConversationPart::Response(response) => response.tokens(),
    }
}

fn is_of_user(exchange: &ConversationPart) -> bool {
    matches!(
        exchange,
        ConversationPart::User(..) | ConversationPart::Quoted(..)
    )
}

pub(crate) fn context_rows(view: &View) -> HashSet<RowRef> {
    let rows = view.entries().iter();
    let rows = rows.filter(|entry| entry.kind() == Some(Kind::Summary));
    rows.map(Entry::at).collect()
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

/// Returns true if no row before the view can change the request.
///
/// This holds if its turns fill the model's window and have a user message.
pub fn is_full(state: &AgentState, view: &View, target: &Target, budget: &Budget) -> bool {
    if missing_messages(state, view).is_some() {
        return false;
    }
    let window = Window::of(state, view, target);
    let fills = fixed_tokens(state, target) + window.tokens() > budget.window;
    fills && window.last_of_user().is_some()
}

/// Returns the first row of the summary that covers the view's first row.
///
/// If that row is a root, nothing older than the view is sent but the messages of
/// [`missing_messages`].
pub fn covered_since(state: &AgentState, view: &View) -> Option<RowRef> {
    let summary = ContextRows::of(view, state.path()).replacing(0)?;
    let data = view.entries().get(summary)?.row.data.as_deref();
    data::read::<SummaryData>(data).from
}

/// Returns the first user row before the view that [`View::set_older_messages`] must supply.
pub fn missing_messages(state: &AgentState, view: &View) -> Option<RowRef> {
    ContextRows::of(view, state.path()).missing_from(view)
}
