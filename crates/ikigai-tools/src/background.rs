//! Background processes as calls see them: orders to start one, and records of known ones.

use std::path::PathBuf;
use std::time::Duration;

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use crate::BadArguments;
use crate::output::visible;
use crate::process::keeper::{KeeperProgram, OutputPart, ProcessEnd};

/// Longest pattern of a line.
const MOST_PATTERN_BYTES: usize = 1024;

/// Largest compiled pattern.
const MOST_COMPILED_BYTES: usize = 1024 * 1024;

/// Request of a call to start a background process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundOrder {
    /// Its command line.
    pub command: String,
    /// Its working directory.
    pub workdir: PathBuf,
    /// Regular expression of the line that wakes the owner once.
    pub pattern: Option<String>,
}

/// Number and place of a background process that a call starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundPlace {
    /// Its number among the agent's processes.
    pub number: u64,
    /// Directory for its socket and output.
    pub directory: PathBuf,
    /// Program that keeps it.
    pub keeper: KeeperProgram,
    /// Time after which it is stopped.
    pub time_limit: Duration,
}

/// Keeper of a command in the foreground, which leaves it running in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForegroundKeeper {
    /// Directory for its socket and output.
    pub directory: PathBuf,
    /// Program that keeps it.
    pub keeper: KeeperProgram,
    /// Time after which it is stopped.
    pub time_limit: Duration,
}

/// Command that goes on in the background after its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftCommand {
    /// Its command line and working directory.
    pub order: BackgroundOrder,
    /// Directory of its socket and output.
    pub directory: PathBuf,
}

/// Background process that a call may act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownProcess {
    /// Its number, with the owner's name before it if that is another agent: `child.1`.
    pub name: String,
    /// Its command line.
    pub command: String,
    /// Directory of its socket and output.
    pub directory: PathBuf,
    /// Machine on which it runs.
    pub host: String,
    /// True if that is this machine.
    pub is_here: bool,
    /// True if the calling agent owns it.
    pub is_own: bool,
    /// Cookie of its run.
    pub cookie: String,
    /// Bytes of its output that the owner has read.
    pub read_to: u64,
    /// True if its end is recorded.
    pub has_ended: bool,
}

/// Facts about a background process that a call learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessReport {
    /// Cookie of its run.
    pub cookie: String,
    /// Bytes of its output that the agent has read by now.
    pub read_to: Option<u64>,
    /// Its end, if the call saw it.
    pub end: Option<ProcessEnd>,
    /// True if the call started it.
    pub is_started: bool,
    /// The command, if it goes on in the background after its call.
    pub left: Option<LeftCommand>,
}

/// Compiles the pattern of a line.
pub fn compile(pattern: &str) -> Result<RegexMatcher, BadArguments> {
    if pattern.len() > MOST_PATTERN_BYTES {
        return Err(BadArguments(format!(
            "the pattern has {} bytes; the limit is {MOST_PATTERN_BYTES}",
            pattern.len()
        )));
    }
    RegexMatcherBuilder::new()
        .size_limit(MOST_COMPILED_BYTES)
        .build(pattern)
        .map_err(|error| BadArguments(format!("the pattern is not a regular expression: {error}")))
}

/// Search for a line in the growing output of a process.
pub struct LineSearch {
    pattern: RegexMatcher,
    /// Position up to which all lines were searched.
    position: u64,
}

impl LineSearch {
    /// Searches from a position on.
    pub fn new(pattern: RegexMatcher, position: u64) -> Self {
        Self { pattern, position }
    }

    /// Returns the position of the first byte that is not searched yet.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the first matching line of new output, cleaned.
    ///
    /// A line without an end may still grow, so it counts only if the process is over.
    pub fn find(&mut self, part: &OutputPart, is_over: bool) -> Option<String> {
        self.position = self.position.max(part.from);
        for line in part.bytes.split_inclusive(|byte| *byte == b'\n') {
            if !line.ends_with(b"\n") && !is_over {
                return None;
            }
            self.position += line.len() as u64;
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            if self.pattern.is_match(line).unwrap_or(false) {
                return Some(visible(line));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(from: u64, text: &str) -> OutputPart {
        OutputPart {
            bytes: text.as_bytes().to_vec(),
            from,
            to: from + text.len() as u64,
            size: from + text.len() as u64,
        }
    }

    #[test]
    fn a_line_is_matched_once_it_is_whole() {
        let mut search = LineSearch::new(compile("^ready \\d+$").ok().unwrap(), 0);

        assert_eq!(search.find(&part(0, "starting\nready"), false), None);
        assert_eq!(search.position(), 9);
        assert_eq!(search.find(&part(9, "ready 80"), false), None);
        let found = search.find(&part(9, "ready 8080\nready 9\n"), false);
        assert_eq!(found.as_deref(), Some("ready 8080"));
        let found = search.find(&part(20, "ready 7"), true);
        assert_eq!(found.as_deref(), Some("ready 7"));
    }

    #[test]
    fn hostile_patterns_are_refused() {
        for pattern in ["(", &"a".repeat(2000), "(a{1000}){1000}{1000}"] {
            assert!(compile(pattern).is_err(), "{pattern:.20}");
        }
    }
}
