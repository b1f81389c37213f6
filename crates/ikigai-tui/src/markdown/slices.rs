//! Where the top-level blocks of a text begin.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::{masked, options};

/// A part of a text that is drawn for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// Where it begins, at the beginning of a line.
    pub(super) start: usize,
    /// It is a code block between fences.
    pub(super) is_fenced: bool,
    /// It is a table, which only its second line tells.
    is_table: bool,
}

impl Slice {
    /// Whether its text has come so far that whatever follows cannot make it part of the block
    /// before.
    pub(super) fn is_begun(&self, text: &str) -> bool {
        let lines = text.matches('\n').count();
        lines > usize::from(self.is_table)
    }
}

/// The slices of a text.
pub(super) fn of(text: &str) -> Vec<Slice> {
    let text = masked(text);
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
