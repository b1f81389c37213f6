//! Slash commands: one table drives parsing, help, completion, the page in `docs/` and what is done.
//!
//! A command is one [`Command`] in one of these files and one line in [`COMMANDS`]. Its handler
//! looks at the agent and returns a [`Reply`]; only the dispatcher stores anything.

mod agents;
mod compact;
mod complete;
mod context;
mod cost;
mod dispatch;
mod export;
mod fork;
mod help;
mod history;
mod key;
mod line;
mod merge;
mod model;
mod near;
mod options;
mod place;
mod reply;
mod rows;
mod screen;
mod search;
mod shell;
mod talk;
mod time;
mod tools;
mod window;

use ikigai_store::BoxFuture;

use crate::Worker;
use crate::frontend::FrontEnd;

pub use crate::frontend::Next;
pub use crate::turn::During;
pub use complete::{Candidate, Context, Wanted, complete, is_complete, narrow, wanted};
pub use dispatch::Done;
pub(crate) use dispatch::{Dispatcher, Followed, carry_out_waiting, dispatch, follow, preview};
pub(crate) use fork::fork_held_by_line;
pub use help::page;
pub use key::KEY_PROVIDERS;
pub(crate) use line::Typed;
pub use line::{Line, parse};
pub(crate) use merge::store_merge;
pub(crate) use reply::{Reply, Trouble};
pub use screen::THEMES;
pub(crate) use shell::store_terminal_run;

/// All commands, in the order in which help shows them.
pub static COMMANDS: &[&Command] = &[
    // talk
    &talk::RETRY,
    &time::UNDO,
    &time::REDO,
    &screen::COPY,
    // time
    &time::MARK,
    &time::REWIND,
    &time::CLEAR,
    &history::HISTORY,
    &search::SEARCH,
    // agents
    &fork::FORK,
    &merge::MERGE,
    &agents::AGENTS,
    &agents::SWITCH,
    &agents::SEND,
    &agents::WAIT_FOR,
    &agents::KILL,
    &agents::REAP,
    &agents::MAIL,
    &place::NAME,
    &place::CD,
    &place::SESSIONS,
    &talk::RESUME,
    &talk::TAKE,
    // context
    &window::CONTEXT,
    &compact::COMPACT,
    &context::PIN,
    &context::UNPIN,
    &context::SYSTEM,
    // tools
    &tools::TOOLS,
    &tools::APPROVE,
    // session
    &model::MODEL,
    &key::KEY,
    &cost::COST,
    &cost::BUDGET,
    &export::EXPORT,
    &screen::THEME,
    &screen::MOUSE,
    &screen::VIEW,
    &screen::REFRESH,
    &screen::KEYS,
    &help::HELP,
    &help::QUIT,
];

/// One slash command.
pub struct Command {
    /// What is typed after the `/`: letters and `-`.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// Where help shows it.
    pub group: Group,
    /// Its arguments as help shows them.
    pub arguments: &'static str,
    /// What it does, in one row.
    pub help: &'static str,
    /// Lines that can be typed, with what they do.
    pub examples: &'static [(&'static str, &'static str)],
    /// How the rest of the line is read.
    pub takes: Takes,
    /// Options, which may stand before and after everything else.
    pub options: &'static [CommandOption],
    /// What its arguments complete to, one after the other; the last one stands for all further.
    pub completes: &'static [Completes],
    /// What happens when it is typed while the agent works.
    pub during: During,
    /// How a screen shows what it prints.
    pub shows: Shows,
    /// Decides what it does.
    pub(crate) handler: Handler,
}

/// Decides what a command does. It may read, and lengthen the view; it stores no rows.
pub(crate) type Handler = for<'a, 'd> fn(
    &'a mut Worker,
    &'a Typed,
    &'a mut FrontEnd<'d>,
) -> BoxFuture<'a, Result<Reply, Trouble>>;

/// Where help shows a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Saying things, and saying them again.
    Talk,
    /// Going back and forth.
    Time,
    /// The tree of agents.
    Agents,
    /// What the model is given beside the conversation.
    Context,
    /// What the model may do.
    Tools,
    /// Everything else.
    Session,
}

impl Group {
    /// All groups, in the order in which help shows them.
    pub const ALL: [Self; 6] = [
        Self::Talk,
        Self::Time,
        Self::Agents,
        Self::Context,
        Self::Tools,
        Self::Session,
    ];

    /// The heading.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Talk => "talk",
            Self::Time => "time",
            Self::Agents => "agents",
            Self::Context => "context",
            Self::Tools => "tools",
            Self::Session => "session",
        }
    }
}

/// How the rest of a command's line is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// There must be none.
    Nothing,
    /// As words; quotes and backslashes keep spaces in them.
    Words,
    /// As so many words and then the rest of the line as it is, without quotes around it.
    WordsThenText(usize),
    /// As one text to the end of the line, or several in quotes.
    Texts,
}

/// An option of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOption {
    /// One without a value, such as `--done`.
    Flag(&'static str),
    /// One with a value, such as `--model demo`.
    Value(&'static str),
}

impl CommandOption {
    /// The option as it is typed.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Flag(name) | Self::Value(name) => name,
        }
    }
}

/// What an argument completes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completes {
    /// Nothing that is known before.
    Nothing,
    /// Names of commands.
    Commands,
    /// Labels of marks.
    Marks,
    /// Names of agents.
    Agents,
    /// Names of models.
    Models,
    /// Names of tools.
    Tools,
    /// Files and directories.
    Paths,
    /// Directories.
    Directories,
    /// Files that are pinned.
    Pins,
    /// These words.
    Words(&'static [&'static str]),
}

/// How a screen shows what a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// As its output.
    Output,
    /// In an overlay if it has no arguments, and so without a row.
    OverlayWithoutArguments,
    /// In an overlay if this is all of its arguments.
    OverlayWith(&'static str),
    /// Always in an overlay.
    Overlay,
}

impl Command {
    /// A command that does nothing yet; the others name what differs.
    pub(crate) const fn new(name: &'static str, group: Group, handler: Handler) -> Self {
        Self {
            name,
            aliases: &[],
            group,
            arguments: "",
            help: "",
            examples: &[],
            takes: Takes::Nothing,
            options: &[],
            completes: &[],
            during: During::AtOnce,
            shows: Shows::Output,
            handler,
        }
    }

    /// The command of this name, or of which it is another name.
    pub fn find(name: &str) -> Option<&'static Self> {
        let is_it = |command: &&&Self| command.name == name || command.aliases.contains(&name);
        COMMANDS.iter().find(is_it).copied()
    }

    /// Whether a line with these arguments only shows something, and so leaves no row.
    pub fn only_shows(&self, arguments: &str) -> bool {
        match self.shows {
            Shows::Output => false,
            Shows::OverlayWithoutArguments => arguments.trim().is_empty(),
            Shows::OverlayWith(word) => arguments.trim() == word,
            Shows::Overlay => true,
        }
    }

    /// What happens when it is typed with these arguments while the agent works: looking bends
    /// nothing.
    pub(crate) fn during(&self, arguments: &str) -> During {
        if self.only_shows(arguments) {
            During::AtOnce
        } else {
            self.during
        }
    }

    /// How it is typed: `/rewind [label | #id]`.
    pub fn usage(&self) -> String {
        if self.arguments.is_empty() {
            format!("/{}", self.name)
        } else {
            format!("/{} {}", self.name, self.arguments)
        }
    }
}
