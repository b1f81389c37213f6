//! Everything that is printed: answers to standard output, the rest to standard error.

use std::io::{self, Write};
use std::process::ExitCode;

use ikigai_core::{Micros, Row};
use ikigai_engine::EngineError;
use ikigai_store::{CommitError, StoreError};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::arguments::exit;

/// Writes to standard output.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Says whether whoever read the output has gone away, as `head` does when it has enough.
pub(crate) fn is_reader_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Tells the person something that is not the answer.
pub(crate) fn tell(text: &str) {
    // If standard error is gone too, there is nowhere left to say so.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints an error once, with what to do about it, and chooses the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref().is_some_and(is_reader_gone) {
        return exit::READER_GONE.into();
    }
    let mut causes: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        // A transparent error says the same as its cause.
        if causes.last() != Some(&cause) {
            causes.push(cause);
        }
    }
    tell(&format!("error: {}", visible(&causes.join(": "))));
    let engine = error.downcast_ref::<EngineError>();
    let store = error.downcast_ref::<StoreError>();
    let store = store.or_else(|| engine.and_then(EngineError::store_failure));
    if let Some(store) = store {
        tell(&format!("hint: {}", store.advice()));
        return exit::STORE.into();
    }
    match engine {
        Some(EngineError::Commit(CommitError::Held { .. })) => {
            tell("hint: wait until it is done, or make another agent with --new");
            exit::AGENT.into()
        }
        Some(
            EngineError::NoSuchAgent(_) | EngineError::Ambiguous { .. } | EngineError::Dead(_),
        ) => {
            tell("hint: `ikigai agents` lists them");
            exit::AGENT.into()
        }
        Some(EngineError::NoModel(missing)) => {
            tell(&format!("hint: {}", visible(&missing.advice)));
            exit::FAILED.into()
        }
        Some(EngineError::EmptyMessage) => exit::USAGE.into(),
        _ => exit::FAILED.into(),
    }
}

/// A row as one line of JSON.
pub(crate) fn json_of(row: &Row) -> String {
    let data = row
        .data
        .as_deref()
        .map(|data| serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_owned())));
    let line = json!({
        "agent": row.at.agent,
        "seq": row.at.seq,
        "kind": row.kind.name(),
        "content": row.content,
        "data": data,
        "created_at": row.created_at,
    });
    format!("{line}\n")
}

/// A time as a person reads it, where the person is.
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

/// Makes control characters visible, so that no stored text can steer the terminal.
pub(crate) fn visible(text: &str) -> String {
    let show = |c: char| match c {
        '\n' | '\t' => c,
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(' '),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' => '\u{fffd}',
        _ => c,
    };
    text.chars().map(show).collect()
}
