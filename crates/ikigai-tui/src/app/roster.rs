//! All agents as far as the screen knows them: who there is, and what each does.

use std::collections::HashMap;
use std::time::Instant;

use ikigai_core::data::{self, Amounts, ErrorData, ToolCallData, UsageData};
use ikigai_core::{AgentId, Kind, Row};
use ikigai_engine::{AgentRecord, Branch, Outcome, Status, TurnEnd, Update};

use crate::app::live::Live;

/// How much of what somebody said is kept for a row.
const LAST_CHARS: usize = 200;

/// The tree is read at once when somebody new is heard of, so there are few.
const MOST_NOTES: usize = 512;

/// How an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It asks something.
    Asks,
    /// It works.
    Works,
    /// It has ended its work, and nobody has taken over what came of it.
    Done,
    /// It has ended its work, and its parent has taken over what came of it.
    Merged,
    /// Its last turn failed.
    Failed,
    /// Its last turn was interrupted.
    Stopped,
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
    /// Whether it has said something, if that is known.
    answered: Option<bool>,
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
    early: HashMap<AgentId, Early>,
}

/// What was told of an agent before the tree was read.
#[derive(Default)]
struct Early {
    live: Live,
    /// What is to be noted of it, oldest first.
    notes: Vec<Note>,
}

/// What is remembered of something that was told.
struct Note {
    update: Update,
    at: Instant,
    is_looked_at: bool,
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
        match self.state() {
            State::Works | State::Asks | State::Done => true,
            State::Failed | State::Stopped => self.is_news,
            State::Merged | State::Idle | State::Dead => false,
        }
    }

    /// Whether there is something of it that its parent has not taken over.
    pub fn has_result(&self) -> bool {
        self.answered == Some(true) && self.branch.agent.parent.is_some() && !self.branch.merged
    }

    /// Whether it is not known what it said last.
    pub fn is_unread(&self) -> bool {
        self.answered.is_none()
    }

    /// How it is.
    pub fn state(&self) -> State {
        match self.branch.agent.status {
            Status::Dead | Status::Reaped => State::Dead,
            Status::Running if !self.live.questions.is_empty() => State::Asks,
            Status::Running if self.works() => State::Works,
            Status::Running if self.branch.has_failed() => State::Failed,
            Status::Running if self.branch.merged => State::Merged,
            Status::Running if self.branch.is_interrupted() => State::Stopped,
            Status::Running if self.is_news && self.branch.agent.parent.is_some() => State::Done,
            Status::Running => State::Idle,
        }
    }
}

impl Roster {
    /// Whether a log that grows may do so by the work of another process.
    pub fn others_may_move(&self) -> bool {
        let mut known = self.known.values();
        let is_held = |known: &Known| !known.is_ours && known.branch.agent.owner.is_some();
        known.clone().any(is_held) || !known.any(|known| known.live.is_busy())
    }

    /// Takes in the tree as it is stored.
    pub fn set(&mut self, tree: Vec<Branch>) {
        self.order = tree.iter().map(|branch| branch.agent.id).collect();
        let mut before = std::mem::take(&mut self.known);
        for branch in tree {
            let id = branch.agent.id;
            let known = match before.remove(&id) {
                Some(known) => Known { branch, ..known },
                None => self.met(branch),
            };
            self.known.insert(id, known);
        }
        // The tree does not tell of them, and nothing happens to them any more.
        before.retain(|_, known| known.branch.agent.status == Status::Reaped);
        self.known.extend(before);
    }

    /// Takes in an agent that is not in the tree, because it is reaped.
    pub fn meet(&mut self, agent: AgentRecord) {
        let (id, depth) = (agent.id, 0);
        let branch = Branch {
            agent,
            depth,
            works: false,
            last_turn: TurnEnd::Other,
            merged: false,
        };
        let known = self.met(branch);
        self.known.insert(id, known);
    }

    /// An agent that was not known, with what was told of it before.
    fn met(&mut self, branch: Branch) -> Known {
        let early = self.early.remove(&branch.agent.id).unwrap_or_default();
        let mut known = Known {
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

    /// Takes in what the engine tells of an agent.
    pub fn told(&mut self, agent: AgentId, update: &Update, now: Instant, is_looked_at: bool) {
        let note = || Note {
            update: update.clone(),
            at: now,
            is_looked_at,
        };
        if let Some(known) = self.known.get_mut(&agent) {
            known.live.told(update, now);
            known.note(&note());
        } else {
            let early = self.early.entry(agent).or_default();
            early.live.told(update, now);
            if early.notes.len() < MOST_NOTES {
                early.notes.push(note());
            }
        }
    }

    /// Takes in what an agent used, if nothing newer was told.
    pub fn set_cost(&mut self, agent: AgentId, amounts: &Amounts) {
        let known = self.known.get_mut(&agent);
        if let Some(known) = known.filter(|known| known.tokens == 0) {
            known.used(amounts);
        }
    }

    /// Takes in the newest rows of an agent, oldest first. What was told of it is newer.
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

    /// What an agent does; it may not be known yet.
    pub fn live(&self, agent: AgentId) -> Option<&Live> {
        let known = self.known.get(&agent).map(|known| &known.live);
        known.or_else(|| self.early.get(&agent).map(|early| &early.live))
    }

    /// The same, to change it.
    pub fn live_mut(&mut self, agent: AgentId) -> &mut Live {
        match self.known.get_mut(&agent) {
            Some(known) => &mut known.live,
            None => &mut self.early.entry(agent).or_default().live,
        }
    }

    /// An agent.
    pub fn get(&self, agent: AgentId) -> Option<&Known> {
        self.known.get(&agent)
    }

    /// Says that another process has an agent work from here on.
    pub fn give_away(&mut self, agent: AgentId) {
        if let Some(known) = self.known.get_mut(&agent) {
            known.is_ours = false;
        }
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
    fn note(&mut self, note: &Note) {
        self.heard = Some(note.at);
        match &note.update {
            // Only agents of this process take lines in.
            Update::ShellStarted { .. } | Update::ShellEnded | Update::Received(_) => {
                self.is_ours = true;
            }
            Update::Began => {
                self.is_ours = true;
                self.is_news = false;
                self.branch.last_turn = TurnEnd::Other;
            }
            Update::Ended(outcome) => {
                self.is_news = !note.is_looked_at;
                self.branch.last_turn = match outcome {
                    _ if self.branch.agent.parent.is_none() => TurnEnd::Other,
                    Outcome::Completed => TurnEnd::Other,
                    Outcome::Interrupted(_) => TurnEnd::Interrupted,
                    Outcome::Failed(_) => TurnEnd::Failed,
                };
            }
            Update::Stored(row) | Update::Settled(row) => self.stored(row),
            Update::Text(text) => append_last(&mut self.last, text),
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

    /// What it used in its whole life.
    fn used(&mut self, sum: &Amounts) {
        let parts = [sum.input, sum.cache_read, sum.cache_write, sum.output];
        self.tokens = parts.into_iter().flatten().fold(0, u64::saturating_add);
        self.cost = sum.cost_nano_usd;
    }
}

/// Keeps the end of what is said, from a word on.
fn append_last(last: &mut String, text: &str) {
    last.push_str(text);
    let surplus = last.chars().count().saturating_sub(LAST_CHARS);
    if surplus > 0 {
        let end: String = last.chars().skip(surplus).collect();
        let words = end.split_once(char::is_whitespace);
        *last = format!("…{}", words.map_or(end.as_str(), |(_, words)| words));
    }
}
