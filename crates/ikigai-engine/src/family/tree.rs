//! The tree of agents.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use ikigai_core::counts::counted;
use ikigai_core::{AgentId, Micros, Seq};
use ikigai_store::{AgentOutline, AgentRecord, Status, TurnRow};

use super::merges::{self, MergeParent};
use super::wait::is_in_a_turn;
use crate::figures::since;
use crate::frontend::TurnEnd;
use crate::last_turn::{TurnState, last_turn};
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
    /// Its newest row may be a call that waits for an answer.
    pub may_ask: bool,
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
///
/// Two queries, whatever the number of agents: rows of an agent are read only if its newest ones are
/// unusual and have changed since the last call.
async fn branches(engine: &EngineReader) -> Result<Vec<Branch>, EngineError> {
    let outlines = engine.reader().outlines().await?;
    let known: HashSet<AgentId> = outlines.iter().map(|outline| outline.agent.id).collect();
    let mut below: HashMap<Option<AgentId>, Vec<AgentOutline>> = HashMap::new();
    for outline in outlines {
        // An agent whose parent is hidden appears as a root.
        let parent = outline.agent.parent.filter(|parent| known.contains(parent));
        below.entry(parent).or_default().push(outline);
    }
    let mut left = Vec::new();
    add(&mut left, below.remove(&None), 0);
    let mut tree = Vec::new();
    while let Some((outline, depth)) = left.pop() {
        add(&mut left, below.remove(&Some(outline.agent.id)), depth + 1);
        tree.push(branch(engine, outline, depth).await?);
    }
    find_merged(engine, &mut tree).await?;
    Ok(tree)
}

async fn branch(
    engine: &EngineReader,
    outline: AgentOutline,
    depth: usize,
) -> Result<Branch, EngineError> {
    let AgentOutline {
        mut agent, is_held, ..
    } = outline;
    let turn = TurnState::of(outline.turn_row.as_ref());
    let row = outline.turn_row.as_ref();
    let may_ask = turn.is_none() || row.is_some_and(TurnRow::may_be_call);
    let lives = agent.status == Status::Running;
    let works = lives && works(engine, &agent, is_held, turn).await?;
    let is_looked_at = lives && !works && (!is_held || agent.parent.is_some());
    let end = if is_looked_at {
        turn_end(engine, &agent, is_held, turn).await?
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
    Ok(Branch {
        agent,
        depth,
        works,
        may_ask,
        last_turn,
        merged: false,
    })
}

/// Returns true if an agent is in a turn; see [`EngineReader::works`].
async fn works(
    engine: &EngineReader,
    agent: &AgentRecord,
    is_held: bool,
    turn: Option<TurnState>,
) -> Result<bool, EngineError> {
    if let Some(working) = engine.hub().is_working(agent.id) {
        return Ok(working);
    }
    engine.hub().look_outside();
    match turn {
        _ if !is_held => Ok(false),
        Some(turn) => Ok(turn.is_busy),
        None => is_in_a_turn(engine, agent.id).await,
    }
}

/// Finds the outcome of an idle agent's last turn.
async fn turn_end(
    engine: &EngineReader,
    agent: &AgentRecord,
    is_held: bool,
    turn: Option<TurnState>,
) -> Result<TurnEnd, EngineError> {
    // Its owner is gone and has not settled the turn.
    let is_unsettled = agent.owner.is_some() && !is_held;
    if let Some(turn) = turn {
        let is_stopped = is_unsettled && turn.is_busy;
        return Ok(if is_stopped {
            TurnEnd::Stopped
        } else {
            turn.end
        });
    }
    if let Some(known) = engine.hub().turn_end_at(agent.id, agent.head) {
        return Ok(known);
    }
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
    let heads: HashMap<AgentId, Seq> = tree
        .iter()
        .map(|branch| (branch.agent.id, branch.agent.head))
        .collect();
    let mut since: HashMap<AgentId, Micros> = HashMap::new();
    for branch in tree.iter().filter(|branch| branch.may_be_merged()) {
        if let (Some(parent), Some(touched)) = (branch.agent.parent, branch.agent.touched_at) {
            let oldest = since.entry(parent).or_insert(touched);
            *oldest = touched.min(*oldest);
        }
    }
    let parents = since.into_iter().map(|(agent, since)| MergeParent {
        agent,
        since,
        head: heads.get(&agent).copied(),
    });
    let merged = merges::merged_children(engine, parents.collect()).await?;
    for branch in tree.iter_mut().filter(|branch| branch.may_be_merged()) {
        let upto = merged.get(&branch.agent.id);
        branch.merged = upto.is_some_and(|upto| *upto >= branch.agent.head);
    }
    Ok(())
}

/// Pushes agents on a stack, so that the first one is popped first.
fn add(left: &mut Vec<(AgentOutline, usize)>, agents: Option<Vec<AgentOutline>>, depth: usize) {
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
