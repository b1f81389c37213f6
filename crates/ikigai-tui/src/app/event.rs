//! An event as text for other programs: as displayed, and as Markdown.

use ikigai_core::Row;
use ikigai_core::render::{Shown, render};

/// Returns the text of an event, without its sign.
pub(super) fn text(row: &Row) -> String {
    match render(row) {
        Shown::System(text)
        | Shown::User { text, .. }
        | Shown::Assistant { text, .. }
        | Shown::Warning(text)
        | Shown::Failed { text, .. }
        | Shown::Forked { text, .. }
        | Shown::Summary {
            text: Some(text), ..
        }
        | Shown::ToolCall { text, .. } => text,
        Shown::ToolResult { text, output, .. } => {
            if output.is_empty() {
                text
            } else {
                output
            }
        }
        Shown::Mark(label) => label.unwrap_or_default(),
        shown => shown.to_string(),
    }
}

/// Returns all searchable text of an event.
pub(super) fn all_text(row: &Row) -> String {
    match render(row) {
        Shown::Assistant { thinking, text } => join(thinking.iter().chain([&text])),
        Shown::ToolCall {
            thinking,
            name,
            text,
            arguments,
        } => join(thinking.iter().chain([&name, &text, &arguments])),
        Shown::ToolResult {
            name, text, output, ..
        } => join([&name, &text, &output].into_iter()),
        Shown::User {
            text,
            sent: Some(sent),
            ..
        } => join([&text, &sent].into_iter()),
        _ => text(row),
    }
}

fn join<'a>(parts: impl Iterator<Item = &'a String>) -> String {
    let parts: Vec<_> = parts.map(String::as_str).collect();
    parts.join("\n")
}

/// Renders an event as Markdown: messages as quotations, tool calls as code.
pub(super) fn markdown(row: &Row) -> String {
    match render(row) {
        Shown::User { text, .. } => quote(&text),
        Shown::ToolCall {
            name, arguments, ..
        } => format!("`{name}`\n\n{}", fence(&arguments)),
        Shown::ToolResult { text, output, .. } => {
            let first = text.lines().next().unwrap_or_default();
            format!("{first}\n\n{}", fence(&output))
        }
        Shown::Command {
            echo,
            output,
            severity,
        } => format!("`{echo}`\n\n{}", fence(&severity.signed(&output))),
        _ => text(row),
    }
}

fn quote(text: &str) -> String {
    let lines: Vec<_> = text
        .lines()
        .map(|line| format!("> {line}").trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// Fences a text as a code block, with fences longer than any in it.
fn fence(text: &str) -> String {
    let longest = text.lines().map(|line| {
        let line = line.trim_start();
        line.len() - line.trim_start_matches('`').len()
    });
    let fence = "`".repeat(longest.max().unwrap_or(0).max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_longer_than_those_within() {
        assert_eq!(fence("a\n````\nb\n"), "`````\na\n````\nb\n`````");
        assert_eq!(fence("a"), "```\na\n```");
    }

    #[test]
    fn quotations_leave_no_blanks_at_the_end() {
        assert_eq!(quote("a\n\nb"), "> a\n>\n> b");
    }
}
