//! What fills the window: the same reckoning by which it is cut, told part by part.

use crate::ids::RowRef;
use crate::project::budget::{Budget, fixed_parts};
use crate::project::window::Window;
use crate::project::{Fixed, Target};
use crate::state::AgentState;
use crate::view::View;

/// Number of things and the tokens that they have together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartSize {
    /// Number of things.
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

/// The conversation of a request by kinds of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FillingParts {
    /// Texts of summaries, and notes in the place of what was cut.
    pub summaries: PartSize,
    /// The user's own messages that stay word for word beside a summary.
    pub verbatim: PartSize,
    /// All other messages of the user and the model, with calls.
    pub messages: PartSize,
    /// Tool outputs that are sent as stored.
    pub whole_outputs: PartSize,
    /// Tool outputs of which the first and last lines are sent.
    pub elided_outputs: PartSize,
}

impl FillingParts {
    /// The same with other numbers of tokens.
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

/// What a request would hold now, in estimated tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    /// What is sent with every request, by name.
    pub fixed: Vec<(Fixed, u64)>,
    /// The turns that are sent, oldest first, and the texts that stand for others.
    pub turns: Vec<TurnSize>,
    /// The same messages by kinds of content.
    pub parts: FillingParts,
}

/// One turn of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnSize {
    /// Its first row.
    pub from: RowRef,
    /// The tokens of its messages.
    pub tokens: u64,
    /// Whether it is the text of a summary.
    pub is_summary: bool,
}

impl Filling {
    /// Reckons what a request would hold. Of a model for which system prompt, pins and tools are
    /// too much, this is what would be sent beside them if there were room for anything.
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

    /// The tokens of what is sent with every request.
    pub fn fixed_tokens(&self) -> u64 {
        self.fixed.iter().map(|(_, tokens)| tokens).sum()
    }

    /// The tokens of the turns.
    pub fn turn_tokens(&self) -> u64 {
        self.turns.iter().map(|turn| turn.tokens).sum()
    }
}
