//! Spending caps of agents, as `/budget` sets them.

use std::time::Duration;

use ikigai_core::data::Amounts;
use ikigai_core::settings::Spend;
use ikigai_core::{AgentId, Micros};
use ikigai_store::{Agent, BudgetEffect, Effect, SpendingLimit};

use crate::cost::spent;
use crate::family_tree::FamilyTree;
use crate::{EngineError, EngineReader, figures};

/// Spending cap of an agent, in most cases with its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Agent with the cap.
    pub agent: AgentId,
    /// Its name.
    pub name: String,
    /// Limit in billionths of a dollar.
    pub nano_usd: Option<u64>,
    /// Limit in tokens.
    pub tokens: Option<u64>,
    /// Most running agents, the one with the cap included.
    pub agents: Option<u64>,
    /// Limit of the time, and the time at which it began.
    pub time: Option<(Duration, Micros)>,
    /// True if it covers the agent alone.
    pub is_own: bool,
}

/// A cap with the part of it that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedCap {
    /// The cap.
    pub cap: Cap,
    /// Amount spent.
    pub spent: Amounts,
    /// Number of running agents below it, if it limits them.
    pub running: usize,
    /// Time since it was set.
    pub elapsed: Duration,
}

impl Cap {
    /// Reads the cap in the settings of an agent.
    pub(crate) fn of(agent: &Agent) -> Option<Self> {
        let settings = agent.state.settings();
        let spend = settings.spend.as_ref()?;
        let cap = Self {
            agent: agent.state.agent(),
            name: settings.name.clone().unwrap_or_default(),
            nano_usd: spend.usd.as_ref().and_then(nano_of),
            tokens: spend.tokens,
            agents: spend.agents,
            time: time_of(spend),
            is_own: spend.own == Some(true),
        };
        let limits = [cap.nano_usd, cap.tokens, cap.agents];
        let is_set = cap.time.is_some() || limits.iter().any(Option::is_some);
        is_set.then_some(cap)
    }

    /// Returns the limit on money and tokens, if there is one.
    pub(crate) fn spending_limit(&self) -> Option<SpendingLimit> {
        let limit = SpendingLimit {
            root: self.agent,
            nano_usd: self.nano_usd,
            tokens: self.tokens,
        };
        (self.nano_usd.is_some() || self.tokens.is_some()).then_some(limit)
    }

    /// Returns the part of the time that is over at a moment.
    pub(crate) fn elapsed(&self, now: Micros) -> Duration {
        let since = self.time.map_or(now, |(_, since)| since);
        Duration::from_micros(u64::try_from(now.0.saturating_sub(since.0)).unwrap_or(0))
    }

    /// Returns true if the time is over.
    pub(crate) fn is_over(&self, now: Micros) -> bool {
        let most = self.time.map(|(most, _)| most);
        most.is_some_and(|most| self.elapsed(now) >= most)
    }

    /// Returns the agents that the cap covers, as `asking` sees them.
    pub(crate) fn whose(&self, asking: AgentId) -> String {
        let agent = if self.agent == asking {
            "this agent".to_owned()
        } else {
            format!("`{}`", self.name)
        };
        if self.is_own {
            agent
        } else {
            format!("{agent} and its descendants")
        }
    }
}

impl UsedCap {
    /// Returns true if the cap refuses requests.
    pub fn is_used_up(&self) -> bool {
        let money = self.spent.cost_nano_usd.unwrap_or(0);
        self.cap.nano_usd.is_some_and(|most| money >= most)
            || (self.cap.tokens).is_some_and(|most| self.spent.tokens() >= most)
            || (self.cap.time).is_some_and(|(most, _)| self.elapsed >= most)
    }

    /// Returns the used part of the cap: `$0.41 of $5.00`.
    pub fn used(&self) -> String {
        let money = self.cap.nano_usd.map(|most| {
            let spent = self.spent.cost_nano_usd.unwrap_or(0);
            format!("{} of {}", figures::dollars(spent), figures::dollars(most))
        });
        let tokens = self.cap.tokens.map(|most| {
            let spent = figures::tokens(self.spent.tokens());
            format!("{spent} of {} tokens", figures::tokens(most))
        });
        let agents = self.cap.agents;
        let agents = agents.map(|most| format!("{} of {most} agents", self.running));
        let time = self.cap.time.map(|(most, _)| {
            let elapsed = figures::duration(self.elapsed.min(most));
            format!("{elapsed} of {}", figures::duration(most))
        });
        let parts = [money, tokens, agents, time];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Returns the stored amount of dollars in billionths; none if it is out of range.
fn nano_of(usd: &serde_json::Number) -> Option<u64> {
    let nano = usd.as_f64()? * 1e9;
    let fits = (0.0..9e18).contains(&nano);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it lies between nothing and what fits"
    )]
    let whole = nano.round() as u64;
    fits.then_some(whole)
}

fn time_of(spend: &Spend) -> Option<(Duration, Micros)> {
    let most = Duration::from_secs(spend.seconds?);
    Some((most, Micros(spend.since?)))
}

/// Returns the caps above requests of an agent: its own, and those of its ancestors for their
/// descendants; the nearest first.
///
/// Reads nothing for a root.
pub(crate) async fn caps(engine: &EngineReader, agent: &Agent) -> Result<Vec<Cap>, EngineError> {
    let store = engine.reader();
    let mut caps = Vec::new();
    caps.extend(Cap::of(agent));
    let mut seen = vec![agent.state.agent()];
    let mut parent = parent_of(agent);
    while let Some(next) = parent.filter(|next| !seen.contains(next)) {
        seen.push(next);
        if store.agent(next).await?.is_none() {
            break;
        }
        let ancestor = Agent::restore(store, next).await?;
        caps.extend(Cap::of(&ancestor).filter(|cap| !cap.is_own));
        parent = parent_of(&ancestor);
    }
    Ok(caps)
}

/// Returns the caps above an agent with their used parts. Reads the agents of the store.
pub(crate) async fn used_caps(
    engine: &EngineReader,
    agent: &Agent,
) -> Result<Vec<UsedCap>, EngineError> {
    let caps = caps(engine, agent).await?;
    if caps.is_empty() {
        return Ok(Vec::new());
    }
    let family = FamilyTree::new(engine.agents().await?);
    let now = engine.environment().now();
    let mut used = Vec::new();
    for cap in caps {
        let payers = if cap.is_own {
            vec![cap.agent]
        } else {
            family.below(cap.agent)
        };
        used.push(UsedCap {
            spent: spent(engine.reader(), payers).await?,
            running: family.living_below(cap.agent).len(),
            elapsed: cap.elapsed(now),
            cap,
        });
    }
    Ok(used)
}

/// Returns the reason for refusing a request, if a cap is used up.
pub(crate) async fn used_up(
    engine: &EngineReader,
    agent: &Agent,
) -> Result<Option<String>, EngineError> {
    let caps = used_caps(engine, agent).await?;
    let used_up = caps.iter().find(|used| used.is_used_up());
    let asking = agent.state.agent();
    Ok(used_up.map(|used| refusal(&used.cap, asking, &used.used())))
}

/// Returns the text of a refused request.
pub(crate) fn refusal(cap: &Cap, asking: AgentId, used: &str) -> String {
    format!(
        "the budget of {} is used up: {used} · /budget to raise it, then /retry",
        cap.whose(asking)
    )
}

/// Returns the effects that count a new child of an agent under the caps above it.
pub(crate) async fn count_child(
    engine: &EngineReader,
    parent: &Agent,
) -> Result<Vec<Effect>, EngineError> {
    let caps = caps(engine, parent).await?;
    let counted = caps.iter().filter(|cap| !cap.is_own).filter_map(|cap| {
        let (root, most) = (cap.agent, cap.agents?);
        Some(Effect::Budget(BudgetEffect::CountAgent { root, most }))
    });
    Ok(counted.collect())
}

fn parent_of(agent: &Agent) -> Option<AgentId> {
    agent.state.fork()?.parent_uuid
}
