//! Turns that stopped because a program ended: found at start, and resumed if configured.
//! Only front ends that supervise all agents use this.

use ikigai_core::data::{
    self, Cause, CommandData, ErrorData, ForkData, ForkRole, InterruptedData, ToolResultData,
    UserData, Verdict,
};
use ikigai_core::words::Severity;
use ikigai_core::{Kind, Micros};
use ikigai_store::{Agent, AgentRecord, CommitError, Status};

use super::live::start;
use crate::figures::since;
use crate::frontend::TurnEnd;
use crate::limits::Resume;
use crate::{AgentJob, Engine, EngineError, Worker};

/// Rows read per query, and in total, to classify one agent's last turn.
const PAGE_ROWS: usize = 64;
const MOST_ROWS: usize = 4096;

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

/// Last turn of an agent, from its newest rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopEvidence {
    /// No stopped turn.
    Nothing,
    /// The last turn failed.
    Failed,
    /// The last turn was interrupted, for instance by its user.
    Interrupted,
    /// The turn stopped; `unknown` if a call has an unknown outcome.
    Stopped { at: Micros, unknown: bool },
    /// More rows are needed.
    More,
}

impl Engine {
    /// Sets the handling of stopped turns at start.
    #[must_use]
    pub fn with_resume(mut self, resume: Resume) -> Self {
        self.resume = resume;
        self
    }

    /// Settles turns that dead processes left unfinished, and finds stopped turns.
    /// Resumes the turns that may continue automatically. Skips agents that another process holds.
    /// Reads a page of rows per living agent.
    pub async fn supervise(&self) -> Result<Vec<Stopped>, EngineError> {
        let mut stopped = Vec::new();
        for agent in self.agents().await? {
            if agent.status != Status::Running || self.hub.is_working(agent.id).is_some() {
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
        let _door = self.hub.door.acquire().await;
        // Another task may have activated it before the door was free.
        if self.hub.is_working(agent.id).is_some() {
            return Ok(None);
        }
        let settled = match &agent.owner {
            // Its lease was not given back.
            Some(_) => Some(self.open(&agent).await?),
            None => None,
        };
        let found = self.stop_of(&agent).await?;
        let goes_on = |unknown: bool| self.resume == Resume::Auto && !unknown;
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

    /// Returns the time of a stopped turn, and true for an unknown call.
    pub(crate) async fn stop_of(
        &self,
        agent: &AgentRecord,
    ) -> Result<Option<(Micros, bool)>, EngineError> {
        Ok(match self.read_last_turn(agent).await? {
            StopEvidence::Stopped { at, unknown } => Some((at, unknown)),
            StopEvidence::Nothing
            | StopEvidence::Failed
            | StopEvidence::Interrupted
            | StopEvidence::More => None,
        })
    }

    /// Reads the outcome of an agent's last turn. A running turn counts as [`TurnEnd::Other`].
    pub(crate) async fn last_turn_end(&self, agent: &AgentRecord) -> Result<TurnEnd, EngineError> {
        Ok(match self.read_last_turn(agent).await? {
            StopEvidence::Stopped { .. } => TurnEnd::Stopped,
            StopEvidence::Failed => TurnEnd::Failed,
            StopEvidence::Interrupted => TurnEnd::Interrupted,
            StopEvidence::Nothing | StopEvidence::More => TurnEnd::Other,
        })
    }

    async fn read_last_turn(&self, agent: &AgentRecord) -> Result<StopEvidence, EngineError> {
        let mut agent = Agent::restore(self.reader(), agent.id).await?;
        loop {
            let is_whole = agent.view.is_complete(agent.state.path());
            let enough = is_whole || agent.view.entries().len() >= MOST_ROWS;
            match told_by(&agent, enough) {
                StopEvidence::More => {}
                told => return Ok(told),
            }
            agent.lengthen(self.reader(), PAGE_ROWS).await?;
        }
    }
}

/// Resumes a stopped turn, or leaves it to its user if that is impossible.
async fn go_on(mut worker: Worker, mut stopped: Stopped) -> Result<Stopped, EngineError> {
    match worker.check_resumable().await {
        Ok(()) => start(worker.ledger, Some(AgentJob::Resume)),
        Err(EngineError::NothingToResume | EngineError::NoModel(_)) => {
            stopped.goes_on = false;
            worker.release().await?;
        }
        Err(error) => return Err(error),
    }
    Ok(stopped)
}

/// Classifies an agent's last turn from its rows, newest first.
/// With `enough`, there are no more rows to read.
fn told_by(agent: &Agent, enough: bool) -> StopEvidence {
    let starts = agent.view.turn_starts(agent.state.path());
    let mut stopped: Option<Micros> = None;
    for entry in agent.view.entries().iter().rev() {
        let data = entry.row.data.as_deref();
        let ends_turn = match entry.kind() {
            Some(Kind::Interrupted) => {
                let cause = data::read::<InterruptedData>(data).cause;
                if stopped.is_none() && matches!(cause, Some(Cause::Exit | Cause::Crash)) {
                    stopped = Some(entry.row.created_at);
                    false
                } else if stopped.is_none() {
                    return StopEvidence::Interrupted;
                } else {
                    true
                }
            }
            Some(Kind::ToolResult) => {
                let result: ToolResultData = data::read(data);
                match stopped {
                    None => true,
                    Some(at) if result.verdict == Some(Verdict::Unknown) => {
                        return StopEvidence::Stopped { at, unknown: true };
                    }
                    Some(_) => false,
                }
            }
            Some(Kind::Assistant | Kind::ToolCall) => stopped.is_none(),
            Some(Kind::User) => {
                let user: UserData = data::read(data);
                let is_message = user.shell.is_none() && user.merge.is_none();
                stopped.is_none() && is_message || starts.contains(&entry.at())
            }
            // Rows before this `/resume` were acknowledged by the user.
            Some(Kind::Command) => data::read::<CommandData>(data).resume == Some(true),
            Some(Kind::Error) => {
                let fails = data::read::<ErrorData>(data).omit.is_none();
                if fails && stopped.is_none() {
                    return StopEvidence::Failed;
                }
                fails
            }
            Some(Kind::Fork) => data::read::<ForkData>(data).role == Some(ForkRole::Child),
            Some(Kind::Clear | Kind::Rewind) => true,
            Some(Kind::System | Kind::Mark | Kind::AgentKilled | Kind::Usage | Kind::Summary)
            | None => false,
        };
        if ends_turn {
            let unknown = false;
            return stopped.map_or(StopEvidence::Nothing, |at| StopEvidence::Stopped {
                at,
                unknown,
            });
        }
    }
    match stopped {
        // The user must judge a turn that is too long to read.
        Some(at) if enough => StopEvidence::Stopped { at, unknown: true },
        None if enough => StopEvidence::Nothing,
        _ => StopEvidence::More,
    }
}

impl Engine {
    /// Describes stopped turns, a line each, for the start of a front end.
    pub fn stopped_lines(&self, stopped: &[Stopped]) -> Vec<(Severity, String)> {
        let mut lines = Vec::new();
        let waits: Vec<_> = stopped.iter().filter(|one| !one.goes_on).collect();
        let goes_on: Vec<_> = stopped.iter().filter(|one| one.goes_on).collect();
        if !goes_on.is_empty() {
            let line = told(&goes_on, self.environment.now());
            lines.push((Severity::Info, format!("▶ {line} · going on")));
        }
        if self.resume == Resume::Ask && !waits.is_empty() {
            let line = told(&waits, self.environment.now());
            lines.push((Severity::Info, format!("⏸ {line} · /resume all")));
        }
        for one in waits.iter().filter(|one| one.unknown) {
            let name = &one.agent.name;
            lines.push((Severity::Warning, format!(
                "{name}: it is not known what a call did that was running · look, then /resume {name}, or /retry there"
            )));
        }
        lines
    }
}

/// Formats `3 agents stopped in the middle (2 h ago): a, b, c`.
fn told(stopped: &[&Stopped], now: Micros) -> String {
    let agents = match stopped.len() {
        1 => "1 agent".to_owned(),
        count => format!("{count} agents"),
    };
    let names = stopped.iter().take(MOST_NAMED);
    let mut names: Vec<_> = names.map(|one| one.agent.name.clone()).collect();
    if let more @ 1.. = stopped.len().saturating_sub(MOST_NAMED) {
        names.push(format!("{more} more"));
    }
    let latest = stopped.iter().map(|one| one.at).max().unwrap_or(now);
    let ago = since(latest, now);
    format!(
        "{agents} stopped in the middle ({ago} ago): {}",
        names.join(", ")
    )
}
