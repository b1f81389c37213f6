//! Completion at the cursor. Pure, so that all screens complete alike.

use std::borrow::Cow;
use std::ops::Range;

use super::{Completes, all, find};
use crate::input::{command_word, is_command_name};

/// Candidates by kind. The caller fills in the kind that [`wanted`] returns.
#[derive(Clone, Debug, Default)]
pub struct CompletionContext {
    /// Names of the user's and the project's commands and skills.
    pub callables: Vec<Candidate>,
    /// Labels of marks, the newest first.
    pub marks: Vec<Candidate>,
    /// Names of agents.
    pub agents: Vec<Candidate>,
    /// Names of models.
    pub models: Vec<Candidate>,
    /// Names of tools.
    pub tools: Vec<Candidate>,
    /// Files of the directory being typed, in typed form; directories end with `/`.
    pub paths: Vec<Candidate>,
    /// Pinned files.
    pub pins: Vec<Candidate>,
}

/// Word at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Kind of its candidates.
    pub what: Completes,
    /// Typed part.
    pub typed: String,
    /// Its start in the line, in bytes.
    pub from: usize,
}

/// Completion of the typed word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Text to insert.
    pub text: String,
    /// Description; may be empty.
    pub help: Cow<'static, str>,
    /// Matched characters, as byte offsets.
    pub matched: Vec<usize>,
    /// Highlighted ranges of the description, in bytes.
    pub marks: Vec<Range<usize>>,
}

impl Candidate {
    /// Creates a candidate with a description.
    pub fn new(text: impl Into<String>, help: impl Into<Cow<'static, str>>) -> Self {
        Self {
            text: text.into(),
            help: help.into(),
            matched: Vec::new(),
            marks: Vec::new(),
        }
    }
}

impl From<&str> for Candidate {
    fn from(text: &str) -> Self {
        Self::new(text, "")
    }
}

impl From<String> for Candidate {
    fn from(text: String) -> Self {
        Self::new(text, "")
    }
}

/// Longest word that is completed, in bytes; no name is longer.
const LONGEST_WORD: usize = 1024;

/// Returns the word at the cursor, a byte offset; none if nothing completes there.
pub fn wanted(line: &str, cursor: usize) -> Option<Wanted> {
    let at_cursor = word_at(line, cursor)?;
    (at_cursor.typed.len() <= LONGEST_WORD).then_some(at_cursor)
}

fn word_at(line: &str, cursor: usize) -> Option<Wanted> {
    let before = line.get(..cursor)?;
    if before.starts_with('/') && !before.contains(char::is_whitespace) {
        let typed = before.get(1..)?.to_owned();
        let is_name = typed.is_empty() || is_command_name(&typed);
        return is_name.then_some(Wanted {
            what: Completes::Commands,
            typed,
            from: 1,
        });
    }
    let word_at = before.rfind(char::is_whitespace).map_or(0, |at| {
        at + before[at..].chars().next().map_or(0, char::len_utf8)
    });
    let word = &before[word_at..];
    if let Some((name, rest)) = command_word(before) {
        let command = find(name)?;
        // A quoted argument is free text, and complete with its closing quote.
        if rest.contains(['"', '\'']) {
            return None;
        }
        let line_before = before;
        let before = rest[..rest.len() - word.len()].split_whitespace();
        let is_argument = |word: &&str| command.options.is_empty() || !word.starts_with("--");
        let index = before.filter(is_argument).count();
        let last = command.completes.last();
        let what = *command.completes.get(index).or(last)?;
        if what == Completes::Marks {
            // A label may have spaces: all of it is one argument.
            return Some(Wanted {
                what,
                typed: rest.trim_start().to_owned(),
                from: line_before.len() - rest.trim_start().len(),
            });
        }
        // `-` before a path removes a pin.
        let sign = usize::from(what == Completes::Paths && word.starts_with('-'));
        return (what != Completes::Nothing).then(|| Wanted {
            what: if sign == 1 { Completes::Pins } else { what },
            typed: word[sign..].to_owned(),
            from: word_at + sign,
        });
    }
    let typed = word.strip_prefix('@')?;
    Some(Wanted {
        what: Completes::Paths,
        typed: typed.to_owned(),
        from: word_at + 1,
    })
}

/// Completes the word at the cursor.
/// Order: prefix matches, matches at the start of a word, substrings, then scattered letters in
/// order.
pub fn complete(line: &str, cursor: usize, context: &CompletionContext) -> Vec<Candidate> {
    let Some(wanted) = wanted(line, cursor) else {
        return Vec::new();
    };
    narrow(choices(wanted.what, context), &wanted.typed)
}

/// Filters candidates by the typed text, in the order of [`complete`].
pub fn narrow(candidates: Vec<Candidate>, typed: &str) -> Vec<Candidate> {
    if typed.len() > LONGEST_WORD {
        return Vec::new();
    }
    let letters = small(typed);
    let mut ranked: Vec<_> = candidates
        .into_iter()
        .filter_map(|mut candidate| {
            let (rank, matched) = rank(&candidate.text, typed, &letters)?;
            candidate.matched = matched;
            Some((rank, candidate))
        })
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Returns true if a line can run as typed.
/// The word at the cursor is a whole candidate, or it is empty and optional.
pub fn is_complete(line: &str, cursor: usize, context: &CompletionContext) -> bool {
    let Some(wanted) = wanted(line, cursor) else {
        return true;
    };
    if wanted.what == Completes::Commands && wanted.from == 1 {
        let mut callables = context.callables.iter();
        return find(&wanted.typed).is_some() || callables.any(|it| it.text == wanted.typed);
    }
    if wanted.typed.is_empty() {
        let needed = command_word(line).is_some_and(|(name, before)| {
            let is_first = before.trim().is_empty();
            let command = find(name);
            is_first && command.is_some_and(|command| !command.arguments.starts_with('['))
        });
        return !needed;
    }
    let found = complete(line, cursor, context);
    found.is_empty() || found.iter().any(|found| is_named(found, &wanted))
}

/// Returns true if the typed word names this candidate.
/// The provider of a model and the slash of a directory are optional.
fn is_named(found: &Candidate, wanted: &Wanted) -> bool {
    let short = match wanted.what {
        Completes::Models => found.text.split_once(':').map(|(_, name)| name),
        Completes::Directories => found.text.strip_suffix('/'),
        _ => None,
    };
    found.text == wanted.typed || short == Some(wanted.typed.as_str())
}

fn choices(what: Completes, context: &CompletionContext) -> Vec<Candidate> {
    match what {
        Completes::Nothing => Vec::new(),
        Completes::Commands => commands(context),
        Completes::Marks => context.marks.clone(),
        Completes::Agents => context.agents.clone(),
        Completes::Models => context.models.clone(),
        Completes::Tools => context.tools.clone(),
        Completes::Paths => context.paths.clone(),
        Completes::Directories => {
            let paths = context.paths.iter();
            let directories = paths.filter(|path| path.text.ends_with('/'));
            directories.cloned().collect()
        }
        Completes::Pins => context.pins.clone(),
        Completes::Words(words) => words.iter().map(|word| (*word).into()).collect(),
    }
}

fn commands(context: &CompletionContext) -> Vec<Candidate> {
    let candidates = all().flat_map(|command| {
        let names = [command.name]
            .into_iter()
            .chain(command.aliases.iter().copied());
        names.map(|name| Candidate::new(name, command.help))
    });
    let callables = context.callables.iter();
    let others = callables.filter(|callable| find(&callable.text).is_none());
    candidates.chain(others.cloned()).collect()
}

/// Quality of a match, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Prefix.
    Begins,
    /// Prefix, ignoring case.
    BeginsAlike,
    /// Start of a word.
    Word,
    /// Substring.
    Within,
    /// Letters in order, in this number of pieces.
    Scattered(usize),
}

/// Returns the quality of a match and the matched positions, if any.
fn rank(text: &str, typed: &str, letters: &[char]) -> Option<(Rank, Vec<usize>)> {
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let own = small(text);
    let run = |from: usize| {
        let places = places.iter().skip(from).take(letters.len());
        places.copied().collect()
    };
    if own.starts_with(letters) {
        let same = text.starts_with(typed);
        let rank = if same {
            Rank::Begins
        } else {
            Rank::BeginsAlike
        };
        return Some((rank, run(0)));
    }
    let mut within = None;
    for (from, window) in own.windows(letters.len()).enumerate().skip(1) {
        if window == letters {
            let before = own.get(from - 1);
            if before.is_some_and(|before| !before.is_alphanumeric()) {
                return Some((Rank::Word, run(from)));
            }
            within = within.or(Some(from));
        }
    }
    if let Some(from) = within {
        return Some((Rank::Within, run(from)));
    }
    let mut left = letters.iter().peekable();
    let (mut matched, mut pieces, mut last) = (Vec::new(), 0, None);
    for (index, (letter, place)) in own.iter().zip(&places).enumerate() {
        if left.next_if_eq(&letter).is_some() {
            matched.push(*place);
            pieces += usize::from(last.map(|last| last + 1) != Some(index));
            last = Some(index);
        }
    }
    left.peek()
        .is_none()
        .then_some((Rank::Scattered(pieces), matched))
}

/// Returns the characters of a text in lower case, one for each.
fn small(text: &str) -> Vec<char> {
    let small = |letter: char| letter.to_lowercase().next().unwrap_or(letter);
    text.chars().map(small).collect()
}

#[cfg(test)]
mod tests;
