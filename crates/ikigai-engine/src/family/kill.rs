//! Killing: an agent and all its descendants, at once, recorded in the right log.

use ikigai_core::data::{AgentKilledData, Cause, KilledBy, Verdict};
use ikigai_core::{AgentId, Event, Row, Seq};
use ikigai_store::{AgentEffect, AgentRecord, Effect, HeadClaim, Status};

use super::{Family, FamilyOutcome, FamilyResult, done};
use crate::EngineError;
use crate::agent_tools::KillArguments;
use crate::calls::OpenCall;
use crate::environment::CrashPoint;
use crate::frontend::{FrontEnd, Stop};
use crate::ledger::{CommitPlan, ExtraWrites};

impl Family<'_> {
    /// Kills an agent and its descendants, in one transaction with `also`.
    /// Returns the rows of this agent and the killed agents. With a front end, waits for a store
    /// that is away.
    pub(crate) async fn kill(
        &mut self,
        target: &AgentRecord,
        by: KilledBy,
        also: Vec<Event>,
        mut front: Option<&mut FrontEnd<'_>>,
    ) -> Result<(Vec<Row>, Vec<AgentId>), EngineError> {
        if target.parent.is_none() {
            return Err(EngineError::KillsRoot(target.name.clone()));
        }
        let mut killed = self.family_tree().await?.living_below(target.id);
        if killed.is_empty() {
            return Err(EngineError::Dead(target.name.clone()));
        }
        let mut rows = self
            .kill_these(target, &killed, by, also, front.as_deref_mut())
            .await?;
        loop {
            // A killed agent may have forked since the family was read; dead agents cannot fork.
            let more = self.family_tree().await?.living_below(target.id);
            if more.is_empty() {
                return Ok((rows, killed));
            }
            let notices = self
                .kill_these(target, &more, by, Vec::new(), front.as_deref_mut())
                .await?;
            rows.extend(notices);
            killed.extend(more);
        }
    }

    async fn kill_these(
        &mut self,
        target: &AgentRecord,
        killed: &[AgentId],
        by: KilledBy,
        also: Vec<Event>,
        front: Option<&mut FrontEnd<'_>>,
    ) -> Result<Vec<Row>, EngineError> {
        let own = self.ledger.agent.state.agent();
        let row = Event::AgentKilled(AgentKilledData {
            target: Some(target.id),
            killed: Some(killed.to_vec()),
            by: Some(by),
        });
        // A killed agent cannot record the kill: the parent of the topmost one does.
        let dies = killed.contains(&own) || self.ledger.engine.hub().is_killed(own);
        let parent = target.parent.filter(|_| dies);
        let with: Vec<Effect> = killed
            .iter()
            .map(|agent| {
                Effect::Agent(AgentEffect::SetStatus {
                    agent: *agent,
                    status: Status::Dead,
                })
            })
            .collect();
        let now = self.ledger.engine.environment().now();
        let own_row = Some(row.clone()).filter(|_| parent.is_none());
        let noted = parent.map(|agent| self.ledger.engine.row_of(row.clone(), agent, now));
        let extra = |_: Seq| ExtraWrites {
            heads: parent
                .map(|agent| HeadClaim { agent, lease: None })
                .into_iter()
                .collect(),
            rows: noted.clone().into_iter().collect(),
            with: with.clone(),
        };
        let events = own_row.into_iter().chain(also).collect();
        self.ledger.crash_point(CrashPoint::BeforeKillStored);
        let plan = CommitPlan::events(events).extra(&extra).waiting_if(front);
        let rows = self.ledger.commit(plan).await?;
        self.ledger.crash_point(CrashPoint::AfterKillStored);
        for agent in killed {
            self.ledger.engine.hub().kill(*agent);
        }
        self.ledger.engine.hub().bump();
        self.ledger.engine.end_processes_of(killed).await?;
        Ok(rows)
    }

    /// Executes a call of `kill`.
    pub(super) async fn run_kill(
        &mut self,
        arguments: KillArguments,
        call: &OpenCall,
        front: &mut FrontEnd<'_>,
    ) -> FamilyResult {
        let target = match self.named(&arguments.agent).await? {
            Ok(target) => target,
            Err(reason) => return Ok(Err(reason)),
        };
        let own = self.ledger.agent.state.agent();
        if self
            .family_tree()
            .await?
            .ancestors(own)
            .contains(&target.id)
        {
            let reason = format!("`{}` is your ancestor: you may not kill it", target.name);
            return Ok(Err(reason));
        }
        let result = call.result(done(format!("killed {}", target.name)), Verdict::Ran);
        match self
            .kill(&target, KilledBy::Model, vec![result], Some(front))
            .await
        {
            Ok((rows, killed)) => {
                front.emit_rows(rows);
                Ok(Ok(if killed.contains(&own) {
                    FamilyOutcome::Died(Stop::Interrupt(Cause::Kill))
                } else {
                    FamilyOutcome::Done
                }))
            }
            Err(error @ (EngineError::KillsRoot(_) | EngineError::Dead(_))) => {
                Ok(Err(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }
}

/// Hides this root and all agents below it. Their rows stay, and nothing continues them.
pub(crate) async fn hide_root(family: Family<'_>) -> Result<(), EngineError> {
    let own = family.ledger.agent.state.agent();
    let tree = family.family_tree().await?;
    let killed = tree.living_below(own);
    let row = Event::AgentKilled(AgentKilledData {
        target: Some(own),
        killed: Some(killed.clone()),
        by: Some(KilledBy::User),
    });
    let hide = |agent: AgentId| {
        Effect::Agent(AgentEffect::SetStatus {
            agent,
            status: Status::Reaped,
        })
    };
    let with: Vec<Effect> = tree.below(own).into_iter().map(hide).collect();
    family
        .ledger
        .commit(CommitPlan::events(vec![row]).with(with))
        .await?;
    for agent in &killed {
        family.ledger.engine.hub().kill(*agent);
    }
    family.ledger.engine.hub().bump();
    family.ledger.engine.end_processes_of(&killed).await
}
