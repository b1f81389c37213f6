//! The tree of agents as text.

use std::collections::HashMap;
use std::fmt::Write as _;

use ikigai_core::{AgentId, Micros};
use ikigai_store::{AgentRecord, Status};

use crate::{Engine, EngineError};

/// One line for each agent that is not reaped, children below their parents.
pub(crate) async fn tree(engine: &Engine) -> Result<String, EngineError> {
    let mut agents = engine.agents().await?;
    agents.retain(|agent| agent.status != Status::Reaped);
    let mut children: HashMap<Option<AgentId>, Vec<&AgentRecord>> = HashMap::new();
    let known = |id: &AgentId| agents.iter().any(|agent| agent.id == *id);
    for agent in &agents {
        // One whose parent is not shown stands where a root stands.
        let parent = agent.parent.filter(known);
        children.entry(parent).or_default().push(agent);
    }
    let now = engine.environment.now();
    let mut output = String::new();
    let mut open: Vec<(&AgentRecord, usize)> = Vec::new();
    let roots = children.remove(&None).unwrap_or_default();
    for agent in roots.into_iter().rev() {
        open.push((agent, 0));
    }
    while let Some((agent, depth)) = open.pop() {
        let state = match agent.status {
            Status::Dead | Status::Reaped => "✗ dead",
            Status::Running if engine.works(agent.id).await? => "◐ working",
            Status::Running => "· idle",
        };
        let name = format!("{}{}", "  ".repeat(depth), agent.name);
        let silent = agent
            .touched_at
            .map_or_else(String::new, |at| since(at, now));
        let _ = writeln!(
            output,
            "{name:<32} {state:<10} {silent:>8}  {} rows",
            agent.head
        );
        let below = children.remove(&Some(agent.id)).unwrap_or_default();
        for child in below.into_iter().rev() {
            open.push((child, depth + 1));
        }
    }
    Ok(output.trim_end().to_owned())
}

/// How long ago something was.
pub(crate) fn since(at: Micros, now: Micros) -> String {
    let seconds = (now.0 - at.0).max(0) / 1_000_000;
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
