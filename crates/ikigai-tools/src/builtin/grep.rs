//! `grep`: finds lines in files by a regular expression.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use globset::{GlobBuilder, GlobMatcher};
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use ikigai_core::EffectClass;
use ikigai_core::project::{ToolFacts, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::walk;
use crate::anchored_file::{AnchoredFile, MissingDirectories, open_directory};
use crate::arguments::{self, Aliases, BadArguments, ToolArguments};
use crate::files::{self, FileError};
use crate::output::{MOST_SENT_BYTES, visible};
use crate::paths::Located;
use crate::permission::literal_pattern;
use crate::{CallContext, Output, Place, Prepared, Run, Tool, Touches, paths};

/// Name of the tool.
pub(super) const NAME: &str = "grep";

/// Facts about its calls.
pub(super) const FACTS: ToolFacts = ToolFacts::READING;

/// Memory limit of a compiled expression: `\w{1000}{1000}` would take all.
const MOST_EXPRESSION_BYTES: usize = 4 * 1024 * 1024;

/// Most nested groups, because they are compiled by recursion.
const MOST_NESTED: u32 = 100;

/// Size at which no more text is collected; further matches are only counted.
///
/// The rest is room for the last line and for remarks, so that a result is never cut again.
const FULL_BYTES: usize = MOST_SENT_BYTES - 4 * 1024;

/// Most bytes shown of a line.
const MOST_LINE_BYTES: usize = 400;

/// Most context lines on each side of a match.
const MOST_CONTEXT: usize = 50;

/// Lines longer than this are not searched.
const MOST_HELD_BYTES: usize = 64 * 1024 * 1024;

/// Long enough for a large tree on a slow disk.
const DEADLINE: Duration = Duration::from_mins(2);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrepArguments {
    /// A regular expression in the syntax of Rust's regex crate, for single lines. `(?i)` at the
    /// start ignores case.
    pattern: String,
    /// The file or directory to search; the working directory if not given.
    #[serde(default)]
    path: Option<String>,
    /// Searches only files with a path that fits this pattern, such as `*.rs` or `src/**/*.ts`.
    #[serde(default)]
    glob: Option<String>,
    /// Number of lines to show before and after each match; none if not given.
    #[serde(default)]
    context: Option<usize>,
    /// `content` shows matching lines (the default), `files` only the files that have some, `count`
    /// the number of matching lines of each file.
    #[serde(default)]
    output_mode: Option<Mode>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Content,
    Files,
    Count,
}

impl ToolArguments for GrepArguments {
    const ALIASES: Aliases = &[
        ("query", "pattern"),
        ("regex", "pattern"),
        ("file_path", "path"),
        ("directory", "path"),
        ("include", "glob"),
        ("-C", "context"),
        ("mode", "output_mode"),
    ];
}

pub(super) struct Grep;

impl Tool for Grep {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Searches files for lines that fit a regular expression. Binary files, \
                          and files that .gitignore and the like name, are left out."
                .to_owned(),
            parameters: arguments::schema_of::<GrepArguments>(),
            facts: FACTS,
        }
    }

    fn prepare(&self, text: &str, place: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read::<GrepArguments>(text)?;
        let arguments = call.values;
        let base = paths::locate(place, arguments.path.as_deref().unwrap_or("."))?;
        let search = GrepSearch {
            matcher: expression(&arguments.pattern)?,
            glob: arguments.glob.as_deref().map(path_pattern).transpose()?,
            context: arguments.context.unwrap_or_default().min(MOST_CONTEXT),
            mode: arguments.output_mode.unwrap_or_default(),
        };
        let subject = paths::shown(place, &base.path);
        Ok(Prepared {
            class: EffectClass::Read,
            touches: Touches::reading([base.path.clone()]),
            shown: call.shown,
            pattern: literal_pattern(&subject),
            subject,
            preview: None,
            deadline: DEADLINE,
            needs: Vec::new(),
            unconfined: None,
            run: Run::Blocking(Box::new(move |context| search.run(context, &base))),
        }
        .with_remark(call.remark))
    }
}

fn expression(pattern: &str) -> Result<RegexMatcher, BadArguments> {
    RegexMatcherBuilder::new()
        .multi_line(true)
        // `$` also matches before `\r\n`. The searcher needs the same setting.
        .crlf(true)
        .size_limit(MOST_EXPRESSION_BYTES)
        .dfa_size_limit(MOST_EXPRESSION_BYTES)
        .nest_limit(MOST_NESTED)
        .build(pattern)
        .map_err(|error| BadArguments(format!("the pattern cannot be used: {error}")))
}

/// Compiles a path pattern; one without a slash fits names in any directory.
fn path_pattern(text: &str) -> Result<GlobMatcher, BadArguments> {
    let anywhere = match text.strip_prefix('/') {
        Some(rooted) => rooted.to_owned(),
        None if text.contains('/') => text.to_owned(),
        None => format!("**/{text}"),
    };
    let glob = GlobBuilder::new(&anywhere).literal_separator(true).build();
    let glob = glob.map_err(|error| BadArguments(format!("`glob` is not understood: {error}")))?;
    Ok(glob.compile_matcher())
}

/// Expression, path filter and output mode of a search.
struct GrepSearch {
    matcher: RegexMatcher,
    glob: Option<GlobMatcher>,
    context: usize,
    mode: Mode,
}

impl GrepSearch {
    fn run(&self, context: &CallContext, base: &Located) -> Output {
        let place = &context.place;
        if let Err(reason) = paths::check(place, base) {
            return Output::failed(reason);
        }
        if open_directory(&base.real, MissingDirectories::Fail).is_err()
            && let Err(error) = files::open(&base.real)
        {
            return Output::failed(format!("`{}` {error}", paths::shown(place, &base.path)));
        }
        let mut searcher = self.searcher();
        let mut tally = MatchCounts::default();
        let mut anchors = walk::Anchors::default();
        for found in walk::below(place, base) {
            if context.stop.is_cancelled() {
                break;
            }
            let name = paths::shown(place, &found.path);
            if !found.kind.is_file() || !self.wants(&found.inside, &name) {
                continue;
            }
            let Some(file) = anchors.anchor(&found) else {
                continue;
            };
            let name = visible(name.as_bytes());
            let outcome = self.file(&mut searcher, &file, &name, &context.stop, &mut tally);
            if let Err(reason) = outcome
                && !context.stop.is_cancelled()
            {
                tally.unread += 1;
                tally
                    .first_unread
                    .get_or_insert(format!("`{name}` {reason}"));
            }
        }
        tally.into_output(self.mode, context.stop.is_cancelled())
    }

    fn searcher(&self) -> Searcher {
        let around = match self.mode {
            Mode::Content => self.context,
            Mode::Files | Mode::Count => 0,
        };
        SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .before_context(around)
            .after_context(around)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MOST_HELD_BYTES))
            .build()
    }

    /// Returns true if the path pattern fits the file, or there is none.
    ///
    /// It can fit from the start of the search or from the working directory. A file that is itself
    /// the start is always searched.
    fn wants(&self, inside: &Path, name: &str) -> bool {
        let Some(glob) = &self.glob else {
            return true;
        };
        inside.as_os_str().is_empty() || glob.is_match(inside) || glob.is_match(name)
    }

    fn file(
        &self,
        searcher: &mut Searcher,
        file: &AnchoredFile,
        name: &str,
        stop: &CancellationToken,
        tally: &mut MatchCounts,
    ) -> Result<(), String> {
        let file = match files::open_anchored(file) {
            Ok((file, _)) => file,
            // The file is gone, or the walk reached it through a link.
            Err(FileError::Missing | FileError::Relinked) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let mut sink = FileSink {
            search: self,
            name,
            text: String::new(),
            room: FULL_BYTES.saturating_sub(tally.text.len()),
            matches: 0,
            binary: false,
        };
        let stopping = Stopping { file, stop };
        let outcome = searcher.search_reader(&self.matcher, stopping, &mut sink);
        tally.add(self.mode, &sink);
        outcome.map_err(|error| format!("cannot be searched: {error}"))
    }
}

/// Matches collected so far.
#[derive(Default)]
struct MatchCounts {
    text: String,
    /// Matching lines, and files that have some.
    matches: u64,
    files: u64,
    /// Files that could not be searched.
    unread: u64,
    /// First file that could not be searched, with the reason.
    first_unread: Option<String>,
}

impl MatchCounts {
    fn add(&mut self, mode: Mode, sink: &FileSink<'_>) {
        // The search of a binary file stops in the middle, so its matches are left out.
        if sink.binary || sink.matches == 0 {
            return;
        }
        self.matches += sink.matches;
        self.files += 1;
        if self.text.len() >= FULL_BYTES {
            return;
        }
        match mode {
            Mode::Content => {
                if !self.text.is_empty() && sink.search.context > 0 {
                    self.text.push_str("--\n");
                }
                self.text.push_str(&sink.text);
            }
            Mode::Files => {
                let _ = writeln!(self.text, "{}", sink.name);
            }
            Mode::Count => {
                let _ = writeln!(self.text, "{}:{}", sink.name, sink.matches);
            }
        }
    }

    fn into_output(self, mode: Mode, stopped: bool) -> Output {
        let summary = format!(
            "{} in {}",
            plural(self.matches, "matching line"),
            plural(self.files, "file")
        );
        let mut body = self.text;
        if self.matches == 0 {
            body.push_str("no matches; files that ignore files name are left out\n");
        }
        if body.len() >= FULL_BYTES {
            let _ = writeln!(
                body,
                "[{summary}; not all are shown: use a narrower pattern or path]"
            );
        } else if mode == Mode::Count {
            let _ = writeln!(body, "[{summary}]");
        }
        if let Some(first) = self.first_unread {
            let unread = plural(self.unread, "file");
            let _ = writeln!(body, "[{unread} could not be searched; {first}]");
        }
        let output = Output::done(body, summary);
        if stopped { output.cut_short() } else { output }
    }
}

fn plural(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

/// Receives the searcher's matches in one file.
struct FileSink<'search> {
    search: &'search GrepSearch,
    name: &'search str,
    text: String,
    /// Most bytes of text to collect.
    room: usize,
    matches: u64,
    binary: bool,
}

impl FileSink<'_> {
    fn line(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) {
        if self.search.mode != Mode::Content || self.text.len() >= self.room {
            return;
        }
        let number = number.unwrap_or_default();
        let _ = write!(self.text, "{}{mark}{number}{mark}", self.name);
        self.text.push_str(&self.shown(bytes));
        self.text.push('\n');
    }

    /// Returns the line, or the part around the match if the line is long.
    fn shown(&self, bytes: &[u8]) -> String {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() <= MOST_LINE_BYTES {
            return visible(line);
        }
        let found = self.search.matcher.find(line).ok().flatten();
        let start = found.map_or(0, |found| found.start());
        let start = start.saturating_sub(MOST_LINE_BYTES / 4);
        let end = line.len().min(start + MOST_LINE_BYTES);
        let before = if start > 0 { "…" } else { "" };
        let after = if end < line.len() { "…" } else { "" };
        let length = line.len();
        format!(
            "{before}{}{after} [line of {length} bytes]",
            visible(&line[start..end])
        )
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        self.line(':', found.line_number(), found.bytes());
        Ok(self.search.mode != Mode::Files)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        self.line('-', found.line_number(), found.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.search.mode == Mode::Content && self.text.len() < self.room {
            self.text.push_str("--\n");
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// Reader that can be cancelled between two reads.
struct Stopping<'stop> {
    file: File,
    stop: &'stop CancellationToken,
}

impl Read for Stopping<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(buffer)
    }
}
