//! Code blocks.

use super::MarkdownStyle;
use super::highlight::Highlighter;
use crate::line::{TextLine, TextSpan};
use crate::look::Tone;
use crate::text::wrap;

/// Indentation of code lines, after the block's lead.
const INDENT: &str = "  ";

/// Draws a line of code under a lead.
pub(super) fn draw_line(
    line: &str,
    highlighter: &mut Highlighter,
    lead: &[TextSpan],
    rest: &[TextSpan],
    width: u16,
    lines: &mut Vec<TextLine>,
) {
    let indent = TextSpan::new(INDENT, Tone::Text);
    let lead: Vec<_> = lead.iter().cloned().chain([indent.clone()]).collect();
    let rest: Vec<_> = rest.iter().cloned().chain([indent]).collect();
    let mut whole = TextLine {
        lead: lead.len(),
        spans: lead,
        joined: None,
    };
    whole.spans.extend(highlighter.line(line));
    lines.extend(wrap(&whole, width, &rest));
}

/// Returns the language in a fence's info string.
pub(super) fn language(info: &str) -> &str {
    let end = |character: char| character.is_whitespace() || matches!(character, ',' | '{' | ':');
    info.trim().split(end).next().unwrap_or_default()
}

/// Fenced code block that is still streaming.
#[derive(Clone, Debug)]
pub(super) struct OpenCode {
    /// Fence character and length.
    fence: (char, usize),
    /// Indentation of the block.
    indent: usize,
    highlighter: Highlighter,
    /// It has rows.
    is_drawn: bool,
}

impl OpenCode {
    /// Begins a block at the line of its opening fence.
    pub(super) fn new(text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        let fence = line.trim_start_matches(' ');
        let indent = line.len() - fence.len();
        let mark = fence.chars().next().unwrap_or('`');
        let info = fence.trim_start_matches(mark);
        let length = fence.len() - info.len();
        Self {
            fence: (mark, length),
            indent,
            highlighter: Highlighter::new(language(info)),
            is_drawn: false,
        }
    }

    /// Returns true if this line is the closing fence.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let (mark, length) = self.fence;
        let fence = line.trim_start_matches(' ');
        let after = fence.trim_start_matches(mark);
        line.len() - fence.len() <= 3
            && fence.len() - after.len() >= length
            && after
                .chars()
                .all(|character| matches!(character, ' ' | '\t'))
    }

    /// Draws a line of the block.
    pub(super) fn draw(&mut self, line: &str, style: &MarkdownStyle, lines: &mut Vec<TextLine>) {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        let line = line.get(spaces.min(self.indent)..).unwrap_or_default();
        if !std::mem::replace(&mut self.is_drawn, true) && !lines.is_empty() {
            lines.push(super::draw::blank(&style.rest, style.width));
        }
        let lead = style.lead(lines.len());
        let highlighter = &mut self.highlighter;
        draw_line(line, highlighter, lead, &style.rest, style.width, lines);
    }
}
