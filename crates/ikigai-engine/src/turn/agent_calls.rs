//! Running calls of agent tools, and answering waits.

use ikigai_core::RowRef;
use ikigai_store::CommitError;
use ikigai_tools::Touches;
use tokio::time::Instant;

use super::calls::{Call, CallSet, Stage, ToolRound};
use super::other_agents::wake_relative;
use crate::EngineError;
use crate::agent_tools::AgentTool;
use crate::calls::OpenCall;
use crate::environment::CrashPoint;
use crate::family::{FamilyOutcome, Moment, Wait, consumed_by_next};
use crate::frontend::{FrontEnd, Stop, UiEvent};
use crate::ledger::{CommitPlan, read_held};

impl ToolRound<'_> {
    /// Executes a call of an agent tool at once. Returns a stop if it ended this agent.
    pub(super) async fn admit_deal(
        &mut self,
        tool: AgentTool,
        open: OpenCall,
        round: &mut CallSet,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        let stage = match self.worker.family().run_tool(tool, &open, front).await? {
            FamilyOutcome::Done => return Ok(None),
            FamilyOutcome::Sent(to) => {
                wake_relative(self.worker, &to).await?;
                return Ok(None);
            }
            FamilyOutcome::Died(stop) => return Ok(Some(stop)),
            FamilyOutcome::Waits(wait) => self.begin_wait(wait, open.at, front),
        };
        round.calls.push(Call {
            open,
            touches: Touches::default(),
            stage,
        });
        Ok(None)
    }

    /// Executes a call of an agent tool that the user approved.
    pub(super) async fn start_agent_tool(
        &mut self,
        tool: AgentTool,
        index: usize,
        round: &mut CallSet,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        let call = &mut round.calls[index];
        let mut family = self.worker.family();
        let outcome = family.run_tool(tool, &call.open, front).await?;
        call.stage = Stage::Ended;
        match outcome {
            FamilyOutcome::Done => Ok(None),
            FamilyOutcome::Sent(to) => {
                wake_relative(self.worker, &to).await?;
                Ok(None)
            }
            FamilyOutcome::Died(stop) => Ok(Some(stop)),
            FamilyOutcome::Waits(wait) => {
                call.stage = self.begin_wait(wait, call.open.at, front);
                Ok(None)
            }
        }
    }

    /// Starts waiting for other agents.
    fn begin_wait(&self, wait: Wait, call: RowRef, front: &mut FrontEnd<'_>) -> Stage {
        let until = Instant::now() + wait.left(self.worker.engine().environment().now());
        front.emit(UiEvent::Running(call));
        Stage::Waiting(wait, until)
    }

    /// Answers the waits that have ended.
    pub(super) async fn answer_waits(
        &mut self,
        round: &mut CallSet,
        front: &mut FrontEnd<'_>,
    ) -> Result<(), EngineError> {
        for call in &mut round.calls {
            let Stage::Waiting(wait, until) = &call.stage else {
                continue;
            };
            let moment = if Instant::now() >= *until {
                Moment::Deadline
            } else {
                Moment::Turn
            };
            let answer = read_held!(
                front,
                self.worker.family().answer_wait(&call.open, wait, moment)
            );
            let Some((result, mail)) = answer else {
                continue;
            };
            let own = self.worker.agent().state.agent();
            let consume = |head| consumed_by_next(&mail, own, head);
            self.worker.crash_point(CrashPoint::BeforeWaitAnswered);
            let rows = match self
                .worker
                .commit(
                    CommitPlan::events(vec![result])
                        .with_at(&consume)
                        .waiting(front),
                )
                .await
            {
                // It bounced meanwhile, because this agent was killed; the kill is handled next.
                Err(EngineError::Commit(CommitError::MailGone(_))) => continue,
                rows => rows?,
            };
            self.worker.crash_point(CrashPoint::AfterWaitAnswered);
            call.stage = Stage::Ended;
            front.emit_rows(rows);
        }
        Ok(())
    }
}
