//! Parsing of typed lines: message, command or shell command.

use super::{Command, Takes, options};
use crate::frontend::UserRequest;
use crate::input::{
    CommandLine, ShellLine, UnknownCommand, UserInput, command_word, next_word, words,
};

impl UserInput {
    /// Parses a line; called where it enters the program.
    ///
    /// Only a first word of letters, digits, `-`, `_` and `:` after `/` is a command: paths, and
    /// lines that begin with a space or with `//`, are messages.
    pub fn parse(line: impl Into<String>) -> Self {
        let line = line.into();
        if let Some(rest) = line.strip_prefix('!') {
            let unsent = rest.strip_prefix('!');
            let command = unsent.unwrap_or(rest).trim().to_owned();
            let sent = unsent.is_none();
            return if command.is_empty() {
                Self::Message(line)
            } else {
                Self::Shell(ShellLine {
                    line,
                    command,
                    sent,
                })
            };
        }
        let Some((name, rest)) = command_word(&line) else {
            return Self::Message(line);
        };
        let arguments = rest.trim().to_owned();
        match super::find(name) {
            Some(command) => Self::Command(CommandLine {
                line,
                command,
                arguments,
            }),
            None => Self::Unknown(UnknownCommand {
                name: name.to_owned(),
                line,
                arguments,
            }),
        }
    }
}

impl UserRequest {
    /// Makes the request that a typed line is.
    pub fn parse(line: impl Into<String>) -> Self {
        Self::Line(UserInput::parse(line))
    }
}

/// Arguments of a command, raw and parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Typed {
    /// Text after the name.
    pub(crate) rest: String,
    /// Words, or words before the text.
    pub(crate) words: Vec<String>,
    /// Text after the words, without the quotes around it.
    pub(crate) text: Option<String>,
    /// Texts, if the command takes several quoted ones.
    pub(crate) texts: Vec<String>,
    /// Given options with their values; empty for flags.
    pub(super) options: Vec<(&'static str, String)>,
}

impl Typed {
    /// Parses the arguments of a command, or returns an error message.
    pub(crate) fn read(command: &Command, rest: &str) -> Result<Self, String> {
        let mut typed = Self {
            rest: rest.to_owned(),
            ..Self::default()
        };
        let without_options;
        let rest = if command.options.is_empty() {
            rest
        } else {
            (typed.options, without_options) = options::split(command, rest)?;
            &*without_options
        };
        match command.takes {
            Takes::Nothing if rest.is_empty() => {}
            Takes::Nothing => return Err(format!("/{} takes no arguments", command.name)),
            Takes::Words => typed.words = words(rest)?,
            Takes::WordsThenText(count) => {
                let mut left = rest;
                while typed.words.len() < count
                    && let Some((word, after)) = next_word(left)?
                {
                    typed.words.push(word);
                    left = after;
                }
                let text = unquote(left.trim());
                typed.text = Some(text.to_owned()).filter(|text| !text.is_empty());
            }
            Takes::Texts => typed.texts = options::texts(rest),
        }
        Ok(typed)
    }

    /// Returns true if a flag was given.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.options.iter().any(|(option, _)| *option == name)
    }

    /// Returns the value of an option; the last one counts.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let mut options = self.options.iter().rev();
        let (_, value) = options.find(|(option, _)| *option == name)?;
        Some(value)
    }

    /// Returns the only word, if any; an error if there are more.
    pub(crate) fn one(&self, command: &str) -> Result<Option<&str>, String> {
        match self.words.as_slice() {
            [] => Ok(None),
            [word] => Ok(Some(word)),
            [..] => Err(format!(
                "/{command} takes one argument · quote it if it has spaces"
            )),
        }
    }
}

/// Removes quotes around a text; quotes that do not enclose all of it stay.
fn unquote(text: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = text
            .strip_prefix(quote)
            .and_then(|text| text.strip_suffix(quote));
        if let Some(inner) = inner.filter(|inner| !inner.contains(quote)) {
            return inner;
        }
    }
    text
}
