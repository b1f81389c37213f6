//! Shell commands of the user.

use ikigai_core::data::Shell;

use super::folded_text::{Lead, MOST_ROWS, add_folded, add_line, add_text, tail};
use super::{FoldState, LONG, RenderContext, RenderedBlock, Sign};
use crate::look::Tone;

/// First and last lines of a shell command's output that are visible while folded.
const SHELL: (usize, usize) = (5, 15);

/// Renders a shell command whose command line, output and exit status the model sees.
pub(super) fn shell_block(
    text: &str,
    data: &Shell,
    fold: FoldState,
    context: &RenderContext<'_>,
) -> RenderedBlock {
    let first = text.lines().next().unwrap_or_default();
    let typed = first.strip_prefix("$ ").unwrap_or(first);
    // A command of several lines precedes the output in full.
    let command = data.command.as_deref().unwrap_or(typed);
    let lead = context.lead(Sign::Shell, Tone::Command);
    let output = output_of(text, command);
    ran(command, output, data.exit == Some(0), &lead, fold, context)
}

/// Renders a shell command that the model does not see.
pub(super) fn unsent(
    command: &str,
    text: &str,
    fold: FoldState,
    context: &RenderContext<'_>,
) -> RenderedBlock {
    let sign = context.sign(Sign::Shell).repeat(2);
    let lead = Lead::sign(&sign, Tone::Command);
    let output = output_of(text, command);
    let success = output.ends_with("(exit 0)");
    ran(command, output, success, &lead, fold, context)
}

/// Returns the output of a command, with its exit status in brackets.
fn output_of<'a>(text: &'a str, command: &str) -> &'a str {
    let after = text
        .strip_prefix("$ ")
        .and_then(|text| text.strip_prefix(command));
    let after = after.map(|output| output.strip_prefix('\n').unwrap_or(output));
    after.unwrap_or(text).trim_end()
}

fn ran(
    command: &str,
    output: &str,
    success: bool,
    lead: &Lead,
    fold: FoldState,
    context: &RenderContext<'_>,
) -> RenderedBlock {
    let mut lines = Vec::new();
    let mut hidden = add_text(
        &mut lines,
        command,
        Tone::Command,
        lead,
        context,
        fold.most(3),
    );
    if lines.is_empty() {
        add_line(&mut lines, Vec::new(), lead, context, 1);
    }
    let below = lead.below();
    let (output, ending) = match output.rsplit_once('\n') {
        Some((output, ending)) if ending.starts_with('(') => (output, ending),
        None if output.starts_with('(') => ("", output),
        _ => (output, ""),
    };
    match fold {
        FoldState::Folded => {
            let (head, last) = tail(output, SHELL.1);
            let left = add_folded(&mut lines, head, Tone::Text, &below, context, SHELL.0);
            if !left.is_nothing() {
                hidden = left;
            }
            add_folded(&mut lines, last, Tone::Text, &below, context, LONG);
        }
        FoldState::Open => {
            add_folded(&mut lines, output, Tone::Text, &below, context, MOST_ROWS);
        }
    }
    if !success {
        add_text(&mut lines, ending, Tone::Error, &below, context, 3);
    }
    RenderedBlock::of(lines, hidden)
}
