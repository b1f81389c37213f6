//! Matching of rules and calls.

use std::path::{Path, PathBuf};

use ikigai_core::EffectClass;
use ikigai_core::settings::Rule;
use ikigai_core::word_list::WordList;

use super::patterns::{
    Reach, is_exactly, matches_address, matches_command, matches_path, matches_text,
};
use super::read_only_lines::{git_use, is_inert, is_reading_line};
use super::shell::{self, Word};
use super::wrappers::{Directories, is_harmless_set, unwrap_command};
use super::{Sandbox, rule_tool};
use crate::paths::follow;
use crate::tool_names::current_name;
use crate::{Paths, Place, Prepared};

/// Tool that has a shell line as its subject.
const SHELL_TOOL: &str = "bash";

/// Words that run the command after them.
const RUNNERS: WordList = WordList(
    "! arch builtin busybox bwrap caffeinate catchsegv cgexec chronic chroot chrt command coproc
     cpulimit dbus-launch dbus-run-session do doas elif else entr env eval exec fakeroot firejail
     flock gosu i386 if ionice linux32 linux64 ltrace nice nohup nsenter numactl parallel pkexec
     prlimit proxychains proxychains4 runuser sem setarch setpriv setsid ssh stdbuf strace su-exec
     sudo systemd-run taskset then time timeout torify torsocks toybox trap tsocks uname26 unbuffer
     unshare until valgrind watch while x86_64 xargs xvfb-run",
);

/// Runners with a first operand that is no part of the command, such as a file or a user.
const OPERAND_RUNNERS: &[&str] = &["chroot", "flock", "gosu", "setarch", "ssh", "su-exec"];

/// Words inside a command that run the command after them, such as those of `find`.
const INNER_RUNNERS: WordList = WordList("--exec --exec-batch -exec -execdir -ok -okdir");

/// Most words before a subcommand that are looked through.
const MOST_OPTIONS: usize = 16;

/// Call, as rules see it.
pub(super) struct RuleCall<'a> {
    tool: &'a str,
    /// Tool of the rules that allow the call, if it runs outside the sandbox.
    unconfined: Option<String>,
    place: &'a Place,
    target: RuleTarget<'a>,
}

enum RuleTarget<'a> {
    /// Shell line.
    Line(&'a str),
    /// Absolute paths of files.
    Paths(&'a [PathBuf]),
    /// Address, or another text.
    Text(&'a str),
}

impl<'a> RuleCall<'a> {
    pub(super) fn new(tool: &'a str, prepared: &'a Prepared, place: &'a Place) -> Self {
        let paths = match prepared.class {
            EffectClass::Read => &prepared.touches.reads,
            EffectClass::Write => &prepared.touches.writes,
            EffectClass::Execute | EffectClass::Network | EffectClass::Agent => &Paths::None,
        };
        let target = match paths {
            _ if tool == SHELL_TOOL => RuleTarget::Line(shell::trim_line(&prepared.subject)),
            Paths::Below(paths) if !paths.is_empty() => RuleTarget::Paths(paths),
            _ => RuleTarget::Text(&prepared.subject),
        };
        let unconfined = prepared.unconfined.as_ref();
        Self {
            tool,
            unconfined: unconfined.map(|_| rule_tool(tool, prepared)),
            place,
            target,
        }
    }

    /// Creates a rule for this tool.
    pub(super) fn rule(&self, pattern: String) -> Rule {
        let tool = self.unconfined.as_deref().unwrap_or(self.tool);
        Rule {
            tool: Some(tool.to_owned()),
            pattern: Some(pattern),
        }
    }

    /// Returns the subject that an exact pattern for this call must match.
    pub(super) fn exact_subject(&self) -> String {
        match self.target {
            RuleTarget::Line(text) | RuleTarget::Text(text) => text.to_owned(),
            RuleTarget::Paths(paths) => {
                let path = paths.first().and_then(|path| follow(path));
                path.unwrap_or_default().to_string_lossy().into_owned()
            }
        }
    }

    /// Returns true for a shell line that only reads.
    pub(super) fn is_reading_line(&self) -> bool {
        matches!(self.target, RuleTarget::Line(line) if is_reading_line(line))
    }

    /// Returns true if rules allow the whole call.
    ///
    /// A rule without a tool or pattern allows nothing.
    pub(super) fn is_allowed_by<'r>(
        &self,
        rules: impl Iterator<Item = &'r Rule>,
        sandbox: Sandbox,
    ) -> bool {
        let patterns: Vec<&str> = rules
            .filter(|rule| self.may_allow(rule))
            .filter_map(|rule| rule.pattern.as_deref())
            .collect();
        match self.target {
            RuleTarget::Line(line) => allow_line(&patterns, line, sandbox, self.place),
            RuleTarget::Paths(paths) => paths.iter().all(|path| self.allow_path(&patterns, path)),
            RuleTarget::Text(text) => patterns.iter().any(|pattern| {
                if pattern.contains("://") {
                    matches_address(pattern, text)
                } else {
                    matches_text(pattern, text)
                }
            }),
        }
    }

    /// Returns true if a rule refuses a part of the call.
    ///
    /// A rule without a pattern refuses every call.
    pub(super) fn is_refused_by(&self, rule: &Rule) -> bool {
        let pattern = rule.pattern.as_deref().unwrap_or("*");
        (self.is_meant(rule) || self.is_meant_unconfined(rule))
            && match self.target {
                RuleTarget::Line(line) => refuses_line(pattern, line),
                RuleTarget::Paths(paths) => {
                    paths.iter().any(|path| self.refuses_path(pattern, path))
                }
                RuleTarget::Text(text) => {
                    matches_text(pattern, text) || matches_address(pattern, text)
                }
            }
    }

    fn is_meant(&self, rule: &Rule) -> bool {
        let tool = rule.tool.as_deref().map(current_name);
        tool.is_some_and(|tool| matches_text(tool, self.tool))
    }

    fn is_meant_unconfined(&self, rule: &Rule) -> bool {
        self.unconfined.is_some() && rule.tool == self.unconfined
    }

    /// Returns true if a rule names the tool; outside the sandbox it must name exactly that.
    fn may_allow(&self, rule: &Rule) -> bool {
        match self.unconfined {
            Some(_) => self.is_meant_unconfined(rule),
            None => self.is_meant(rule),
        }
    }

    /// Returns true if patterns allow the target of a path, links resolved.
    ///
    /// So a link below an allowed directory does not extend the directory.
    fn allow_path(&self, patterns: &[&str], path: &Path) -> bool {
        if patterns.contains(&"*") {
            return true;
        }
        let (Some(path), Some(workdir)) = (follow(path), follow(&self.place.workdir)) else {
            return false;
        };
        // The working directory itself may be a link, and patterns use its name.
        let as_named = path.strip_prefix(&workdir).ok();
        let as_named = as_named.map(|rest| self.place.workdir.join(rest));
        patterns.iter().any(|pattern| {
            matches_path(pattern, &path, &workdir, Reach::ExceptGuarded)
                || as_named.as_ref().is_some_and(|path| {
                    matches_path(pattern, path, &self.place.workdir, Reach::ExceptGuarded)
                })
        })
    }

    fn refuses_path(&self, pattern: &str, path: &Path) -> bool {
        let workdir = follow(&self.place.workdir);
        let workdir = workdir.as_deref().unwrap_or(&self.place.workdir);
        let refuses = |path: &Path| {
            matches_path(pattern, path, &self.place.workdir, Reach::Everything)
                || matches_path(pattern, path, workdir, Reach::Everything)
        };
        pattern == "*" || refuses(path) || follow(path).is_some_and(|path| refuses(&path))
    }
}

/// Returns true if patterns allow every command of a line.
///
/// Harmless words around a command, `set` and `cd` below the working directory need no rule.
/// Commands that only read need none if the sandbox is in force.
pub(super) fn allow_line(patterns: &[&str], line: &str, sandbox: Sandbox, place: &Place) -> bool {
    if patterns
        .iter()
        .any(|pattern| *pattern == "*" || is_exactly(pattern, line))
    {
        return true;
    }
    let Some(commands) = shell::commands(line) else {
        return false;
    };
    let is_ruled = |command: &[Word]| {
        has_rule(patterns, command) || has_rule(patterns, unwrap_command(command))
    };
    let git = git_use(&commands);
    let mut directories = Directories::new(place);
    commands.iter().any(|command| is_ruled(command))
        && commands.iter().all(|command| {
            let is_cd = command.first().is_some_and(|name| name.text == "cd");
            is_ruled(command)
                || is_harmless_set(command)
                || (is_cd && directories.enter(command))
                || (!is_cd && sandbox == Sandbox::InForce && is_inert(command, git))
        })
}

fn has_rule(patterns: &[&str], command: &[Word]) -> bool {
    let command = shell::spell_command(command);
    patterns
        .iter()
        .any(|pattern| matches_command(pattern, &command))
}

/// Returns true if a pattern refuses a command of a line.
///
/// This is best effort: a line can hide its commands (`eval`, a script), and only the sandbox helps
/// against that.
pub(super) fn refuses_line(pattern: &str, line: &str) -> bool {
    // The shell joins lines at a backslash before any other rule.
    let line = line.replace("\\\n", "");
    let understood = shell::commands(&line).unwrap_or_default();
    let spelled = understood
        .iter()
        .map(|command| shell::spell_command(command));
    let is_quote = |c: char| matches!(c, '\'' | '"' | '\\');
    let unquoted = line.replace(is_quote, "");
    // `{rm,-rf,x}` becomes the words in the braces.
    let expanded = unquoted.replace(',', " ");
    let rough = [&line, &unquoted, &expanded].map(|line| rough_commands(line));
    let rough = rough.concat();
    matches_command(pattern, &line)
        || spelled
            .chain(rough)
            .any(|command| refuses_command(pattern, &command))
}

/// Splits a line at every character that can end a command.
///
/// A part behind `<` or `>` begins with a file name, and the command may follow it.
fn rough_commands(line: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut is_target = false;
    let ends_command = |c: char| ";|&\n\r(){}`'\"$<>".contains(c);
    for part in line.split_inclusive(ends_command) {
        let text = part.trim_end_matches(ends_command);
        let words: Vec<_> = text.split_whitespace().collect();
        commands.push(words.join(" "));
        if is_target && let Some((_, behind)) = words.split_first() {
            commands.push(behind.join(" "));
        }
        is_target = part.ends_with(['<', '>']) || is_target && words.is_empty();
    }
    commands
}

/// Checks a command, the commands that it runs, and the program without its directory.
fn refuses_command(pattern: &str, command: &str) -> bool {
    let mut words = command.split(' ');
    while let Some(word) = words.next() {
        if INNER_RUNNERS.contains(word) {
            let inner: Vec<_> = words.collect();
            return refuses_command(pattern, &inner.join(" ")) || refuses_wrapped(pattern, command);
        }
    }
    refuses_wrapped(pattern, command)
}

/// Checks a program without the options before its subcommand: `git -C dir push` is `git push`.
///
/// The word behind an option may be its value.
fn refuses_subcommand(pattern: &str, program: &str, arguments: &str) -> bool {
    let mut rest = arguments;
    let mut follows_option = false;
    for _ in 0..MOST_OPTIONS {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        let is_option = word.starts_with(['-', '+']);
        if after.is_empty() || !(is_option || follows_option) {
            return false;
        }
        if matches_command(pattern, &format!("{program} {after}")) {
            return true;
        }
        follows_option = is_option;
        rest = after;
    }
    false
}

/// Checks the commands behind the runners that a command begins with.
fn refuses_wrapped(pattern: &str, command: &str) -> bool {
    let mut command = command;
    let mut is_behind_runner = false;
    let mut follows_option = false;
    let mut has_operand = false;
    loop {
        let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
        let base = name.rsplit('/').next().unwrap_or(name);
        let plain = format!("{base} {rest}");
        if matches_command(pattern, command)
            || matches_command(pattern, plain.trim_end())
            || refuses_subcommand(pattern, base, rest)
        {
            return true;
        }
        let is_runner = RUNNERS.contains(base);
        let is_option = name.starts_with('-');
        // Options of a runner, their values, and numbers such as the time of `timeout`.
        let is_runners_own = is_behind_runner
            && (is_option || follows_option || name.starts_with(|c: char| c.is_ascii_digit()));
        let is_operand = has_operand && !is_option && !is_runners_own;
        if rest.is_empty() || !(is_runner || is_runners_own || is_operand || name.contains('=')) {
            return false;
        }
        is_behind_runner |= is_runner;
        has_operand = OPERAND_RUNNERS.contains(&base) || has_operand && !is_operand;
        follows_option = is_option;
        command = rest;
    }
}
