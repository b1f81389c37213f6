//! The board: all agents, in groups or as a tree, and actions on each.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ikigai_core::{AgentId, RowRef};
use ikigai_engine::figures::with_descendants;
use ikigai_engine::{Answer, UserRequest};

use super::layer::{Area, Handled, Layer};
use super::line_prompt::{LinePrompt, PromptOutcome};
use super::needle::Needle;
use super::tail::Tail;
use super::{AgentActivity, EngineRequest, KnownAgent, LoadRequest, Pane, UiContext};
use crate::key::{KeyCode, KeyPress, MouseAction, MouseEvent};
use crate::keys::{self, Action};
use crate::paint::Grid;

/// Time that a question must be on the screen before it can be refused here.
const LOOKED_AT: Duration = Duration::from_millis(700);

/// Fewest columns of a board with the selected agent in its right half.
pub(super) const WIDE: u16 = 100;

/// Most panes of agents that only the board shows.
const MOST_PEEKED: usize = 8;

/// Time between two frames that count seconds.
const SECOND: Duration = Duration::from_secs(1);

/// List of all agents.
#[derive(Default)]
pub(super) struct Board {
    marked: Option<AgentId>,
    /// Shows the tree instead of groups.
    pub(super) is_tree: bool,
    /// Text that names must contain.
    pub(super) filter: String,
    /// Shows the selected agent's activity; none: if there is room next to the list.
    peeks: Option<bool>,
    /// First row of the list on the screen.
    pub(super) top: usize,
    /// Agent to kill after a confirmation.
    kills: Option<AgentId>,
    /// Question on the screen, and since when.
    pub(super) question_since: Option<(RowRef, Instant)>,
    pub(super) tail: Tail,
    /// Agents by row of the last frame.
    pub(super) drawn: Vec<Option<AgentId>>,
    pub(super) prompt: Option<(BoardPrompt, LinePrompt)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoardPrompt {
    /// Text of mail to an agent.
    Mail(AgentId),
    /// Text that names must contain.
    Filter,
}

ikigai_core::words::named_variants! {
    /// Group of agents.
    pub(super) enum BoardGroup: heading {
        NeedsYou = "Needs approval",
        Working = "Working",
        Failed = "Failed",
        Done = "Done, not merged",
        Idle = "Idle",
        Dead = "Ended",
    }
}

impl BoardGroup {
    /// Returns the group of an agent.
    pub(super) fn of(known: &KnownAgent) -> Self {
        match known.state() {
            AgentActivity::Asks => Self::NeedsYou,
            AgentActivity::Works => Self::Working,
            AgentActivity::Failed => Self::Failed,
            AgentActivity::Done => Self::Done,
            AgentActivity::Idle if known.has_result() => Self::Done,
            AgentActivity::Idle | AgentActivity::Merged | AgentActivity::Stopped => Self::Idle,
            AgentActivity::Dead => Self::Dead,
        }
    }
}

/// Row of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoardRow {
    Heading(BoardGroup),
    Agent(AgentId),
    /// Index of a process of the agent above.
    Process(usize),
}

impl Board {
    /// Opens the board.
    pub(super) fn open(ctx: &mut UiContext) {
        let asking = ctx.roster.asking().next().map(|(id, _)| id);
        let board = Self {
            marked: Some(asking.unwrap_or(ctx.current)),
            ..Self::default()
        };
        ctx.selection = None;
        ctx.toast = None;
        ctx.effects.push(LoadRequest::Tree);
        board.load_near_mark(ctx);
        ctx.open(board);
    }

    /// Returns the rows of the list, from top to bottom.
    pub(super) fn entries(&self, ctx: &UiContext) -> Vec<BoardRow> {
        let needle = Needle::new(&self.filter);
        let all: Vec<_> = ctx
            .roster
            .all()
            .filter(|(_, known)| needle.is_in(&known.branch.agent.name))
            .collect();
        let mut entries = Vec::new();
        if self.is_tree {
            for (id, _) in &all {
                push_agent(*id, ctx, &mut entries);
            }
            return entries;
        }
        for group in BoardGroup::ALL {
            let members = all
                .iter()
                .filter(|(_, known)| BoardGroup::of(known) == group);
            for (place, (id, _)) in members.enumerate() {
                if place == 0 {
                    entries.push(BoardRow::Heading(group));
                }
                push_agent(*id, ctx, &mut entries);
            }
        }
        entries
    }

    /// Returns the agents of the list, from top to bottom.
    fn agents(&self, ctx: &UiContext) -> Vec<AgentId> {
        let entries = self.entries(ctx).into_iter();
        let agents = entries.filter_map(|entry| match entry {
            BoardRow::Agent(agent) => Some(agent),
            BoardRow::Heading(_) | BoardRow::Process(_) => None,
        });
        agents.collect()
    }

    /// Returns the selected agent; the first one, if that is not in the list.
    pub(super) fn selected(&self, ctx: &UiContext) -> Option<AgentId> {
        let agents = self.agents(ctx);
        let marked = self.marked.filter(|marked| agents.contains(marked));
        marked.or(agents.first().copied())
    }

    /// Returns true if the board shows the selected agent's activity.
    pub(super) fn peeks(&self, ctx: &UiContext) -> bool {
        self.peeks.unwrap_or(ctx.columns >= WIDE)
    }

    /// Acts on the selected agent.
    fn act_on(&mut self, action: Action, agent: AgentId, name: &str, ctx: &mut UiContext) {
        match action {
            Action::BoardGo if agent == ctx.current => ctx.close(),
            Action::BoardGo => ctx.effects.push(EngineRequest::Show(agent)),
            Action::BoardNo => self.refuse(agent, name, ctx),
            _ if !ctx.lives(agent) => ctx.toast(format!("{name} has ended")),
            Action::BoardMail => {
                let title = format!("message to {name}:");
                self.prompt = Some((BoardPrompt::Mail(agent), LinePrompt::new(title, "")));
            }
            Action::BoardInterrupt => interrupt(agent, name, ctx),
            Action::BoardMerge => merge(agent, name, ctx),
            Action::BoardFork => {
                ctx.effects.push(EngineRequest::Show(agent));
                let fork = UserRequest::parse("/fork");
                ctx.effects.push(EngineRequest::Send(agent, fork));
            }
            Action::BoardKill => self.ask_to_kill(agent, name, ctx),
            _ => {}
        }
    }

    fn move_mark(&mut self, step: isize, ctx: &mut UiContext) {
        let agents = self.agents(ctx);
        let marked = self.selected(ctx);
        let place = marked.and_then(|marked| agents.iter().position(|id| *id == marked));
        let next = place.and_then(|place| place.checked_add_signed(step));
        if let Some(agent) = next.and_then(|place| agents.get(place)) {
            self.mark(*agent, ctx);
        }
    }

    fn mark(&mut self, agent: AgentId, ctx: &mut UiContext) {
        self.marked = Some(agent);
        self.load_near_mark(ctx);
    }

    /// Loads the data of agents near the selected one.
    fn load_near_mark(&self, ctx: &mut UiContext) {
        let Some(marked) = self.selected(ctx) else {
            return;
        };
        if self.peeks(ctx) {
            ctx.effects.push(LoadRequest::Peek(marked));
        }
        let agents = self.agents(ctx);
        let place = agents.iter().position(|id| *id == marked).unwrap_or(0);
        let rows = usize::from(ctx.rows);
        let near = agents
            .iter()
            .skip(place.saturating_sub(rows))
            .take(2 * rows);
        let unread = near.filter(|id| ctx.roster.get(**id).is_some_and(KnownAgent::is_unread));
        let unread: Vec<_> = unread.copied().collect();
        if !unread.is_empty() {
            ctx.effects.push(LoadRequest::Board(unread));
        }
    }

    /// Shows only agents whose names contain a text.
    fn set_filter(&mut self, filter: String, ctx: &mut UiContext) {
        self.filter = filter;
        self.top = 0;
        self.load_near_mark(ctx);
    }

    /// Refuses the question of an agent, if it was on the screen long enough.
    fn refuse(&self, agent: AgentId, name: &str, ctx: &mut UiContext) {
        let known = ctx.roster.get(agent);
        let question = known.and_then(|known| known.live.questions.first());
        let Some(call) = question.map(|question| question.call) else {
            return ctx.toast(format!("{name} has no question"));
        };
        let is_seen = self.question_since.is_some_and(|(question_since, since)| {
            question_since == call && ctx.now.saturating_duration_since(since) >= LOOKED_AT
        });
        if is_seen {
            ctx.answer(call, Answer::No(None));
        } else {
            ctx.toast("Wait a moment: this question just appeared");
        }
    }

    fn ask_to_kill(&mut self, agent: AgentId, name: &str, ctx: &mut UiContext) {
        let known = ctx.roster.get(agent);
        if known.is_some_and(|known| known.branch.agent.parent.is_none()) {
            return ctx.toast(format!("{name} is a root agent and cannot be killed"));
        }
        self.kills = Some(agent);
    }

    /// Returns the question before a kill.
    pub(super) fn kill_question(&self, ctx: &UiContext) -> Option<String> {
        let agent = self.kills?;
        let name = ctx.name_of(agent)?;
        let with = with_descendants(descendants(agent, ctx));
        Some(format!("kill {name}{with}?"))
    }

    /// Takes a key for the prompt, if one is open.
    fn prompt_key(&mut self, key: KeyPress, ctx: &mut UiContext) -> bool {
        let Some((purpose, prompt)) = &mut self.prompt else {
            return false;
        };
        let purpose = *purpose;
        match (prompt.key(key, ctx), purpose) {
            (PromptOutcome::Open, BoardPrompt::Filter) => {
                let filter = prompt.text();
                self.set_filter(filter, ctx);
                return true;
            }
            (PromptOutcome::Open, BoardPrompt::Mail(_)) => return true,
            (PromptOutcome::Cancelled, BoardPrompt::Filter) => self.set_filter(String::new(), ctx),
            (PromptOutcome::Cancelled, BoardPrompt::Mail(_)) => {}
            (PromptOutcome::Entered(text), BoardPrompt::Filter) => self.set_filter(text, ctx),
            (PromptOutcome::Entered(text), BoardPrompt::Mail(to)) => send_mail(to, &text, ctx),
        }
        self.prompt = None;
        true
    }
}

impl Layer for Board {
    fn bindings(&self, _ctx: &UiContext) -> Vec<keys::KeyMode> {
        vec![keys::KeyMode::Board]
    }

    /// Takes a key for the prompt, or as the answer to the kill confirmation.
    fn key(&mut self, key: KeyPress, ctx: &mut UiContext) -> Handled {
        if self.prompt_key(key, ctx) {
            return Handled::Yes;
        }
        let Some(agent) = self.kills.take() else {
            return Handled::No;
        };
        if key.code == KeyCode::Char('y') && !key.ctrl && !key.alt {
            let name = ctx.name_of(agent).unwrap_or_else(|| agent.to_string());
            run(format!("/kill {name}"), ctx);
        }
        Handled::Yes
    }

    fn act(&mut self, action: Action, ctx: &mut UiContext) -> Handled {
        match action {
            Action::BoardUp => self.move_mark(-1, ctx),
            Action::BoardDown => self.move_mark(1, ctx),
            Action::BoardPeek => {
                self.peeks = Some(!self.peeks(ctx));
                self.load_near_mark(ctx);
            }
            Action::BoardTree => self.is_tree = !self.is_tree,
            Action::BoardFilter => {
                let prompt = LinePrompt::new("filter:", &self.filter);
                self.prompt = Some((BoardPrompt::Filter, prompt));
            }
            Action::BoardLeave if !self.filter.is_empty() => self.filter.clear(),
            Action::BoardLeave => ctx.close(),
            action if is_deed(action) => {
                if let Some(agent) = self.selected(ctx)
                    && let Some(name) = ctx.name_of(agent)
                {
                    self.act_on(action, agent, &name, ctx);
                }
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn paste(&mut self, text: &str, ctx: &mut UiContext) -> Handled {
        let Some((purpose, prompt)) = &mut self.prompt else {
            return Handled::No;
        };
        prompt.paste(text);
        if *purpose == BoardPrompt::Filter {
            let filter = prompt.text();
            self.set_filter(filter, ctx);
        }
        Handled::Yes
    }

    fn mouse(&mut self, mouse: MouseEvent, ctx: &mut UiContext) -> Handled {
        match mouse.action {
            MouseAction::WheelUp => self.move_mark(-1, ctx),
            MouseAction::WheelDown => self.move_mark(1, ctx),
            MouseAction::Release => {
                let agent = self.drawn.get(usize::from(mouse.row)).copied();
                if let Some(agent) = agent.flatten() {
                    self.mark(agent, ctx);
                }
            }
            MouseAction::Press | MouseAction::Drag => {}
        }
        Handled::Yes
    }

    fn covers_input(&self) -> bool {
        true
    }

    fn draw(&mut self, area: Area, ctx: &mut UiContext, grid: &mut Grid) -> Area {
        self.draw_board(ctx, grid);
        area.above(area.row)
    }

    /// Returns the time of the next tick: the board counts seconds and shows output of processes.
    fn next_tick(&self, ctx: &UiContext) -> Option<Instant> {
        let moves = ctx.roster.working() > 0 || !ctx.processes.is_empty();
        moves.then(|| ctx.now + SECOND)
    }

    fn refresh(&mut self, ctx: &mut UiContext) {
        self.load_near_mark(ctx);
    }
}

/// Adds an agent, and below it its processes.
fn push_agent(agent: AgentId, ctx: &UiContext, entries: &mut Vec<BoardRow>) {
    entries.push(BoardRow::Agent(agent));
    let processes = ctx.processes.iter().enumerate();
    let own = processes.filter(|(_, process)| process.agent == agent);
    entries.extend(own.map(|(index, _)| BoardRow::Process(index)));
}

impl UiContext {
    /// Keeps the pane of an agent that only the board shows.
    pub(super) fn peek(&mut self, pane: Pane) {
        let agent = pane.agent.state.agent();
        self.panes.insert(agent, pane);
        self.peeked.push_back(agent);
        while self.peeked.len() > MOST_PEEKED {
            if let Some(oldest) = self.peeked.pop_front().filter(|id| *id != self.current) {
                self.panes.remove(&oldest);
            }
        }
    }
}

fn interrupt(agent: AgentId, name: &str, ctx: &mut UiContext) {
    let state = ctx.roster.get(agent).map(KnownAgent::state);
    if matches!(state, Some(AgentActivity::Works | AgentActivity::Asks)) {
        ctx.interrupt_agent(agent);
    } else {
        ctx.toast(format!("{name} is idle"));
    }
}

fn merge(agent: AgentId, name: &str, ctx: &mut UiContext) {
    let known = ctx.roster.get(agent);
    match known.and_then(|known| known.branch.agent.parent) {
        Some(parent) => {
            let merge = LoadRequest::MergePreview(parent, name.to_owned());
            ctx.effects.push(merge);
        }
        None => ctx.toast(format!("{name} has no parent to merge into")),
    }
}

fn send_mail(to: AgentId, text: &str, ctx: &mut UiContext) {
    let name = ctx.name_of(to).unwrap_or_else(|| to.to_string());
    if text.is_empty() {
        return ctx.toast("Nothing sent");
    }
    ctx.toast(format!("Sent to {name}"));
    run(format!("/send {name} {text}"), ctx);
}

/// Returns the number of living agents below one.
fn descendants(agent: AgentId, ctx: &UiContext) -> usize {
    let mut family = VecDeque::from([agent]);
    let mut count = 0;
    while let Some(parent) = family.pop_front() {
        let children = ctx.roster.children(parent);
        let living = children.filter(|(id, _)| ctx.lives(*id));
        let before = family.len();
        family.extend(living.map(|(id, _)| id));
        count += family.len() - before;
    }
    count
}

/// Runs a command about other agents, in the current agent or its nearest living ancestor.
fn run(line: String, ctx: &mut UiContext) {
    let mut speaker = ctx.current;
    while !ctx.lives(speaker) {
        let known = ctx.roster.get(speaker);
        match known.and_then(|known| known.branch.agent.parent) {
            Some(parent) => speaker = parent,
            None => break,
        }
    }
    ctx.effects
        .push(EngineRequest::Send(speaker, UserRequest::parse(line)));
}

/// Returns true if an action applies to the selected agent.
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
