//! Harmless words around a command, which a rule for the command covers.
//!
//! `timeout 60 cargo test` and `RUST_BACKTRACE=1 cargo test` do the same as `cargo test`. Only the
//! words listed here are skipped; any other keeps the command from matching the rule.

use std::path::PathBuf;

use ikigai_core::word_list::WordList;

use super::shell::Word;
use crate::Place;
use crate::paths::follow;

/// Variables that change a program's reports, and not its code.
const VARIABLES: WordList = WordList(
    "CI CLICOLOR CLICOLOR_FORCE COLORTERM COLUMNS DEBUG FORCE_COLOR LANG LANGUAGE LINES LOG_LEVEL
     NO_COLOR PROPTEST_CASES PYTHONUNBUFFERED RUST_BACKTRACE RUST_LIB_BACKTRACE RUST_LOG
     RUST_TEST_THREADS TERM TZ VERBOSE",
);

/// Prefix of further harmless variables: the parts of a locale.
const LOCALE_PREFIX: &str = "LC_";

/// Options of `timeout` without and with a value.
const TIMEOUT_FLAGS: &[&str] = &["--foreground", "--preserve-status", "--verbose", "-v"];
const TIMEOUT_VALUED: &[&str] = &["--kill-after", "--signal", "-k", "-s"];

/// Letters and names of shell options that only make a line stricter or louder.
const SET_LETTERS: &str = "eux";
const SET_NAMES: &[&str] = &["errexit", "nounset", "pipefail", "xtrace"];

/// Most changes of directory in one line that are followed.
const MOST_DIRECTORIES: usize = 8;

/// Returns the command behind harmless words, or the command itself.
pub(super) fn unwrap_command(command: &[Word]) -> &[Word] {
    let mut inner = command;
    while let Some(next) = unwrap_once(inner) {
        inner = next;
    }
    inner
}

/// Removes one wrapper; none if there is none, or no command behind it.
fn unwrap_once(command: &[Word]) -> Option<&[Word]> {
    let (name, rest) = command.split_first()?;
    let inner = match name.text.as_str() {
        _ if name.is_assignment() => is_harmless_assignment(name).then_some(rest)?,
        "env" => {
            let is_assigned = |word: &&Word| is_harmless_assignment(word);
            let count = rest.iter().take_while(is_assigned).count();
            rest.get(count..)?
        }
        "timeout" => after_timeout(rest)?,
        "nice" => match rest {
            [option, value, inner @ ..] if option.text == "-n" => {
                is_number(&value.text).then_some(inner)?
            }
            [option, inner @ ..] if option.text.starts_with("--adjustment=") => {
                is_number(&option.text["--adjustment=".len()..]).then_some(inner)?
            }
            inner => inner,
        },
        // If quoted, it is the program `time`, which can write a file.
        "time" if !name.is_quoted() => match rest {
            [option, inner @ ..] if option.text == "-p" => inner,
            inner => inner,
        },
        _ => return None,
    };
    let begins_command = |word: &Word| {
        // An option would belong to the wrapper, or to a program of that name.
        !word.text.is_empty() && !word.text.starts_with('-') && !word.expands
    };
    inner.first().is_some_and(begins_command).then_some(inner)
}

/// Returns the command behind `timeout`, its options and the duration.
fn after_timeout(words: &[Word]) -> Option<&[Word]> {
    let mut rest = words;
    loop {
        let (word, after) = rest.split_first()?;
        let text = word.text.as_str();
        if word.expands {
            return None;
        }
        let (option, value) = text.split_once('=').unwrap_or((text, ""));
        if TIMEOUT_FLAGS.contains(&text) {
            rest = after;
        } else if TIMEOUT_VALUED.contains(&text) {
            let (value, after) = after.split_first()?;
            rest = is_plain_value(value).then_some(after)?;
        } else if option.starts_with("--") && TIMEOUT_VALUED.contains(&option) {
            rest = value.chars().all(is_plain_char).then_some(after)?;
        } else {
            return is_duration(text).then_some(after);
        }
    }
}

/// Returns true if a command only sets the handling of failures: `set -euo pipefail`.
pub(super) fn is_harmless_set(command: &[Word]) -> bool {
    let Some((name, mut rest)) = command.split_first() else {
        return false;
    };
    if name.text != "set" || rest.is_empty() {
        return false;
    }
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let Some(letters) = word.text.strip_prefix('-') else {
            return false;
        };
        let (letters, takes_name) = match letters.strip_suffix('o') {
            Some(letters) => (letters, true),
            None => (letters, false),
        };
        if letters.is_empty() && !takes_name || !letters.chars().all(|c| SET_LETTERS.contains(c)) {
            return false;
        }
        if takes_name {
            let Some((name, after)) = rest.split_first() else {
                return false;
            };
            if !SET_NAMES.contains(&name.text.as_str()) {
                return false;
            }
            rest = after;
        }
    }
    true
}

/// Directories in which the commands of a line may run.
///
/// A `cd` can fail, so the directories before it stay possible.
pub(super) struct Directories {
    possible: Vec<PathBuf>,
    workdir: Option<PathBuf>,
}

impl Directories {
    pub(super) fn new(place: &Place) -> Self {
        Self {
            possible: vec![place.workdir.clone()],
            workdir: follow(&place.workdir),
        }
    }

    /// Follows a `cd`; returns true if it stays below the working directory, links resolved.
    pub(super) fn enter(&mut self, command: &[Word]) -> bool {
        let [name, target] = command else {
            return false;
        };
        let Some(workdir) = &self.workdir else {
            return false;
        };
        let text = target.text.as_str();
        let goes_down = !text.is_empty()
            && !text.starts_with(['/', '-', '~'])
            && !target.expands
            && text.split('/').all(|part| part != "..");
        if name.text != "cd" || !goes_down || 2 * self.possible.len() > MOST_DIRECTORIES {
            return false;
        }
        let entered: Vec<_> = self.possible.iter().map(|from| from.join(text)).collect();
        let stays = |path: &PathBuf| follow(path).is_some_and(|path| path.starts_with(workdir));
        let all_stay = entered.iter().all(stays);
        self.possible.extend(entered);
        all_stay
    }
}

fn is_harmless_assignment(word: &Word) -> bool {
    let Some((name, value)) = word.text.split_once('=') else {
        return false;
    };
    let is_locale = name
        .strip_prefix(LOCALE_PREFIX)
        .is_some_and(|part| part.chars().all(|c| c.is_ascii_uppercase()));
    word.is_assignment()
        && !word.expands
        && (is_locale || VARIABLES.contains(name))
        && value.chars().all(is_plain_char)
}

fn is_plain_value(word: &Word) -> bool {
    !word.expands && !word.text.starts_with('-') && word.text.chars().all(is_plain_char)
}

/// Returns true for characters of values that name no file.
fn is_plain_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.,:=+@% ".contains(c)
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
}

/// Accepts durations such as `60` and `1.5m`.
fn is_duration(text: &str) -> bool {
    let number = text.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(text);
    number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.')
}
