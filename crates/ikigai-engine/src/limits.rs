//! Limits of turns and agents, and the policy for turns that stopped.

use std::time::Duration;

/// Limits of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of requests.
    pub requests: usize,
    /// Maximum number of tool calls.
    pub calls: usize,
    /// Maximum duration.
    pub time: Duration,
}

impl Default for Limits {
    /// Sets limits far above the need of useful turns, to end a loop.
    fn default() -> Self {
        Self {
            requests: 200,
            calls: 1000,
            time: Duration::from_hours(8),
        }
    }
}

/// Limits on the number of agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// Maximum generations below a root.
    pub depth: usize,
    /// Maximum living children of one agent.
    pub children: usize,
    /// Maximum living agents of one family, the root included.
    pub family: usize,
    /// Maximum parallel requests of one process.
    pub requests: usize,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            depth: 8,
            children: 100,
            family: 1000,
            requests: 16,
        }
    }
}

/// Policy at start for turns that stopped in the middle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resume {
    /// Report them and wait for `/resume`.
    #[default]
    Ask,
    /// Continue them, except those with a call of unknown outcome.
    Auto,
    /// Wait for `/resume` without a report.
    Never,
}

/// Choice of what a rewind takes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileChoice {
    /// Show the files first, if there are any.
    #[default]
    Ask,
    /// The conversation only.
    Conversation,
    /// Conversation and files.
    Files,
    /// Conversation and files, also those that others changed since.
    Overwrite,
}
