//! Operations on other agents: fork, kill, send, wait, recall.
//!
//! Each commits its effect and its result in one transaction, so that none has an unknown outcome.

mod definition;
mod fork;
mod kill;
mod mail;
mod merge;
mod merges;
mod names;
mod prepare;
mod recall;
mod row_pages;
mod tree;
mod wait;

use ikigai_core::AgentId;
use ikigai_core::data::Verdict;
use ikigai_store::AgentRecord;
use ikigai_tools::arguments::read;
use ikigai_tools::output::OutputLimit;

use crate::EngineError;
use crate::agent_tools::AgentTool;
use crate::calls::{Came, OpenCall};
use crate::frontend::{FrontEnd, Stop};
use crate::ledger::{CommitPlan, Ledger};

pub(crate) use definition::{apply_definition, definition};
pub(crate) use fork::fork_held_ledger;
pub use fork::{ChildSeat, ForkRequest, Forked};
pub(crate) use kill::hide_root;
pub(crate) use mail::{ChildReport, check_mail, shown_mail};
pub use merge::MergeOf;
pub(crate) use merge::apply_changes;
pub use tree::Branch;
pub(crate) use tree::tree;
pub(crate) use wait::{Moment, Wait, consumed_by_next};

/// Default timeout of a wait.
const WAIT_SECONDS: u64 = 600;

/// Agent that another one started and may have to wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    pub(crate) id: AgentId,
    /// Its parent's model forked it, so its last answer is mail to its parent.
    pub(crate) reports: bool,
}

/// Operations of one agent on others.
pub(crate) struct Family<'a> {
    pub(crate) ledger: &'a mut Ledger,
    /// Agents that it started and that may still work.
    pub(crate) children: &'a mut Vec<Started>,
    pub(crate) result_size: OutputLimit,
}

/// Outcome of a call of these tools.
pub(crate) enum FamilyOutcome {
    /// Its result is stored.
    Done,
    Waits(Wait),
    /// Its result is stored, and an agent has new mail.
    Sent(AgentRecord),
    /// Its result is stored, and the agent that made it is dead.
    Died(Stop),
}

impl Family<'_> {
    /// Executes a call of one of these tools.
    pub(crate) async fn run_tool(
        &mut self,
        tool: AgentTool,
        call: &OpenCall,
        front: &mut FrontEnd<'_>,
    ) -> Result<FamilyOutcome, EngineError> {
        let outcome = match tool {
            AgentTool::Fork => match read(&call.arguments) {
                Ok(read) => self.run_fork(read.values, call, front).await?,
                Err(bad) => Err(bad.0),
            },
            AgentTool::Kill => match read(&call.arguments) {
                Ok(read) => self.run_kill(read.values, call, front).await?,
                Err(bad) => Err(bad.0),
            },
            AgentTool::Send => match read(&call.arguments) {
                Ok(read) => self.run_send(read.values, call, front).await?,
                Err(bad) => Err(bad.0),
            },
            AgentTool::Wait => match read(&call.arguments) {
                Ok(read) => self.run_wait(read.values, call).await?,
                Err(bad) => Err(bad.0),
            },
            AgentTool::Recall => match read(&call.arguments) {
                Ok(read) => self.run_recall(read.values, call, front).await?,
                Err(bad) => Err(bad.0),
            },
        };
        match outcome {
            Ok(outcome) => Ok(outcome),
            Err(reason) => self.refuse_call(call, reason, front).await,
        }
    }

    async fn refuse_call(
        &mut self,
        call: &OpenCall,
        reason: String,
        front: &mut FrontEnd<'_>,
    ) -> Result<FamilyOutcome, EngineError> {
        let result = call.result(Came::failed(reason), Verdict::Refused);
        let rows = self
            .ledger
            .commit(CommitPlan::events(vec![result]).waiting(front))
            .await?;
        front.emit_rows(rows);
        Ok(FamilyOutcome::Done)
    }
}

/// Outcome of a call, or a refusal for the model.
type FamilyResult = Result<Result<FamilyOutcome, String>, EngineError>;

/// Creates the result of a successful call.
fn done(text: impl Into<String>) -> Came {
    let output = text.into();
    Came {
        shown: output.lines().next().map(str::to_owned),
        output,
        success: true,
        ..Came::default()
    }
}
