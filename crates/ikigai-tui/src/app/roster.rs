//! The roster: all agents that the screen knows, with their activities.

use std::collections::HashMap;
use std::time::Instant;

use ikigai_core::data::{self, Amounts, ErrorData, ToolCallData, UsageData};
use ikigai_core::{AgentId, Kind, Row};
use ikigai_engine::{AgentRecord, Branch, Outcome, Status, TurnEnd, UiEvent};

use crate::app::live::Live;

/// Characters kept of an agent's newest words.
const LAST_CHARS: usize = 200;

/// Limit of events kept for an unknown agent. The tree is read at once, so few arrive.
const MOST_NOTES: usize = 512;

/// Activity of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentActivity {
    /// It waits for an approval.
    Asks,
    /// It works.
    Works,
    /// It has finished, and its result is not merged.
    Done,
    /// It has finished, and its parent has merged its result.
    Merged,
    /// Its last turn failed.
    Failed,
    /// Its last turn was interrupted.
    Stopped,
    /// Idle.
    Idle,
    /// It is dead.
    Dead,
}

/// An agent of the roster.
pub struct KnownAgent {
    /// Its place in the tree.
    pub branch: Branch,
    /// Its unstored work.
    pub live: Live,
    /// Its newest words or call.
    pub last: String,
    /// Time of its newest event in this process.
    pub heard: Option<Instant>,
    /// Tokens used.
    pub tokens: u64,
    /// Cost of them, in 10⁻⁹ dollars.
    pub cost: Option<u64>,
    /// True if it has answered; none if unknown.
    answered: Option<bool>,
    /// True if this process runs it.
    is_ours: bool,
    /// True if it has ended a turn since it was last on the screen.
    pub is_news: bool,
}

/// All agents that the screen knows.
#[derive(Default)]
pub struct Roster {
    /// Agents that are not reaped, parents before their children.
    order: Vec<AgentId>,
    known: HashMap<AgentId, KnownAgent>,
    /// Events of agents that are not in the tree yet.
    early: HashMap<AgentId, Early>,
}

/// Events of an agent before the tree is read.
#[derive(Default)]
struct Early {
    live: Live,
    /// Its events, oldest first.
    notes: Vec<EarlyEvent>,
}

/// An event before the tree is read.
struct EarlyEvent {
    update: UiEvent,
    at: Instant,
    is_looked_at: bool,
}

impl KnownAgent {
    /// Reports whether a turn runs. Events of this process are newer than the tree.
    fn works(&self) -> bool {
        if self.is_ours {
            self.live.is_busy()
        } else {
            self.branch.works
        }
    }

    /// Reports whether its parent's screen shows it: it works, asks, or has just finished.
    pub fn is_worth_a_row(&self) -> bool {
        match self.state() {
            AgentActivity::Works | AgentActivity::Asks | AgentActivity::Done => true,
            AgentActivity::Failed | AgentActivity::Stopped => self.is_news,
            AgentActivity::Merged | AgentActivity::Idle | AgentActivity::Dead => false,
        }
    }

    /// Reports whether it has a result that its parent has not merged.
    pub fn has_result(&self) -> bool {
        self.answered == Some(true) && self.branch.agent.parent.is_some() && !self.branch.merged
    }

    /// Reports whether its newest rows are not read.
    pub fn is_unread(&self) -> bool {
        self.answered.is_none()
    }

    /// Returns its activity.
    pub fn state(&self) -> AgentActivity {
        match self.branch.agent.status {
            Status::Dead | Status::Reaped => AgentActivity::Dead,
            Status::Running if !self.live.questions.is_empty() => AgentActivity::Asks,
            Status::Running if self.works() => AgentActivity::Works,
            Status::Running if self.branch.has_failed() => AgentActivity::Failed,
            Status::Running if self.branch.merged => AgentActivity::Merged,
            Status::Running if self.branch.is_interrupted() => AgentActivity::Stopped,
            Status::Running if self.is_news && self.branch.agent.parent.is_some() => {
                AgentActivity::Done
            }
            Status::Running => AgentActivity::Idle,
        }
    }
}

impl Roster {
    /// Reports whether another process may append rows.
    pub fn others_may_move(&self) -> bool {
        let mut known = self.known.values();
        let is_held = |known: &KnownAgent| !known.is_ours && known.branch.agent.owner.is_some();
        known.clone().any(is_held) || !known.any(|known| known.live.is_busy())
    }

    /// Replaces the tree.
    pub fn set(&mut self, tree: Vec<Branch>) {
        self.order = tree.iter().map(|branch| branch.agent.id).collect();
        let mut before = std::mem::take(&mut self.known);
        for branch in tree {
            let id = branch.agent.id;
            let known = match before.remove(&id) {
                Some(known) => KnownAgent { branch, ..known },
                None => self.new_agent(branch),
            };
            self.known.insert(id, known);
        }
        // Reaped agents are not in the tree, and do not change any more.
        before.retain(|_, known| known.branch.agent.status == Status::Reaped);
        self.known.extend(before);
    }

    /// Adds a reaped agent, which is not in the tree.
    pub fn add_agent(&mut self, agent: AgentRecord) {
        let (id, depth) = (agent.id, 0);
        let branch = Branch {
            agent,
            depth,
            works: false,
            last_turn: TurnEnd::Other,
            merged: false,
        };
        let known = self.new_agent(branch);
        self.known.insert(id, known);
    }

    /// Creates an agent, with its earlier events.
    fn new_agent(&mut self, branch: Branch) -> KnownAgent {
        let early = self.early.remove(&branch.agent.id).unwrap_or_default();
        let mut known = KnownAgent {
            branch,
            live: early.live,
            last: String::new(),
            heard: None,
            tokens: 0,
            cost: None,
            answered: None,
            is_ours: false,
            is_news: false,
        };
        for note in &early.notes {
            known.note(note);
        }
        known
    }

    /// Handles an event of an agent.
    pub fn handle_event(
        &mut self,
        agent: AgentId,
        update: &UiEvent,
        now: Instant,
        is_looked_at: bool,
    ) {
        let note = || EarlyEvent {
            update: update.clone(),
            at: now,
            is_looked_at,
        };
        if let Some(known) = self.known.get_mut(&agent) {
            known.live.handle_event(update, now);
            known.note(&note());
        } else {
            let early = self.early.entry(agent).or_default();
            early.live.handle_event(update, now);
            if early.notes.len() < MOST_NOTES {
                early.notes.push(note());
            }
        }
    }

    /// Sets the usage of an agent, unless an event did.
    pub fn set_cost(&mut self, agent: AgentId, amounts: &Amounts) {
        let known = self.known.get_mut(&agent);
        if let Some(known) = known.filter(|known| known.tokens == 0) {
            known.used(amounts);
        }
    }

    /// Sets the newest rows of an agent, oldest first. Its events are newer.
    pub fn set_newest(&mut self, agent: AgentId, rows: &[Row]) {
        let known = self.known.get_mut(&agent);
        let Some(known) = known.filter(|known| known.is_unread()) else {
            return;
        };
        let (told, merged) = (std::mem::take(&mut known.last), known.branch.merged);
        for row in rows {
            known.stored(row);
        }
        known.answered.get_or_insert(false);
        known.branch.merged = merged;
        if !told.is_empty() {
            known.last = told;
        }
    }

    /// Returns the unstored work of an agent, which may not be in the tree yet.
    pub fn live(&self, agent: AgentId) -> Option<&Live> {
        let known = self.known.get(&agent).map(|known| &known.live);
        known.or_else(|| self.early.get(&agent).map(|early| &early.live))
    }

    /// Returns the unstored work of an agent, to change it.
    pub fn live_mut(&mut self, agent: AgentId) -> &mut Live {
        match self.known.get_mut(&agent) {
            Some(known) => &mut known.live,
            None => &mut self.early.entry(agent).or_default().live,
        }
    }

    /// Returns the agent with an id.
    pub fn get(&self, agent: AgentId) -> Option<&KnownAgent> {
        self.known.get(&agent)
    }

    /// Notes that another process runs an agent from now on.
    pub fn give_away(&mut self, agent: AgentId) {
        if let Some(known) = self.known.get_mut(&agent) {
            known.is_ours = false;
        }
    }

    /// Notes that an agent is on the screen.
    pub fn look_at(&mut self, agent: AgentId) {
        if let Some(known) = self.known.get_mut(&agent) {
            known.is_news = false;
        }
    }

    /// Returns all agents, parents before their children.
    pub fn all(&self) -> impl Iterator<Item = (AgentId, &KnownAgent)> + '_ {
        let known = |id: &AgentId| Some((*id, self.known.get(id)?));
        self.order.iter().filter_map(known)
    }

    /// Returns the children of an agent that are not reaped.
    pub fn children(&self, parent: AgentId) -> impl Iterator<Item = (AgentId, &KnownAgent)> + '_ {
        let is_child =
            move |known: &&(AgentId, &KnownAgent)| known.1.branch.agent.parent == Some(parent);
        self.all().filter(move |known| is_child(&known))
    }

    /// An agent and its siblings. They are children of the same parent, or roots of the same
    /// session.
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

    /// Returns the agents that wait for an approval, oldest question first.
    pub fn asking(&self) -> impl Iterator<Item = (AgentId, &KnownAgent)> + '_ {
        self.all()
            .filter(|(_, known)| known.state() == AgentActivity::Asks)
    }

    /// Returns the number of agents at work.
    pub fn working(&self) -> usize {
        let works = |known: &&KnownAgent| {
            matches!(known.state(), AgentActivity::Works | AgentActivity::Asks)
        };
        self.known.values().filter(works).count()
    }
}

impl KnownAgent {
    fn note(&mut self, note: &EarlyEvent) {
        self.heard = Some(note.at);
        match &note.update {
            // Only agents of this process accept lines.
            UiEvent::ShellStarted { .. } | UiEvent::ShellEnded | UiEvent::Received(_) => {
                self.is_ours = true;
            }
            UiEvent::Began => {
                self.is_ours = true;
                self.is_news = false;
                self.branch.last_turn = TurnEnd::Other;
            }
            UiEvent::Ended(outcome) => {
                self.is_news = !note.is_looked_at;
                self.branch.last_turn = match outcome {
                    _ if self.branch.agent.parent.is_none() => TurnEnd::Other,
                    Outcome::Completed => TurnEnd::Other,
                    Outcome::Interrupted(_) => TurnEnd::Interrupted,
                    Outcome::Failed(_) => TurnEnd::Failed,
                };
            }
            UiEvent::Stored(row) | UiEvent::Settled(row) => self.stored(row),
            UiEvent::Text(text) => append_last(&mut self.last, text),
            _ => {}
        }
    }

    fn stored(&mut self, row: &Row) {
        let data = row.data.as_deref();
        match row.kind.read_as() {
            Some(Kind::Assistant) => {
                self.answered = Some(true);
                self.branch.merged = false;
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
            Some(Kind::User) => {
                self.last.clear();
                self.branch.merged = false;
            }
            Some(Kind::Error) if data::read::<ErrorData>(data).omit.is_none() => {
                self.last.clear();
                append_last(&mut self.last, row.content.as_deref().unwrap_or_default());
            }
            Some(Kind::Usage) => {
                let used: UsageData = data::read(data);
                self.used(&used.sum.unwrap_or(used.amounts));
            }
            _ => {}
        }
    }

    /// Sets its usage.
    fn used(&mut self, sum: &Amounts) {
        let parts = [sum.input, sum.cache_read, sum.cache_write, sum.output];
        self.tokens = parts.into_iter().flatten().fold(0, u64::saturating_add);
        self.cost = sum.cost_nano_usd;
    }
}

/// Appends text, and keeps the end from a word boundary on.
fn append_last(last: &mut String, text: &str) {
    last.push_str(text);
    let surplus = last.chars().count().saturating_sub(LAST_CHARS);
    if surplus > 0 {
        let end: String = last.chars().skip(surplus).collect();
        let words = end.split_once(char::is_whitespace);
        *last = format!("…{}", words.map_or(end.as_str(), |(_, words)| words));
    }
}
