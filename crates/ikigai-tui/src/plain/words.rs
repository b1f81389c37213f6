//! Events as text.

use ikigai_core::Row;
use ikigai_core::render::{Shown, render};

use crate::rows::{self, FoldState, RenderContext};
use crate::signs::{Sign, Symbols};
use crate::text::clean;

const WORDS: [(Sign, &str); 14] = [
    (Sign::User, "you: "),
    (Sign::Assistant, "assistant: "),
    (Sign::Thought, "thinking: "),
    (Sign::Call, "tool "),
    (Sign::Result, "result of "),
    (Sign::Failed, "failed: "),
    (Sign::Warning, "warning: "),
    (Sign::Mark, "mark: "),
    (Sign::Rewound, "back: "),
    (Sign::Redone, "redo: "),
    (Sign::Forked, "fork: "),
    (Sign::Mail, "mail from "),
    (Sign::Merged, "merged: "),
    (Sign::Shell, "shell: "),
];

/// Returns the text of an event; empty if there is nothing to print.
pub(super) fn row_text(row: &Row, context: &RenderContext<'_>) -> String {
    let shown = render(row);
    match &shown {
        Shown::Nothing | Shown::Usage(_) | Shown::System(_) => String::new(),
        // As written: screen readers need no tables drawn with lines.
        Shown::Assistant { text, .. } if text.trim().is_empty() => String::new(),
        Shown::Assistant { text, .. } => format!("assistant: {}", clean(text.trim_end())),
        shown => {
            let lines = rows::block(shown, FoldState::Folded, context).lines;
            let texts = lines.iter().map(|line| in_words(line.text().trim_end()));
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Replaces the sign at the start of a text by a word.
pub(super) fn in_words(text: &str) -> String {
    for (sign, word) in WORDS {
        let sign = sign.text(Symbols::Utf8);
        if let Some(rest) = text
            .strip_prefix(sign)
            .and_then(|rest| rest.strip_prefix(' '))
        {
            return format!("{word}{rest}");
        }
    }
    text.to_owned()
}
