//! Splitting of a text at its top-level blocks.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::{mask, options};

/// Part of a text that is drawn separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// Start of the slice, at the start of a line.
    pub(super) start: usize,
    /// It is a fenced code block.
    pub(super) is_fenced: bool,
    /// It is a table; only its second line shows that.
    is_table: bool,
}

impl Slice {
    /// Returns true if later text can no longer merge it with the previous block.
    pub(super) fn is_begun(&self, text: &str) -> bool {
        let lines = text.matches('\n').count();
        lines > usize::from(self.is_table)
    }
}

/// Splits a text into slices.
pub(super) fn of(text: &str) -> Vec<Slice> {
    let text = mask(text);
    let mut slices = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(&text, options()).into_offset_iter() {
        if depth == 0 {
            let before = text.get(..range.start).unwrap_or_default();
            slices.push(Slice {
                start: before.rfind('\n').map_or(0, |end| end + 1),
                is_fenced: matches!(
                    event,
                    Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_)))
                ),
                is_table: matches!(event, Event::Start(Tag::Table(_))),
            });
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    slices
}
