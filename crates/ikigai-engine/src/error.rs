//! Errors of the engine.

use ikigai_core::{CannotProject, RowRef};
use ikigai_providers::NoModel;
use ikigai_store::{AgentError, CommitError, StoreError};
use thiserror::Error;

use crate::figures;

/// Failure of a request. Rows stored before it stay stored.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The request queue of an agent is full.
    #[error("the agent is busy; try again")]
    DoesNotListen,
    /// The log could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The event could not be stored, so it has no effect.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A row could not be applied.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The request would be empty.
    #[error(transparent)]
    CannotProject(#[from] CannotProject),
    /// No agent has this name.
    #[error("there is no agent `{0}`")]
    NoSuchAgent(String),
    /// Several agents match the name.
    #[error("`{name}` is ambiguous: {}", .matches.join(", "))]
    Ambiguous {
        /// Name as requested.
        name: String,
        /// Agents that match.
        matches: Vec<String>,
    },
    /// There is no such row.
    #[error("there is no event {0}")]
    NoSuchRow(RowRef),
    /// The agent is dead.
    #[error("agent `{0}` has ended")]
    Dead(String),
    /// The message is blank.
    #[error("the message is empty")]
    EmptyMessage,
    /// The name is invalid.
    #[error("invalid name `{0}`: use up to 32 lower-case letters, digits and `-`, not `parent`")]
    BadName(String),
    /// A root cannot be killed.
    #[error("`{0}` is a root agent and cannot be killed")]
    KillsRoot(String),
    /// A family has its maximum depth.
    #[error("limit reached: agents nested {0} deep")]
    TooDeep(usize),
    /// An agent has its maximum number of children.
    #[error("limit reached: {0} children per agent")]
    TooManyChildren(usize),
    /// A family has its maximum number of agents.
    #[error("limit reached: {0} agents per root")]
    TooManyAgents(usize),
    /// A budget allows no more agents.
    #[error("limit reached: the budget of `{name}` allows {most} agents. /budget to raise it")]
    AgentBudget {
        /// Agent with the budget.
        name: String,
        /// Limit.
        most: u64,
    },
    /// A message is too long to be sent.
    #[error("message too long: {bytes} bytes, at most {most}")]
    LongMail {
        /// Its size.
        bytes: usize,
        /// Limit.
        most: usize,
    },
    /// A message is longer than half of the budget.
    #[error(
        "the message has about {} tokens; at most {}, half of the budget, can be sent. \
         Shorten it, or name a file without `@`: the model reads it in parts",
        figures::tokens(*.tokens),
        figures::tokens(*.most)
    )]
    LongMessage {
        /// Estimated tokens of the message, with the files that it mentions.
        tokens: u64,
        /// Largest number of tokens allowed.
        most: u64,
    },
    /// A command failed, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The message mentions a file that cannot be sent to the model.
    #[error("not sent: {0}")]
    NotSent(String),
    /// No turn was stopped.
    #[error("no interrupted turn to resume")]
    NothingToResume,
    /// There is no turn to repeat.
    #[error("no message to send again")]
    NothingToRetry,
    /// A row could not be stored, and the wait for the store was given up.
    #[error("not stored: {0}")]
    StoreAway(String),
    /// No request can be sent to the agent's model.
    #[error(transparent)]
    NoModel(#[from] NoModel),
}

impl EngineError {
    /// Returns true if the store's failure may be temporary.
    pub fn may_pass(&self) -> bool {
        let passes = matches!(
            self.store_failure(),
            Some(
                StoreError::Away { .. }
                    | StoreError::Busy(_)
                    | StoreError::Full(_)
                    | StoreError::Io(_)
                    | StoreError::ReadOnly(_)
            )
        );
        let is_unknown = matches!(self, Self::Commit(CommitError::Unknown(_)));
        passes || is_unknown || matches!(self, Self::StoreAway(_) | Self::DoesNotListen)
    }

    /// Returns true if a message was refused before any part of it was stored.
    pub fn refuses_message(&self) -> bool {
        matches!(
            self,
            Self::LongMessage { .. } | Self::NotSent(_) | Self::EmptyMessage
        )
    }

    /// Returns the underlying failure of the store, if any.
    pub fn store_failure(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error)
            | Self::Commit(CommitError::Store(error))
            | Self::Agent(AgentError::Store(error)) => Some(error),
            _ => None,
        }
    }
}
