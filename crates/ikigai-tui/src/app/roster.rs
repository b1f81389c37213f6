//! The roster: all agents that the screen knows, with their activities.

use std::collections::HashMap;
use std::time::Instant;

use ikigai_core::data::Amounts;
use ikigai_core::{AgentId, Kind, Row};
use ikigai_engine::{AgentRecord, Branch, Live, LiveChange, Outcome, Status, TurnEnd, UiEvent};

use crate::line::TextLine;
use crate::markdown::{MarkdownStyle, Streaming};

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
    layout: AnswerLayout,
}

/// All agents that the screen knows.
#[derive(Default)]
pub struct Roster {
    /// Agents that are not reaped, parents before their children.
    order: Vec<AgentId>,
    known: HashMap<AgentId, KnownAgent>,
    /// Work of agents that are not in the tree yet.
    early: HashMap<AgentId, (Live, AnswerLayout)>,
}

/// Layout of an answer that streams.
#[derive(Default)]
struct AnswerLayout {
    drawn: Option<Streaming>,
    /// Bytes that are laid out.
    upto: usize,
}

impl AnswerLayout {
    /// Returns the rows of the text; lays out only the text since the last call.
    fn lines(&mut self, text: &str, style: MarkdownStyle) -> &[TextLine] {
        let width = style.width;
        let drawn = self.drawn.get_or_insert_with(|| Streaming::new(style));
        drawn.push(text.get(self.upto..).unwrap_or_default());
        self.upto = text.len();
        drawn.lines(width)
    }
}

impl KnownAgent {
    /// Reports whether a turn runs. Events of this process are newer than the tree.
    fn works(&self) -> bool {
        if self.live.is_ours {
            self.live.is_busy()
        } else {
            self.branch.works
        }
    }

    /// Reports whether its parent's screen shows it: it works, asks, or has just finished.
    pub fn is_worth_a_row(&self) -> bool {
        match self.state() {
            AgentActivity::Works | AgentActivity::Asks | AgentActivity::Done => true,
            AgentActivity::Failed | AgentActivity::Stopped => self.live.is_news,
            AgentActivity::Merged | AgentActivity::Idle | AgentActivity::Dead => false,
        }
    }

    /// Reports whether it has a result that its parent has not merged.
    pub fn has_result(&self) -> bool {
        let answered = self.live.summary.answered == Some(true);
        answered && self.branch.agent.parent.is_some() && !self.branch.merged
    }

    /// Reports whether its newest rows are not read.
    pub fn is_unread(&self) -> bool {
        self.live.summary.answered.is_none()
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
            Status::Running if self.live.is_news && self.branch.agent.parent.is_some() => {
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
        let is_held =
            |known: &KnownAgent| !known.live.is_ours && known.branch.agent.owner.is_some();
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
            may_ask: false,
            last_turn: TurnEnd::Other,
            merged: false,
        };
        let known = self.new_agent(branch);
        self.known.insert(id, known);
    }

    /// Creates an agent, with its earlier work.
    fn new_agent(&mut self, branch: Branch) -> KnownAgent {
        let (live, layout) = self.early.remove(&branch.agent.id).unwrap_or_default();
        let mut known = KnownAgent {
            branch,
            live,
            layout,
        };
        if known.live.turn.is_some() || known.live.outcome.is_some() {
            known.set_last_turn();
        }
        known
    }

    /// Applies an event of an agent.
    pub fn apply<'e>(
        &mut self,
        agent: AgentId,
        event: &'e UiEvent,
        now: Instant,
        is_looked_at: bool,
    ) -> LiveChange<'e> {
        let (live, layout) = self.live_and_layout(agent);
        let change = live.apply(event, now);
        if live.text.is_empty() {
            *layout = AnswerLayout::default();
        }
        live.is_news &= !is_looked_at;
        if let Some(known) = self.known.get_mut(&agent) {
            known.follow(&change);
        }
        change
    }

    /// Sets the usage of an agent, unless an event did.
    pub fn set_cost(&mut self, agent: AgentId, amounts: &Amounts) {
        let known = self.known.get_mut(&agent);
        if let Some(known) = known.filter(|known| known.live.summary.tokens == 0) {
            known.live.summary.set_usage(amounts);
        }
    }

    /// Sets the newest rows of an agent, oldest first. Its events are newer.
    pub fn set_newest(&mut self, agent: AgentId, rows: &[Row]) {
        let known = self.known.get_mut(&agent);
        let Some(known) = known.filter(|known| known.is_unread()) else {
            return;
        };
        let summary = &mut known.live.summary;
        let last = std::mem::take(&mut summary.last);
        for row in rows {
            summary.add_row(row);
        }
        summary.answered.get_or_insert(false);
        if !last.is_empty() {
            summary.last = last;
        }
    }

    /// Returns the unstored work of an agent, which may not be in the tree yet.
    pub fn live(&self, agent: AgentId) -> Option<&Live> {
        let known = self.known.get(&agent).map(|known| &known.live);
        known.or_else(|| self.early.get(&agent).map(|(live, _)| live))
    }

    /// Returns the unstored work of an agent, to change it.
    pub fn live_mut(&mut self, agent: AgentId) -> &mut Live {
        self.live_and_layout(agent).0
    }

    /// Returns the rows of the answer that an agent streams.
    pub fn answer_lines(&mut self, agent: AgentId, style: MarkdownStyle) -> &[TextLine] {
        let (live, layout) = self.live_and_layout(agent);
        if live.text.is_empty() {
            return &[];
        }
        layout.lines(&live.text, style)
    }

    fn live_and_layout(&mut self, agent: AgentId) -> (&mut Live, &mut AnswerLayout) {
        if let Some(known) = self.known.get_mut(&agent) {
            return (&mut known.live, &mut known.layout);
        }
        let (live, layout) = self.early.entry(agent).or_default();
        (live, layout)
    }

    /// Returns the agent with an id.
    pub fn get(&self, agent: AgentId) -> Option<&KnownAgent> {
        self.known.get(&agent)
    }

    /// Notes that another process runs an agent from now on.
    pub fn give_away(&mut self, agent: AgentId) {
        if let Some(known) = self.known.get_mut(&agent) {
            known.live.is_ours = false;
        }
    }

    /// Notes that an agent is on the screen.
    pub fn look_at(&mut self, agent: AgentId) {
        if let Some(known) = self.known.get_mut(&agent) {
            known.live.is_news = false;
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
    /// Keeps its place in the tree up to date with its events, until the tree is read again.
    fn follow(&mut self, change: &LiveChange<'_>) {
        match change {
            LiveChange::Began | LiveChange::Ended { .. } => self.set_last_turn(),
            LiveChange::Row(row) | LiveChange::Settled(row) => {
                let kind = row.kind.read_as();
                self.branch.merged &= !matches!(kind, Some(Kind::Assistant | Kind::User));
            }
            LiveChange::State
            | LiveChange::Answer(_)
            | LiveChange::Restarted
            | LiveChange::Retry(_)
            | LiveChange::ToolLine(_)
            | LiveChange::ShellLine(_)
            | LiveChange::Question(_)
            | LiveChange::Unasked(_)
            | LiveChange::Line(_)
            | LiveChange::Preview { .. }
            | LiveChange::Notice(_)
            | LiveChange::Warning(_)
            | LiveChange::GrantOffer(_)
            | LiveChange::StoreAway(_)
            | LiveChange::Next(_) => {}
        }
    }

    fn set_last_turn(&mut self) {
        self.branch.last_turn = match &self.live.outcome {
            _ if self.branch.agent.parent.is_none() => TurnEnd::Other,
            None | Some(Outcome::Completed) => TurnEnd::Other,
            Some(Outcome::Interrupted(_)) => TurnEnd::Interrupted,
            Some(Outcome::Failed(_)) => TurnEnd::Failed,
        };
    }
}
