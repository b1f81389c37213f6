//! Processes that a call may act on: the agent's own, and those of its descendants.

use ikigai_core::AgentId;
use ikigai_store::{AgentRecord, JobRecord};
use ikigai_tools::background::KnownProcess;

use super::{directory_of, is_here};
use crate::environment::cookie_of;
use crate::{EngineError, EngineReader};

/// Most ended processes of an agent that are listed or found.
const MOST_ENDED: usize = 200;

/// Most of them that a list shows.
const MOST_LISTED: usize = 10;

/// Most ancestors that are followed to find the caller.
const FAMILY: usize = 1;

/// Returns the processes of a call: all, or the one that it names, if there is one.
pub(crate) async fn known_processes(
    engine: &EngineReader,
    caller: AgentId,
    name: Option<&str>,
) -> Result<Vec<KnownProcess>, EngineError> {
    let Some(name) = name else {
        return all(engine, caller).await;
    };
    let name = name.trim().trim_start_matches('#');
    let (owner, number) = match name.rsplit_once('.') {
        None => (None, name),
        Some((owner, number)) => (Some(owner), number),
    };
    let Ok(number) = number.parse::<u64>() else {
        return Ok(Vec::new());
    };
    let owner = match owner {
        None => None,
        Some(owner) => match named_below(engine, caller, owner).await? {
            Some(owner) => Some(owner),
            None => return Ok(Vec::new()),
        },
    };
    let agent = owner.as_ref().map_or(caller, |owner| owner.id);
    let jobs = engine.reader().jobs(agent, MOST_ENDED).await?;
    let open = engine.reader().open_jobs(Some(agent)).await?;
    let found = jobs
        .into_iter()
        .chain(open)
        .find(|job| job.number == number);
    let found = found.map(|job| known(engine, &job, owner.as_ref()));
    Ok(found.into_iter().collect())
}

/// Finds a running descendant by its name; descendants belong to their ancestor's session.
async fn named_below(
    engine: &EngineReader,
    caller: AgentId,
    name: &str,
) -> Result<Option<AgentRecord>, EngineError> {
    let Some(caller) = engine.reader().agent(caller).await? else {
        return Ok(None);
    };
    let named = engine
        .reader()
        .find_by_name(Some(caller.session), name)
        .await?;
    for agent in named {
        if is_below(engine, agent.id, caller.id).await? {
            return Ok(Some(agent));
        }
    }
    Ok(None)
}

async fn all(engine: &EngineReader, caller: AgentId) -> Result<Vec<KnownProcess>, EngineError> {
    let mut own = engine.reader().jobs(caller, MOST_ENDED).await?;
    own.reverse();
    let surplus = own.len().saturating_sub(MOST_LISTED);
    let listed = own.into_iter().enumerate();
    let listed = listed.filter(|(place, job)| *place >= surplus || job.ended.is_none());
    let mut found: Vec<_> = listed.map(|(_, job)| known(engine, &job, None)).collect();
    for job in engine.reader().open_jobs(None).await? {
        if job.agent != caller
            && is_below(engine, job.agent, caller).await?
            && let Some(owner) = engine.reader().agent(job.agent).await?
        {
            found.push(known(engine, &job, Some(&owner)));
        }
    }
    Ok(found)
}

/// Returns true if an agent descends from another.
async fn is_below(
    engine: &EngineReader,
    agent: AgentId,
    above: AgentId,
) -> Result<bool, EngineError> {
    let found = engine.reader().ancestry(agent, FAMILY).await?;
    Ok(found.is_some_and(|found| found.ancestors.contains(&above)))
}

fn known(engine: &EngineReader, job: &JobRecord, owner: Option<&AgentRecord>) -> KnownProcess {
    KnownProcess {
        name: match owner {
            None => job.number.to_string(),
            Some(owner) => format!("{}.{}", owner.name, job.number),
        },
        command: job.command.clone(),
        directory: directory_of(job),
        host: job.host.clone(),
        is_here: is_here(engine, job),
        is_own: owner.is_none(),
        cookie: cookie_of(Some(job.id)),
        read_to: job.read_to,
        has_ended: job.ended.is_some(),
    }
}
