//! Page as Markdown.

use std::fmt::Write as _;

use ikigai_core::Row;
use ikigai_store::AgentRecord;

use super::named;
use super::page::{Item, Page, is_diff, state, visible};

pub(super) fn begin(page: &Page) -> String {
    let mut text = format!("# {}\n\nexported on {}\n", page.title(), page.made());
    if page.agents().len() > 1 {
        text.push('\n');
        for (agent, depth) in page.agents() {
            let indent = "  ".repeat(*depth);
            let _ = writeln!(
                text,
                "{indent}- {} ({})",
                visible(&agent.name),
                state(agent)
            );
        }
    }
    text
}

pub(super) fn agent(page: &Page, agent: &AgentRecord) -> String {
    let name = visible(&agent.name);
    let made = page.time(agent.created_at);
    format!(
        "\n## {name}\n\n{} · created {made} · `{}`\n",
        state(agent),
        agent.id
    )
}

/// Renders the usage line below a turn.
pub(super) fn turn(line: &str) -> String {
    format!("\n*{}*\n", escape(line))
}

pub(super) fn row(page: &Page, row: &Row, item: Item, is_remembered: bool) -> String {
    let place = named(row.at);
    let time = page.time(row.created_at);
    let off = if is_remembered {
        ""
    } else {
        " · not in context"
    };
    match item {
        Item::Nothing => String::new(),
        Item::Said {
            who,
            thinking,
            text,
        } => {
            let by = row.author.as_ref();
            let by = by.map_or_else(String::new, |by| format!(" · {}", escape(by.as_str())));
            let mut all = format!("\n### {} {place}\n\n*{time}{by}{off}*\n", who.word());
            for thought in thinking {
                let quoted: Vec<_> = thought.lines().map(|line| format!("> {line}")).collect();
                let _ = write!(all, "\n{}\n", quoted.join("\n"));
            }
            let _ = write!(all, "\n{}\n", close_fences(&text));
            all
        }
        Item::Folded {
            sign,
            name,
            line,
            text,
            failed,
        } => {
            let failed = if failed { " ✗" } else { "" };
            let line = if line.is_empty() {
                String::new()
            } else {
                format!(" {}", code(&line))
            };
            let mut all = format!(
                "\n{sign} **{}**{line}{failed} {place}{off}\n",
                escape(&name)
            );
            if !text.trim().is_empty() {
                let language = if is_diff(&text) { "diff" } else { "" };
                all.push_str(&fence(&text, language));
            }
            all
        }
        Item::Note { text, .. } => {
            let lines: Vec<_> = text.lines().map(escape).collect();
            format!("\n*{}* {place}{off}\n", lines.join(" "))
        }
    }
}

/// Closes the last open fence of a text, so that it ends there.
fn close_fences(text: &str) -> String {
    let mut open: Option<String> = None;
    for line in text.lines() {
        let line = line.trim_start();
        let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'));
        let Some(sign) = sign else {
            continue;
        };
        let count = line.chars().take_while(|c| *c == sign).count();
        match &open {
            None if count >= 3 => open = Some(sign.to_string().repeat(count)),
            Some(fence)
                if fence.starts_with(sign)
                    && count >= fence.len()
                    && line.trim_end().chars().all(|c| c == sign) =>
            {
                open = None;
            }
            _ => {}
        }
    }
    match open {
        Some(fence) => format!("{text}\n{fence}"),
        None => text.to_owned(),
    }
}

/// Fences a code block, with a fence longer than any in it.
fn fence(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let text = text.trim_end_matches('\n');
    format!("\n{fence}{language}\n{text}\n{fence}\n")
}

fn code(line: &str) -> String {
    let fence = "`".repeat(longest_run(line) + 1);
    let space = if line.starts_with('`') || line.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{line}{space}{fence}")
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

/// Escapes a line, so that no character has a meaning in Markdown.
fn escape(line: impl AsRef<str>) -> String {
    let mut text = String::new();
    for c in line.as_ref().chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '!'
        ) {
            text.push('\\');
        }
        text.push(c);
    }
    text
}
