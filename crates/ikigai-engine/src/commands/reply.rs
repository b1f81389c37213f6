//! What a handler answers.

use ikigai_core::words::Severity;
use ikigai_core::{Event, Settings};
use ikigai_store::{BoxFuture, Effect, StoreError};
use serde_json::{Map, Value};

use crate::frontend::{FrontEnd, Next, Stop};
use crate::{AgentJob, EngineError, Worker};

/// What a command is to do and to print.
#[derive(Default)]
pub(crate) struct Reply {
    /// Text that it prints, without a sign.
    pub(crate) output: String,
    /// Severity of the output; ordinary output has none.
    pub(crate) severity: Option<Severity>,
    /// What happens: stored before the command's own row, in the same transaction.
    pub(crate) events: Vec<Event>,
    /// The settings that it changes.
    pub(crate) set: Option<Map<String, Value>>,
    /// The user grants the mode and rules among them.
    pub(crate) grants: bool,
    /// What else becomes true in that transaction.
    pub(crate) effects: Vec<Effect>,
    /// What is done next.
    pub(crate) then: Then,
}

/// What is done after a command is stored.
#[derive(Default)]
pub(crate) enum Then {
    /// Nothing.
    #[default]
    Nothing,
    /// The agent does this.
    Work(AgentJob),
    /// A front end does something.
    Front(Next),
    /// Something that takes its time, whose output is a row of its own.
    Later(Later),
}

/// Carries out the part of a command that takes its time, and returns what that printed.
pub(crate) type Later = Box<
    dyn for<'a, 'd> FnOnce(
            &'a mut Worker,
            &'a mut FrontEnd<'d>,
        ) -> BoxFuture<'a, Result<String, Trouble>>
        + Send,
>;

/// Why a command did nothing.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It cannot be done; this says why, and what to do instead.
    Refused(String),
    /// Somebody stopped it; this is told of it.
    Stopped(Stop, String),
    /// The engine could not.
    Engine(EngineError),
}

impl Reply {
    /// Only prints something.
    pub(crate) fn says(output: impl Into<String>) -> Self {
        Self {
            output: output.into(),
            ..Self::default()
        }
    }

    /// Only warns.
    pub(crate) fn warns(output: impl Into<String>) -> Self {
        Self {
            severity: Some(Severity::Warning),
            ..Self::says(output)
        }
    }

    /// Something happens.
    pub(crate) fn does(event: Event, output: impl Into<String>) -> Self {
        Self {
            events: vec![event],
            ..Self::says(output)
        }
    }

    /// Settings change.
    pub(crate) fn sets(settings: &Settings, output: impl Into<String>) -> Self {
        Self {
            set: Some(settings.as_set()),
            ..Self::says(output)
        }
    }

    /// Then something more is done.
    pub(crate) fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }
}

impl Trouble {
    /// The command cannot be carried out.
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
