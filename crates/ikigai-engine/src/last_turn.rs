//! Outcome of an agent's last turn, from its newest rows.

use ikigai_core::data::{
    self, Cause, CommandData, ErrorData, ForkData, ForkRole, InterruptedData, ToolResultData,
    UserData, Verdict,
};
use ikigai_core::{AgentId, Kind, Micros};
use ikigai_store::{Agent, ReadLog, TurnRow};

use crate::EngineError;
use crate::frontend::TurnEnd;

/// Rows read per query, and in total, to classify one agent's last turn.
const PAGE_ROWS: usize = 64;
const MOST_ROWS: usize = 4096;

/// Last turn of an agent, from its newest rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastTurn {
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

impl LastTurn {
    /// Returns the outcome. A running turn counts as [`TurnEnd::Other`].
    pub(crate) fn end(self) -> TurnEnd {
        match self {
            Self::Stopped { .. } => TurnEnd::Stopped,
            Self::Failed => TurnEnd::Failed,
            Self::Interrupted => TurnEnd::Interrupted,
            Self::Nothing | Self::More => TurnEnd::Other,
        }
    }

    /// Returns the time of a stopped turn, and true for an unknown call.
    pub(crate) fn stop(self) -> Option<(Micros, bool)> {
        match self {
            Self::Stopped { at, unknown } => Some((at, unknown)),
            Self::Nothing | Self::Failed | Self::Interrupted | Self::More => None,
        }
    }
}

/// Activity of an agent, as one row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnState {
    /// The agent is in the middle of a turn.
    pub(crate) is_busy: bool,
    /// Outcome of the last turn.
    pub(crate) end: TurnEnd,
}

impl TurnState {
    /// Judges the newest row that may say what an agent does; none if older rows are needed.
    pub(crate) fn of(row: Option<&TurnRow>) -> Option<Self> {
        let busy = Some(Self {
            is_busy: true,
            end: TurnEnd::Other,
        });
        let ended = |end| {
            let is_busy = false;
            Some(Self { is_busy, end })
        };
        let Some(row) = row else {
            return ended(TurnEnd::Other);
        };
        let data = row.data.as_deref();
        match row.kind {
            Kind::User => {
                let user: UserData = data::read(data);
                busy.filter(|_| user.shell.is_none() && user.merge.is_none())
            }
            Kind::ToolCall | Kind::ToolResult => busy,
            // A call before it may belong to the same response.
            Kind::Assistant => ended(TurnEnd::Other).filter(|_| !row.follows_call),
            Kind::Interrupted => match data::read::<InterruptedData>(data).cause {
                Some(Cause::Exit | Cause::Crash) => ended(TurnEnd::Stopped),
                _ => ended(TurnEnd::Interrupted),
            },
            Kind::Clear => ended(TurnEnd::Other),
            Kind::Error => {
                let omits = data::read::<ErrorData>(data).omit.is_some();
                ended(TurnEnd::Failed).filter(|_| !omits)
            }
            Kind::Command => {
                let resumes = data::read::<CommandData>(data).resume == Some(true);
                busy.filter(|_| resumes)
            }
            Kind::Fork => {
                let role = data::read::<ForkData>(data).role;
                ended(TurnEnd::Other).filter(|_| role == Some(ForkRole::Child))
            }
            Kind::Rewind
            | Kind::System
            | Kind::Mark
            | Kind::AgentKilled
            | Kind::Usage
            | Kind::Summary
            | Kind::Process
            | Kind::Files => None,
        }
    }
}

/// Reads the last turn of an agent.
pub(crate) async fn last_turn(
    store: &dyn ReadLog,
    agent: AgentId,
) -> Result<LastTurn, EngineError> {
    let mut agent = Agent::restore(store, agent).await?;
    loop {
        let is_whole = agent.view.is_complete(agent.state.path());
        let enough = is_whole || agent.view.entries().len() >= MOST_ROWS;
        match last_turn_of(&agent, enough) {
            LastTurn::More => {}
            last => return Ok(last),
        }
        agent.lengthen(store, PAGE_ROWS).await?;
    }
}

/// Classifies an agent's last turn from its rows, newest first.
/// With `enough`, there are no more rows to read.
fn last_turn_of(agent: &Agent, enough: bool) -> LastTurn {
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
                    return LastTurn::Interrupted;
                } else {
                    true
                }
            }
            Some(Kind::ToolResult) => {
                let result: ToolResultData = data::read(data);
                match stopped {
                    None => true,
                    Some(at) if result.verdict == Some(Verdict::Unknown) => {
                        return LastTurn::Stopped { at, unknown: true };
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
                    return LastTurn::Failed;
                }
                fails
            }
            Some(Kind::Fork) => data::read::<ForkData>(data).role == Some(ForkRole::Child),
            Some(Kind::Clear | Kind::Rewind) => true,
            Some(
                Kind::System
                | Kind::Mark
                | Kind::AgentKilled
                | Kind::Usage
                | Kind::Summary
                | Kind::Process
                | Kind::Files,
            )
            | None => false,
        };
        if ends_turn {
            let unknown = false;
            return stopped.map_or(LastTurn::Nothing, |at| LastTurn::Stopped { at, unknown });
        }
    }
    match stopped {
        // The user must judge a turn that is too long to read.
        Some(at) if enough => LastTurn::Stopped { at, unknown: true },
        None if enough => LastTurn::Nothing,
        _ => LastTurn::More,
    }
}
