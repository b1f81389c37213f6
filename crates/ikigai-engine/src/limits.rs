//! Limits of turns and agents, and the policy for turns that stopped.

use std::time::Duration;

/// What a turn may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often the model is asked.
    pub requests: usize,
    /// How many calls are run.
    pub calls: usize,
    /// How long it takes.
    pub time: Duration,
}

impl Default for Limits {
    /// Far beyond what a turn that gets anywhere needs, and an end to one that does not.
    fn default() -> Self {
        Self {
            requests: 200,
            calls: 1000,
            time: Duration::from_hours(8),
        }
    }
}

/// How many agents there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// How many generations below a root.
    pub depth: usize,
    /// How many living children of one agent.
    pub children: usize,
    /// How many living agents below one root, itself included.
    pub family: usize,
    /// How many requests at the same time in one process.
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

/// What is done at start with turns that stopped in the middle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resume {
    /// They are told, and wait for `/resume`.
    #[default]
    Ask,
    /// They go on, but for those with a call of unknown outcome.
    Auto,
    /// They wait for `/resume`, and nothing is said.
    Never,
}
