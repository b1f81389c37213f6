//! What fills the window: the same reckoning by which it is cut, told part by part.

use crate::ids::RowRef;
use crate::message::Message;
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

/// What a summary of the conversation is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// The last row that the summary will stand for.
    pub to: RowRef,
    /// What was said up to there, as it is sent now: earlier summaries stand for what they cover.
    pub messages: Vec<Message>,
    /// The tokens of these messages.
    pub tokens: u64,
    /// How many turns they are, earlier summaries not counted.
    pub turns: usize,
}

/// What there is to summarise: all turns that are whole, so not the one that is going on. None if
/// nothing was said in them that is still sent as it was.
pub fn story(state: &AgentState, view: &View, target: &Target, budget: &Budget) -> Option<Story> {
    let mut window = Window::of(state, view, target);
    // A view that is too short to tell is of an agent that has been at it for long.
    let is_idle = view.is_busy(state.path()) == Some(false);
    let to = if is_idle {
        view.entries().back()?.at()
    } else {
        let first_left = window.drop_last_turn()?;
        view.entries().get(first_left.checked_sub(1)?)?.at()
    };
    window.fit(budget.window);
    let sizes = window.sizes(view);
    let turns = sizes.iter().filter(|turn| !turn.is_summary).count();
    (turns > 0).then(|| Story {
        to,
        tokens: sizes.iter().map(|turn| turn.tokens).sum(),
        turns,
        messages: window
            .into_messages()
            .into_iter()
            .map(|sent| sent.message)
            .collect(),
    })
}
