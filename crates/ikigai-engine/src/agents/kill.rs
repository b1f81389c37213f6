//! Killing: an agent and all its descendants, at once, told in the right history.

use ikigai_core::data::{AgentKilledData, Cause, KilledBy, Verdict};
use ikigai_core::{AgentId, Event, Row, Seq};
use ikigai_store::{AgentRecord, Effect, HeadClaim, Status};

use super::{Deal, Dealt, KillArguments, done};
use crate::calls::OpenCall;
use crate::front::{Desk, Intent, Stop};
use crate::worker::Beside;
use crate::{EngineError, Worker};

impl Worker {
    /// Kills an agent and its descendants, in one transaction with `also`. Returns the rows of this
    /// agent and who was killed.
    pub(crate) async fn kill(
        &mut self,
        target: &AgentRecord,
        by: KilledBy,
        also: Vec<Event>,
    ) -> Result<(Vec<Row>, Vec<AgentId>), EngineError> {
        let own = self.agent.state.agent();
        if target.parent.is_none() {
            return Err(EngineError::KillsRoot(target.name.clone()));
        }
        if target.status != Status::Running {
            return Err(EngineError::Dead(target.name.clone()));
        }
        let family = self.family().await?;
        let killed = family.living_below(target.id);
        let row = Event::AgentKilled(AgentKilledData {
            target: Some(target.id),
            killed: Some(killed.clone()),
            by: Some(by),
        });
        // Whoever is among the killed tells nobody any more: the parent of the topmost does.
        let elsewhere = target.parent.filter(|_| killed.contains(&own));
        let mut with: Vec<Effect> = killed
            .iter()
            .map(|agent| Effect::SetStatus {
                agent: *agent,
                status: Status::Dead,
            })
            .collect();
        for agent in &killed {
            let waiting = self.engine.store.queued_mail(*agent).await?;
            with.extend(
                waiting
                    .iter()
                    .map(|mail| Effect::BounceMail { mail: mail.id }),
            );
        }
        let now = self.engine.environment.now();
        let own_row = Some(row.clone()).filter(|_| elsewhere.is_none());
        let beside = |_: Seq| Beside {
            heads: elsewhere
                .map(|agent| HeadClaim { agent, lease: None })
                .into_iter()
                .collect(),
            rows: elsewhere
                .map(|agent| row.clone().into_row(agent, now))
                .into_iter()
                .collect(),
            with: with.clone(),
        };
        let events = own_row.into_iter().chain(also).collect();
        let rows = self.commit_beside(events, &beside).await?;
        for agent in killed.iter().filter(|agent| **agent != own) {
            let stop = Intent::Stop(Stop::Interrupt(Cause::Kill));
            self.engine.hub.deliver(*agent, stop);
        }
        self.engine.hub.bump();
        Ok((rows, killed))
    }

    /// Carries out a call of `kill`.
    pub(super) async fn deal_kill(
        &mut self,
        arguments: KillArguments,
        call: &OpenCall,
        desk: &mut Desk<'_>,
    ) -> Deal {
        let target = match self.named(&arguments.agent).await? {
            Ok(target) => target,
            Err(reason) => return Ok(Err(reason)),
        };
        let own = self.agent.state.agent();
        if self.family().await?.ancestors(own).contains(&target.id) {
            let reason = format!("`{}` is your ancestor: you may not kill it", target.name);
            return Ok(Err(reason));
        }
        let result = call.result(done(format!("killed {}", target.name)), Verdict::Ran);
        match self.kill(&target, KilledBy::Model, vec![result]).await {
            Ok((rows, killed)) => {
                desk.told(rows);
                Ok(Ok(if killed.contains(&own) {
                    Dealt::Died(Stop::Interrupt(Cause::Kill))
                } else {
                    Dealt::Done
                }))
            }
            Err(error @ (EngineError::KillsRoot(_) | EngineError::Dead(_))) => {
                Ok(Err(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }
}
