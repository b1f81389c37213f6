//! Ends of turns.

use std::time::Duration;

use ikigai_core::data::Cause;

/// How a turn ended. All of it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The model said all it had to say.
    Completed,
    /// It was interrupted.
    Interrupted(Cause),
    /// It failed, for this reason.
    Failed(String),
}

/// Why a turn is to end early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Somebody wants it.
    Interrupt(Cause),
    /// It took this long.
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
