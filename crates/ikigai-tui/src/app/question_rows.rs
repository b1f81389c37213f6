//! Rows of a question: exact call, diff, pattern of *always*, answers.

use ikigai_engine::Question;

use crate::line::{TextLine, TextSpan};
use crate::look::{Look, Tone};
use crate::rows::{self, RenderContext};
use crate::signs::Symbols;
use crate::text::{clean, clean_line, wrap};
use crate::width::width;

/// A question laid out at one width.
pub(super) struct Body {
    pub(super) columns: u16,
    pub(super) lines: Vec<TextLine>,
    /// First row of the pattern, if it is here and not among the answers.
    pub(super) pattern_row: Option<usize>,
}

impl Body {
    /// Returns the number of rows before the pattern: the call itself.
    pub(super) fn call_rows(&self) -> usize {
        self.pattern_row.unwrap_or(self.lines.len())
    }

    /// Lays out a whole question; *always* would grant `pattern`, which is spelled out.
    pub(super) fn new(question: &Question, pattern: &str, context: &RenderContext<'_>) -> Self {
        let mut lines = call_lines(question, context, usize::MAX);
        let mut pattern_row = None;
        let fits = always(question, pattern, context.width).is_some();
        if !fits && pattern == question.shown {
            lines.push(TextLine::of("  pattern: exactly this call", Tone::Faint));
        } else if !fits {
            pattern_row = Some(lines.len());
            let head = format!("  pattern for {}:", clean_line(&question.tool));
            lines.push(TextLine::of(head, Tone::Faint));
            add_exact(&mut lines, pattern, context, usize::MAX);
        }
        Self {
            columns: context.width,
            lines,
            pattern_row,
        }
    }
}

/// Renders tool, directory, the whole call and its diff, in at most `most` rows.
pub(super) fn call_lines(
    question: &Question,
    context: &RenderContext<'_>,
    most: usize,
) -> Vec<TextLine> {
    let head = TextLine::new(vec![
        TextSpan::new(
            format!("? {} ", clean_line(&question.tool)),
            Look::of(Tone::Question).with(Look::BOLD),
        ),
        TextSpan::new(format!("in {}", clean_line(&question.workdir)), Tone::Faint),
    ]);
    let mut lines = wrap(&head, context.width, &[TextSpan::new("  ", Tone::Text)]);
    add_exact(&mut lines, &question.shown, context, most);
    if let Some(preview) = &question.preview {
        let left = most.saturating_sub(lines.len());
        lines.extend(rows::diff(preview, context, left));
    }
    lines.truncate(most);
    lines
}

/// Adds text verbatim. Continuation rows have a different lead.
fn add_exact(lines: &mut Vec<TextLine>, text: &str, context: &RenderContext<'_>, most: usize) {
    let goes_on = match context.symbols {
        Symbols::Utf8 => "↳ ",
        Symbols::Ascii => "\\ ",
    };
    let hanging = [TextSpan::new(goes_on, Tone::Faint)];
    for line in text.split('\n') {
        if lines.len() >= most {
            return;
        }
        let line = TextLine {
            spans: vec![
                TextSpan::new("  ", Tone::Text),
                TextSpan::new(clean(line), Tone::Code),
            ],
            lead: 1,
            joined: None,
        };
        lines.extend(wrap(&line, context.width, &hanging));
    }
}

/// Returns the answer that grants a pattern, if it fits into one row.
fn always(question: &Question, pattern: &str, columns: u16) -> Option<String> {
    let text = format!(" always allow {} \"{pattern}\"", clean_line(&question.tool));
    let fits = width("  a") + width(&text) <= usize::from(columns);
    (fits && !pattern.contains('\n')).then_some(text)
}

/// Returns the answers in at most `most` rows, without a preselected one.
pub(super) fn answers(
    question: &Question,
    pattern: &str,
    columns: u16,
    most: usize,
) -> Vec<TextLine> {
    let key = Look::of(Tone::Question).with(Look::BOLD);
    let always = always(question, pattern, columns);
    let always = always.unwrap_or_else(|| " always allow the pattern above".to_owned());
    let answers = [
        ("y", " once"),
        ("a", &always),
        ("e", " edit pattern"),
        ("n", " no"),
        ("r", " no, with a reason"),
        ("Esc", " reject and stop"),
    ];
    let mut rows: Vec<TextLine> = Vec::new();
    for (letter, what) in answers {
        let answer = [TextSpan::new(letter, key), TextSpan::new(what, Tone::Text)];
        let wide: usize = answer.iter().map(|span| width(&span.text)).sum();
        let used = rows.last().map(|row| width(&row.text()));
        match (rows.last_mut(), used) {
            // None is broken in the middle if it fits into a row.
            (Some(row), Some(used)) if used + 3 + wide <= usize::from(columns) => {
                row.spans.push(TextSpan::new(" · ", Tone::Faint));
                row.spans.extend(answer);
            }
            _ => {
                let indent = [TextSpan::new("  ", Tone::Text)];
                let line = [&indent[..], &answer].concat();
                rows.extend(wrap(&TextLine::new(line), columns, &indent));
            }
        }
    }
    if rows.len() <= most {
        return rows;
    }
    let letters: Vec<_> = answers.iter().map(|(letter, _)| *letter).collect();
    vec![TextLine::of(format!("  {}", letters.join(" ")), key)]
}
