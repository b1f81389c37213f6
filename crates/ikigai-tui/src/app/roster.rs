//! All agents as far as the screen knows them: who there is, and what each does.

use std::collections::HashMap;
use std::time::Instant;

use ikigai_core::data::{self, ToolCallData, UsageData};
use ikigai_core::{AgentId, Kind, Row};
use ikigai_engine::{Branch, Status, Update};

use crate::app::live::Live;

/// How much of what somebody said is kept for a row.
const LAST_CHARS: usize = 200;

/// How an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It asks something.
    Asks,
    /// It works.
    Works,
    /// It has ended its work, and nobody has taken over what came of it.
    Done,
    /// It has nothing to do.
    Idle,
    /// It is dead.
    Dead,
}

/// One agent.
pub struct Known {
    /// Where it stands in the tree.
    pub branch: Branch,
    /// What it does.
    pub live: Live,
    /// What it said or called last.
    pub last: String,
    /// When something was heard of it last, in this process.
    pub heard: Option<Instant>,
    /// What it has used, in tokens.
    pub tokens: u64,
    /// What that cost, in 10⁻⁹ dollars.
    pub cost: Option<u64>,
    /// This process has it work.
    is_ours: bool,
    /// It has ended a turn since it was looked at last.
    pub is_news: bool,
}

/// See the module.
#[derive(Default)]
pub struct Roster {
    /// All that are not reaped, parents before their children.
    order: Vec<AgentId>,
    known: HashMap<AgentId, Known>,
    /// What was told of agents that are not known yet.
    early: HashMap<AgentId, Live>,
}

impl Known {
    /// Whether it is in the middle of a turn: what this process was told is newer than what was read.
    fn works(&self) -> bool {
        if self.is_ours {
            self.live.is_busy()
        } else {
            self.branch.works
        }
    }

    /// Whether its parent's screen shows it: it works, asks, or has just ended its work.
    pub fn is_worth_a_row(&self) -> bool {
        matches!(self.state(), State::Works | State::Asks | State::Done)
    }

    /// How it is.
    pub fn state(&self) -> State {
        match self.branch.agent.status {
            Status::Dead | Status::Reaped => State::Dead,
            Status::Running if !self.live.questions.is_empty() => State::Asks,
            Status::Running if self.works() => State::Works,
            Status::Running if self.is_news && self.branch.agent.parent.is_some() => State::Done,
            Status::Running => State::Idle,
        }
    }
}

impl Roster {
    /// Takes in the tree as it is stored.
    pub fn set(&mut self, tree: Vec<Branch>) {
        self.order = tree.iter().map(|branch| branch.agent.id).collect();
        let mut before = std::mem::take(&mut self.known);
        for branch in tree {
            let id = branch.agent.id;
            let known = match before.remove(&id) {
                Some(known) => Known { branch, ..known },
                None => Known {
                    branch,
                    live: self.early.remove(&id).unwrap_or_default(),
                    last: String::new(),
                    heard: None,
                    tokens: 0,
                    cost: None,
                    is_ours: false,
                    is_news: false,
                },
            };
            self.known.insert(id, known);
        }
    }

    /// Takes in what the engine tells of an agent.
    pub fn told(&mut self, agent: AgentId, update: &Update, now: Instant, is_looked_at: bool) {
        let Some(known) = self.known.get_mut(&agent) else {
            return self.early.entry(agent).or_default().told(update, now);
        };
        known.heard = Some(now);
        known.live.told(update, now);
        match update {
            Update::Began => {
                known.is_ours = true;
                known.is_news = false;
            }
            Update::Ended(_) => known.is_news = !is_looked_at,
            Update::Stored(row) | Update::Settled(row) => known.stored(row),
            Update::Text(text) => append_last(&mut known.last, text),
            _ => {}
        }
    }

    /// What an agent does; it may not be known yet.
    pub fn live(&self, agent: AgentId) -> Option<&Live> {
        let known = self.known.get(&agent).map(|known| &known.live);
        known.or_else(|| self.early.get(&agent))
    }

    /// The same, to change it.
    pub fn live_mut(&mut self, agent: AgentId) -> &mut Live {
        match self.known.get_mut(&agent) {
            Some(known) => &mut known.live,
            None => self.early.entry(agent).or_default(),
        }
    }

    /// An agent.
    pub fn get(&self, agent: AgentId) -> Option<&Known> {
        self.known.get(&agent)
    }

    /// Says that somebody looks at an agent.
    pub fn look_at(&mut self, agent: AgentId) {
        if let Some(known) = self.known.get_mut(&agent) {
            known.is_news = false;
        }
    }

    /// All agents, parents before their children.
    pub fn all(&self) -> impl Iterator<Item = (AgentId, &Known)> + '_ {
        let known = |id: &AgentId| Some((*id, self.known.get(id)?));
        self.order.iter().filter_map(known)
    }

    /// The children of an agent that are not reaped.
    pub fn children(&self, parent: AgentId) -> impl Iterator<Item = (AgentId, &Known)> + '_ {
        let is_child =
            move |known: &&(AgentId, &Known)| known.1.branch.agent.parent == Some(parent);
        self.all().filter(move |known| is_child(&known))
    }

    /// Those beside an agent in the tree, itself among them: children of the same parent, or roots of
    /// the same session.
    pub fn siblings(&self, agent: AgentId) -> Vec<AgentId> {
        let Some(own) = self.get(agent).map(|known| &known.branch.agent) else {
            return Vec::new();
        };
        let beside = self.all().filter(|(_, known)| {
            let other = &known.branch.agent;
            other.parent == own.parent && (own.parent.is_some() || other.session == own.session)
        });
        beside.map(|(id, _)| id).collect()
    }

    /// All that ask something, oldest question first.
    pub fn asking(&self) -> impl Iterator<Item = (AgentId, &Known)> + '_ {
        self.all().filter(|(_, known)| known.state() == State::Asks)
    }

    /// How many work.
    pub fn working(&self) -> usize {
        let works = |known: &&Known| matches!(known.state(), State::Works | State::Asks);
        self.known.values().filter(works).count()
    }
}

impl Known {
    fn stored(&mut self, row: &Row) {
        let data = row.data.as_deref();
        match row.kind.read_as() {
            Some(Kind::Assistant) => {
                let text = row.content.as_deref().unwrap_or_default();
                if !text.trim().is_empty() {
                    self.last.clear();
                    append_last(&mut self.last, text);
                }
            }
            Some(Kind::ToolCall) => {
                let name = data::read::<ToolCallData>(data).name.unwrap_or_default();
                let shown = row.content.as_deref().unwrap_or_default();
                self.last = format!("{name}: {}", shown.lines().next().unwrap_or_default());
            }
            Some(Kind::User) => self.last.clear(),
            Some(Kind::Usage) => {
                let used: UsageData = data::read(data);
                let sum = used.sum.unwrap_or(used.amounts);
                let parts = [sum.input, sum.cache_read, sum.cache_write, sum.output];
                self.tokens = parts.into_iter().flatten().fold(0, u64::saturating_add);
                self.cost = sum.cost_nano_usd;
            }
            _ => {}
        }
    }
}

/// Keeps the end of what is said.
fn append_last(last: &mut String, text: &str) {
    last.push_str(text);
    let surplus = last.chars().count().saturating_sub(LAST_CHARS);
    if surplus > 0 {
        *last = last.chars().skip(surplus).collect();
    }
}
