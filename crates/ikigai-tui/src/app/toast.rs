//! Message to the user that stays for a moment.

use std::time::Instant;

use ikigai_core::words::Severity;

use crate::key::KeyPress;
use crate::keys::{Action, ActionEntry};
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

    /// Lists the keys that can follow a prefix such as `Ctrl-X`.
    pub(super) fn next_keys(prefix: &[KeyPress], next: &[(KeyPress, &ActionEntry)]) -> Self {
        let prefix: Vec<_> = prefix.iter().map(KeyPress::label).collect();
        let mut keys = Vec::new();
        let mut numbers = Vec::new();
        for (key, entry) in next {
            match entry.action {
                Action::Agent(_) => numbers.push(key.label()),
                _ => keys.push(format!("{} {}", key.label(), short(entry.help))),
            }
        }
        match (numbers.first(), numbers.last()) {
            (Some(first), Some(last)) if first != last => {
                keys.push(format!("{first}–{last} agent by number"));
            }
            (Some(only), _) => keys.push(format!("{only} agent by number")),
            _ => {}
        }
        Self::lasting(format!("{} then {}", prefix.join(" "), keys.join(" · ")))
    }

    /// Its line, after this indentation.
    pub(super) fn line(&self, indent: &str, symbols: Symbols) -> TextLine {
        let text = with_sign(self.severity, &self.text, symbols);
        TextLine::of(format!("{indent}{}", clean(&text)), Tone::Busy)
    }
}

/// Shortens the help of an action to its object: `parent agent` for `go to the parent agent`.
fn short(help: &str) -> &str {
    let verbs = ["go to the ", "go back to the ", "show the ", "show "];
    let object = verbs.iter().find_map(|verb| help.strip_prefix(verb));
    let object = object.unwrap_or(help);
    object.split([';', '(']).next().unwrap_or(object).trim_end()
}

pub(super) fn with_sign(severity: Severity, text: &str, symbols: Symbols) -> String {
    match severity {
        Severity::Info => text.to_owned(),
        Severity::Warning => format!("{} {text}", Sign::Warning.text(symbols)),
    }
}
