//! Message to the user that stays for a moment.

use std::time::Instant;

use ikigai_core::words::Severity;

use crate::line::TextLine;
use crate::look::Tone;
use crate::signs::{Sign, Symbols};
use crate::text::clean;

/// Message to the user, in the place of the status line.
pub(super) struct Toast {
    pub(super) severity: Severity,
    pub(super) text: String,
    /// Time of its end; none if it stays.
    pub(super) until: Option<Instant>,
}

impl Toast {
    /// A message that stays until something replaces it.
    pub(super) fn lasting(text: String) -> Self {
        Self {
            severity: Severity::Info,
            text,
            until: None,
        }
    }

    /// Its line, after this indentation.
    pub(super) fn line(&self, indent: &str, symbols: Symbols) -> TextLine {
        let text = signed(self.severity, &self.text, symbols);
        TextLine::of(format!("{indent}{}", clean(&text)), Tone::Busy)
    }
}

/// Returns a text with the sign of its severity.
pub(super) fn signed(severity: Severity, text: &str, symbols: Symbols) -> String {
    match severity {
        Severity::Info => text.to_owned(),
        Severity::Warning => format!("{} {text}", Sign::Warning.text(symbols)),
    }
}
