//! Descriptions of slash commands, without their handlers.

use ikigai_core::Kind;

/// Description of a slash command.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    /// Name after the `/`: letters and `-`.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Group in the help.
    pub group: Group,
    /// Arguments in the help.
    pub arguments: &'static str,
    /// Description in one row.
    pub help: &'static str,
    /// Example lines with descriptions.
    pub examples: &'static [(&'static str, &'static str)],
    /// Syntax of the arguments.
    pub takes: Takes,
    /// Options, which may precede or follow all other arguments.
    pub options: &'static [CommandOption],
    /// Completion of the arguments, in order; the last one applies to all further ones.
    pub completes: &'static [Completes],
    /// Behaviour while the agent works.
    pub during: During,
    /// Presentation of the output on a screen.
    pub shows: Shows,
    /// Kind of the events that its output reports: a screen shows both as one.
    pub reports: Option<Kind>,
}

ikigai_core::words::named_variants! {
    /// Group of commands in the help.
    pub enum Group: word {
        /// Repeating and resuming messages.
        Talk = "talk",
        /// Rewinding and redoing.
        Time = "time",
        /// The tree of agents.
        Agents = "agents",
        /// Context besides the conversation.
        Context = "context",
        /// Tools and permissions.
        Tools = "tools",
        /// Everything else.
        Session = "session",
    }
}

/// Moment at which a command runs that is typed while the agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum During {
    /// At once; its settings apply to the next request.
    AtOnce,
    /// Between two steps of the turn, because it takes time.
    AtBreak,
    /// After the turn, which is interrupted as by its user: the command changes the path.
    Interrupts,
}

/// Syntax of a command's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// No arguments.
    Nothing,
    /// Words; quotes and backslashes keep spaces in them.
    Words,
    /// This number of words, then the rest of the line, without quotes around it.
    WordsThenText(usize),
    /// One text to the end of the line, or several in quotes.
    Texts,
}

/// Option of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOption {
    /// Without a value, such as `--done`.
    Flag(&'static str),
    /// With a value, such as `--model demo`.
    Value(&'static str),
}

impl CommandOption {
    /// Returns the name of the option, as typed.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Flag(name) | Self::Value(name) => name,
        }
    }
}

/// Completion of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completes {
    /// No completion.
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
    /// Pinned files.
    Pins,
    /// These words.
    Words(&'static [&'static str]),
}

/// Presentation of a command's output on a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Output row.
    Output,
    /// Overlay if there are no arguments.
    OverlayWithoutArguments,
    /// Overlay if this is the only argument.
    OverlayWith(&'static str),
    /// Always an overlay.
    Overlay,
}

impl Command {
    /// Creates a command with default values; the tables set the rest.
    pub(crate) const fn new(name: &'static str, group: Group) -> Self {
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
            reports: None,
        }
    }

    /// Returns true if a line with these arguments only reads.
    pub fn only_shows(&self, arguments: &str) -> bool {
        match self.shows {
            Shows::Output => false,
            Shows::OverlayWithoutArguments => arguments.trim().is_empty(),
            Shows::OverlayWith(word) => arguments.trim() == word,
            Shows::Overlay => true,
        }
    }

    /// Returns the behaviour with these arguments while the agent works. A read-only line runs at
    /// once.
    pub(crate) fn during(&self, arguments: &str) -> During {
        if self.only_shows(arguments) {
            During::AtOnce
        } else {
            self.during
        }
    }

    /// Returns the usage line: `/rewind [label | #id]`.
    pub fn usage(&self) -> String {
        if self.arguments.is_empty() {
            format!("/{}", self.name)
        } else {
            format!("/{} {}", self.name, self.arguments)
        }
    }
}
