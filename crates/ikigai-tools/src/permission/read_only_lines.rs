//! Detection of shell lines that only read.

use std::fmt::Write as _;

use ikigai_core::word_list::WordList;

use super::git::{BEFORE, SUBCOMMANDS};
use super::programs::{Operands, Options, Program, programs};
use super::shell::{self, ShellCommand, Word};
use super::wrappers::unwrap_command;
use crate::process::enforces_git;

/// Returns true if all commands of a line are known to only read.
///
/// Such a line must still run in a sandbox without write access and network: a program may do other
/// things if its configuration says so.
pub(super) fn is_reading_line(line: &str) -> bool {
    shell::commands(line).is_some_and(|commands| commands.iter().all(|command| is_reading(command)))
}

/// Returns true if a command is known to only read.
pub(super) fn is_reading(command: &[Word]) -> bool {
    let Some((name, arguments)) = command.split_first() else {
        return false;
    };
    if name.text == "git" {
        return is_reading_git(arguments);
    }
    find(programs(), name).is_some_and(|program| program.allows(arguments))
}

/// Git in a line, as it will run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GitUse {
    /// It runs programs from the repository's settings.
    Free,
    /// It runs none.
    Restricted,
}

/// Returns true if a line runs git only to read, next to a command that does more.
///
/// Then git is restricted. A line that only reads is confined, or approved as it is.
pub(crate) fn reads_with_git(line: &str) -> bool {
    shell::commands(line).is_some_and(|commands| git_use(&commands) == GitUse::Restricted)
}

/// Returns how the git commands of a line will run.
pub(super) fn git_use(commands: &[ShellCommand]) -> GitUse {
    let is_git = |command: &&ShellCommand| {
        let inner = unwrap_command(command).first();
        inner.is_some_and(|name| name.text == "git")
    };
    let mut gits = commands.iter().filter(is_git).peekable();
    let reads = gits.peek().is_some() && gits.all(|git| is_reading(git));
    let does_more = commands.iter().any(|command| !is_reading(command));
    if reads && does_more && enforces_git() {
        GitUse::Restricted
    } else {
        GitUse::Free
    }
}

/// Returns true if a command only reads, whatever the files of its directory contain.
///
/// Such a command is safe in a line with another that may write. Not free `git`, which runs
/// programs from the repository's settings, and no word that expands to file names, because a file
/// name can look like an option. Not `cd` either: rules hold for commands in this directory.
pub(super) fn is_inert(command: &[Word], git: GitUse) -> bool {
    let name = command.first().map(|name| name.text.as_str());
    (name != Some("git") || git == GitUse::Restricted)
        && name != Some("cd")
        && !command.iter().any(|word| word.expands)
        && is_reading(command)
}

/// Returns true if a program only reads with any options.
pub(super) fn reads_with_any_option(name: &str) -> bool {
    programs().any(|program| program.name == name && matches!(program.options, Options::Any))
}

fn is_reading_git(arguments: &[Word]) -> bool {
    let mut rest = arguments;
    loop {
        match rest {
            [option, after @ ..] if BEFORE.contains(&option.text) => rest = after,
            [option, _, after @ ..] if option.text == "-C" => rest = after,
            [name, after @ ..] => {
                let known = SUBCOMMANDS.iter().copied();
                return find(known, name).is_some_and(|program| program.allows(after));
            }
            [] => return false,
        }
    }
}

fn find(mut programs: impl Iterator<Item = Program>, name: &Word) -> Option<Program> {
    programs.find(|program| program.name == name.text)
}

impl Program {
    fn allows(&self, arguments: &[Word]) -> bool {
        let is_option = |word: &&Word| word.text.len() > 1 && word.text.starts_with('-');
        let (options, operands): (Vec<&Word>, Vec<&Word>) = arguments.iter().partition(is_option);
        let is_number = |text: &str| text[1..].starts_with(|c: char| c.is_ascii_digit());
        let all_known = options.iter().all(|word| {
            // `find -mtime -7`: no option of `find` begins with a digit.
            self.options.allow(&word.text) || (self.name == "find" && is_number(&word.text))
        });
        all_known && self.operands.allow(arguments, &operands)
    }
}

impl Options {
    /// Returns true if an option, given with its dash, is allowed.
    fn allow(&self, option: &str) -> bool {
        let Self::Only {
            flags,
            valued,
            long,
        } = self
        else {
            return true;
        };
        if option == "--" || long.contains(name_of(option)) {
            return true;
        }
        if option.starts_with("--") {
            return false;
        }
        for letter in option.chars().skip(1) {
            if valued.contains(letter) {
                return true;
            }
            if !flags.contains(letter) {
                return false;
            }
        }
        true
    }
}

impl Operands {
    /// Returns true if these operands are allowed, given all words of the call.
    fn allow(self, all: &[Word], operands: &[&Word]) -> bool {
        let is_one_of = |word: Option<&Word>, names: WordList| {
            word.is_some_and(|word| names.contains(&word.text))
        };
        match self {
            Self::Any => true,
            // A word that expands to file names can become any number of words.
            Self::Most(most) => operands.len() <= most && !operands.iter().any(|one| one.expands),
            Self::With(needed) => {
                let is_needed = |word: &Word| needed.contains(name_of(&word.text));
                operands.is_empty()
                    || all
                        .iter()
                        .find(|word| !is_closed(word) || is_needed(word))
                        .is_some_and(is_needed)
            }
            Self::First(names) => is_one_of(all.first(), names),
            Self::NoneOrFirst(names) => operands.is_empty() || is_one_of(all.first(), names),
            Self::Beginning(begin) => operands.iter().all(|word| word.text.starts_with(begin)),
            Self::LineNumbers => operands
                .first()
                .is_some_and(|word| prints_lines_by_number(&word.text)),
        }
    }
}

/// Returns true if an option cannot take the next word as its value.
///
/// Long options need `=`. Letters count as options without a value, which holds for the callers.
fn is_closed(word: &Word) -> bool {
    let is_letters = word.text.starts_with('-') && !word.text.starts_with("--");
    is_letters || (word.text.starts_with("--") && word.text.contains('='))
}

/// Returns an option without its value.
fn name_of(option: &str) -> &str {
    option.split_once('=').map_or(option, |(name, _)| name)
}

/// Accepts `10p`, `10,20p`, `$p`, `10,$p`, and several of them separated by `;`.
fn prints_lines_by_number(script: &str) -> bool {
    let is_address =
        |text: &str| text == "$" || (!text.is_empty() && text.chars().all(|c| c.is_ascii_digit()));
    script.split(';').all(|command| {
        let lines = command.trim().strip_suffix('p');
        lines.is_some_and(|lines| match lines.split_once(',') {
            None => is_address(lines),
            Some((from, to)) => is_address(from) && is_address(to),
        })
    })
}

/// Returns the table of reading commands for `docs/permissions.md`.
///
/// Commands with the same conditions share a row.
pub fn reading_commands() -> String {
    let git = SUBCOMMANDS.iter().copied().map(|program| ("git ", program));
    let all = programs().map(|program| ("", program)).chain(git);
    let mut rows: Vec<(String, String, String)> = Vec::new();
    for (before, program) in all {
        let name = format!("`{before}{}`", program.name);
        let (options, operands) = (program.options.in_words(), program.operands.in_words());
        let same = rows
            .iter_mut()
            .find(|row| row.1 == options && row.2 == operands);
        match same {
            Some((names, ..)) => {
                names.push(' ');
                names.push_str(&name);
            }
            None => rows.push((name, options, operands)),
        }
    }
    let mut text = String::from("| command | options | other words |\n|---|---|---|\n");
    for (names, options, operands) in rows {
        let _ = writeln!(text, "| {names} | {options} | {operands} |");
    }
    text
}

impl Options {
    fn in_words(&self) -> String {
        let Self::Only {
            flags,
            valued,
            long,
        } = self
        else {
            return "any".to_owned();
        };
        let mut all: Vec<String> = Vec::new();
        all.extend(flags.chars().map(|letter| format!("`-{letter}`")));
        all.extend(valued.chars().map(|letter| format!("`-{letter} …`")));
        all.extend(long.words().map(|name| format!("`{name}`")));
        if all.is_empty() {
            return "none".to_owned();
        }
        all.join(" ")
    }
}

impl Operands {
    fn in_words(self) -> String {
        let listed = |words: WordList| {
            let words: Vec<_> = words.words().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        };
        match self {
            Self::Any => "any".to_owned(),
            Self::Most(most) => format!("at most {most}"),
            Self::With(options) => format!("only with one of {}", listed(options)),
            Self::First(names) => format!("the first is one of {}", listed(names)),
            Self::NoneOrFirst(names) => format!("none, or the first is {}", listed(names)),
            Self::Beginning(begin) => format!("beginning with `{begin}`"),
            Self::LineNumbers => "first what to print by line numbers: `10,20p`".to_owned(),
        }
    }
}
