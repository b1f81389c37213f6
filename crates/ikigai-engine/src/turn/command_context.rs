//! Read access of commands to their agent.

use std::sync::Arc;

use ikigai_core::project::SummaryRange;
use ikigai_core::{AgentId, Row, RowRef, Settings};
use ikigai_store::Agent;
use ikigai_tools::Place;
use ikigai_tools::permission::Grant;

use super::Worker;
use super::compact::summary_range;
use super::preparation::Turn;
use crate::ledger::Ledger;
use crate::{EngineError, EngineReader};

/// The agent of a command: it can be read, and its view lengthened, but nothing is stored.
pub(crate) struct CommandContext<'a> {
    ledger: &'a mut Ledger,
}

impl Worker {
    /// Borrows the agent for a command.
    pub(crate) fn command_context(&mut self) -> CommandContext<'_> {
        CommandContext {
            ledger: self.ledger_mut(),
        }
    }
}

impl CommandContext<'_> {
    pub(crate) fn engine(&self) -> &EngineReader {
        &self.ledger.engine
    }

    pub(crate) fn agent(&self) -> &Agent {
        &self.ledger.agent
    }

    /// Borrows the agent to read more of its path and view.
    pub(crate) fn reading(&mut self) -> (&EngineReader, &mut Agent) {
        (&self.ledger.engine, &mut self.ledger.agent)
    }

    pub(crate) fn id(&self) -> AgentId {
        self.ledger.id()
    }

    pub(crate) fn settings(&self) -> &Settings {
        self.ledger.settings()
    }

    /// Returns the working directory and hidden paths.
    pub(crate) fn place(&self) -> Place {
        Place {
            workdir: self.ledger.workdir(),
            hidden: self.engine().safety().hidden.clone(),
        }
    }

    /// Returns the mode and rules in force here.
    pub(crate) fn grant(&self) -> Grant {
        self.ledger.grant()
    }

    /// Describes logged mode and rules that this user did not grant here, if any.
    pub(crate) fn foreign_grants(&self) -> Option<String> {
        self.ledger.foreign_grants()
    }

    /// Fails if no request can be sent to the model.
    pub(crate) async fn check_model(&self) -> Result<(), EngineError> {
        Turn::prepare(self.ledger).await.map(drop)
    }

    /// Returns the rows that `/compact` would summarise now.
    pub(crate) async fn summary_range(&mut self) -> Result<Option<SummaryRange>, EngineError> {
        summary_range(self.ledger).await
    }

    /// Returns the newest row that started a turn.
    pub(crate) async fn last_start(&mut self) -> Result<Option<RowRef>, EngineError> {
        self.ledger.last_start(|_| true).await
    }

    /// Returns the last message that started the last turn.
    pub(crate) async fn last_message(&mut self) -> Result<RowRef, EngineError> {
        self.ledger.last_message().await
    }

    /// Returns the messages with which a turn begins, before the first answer.
    pub(crate) fn opening(&self, start: RowRef) -> Vec<Arc<Row>> {
        self.ledger.opening(start)
    }
}
