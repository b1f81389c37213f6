//! Rendering of the model's thinking and answers.

use super::folded_text::{FoldedPart, MOST_ROWS, add_folded, add_line, with_lead};
use super::{FoldState, RenderContext, RenderedBlock, Sign};
use crate::line::TextSpan;
use crate::look::{Look, Tone};
use crate::markdown::{self, MarkdownStyle};
use crate::text::clean;
use ikigai_core::counts::counted;

/// Size limit of an answer; more than any model sends at once.
const MOST_SPEECH_BYTES: usize = 1024 * 1024;

/// Renders thinking: the first words, or all of it.
pub(super) fn thought(
    thinking: &[String],
    fold: FoldState,
    context: &RenderContext<'_>,
) -> RenderedBlock {
    if thinking.is_empty() {
        return RenderedBlock::default();
    }
    let text = thinking.join("\n\n");
    let text = text.trim();
    let look = Look::of(Tone::Thinking).with(Look::DIM);
    let lead = context.lead(Sign::Thought, look);
    let words = text.split_whitespace().count();
    let mut lines = Vec::new();
    if words == 0 {
        // The provider does not reveal it.
        add_line(
            &mut lines,
            vec![TextSpan::new("thought", look)],
            &lead,
            context,
            1,
        );
        return RenderedBlock {
            lines,
            folded: None,
        };
    }
    if fold == FoldState::Open {
        let look = look.with(Look::ITALIC);
        add_folded(&mut lines, text, look, &lead, context, MOST_ROWS);
        return RenderedBlock {
            lines,
            folded: None,
        };
    }
    let count = counted(words, "word");
    let first = text.lines().next().unwrap_or_default();
    let first = first
        .get(..first.floor_char_boundary(4096))
        .unwrap_or_default();
    let spans = vec![
        TextSpan::new(format!("thinking, {count}: "), look),
        TextSpan::new(clean(first), look.with(Look::ITALIC)),
    ];
    let line = with_lead(spans, &lead.first);
    let more = context.sign(Sign::More);
    lines.push(crate::text::cut(&line, context.width, more));
    RenderedBlock::of(lines, FoldedPart::of(text))
}

pub(super) fn assistant(
    thinking: &[String],
    text: &str,
    fold: FoldState,
    context: &RenderContext<'_>,
) -> RenderedBlock {
    let mut block = thought(thinking, fold, context);
    if text.trim().is_empty() {
        return block;
    }
    let style = speech(context);
    let near = text.get(..text.floor_char_boundary(MOST_SPEECH_BYTES));
    let near = near.unwrap_or_default();
    block.lines.extend(markdown::lines(near, style));
    if near.len() < text.len() {
        let lead = context.lead(Sign::Assistant, Tone::Assistant);
        let left = FoldedPart {
            lines: 0,
            bytes: text.len() - near.len(),
        };
        block.lines.push(left.line(&lead, context));
    }
    block
}

/// Returns the style of the model's answers, complete or streaming.
pub fn speech(context: &RenderContext<'_>) -> MarkdownStyle {
    let lead = context.lead(Sign::Assistant, Tone::Assistant);
    MarkdownStyle {
        width: context.width,
        symbols: context.symbols,
        first: lead.first,
        rest: lead.rest,
    }
}
