//! The screen as a whole: panes, roster, toast and the stack of layers.
//!
//! It knows neither a terminal nor a runtime. It queues a [`UiEffect`] for everything that needs
//! one; the driver executes it.

mod automation;
mod board;
mod board_rows;
mod browse;
mod browse_rows;
mod commands;
mod context;
mod detached_view;
mod draw;
mod effect;
mod event;
mod farewell;
mod hidden_rows;
mod hints;
mod hits;
mod inbox;
mod input_layer;
mod key_entry;
mod key_repeat;
mod layer;
mod line_prompt;
mod lines;
mod merge_editor;
mod mouse;
mod needle;
mod overlay;
mod pane;
mod picker;
mod program_status;
mod question;
mod question_rows;
mod quit;
mod roster;
mod second_press;
mod tail;
mod terminal_programs;
mod toast;
mod tool_output;
mod typing;
mod ui_events;
mod unsent_text;
mod welcome;

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_core::data::Amounts;
use ikigai_core::settings::Approve;
use ikigai_core::settings::ModelChoice;
use ikigai_core::words::Severity;
use ikigai_core::{AgentId, AgentState, Micros, Row, RowRef};
use ikigai_engine::{AgentRecord, Branch, UserInput};

pub use context::UiContext;
pub use effect::{EngineRequest, LoadRequest, TerminalAction, UiEffect};
pub use farewell::{Farewell, Fate};
pub use hits::Hits;
pub use pane::Pane;
pub use picker::{Picker, PickerAction, PickerEntry, PickerKind};
pub use program_status::ProgramStatus;
pub use roster::{AgentActivity, KnownAgent, Roster};

use self::browse::Browse;
use self::inbox::InboxLayer;
use self::input_layer::InputLayer;
use self::layer::{Handled, Layer, LayerChange};
use self::merge_editor::MergeEditor;
use self::question::QuestionLayer;
use self::quit::QuitPrompt;
use self::toast::Toast;
use crate::complete::NamesToComplete;
use crate::key::{KeyCode, KeyPress, MouseEvent, TerminalEvent};
use crate::keys::{Action, Bindings, Meaning};
use crate::paint::Grid;
use crate::signs::Symbols;

/// Time between two frames of a spinner.
const STEP: Duration = Duration::from_millis(125);

/// Options of the screen, and facts about its surroundings.
#[derive(Clone)]
pub struct UiOptions {
    /// Character set of symbols.
    pub symbols: Symbols,
    /// Home directory, shown as `~`.
    pub home: Option<String>,
    /// Formats the time of day of an event: `14:03`.
    pub time_of_day: fn(Micros) -> String,
    /// The clock.
    pub now: fn() -> Micros,
    /// The program's name and version.
    pub program: &'static str,
    /// True if tools run in a sandbox; the status warns if not.
    pub is_confined: bool,
    /// Variables that hold keys: other programs do not get them.
    pub secrets: Vec<String>,
    /// Model server on this machine, and instructions for using it.
    pub local_server: Option<String>,
}

/// Finds the mode in force: the logged one, limited to this user's grants here.
pub type ModeInForce = Arc<dyn Fn(&AgentState) -> Approve + Send + Sync>;

/// Usage of the current agent's context window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextUsage {
    /// Tokens of the next request.
    pub used: u64,
    /// Budget of tokens.
    pub of: u64,
    /// Source of the model's window, if it is worth a word.
    pub source: Option<&'static str>,
}

/// The screen.
pub struct App {
    pub(crate) ctx: UiContext,
    input: InputLayer,
    question: QuestionLayer,
    /// Layers above the input and the question.
    stack: Vec<Box<dyn Layer>>,
    /// First key of a sequence.
    pressed: Vec<KeyPress>,
}

impl App {
    /// Returns a screen that shows one agent.
    pub fn new(
        options: UiOptions,
        bindings: Bindings,
        size: (u16, u16),
        pane: Pane,
        now: Instant,
    ) -> Self {
        Self {
            ctx: UiContext::new(options, bindings, size, pane, now),
            input: InputLayer::default(),
            question: QuestionLayer::default(),
            stack: Vec::new(),
            pressed: Vec::new(),
        }
    }

    /// Returns the agent on the screen.
    pub fn current(&self) -> AgentId {
        self.ctx.current
    }

    /// Returns the pane of the agent on the screen.
    pub fn pane(&self) -> Option<&Pane> {
        self.ctx.pane()
    }

    /// Returns the model of the current agent.
    pub(crate) fn model(&self) -> Option<ModelChoice> {
        self.pane()?.agent.state.settings().model.clone()
    }

    /// Returns the directory of the current agent's tools.
    pub(crate) fn workdir(&self) -> String {
        let settings = self.pane().map(|pane| pane.agent.state.settings());
        let workdir = settings.and_then(|settings| settings.workdir.clone());
        workdir.unwrap_or_default()
    }

    /// Returns the pane of an agent, to read more rows into it.
    pub fn pane_mut(&mut self, agent: AgentId) -> Option<&mut Pane> {
        self.ctx.panes.get_mut(&agent)
    }

    /// Returns all agents that the screen knows.
    pub fn roster(&self) -> &Roster {
        &self.ctx.roster
    }

    /// Shows another agent. Input and viewport of the one before stay with its pane.
    pub fn show(&mut self, pane: Pane) {
        let agent = pane.agent.state.agent();
        self.ctx.panes.insert(agent, pane);
        self.ctx.give_waiting(agent);
        self.show_again(agent);
    }

    /// Replaces the pane of an agent by a new one; keeps the input.
    pub fn renew(&mut self, mut pane: Pane) {
        let agent = pane.agent.state.agent();
        if let Some(before) = self.ctx.panes.get_mut(&agent) {
            pane.editor = std::mem::take(&mut before.editor);
            pane.completion = std::mem::take(&mut before.completion);
            *before = pane;
        }
        self.ctx.selection = None;
    }

    /// Shows an agent that has a pane; `false` if it has none.
    pub fn show_again(&mut self, agent: AgentId) -> bool {
        if !self.ctx.panes.contains_key(&agent) {
            return false;
        }
        if agent == self.ctx.current {
            return true;
        }
        self.stack.clear();
        self.sync_viewport();
        self.input.leave_agent();
        let ctx = &mut self.ctx;
        ctx.before = Some(ctx.current);
        ctx.current = agent;
        ctx.peeked.retain(|peeked| *peeked != agent);
        ctx.selection = None;
        ctx.filled = None;
        ctx.holder = None;
        ctx.roster.look_at(agent);
        // A key that follows at once is not an answer to a question that was not seen yet.
        ctx.typed_at = Some(ctx.now);
        self.sync_question();
        true
    }

    /// Sets the tree of agents.
    pub fn set_tree(&mut self, tree: Vec<Branch>) {
        self.ctx.roster.set(tree);
        self.ctx.names = self.ctx.names.wrapping_add(1) & 0xff;
        self.refresh();
    }

    /// Adds an agent that is not in the tree.
    pub fn add_agent(&mut self, agent: AgentRecord) {
        self.ctx.roster.add_agent(agent);
        self.ctx.names = self.ctx.names.wrapping_add(1) & 0xff;
    }

    /// Notes that another process runs an agent from now on.
    pub fn give_away(&mut self, agent: AgentId) {
        self.ctx.roster.give_away(agent);
    }

    /// Sets the cost of an agent before this process started.
    pub fn set_cost(&mut self, agent: AgentId, spent: &Amounts) {
        self.ctx.roster.set_cost(agent, spent);
    }

    /// Sets the usage of the context window.
    pub fn set_filled(&mut self, filled: Option<ContextUsage>) {
        self.ctx.filled = filled;
    }

    /// Shows lines below the conversation until the user sends a line.
    pub fn set_notes(&mut self, notes: Vec<(Severity, String)>) {
        self.ctx.notes = notes;
    }

    /// Sets the branch of the working directory.
    pub fn set_branch(&mut self, branch: Option<String>) {
        self.ctx.branch = branch;
    }

    /// Sets the other process that owns the agent on the screen.
    pub fn set_holder(&mut self, holder: Option<String>) {
        self.ctx.holder = holder;
    }

    /// Offers a model server of this machine.
    pub fn set_local_server(&mut self, found: String) {
        self.ctx.options.local_server = Some(found);
    }

    /// Sets the function that finds the permission mode in force.
    pub fn set_modes(&mut self, modes: ModeInForce) {
        self.ctx.modes = modes;
    }

    /// Sets the sandbox state of tools.
    pub fn set_confined(&mut self, is_confined: bool) {
        self.ctx.options.is_confined = is_confined;
    }

    /// Returns the environment variables that other programs do not get.
    pub fn secrets(&self) -> &[String] {
        &self.ctx.options.secrets
    }

    /// Sets the entries of a directory for completion.
    pub fn set_listing(&mut self, typed: &str, files: Vec<(String, bool)>) {
        self.ctx.set_listing(typed, files);
    }

    /// Sets models, tools, and the user's commands and skills for completion.
    pub fn set_choices(&mut self, names: NamesToComplete) {
        self.input.set_choices(names);
    }

    /// Sets the messages of earlier runs, the newest last.
    pub fn set_history(&mut self, sent: Vec<String>) {
        self.input.set_history(sent, &mut self.ctx);
    }

    /// Takes the queued effects, in order.
    pub fn take_effects(&mut self) -> Vec<UiEffect> {
        self.ctx.effects.take()
    }

    /// Shows a message for a moment.
    pub fn toast(&mut self, text: impl Into<String>) {
        self.ctx.toast(text);
    }

    /// Shows a warning for a moment.
    pub fn warn(&mut self, text: &(impl ToString + ?Sized)) {
        self.ctx.warn(text);
    }

    /// Runs a line as if the user had typed it.
    pub fn submit(&mut self, text: String) {
        commands::submit(&mut self.ctx, UserInput::parse(text));
        self.apply_changes();
    }

    /// Opens a picker, unless the user is busy in another layer.
    pub fn choose(&mut self, picker: Picker) {
        if self.stack.is_empty() {
            picker::open(&mut self.ctx, picker);
            self.apply_changes();
        }
    }

    /// Shows search hits, unless the user is busy in another layer.
    pub fn set_hits(&mut self, hits: Hits, is_more: bool) {
        if let Some(picker) = self.ctx.keep_hits(hits, is_more) {
            self.choose(picker);
        }
    }

    /// Shows the newest search hits again.
    pub fn list_hits_again(&mut self) {
        if let Some(picker) = self.ctx.hits_picker() {
            self.choose(picker);
        }
    }

    /// Opens browse mode at a search hit that the pane shows by now.
    pub fn arrive(&mut self, row: RowRef) {
        self.ctx.arrive(row);
        self.apply_changes();
    }

    /// Sets costs of agents, and the newest rows of some, oldest first.
    pub fn set_board(&mut self, costs: &[(AgentId, Amounts)], newest: &[(AgentId, Vec<Row>)]) {
        for (agent, amounts) in costs {
            self.ctx.roster.set_cost(*agent, amounts);
        }
        for (agent, rows) in newest {
            self.ctx.roster.set_newest(*agent, rows);
        }
    }

    /// Keeps the pane of an agent that only the board shows.
    pub fn peek(&mut self, pane: Pane) {
        self.ctx.peek(pane);
    }

    /// Replaces the text that the user edited in their editor.
    pub fn set_input(&mut self, text: &str) {
        if let Some(preview) = self.top_as::<MergeEditor>() {
            preview.set_text(text);
        } else if let Some(pane) = self.ctx.current_mut() {
            pane.editor.set(text);
        }
    }

    /// Handles an event of the terminal.
    pub fn handle_input(&mut self, happening: TerminalEvent, now: Instant) {
        self.tick(now);
        match happening {
            TerminalEvent::Key(key) => {
                self.ctx.draft_changed();
                self.press(key);
            }
            TerminalEvent::Paste(text) => {
                self.ctx.draft_changed();
                self.paste(&text);
            }
            TerminalEvent::Mouse(mouse) => self.mouse(mouse),
            TerminalEvent::Focus(is_focused) => self.ctx.is_focused = is_focused,
            // The screen's terminal takes it.
            TerminalEvent::StatusSupported => {}
            TerminalEvent::Resize { columns, rows } => {
                (self.ctx.columns, self.ctx.rows) = (columns, rows);
            }
        }
        self.apply_changes();
        self.sync_viewport();
        self.sync_question();
        self.read_current();
    }

    /// Advances the clock.
    pub fn tick(&mut self, now: Instant) {
        self.ctx.now = now;
        let is_over = |until: &Option<Instant>| until.is_some_and(|until| now >= until);
        self.ctx.toast.take_if(|toast| is_over(&mut toast.until));
        self.ctx.disarm();
        if let Some(layer) = self.stack.last_mut() {
            layer.tick(&mut self.ctx);
        }
        self.question.tick(&mut self.ctx);
        self.apply_changes();
        self.sync_question();
        self.ctx.keep_typed();
    }

    /// Returns the time at which the screen changes without input; none if it does not.
    pub fn next_tick(&self) -> Option<Instant> {
        let ctx = &self.ctx;
        let mut children = ctx.roster.children(ctx.current);
        let moves = ctx.is_busy() || children.any(|(_, child)| child.live.is_busy());
        let step = moves.then(|| ctx.now + STEP);
        let toast = ctx.toast.as_ref().and_then(|toast| toast.until);
        let layer = self.stack.last().and_then(|layer| layer.next_tick(ctx));
        let question = self.question.opens_at(ctx, self.may_open_question());
        let times = [
            step,
            ctx.output_due(),
            toast,
            layer,
            question,
            self.question.answers_at(),
            ctx.armed_until(),
            ctx.typed_due(),
        ];
        times.into_iter().flatten().min()
    }

    fn press(&mut self, key: KeyPress) {
        let asks = self.stack.is_empty() && self.question.is_open();
        if asks || self.is_open::<InboxLayer>() {
            // Without a terminal, no frame was drawn since the last key, and a question accepts an
            // approval only after its end was on the screen.
            self.draw(&mut Grid::default());
        }
        if self.pressed.is_empty() && self.top(|layer, ctx| layer.key(key, ctx)) == Handled::Yes {
            return;
        }
        self.pressed.push(key);
        let pressed = std::mem::take(&mut self.pressed);
        let modes = self.top(|layer, ctx| layer.bindings(ctx));
        match self.ctx.bindings.meaning(&modes, &pressed) {
            Meaning::Prefix => {
                let next = self.ctx.bindings.next_keys(&modes, &pressed);
                self.ctx.toast = Some(Toast::next_keys(&pressed, &next));
                self.pressed = pressed;
            }
            Meaning::Action(action) => {
                if pressed.len() > 1 {
                    self.ctx.toast = None;
                }
                self.act(action);
            }
            Meaning::Nothing if pressed.len() > 1 => self.ctx.toast("Key not bound"),
            Meaning::Nothing => self.type_key(key),
        }
    }

    /// Calls the layer that has the keys.
    fn top<T>(&mut self, call: impl FnOnce(&mut dyn Layer, &mut UiContext) -> T) -> T {
        let layer: &mut dyn Layer = match self.stack.last_mut() {
            Some(layer) => layer.as_mut(),
            None if self.question.is_open() => &mut self.question,
            None => &mut self.input,
        };
        call(layer, &mut self.ctx)
    }

    fn act(&mut self, action: Action) {
        if self.top(|layer, ctx| layer.act(action, ctx)) == Handled::Yes {
            return;
        }
        let closes = action == Action::Interrupt && self.ctx.selection.is_none();
        if closes && !self.stack.is_empty() {
            self.ctx.armed = None;
            self.stack.clear();
        } else {
            self.input.act(action, &mut self.ctx);
        }
    }

    /// Types an unbound character.
    fn type_key(&mut self, key: KeyPress) {
        let KeyCode::Char(character) = key.code else {
            return;
        };
        if key.ctrl || key.alt {
            return;
        }
        let mut letter = [0; 4];
        let text = character.encode_utf8(&mut letter);
        for layer in self.stack.iter_mut().rev() {
            if layer.text(text, &mut self.ctx) == Handled::Yes {
                return;
            }
        }
        self.question.text(text, &mut self.ctx);
        self.input.text(text, &mut self.ctx);
    }

    fn paste(&mut self, text: &str) {
        self.ctx.typed_at = Some(self.ctx.now);
        if let Some(layer) = self.stack.last_mut()
            && layer.paste(text, &mut self.ctx) == Handled::Yes
        {
            return;
        }
        self.stack.clear();
        self.input.paste(text, &mut self.ctx);
    }

    fn mouse(&mut self, mouse: MouseEvent) {
        let question: &mut dyn Layer = &mut self.question;
        let input: &mut dyn Layer = &mut self.input;
        let above = self.stack.iter_mut().rev().map(AsMut::as_mut);
        for layer in above.chain([question, input]) {
            if layer.mouse(mouse, &mut self.ctx) == Handled::Yes {
                return;
            }
        }
    }

    /// Applies the changes that layers queued.
    fn apply_changes(&mut self) {
        while let Some(change) = self.ctx.changes.pop_front() {
            match change {
                LayerChange::Open(layer) => {
                    self.stack.clear();
                    self.question.wait();
                    self.stack.push(layer);
                }
                LayerChange::Close => {
                    self.stack.pop();
                    self.refresh();
                }
                LayerChange::OpenQuestion => {
                    self.stack.clear();
                    self.question.open();
                }
            }
        }
    }

    /// Informs the topmost layer that agents changed.
    fn refresh(&mut self) {
        if let Some(layer) = self.stack.last_mut() {
            layer.refresh(&mut self.ctx);
        }
        self.apply_changes();
    }

    fn is_open<T: Layer>(&self) -> bool {
        let top: Option<&dyn Any> = self.stack.last().map(|layer| &**layer as &dyn Any);
        top.is_some_and(<dyn Any>::is::<T>)
    }

    fn top_as<T: Layer>(&mut self) -> Option<&mut T> {
        let top: &mut dyn Any = self.stack.last_mut()?.as_mut();
        top.downcast_mut()
    }

    /// Returns to the end of the history unless the user browses.
    fn sync_viewport(&mut self) {
        if !self.is_open::<Browse>() {
            self.ctx.return_to_end();
        }
    }

    /// Opens a question once the user stops typing, and forgets an answered one.
    fn sync_question(&mut self) {
        let may_open = self.may_open_question();
        self.question.sync(&self.ctx, may_open);
    }

    /// Returns true if a question may take the keys. Letters have other meanings in other layers.
    fn may_open_question(&self) -> bool {
        self.stack.is_empty() || self.is_open::<QuitPrompt>()
    }
}
