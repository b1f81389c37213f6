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
use ignore::types::{Types, TypesBuilder};
use ikigai_core::EffectClass;
use ikigai_core::counts::counted;
use ikigai_core::project::{ToolAction, ToolFacts, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::file_read::{BLOB, blob_hash};
use super::walk;
use crate::anchored_file::{AnchoredFile, MissingDirectories, open_directory};
use crate::arguments::{self, Aliases, BadArguments, ToolArguments};
use crate::files::{self, FileError};
use crate::output::{MOST_SENT_BYTES, clean, visible};
use crate::paths::Located;
use crate::permission::literal_pattern;
use crate::{CallContext, Need, Output, Place, Prepared, Run, Tool, Touches, paths};

/// Name of the tool.
pub(super) const NAME: &str = "grep";

/// Facts about its calls.
pub(super) const FACTS: ToolFacts = ToolFacts {
    action: ToolAction::Search,
    ..ToolFacts::READING
};

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
    /// A regular expression in the syntax of Rust's regex crate, for single lines.
    pattern: String,
    /// The file or directory to search instead of the working directory; or a stored output: `#12`
    /// (a row) or `blob:HASH`.
    #[serde(default)]
    path: Option<String>,
    /// Searches only files with a path that fits this pattern, such as `*.rs` or `src/**/*.ts`.
    #[serde(default)]
    glob: Option<String>,
    /// Searches only files of this type, such as `rust`, `py` or `ts`.
    #[serde(default)]
    #[serde(rename = "type")]
    file_type: Option<String>,
    /// Ignores case.
    #[serde(default)]
    ignore_case: Option<bool>,
    /// Number of lines to show before and after each match.
    #[serde(default)]
    context: Option<usize>,
    /// Number of lines to show before each match, instead of `context`.
    #[serde(default)]
    before: Option<usize>,
    /// Number of lines to show after each match, instead of `context`.
    #[serde(default)]
    after: Option<usize>,
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
        ("-i", "ignore_case"),
        ("case_insensitive", "ignore_case"),
        ("-C", "context"),
        ("-A", "after"),
        ("-B", "before"),
        ("-n", LINE_NUMBERS),
        ("file_type", "type"),
        ("mode", "output_mode"),
    ];

    fn convert(fields: &mut Map<String, Value>) -> Result<(), String> {
        // Line numbers are always shown.
        fields.remove(LINE_NUMBERS);
        let mode = fields.get("output_mode").and_then(Value::as_str);
        if mode.is_some_and(|mode| mode.starts_with("files_with")) {
            fields.insert("output_mode".to_owned(), "files".into());
        }
        Ok(())
    }
}

/// Field of other programs: whether to show line numbers.
const LINE_NUMBERS: &str = "line_numbers";

pub(super) struct Grep;

impl Tool for Grep {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Searches files for lines that fit a regular expression, dotfiles \
                          included; binary files and files that .gitignore names are left out. \
                          Also searches stored outputs."
                .to_owned(),
            parameters: arguments::schema_of::<GrepArguments>(),
            facts: FACTS,
        }
    }

    fn prepare(&self, text: &str, place: &Place) -> Result<Prepared, BadArguments> {
        let call = arguments::read::<GrepArguments>(text)?;
        let arguments = call.values;
        let lines = |side: Option<usize>| side.or(arguments.context).unwrap_or(0).min(MOST_CONTEXT);
        let path = arguments.path.as_deref().unwrap_or(".");
        let search = GrepSearch {
            matcher: expression(&arguments.pattern, arguments.ignore_case == Some(true))?,
            glob: arguments.glob.as_deref().map(path_pattern).transpose()?,
            types: arguments.file_type.as_deref().map(types).transpose()?,
            before: lines(arguments.before),
            after: lines(arguments.after),
            mode: arguments.output_mode.unwrap_or_default(),
        };
        if let Some((need, name)) = stored_output(path)? {
            let prepared = search_stored(search, need, name, call.shown);
            return Ok(prepared.with_remark(call.remark));
        }
        let base = paths::locate(place, path)?;
        let subject = paths::display_path(place, &base.path);
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

/// Returns the need of a path that names a stored output, and its name.
fn stored_output(path: &str) -> Result<Option<(Need, String)>, BadArguments> {
    if let Some(hash) = path.strip_prefix(BLOB) {
        let hash = blob_hash(hash)?;
        return Ok(Some((Need::Blob(hash.clone()), format!("{BLOB}{hash}"))));
    }
    let row = path.strip_prefix('#').and_then(|row| row.parse().ok());
    Ok(row.map(|row| (Need::Row(row), path.to_owned())))
}

/// Prepares a search in a stored output.
fn search_stored(search: GrepSearch, need: Need, name: String, shown: String) -> Prepared {
    Prepared {
        class: EffectClass::Read,
        touches: Touches::default(),
        shown,
        pattern: name.clone(),
        subject: name.clone(),
        preview: None,
        deadline: DEADLINE,
        needs: vec![need],
        unconfined: None,
        run: Run::Blocking(Box::new(move |context| match &context.inputs.blob {
            Some(bytes) => search.run_stored(bytes, &name),
            None => Output::failed(format!("there is no stored output `{name}`")),
        })),
    }
}

/// Returns the file type of this name; an unknown one is an extension.
fn types(name: &str) -> Result<Types, BadArguments> {
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    let name = name.trim().trim_start_matches('.').to_ascii_lowercase();
    let is_known = builder
        .definitions()
        .iter()
        .any(|known| known.name() == name);
    let bad = |error: ignore::Error| BadArguments(format!("`type` is not understood: {error}"));
    if !is_known {
        builder.add("other", &format!("*.{name}")).map_err(bad)?;
    }
    builder.select(if is_known { &name } else { "other" });
    builder.build().map_err(bad)
}

fn expression(pattern: &str, ignore_case: bool) -> Result<RegexMatcher, BadArguments> {
    RegexMatcherBuilder::new()
        .multi_line(true)
        .case_insensitive(ignore_case)
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
    types: Option<Types>,
    /// Lines to show before and after each match.
    before: usize,
    after: usize,
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
            return Output::failed(format!(
                "`{}` {error}",
                paths::display_path(place, &base.path)
            ));
        }
        let mut searcher = self.searcher(BinaryDetection::quit(0));
        let mut tally = MatchCounts::default();
        let mut anchors = walk::Anchors::default();
        for found in walk::below(place, base) {
            if context.stop.is_cancelled() {
                break;
            }
            let name = paths::display_path(place, &found.path);
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

    /// Searches an output, cleaned like the cut one that names it.
    fn run_stored(&self, bytes: &[u8], name: &str) -> Output {
        let mut searcher = self.searcher(BinaryDetection::none());
        let mut tally = MatchCounts::default();
        let mut sink = FileSink::new(self, name, &tally, clean);
        let outcome = searcher.search_slice(&self.matcher, bytes, &mut sink);
        tally.add(self.mode, &sink);
        match outcome {
            Ok(()) if tally.matches == 0 => Output::done("no matches\n", "0 matching lines"),
            Ok(()) => tally.into_output(self.mode, false),
            Err(error) => Output::failed(format!("`{name}` cannot be searched: {error}")),
        }
    }

    fn searcher(&self, binary: BinaryDetection) -> Searcher {
        let (before, after) = match self.mode {
            Mode::Content => (self.before, self.after),
            Mode::Files | Mode::Count => (0, 0),
        };
        SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .before_context(before)
            .after_context(after)
            .binary_detection(binary)
            .heap_limit(Some(MOST_HELD_BYTES))
            .build()
    }

    /// Returns true if the path pattern fits the file, or there is none.
    ///
    /// It can fit from the start of the search or from the working directory. A file that is itself
    /// the start is always searched.
    fn wants(&self, inside: &Path, name: &str) -> bool {
        let is_start = inside.as_os_str().is_empty();
        let of_type = |types: &Types| types.matched(name, false).is_whitelist();
        if !is_start && !self.types.as_ref().is_none_or(of_type) {
            return false;
        }
        let Some(glob) = &self.glob else {
            return true;
        };
        is_start || glob.is_match(inside) || glob.is_match(name)
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
        let mut sink = FileSink::new(self, name, tally, visible);
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
                if !self.text.is_empty() {
                    self.text.push('\n');
                }
                let _ = writeln!(self.text, "{}", sink.name);
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
            counted(self.matches, "matching line"),
            counted(self.files, "file")
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
            let unread = counted(self.unread, "file");
            let _ = writeln!(body, "[{unread} could not be searched; {first}]");
        }
        let output = Output::done(body, summary);
        if stopped { output.cut_short() } else { output }
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
    /// Makes a line readable.
    make_text: fn(&[u8]) -> String,
}

impl<'search> FileSink<'search> {
    fn new(
        search: &'search GrepSearch,
        name: &'search str,
        tally: &MatchCounts,
        make_text: fn(&[u8]) -> String,
    ) -> Self {
        Self {
            search,
            name,
            text: String::new(),
            room: FULL_BYTES.saturating_sub(tally.text.len()),
            matches: 0,
            binary: false,
            make_text,
        }
    }

    fn line(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) {
        if self.search.mode != Mode::Content || self.text.len() >= self.room {
            return;
        }
        let number = number.unwrap_or_default();
        let _ = write!(self.text, "{number}{mark}");
        self.text.push_str(&self.shown(bytes));
        self.text.push('\n');
    }

    /// Returns the line, or the part around the match if the line is long.
    fn shown(&self, bytes: &[u8]) -> String {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() <= MOST_LINE_BYTES {
            return (self.make_text)(line);
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
            (self.make_text)(&line[start..end])
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
