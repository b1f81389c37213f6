//! Options of commands: one parser for all, before and after the text.

use super::{Command, CommandOption, Takes};

/// Options with their values; empty for flags.
pub(super) type OptionValues = Vec<(&'static str, String)>;

/// Token of a line: an option, a quoted text, or a word.
struct LineToken<'a> {
    /// As typed.
    raw: &'a str,
    /// Without the quotes around it.
    text: String,
    is_quoted: bool,
}

impl LineToken<'_> {
    fn is_option(&self) -> bool {
        !self.is_quoted && self.raw.len() > 2 && self.raw.starts_with("--")
    }
}

/// Takes the options out of a line, anywhere outside of quotes.
///
/// Returns them and the rest of the line verbatim. `--` ends the options; an unknown one is an
/// error.
pub(super) fn split(command: &Command, rest: &str) -> Result<(OptionValues, String), String> {
    let mut options = Vec::new();
    let mut kept: Vec<&str> = Vec::new();
    let mut left = rest;
    // Start of the current piece of text.
    let mut text: Option<&str> = None;
    while let Some((token, after)) = next_token(left) {
        let is_end = !token.is_quoted && token.raw == "--";
        if !is_end && !token.is_option() {
            text.get_or_insert(left.trim_start());
            left = after;
            continue;
        }
        kept.extend(text.take().map(|text| before(text, left)));
        left = after;
        if is_end {
            text = Some(left.trim()).filter(|text| !text.is_empty());
            break;
        }
        let (name, given) = match token.raw.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (token.raw, None),
        };
        let mut known = command.options.iter();
        let Some(option) = known.find(|option| option.name() == name) else {
            return Err(unknown(command, name));
        };
        match (option, given) {
            (CommandOption::Flag(name), None) => options.push((*name, String::new())),
            (CommandOption::Flag(name), Some(_)) => return Err(format!("{name} takes no value")),
            (CommandOption::Value(name), Some(value)) => options.push((*name, value)),
            (CommandOption::Value(name), None) => match next_token(left) {
                Some((value, after)) if !value.is_option() => {
                    options.push((*name, value.text));
                    left = after;
                }
                _ => return Err(format!("{name} needs a value")),
            },
        }
    }
    kept.extend(text.map(str::trim_end));
    Ok((options, kept.join(" ")))
}

/// Splits a line into texts: one to its end, or several if all are quoted.
pub(super) fn texts(rest: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut left = rest;
    while let Some((token, after)) = next_token(left) {
        if !token.is_quoted {
            return vec![rest.trim().to_owned()];
        }
        texts.push(token.text);
        left = after;
    }
    texts
}

/// Returns the text from one token to the start of a later one.
fn before<'a>(text: &'a str, later: &str) -> &'a str {
    text[..text.len() - later.len()].trim_end()
}

fn unknown(command: &Command, option: &str) -> String {
    let hint = match command.takes {
        Takes::Texts | Takes::WordsThenText(_) => " (quote text that begins with --)",
        Takes::Nothing | Takes::Words => "",
    };
    format!("/{} has no option {option}{hint}", command.name)
}

/// Returns the next token of a line, and the rest.
fn next_token(text: &str) -> Option<(LineToken<'_>, &str)> {
    let text = text.trim_start();
    let first = text.chars().next()?;
    if let '"' | '\'' = first
        && let Some((end, unquoted)) = read_quoted(text, first)
    {
        let token = LineToken {
            raw: &text[..end],
            text: unquoted,
            is_quoted: true,
        };
        return Some((token, &text[end..]));
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let raw = &text[..end];
    let token = LineToken {
        raw,
        text: raw.to_owned(),
        is_quoted: false,
    };
    Some((token, &text[end..]))
}

/// Reads a quoted text and its end, if its closing quote ends a word.
fn read_quoted(text: &str, quote: char) -> Option<(usize, String)> {
    let mut unquoted = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        if character == quote {
            let end = at + quote.len_utf8();
            let ends_word = text[end..].chars().next().is_none_or(char::is_whitespace);
            return ends_word.then_some((end, unquoted));
        }
        if character == '\\' && quote == '"' {
            let (_, kept) = characters.next()?;
            unquoted.push(kept);
        } else {
            unquoted.push(character);
        }
    }
    None
}

#[cfg(test)]
mod tests;
