//! Rendering of text under a sign, and of its folded rest.

use ikigai_core::counts::counted;

use super::RenderContext;
use super::figures;
use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::signs::Sign;
use crate::text::{WrappedRows, clean};
use crate::width::width;

/// Row limit of an unfolded event; longer ones are for a pager.
pub(super) const MOST_ROWS: usize = 2000;

/// Upper bound of bytes per column, except for stacked combining marks.
const COLUMN_BYTES: usize = 8;

/// Lead of the first row of a text, and of the others.
#[derive(Clone, Debug)]
pub(super) struct Lead {
    pub(super) first: Vec<TextSpan>,
    pub(super) rest: Vec<TextSpan>,
}

impl Lead {
    /// Creates a lead of a sign and a space; the same width of space below.
    pub(super) fn sign(sign: &str, look: impl Into<Look>) -> Self {
        Self {
            first: vec![TextSpan::new(format!("{sign} "), look)],
            rest: vec![TextSpan::new(" ".repeat(width(sign) + 1), Tone::Text)],
        }
    }

    /// Creates a lead of spaces.
    pub(super) fn space(columns: usize) -> Self {
        let space = vec![TextSpan::new(" ".repeat(columns), Tone::Text)];
        Self {
            first: space.clone(),
            rest: space,
        }
    }

    /// Returns the lead of the rows after the first.
    pub(super) fn below(&self) -> Self {
        Self {
            first: self.rest.clone(),
            rest: self.rest.clone(),
        }
    }

    pub(super) fn width(&self) -> usize {
        self.rest.iter().map(|span| width(&span.text)).sum()
    }
}

/// Part of a text that is folded away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FoldedPart {
    pub(super) lines: usize,
    pub(super) bytes: usize,
}

impl FoldedPart {
    pub(super) fn of(text: &str) -> Self {
        Self {
            lines: text.lines().count(),
            bytes: text.len(),
        }
    }

    pub(super) fn is_nothing(self) -> bool {
        self.bytes == 0
    }

    /// Renders `… 38 more lines`, or the rest of a line in bytes.
    pub(super) fn line(self, lead: &Lead, context: &RenderContext<'_>) -> TextLine {
        let more = context.sign(Sign::More);
        let text = match self.lines {
            0 => {
                let bytes = u64::try_from(self.bytes).unwrap_or(u64::MAX);
                format!("{more} {} more", figures::bytes(bytes))
            }
            lines => format!("{more} {}", counted(lines, "more line")),
        };
        let line = with_lead(vec![TextSpan::new(text, Tone::Faint)], &lead.rest);
        crate::text::cut(&line, context.width, "")
    }
}

/// Puts a line under a lead.
pub(super) fn with_lead(spans: Vec<TextSpan>, lead: &[TextSpan]) -> TextLine {
    TextLine {
        lead: lead.len(),
        spans: lead.iter().cloned().chain(spans).collect(),
        joined: None,
    }
}

/// Adds rows of one line up to a limit; returns true if there are more.
pub(super) fn add_line(
    lines: &mut Vec<TextLine>,
    spans: Vec<TextSpan>,
    lead: &Lead,
    context: &RenderContext<'_>,
    most: usize,
) -> bool {
    let line = with_lead(spans, &lead.first);
    let mut rows = WrappedRows::new(&line, context.width, &lead.rest);
    lines.extend(rows.by_ref().take(most));
    rows.place().is_some()
}

/// Adds a line up to a limit of rows. The last row shows if there is more.
pub(super) fn add_cut(
    lines: &mut Vec<TextLine>,
    spans: Vec<TextSpan>,
    lead: &Lead,
    context: &RenderContext<'_>,
    most: usize,
) -> bool {
    let before = lines.len();
    let is_cut = add_line(lines, spans, lead, context, most);
    if let (true, Some(last)) = (is_cut && lines.len() > before, lines.last_mut()) {
        let more = TextSpan::new(context.sign(Sign::More), Tone::Faint);
        let room = usize::from(context.width).saturating_sub(width(&more.text));
        *last = crate::text::cut(last, u16::try_from(room).unwrap_or(u16::MAX), "");
        last.spans.push(more);
        *last = crate::text::cut(last, context.width, "");
    }
    is_cut
}

/// Adds rows of external text up to a limit; returns the rest.
/// Reads only the visible part, and counts line ends in the rest.
pub(super) fn add_text(
    lines: &mut Vec<TextLine>,
    text: &str,
    look: impl Into<Look>,
    lead: &Lead,
    context: &RenderContext<'_>,
    most: usize,
) -> FoldedPart {
    let look = look.into();
    let text = text.trim_end();
    if text.is_empty() {
        return FoldedPart::default();
    }
    let end = lines.len() + most.min(MOST_ROWS);
    let mut lead = lead.clone();
    let mut rest = text;
    loop {
        let left = end.saturating_sub(lines.len());
        if left == 0 {
            return FoldedPart::of(rest);
        }
        let (line, after) = match rest.split_once('\n') {
            Some((line, after)) => (line.strip_suffix('\r').unwrap_or(line), Some(after)),
            None => (rest, None),
        };
        let enough = left * (usize::from(context.width) + 1) * COLUMN_BYTES;
        let near = line.get(..line.floor_char_boundary(enough));
        let near = near.unwrap_or_default();
        let spans = vec![TextSpan::new(clean(near), look)];
        let has_more = add_line(lines, spans, &lead, context, left);
        lead = lead.below();
        if has_more || near.len() < line.len() {
            // Part of the last line is visible: do not count it as hidden.
            let shown = left * usize::from(context.width);
            let after = after.map_or_else(FoldedPart::default, FoldedPart::of);
            return FoldedPart {
                lines: after.lines,
                bytes: after.bytes + line.len().saturating_sub(shown).max(1),
            };
        }
        match after {
            Some(after) => rest = after,
            None => return FoldedPart::default(),
        }
    }
}

/// Adds rows of a text, and one that counts the rest; a single row more is shown instead.
pub(super) fn add_folded(
    lines: &mut Vec<TextLine>,
    text: &str,
    look: impl Into<Look>,
    lead: &Lead,
    context: &RenderContext<'_>,
    most: usize,
) -> FoldedPart {
    let look = look.into();
    let before = lines.len();
    let hidden = add_text(lines, text, look, lead, context, most);
    if hidden.is_nothing() {
        return hidden;
    }
    let shown = lines.split_off(before);
    if most > 0 && add_text(lines, text, look, lead, context, most + 1).is_nothing() {
        return FoldedPart::default();
    }
    lines.truncate(before);
    lines.extend(shown);
    lines.push(hidden.line(lead, context));
    hidden
}

/// Splits off the last lines of a text; returns the text before them too.
pub(super) fn tail(text: &str, most: usize) -> (&str, &str) {
    let text = text.trim_end();
    let start = text
        .rmatch_indices('\n')
        .nth(most.saturating_sub(1))
        .map_or(0, |(end, _)| end + 1);
    text.split_at(if most == 0 { text.len() } else { start })
}
