//! Turns that stopped because a program ended: found at start, and resumed if configured.
//! Only front ends that supervise all agents use this.

use std::collections::HashSet;

use ikigai_core::counts::counted;
use ikigai_core::words::Severity;
use ikigai_core::{Micros, ProcessId};
use ikigai_store::{AgentRecord, CommitError, ProcessRecord, Status};

use super::live::start;
use crate::figures::since;
use crate::last_turn::last_turn;
use crate::limits::Resume;
use crate::turn::check_resumable;
use crate::{AgentJob, Engine, EngineError, Worker};

/// Number of agents named in a line before the rest is counted.
const MOST_NAMED: usize = 5;

/// A turn that stopped in the middle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The agent.
    pub agent: AgentRecord,
    /// Time of the stop.
    pub at: Micros,
    /// A call has an unknown outcome: only the user may resume the turn.
    pub unknown: bool,
    /// It is resumed automatically.
    pub goes_on: bool,
}

impl Engine {
    /// Settles turns that dead processes left unfinished, and finds stopped turns.
    /// Resumes the turns that may continue automatically. Skips agents that another process holds,
    /// and those of other machines and people. Reads a page of rows per living agent.
    pub async fn supervise(&self) -> Result<Vec<Stopped>, EngineError> {
        let mut stopped = Vec::new();
        let mut sessions = self.sessions().await?;
        sessions.retain(|session| self.is_here(session));
        for agent in self.agents().await? {
            let is_here = sessions.iter().any(|session| session.id == agent.session);
            let is_own = agent.owner.as_ref().is_none_or(|owner| self.is_own(owner));
            if agent.status != Status::Running || !is_here || !is_own {
                continue;
            }
            if self.hub().is_working(agent.id).is_some() {
                continue;
            }
            match self.look_after(agent).await {
                Ok(found) => stopped.extend(found),
                // Another process holds it, or it was killed meanwhile.
                Err(EngineError::Commit(CommitError::Held { .. }) | EngineError::Dead(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(stopped)
    }

    async fn look_after(&self, agent: AgentRecord) -> Result<Option<Stopped>, EngineError> {
        let _door = self.hub().door.acquire().await;
        // Another task may have activated it before the door was free.
        if self.hub().is_working(agent.id).is_some() {
            return Ok(None);
        }
        let settled = match &agent.owner {
            // Its lease was not given back.
            Some(_) => Some(self.open(&agent).await?),
            None => None,
        };
        let found = last_turn(self.reader(), agent.id).await?.stop();
        let goes_on = |unknown: bool| self.resume() == Resume::Auto && !unknown;
        let stopped = found.map(|(at, unknown)| Stopped {
            goes_on: goes_on(unknown),
            agent: agent.clone(),
            at,
            unknown,
        });
        let worker = match (settled, &stopped) {
            (None, Some(stopped)) if stopped.goes_on => Some(self.open(&agent).await?),
            (settled, _) => settled,
        };
        match (worker, stopped) {
            (Some(worker), Some(stopped)) if stopped.goes_on => {
                Ok(Some(go_on(worker, stopped).await?))
            }
            (Some(worker), stopped) => {
                worker.release().await?;
                Ok(stopped)
            }
            (None, stopped) => Ok(stopped),
        }
    }
}

impl Engine {
    /// Returns processes of this person on this machine that hold agents and have died.
    pub async fn dead_holders(&self) -> Result<HashSet<ProcessId>, EngineError> {
        let mut dead = HashSet::new();
        for owner in self.reader().owners().await? {
            let is_other = owner.id != self.reader().process();
            if is_other && self.is_own(&owner) && !self.reader().is_process_alive(&owner).await? {
                dead.insert(owner.id);
            }
        }
        Ok(dead)
    }

    /// Returns true if a process works for this person on this machine, as far as that is known.
    fn is_own(&self, owner: &ProcessRecord) -> bool {
        let machine = self.environment().machine();
        let is_here = owner.machine.is_none() || owner.machine == machine;
        is_here && (owner.person.is_none() || owner.person == self.person())
    }
}

/// Resumes a stopped turn, or leaves it to its user if that is impossible.
async fn go_on(mut worker: Worker, mut stopped: Stopped) -> Result<Stopped, EngineError> {
    match check_resumable(worker.ledger_mut()).await {
        Ok(()) => start(worker.into_ledger(), Some(AgentJob::Resume)),
        Err(EngineError::NothingToResume | EngineError::NoModel(_)) => {
            stopped.goes_on = false;
            worker.release().await?;
        }
        Err(error) => return Err(error),
    }
    Ok(stopped)
}

impl Engine {
    /// Describes stopped turns, a line each, for the start of a front end.
    pub fn stopped_lines(&self, stopped: &[Stopped]) -> Vec<(Severity, String)> {
        let mut lines = Vec::new();
        let waits: Vec<_> = stopped.iter().filter(|one| !one.goes_on).collect();
        let goes_on: Vec<_> = stopped.iter().filter(|one| one.goes_on).collect();
        if !goes_on.is_empty() {
            let line = notice(&goes_on, self.environment().now());
            lines.push((Severity::Info, format!("▶ {line} · resuming")));
        }
        if self.resume() == Resume::Ask && !waits.is_empty() {
            let line = notice(&waits, self.environment().now());
            lines.push((
                Severity::Info,
                format!("⏸ {line} · /resume all to continue"),
            ));
        }
        for one in waits.iter().filter(|one| one.unknown) {
            let name = &one.agent.name;
            lines.push((Severity::Warning, format!(
                "{name}: a tool call was interrupted, its outcome is unknown · check, then /resume {name}, or /retry there"
            )));
        }
        lines
    }
}

/// Formats `3 interrupted turns (2 h ago): a, b, c`.
fn notice(stopped: &[&Stopped], now: Micros) -> String {
    let turns = counted(stopped.len(), "interrupted turn");
    let names = stopped.iter().take(MOST_NAMED);
    let mut names: Vec<_> = names.map(|one| one.agent.name.clone()).collect();
    if let more @ 1.. = stopped.len().saturating_sub(MOST_NAMED) {
        names.push(format!("{more} more"));
    }
    let latest = stopped.iter().map(|one| one.at).max().unwrap_or(now);
    let ago = since(latest, now);
    format!("{turns} ({ago} ago): {}", names.join(", "))
}
