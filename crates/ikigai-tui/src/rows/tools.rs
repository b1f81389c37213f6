//! Tool calls and their results.

use ikigai_core::project::OutputPreview;
use ikigai_engine::tool_facts;
use serde_json::Value;

use super::diff::{add_diff, is_diff};
use super::folded_text::{FoldedPart, add_cut, add_folded, add_line, add_text, tail};
use super::{FoldState, MOST_ROWS, RenderContext, RenderedBlock, Sign};
use crate::line::TextSpan;
use crate::look::{Look, Tone};
use crate::text::{clean, clean_line};

/// Most bytes read of one line: a few screens.
pub(super) const MOST_LINE_BYTES: usize = 16 * 1024;

/// Rows of a folded call.
const CALL: usize = 3;

/// Rows of most folded outputs.
const PEEK: usize = 3;

/// Last rows of a failed output, which show the reason.
const PEEK_FAILED: usize = 5;

/// Rows of a folded diff.
const PEEK_DIFF: usize = 12;

/// Rows of a folded output that a person follows, such as the to-do list.
const PEEK_LONG: usize = 20;

/// Returns the lines of a folded output.
fn peek(tool: &str) -> usize {
    match tool_facts(tool).preview {
        OutputPreview::Line => 0,
        OutputPreview::FewLines => PEEK,
        OutputPreview::Long => PEEK_LONG,
    }
}

/// Renders a call: `→ bash: cargo test`.
pub(super) fn call(
    name: &str,
    text: &str,
    arguments: &str,
    fold: FoldState,
    context: &RenderContext<'_>,
) -> RenderedBlock {
    let mut lines = Vec::new();
    let lead = context.lead(Sign::Call, Tone::Tool);
    let title = |colon: &str| {
        let look = Look::of(Tone::Tool).with(Look::BOLD);
        TextSpan::new(format!("{}{colon}", clean_line(name)), look)
    };
    if let (FoldState::Open, Some(pairs)) = (fold, pairs(arguments)) {
        add_line(&mut lines, vec![title("")], &lead, context, 1);
        let lead = lead.below();
        for (key, value) in pairs {
            let key = TextSpan::new(format!("{}: ", clean_line(&key)), Tone::Faint);
            let (first, rest) = value.split_once('\n').unwrap_or((&value, ""));
            let first = first.get(..first.floor_char_boundary(MOST_LINE_BYTES));
            let first = TextSpan::new(clean(first.unwrap_or_default()), Tone::Text);
            add_line(&mut lines, vec![key, first], &lead, context, MOST_ROWS);
            if !rest.is_empty() {
                add_folded(&mut lines, rest, Tone::Text, &lead, context, MOST_ROWS);
            }
        }
        return RenderedBlock {
            lines,
            folded: None,
        };
    }
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    let line = line.get(..line.floor_char_boundary(MOST_LINE_BYTES));
    let mut spans = vec![title(if text.is_empty() { "" } else { ": " })];
    spans.push(TextSpan::new(clean(line.unwrap_or_default()), Tone::Text));
    let most = if context.is_narrow() { 1 } else { CALL };
    let is_cut = add_cut(&mut lines, spans, &lead, context, most);
    let below = lead.below();
    let left = most.saturating_sub(lines.len());
    add_folded(&mut lines, rest, Tone::Text, &below, context, left);
    let is_short = text.ends_with('…') || text.contains('\n') || is_cut;
    let hidden = if is_short {
        FoldedPart::of(arguments)
    } else {
        FoldedPart::default()
    };
    RenderedBlock::of(lines, hidden)
}

/// Returns the arguments of a call as pairs of name and value.
fn pairs(arguments: &str) -> Option<Vec<(String, String)>> {
    let Ok(Value::Object(object)) = serde_json::from_str(arguments) else {
        return None;
    };
    let text = |value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let pairs = object.into_iter().map(|(key, value)| (key, text(value)));
    Some(pairs.collect())
}

/// Returns the text below a title, without its first line if that is the title.
fn without_title<'a>(body: &'a str, title: &str) -> &'a str {
    let body = body.trim_end();
    let (first, rest) = body.trim_start().split_once('\n').unwrap_or((body, ""));
    if first.trim() == title.trim() {
        rest
    } else {
        body
    }
}

/// Splits off a last line that says in brackets what the title says: `[exit 0, 1.2 s]` below
/// `exit 0 · 4 lines`. Returns the text before it, and the part that the title lacks.
fn split_status<'a>(body: &'a str, title: &str) -> (&'a str, Option<&'a str>) {
    let (before, last) = body.rsplit_once('\n').unwrap_or(("", body));
    let status = last.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let parts = status.map(|it| {
        it.split_once(", ")
            .map_or((it, None), |(it, more)| (it, Some(more)))
    });
    let Some((status, more)) = parts else {
        return (body, None);
    };
    match title.strip_prefix(status) {
        Some(rest) if !rest.starts_with(char::is_alphanumeric) => {
            (before.trim_end(), more.filter(|more| !title.contains(more)))
        }
        _ => (body, None),
    }
}

/// Renders a result: `← bash: 41 lines`, a few of them, and the number of the rest.
pub(super) fn result(
    name: &str,
    text: &str,
    output: &str,
    success: bool,
    fold: FoldState,
    context: &RenderContext<'_>,
) -> RenderedBlock {
    let (sign, role) = if success {
        (Sign::Result, Tone::Tool)
    } else {
        (Sign::Failed, Tone::Error)
    };
    let mut lines = Vec::new();
    let lead = context.lead(sign, role);
    let below = lead.below();
    let (line, more) = text.split_once('\n').unwrap_or((text, ""));
    let near = line.get(..line.floor_char_boundary(MOST_LINE_BYTES));
    let mut spans = vec![
        TextSpan::new(format!("{}: ", clean_line(name)), role),
        TextSpan::new(clean(near.unwrap_or_default()), Tone::Text),
    ];
    let body = if more.trim().is_empty() { output } else { more };
    let mut body = without_title(body, line);
    if fold == FoldState::Folded {
        let (before, more) = split_status(body, line);
        body = before;
        spans
            .extend(more.map(|more| TextSpan::new(format!(" · {}", clean_line(more)), Tone::Text)));
    }
    let rows = match (fold, context.is_narrow()) {
        (FoldState::Open, _) => MOST_ROWS,
        (FoldState::Folded, true) => 1,
        (FoldState::Folded, false) => PEEK,
    };
    let is_cut = add_cut(&mut lines, spans, &lead, context, rows);
    if body.is_empty() {
        return RenderedBlock::of(
            lines,
            if is_cut {
                FoldedPart::of(line)
            } else {
                FoldedPart::default()
            },
        );
    }
    if fold == FoldState::Folded && context.is_narrow() {
        return RenderedBlock::of(lines, FoldedPart::of(body));
    }
    if is_diff(body) {
        let hidden = add_diff(
            &mut lines,
            body,
            below.width(),
            context,
            fold.most(PEEK_DIFF),
        );
        if !hidden.is_nothing() {
            lines.push(hidden.line(&below, context));
        }
        return RenderedBlock::of(lines, hidden);
    }
    let hidden = match fold {
        FoldState::Open => add_folded(&mut lines, body, Tone::Faint, &below, context, MOST_ROWS),
        FoldState::Folded if peek(name) == 0 => FoldedPart::of(body),
        FoldState::Folded if success => {
            add_folded(&mut lines, body, Tone::Faint, &below, context, peek(name))
        }
        FoldState::Folded => {
            let (before, last) = tail(body, PEEK_FAILED);
            let hidden = FoldedPart::of(before);
            if !hidden.is_nothing() {
                lines.push(hidden.line(&below, context));
            }
            add_text(
                &mut lines,
                last,
                Tone::Faint,
                &below,
                context,
                2 * PEEK_FAILED,
            );
            hidden
        }
    };
    RenderedBlock::of(lines, hidden)
}
