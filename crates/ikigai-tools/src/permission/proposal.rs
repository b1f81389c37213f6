//! What *always* would mean for a shell line: wide enough to spare questions, never a blank cheque.

use super::patterns::literal;
use super::reading::{is_reading, reads_with_any_option};
use super::shell::{self, Word};
use super::wrapped::{is_harmless_set, unwrapped};

/// Programs of which only the very line is proposed: they destroy, grant, fetch or run anything.
const EXACT: &[&str] = &[
    ".",
    "awk",
    "bash",
    "builtin",
    "bun",
    "chgrp",
    "chmod",
    "chown",
    "chroot",
    "crontab",
    "curl",
    "dash",
    "dd",
    "deno",
    "doas",
    "env",
    "eval",
    "exec",
    "fdisk",
    "find",
    "fish",
    "gawk",
    "ionice",
    "kill",
    "killall",
    "ksh",
    "ln",
    "mkfs",
    "mount",
    "mv",
    "nc",
    "ncat",
    "nice",
    "node",
    "nohup",
    "npx",
    "osascript",
    "parallel",
    "perl",
    "php",
    "pkill",
    "python",
    "python2",
    "python3",
    "rm",
    "rmdir",
    "rsync",
    "ruby",
    "scp",
    "sed",
    "setsid",
    "sftp",
    "sh",
    "shred",
    "socat",
    "source",
    "ssh",
    "stdbuf",
    "su",
    "sudo",
    "systemctl",
    "tee",
    "time",
    "timeout",
    "trap",
    "truncate",
    "umount",
    "unlink",
    "uvx",
    "watch",
    "wget",
    "xargs",
    "zsh",
];

/// Subcommands of which only the very line is proposed.
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

/// Programs without subcommands, whose first argument is not part of the pattern.
const FLAT: &[&str] = &[
    "black", "cp", "eslint", "gofmt", "jest", "mkdir", "mypy", "prettier", "pytest", "ruff",
    "rustc", "rustfmt", "touch", "tsc", "vitest",
];

/// Subcommands that have subcommands of their own.
const NESTED: &[(&str, &str)] = &[
    ("docker", "compose"),
    ("npm", "run"),
    ("pnpm", "run"),
    ("yarn", "run"),
];

/// The pattern that is proposed for a shell line. It matches the line.
///
/// Where one command of the line does more than read, it is that command with its subcommand and
/// any further words; where more do, or the line or the command is too much for that, it is the
/// line and nothing else.
pub fn pattern_for(line: &str) -> String {
    let exact = || literal(line.trim());
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
    beginning(unwrapped(one)).map_or_else(exact, |beginning| format!("{} *", literal(&beginning)))
}

/// The words of a command that say what it does, if what follows them may be anything.
fn beginning(command: &[Word]) -> Option<String> {
    let (name, arguments) = command.split_first()?;
    let name = name.text.as_str();
    if !is_name(name) || EXACT.contains(&name) {
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

/// Whether a word names something: not an option, a path, an assignment or a pattern.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_:+".contains(c))
}
