//! Printed output: answers on standard output, the rest on standard error.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::process::ExitCode;

use ikigai_core::spelling::{clean, escape_json};
use ikigai_core::{Micros, Row};
use ikigai_engine::EngineError;
use ikigai_store::{CommitError, StoreError};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::arguments::exit;

/// Prints text to standard output; nothing in it can control a terminal.
pub(crate) fn print(text: &str) -> io::Result<()> {
    print_exact(&clean(text))
}

/// Prints one line of JSON to standard output, with hidden characters escaped.
pub(crate) fn print_json(json: &impl Display) -> io::Result<()> {
    print_exact(&json_line(json))
}

/// Returns one line of JSON with hidden characters escaped.
pub(crate) fn json_line(json: &impl Display) -> String {
    format!("{}\n", escape_json(&json.to_string()))
}

/// Prints text verbatim to standard output: for programs, or with our own styling.
pub(crate) fn print_exact(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Returns true if the reader of the output is gone, such as `head`.
pub(crate) fn is_reader_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Prints a message to standard error; nothing in it can control a terminal.
pub(crate) fn print_stderr(text: &str) {
    // If standard error is gone too, the failure cannot be reported.
    let _ = writeln!(io::stderr().lock(), "{}", clean(text));
}

/// Prints an error with a hint, and returns the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref().is_some_and(is_reader_gone) {
        return exit::READER_GONE.into();
    }
    print_stderr(&visible(&message(error)));
    if error.is::<NothingToContinue>() {
        return exit::AGENT.into();
    }
    let engine = error.downcast_ref::<EngineError>();
    let store = error.downcast_ref::<StoreError>();
    let store = store.or_else(|| engine.and_then(EngineError::store_failure));
    if let Some(store) = store {
        print_stderr(&format!("hint: {}", store.advice()));
        return exit::STORE.into();
    }
    match engine {
        Some(EngineError::Commit(CommitError::Held { .. })) => {
            print_stderr(
                "hint: type the command there, or use another agent: --agent NAME or --new",
            );
            exit::AGENT.into()
        }
        Some(EngineError::Dead(_)) => {
            print_stderr("hint: `ikigai run --agent NAME '/fork PROMPT'` continues from it");
            exit::AGENT.into()
        }
        Some(EngineError::NoSuchAgent(_) | EngineError::Ambiguous { .. }) => {
            print_stderr("hint: `ikigai agents` lists them");
            exit::AGENT.into()
        }
        Some(EngineError::NoModel(missing)) => {
            print_stderr(&format!("hint: {}", visible(&missing.advice)));
            exit::FAILED.into()
        }
        Some(EngineError::EmptyMessage | EngineError::LongMessage { .. }) => exit::USAGE.into(),
        _ => exit::FAILED.into(),
    }
}

/// Error of `--continue` in a directory without agents.
#[derive(Debug)]
pub(crate) struct NothingToContinue {
    /// Directory of the session.
    pub(crate) directory: String,
}

impl Display for NothingToContinue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "no agent to continue in `{}`\nhint: start one without --continue",
            self.directory
        )
    }
}

impl std::error::Error for NothingToContinue {}

/// Formats an error with its causes on one line, followed by its hints.
fn message(error: &anyhow::Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut hints = String::new();
    for cause in error.chain().map(ToString::to_string) {
        let (text, hint) = match cause.split_once("\nhint: ") {
            Some((text, hint)) => (text, format!("\nhint: {hint}")),
            None => (cause.as_str(), String::new()),
        };
        // A transparent error has the same text as its cause.
        if causes.last().is_none_or(|last| last != text) {
            causes.push(text.to_owned());
        }
        if !hints.contains(&hint) {
            hints.push_str(&hint);
        }
    }
    format!("error: {}{hints}", causes.join(": "))
}

/// Converts a row to JSON.
pub(crate) fn json_of(row: &Row) -> Value {
    let data = row
        .data
        .as_deref()
        .map(|data| serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_owned())));
    json!({
        "agent": row.at.agent,
        "seq": row.at.seq,
        "kind": row.kind.name(),
        "content": row.content,
        "data": data,
        "created_at": row.created_at,
        "author": row.author,
    })
}

/// Formats a time in the local time zone.
pub(crate) fn local_time(at: Micros) -> String {
    Timestamp::from_microsecond(at.0).map_or_else(
        |_| "(no time)".to_owned(),
        |time| {
            time.to_zoned(TimeZone::system())
                .strftime("%Y-%m-%d %H:%M")
                .to_string()
        },
    )
}

/// Returns text that cannot control the terminal.
pub(crate) fn visible(text: &str) -> String {
    clean(text).into_owned()
}

#[cfg(test)]
mod tests;
