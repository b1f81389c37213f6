//! Rendering of commands: dim echo, blank row, dim output. A listing is folded to one row.

use std::borrow::Cow;

use ikigai_core::words::Severity;
use ikigai_engine::UserInput;

use super::folded_text::{FoldedPart, Lead, add_cut, add_folded};
use super::{FoldState, LONG, RenderContext, RenderedBlock, shell};
use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::signs::Sign;
use crate::text::clean_line;

/// Rows of a folded echo.
const ECHO_ROWS: usize = 3;

pub(super) fn command(
    echo: &str,
    output: &str,
    severity: Severity,
    fold: FoldState,
    context: &RenderContext<'_>,
) -> RenderedBlock {
    let (tone, output) = match severity {
        Severity::Info => (Tone::Faint, Cow::Borrowed(output)),
        Severity::Warning => {
            let sign = context.sign(Sign::Warning);
            (Tone::Warning, Cow::Owned(format!("{sign} {output}")))
        }
    };
    let output = &*output;
    if let Some(typed) = echo.strip_prefix("!!") {
        return shell::unsent(typed.trim(), output, fold, context);
    }
    if fold == FoldState::Folded && severity == Severity::Info && is_listing(echo) {
        return listing(echo, output, context);
    }
    let mut lines = Vec::new();
    let lead = Lead::space(0);
    let most = fold.most(ECHO_ROWS);
    let mut hidden = FoldedPart::default();
    if !echo.is_empty() {
        hidden = add_folded(&mut lines, echo, Tone::Faint, &lead, context, most);
    }
    if !output.trim().is_empty() {
        if !echo.is_empty() {
            lines.push(TextLine::default());
        }
        let look = Look::of(tone).with(Look::DIM);
        let left = add_folded(&mut lines, output, look, &lead, context, fold.most(LONG));
        hidden = FoldedPart {
            lines: hidden.lines + left.lines,
            bytes: hidden.bytes + left.bytes,
        };
    }
    RenderedBlock::of(lines, hidden)
}

/// Reports whether a line is a command that only reads.
fn is_listing(echo: &str) -> bool {
    matches!(UserInput::parse(echo), UserInput::Command(typed) if typed.only_shows())
}

/// Renders `/help · 48 lines`, or a single line of output itself.
fn listing(echo: &str, output: &str, context: &RenderContext<'_>) -> RenderedBlock {
    let output = output.trim();
    let dot = context.sign(Sign::Dot);
    let echo = clean_line(echo);
    let text = match output.lines().count() {
        0 => echo.into_owned(),
        1 => {
            let words: Vec<_> = output.split_whitespace().collect();
            format!("{echo} {dot} {}", clean_line(&words.join(" ")))
        }
        lines => format!("{echo} {dot} {lines} lines"),
    };
    let mut lines = Vec::new();
    let spans = vec![TextSpan::new(text, Tone::Faint)];
    let is_cut = add_cut(&mut lines, spans, &Lead::space(0), context, 1);
    let is_whole = !is_cut && output.lines().count() < 2;
    let hidden = if is_whole { "" } else { output };
    RenderedBlock::of(lines, FoldedPart::of(hidden))
}
