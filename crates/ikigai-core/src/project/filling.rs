//! What fills the window: the same reckoning by which it is cut, told part by part.

use crate::ids::RowRef;
use crate::project::budget::{Budget, fixed_parts};
use crate::project::window::Window;
use crate::project::{Fixed, Target};
use crate::state::AgentState;
use crate::view::View;

/// What a request would hold now, in estimated tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    /// What is sent with every request, by name.
    pub fixed: Vec<(Fixed, u64)>,
    /// The turns that are sent, oldest first, and the texts that stand for others.
    pub turns: Vec<TurnSize>,
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
