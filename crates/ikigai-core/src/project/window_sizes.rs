//! Contents of the window, part by part, by the estimates that cut it.

use crate::ids::RowRef;
use crate::project::budget::{Budget, fixed_parts};
use crate::project::window::Window;
use crate::project::{Fixed, Target};
use crate::state::AgentState;
use crate::view::View;

/// Number of items and their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartSize {
    /// Number of items.
    pub number: usize,
    /// Tokens of all of them.
    pub tokens: u64,
}

impl PartSize {
    pub(crate) fn add(&mut self, tokens: u64) {
        self.number += 1;
        self.tokens += tokens;
    }
}

/// Conversation of a request by type of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FillingParts {
    /// Texts of summaries, and notes of cuts.
    pub summaries: PartSize,
    /// The user's own messages that a summary keeps verbatim.
    pub verbatim: PartSize,
    /// All other messages of the user and the model, with calls.
    pub messages: PartSize,
    /// Tool outputs that are sent as stored.
    pub whole_outputs: PartSize,
    /// Tool outputs that are sent as first and last lines.
    pub elided_outputs: PartSize,
}

impl FillingParts {
    /// Maps all numbers of tokens.
    #[must_use]
    pub fn map(mut self, tokens: impl Fn(u64) -> u64) -> Self {
        for part in [
            &mut self.summaries,
            &mut self.verbatim,
            &mut self.messages,
            &mut self.whole_outputs,
            &mut self.elided_outputs,
        ] {
            part.tokens = tokens(part.tokens);
        }
        self
    }
}

/// Contents of a request at this moment, in estimated tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    /// Fixed parts of every request.
    pub fixed: Vec<(Fixed, u64)>,
    /// Turns of the request, oldest first, and the texts that replace others.
    pub turns: Vec<TurnSize>,
    /// The same messages by type of content.
    pub parts: FillingParts,
}

/// One turn of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnSize {
    /// Its first row.
    pub from: RowRef,
    /// The tokens of its messages.
    pub tokens: u64,
    /// True if it is the text of a summary.
    pub is_summary: bool,
}

impl Filling {
    /// Estimates the contents of a request.
    ///
    /// If system prompt, pins and tools exceed the model's window, the rest is the smallest
    /// conversation that would be sent with them.
    pub fn of(state: &AgentState, view: &View, target: &Target, budget: &Budget) -> Self {
        let fixed = fixed_parts(state, target);
        let needed: u64 = fixed.iter().map(|(_, tokens)| tokens).sum();
        let mut window = Window::of(state, view, target);
        window.fit(budget.window.saturating_sub(needed));
        Self {
            fixed,
            turns: window.sizes(view),
            parts: window.parts(view, state.agent()),
        }
    }

    /// Returns the tokens of the fixed parts.
    pub fn fixed_tokens(&self) -> u64 {
        self.fixed.iter().map(|(_, tokens)| tokens).sum()
    }

    /// Returns the tokens of the turns.
    pub fn turn_tokens(&self) -> u64 {
        self.turns.iter().map(|turn| turn.tokens).sum()
    }
}
