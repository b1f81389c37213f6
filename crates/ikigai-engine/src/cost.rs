//! Cost of agents.
//!
//! Each `usage` row holds the cost of one response and the sum over its agent's own rows. So the
//! newest such row of each agent gives its cost; only costs by model or day need all of them.

use std::collections::{BTreeMap, HashMap};

use ikigai_core::data::{self, Amounts, UsageData};
use ikigai_core::{AgentId, Row, Seq, Span};
use ikigai_store::{AgentRecord, ReadLog, StoreError};

use crate::family_tree::FamilyTree;
use crate::{EngineError, EngineReader};

/// `usage` rows per query, which bounds the time that other readers wait.
const PAGE_ROWS: usize = 1024;

/// Cost of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The agent.
    pub agent: AgentRecord,
    /// Number of its ancestors.
    pub depth: usize,
    /// Cost of the agent's responses, without descendants.
    pub own: Amounts,
    /// The same with all its descendants, dead ones too.
    pub family: Amounts,
    /// Number of its descendants.
    pub descendants: usize,
}

/// Grouping of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostBy {
    /// Provider and model.
    Model,
    /// Day of the response.
    Day,
}

/// Cost of a group of responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The model or the day.
    pub name: String,
    /// Number of responses.
    pub responses: u64,
    /// Their cost.
    pub amounts: Amounts,
}

impl EngineReader {
    /// Returns the cost of every agent, parents before children. The time depends on the number of
    /// agents, not on their rows.
    pub async fn costs(&self) -> Result<Vec<Cost>, EngineError> {
        let agents = self.agents().await?;
        let sums = sums(self.reader(), agents.iter().map(|agent| agent.id)).await?;
        let mut costs = in_order(agents);
        for cost in &mut costs {
            cost.own = sums.get(&cost.agent.id).cloned().unwrap_or_default();
            cost.family = cost.own.clone();
        }
        // Parents come first, so from the end each family is complete before it is added.
        let places: HashMap<_, _> = costs.iter().map(|cost| cost.agent.id).zip(0..).collect();
        for at in (0..costs.len()).rev() {
            let (family, below) = (costs[at].family.clone(), costs[at].descendants + 1);
            let parent = costs[at]
                .agent
                .parent
                .and_then(|parent| places.get(&parent));
            if let Some(parent) = parent.filter(|parent| **parent < at) {
                let parent = &mut costs[*parent];
                parent.family = parent.family.plus(&family);
                parent.descendants += below;
            }
        }
        Ok(costs)
    }

    /// Reads the cost of an agent's own responses from its newest `usage` row.
    pub async fn own_cost(&self, agent: AgentId) -> Result<Amounts, EngineError> {
        let mut sums = sums(self.reader(), [agent].into_iter()).await?;
        Ok(sums.remove(&agent).unwrap_or_default())
    }

    /// Returns the cost of these agents by model or day. Reads all their `usage` rows in pages, one
    /// row per response.
    pub async fn cost_shares(
        &self,
        agents: &[AgentId],
        by: CostBy,
    ) -> Result<Vec<Share>, EngineError> {
        let mut shares: BTreeMap<String, Share> = BTreeMap::new();
        for agent in agents {
            let mut span = Span::whole(*agent);
            loop {
                let rows = self.reader().usage(span, PAGE_ROWS).await?;
                for row in &rows {
                    let usage: UsageData = data::read(row.data.as_deref());
                    let name = match by {
                        CostBy::Model => model_of(&usage),
                        CostBy::Day => self.environment().day(row.created_at),
                    };
                    let share = shares.entry(name.clone()).or_insert_with(|| Share {
                        name,
                        ..Share::default()
                    });
                    share.responses += 1;
                    share.amounts = share.amounts.plus(&usage.amounts);
                }
                match rows.last() {
                    Some(oldest) if rows.len() == PAGE_ROWS && oldest.at.seq > Seq(1) => {
                        span.to = oldest.at.seq.before();
                    }
                    _ => break,
                }
            }
        }
        Ok(shares.into_values().collect())
    }

    /// Returns an agent and all its descendants, dead ones too.
    pub async fn family_of(&self, agent: AgentId) -> Result<Vec<AgentId>, EngineError> {
        Ok(FamilyTree::new(self.agents().await?).below(agent))
    }
}

/// Returns the total cost of some agents.
pub(crate) async fn spent(
    store: &dyn ReadLog,
    agents: Vec<AgentId>,
) -> Result<Amounts, StoreError> {
    let newest = store.newest_usage(agents).await?;
    Ok(newest
        .iter()
        .map(sum_of)
        .fold(Amounts::default(), |sum, one| sum.plus(&one)))
}

async fn sums(
    store: &dyn ReadLog,
    agents: impl Iterator<Item = AgentId>,
) -> Result<HashMap<AgentId, Amounts>, StoreError> {
    let newest = store.newest_usage(agents.collect()).await?;
    Ok(newest
        .iter()
        .map(|row| (row.at.agent, sum_of(row)))
        .collect())
}

/// Returns the sum over an agent's own rows, from one of its `usage` rows.
fn sum_of(row: &Row) -> Amounts {
    let usage: UsageData = data::read(row.data.as_deref());
    usage.sum.unwrap_or(usage.amounts)
}

fn model_of(usage: &UsageData) -> String {
    let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "?".to_owned());
    format!("{}:{}", word(&usage.provider), word(&usage.model))
}

/// Orders agents as a tree, without costs; unreachable ones come last.
fn in_order(agents: Vec<AgentRecord>) -> Vec<Cost> {
    let mut below: HashMap<Option<AgentId>, Vec<AgentRecord>> = HashMap::new();
    for agent in agents {
        below.entry(agent.parent).or_default().push(agent);
    }
    let mut ordered = Vec::new();
    let mut left: Vec<(AgentRecord, usize)> = Vec::new();
    let mut roots = below.remove(&None);
    loop {
        let agents = roots.take().unwrap_or_default().into_iter().rev();
        left.extend(agents.map(|agent| (agent, 0)));
        while let Some((agent, depth)) = left.pop() {
            let children = below.remove(&Some(agent.id)).unwrap_or_default();
            left.extend(children.into_iter().rev().map(|child| (child, depth + 1)));
            ordered.push(Cost {
                agent,
                depth,
                own: Amounts::default(),
                family: Amounts::default(),
                descendants: 0,
            });
        }
        // The log has an unknown parent, or a cycle of ancestors.
        let Some(lost) = below.keys().min().copied() else {
            return ordered;
        };
        roots = below.remove(&lost);
    }
}
