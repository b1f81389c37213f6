//! What a typed line is: a message, a command or a shell line.

use super::{Command, Takes, options};
use crate::frontend::LineForm;

/// A line as it was understood.
#[derive(Clone)]
pub enum Line<'a> {
    /// Something to say to the agent.
    Message(&'a str),
    /// A command.
    Command(&'static Command, &'a str),
    /// What would be a command if there were one of this name.
    Unknown(&'a str),
    /// A line for the user's shell, and whether the model is to see what comes of it.
    Shell {
        /// The command line.
        command: &'a str,
        /// Whether it goes before the model.
        sent: bool,
    },
}

/// Parses a line.
pub fn parse(line: &str) -> Line<'_> {
    match LineForm::of(line) {
        LineForm::Message => Line::Message(line),
        LineForm::Shell { command, sent } => Line::Shell { command, sent },
        LineForm::Command { name, rest } => match Command::find(name) {
            Some(command) => Line::Command(command, rest.trim()),
            None => Line::Unknown(name),
        },
    }
}

/// A command's arguments as they were typed and as they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Typed {
    /// All that follows the name.
    pub(crate) rest: String,
    /// The words, or the words before the text.
    pub(crate) words: Vec<String>,
    /// The text after the words, without the quotes around it.
    pub(crate) text: Option<String>,
    /// Texts, if several quoted ones are taken.
    pub(crate) texts: Vec<String>,
    /// Options that were given, with their values; empty for flags.
    pub(super) options: Vec<(&'static str, String)>,
}

impl Typed {
    /// Reads what follows a command's name, or says what is wrong with it.
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
                let text = unquoted(left.trim());
                typed.text = Some(text.to_owned()).filter(|text| !text.is_empty());
            }
            Takes::Texts => typed.texts = options::texts(rest),
        }
        Ok(typed)
    }

    /// Returns whether a flag was given.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.options.iter().any(|(option, _)| *option == name)
    }

    /// Value of an option; the last one counts.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let mut options = self.options.iter().rev();
        let (_, value) = options.find(|(option, _)| *option == name)?;
        Some(value)
    }

    /// The only word, if there is at most one.
    pub(crate) fn one(&self, command: &str) -> Result<Option<&str>, String> {
        match self.words.as_slice() {
            [] => Ok(None),
            [word] => Ok(Some(word)),
            [..] => Err(format!(
                "/{command} takes one argument · put quotes around one with spaces"
            )),
        }
    }
}

/// All words of a text.
pub(super) fn words(text: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut left = text;
    while let Some((word, after)) = next_word(left)? {
        found.push(word);
        left = after;
    }
    Ok(found)
}

/// The first word and what follows it, without the space between. Single quotes keep everything, double quotes everything but
/// backslashes, and a backslash keeps the character after it.
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
                None => return Err("there is nothing after the last backslash".to_owned()),
            },
            (None, c) if c.is_whitespace() => return Ok(Some((word, text[at..].trim_start()))),
            (_, c) => word.push(c),
        }
    }
    match quote {
        Some(open) => Err(format!("there is no closing {open}")),
        None => Ok(Some((word, ""))),
    }
}

/// A text without the quotes around it; quotes that do not enclose all of it belong to it.
fn unquoted(text: &str) -> &str {
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
