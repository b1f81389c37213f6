//! Lines of styled text, between renderers and grids.

use std::sync::Arc;

use crate::look::Look;

/// A piece of a line with one style throughout.
/// Its text has no control characters: the caller has made them visible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextSpan {
    /// The text.
    pub text: String,
    /// Its look.
    pub look: Look,
    /// Target of a link.
    pub link: Option<Arc<str>>,
}

impl TextSpan {
    /// Creates a piece of text.
    pub fn new(text: impl Into<String>, look: impl Into<Look>) -> Self {
        Self {
            text: text.into(),
            look: look.into(),
            link: None,
        }
    }
}

/// One row of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextLine {
    /// Its pieces, from left to right.
    pub spans: Vec<TextSpan>,
    /// Number of first spans that are signs and indentation, which are not copied.
    pub lead: usize,
    /// It continues the row above: copied, both are one line, with this between them.
    pub joined: Option<&'static str>,
}

impl TextLine {
    /// Creates a line of these spans, without a lead.
    pub fn new(spans: Vec<TextSpan>) -> Self {
        Self {
            spans,
            ..Self::default()
        }
    }

    /// Creates a line of one span.
    pub fn of(text: impl Into<String>, look: impl Into<Look>) -> Self {
        Self::new(vec![TextSpan::new(text, look)])
    }

    /// Returns the text of the line, with its lead.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}
