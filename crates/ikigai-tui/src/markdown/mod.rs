//! Markdown as rows, streaming or complete.
//!
//! A text is drawn in slices, each from the start of a top-level block to the next. A slice whose
//! successor has begun never changes again, so only the last slice of a streaming answer is parsed
//! again. A whole text is drawn by the same steps, so both give the same rows.

mod code;
mod draw;
pub mod highlight;
mod slices;
mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use pulldown_cmark::Options;

use crate::line::{TextLine, TextSpan};
use crate::signs::Symbols;
use crate::text::clean;
use code::OpenCode;

/// Layout of a Markdown text.
#[derive(Clone, Debug, Default)]
pub struct MarkdownStyle {
    /// Width in columns.
    pub width: u16,
    /// Character set of the terminal.
    pub symbols: Symbols,
    /// Lead of the first row.
    pub first: Vec<TextSpan>,
    /// Lead of all other rows.
    pub rest: Vec<TextSpan>,
}

impl MarkdownStyle {
    /// Returns the lead of the next row after `rows` rows.
    fn lead(&self, rows: usize) -> &[TextSpan] {
        if rows == 0 { &self.first } else { &self.rest }
    }
}

/// Returns the supported extensions of Markdown.
fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Replaces the colon of `[name]: target` during parsing; no clean text contains it.
const MASK: char = '\u{1}';

/// Masks link definitions, keeping the length, so that they are shown verbatim.
/// A definition would change rows that were drawn long before it.
fn mask(text: &str) -> Cow<'_, str> {
    if text.contains("]:") {
        return Cow::Owned(text.replace("]:", "]\u{1}"));
    }
    Cow::Borrowed(text)
}

/// Renders a whole text.
pub fn lines(text: &str, style: MarkdownStyle) -> Vec<TextLine> {
    let mut streaming = Streaming::new(style);
    streaming.push(text);
    streaming.draw();
    streaming.lines
}

/// Streaming text.
#[derive(Clone, Debug)]
pub struct Streaming {
    style: MarkdownStyle,
    text: String,
    /// The last piece ended with `\r`, which may be the first half of `\r\n`.
    is_half: bool,
    lines: Vec<TextLine>,
    /// Bytes of the text whose rows are final.
    done: usize,
    /// Number of final rows.
    frozen: usize,
    /// Open code block at that place.
    code: Option<OpenCode>,
    /// Bytes of the text that have been drawn.
    drawn: usize,
}

impl Streaming {
    /// Creates an empty text.
    pub fn new(style: MarkdownStyle) -> Self {
        Self {
            style,
            text: String::new(),
            is_half: false,
            lines: Vec::new(),
            done: 0,
            frozen: 0,
            code: None,
            drawn: 0,
        }
    }

    /// Appends text; [`lines`](Self::lines) draws it later.
    pub fn push(&mut self, more: &str) {
        if more.is_empty() {
            return;
        }
        if self.is_half && !more.starts_with('\n') {
            self.text.push_str(&clean("\r"));
        }
        let whole = more.strip_suffix('\r');
        self.is_half = whole.is_some();
        self.text.push_str(&clean(whole.unwrap_or(more)));
    }

    /// Returns the text so far, cleaned.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the rows of the text so far, at this width.
    pub fn lines(&mut self, width: u16) -> &[TextLine] {
        if self.style.width != width {
            self.style.width = width;
            self.lines.clear();
            self.code = None;
            (self.done, self.frozen, self.drawn) = (0, 0, 0);
        }
        self.draw();
        &self.lines
    }

    /// Returns the number of rows of the last drawing that later text cannot change.
    pub fn frozen(&self) -> usize {
        self.frozen
    }

    fn draw(&mut self) {
        if self.drawn == self.text.len() {
            return;
        }
        self.drawn = self.text.len();
        self.lines.truncate(self.frozen);
        loop {
            if self.code.is_some() {
                if !self.draw_code() {
                    return;
                }
            } else if !self.draw_blocks() {
                return;
            }
        }
    }

    /// Draws lines of the open code block; returns true if it ended.
    fn draw_code(&mut self) -> bool {
        let Some(code) = &mut self.code else {
            return true;
        };
        loop {
            let rest = self.text.get(self.done..).unwrap_or_default();
            let Some((line, _)) = rest.split_once('\n') else {
                if !rest.is_empty() && !code.is_closed_by(rest) {
                    // The line is incomplete, so its effect on later lines is discarded.
                    code.clone().draw(rest, &self.style, &mut self.lines);
                }
                return false;
            };
            self.done += line.len() + 1;
            let is_end = code.is_closed_by(line);
            if !is_end {
                code.draw(line, &self.style, &mut self.lines);
            }
            self.frozen = self.lines.len();
            if is_end {
                self.code = None;
                return true;
            }
        }
    }

    /// Draws blocks up to the next open code block; returns true if one begins.
    fn draw_blocks(&mut self) -> bool {
        let rest = self.text.get(self.done..).unwrap_or_default();
        let slices = slices::of(rest);
        let mut begun = 0;
        for (index, slice) in slices.iter().enumerate() {
            let end = slices.get(index + 1).map_or(rest.len(), |next| next.start);
            let text = rest.get(slice.start..end).unwrap_or_default();
            let is_begun = slice.is_begun(text);
            if is_begun {
                // A block begins here for certain, and the previous one ends.
                self.frozen = self.lines.len();
                begun = slice.start;
            }
            if slice.is_fenced && is_begun {
                self.code = Some(OpenCode::new(text));
                let opening = text.find('\n').map_or(text.len(), |end| end + 1);
                self.done += slice.start + opening;
                return true;
            }
            draw::draw(text, &self.style, &mut self.lines);
        }
        self.done += begun;
        false
    }
}
