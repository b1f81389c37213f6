//! Diagnostics log, enabled by `RUST_LOG` or `IKIGAI_LOG_BODIES`.
//!
//! Without them nothing is created or opened.

mod file;
mod filter;

use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, info};

use crate::config;
use crate::output::print_stderr;
use file::RotatingFile;
use filter::Filter;

/// Shortest value that is removed; shorter ones are ordinary words.
const LEAST_KEY_BYTES: usize = 6;

/// Keys that no line may contain; set if and only if there is a log.
static HIDDEN: OnceLock<Mutex<Vec<SecretString>>> = OnceLock::new();

/// Starts the log, if it is enabled.
pub(crate) fn start() {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let bodies = variable("IKIGAI_LOG_BODIES").is_some_and(|value| value != "0");
    let Some(filter) = Filter::of(variable("RUST_LOG").as_deref(), bodies) else {
        return;
    };
    let Some(path) = path() else {
        return print_stderr("no home directory for the diagnostics log");
    };
    let file = match RotatingFile::open(path.clone()) {
        Ok(file) => file,
        Err(error) => {
            let path = path.display();
            return print_stderr(&format!(
                "cannot write the diagnostics log `{path}`: {error}"
            ));
        }
    };
    HIDDEN.get_or_init(Mutex::default);
    let log = DiagnosticsLog {
        filter,
        file: Mutex::new(file),
    };
    // Fails only if there is a subscriber already.
    if tracing::subscriber::set_global_default(log).is_ok() {
        info!(version = env!("CARGO_PKG_VERSION"), "started");
    }
}

/// Keeps keys out of the log. Calls `keys` only if there is a log.
pub(crate) fn hide(keys: impl FnOnce() -> Vec<SecretString>) {
    if let Some(hidden) = HIDDEN.get() {
        let keys = keys().into_iter();
        let keys = keys.filter(|key| key.expose_secret().len() >= LEAST_KEY_BYTES);
        let mut hidden = hidden.lock().unwrap_or_else(PoisonError::into_inner);
        hidden.extend(keys);
    }
}

fn path() -> Option<PathBuf> {
    Some(config::state_home()?.join("log"))
}

/// Writes one line for each event. Ignores spans.
struct DiagnosticsLog {
    filter: Filter,
    file: Mutex<RotatingFile>,
}

impl Subscriber for DiagnosticsLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.filter.takes(metadata.target(), *metadata.level())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.filter.most())
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = EventLine::default();
        event.record(&mut line);
        let metadata = event.metadata();
        let line = format!(
            "{} {} {} {}: {}{}\n",
            Timestamp::now(),
            std::process::id(),
            metadata.level(),
            metadata.target(),
            line.message,
            line.fields
        );
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A failure of the log cannot be reported.
        let _ = file.write(&without_keys(line));
    }
}

fn without_keys(line: String) -> String {
    let Some(hidden) = HIDDEN.get() else {
        return line;
    };
    let hidden = hidden.lock().unwrap_or_else(PoisonError::into_inner);
    hidden.iter().fold(line, |line, key| {
        line.replace(key.expose_secret(), "[secret]")
    })
}

/// Message and fields of an event, on one line.
#[derive(Default)]
struct EventLine {
    message: String,
    fields: String,
}

impl EventLine {
    fn add(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            push_visible(&mut self.message, value);
        } else if !value.is_empty() {
            let _ = write!(self.fields, " {}=", field.name());
            push_visible(&mut self.fields, value);
        }
    }
}

impl Visit for EventLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, &format!("{value:?}"));
    }
}

/// Escapes control characters, which would break the line or affect a terminal.
fn push_visible(line: &mut String, text: &str) {
    for character in text.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
}
