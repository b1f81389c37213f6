//! The tree of agents.

use std::collections::HashMap;
use std::fmt::Write as _;

use ikigai_core::counts::counted;
use ikigai_core::{AgentId, Micros};
use ikigai_store::{AgentRecord, Status};

use super::merge::merged_into;
use super::wait::is_in_a_turn;
use crate::figures::since;
use crate::frontend::TurnEnd;
use crate::last_turn::last_turn;
use crate::{Engine, EngineError, EngineReader};

/// One agent of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The agent; without an owner if that process is gone.
    pub agent: AgentRecord,
    /// Number of its ancestors in the tree.
    pub depth: usize,
    /// It is in a turn.
    pub works: bool,
    /// Outcome of its last turn, if it does not work. Of roots only `Stopped` counts.
    pub last_turn: TurnEnd,
    /// Its parent has merged all of its rows.
    pub merged: bool,
}

impl Branch {
    fn may_be_merged(&self) -> bool {
        !self.works && !self.has_stopped() && self.agent.status == Status::Running
    }

    /// Reports whether its turn stopped in the middle and waits for `/resume`.
    pub fn has_stopped(&self) -> bool {
        self.last_turn == TurnEnd::Stopped
    }

    /// Reports whether it is a child whose last turn failed.
    pub fn has_failed(&self) -> bool {
        self.last_turn == TurnEnd::Failed
    }

    /// Reports whether it is a child whose last turn was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.last_turn == TurnEnd::Interrupted
    }

    /// Returns the state in words, with its sign.
    pub fn state(&self) -> &'static str {
        match self.agent.status {
            Status::Dead | Status::Reaped => "✗ dead",
            Status::Running if self.works => "◐ working",
            Status::Running if self.has_stopped() => "⏸ stopped",
            Status::Running if self.has_failed() => "✗ failed",
            Status::Running if self.merged => "✓ merged",
            Status::Running if self.is_interrupted() => "⏸ stopped",
            Status::Running => "· idle",
        }
    }
}

impl Engine {
    /// Reads all agents that are not reaped, children below their parents.
    pub async fn tree(&self) -> Result<Vec<Branch>, EngineError> {
        branches(self).await
    }
}

/// Reads all agents that are not reaped, children below their parents.
async fn branches(engine: &EngineReader) -> Result<Vec<Branch>, EngineError> {
    let mut agents = engine.agents().await?;
    agents.retain(|agent| agent.status != Status::Reaped);
    let known: Vec<AgentId> = agents.iter().map(|agent| agent.id).collect();
    let mut below: HashMap<Option<AgentId>, Vec<AgentRecord>> = HashMap::new();
    for agent in agents {
        // An agent whose parent is hidden appears as a root.
        let parent = agent.parent.filter(|parent| known.contains(parent));
        below.entry(parent).or_default().push(agent);
    }
    let mut left = Vec::new();
    add(&mut left, below.remove(&None), 0);
    let mut tree = Vec::new();
    while let Some((mut agent, depth)) = left.pop() {
        add(&mut left, below.remove(&Some(agent.id)), depth + 1);
        let lives = agent.status == Status::Running;
        let works = lives && engine.works(agent.id).await?;
        let is_held = match &agent.owner {
            Some(owner) => engine.reader().is_process_alive(owner).await?,
            None => false,
        };
        let is_looked_at = lives && !works && (!is_held || agent.parent.is_some());
        let end = if is_looked_at {
            turn_end(engine, &agent, is_held).await?
        } else {
            TurnEnd::Other
        };
        let is_root = agent.parent.is_none();
        let last_turn = match end {
            TurnEnd::Failed | TurnEnd::Interrupted if is_root => TurnEnd::Other,
            // Its holder lives and has settled the turn, so it is idle.
            TurnEnd::Stopped if is_held && is_root => TurnEnd::Other,
            TurnEnd::Stopped if is_held => TurnEnd::Interrupted,
            end => end,
        };
        agent.owner = agent.owner.filter(|_| is_held);
        tree.push(Branch {
            agent,
            depth,
            works,
            last_turn,
            merged: false,
        });
    }
    find_merged(engine, &mut tree).await?;
    Ok(tree)
}

/// Finds the outcome of an idle agent's last turn.
async fn turn_end(
    engine: &EngineReader,
    agent: &AgentRecord,
    is_held: bool,
) -> Result<TurnEnd, EngineError> {
    if let Some(known) = engine.hub().turn_end_at(agent.id, agent.head) {
        return Ok(known);
    }
    // Its owner is gone and has not settled the turn.
    let is_unsettled = agent.owner.is_some() && !is_held;
    let end = if is_unsettled && is_in_a_turn(engine, agent.id).await? {
        TurnEnd::Stopped
    } else {
        last_turn(engine.reader(), agent.id).await?.end()
    };
    engine.hub().remember_turn_end(agent.id, agent.head, end);
    Ok(end)
}

/// Finds merged agents.
/// A merge is newer than the merged rows, so only the newest rows of a parent are read.
async fn find_merged(engine: &EngineReader, tree: &mut [Branch]) -> Result<(), EngineError> {
    let mut since: HashMap<AgentId, Micros> = HashMap::new();
    for branch in tree.iter().filter(|branch| branch.may_be_merged()) {
        if let (Some(parent), Some(touched)) = (branch.agent.parent, branch.agent.touched_at) {
            let oldest = since.entry(parent).or_insert(touched);
            *oldest = touched.min(*oldest);
        }
    }
    let mut merged = HashMap::new();
    for (parent, since) in since {
        merged.extend(merged_into(engine.reader(), parent, since).await?);
    }
    for branch in tree.iter_mut().filter(|branch| branch.may_be_merged()) {
        let upto = merged.get(&branch.agent.id);
        branch.merged = upto.is_some_and(|upto| *upto >= branch.agent.head);
    }
    Ok(())
}

/// Pushes agents on a stack, so that the first one is popped first.
fn add(left: &mut Vec<(AgentRecord, usize)>, agents: Option<Vec<AgentRecord>>, depth: usize) {
    let agents = agents.unwrap_or_default().into_iter().rev();
    left.extend(agents.map(|agent| (agent, depth)));
}

/// Formats the tree as text, one line per agent.
pub(crate) async fn tree(engine: &EngineReader) -> Result<String, EngineError> {
    let now = engine.environment().now();
    let mut output = String::new();
    for branch in branches(engine).await? {
        let name = format!("{}{}", "  ".repeat(branch.depth), branch.agent.name);
        let touched = branch.agent.touched_at;
        let silent = touched.map_or_else(String::new, |at| since(at, now));
        let (state, rows) = (branch.state(), counted(branch.agent.head.0, "row"));
        let _ = writeln!(output, "{name:<32} {state:<10} {silent:>8}  {rows}");
    }
    Ok(output.trim_end().to_owned())
}
