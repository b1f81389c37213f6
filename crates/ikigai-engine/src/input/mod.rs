//! Lines that users type, parsed once where they enter the program.

mod command;
mod words;

pub(crate) use words::{command_word, is_command_name, next_word, words};

pub use command::{Command, CommandOption, Completes, During, Group, Shows, Takes};

/// A typed line, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserInput {
    /// Message to the agent.
    Message(String),
    /// A command.
    Command(CommandLine),
    /// A line like a command, whose name is unknown.
    Unknown(UnknownCommand),
    /// A line for the user's shell.
    Shell(ShellLine),
}

/// Line of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The line as typed.
    pub line: String,
    /// The command.
    pub command: &'static Command,
    /// Rest of the line, without space around it.
    pub arguments: String,
}

/// Line that begins with the name of no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCommand {
    /// The line as typed.
    pub line: String,
    /// First word after the `/`.
    pub name: String,
    /// Rest of the line, without space around it.
    pub arguments: String,
}

/// Line for the user's shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellLine {
    /// The line as typed.
    pub line: String,
    /// The command line of the shell.
    pub command: String,
    /// True if the model sees its output.
    pub sent: bool,
}

impl UserInput {
    /// Returns the line as typed.
    pub fn line(&self) -> &str {
        match self {
            Self::Message(line)
            | Self::Command(CommandLine { line, .. })
            | Self::Unknown(UnknownCommand { line, .. })
            | Self::Shell(ShellLine { line, .. }) => line,
        }
    }

    /// Returns true for a message to the agent.
    pub fn is_message(&self) -> bool {
        matches!(self, Self::Message(_))
    }

    /// Returns the moment at which it runs while the agent works; none for a message.
    pub(crate) fn during(&self) -> Option<During> {
        match self {
            Self::Message(_) => None,
            Self::Command(typed) => Some(typed.command.during(&typed.arguments)),
            Self::Unknown(_) => Some(During::AtOnce),
            Self::Shell(_) => Some(During::AtBreak),
        }
    }
}

impl CommandLine {
    /// Returns true if the line only reads.
    pub fn only_shows(&self) -> bool {
        self.command.only_shows(&self.arguments)
    }
}
