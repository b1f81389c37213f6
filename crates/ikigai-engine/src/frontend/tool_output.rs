//! Buffered output of a running call.

use std::collections::VecDeque;

use super::live::RunningCall;

/// Limit of buffered lines per call; the result has all lines.
const MOST_LINES: usize = 2_000;

/// Size limit of a buffered line: a few screens.
const MOST_LINE_BYTES: usize = 4 * 1024;

/// Output of a running call, within bounds. It is an overlay and never stored.
#[derive(Clone, Debug, Default)]
pub struct ToolOutput {
    lines: VecDeque<String>,
    /// Number of lines before the buffered ones.
    dropped: usize,
}

impl ToolOutput {
    /// Adds whole lines.
    pub(super) fn push(&mut self, text: &str) {
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
    pub fn newest(&self, most: usize) -> (Vec<&str>, usize) {
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
