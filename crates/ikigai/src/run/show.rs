//! Display of a running turn: answer on standard output, the rest on standard error.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ikigai_core::data::{self, UserData};
use ikigai_core::render::{Shown, render};
use ikigai_core::spelling::one_line;
use ikigai_core::{AgentId, Kind, Row};
use ikigai_engine::{LineChange, Live, LiveChange, Observer, UiEvent};
use ikigai_providers::RetryPause;
use ikigai_tui::text::beginning;
use rustix::fs::{Stat, fstat};

use crate::output::{is_reader_gone, json_of, print_exact, print_json, print_stderr, visible};
use crate::run::question::Asker;

/// Shortest interval between progress lines of a running tool.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Longest part of a provider's error in that line; the last attempt's is shown in full.
const MOST_WORDS: usize = 200;

/// Characters shown of a line that was not stored.
const NOT_STORED_CHARS: usize = 500;

/// Formats the line about a failed attempt and the next one.
fn waiting(wait: &RetryPause) -> String {
    let words = &wait.error.message;
    let (words, dots) = match words.char_indices().nth(MOST_WORDS) {
        Some((end, _)) => (&words[..end], "…"),
        None => (words.as_str(), ""),
    };
    format!(
        "↻ {}{dots}; attempt {} of {} in {:.1} s",
        visible(words),
        wait.attempt,
        wait.attempts,
        wait.pause.as_secs_f64()
    )
}

/// View of a running turn.
pub(crate) struct RunView {
    json: bool,
    /// Asks for approval of tool calls.
    asker: Option<Arc<Asker>>,
    /// Time of the last progress line.
    progress: Option<Instant>,
    live: Live,
    /// Printed part of the current answer.
    shown: String,
    /// True while a restarted answer repeats the printed part.
    is_repeating: bool,
    /// True if the previous answer did not end its line.
    unfinished_line: bool,
    pub(crate) failure: Option<io::Error>,
}

impl RunView {
    pub(crate) fn new(json: bool, asker: Option<Arc<Asker>>) -> Self {
        Self {
            json,
            asker,
            progress: None,
            live: Live::default(),
            shown: String::new(),
            is_repeating: false,
            unfinished_line: false,
            failure: None,
        }
    }

    pub(crate) fn show(&mut self, update: &UiEvent) {
        match self.live.apply(update, Instant::now()) {
            LiveChange::Answer(text) => {
                if !self.json {
                    self.say(text);
                }
            }
            LiveChange::Restarted => self.is_repeating = true,
            LiveChange::Retry(wait) => self.print_note(&waiting(wait)),
            LiveChange::Row(row) => self.stored(row),
            LiveChange::Settled(row) if self.json => self.print_json(row),
            LiveChange::Settled(row) => self.print_note(&tool_line(&render(row))),
            LiveChange::ToolLine(line) | LiveChange::ShellLine(line) => self.progress(line),
            LiveChange::Question(question) => {
                self.begin_line();
                if let Some(asker) = &self.asker {
                    asker.ask(question);
                }
            }
            LiveChange::Unasked(call) => {
                if let Some(asker) = &self.asker {
                    asker.drop_question(call);
                }
            }
            LiveChange::Line(line) => self.line_changed(line),
            LiveChange::Notice(text) => self.print_note(&visible(text)),
            LiveChange::Warning(text) | LiveChange::GrantOffer(text) => {
                self.print_note(&format!("⚠ {}", visible(text)));
            }
            LiveChange::StoreAway(reason) => {
                self.print_note(&format!("⏸ {}; retrying", visible(reason)));
            }
            // There is no input field to fill, and no screen to leave.
            LiveChange::State
            | LiveChange::Began
            | LiveChange::Ended { .. }
            | LiveChange::Preview { .. }
            | LiveChange::Next(_) => {}
        }
    }

    fn line_changed(&mut self, line: LineChange<'_>) {
        match line {
            LineChange::Queued(text) => self.print_note(&format!("⋯ queued: {}", visible(text))),
            LineChange::TakenBack(text) => self.print_note(&format!("not sent: {}", visible(text))),
            LineChange::NotStored { input, reason, .. } => {
                self.print_note(&format!(
                    "⚠ Not saved ({}): {}",
                    visible(reason),
                    visible(&beginning(input.line(), NOT_STORED_CHARS))
                ));
            }
            LineChange::Delivered
            | LineChange::Received(_)
            | LineChange::Unstored { .. }
            | LineChange::Running(_) => {}
        }
    }

    fn stored(&mut self, row: &Row) {
        if self.json {
            return self.print_json(row);
        }
        match row.kind.read_as() {
            Some(Kind::Assistant) => {
                self.unfinished_line |= ends_in_a_line(&self.shown);
                self.shown.clear();
                self.is_repeating = false;
            }
            Some(Kind::Command) => self.commanded(row),
            Some(Kind::User) => self.ran(row),
            Some(Kind::ToolCall | Kind::ToolResult) => self.print_note(&tool_line(&render(row))),
            Some(
                Kind::System
                | Kind::Clear
                | Kind::Mark
                | Kind::Rewind
                | Kind::Fork
                | Kind::AgentKilled
                | Kind::Usage
                | Kind::Interrupted
                | Kind::Error
                | Kind::Summary
                | Kind::Process
                | Kind::Files,
            )
            | None => {}
        }
    }

    /// Prints the output of a command; skips rows that the program adds by itself.
    fn commanded(&mut self, row: &Row) {
        if let Shown::Command {
            output, severity, ..
        } = render(row)
            && !output.is_empty()
        {
            self.print_new(&format!("{}\n", severity.signed(&output)));
        }
    }

    /// Prints the result of a shell line; the user knows other messages.
    fn ran(&mut self, row: &Row) {
        if data::read::<UserData>(row.data.as_deref()).shell.is_some() {
            let text = row.content.as_deref().unwrap_or_default();
            self.print_new(&format!("{text}\n"));
        }
    }

    /// Prints a running tool's newest line, if standard error is a terminal.
    fn progress(&mut self, line: &str) {
        let due = self
            .progress
            .is_none_or(|last| last.elapsed() >= PROGRESS_EVERY);
        if !self.json && due && io::stderr().is_terminal() {
            self.progress = Some(Instant::now());
            self.print_note(&format!("  … {}", visible(line)));
        }
    }

    /// Prints the new part of an answer.
    ///
    /// A restarted answer is not printed twice: as long as it repeats the printed part, nothing is
    /// printed; if it differs, it starts a new line.
    fn say(&mut self, text: &str) {
        if !self.is_repeating {
            self.shown.push_str(text);
            return self.print_new(text);
        }
        let came = self.live.text.as_str();
        if self.shown.starts_with(came) {
            return;
        }
        self.is_repeating = false;
        let came = came.to_owned();
        let new = if let Some(rest) = came.strip_prefix(&self.shown) {
            rest.to_owned()
        } else {
            self.unfinished_line |= ends_in_a_line(&self.shown);
            came.clone()
        };
        self.shown = came;
        self.print_new(&new);
    }

    fn print_new(&mut self, text: &str) {
        self.end_line();
        if io::stdout().is_terminal() {
            self.print(&visible(text));
        } else {
            self.print(text);
        }
    }

    /// Prints a message; starts a new line if both outputs go to one place.
    fn print_note(&mut self, text: &str) {
        self.begin_line();
        print_stderr(text);
    }

    /// Ends the line of an answer before another output.
    fn begin_line(&mut self) {
        let unfinished = std::mem::take(&mut self.unfinished_line) || ends_in_a_line(&self.shown);
        if !self.json && unfinished && is_one_output() {
            self.print("\n");
        } else {
            self.unfinished_line = unfinished && self.shown.is_empty();
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.unfinished_line) {
            self.print("\n");
        }
    }

    /// Ends the last line, so that the shell's prompt begins a new one.
    pub(crate) fn finish(&mut self) {
        self.unfinished_line |= ends_in_a_line(&self.shown);
        self.end_line();
    }

    fn print(&mut self, text: &str) {
        self.note(print_exact(text));
    }

    fn print_json(&mut self, row: &Row) {
        self.note(print_json(&json_of(row)));
    }

    /// Keeps the first printing error. The turn continues and is stored all the same.
    fn note(&mut self, printed: io::Result<()>) {
        if let Err(error) = printed
            && !is_reader_gone(&error)
        {
            self.failure.get_or_insert(error);
        }
    }
}

/// Returns true if both outputs go to one place: a terminal, or one file after `2>&1`.
fn is_one_output() -> bool {
    let same = |out: Stat, err: Stat| (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino);
    let stats = (fstat(io::stdout()), fstat(io::stderr()));
    io::stdout().is_terminal() || matches!(stats, (Ok(out), Ok(err)) if same(out, err))
}

/// Shows children's rows as JSON, or one line per call, answer and failure.
pub(crate) fn children(json: bool, asker: Option<Arc<Asker>>) -> Observer {
    let lives: Mutex<HashMap<AgentId, Live>> = Mutex::default();
    Arc::new(move |agent, name, update| {
        let mut lives = lives.lock().unwrap_or_else(PoisonError::into_inner);
        let live = lives.entry(agent).or_default();
        match live.apply(update, Instant::now()) {
            LiveChange::Question(question) => {
                if let Some(asker) = &asker {
                    asker.ask(question);
                }
            }
            LiveChange::Unasked(call) => {
                if let Some(asker) = &asker {
                    asker.drop_question(call);
                }
            }
            // The turn continues and is stored, even if the output has no reader.
            LiveChange::Row(row) if json => drop(print_json(&json_of(row))),
            LiveChange::Row(row) => {
                if let Some(line) = child_line(row) {
                    print_stderr(&visible(&format!("  {name}  {line}")));
                }
            }
            LiveChange::Notice(text) => print_stderr(&visible(&format!("  {name}  {text}"))),
            LiveChange::Warning(text) => print_stderr(&visible(&format!("  {name}  ⚠ {text}"))),
            LiveChange::State
            | LiveChange::Began
            | LiveChange::Answer(_)
            | LiveChange::Restarted
            | LiveChange::Retry(_)
            | LiveChange::Settled(_)
            | LiveChange::ToolLine(_)
            | LiveChange::ShellLine(_)
            | LiveChange::Ended { .. }
            | LiveChange::Line(_)
            | LiveChange::Preview { .. }
            | LiveChange::GrantOffer(_)
            | LiveChange::StoreAway(_)
            | LiveChange::Next(_) => {}
        }
    })
}

/// Formats a child's row as one line.
fn child_line(row: &Row) -> Option<String> {
    match row.kind.read_as() {
        Some(
            Kind::Assistant
            | Kind::ToolCall
            | Kind::ToolResult
            | Kind::Error
            | Kind::Interrupted
            | Kind::AgentKilled,
        ) => {
            let shown = render(row);
            let text = shown.to_string();
            let line = match &shown {
                // Show the whole call: its first line may hide its effect.
                Shown::ToolCall { .. } => one_line(&text),
                _ => Cow::Borrowed(text.lines().next().unwrap_or_default()),
            };
            Some(line.into_owned()).filter(|line| !line.trim_start_matches('●').trim().is_empty())
        }
        _ => None,
    }
}

/// Formats a call or a result: sign, tool name and text.
fn tool_line(shown: &Shown) -> String {
    visible(&shown.to_string())
}

fn ends_in_a_line(text: &str) -> bool {
    !text.is_empty() && !text.ends_with('\n')
}
