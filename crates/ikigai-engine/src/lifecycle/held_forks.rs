//! Children of an agent that another process holds.

use ikigai_core::AgentId;
use ikigai_store::AgentRecord;

use super::live::start;
use crate::commands::{Dispatcher, fork_held_by_line};
use crate::frontend::AgentJob;
use crate::input::UserInput;
use crate::ledger::Ledger;
use crate::{Engine, EngineError, Worker};

/// Children of an agent that another process holds.
pub struct HeldFork {
    /// Output of the command.
    pub output: String,
    /// The children, owned by this process, in the requested order.
    pub children: Vec<Worker>,
    /// The children have prompts to answer; otherwise the only child waits for its user.
    pub have_work: bool,
}

impl Engine {
    /// Executes a `/fork` line for an agent that another process holds; none for other lines.
    pub async fn fork_line(
        &self,
        held: &AgentRecord,
        input: &UserInput,
    ) -> Result<Option<HeldFork>, EngineError> {
        let forked = fork_held_by_line(self, held, input, start).await?;
        Ok(forked.map(|forked| HeldFork {
            output: forked.output,
            children: forked
                .children
                .into_iter()
                .map(|child| Worker::new(child, &Dispatcher))
                .collect(),
            have_work: forked.have_work,
        }))
    }

    /// Executes such a line and starts the children here.
    ///
    /// Returns the output of the command, and the child that waits for its user, if any.
    pub async fn fork_here(
        &self,
        held: &AgentRecord,
        input: &UserInput,
    ) -> Result<Option<(String, Option<AgentId>)>, EngineError> {
        let Some(forked) = fork_held_by_line(self, held, input, start).await? else {
            return Ok(None);
        };
        let idle = forked.children.last().filter(|_| !forked.have_work);
        let idle = idle.map(Ledger::id);
        for child in forked.children {
            start(child, forked.have_work.then_some(AgentJob::Answer));
        }
        Ok(Some((forked.output, idle)))
    }
}
