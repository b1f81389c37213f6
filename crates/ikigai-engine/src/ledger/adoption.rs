//! Adoption: a session of another machine or directory becomes one of this machine.

use ikigai_core::{Event, Settings};
use ikigai_store::{AgentRecord, CommitError, Effect, SessionMove, SessionRecord, Status};

use super::{CommitPlan, Ledger, Starter};
use crate::{Engine, EngineError};

/// Gives a session to this machine and a directory of it, with its agents.
///
/// Refused while a living process holds one of them. Agents that worked in the old directory
/// work in the new one. Returns the agents.
pub async fn adopt_session(
    engine: &Engine,
    session: &SessionRecord,
    directory: &str,
) -> Result<Vec<AgentRecord>, EngineError> {
    let mut agents = engine.reader().agents(Some(session.id)).await?;
    agents.retain(|agent| agent.status == Status::Running);
    for agent in &agents {
        if let Some(owner) = &agent.owner
            && engine.reader().is_process_alive(owner).await?
        {
            let (agent, owner) = (agent.id, owner.clone());
            return Err(CommitError::Held { agent, owner }.into());
        }
    }
    if session.directory != directory {
        for agent in &agents {
            move_agent(engine, agent, &session.directory, directory).await?;
        }
    }
    let place = SessionMove {
        session: session.id,
        machine: engine.environment().machine(),
        host: engine.environment().host(),
        directory: directory.to_owned(),
    };
    engine
        .commit_effects(vec![Effect::MoveSession(place)])
        .await?;
    Ok(agents)
}

/// Moves the working directory of an agent, if it is in the old directory.
async fn move_agent(
    engine: &Engine,
    agent: &AgentRecord,
    old: &str,
    new: &str,
) -> Result<(), EngineError> {
    const IDLE: Starter = |_, _| {};
    let mut ledger = Ledger::open(engine, agent, IDLE).await?;
    let workdir = ledger.settings().workdir.clone().unwrap_or_default();
    let below = workdir.strip_prefix(old);
    if let Some(below) = below.filter(|it| it.is_empty() || it.starts_with('/')) {
        let settings = Settings {
            workdir: Some(format!("{new}{below}")),
            ..Settings::default()
        };
        let row = Event::set("cd", settings.as_set());
        ledger.commit(CommitPlan::events(vec![row])).await?;
    }
    ledger.release().await
}
