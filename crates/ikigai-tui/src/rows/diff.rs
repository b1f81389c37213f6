//! Coloured diff with line numbers.

use super::folded_text::{FoldedPart, Lead, add_line};
use super::{MOST_ROWS, RenderContext, Sign};
use crate::line::{TextLine, TextSpan};
use crate::look::Tone;
use crate::text::clean;

/// Returns true if a text consists of the hunks of a diff.
pub(super) fn is_diff(text: &str) -> bool {
    text.starts_with("@@ -")
}

/// Renders a unified diff, with a line number in each row.
/// The number is that of the file after the change, or before it for a removed line.
///
/// At most `most` rows; no line is cut.
pub fn diff(text: &str, context: &RenderContext<'_>, most: usize) -> Vec<TextLine> {
    let mut lines = Vec::new();
    add_rows(&mut lines, text, 0, context, (most, usize::MAX));
    lines
}

/// Adds at most `most` rows of a diff, indented; returns the rest.
pub(super) fn add_diff(
    lines: &mut Vec<TextLine>,
    text: &str,
    indent: usize,
    context: &RenderContext<'_>,
    most: usize,
) -> FoldedPart {
    let most = most.min(MOST_ROWS);
    add_rows(
        lines,
        text,
        indent,
        context,
        (most, super::tools::MOST_LINE_BYTES),
    )
}

fn add_rows(
    lines: &mut Vec<TextLine>,
    text: &str,
    indent: usize,
    context: &RenderContext<'_>,
    (most, line_bytes): (usize, usize),
) -> FoldedPart {
    let end = lines.len().saturating_add(most);
    let digits = digits(text);
    let mut numbers = (0, 0);
    let mut is_first = true;
    let mut rest = text.trim_end_matches('\n');
    while !rest.is_empty() {
        let left = end.saturating_sub(lines.len());
        if left == 0 {
            return FoldedPart::of(rest);
        }
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let (number, sign, role, words) = match line.split_at_checked(1) {
            Some(("@", _)) => {
                if let Some(begins) = begins(line) {
                    numbers = begins;
                }
                if std::mem::take(&mut is_first) {
                    rest = after;
                    continue;
                }
                (None, " ", Tone::Faint, context.sign(Sign::More))
            }
            Some(("+", words)) => (Some(next(&mut numbers.1)), "+", Tone::Added, words),
            Some(("-", words)) => (Some(next(&mut numbers.0)), "-", Tone::Removed, words),
            Some((" ", words)) => {
                next(&mut numbers.0);
                (Some(next(&mut numbers.1)), " ", Tone::Text, words)
            }
            // The end of the file, or of a truncated diff.
            _ => (None, " ", Tone::Faint, line),
        };
        let number = number.map_or_else(String::new, |number: u64| number.to_string());
        let space = " ".repeat(indent);
        let lead = Lead {
            first: vec![
                TextSpan::new(format!("{space}{number:>digits$} "), Tone::Faint),
                TextSpan::new(format!("{sign} "), role),
            ],
            ..Lead::space(indent + digits + 3)
        };
        let words = words.get(..words.floor_char_boundary(line_bytes));
        let spans = vec![TextSpan::new(clean(words.unwrap_or_default()), role)];
        add_line(lines, spans, &lead, context, left);
        rest = after;
    }
    FoldedPart::default()
}

fn next(number: &mut u64) -> u64 {
    let this = *number;
    *number = number.saturating_add(1);
    this
}

/// Returns the start lines of a hunk before and after: `@@ -12,7 +12,9 @@`.
fn begins(header: &str) -> Option<(u64, u64)> {
    let mut parts = header.split(' ');
    let mut of = |sign| -> Option<u64> {
        let part = parts.find_map(|part| part.strip_prefix(sign))?;
        part.split(',').next()?.parse().ok()
    };
    Some((of('-')?, of('+')?))
}

/// Returns the number of digits of the largest line number.
fn digits(text: &str) -> usize {
    let headers = text.lines().filter(|line| line.starts_with("@@ -"));
    let last = headers.filter_map(begins).next_back().unwrap_or_default();
    let rows = u64::try_from(text.lines().count()).unwrap_or_default();
    let most = last.0.max(last.1).saturating_add(rows);
    most.to_string().len()
}
