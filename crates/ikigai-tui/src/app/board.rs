//! The board: all agents, in groups or as a tree, and what can be done with each from here.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ikigai_core::data::{Amounts, Cause};
use ikigai_core::{AgentId, Row, RowRef};
use ikigai_engine::{Answer, Intent, Status, Stop};

use super::needle::Needle;
use super::prompt::Purpose;
use super::tail::Tail;
use super::{App, Known, Mode, Pane, State, Wish};
use crate::key::{Code, Key};
use crate::keys::Action;

/// A question can be answered from here after it was on the screen for so long.
const LOOKED_AT: Duration = Duration::from_millis(700);

/// From this many columns on the right half shows what the marked agent does.
pub(super) const WIDE: u16 = 100;

/// How many agents that were only peeked at are kept.
const MOST_PEEKED: usize = 8;

/// See the module.
#[derive(Default)]
pub(super) struct Board {
    /// The agent that is marked.
    pub(super) marked: Option<AgentId>,
    /// Whether the tree is shown, and not groups.
    pub(super) is_tree: bool,
    /// Only names that have this are shown.
    pub(super) filter: String,
    /// Whether what the marked agent does is shown; none: if there is room beside the list.
    peeks: Option<bool>,
    /// The first row of the list that is seen.
    pub(super) top: usize,
    /// Whom to kill, once that is confirmed.
    kills: Option<AgentId>,
    /// The question that is on the screen, and since when.
    pub(super) asked: Option<(RowRef, Instant)>,
    pub(super) tail: Tail,
    /// Which agents are in which rows of the screen.
    pub(super) drawn: Vec<Option<AgentId>>,
}

/// How agents are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    NeedsYou,
    Working,
    Failed,
    Done,
    Idle,
    Dead,
}

impl Group {
    pub(super) const ALL: [Self; 6] = [
        Self::NeedsYou,
        Self::Working,
        Self::Failed,
        Self::Done,
        Self::Idle,
        Self::Dead,
    ];

    pub(super) const fn heading(self) -> &'static str {
        match self {
            Self::NeedsYou => "Needs you",
            Self::Working => "Working",
            Self::Failed => "Failed",
            Self::Done => "Done, not merged",
            Self::Idle => "Idle",
            Self::Dead => "Dead",
        }
    }

    /// Where an agent belongs.
    pub(super) fn of(known: &Known) -> Self {
        match known.state() {
            State::Asks => Self::NeedsYou,
            State::Works => Self::Working,
            State::Failed => Self::Failed,
            State::Done => Self::Done,
            State::Idle if known.has_result() => Self::Done,
            State::Idle | State::Merged | State::Stopped => Self::Idle,
            State::Dead => Self::Dead,
        }
    }
}

/// One row of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Heading(Group),
    Agent(AgentId),
}

impl App {
    /// Opens the board.
    pub(super) fn open_board(&mut self) {
        let asking = self.roster.asking().next().map(|(id, _)| id);
        self.mode = Mode::Board(Box::new(Board {
            marked: Some(asking.unwrap_or(self.current)),
            ..Board::default()
        }));
        self.selection = None;
        self.said = None;
        self.asked.wait();
        self.wishes.push(Wish::ReadTree);
        self.look_at_marked();
    }

    pub(super) fn board(&self) -> Option<&Board> {
        match &self.mode {
            Mode::Board(board) => Some(board),
            _ => None,
        }
    }

    pub(super) fn board_mut(&mut self) -> Option<&mut Board> {
        match &mut self.mode {
            Mode::Board(board) => Some(board),
            _ => None,
        }
    }

    /// The rows of the list, from top to bottom.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let Some(board) = self.board() else {
            return Vec::new();
        };
        let needle = Needle::new(&board.filter);
        let all: Vec<_> = self
            .roster
            .all()
            .filter(|(_, known)| needle.is_in(&known.branch.agent.name))
            .collect();
        if board.is_tree {
            return all.iter().map(|(id, _)| Entry::Agent(*id)).collect();
        }
        let mut entries = Vec::new();
        for group in Group::ALL {
            let members = all.iter().filter(|(_, known)| Group::of(known) == group);
            let members: Vec<_> = members.map(|(id, _)| Entry::Agent(*id)).collect();
            if !members.is_empty() {
                entries.push(Entry::Heading(group));
                entries.extend(members);
            }
        }
        entries
    }

    /// The agents of the list, from top to bottom.
    fn listed(&self) -> Vec<AgentId> {
        let agents = self.entries().into_iter().filter_map(|entry| match entry {
            Entry::Agent(agent) => Some(agent),
            Entry::Heading(_) => None,
        });
        agents.collect()
    }

    /// The agent that is marked; the first, if that is not in the list.
    pub(super) fn marked(&self) -> Option<AgentId> {
        let listed = self.listed();
        let marked = self.board()?.marked;
        let is_there = marked.filter(|marked| listed.contains(marked));
        is_there.or(listed.first().copied())
    }

    fn marked_known(&self) -> Option<(AgentId, &Known)> {
        let marked = self.marked()?;
        Some((marked, self.roster.get(marked)?))
    }

    /// Whether what the marked agent does is shown, and whether beside the list.
    pub(super) fn peeks(&self) -> bool {
        let is_wide = self.columns >= WIDE;
        self.board()
            .is_some_and(|board| board.peeks.unwrap_or(is_wide))
    }

    /// Does what a key means on the board; says whether it means something there.
    pub(super) fn act_in_board(&mut self, action: Action) -> bool {
        let Some(board) = self.board_mut() else {
            return false;
        };
        match action {
            Action::BoardUp => self.mark_beside(-1),
            Action::BoardDown => self.mark_beside(1),
            Action::BoardPeek => {
                let peeks = self.peeks();
                if let Some(board) = self.board_mut() {
                    board.peeks = Some(!peeks);
                }
                self.look_at_marked();
            }
            Action::BoardTree => board.is_tree = !board.is_tree,
            Action::BoardFilter => {
                let filter = board.filter.clone();
                self.prompt(Purpose::Filter, "only names with", &filter);
            }
            Action::BoardLeave if !board.filter.is_empty() => board.filter.clear(),
            Action::BoardLeave => self.mode = Mode::Input,
            action => {
                if !is_deed(action) {
                    return false;
                }
                if let Some((agent, known)) = self.marked_known() {
                    let name = known.branch.agent.name.clone();
                    self.do_with(action, agent, &name);
                }
            }
        }
        true
    }

    fn do_with(&mut self, action: Action, agent: AgentId, name: &str) {
        match action {
            Action::BoardGo if agent == self.current => self.mode = Mode::Input,
            Action::BoardGo => self.wishes.push(Wish::Show(agent)),
            Action::BoardNo => self.refuse_marked(name),
            _ if !self.lives(agent) => self.say(format!("{name} is dead")),
            Action::BoardMail => {
                self.prompt(Purpose::Mail(agent), format!("mail to {name}"), "");
            }
            Action::BoardInterrupt => self.interrupt_marked(agent, name),
            Action::BoardMerge => self.merge_marked(agent, name),
            Action::BoardFork => {
                self.wishes.push(Wish::Show(agent));
                let fork = Intent::Command("/fork".to_owned());
                self.wishes.push(Wish::Say(agent, fork));
            }
            Action::BoardKill => self.ask_to_kill(agent, name),
            _ => {}
        }
    }

    fn lives(&self, agent: AgentId) -> bool {
        let known = self.roster.get(agent);
        known.is_some_and(|known| known.branch.agent.status == Status::Running)
    }

    fn mark_beside(&mut self, step: isize) {
        let listed = self.listed();
        let place = self
            .marked()
            .and_then(|marked| listed.iter().position(|id| *id == marked));
        let beside = place.and_then(|place| place.checked_add_signed(step));
        if let Some(agent) = beside.and_then(|place| listed.get(place)) {
            self.mark_agent(*agent);
        }
    }

    fn mark_agent(&mut self, agent: AgentId) {
        if let Some(board) = self.board_mut() {
            board.marked = Some(agent);
        }
        self.look_at_marked();
    }

    /// Has read what the board shows of agents around the marked one.
    pub(super) fn look_at_marked(&mut self) {
        let Some(marked) = self.marked() else { return };
        if self.peeks() {
            self.wishes.push(Wish::Peek(marked));
        }
        let listed = self.listed();
        let place = listed.iter().position(|id| *id == marked).unwrap_or(0);
        let rows = usize::from(self.rows);
        let near = listed
            .iter()
            .skip(place.saturating_sub(rows))
            .take(2 * rows);
        let unread = near.filter(|id| self.roster.get(**id).is_some_and(Known::is_unread));
        let unread: Vec<_> = unread.copied().collect();
        if !unread.is_empty() {
            self.wishes.push(Wish::ReadBoard(unread));
        }
    }

    /// Takes in what agents cost, and the newest rows of some, oldest first.
    pub fn set_board(&mut self, costs: &[(AgentId, Amounts)], newest: &[(AgentId, Vec<Row>)]) {
        for (agent, amounts) in costs {
            self.roster.set_cost(*agent, amounts);
        }
        for (agent, rows) in newest {
            self.roster.set_newest(*agent, rows);
        }
    }

    /// Takes in an agent that is looked at without being shown.
    pub fn peek(&mut self, pane: Pane) {
        let agent = pane.agent.state.agent();
        self.panes.insert(agent, pane);
        self.peeked.push_back(agent);
        while self.peeked.len() > MOST_PEEKED {
            if let Some(oldest) = self.peeked.pop_front().filter(|id| *id != self.current) {
                self.panes.remove(&oldest);
            }
        }
    }

    /// Shows only agents whose names have a text.
    pub(super) fn filter_board(&mut self, filter: String) {
        if let Some(board) = self.board_mut() {
            board.filter = filter;
            board.top = 0;
        }
        self.look_at_marked();
    }

    /// Refuses what the marked agent asks, if that was to be seen long enough.
    fn refuse_marked(&mut self, name: &str) {
        let marked = self.marked_known();
        let question = marked.and_then(|(_, known)| known.live.questions.first());
        let Some(call) = question.map(|question| question.call) else {
            return self.say(format!("{name} asks nothing"));
        };
        let seen = self.board().and_then(|board| board.asked);
        let is_seen = seen.is_some_and(|(asked, since)| {
            asked == call && self.now.saturating_duration_since(since) >= LOOKED_AT
        });
        if is_seen {
            self.answer(call, Answer::No(None));
        } else {
            self.say("this was only just asked: look first");
        }
    }

    fn interrupt_marked(&mut self, agent: AgentId, name: &str) {
        let state = self.roster.get(agent).map(Known::state);
        if matches!(state, Some(State::Works | State::Asks)) {
            let stop = Intent::Stop(Stop::Interrupt(Cause::User));
            self.wishes.push(Wish::Say(agent, stop));
        } else {
            self.say(format!("{name} does not work"));
        }
    }

    fn merge_marked(&mut self, agent: AgentId, name: &str) {
        let known = self.roster.get(agent);
        match known.and_then(|known| known.branch.agent.parent) {
            Some(parent) => {
                let merge = Wish::PreviewMerge(parent, name.to_owned());
                self.wishes.push(merge);
            }
            None => self.say(format!("{name} has no parent to merge into")),
        }
    }

    /// Sends mail to an agent.
    pub(super) fn send_mail(&mut self, to: AgentId, text: &str) {
        let name = self.name_of(to).unwrap_or_else(|| to.to_string());
        if text.is_empty() {
            return self.say("nothing was sent");
        }
        self.say(format!("✉ {name}: {text}"));
        self.command_here(format!("/send {name} {text}"));
    }

    fn ask_to_kill(&mut self, agent: AgentId, name: &str) {
        if self
            .roster
            .get(agent)
            .is_some_and(|known| known.branch.agent.parent.is_none())
        {
            return self.say(format!("{name} is a root, which cannot be killed"));
        }
        if let Some(board) = self.board_mut() {
            board.kills = Some(agent);
        }
    }

    /// What is asked before somebody is killed.
    pub(super) fn kill_question(&self) -> Option<String> {
        let agent = self.board()?.kills?;
        let name = self.name_of(agent)?;
        let with = match self.descendants(agent) {
            0 => String::new(),
            1 => " and its child".to_owned(),
            below => format!(" and its {below} descendants"),
        };
        Some(format!("kill {name}{with}?"))
    }

    /// Takes a key as the answer to whether to kill, if that is asked.
    pub(super) fn kill_answered(&mut self, key: Key) -> bool {
        let Some(agent) = self.board_mut().and_then(|board| board.kills.take()) else {
            return false;
        };
        if key.code == Code::Char('y') && !key.ctrl && !key.alt {
            let name = self.name_of(agent).unwrap_or_else(|| agent.to_string());
            self.command_here(format!("/kill {name}"));
        }
        true
    }

    /// How many living agents are below one.
    fn descendants(&self, agent: AgentId) -> usize {
        let mut family = VecDeque::from([agent]);
        let mut count = 0;
        while let Some(parent) = family.pop_front() {
            let children = self.roster.children(parent);
            let living = children.filter(|(id, _)| self.lives(*id));
            let before = family.len();
            family.extend(living.map(|(id, _)| id));
            count += family.len() - before;
        }
        count
    }

    /// Has a living agent carry out a command that is about others: the one that is shown, or the
    /// nearest of its ancestors.
    fn command_here(&mut self, line: String) {
        let mut speaker = self.current;
        while !self.lives(speaker) {
            let known = self.roster.get(speaker);
            match known.and_then(|known| known.branch.agent.parent) {
                Some(parent) => speaker = parent,
                None => break,
            }
        }
        self.wishes.push(Wish::Say(speaker, Intent::Command(line)));
    }

    /// Marks the agent in a row of the screen.
    pub(super) fn click_board(&mut self, row: u16) {
        let agent = self
            .board()
            .and_then(|board| *board.drawn.get(usize::from(row))?);
        if let Some(agent) = agent {
            self.mark_agent(agent);
        }
    }

    /// Marks an agent further up or down.
    pub(super) fn wheel_board(&mut self, rows: isize) {
        self.mark_beside(rows.signum());
    }
}

fn is_deed(action: Action) -> bool {
    matches!(
        action,
        Action::BoardGo
            | Action::BoardNo
            | Action::BoardMail
            | Action::BoardInterrupt
            | Action::BoardMerge
            | Action::BoardFork
            | Action::BoardKill
    )
}
