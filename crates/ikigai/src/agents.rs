//! `ikigai agents`: the process table as a tree.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use ikigai_core::AgentId;
use ikigai_store::{AgentRecord, SessionRecord, Status};
use serde_json::json;

use crate::arguments::AgentsOrder;
use crate::output::{local_time, print, tell, visible};
use crate::world::World;

pub(crate) fn agents(db: Option<String>, order: &AgentsOrder) -> Result<ExitCode> {
    let world = World::open(db)?;
    let (sessions, agents) = world.runtime.block_on(async {
        anyhow::Ok((world.engine.sessions().await?, world.engine.agents().await?))
    })?;
    if agents.is_empty() {
        tell("there is no agent yet; try: ikigai run \"hello\"");
    }
    if order.json {
        agents.iter().try_for_each(|agent| print(&json_of(agent)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown: BTreeMap<AgentId, &AgentRecord> = agents
        .iter()
        .filter(|agent| agent.status != Status::Reaped)
        .map(|agent| (agent.id, agent))
        .collect();
    let mut children: BTreeMap<Option<AgentId>, Vec<&AgentRecord>> = BTreeMap::new();
    for agent in agents.iter().filter(|agent| shown.contains_key(&agent.id)) {
        // Whose parent is not shown stands where a root does.
        let parent = agent.parent.filter(|parent| shown.contains_key(parent));
        children.entry(parent).or_default().push(agent);
    }
    let roots = children.get(&None).cloned().unwrap_or_default();
    for session in &sessions {
        print_session(session, &roots, &children)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_session(
    session: &SessionRecord,
    roots: &[&AgentRecord],
    children: &BTreeMap<Option<AgentId>, Vec<&AgentRecord>>,
) -> Result<()> {
    print(&format!("{}\n", visible(&session.directory)))?;
    let mut left: Vec<_> = roots
        .iter()
        .rev()
        .filter(|agent| agent.session == session.id)
        .map(|agent| (1, *agent))
        .collect();
    while let Some((depth, agent)) = left.pop() {
        print(&format!("{}{}\n", "  ".repeat(depth), line_of(agent)))?;
        let below = children.get(&Some(agent.id)).into_iter().flatten().rev();
        left.extend(below.map(|child| (depth + 1, *child)));
    }
    Ok(())
}

fn line_of(agent: &AgentRecord) -> String {
    let touched = agent
        .touched_at
        .map_or_else(|| "never".to_owned(), local_time);
    let owner = agent.owner.as_ref().map_or_else(String::new, |owner| {
        format!("  held by pid {} on {}", owner.pid, visible(&owner.host))
    });
    format!(
        "{:<24} {:<8} {:>8} rows  {touched}  {}{owner}",
        visible(&agent.name),
        agent.status,
        agent.head,
        agent.id,
    )
}

fn json_of(agent: &AgentRecord) -> String {
    let line = json!({
        "id": agent.id,
        "name": agent.name,
        "session": agent.session,
        "parent": agent.parent,
        "fork_point": agent.fork_point,
        "status": agent.status.word(),
        "created_at": agent.created_at,
        "head": agent.head,
        "touched_at": agent.touched_at,
        "owner": agent.owner.as_ref().map(|owner| json!({ "host": owner.host, "pid": owner.pid })),
    });
    format!("{line}\n")
}
