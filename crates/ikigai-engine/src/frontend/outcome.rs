//! Ends of turns.

use std::time::Duration;

use ikigai_core::data::Cause;

/// End of a turn, all of it stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The model finished its answer.
    Completed,
    /// It was interrupted.
    Interrupted(Cause),
    /// It failed, for this reason.
    Failed(String),
}

/// Reason to end a turn early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A user, a parent or the program interrupts it.
    Interrupt(Cause),
    /// The time limit of the turn is over.
    Deadline(Duration),
}

/// Outcome of the last turn of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// With an error.
    Failed,
    /// In the middle, because a program ended.
    Stopped,
    /// In the middle, and its process can go on with it.
    Interrupted,
    /// In any other way, or there is no turn.
    Other,
}
