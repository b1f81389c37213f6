//! Updates that show stored rows: the same for live sessions and for loaded ones.

use std::path::Path;

use ikigai_core::data::{self, Category, ErrorData, ToolResultData};
use ikigai_core::render::{Names, Said, Shown, render};
use ikigai_core::spelling::{clean, clean_line};
use ikigai_core::words::Severity;
use ikigai_core::{Kind, Row, RowRef};
use ikigai_engine::{Question, tool_facts};
use serde_json::Value;

use super::diffs::{diff_contents, diff_location};
use super::updates::{
    CallContent, CallKind, CallLocation, CallStatus, ContentChunk, SessionUpdate, ToolCallChange,
};

/// Longest title of a call, in characters.
const TITLE_CHARS: usize = 160;

/// Longest output shown of a call, in bytes; the log has all of it.
const OUTPUT_BYTES: usize = 64 * 1024;

/// Names of the agents that rows mention.
pub(super) type NameLookup<'a> = &'a dyn Fn(ikigai_core::AgentId) -> Option<String>;

/// Returns the id of a call in updates.
pub(super) fn call_id(call: RowRef) -> String {
    call.to_string()
}

/// Returns the updates that show a row to a client that has seen nothing of it.
pub(super) fn row_updates(row: &Row, workdir: &str, names: NameLookup<'_>) -> Vec<SessionUpdate> {
    let message_id = Some(row.at.to_string());
    let says = |text: String| {
        if text.trim().is_empty() {
            return Vec::new();
        }
        let chunk = ContentChunk::new(clean(&text), message_id.clone());
        vec![SessionUpdate::AgentMessageChunk(chunk)]
    };
    let shown = render(row);
    match &shown {
        Shown::User { text, said, .. } => match said {
            Said::Typed | Said::Fork => {
                let chunk = ContentChunk::new(clean(text), message_id);
                vec![SessionUpdate::UserMessageChunk(chunk)]
            }
            Said::Mail(_) | Said::Shell(_) | Said::Merge(_) | Said::Notice(_) => {
                let own = Some(row.at.agent);
                let text = shown
                    .plain(Names {
                        own,
                        name_of: names,
                    })
                    .to_string();
                let chunk = ContentChunk::new(clean(&text), message_id);
                vec![SessionUpdate::UserMessageChunk(chunk)]
            }
        },
        Shown::Assistant { thinking, text } => {
            let mut updates = thoughts(thinking);
            updates.extend(says(text.clone()));
            updates
        }
        Shown::ToolCall { thinking, .. } => {
            let mut updates = thoughts(thinking);
            updates.extend(call_update(row, workdir));
            updates
        }
        Shown::ToolResult { .. } => result_update(row, workdir).into_iter().collect(),
        Shown::Command {
            output, severity, ..
        } => says(severity.signed(output)),
        Shown::Warning(text) => says(Severity::Warning.signed(text)),
        Shown::System(_) | Shown::Usage(_) | Shown::Mark(_) | Shown::Nothing => Vec::new(),
        Shown::Cleared
        | Shown::Rewound(_)
        | Shown::Forked { .. }
        | Shown::Killed(_)
        | Shown::Interrupted(_)
        | Shown::Failed { .. }
        | Shown::Summary { .. }
        | Shown::ProcessEnded { .. } => {
            let own = Some(row.at.agent);
            says(
                shown
                    .plain(Names {
                        own,
                        name_of: names,
                    })
                    .to_string(),
            )
        }
    }
}

fn thoughts(thinking: &[String]) -> Vec<SessionUpdate> {
    let thinking = thinking.iter().filter(|text| !text.trim().is_empty());
    let chunk = |text: &String| ContentChunk::new(clean(text), None);
    thinking
        .map(|text| SessionUpdate::AgentThoughtChunk(chunk(text)))
        .collect()
}

/// Returns the update of a call's row.
pub(super) fn call_update(row: &Row, workdir: &str) -> Option<SessionUpdate> {
    let Shown::ToolCall {
        name,
        text,
        arguments,
        ..
    } = render(row)
    else {
        return None;
    };
    let input: Value =
        serde_json::from_str(&arguments).unwrap_or_else(|_| Value::String(arguments.clone()));
    let file = input.get("file_path").and_then(Value::as_str);
    let locations = file.map(|file| {
        let path = absolute(workdir, file);
        vec![CallLocation { path, line: None }]
    });
    Some(SessionUpdate::ToolCall(ToolCallChange {
        tool_call_id: call_id(row.at),
        title: Some(title(&name, &text)),
        kind: Some(CallKind(tool_facts(&name).action)),
        status: Some(CallStatus::Pending),
        locations,
        raw_input: Some(input),
        name: Some(name),
        content: None,
    }))
}

/// Returns the update of a result's row; none without its call.
fn result_update(row: &Row, workdir: &str) -> Option<SessionUpdate> {
    let Shown::ToolResult {
        text,
        output,
        success,
        call,
        ..
    } = render(row)
    else {
        return None;
    };
    let data: ToolResultData = data::read(row.data.as_deref());
    let files = data.files.unwrap_or_default();
    let path_of = |path: &Option<String>| Some(absolute(workdir, path.as_deref()?));
    let mut locations: Vec<_> = files
        .iter()
        .filter_map(|file| path_of(&file.path))
        .map(|path| CallLocation { path, line: None })
        .collect();
    let written = files.iter().filter(|file| file.wrote == Some(true));
    let mut written = written.filter_map(|file| path_of(&file.path));
    let mut content = Vec::new();
    if success && let (Some(path), None) = (written.next(), written.next()) {
        let diff = text.split_once('\n').map_or("", |(_, diff)| diff);
        content = diff_contents(&path, diff);
        if !content.is_empty() {
            locations = vec![diff_location(&path, diff)];
        }
    }
    if content.is_empty() && !output.trim().is_empty() {
        content.push(CallContent::verbatim(&shortened(&clean(&output))));
    }
    let status = if success {
        CallStatus::Completed
    } else {
        CallStatus::Failed
    };
    Some(SessionUpdate::ToolCallUpdate(ToolCallChange {
        tool_call_id: call_id(call?),
        status: Some(status),
        content: Some(content),
        locations: (!locations.is_empty()).then_some(locations),
        ..ToolCallChange::default()
    }))
}

/// Returns the call that a question is about, with the whole call and diff.
pub(super) fn question_call(
    question: &Question,
    row: Option<&Row>,
    is_own: bool,
) -> ToolCallChange {
    let found = row.and_then(|row| call_update(row, &question.workdir));
    let mut change = match found {
        Some(SessionUpdate::ToolCall(change)) => change,
        _ => ToolCallChange {
            tool_call_id: call_id(question.call),
            title: Some(title(&question.tool, &question.shown)),
            ..ToolCallChange::default()
        },
    };
    if !is_own {
        let title = change.title.unwrap_or_default();
        change.title = Some(format!("{}: {title}", clean_line(&question.agent)));
    }
    // Both texts are exact: control characters are spelled out, and nothing is left out.
    let mut content = vec![CallContent::verbatim(&question.shown)];
    if let Some(preview) = question.preview.as_deref() {
        content.push(CallContent::verbatim(preview));
        let locations = change.locations.as_deref().unwrap_or_default();
        if let Some(file) = locations.first() {
            content.extend(diff_contents(&file.path, preview));
        }
    }
    change.content = Some(content);
    change
}

/// Makes the newest lines that a running call printed into its content.
pub(super) fn output_update(call: RowRef, lines: &[&str]) -> SessionUpdate {
    let text = lines.join("\n");
    SessionUpdate::ToolCallUpdate(ToolCallChange {
        tool_call_id: call_id(call),
        status: Some(CallStatus::InProgress),
        content: Some(vec![CallContent::verbatim(&shortened(&clean(&text)))]),
        ..ToolCallChange::default()
    })
}

/// Returns the category of a turn's failure.
pub(super) fn failure_category(row: &Row) -> Option<Category> {
    if row.kind.read_as() != Some(Kind::Error) {
        return None;
    }
    data::read::<ErrorData>(row.data.as_deref()).category
}

fn title(tool: &str, text: &str) -> String {
    let line = clean_line(text.lines().next().unwrap_or_default()).into_owned();
    let title = match line.as_str() {
        "" => clean_line(tool).into_owned(),
        line => format!("{}: {line}", clean_line(tool)),
    };
    match title.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None => title,
    }
}

fn absolute(workdir: &str, path: &str) -> String {
    Path::new(workdir).join(path).to_string_lossy().into_owned()
}

/// Keeps the beginning and the end of a long output.
fn shortened(text: &str) -> String {
    if text.len() <= OUTPUT_BYTES {
        return text.to_owned();
    }
    let half = OUTPUT_BYTES / 2;
    let head = &text[..text.floor_char_boundary(half)];
    let tail = &text[text.ceil_char_boundary(text.len() - half)..];
    format!(
        "{head}\n… {} bytes left out, the log has them …\n{tail}",
        text.len() - head.len() - tail.len()
    )
}
