//! State of the screen that layers share: agents, panes, options, the toast and queued effects.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_core::data::{AnsweredBy, Cause};
use ikigai_core::settings::Approve;
use ikigai_core::words::Severity;
use ikigai_core::{AgentId, AgentState, RowRef};
use ikigai_engine::{Answer, ListedProcess, Live, Question, Status, Stop, UserRequest};

use super::draw::ItemLayout;
use super::effect::Effects;
use super::hits::Visited;
use super::inbox::WaitingList;
use super::layer::{Area, Layer, LayerChange};
use super::second_press::{Again, Armed, LATE_ESCAPE};
use super::toast::Toast;
use super::unsent_text::InputDrafts;
use super::{ContextUsage, EngineRequest, ModeInForce, Pane, Roster, UiOptions};
use crate::keys::Bindings;
use crate::outbox::Outbox;
use crate::scrollback::{Selection, Visible};

/// Time for which a toast stays.
pub(super) const TOAST: Duration = Duration::from_secs(4);

/// Fewest rows of a screen that is not drawn tightly.
const ROOMY_ROWS: u16 = 15;

/// Shared state of the screen.
pub struct UiContext {
    pub(super) options: UiOptions,
    pub(super) bindings: Bindings,
    pub(super) columns: u16,
    pub(super) rows: u16,
    pub(super) panes: HashMap<AgentId, Pane>,
    /// Agents opened by the board only, oldest first.
    pub(super) peeked: VecDeque<AgentId>,
    /// The agent on the screen.
    pub(super) current: AgentId,
    /// The agent that was on the screen before.
    pub(super) before: Option<AgentId>,
    pub(super) roster: Roster,
    /// Background processes of this process's agents, by agent and number.
    pub(super) processes: Vec<ListedProcess>,
    pub(super) inbox: WaitingList,
    /// Typed lines that are not in the log yet.
    pub(super) outbox: Outbox,
    pub(super) drafts: InputDrafts,
    /// Newest search hits.
    pub(super) visited: Option<Visited>,
    pub(super) selection: Option<Selection>,
    /// Effect of pressing a key once more.
    pub(super) armed: Option<Armed>,
    /// Sends messages that an interrupt returns.
    pub(super) sends_now: bool,
    /// Lines below the conversation until the user sends a line.
    pub(super) notes: Vec<(Severity, String)>,
    /// Message to the user.
    pub(super) toast: Option<Toast>,
    /// Branch of the working directory.
    pub(super) branch: Option<String>,
    pub(super) filled: Option<ContextUsage>,
    pub(super) modes: ModeInForce,
    /// Offer to grant mode and rules from elsewhere, until the user sends something.
    pub(super) grant_offer: Option<String>,
    /// The process that owns the current agent, if it is another one.
    pub(super) holder: Option<String>,
    /// Running tools show all their output, not only the last lines.
    pub(super) shows_all_output: bool,
    /// Number of changes of names, because rows show them.
    pub(super) names: u64,
    pub(super) is_focused: bool,
    /// Time of the last key that typed text.
    pub(super) typed_at: Option<Instant>,
    /// Rows of the scrollback in the last frame.
    pub(super) visible: Vec<Visible>,
    /// Row of the input in the last frame.
    pub(super) input_row: u16,
    pub(super) effects: Effects,
    pub(super) changes: VecDeque<LayerChange>,
    pub(super) now: Instant,
}

impl UiContext {
    pub(super) fn new(
        options: UiOptions,
        bindings: Bindings,
        (columns, rows): (u16, u16),
        pane: Pane,
        now: Instant,
    ) -> Self {
        let current = pane.agent.state.agent();
        Self {
            options,
            bindings,
            columns,
            rows,
            panes: HashMap::from([(current, pane)]),
            peeked: VecDeque::new(),
            current,
            before: None,
            roster: Roster::default(),
            processes: Vec::new(),
            inbox: WaitingList::default(),
            outbox: Outbox::default(),
            drafts: InputDrafts::default(),
            visited: None,
            selection: None,
            armed: None,
            sends_now: false,
            notes: Vec::new(),
            toast: None,
            branch: None,
            filled: None,
            modes: Arc::new(|state| state.settings().approve.unwrap_or(Approve::Ask)),
            grant_offer: None,
            holder: None,
            shows_all_output: false,
            names: 0,
            is_focused: true,
            typed_at: None,
            visible: Vec::new(),
            input_row: 0,
            effects: Effects::default(),
            changes: VecDeque::new(),
            now,
        }
    }

    /// Replaces all layers above the input, after this event.
    pub(super) fn open(&mut self, layer: impl Layer) {
        self.changes.push_back(LayerChange::Open(Box::new(layer)));
    }

    /// Closes the topmost layer, after this event.
    pub(super) fn close(&mut self) {
        self.changes.push_back(LayerChange::Close);
    }

    /// Shows a message for a moment.
    pub(super) fn toast(&mut self, text: impl Into<String>) {
        self.show_toast(Severity::Info, text.into());
    }

    /// Shows a warning for a moment.
    pub(super) fn warn(&mut self, text: &(impl ToString + ?Sized)) {
        self.show_toast(Severity::Warning, text.to_string());
    }

    pub(super) fn show_toast(&mut self, severity: Severity, text: String) {
        self.toast = Some(Toast {
            severity,
            text,
            until: Some(self.now + TOAST),
        });
    }

    /// Returns the area of the whole screen.
    pub(super) fn screen(&self) -> Area {
        Area {
            row: 0,
            rows: self.rows,
            column: 0,
            columns: self.columns,
        }
    }

    /// Reports whether the screen has few rows.
    pub(super) fn is_tight(&self) -> bool {
        self.rows < ROOMY_ROWS
    }

    /// Returns the pane of the current agent.
    pub(super) fn pane(&self) -> Option<&Pane> {
        self.panes.get(&self.current)
    }

    /// Returns the pane of the current agent, to change it.
    pub(super) fn current_mut(&mut self) -> Option<&mut Pane> {
        self.panes.get_mut(&self.current)
    }

    /// Runs a function on the current pane and its layout.
    pub(super) fn with_pane<T>(
        &mut self,
        run: impl FnOnce(&mut Pane, &ItemLayout<'_>) -> T,
    ) -> Option<T> {
        // Taken out, because the layout reads everything else.
        let mut pane = self.panes.remove(&self.current)?;
        let done = run(&mut pane, &ItemLayout::new(self, self.current));
        self.panes.insert(self.current, pane);
        Some(done)
    }

    pub(super) fn name_of(&self, agent: AgentId) -> Option<String> {
        Some(self.roster.get(agent)?.branch.agent.name.clone())
    }

    /// Reports whether an agent is alive.
    pub(super) fn lives(&self, agent: AgentId) -> bool {
        let known = self.roster.get(agent);
        known.is_some_and(|known| known.branch.agent.status == Status::Running)
    }

    /// Returns the permission mode in force for an agent.
    pub(super) fn approval_of(&self, state: &AgentState) -> Approve {
        (self.modes)(state)
    }

    /// Spells a row as an argument: `#12`, or `#name.12` for another agent.
    pub(super) fn row_name(&self, row: RowRef) -> String {
        if row.agent == self.current {
            return format!("#{}", row.seq);
        }
        let name = self.name_of(row.agent);
        let name = name.unwrap_or_else(|| row.agent.to_string());
        format!("#{name}.{}", row.seq)
    }

    pub(super) fn input_is_empty(&self) -> bool {
        self.pane().is_none_or(|pane| pane.editor.is_empty())
    }

    /// Reports whether the current agent works.
    pub(super) fn is_busy(&self) -> bool {
        self.roster.live(self.current).is_some_and(Live::is_busy)
    }

    /// Interrupts the current agent.
    pub(super) fn interrupt(&mut self) {
        self.interrupt_agent(self.current);
        self.arm(Again::Interrupted, LATE_ESCAPE);
    }

    pub(super) fn interrupt_agent(&mut self, agent: AgentId) {
        let stop = UserRequest::Stop(Stop::Interrupt(Cause::User));
        self.effects.push(EngineRequest::Send(agent, stop));
    }

    /// Runs a command line of the current agent.
    pub(super) fn command(&mut self, line: String) {
        let request = UserRequest::parse(line);
        self.effects
            .push(EngineRequest::Send(self.current, request));
    }

    /// Shows another agent, or the reason why not.
    pub(super) fn go_to(&mut self, agent: Option<AgentId>, why_not: &str) {
        match agent {
            Some(agent) => self.effects.push(EngineRequest::Show(agent)),
            None => self.toast(why_not),
        }
    }

    /// Returns the first question of the current agent.
    pub(super) fn question(&self) -> Option<&Question> {
        self.roster.live(self.current)?.questions.first()
    }

    /// Returns the first question of another agent, and that agent.
    pub(super) fn other_question(&self) -> Option<(AgentId, &Question)> {
        let other = self.roster.asking().find(|(id, _)| *id != self.current);
        let (id, known) = other?;
        Some((id, known.live.questions.first()?))
    }

    /// Answers a question as the user.
    pub(super) fn answer(&mut self, call: RowRef, answer: Answer) {
        self.give_answer(call, answer, AnsweredBy::User);
    }

    /// Answers a question.
    pub(super) fn give_answer(&mut self, call: RowRef, answer: Answer, by: AnsweredBy) {
        let answer = UserRequest::Answer { call, answer, by };
        self.roster
            .live_mut(call.agent)
            .questions
            .retain(|question| question.call != call);
        self.effects.push(EngineRequest::Send(call.agent, answer));
    }
}
