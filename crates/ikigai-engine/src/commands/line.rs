//! Parsing of typed lines: message, command or shell command.

use super::{Command, Takes, options};
use crate::frontend::UserRequest;
use crate::input::{CommandLine, ShellLine, UnknownCommand, UserInput};

impl UserInput {
    /// Parses a line; called where it enters the program.
    ///
    /// Only a first word of letters and `-` after `/` is a command: paths, and lines that begin
    /// with a space or with `//`, are messages.
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

/// Returns the first word of a command line and the rest; none for other lines.
pub(super) fn command_word(line: &str) -> Option<(&str, &str)> {
    let after = line.strip_prefix('/')?;
    let end = after.find(char::is_whitespace).unwrap_or(after.len());
    let (name, rest) = after.split_at(end);
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '-';
    (!name.is_empty() && name.chars().all(is_letter)).then_some((name, rest))
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

/// Splits a text into words.
pub(super) fn words(text: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut left = text;
    while let Some((word, after)) = next_word(left)? {
        found.push(word);
        left = after;
    }
    Ok(found)
}

/// Splits off the first word and the space behind it.
/// Single quotes keep everything, double quotes everything but backslashes, and a backslash keeps
/// the character after it.
pub(super) fn next_word(text: &str) -> Result<Option<(String, &str)>, String> {
    let text = text.trim_start();
    if text.is_empty() {
        return Ok(None);
    }
    let mut word = String::new();
    let mut quote = None;
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None | Some('"'), '\\') => match characters.next() {
                Some((_, kept)) => word.push(kept),
                None => return Err("nothing follows the last backslash".to_owned()),
            },
            (None, c) if c.is_whitespace() => return Ok(Some((word, text[at..].trim_start()))),
            (_, c) => word.push(c),
        }
    }
    match quote {
        Some(open) => Err(format!("missing closing {open}")),
        None => Ok(Some((word, ""))),
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
