//! Rule pattern that *always* proposes for a shell line.
//!
//! Wide enough to avoid further questions, but never for arbitrary commands.

use ikigai_core::word_list::WordList;

use super::patterns::literal;
use super::read_only_lines::{is_reading, reads_with_any_option};
use super::shell::{self, Word};
use super::wrappers::{is_harmless_set, unwrap_command};

/// Programs for which only the exact line is proposed: they delete, grant, fetch or run anything.
const EXACT: WordList = WordList(
    ". awk bash builtin bun chgrp chmod chown chroot crontab curl dash dd deno doas env eval exec
     fdisk find fish gawk ionice kill killall ksh ln mkfs mount mv nc ncat nice node nohup npx
     osascript parallel perl php pkill python python2 python3 rm rmdir rsync ruby scp sed setsid
     sftp sh shred socat source ssh stdbuf su sudo systemctl tee time timeout trap truncate umount
     unlink uvx watch wget xargs zsh",
);

/// Subcommands for which only the exact line is proposed.
const EXACT_SUBCOMMANDS: &[(&str, &str)] = &[
    ("cargo", "install"),
    ("cargo", "login"),
    ("cargo", "publish"),
    ("docker", "exec"),
    ("docker", "run"),
    ("git", "bisect"),
    ("git", "clean"),
    ("git", "config"),
    ("git", "filter-branch"),
    ("git", "push"),
    ("git", "reset"),
    ("git", "submodule"),
    ("kubectl", "apply"),
    ("kubectl", "delete"),
    ("kubectl", "exec"),
    ("npm", "exec"),
    ("npm", "publish"),
    ("terraform", "apply"),
    ("terraform", "destroy"),
    ("uv", "run"),
];

/// Programs without subcommands; their first argument is not part of the pattern.
const FLAT: &[&str] = &[
    "black", "cp", "eslint", "gofmt", "jest", "mkdir", "mypy", "prettier", "pytest", "ruff",
    "rustc", "rustfmt", "touch", "tsc", "vitest",
];

/// Subcommands that have subcommands.
const NESTED: &[(&str, &str)] = &[
    ("docker", "compose"),
    ("npm", "run"),
    ("pnpm", "run"),
    ("yarn", "run"),
];

/// Returns the proposed pattern for a shell line. It matches the line.
///
/// If only one command of the line does more than read, the pattern is this command with its
/// subcommand and any further words. Otherwise, or if the line or command does not allow this, it
/// is the exact line.
pub fn pattern_for(line: &str) -> String {
    let exact = || literal(shell::trim_line(line));
    let Some(commands) = shell::commands(line) else {
        return exact();
    };
    let needs_rule = |command: &&Vec<Word>| !is_reading(command) && !is_harmless_set(command);
    let mut effective = commands.iter().filter(needs_rule);
    let one = match (effective.next(), effective.next(), commands.as_slice()) {
        (Some(one), None, _) => one,
        (None, _, [only]) => only,
        _ => return exact(),
    };
    beginning(unwrap_command(one))
        .map_or_else(exact, |beginning| format!("{} *", literal(&beginning)))
}

/// Returns the command and subcommand, if any words may follow them.
fn beginning(command: &[Word]) -> Option<String> {
    let (name, arguments) = command.split_first()?;
    let name = name.text.as_str();
    if !is_name(name) || EXACT.contains(name) {
        return None;
    }
    let first = arguments.first().map(|word| word.text.as_str());
    let is_listed =
        |list: &[(&str, &str)]| first.is_some_and(|first| list.contains(&(name, first)));
    if FLAT.contains(&name) || reads_with_any_option(name) {
        return Some(name.to_owned());
    }
    if is_listed(EXACT_SUBCOMMANDS) {
        return None;
    }
    match arguments {
        [sub, third, ..] if is_listed(NESTED) => {
            is_name(&third.text).then(|| format!("{name} {} {}", sub.text, third.text))
        }
        [sub, ..] if !is_listed(NESTED) => {
            is_name(&sub.text).then(|| format!("{name} {}", sub.text))
        }
        _ => None,
    }
}

/// Returns true if a word is a name: no option, path, assignment or pattern.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_:+".contains(c))
}
