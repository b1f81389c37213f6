//! Replies of command handlers.

use ikigai_core::words::Severity;
use ikigai_core::{Event, Settings};
use ikigai_store::{Effect, StoreError};
use serde_json::{Map, Value};

use super::actions::CommandAction;
use crate::frontend::{Next, Stop};
use crate::{AgentJob, EngineError};

/// Effects and output of a command.
#[derive(Default)]
pub(crate) struct Reply {
    /// Text that it prints, without a sign.
    pub(crate) output: String,
    /// Severity of the output; ordinary output has none.
    pub(crate) severity: Option<Severity>,
    /// Events, stored before the command's own row in the same transaction.
    pub(crate) events: Vec<Event>,
    /// Changed settings.
    pub(crate) set: Option<Map<String, Value>>,
    /// The user grants the mode and rules among them.
    pub(crate) grants: bool,
    /// Effects of the same transaction.
    pub(crate) effects: Vec<Effect>,
    /// Contents of files that the settings name by hash, stored first.
    pub(crate) blobs: Vec<Vec<u8>>,
    /// Action whose reply replaces this one.
    pub(crate) first: Option<Box<CommandAction>>,
    /// Follow-up.
    pub(crate) then: Then,
}

/// Follow-up of a command, after it is stored.
#[derive(Default)]
pub(crate) enum Then {
    /// None.
    #[default]
    Nothing,
    Work(AgentJob),
    /// Action of the front end.
    Front(Next),
    /// Slow part, whose output is a separate row.
    Later(Box<CommandAction>),
}

/// Failure of a command.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Refused: the reason, and possibly an alternative.
    Refused(String),
    /// Stopped by a request; the text is the output.
    Stopped(Stop, String),
    Engine(EngineError),
}

impl Reply {
    /// Creates a reply that only prints text.
    pub(crate) fn says(output: impl Into<String>) -> Self {
        Self {
            output: output.into(),
            ..Self::default()
        }
    }

    /// Creates a reply that only warns.
    pub(crate) fn warns(output: impl Into<String>) -> Self {
        Self {
            severity: Some(Severity::Warning),
            ..Self::says(output)
        }
    }

    /// Creates a reply with an event.
    pub(crate) fn does(event: Event, output: impl Into<String>) -> Self {
        Self {
            events: vec![event],
            ..Self::says(output)
        }
    }

    /// Creates a reply that changes settings.
    pub(crate) fn sets(settings: &Settings, output: impl Into<String>) -> Self {
        Self {
            set: Some(settings.as_set()),
            ..Self::says(output)
        }
    }

    /// Creates a reply that an action gives.
    pub(crate) fn of(action: CommandAction) -> Self {
        Self {
            first: Some(Box::new(action)),
            ..Self::default()
        }
    }

    /// Adds a slow part.
    pub(crate) fn later(self, action: CommandAction) -> Self {
        self.then(Then::Later(Box::new(action)))
    }

    /// Adds a follow-up.
    pub(crate) fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }
}

impl Trouble {
    /// Refuses a command.
    pub(crate) fn refused<T>(reason: impl Into<String>) -> Result<T, Self> {
        Err(Self::Refused(reason.into()))
    }
}

impl From<String> for Trouble {
    fn from(reason: String) -> Self {
        Self::Refused(reason)
    }
}

impl From<EngineError> for Trouble {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}
