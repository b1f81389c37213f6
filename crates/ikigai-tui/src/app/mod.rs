//! The screen as a whole: what is shown, and what follows from keys and from what the engine tells.
//!
//! It knows neither a terminal nor a runtime. What it cannot do itself it hands out as a [`Wish`];
//! whoever drives it carries that out.

mod beside;
mod board;
mod board_rows;
mod browse;
mod browse_rows;
mod draw;
mod elsewhere;
mod event;
mod farewell;
mod hints;
mod hits;
mod leaving;
mod lines;
mod live;
mod merging;
mod mouse;
mod needle;
mod overlay;
mod pane;
mod past;
mod pending;
mod picker;
mod press;
mod prompt;
mod question;
mod question_rows;
mod roster;
mod secret;
mod tail;
mod terminal_programs;
mod told;
mod tool_output;
mod typing;
mod welcome;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_core::data::Amounts;
use ikigai_core::settings::Approve;
use ikigai_core::{AgentId, AgentState, Micros, RowRef};
use ikigai_engine::commands::Candidate;
use ikigai_engine::search::Cursor;
use ikigai_engine::{AgentRecord, Branch, Intent, TypedKey};

pub use farewell::{Farewell, Fate};
pub use hits::Hits;
pub use live::{Doing, Live, Phase, Running};
pub use pane::Pane;
pub use picker::{Choosing, Deed, Entry, Picker};
pub use roster::{Known, Roster, State};

use self::board::Board;
use self::browse::Browse;
use self::hits::Visited;
use self::merging::Merging;
use self::overlay::Overlay;
use self::pending::InputDrafts;
use self::press::Armed;
use self::prompt::Prompt;
use self::question::Asked;
use self::secret::Secret;
use self::typing::Past;
use crate::input::{History, Search};
use crate::key::{Happening, Key};
use crate::keys::Bindings;
use crate::outbox::{Outbox, OutboxAction};
use crate::rows::Symbols;
use crate::scrollback::{Selection, Visible};

/// How long something that is said to the user stays.
const SAID: Duration = Duration::from_secs(4);

/// How often the screen moves while something goes on.
const STEP: Duration = Duration::from_millis(125);

/// How often it moves while it only counts seconds.
const SECOND: Duration = Duration::from_secs(1);

/// What the screen wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Say this to an agent.
    Say(AgentId, Intent),
    /// Show another agent.
    Show(AgentId),
    /// Ask whoever holds an agent to let go of it.
    Take(AgentId),
    /// Read more above of the agent that is shown.
    ReadOlder,
    /// Read more below, where its end is not what is looked at.
    ReadNewer,
    /// Look for words in the whole log.
    Search {
        /// As they were typed.
        typed: String,
        /// Where an earlier answer ended.
        after: Option<Cursor>,
    },
    /// Show this row where it stands in the history of the agent that wrote it.
    GoTo(RowRef),
    /// Show what was found last.
    ListHits,
    /// Show what this rewind of the agent that is shown left, or not any more.
    ToggleLeft(RowRef),
    /// Read what there is to choose from, and let the user choose.
    Choose(Choosing),
    /// Read all that is shown of the agent anew.
    Reread,
    /// Have a key tried and kept.
    TakeKey {
        /// Whose key.
        provider: String,
        /// The key.
        key: TypedKey,
    },
    /// Show these colours.
    Theme(String),
    /// Take the mouse, or leave it to the terminal.
    Mouse(bool),
    /// Read an agent without showing it instead of another.
    Peek(AgentId),
    /// Read what the board shows of agents, and what all of them cost.
    ReadBoard(Vec<AgentId>),
    /// Read what `/merge` with these arguments would bring into an agent.
    PreviewMerge(AgentId, String),
    /// Read the tree of agents anew.
    ReadTree,
    /// Put this where other programs paste from.
    Copy(String),
    /// Let the user edit the input in their editor.
    Edit(String),
    /// Run a line of the user's shell that needs the terminal.
    RunOnTerminal {
        /// The command line.
        command: String,
        /// True if the model sees that it ran.
        sent: bool,
    },
    /// Let the user read this in their pager.
    Page(String),
    /// Read what is in a directory that was typed so, for completion.
    List {
        /// As it was typed.
        typed: String,
        /// Where it is.
        directory: PathBuf,
    },
    /// Read what was sent in former runs.
    ReadHistory,
    /// Save or store a line that is not in the log yet.
    Outbox(OutboxAction),
    /// Write the draft of an agent to its file; remove it if it is empty.
    SaveDraft(AgentId, String),
    /// Stop the program until it is told to go on.
    Suspend,
    /// Tell somebody who does not look.
    Notify(String),
    /// Write the whole screen anew.
    Redraw,
    /// End the program.
    Quit,
    /// End the program, and have agents that work go on.
    Background,
}

/// What the screen is told about where it is.
#[derive(Clone)]
pub struct Surroundings {
    /// Which signs are used.
    pub symbols: Symbols,
    /// The user's home, which is shown as `~`.
    pub home: Option<String>,
    /// Tells the time of day of an event: `14:03`.
    pub time_of_day: fn(Micros) -> String,
    /// Tells what time it is.
    pub now: fn() -> Micros,
    /// The program's name and version.
    pub program: &'static str,
    /// Whether tools are confined; the status says so if not.
    pub is_confined: bool,
    /// Variables that hold keys: other programs do not get them.
    pub secrets: Vec<String>,
    /// A model server that was found on this machine, and how to use it.
    pub local_server: Option<String>,
}

/// Finds the mode in force for an agent: the logged one, as far as this user granted it here.
pub type ModeInForce = Arc<dyn Fn(&AgentState) -> Approve + Send + Sync>;

/// What fills the window of the agent that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// How many tokens the next request has.
    pub used: u64,
    /// How many it may have.
    pub of: u64,
    /// Source of the model's window, if it is worth a word.
    pub source: Option<&'static str>,
}

/// What keys go to, beside a question.
enum Mode {
    /// The input.
    Input,
    /// Something that lies over the scrollback.
    Overlay(Overlay),
    /// The events of the agent that is shown.
    Browse(Browse),
    /// One of many is chosen.
    Picker(Box<Picker>),
    /// A key is typed hidden.
    Secret(Secret),
    /// All agents.
    Board(Box<Board>),
    /// What merging would bring.
    Merging(Box<Merging>),
    /// Whether to leave although agents work.
    Leaving,
}

/// See the module.
pub struct App {
    around: Surroundings,
    bindings: Bindings,
    /// Keys that are the beginning of something.
    pressed: Vec<Key>,
    columns: u16,
    rows: u16,
    panes: HashMap<AgentId, Pane>,
    /// Those that were looked at from the board and never shown, oldest first.
    peeked: VecDeque<AgentId>,
    current: AgentId,
    /// The agent that was shown before.
    before: Option<AgentId>,
    roster: Roster,
    mode: Mode,
    /// A line that the mode asks for.
    prompt: Option<Prompt>,
    asked: Asked,
    /// What was sent before, to any agent.
    history: History,
    /// How much of it is known.
    known_past: Past,
    /// Typed lines that are not in the log yet.
    outbox: Outbox,
    drafts: InputDrafts,
    search: Option<Search>,
    /// What was found in the log last.
    visited: Option<Visited>,
    /// What can be chosen by name.
    models: Vec<Candidate>,
    tools: Vec<Candidate>,
    selection: Option<Selection>,
    /// What pressing a key once more would do.
    armed: Option<Armed>,
    /// Whether messages that an interrupt hands back are sent at once.
    sends_now: bool,
    /// What stays in sight below the conversation until something is sent.
    notes: Vec<String>,
    /// What is said to the user at the moment, and until when.
    said: Option<(String, Option<Instant>)>,
    /// The branch of the working directory, if it is under version control.
    branch: Option<String>,
    filled: Option<Filled>,
    modes: ModeInForce,
    /// Offer to grant mode and rules from elsewhere, in sight until something is sent.
    grant_offer: Option<String>,
    /// Who else holds the agent that is shown.
    holder: Option<String>,
    /// Running tools show all their output, not only the last lines.
    shows_all_output: bool,
    /// Counts how often names changed, because rows show them.
    names: u64,
    is_focused: bool,
    /// When something was typed last.
    typed_at: Option<Instant>,
    /// The rows of the scrollback as they were drawn last.
    visible: Vec<Visible>,
    /// Where the input was drawn last.
    input_row: u16,
    /// Where the list of completions was drawn last.
    list_row: u16,
    wishes: Vec<Wish>,
    now: Instant,
}

impl App {
    /// A screen that shows one agent.
    pub fn new(
        around: Surroundings,
        bindings: Bindings,
        (columns, rows): (u16, u16),
        pane: Pane,
        now: Instant,
    ) -> Self {
        let current = pane.agent.state.agent();
        Self {
            around,
            bindings,
            pressed: Vec::new(),
            columns,
            rows,
            panes: HashMap::from([(current, pane)]),
            peeked: VecDeque::new(),
            current,
            before: None,
            roster: Roster::default(),
            mode: Mode::Input,
            prompt: None,
            asked: Asked::default(),
            history: History::default(),
            known_past: Past::default(),
            outbox: Outbox::default(),
            drafts: InputDrafts::default(),
            search: None,
            visited: None,
            models: Vec::new(),
            tools: Vec::new(),
            selection: None,
            armed: None,
            sends_now: false,
            notes: Vec::new(),
            said: None,
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
            list_row: 0,
            wishes: Vec::new(),
            now,
        }
    }

    /// The agent that is shown.
    pub fn current(&self) -> AgentId {
        self.current
    }

    /// The agent that is shown, as far as it was read.
    pub fn pane(&self) -> Option<&Pane> {
        self.panes.get(&self.current)
    }

    /// The same, to read more of it.
    pub fn pane_mut(&mut self, agent: AgentId) -> Option<&mut Pane> {
        self.panes.get_mut(&agent)
    }

    /// All agents, as far as they are known.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Shows another agent. What is typed for the one before, and where it is looked at, stays there.
    pub fn show(&mut self, pane: Pane) {
        let agent = pane.agent.state.agent();
        self.panes.insert(agent, pane);
        self.give_waiting(agent);
        self.show_again(agent);
    }

    /// Shows what was read anew of the agent that is shown. What is typed stays.
    pub fn renew(&mut self, mut pane: Pane) {
        let agent = pane.agent.state.agent();
        if let Some(before) = self.panes.get_mut(&agent) {
            pane.editor = std::mem::take(&mut before.editor);
            pane.completion = std::mem::take(&mut before.completion);
            *before = pane;
        }
        self.selection = None;
    }

    /// Shows an agent that was shown before; `false` if none such was.
    pub fn show_again(&mut self, agent: AgentId) -> bool {
        if !self.panes.contains_key(&agent) {
            return false;
        }
        if agent == self.current {
            return true;
        }
        self.mode = Mode::Input;
        self.mind_place();
        self.before = Some(self.current);
        self.current = agent;
        self.peeked.retain(|peeked| *peeked != agent);
        self.selection = None;
        self.search = None;
        self.filled = None;
        self.holder = None;
        self.prompt = None;
        self.roster.look_at(agent);
        // A key that follows at once is not an answer to a question that was not seen yet.
        self.typed_at = Some(self.now);
        self.mind_question();
        true
    }

    /// Takes in the tree as it is stored.
    pub fn set_tree(&mut self, tree: Vec<Branch>) {
        self.roster.set(tree);
        self.names = self.names.wrapping_add(1) & 0xff;
        if self.board().is_some() {
            self.look_at_marked();
        }
    }

    /// Takes in an agent that is shown and not in the tree.
    pub fn meet(&mut self, agent: AgentRecord) {
        self.roster.meet(agent);
        self.names = self.names.wrapping_add(1) & 0xff;
    }

    /// Takes in that another process has an agent work from here on.
    pub fn give_away(&mut self, agent: AgentId) {
        self.roster.give_away(agent);
    }

    /// Takes in what an agent cost before this program started.
    pub fn set_cost(&mut self, agent: AgentId, spent: &Amounts) {
        self.roster.set_cost(agent, spent);
    }

    /// Takes in what fills the window.
    pub fn set_filled(&mut self, filled: Option<Filled>) {
        self.filled = filled;
    }

    /// Shows lines below the conversation until something is sent.
    pub fn set_notes(&mut self, notes: Vec<String>) {
        self.notes = notes;
    }

    /// Takes in the branch of the working directory.
    pub fn set_branch(&mut self, branch: Option<String>) {
        self.branch = branch;
    }

    /// Takes in who else holds the agent that is shown.
    pub fn set_holder(&mut self, holder: Option<String>) {
        self.holder = holder;
    }

    /// Takes in that a model server was found on this machine.
    pub fn set_local_server(&mut self, found: String) {
        self.around.local_server = Some(found);
    }

    /// Sets how the mode in force is found out.
    pub fn set_modes(&mut self, modes: ModeInForce) {
        self.modes = modes;
    }

    /// The mode in force for the agent of a pane.
    pub(super) fn mode_of(&self, state: &AgentState) -> Approve {
        (self.modes)(state)
    }

    /// Takes in how tools are confined.
    pub fn set_confined(&mut self, is_confined: bool) {
        self.around.is_confined = is_confined;
    }

    /// Variables that other programs do not get.
    pub fn secrets(&self) -> &[String] {
        &self.around.secrets
    }

    /// What is to be done now, in this order.
    pub fn take_wishes(&mut self) -> Vec<Wish> {
        std::mem::take(&mut self.wishes)
    }

    /// Says something to the user for a moment.
    pub fn say(&mut self, text: impl Into<String>) {
        self.said = Some((text.into(), Some(self.now + SAID)));
    }

    /// Takes in what happened at the terminal.
    pub fn happened(&mut self, happening: Happening, now: Instant) {
        self.tick(now);
        match happening {
            Happening::Key(key) => {
                self.draft_changed();
                self.press(key);
            }
            Happening::Paste(text) => {
                self.draft_changed();
                self.paste(&text);
            }
            Happening::Mouse(mouse) => self.mouse(mouse),
            Happening::Focus(is_focused) => self.is_focused = is_focused,
            Happening::Resize { columns, rows } => (self.columns, self.rows) = (columns, rows),
        }
        self.mind_place();
        self.mind_question();
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: Instant) {
        self.now = now;
        let is_over = |until: &Option<Instant>| until.is_some_and(|until| now >= until);
        if self.said.as_ref().is_some_and(|(_, until)| is_over(until)) {
            self.said = None;
        }
        self.disarm();
        self.seek_on();
        self.mind_question();
        self.keep_typed();
    }

    /// When the screen changes by itself next; never, if nothing goes on.
    pub fn next_tick(&self) -> Option<Instant> {
        let moves = self.roster.live(self.current).is_some_and(Live::is_busy)
            || self
                .roster
                .children(self.current)
                .any(|(_, child)| child.live.is_busy());
        let step = moves.then(|| self.now + STEP);
        // There, how long agents are silent is to be seen.
        let counts = self.board().is_some() && self.roster.working() > 0;
        let step = step.or_else(|| counts.then(|| self.now + SECOND));
        let said = self.said.as_ref().and_then(|(_, until)| *until);
        let seek = self.is_seeking().then_some(self.now);
        let (question, armed) = (self.question_opens_at(), self.armed_until());
        let times = [step, said, seek, question, armed, self.typed_due()];
        times.into_iter().flatten().min()
    }

    /// What an agent is called.
    fn name_of(&self, agent: AgentId) -> Option<String> {
        Some(self.roster.get(agent)?.branch.agent.name.clone())
    }
}
