//! Live output of running tools: the last lines below the call, or all of it.

use std::collections::VecDeque;

use super::UiContext;
use super::lines::first_line;
use super::live::{Live, RunningCall};
use crate::line::{TextLine, TextSpan};
use crate::look::Tone;
use crate::text::{clean, cut};

/// Limit of buffered lines per call; the result has all lines.
const MOST_LINES: usize = 2_000;

/// Size limit of a buffered line: a few screens.
const MOST_LINE_BYTES: usize = 4 * 1024;

/// Visible lines of a call that runs alone.
const PEEK: usize = 5;

/// Visible lines of each of several calls.
const PEEK_OF_SEVERAL: usize = 2;

/// Output of a running call, within bounds. It is an overlay and never stored.
#[derive(Clone, Debug, Default)]
pub struct ToolOutput {
    lines: VecDeque<String>,
    /// Number of lines before the buffered ones.
    dropped: usize,
}

impl ToolOutput {
    /// Adds whole lines.
    pub fn push(&mut self, text: &str) {
        for line in text.lines() {
            let end = line.floor_char_boundary(MOST_LINE_BYTES);
            self.lines.push_back(line[..end].to_owned());
        }
        let surplus = self.lines.len().saturating_sub(MOST_LINES);
        self.lines.drain(..surplus);
        self.dropped += surplus;
    }

    /// Returns true if there is no output.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

impl RunningCall {
    /// Returns the newest lines, newest last, and the number of lines before them.
    fn newest(&self, most: usize) -> (Vec<&str>, usize) {
        let mut lines: Vec<&str> = self.output.lines.iter().map(String::as_str).collect();
        // An unfinished line, such as a progress bar.
        let begun = self.line.trim();
        if !begun.is_empty() && lines.last().is_none_or(|last| last.trim() != begun) {
            lines.push(begun);
        }
        let before = lines.len().saturating_sub(most);
        (lines.split_off(before), before + self.output.dropped)
    }
}

impl UiContext {
    /// Shows all output of running tools, or only the last lines.
    pub(super) fn toggle_tool_output(&mut self) {
        self.shows_all_output = !self.shows_all_output;
        let is_running = self
            .roster
            .live(self.current)
            .is_some_and(|live| live.running.iter().any(|one| !one.output.is_empty()));
        match (is_running, self.shows_all_output) {
            (true, _) => {}
            (false, true) => self.toast("Running tools show all output"),
            (false, false) => self.toast("Running tools show their last lines"),
        }
    }

    /// Renders the output of running calls.
    pub(super) fn tool_output_lines(&self, live: &Live) -> Vec<TextLine> {
        let printing: Vec<&RunningCall> = live
            .running
            .iter()
            .filter(|one| !one.output.is_empty())
            .collect();
        let most = match (self.shows_all_output, printing.len()) {
            (true, _) => MOST_LINES,
            (false, 0 | 1) => PEEK,
            (false, _) => PEEK_OF_SEVERAL,
        };
        let mut lines = Vec::new();
        for running in &printing {
            if live.running.len() > 1 {
                let call = TextLine::of(clean(first_line(&running.shown)), Tone::Tool);
                lines.push(cut(&call, self.columns, "…"));
            }
            let (newest, before) = running.newest(most);
            if before > 0 {
                let count = match before {
                    1 => "  … 1 line before".to_owned(),
                    before => format!("  … {before} lines before"),
                };
                let mut note = TextLine::of(count, Tone::Faint);
                if !self.shows_all_output {
                    note.spans
                        .push(TextSpan::new(" · Ctrl-O show all", Tone::Faint));
                }
                lines.push(cut(&note, self.columns, "…"));
            }
            for printed in newest {
                let row = TextLine::of(format!("  {}", clean(printed)), Tone::Faint);
                lines.push(cut(&row, self.columns, "…"));
            }
        }
        lines
    }
}
