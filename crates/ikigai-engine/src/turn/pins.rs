//! Pinned files: looked for and read when a turn starts, never between its requests.
//!
//! A note with the next message states a change. The prefix of requests takes it at the next
//! context row, so that the provider's cache keeps the prefix until then.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ikigai_core::data::{self, ForkContext, ForkData, ForkRole, ToolResultData};
use ikigai_core::settings::{Pin, StoredTools};
use ikigai_core::view::Entry;
use ikigai_core::{Event, Kind, Settings};
use ikigai_store::{Agent, blobs};
use ikigai_tools::{Place, line_changes};

use super::preparation::toolset;
use super::turn_loop::TurnLoop;
use crate::documents::{Document, documents, size, text_of};
use crate::frontend::{FrontEnd, UiEvent};
use crate::instructions::{add_pins, instruction_files, nested_instruction_files};
use crate::ledger::{CommitPlan, Ledger, is_message, read_held};
use crate::{EngineError, offered_tools};

/// Size limit of a text, or of its changes, in a note. The model reads a larger one itself.
const MOST_NOTE_BYTES: usize = 16 * 1024;

/// Changes of an agent's pinned files since its last turn.
#[derive(Default)]
pub(super) struct PinChanges {
    /// The rows that store them, with the tools of servers to offer; none if nothing changed.
    pub(super) rows: Vec<Event>,
    /// Difference between the tools of servers and those that requests offer.
    pub(super) tools: Option<String>,
    /// Text for the model; empty if the prefix takes the changes at once.
    pub(super) note: String,
    /// Reasons for which files are left out.
    warnings: Vec<String>,
}

impl PinChanges {
    /// Reports the files that are left out.
    pub(super) fn warn(&self, front: &mut FrontEnd<'_>) {
        for reason in &self.warnings {
            let warning = format!("pinned file left out: {reason}");
            front.emit(UiEvent::Warning(warning));
        }
    }
}

/// Looks for instruction files and reads all pinned files. Stores new contents as blobs.
pub(super) async fn pin_changes(ledger: &mut Ledger) -> Result<PinChanges, EngineError> {
    let before = ledger.settings().pins.clone().unwrap_or_default();
    let mut pins = before.clone();
    let place = place_of(ledger);
    let touched = touched_directories(ledger, &place).await?;
    let (workdir, home) = (place.workdir.clone(), ledger.engine.environment().home());
    let found = tokio::task::spawn_blocking(move || {
        let mut found = instruction_files(&workdir, home.as_deref());
        for directory in touched {
            found.extend(nested_instruction_files(&workdir, &directory));
        }
        found
    });
    add_pins(&mut pins, &found.await.unwrap_or_default());
    let mut changes = PinChanges::default();
    let is_later = !is_prefix_unsent(&ledger.agent);
    let mut note = String::new();
    for pin in pins.iter_mut().filter(|pin| pin.off != Some(true)) {
        let path = pin.path.clone().unwrap_or_default();
        let known = before.iter().find(|known| known.path == pin.path);
        match Document::read_pinned(&ledger.engine, &place, &path).await {
            Ok(document) => {
                let hash = blobs::hash_of(&document.bytes).to_string();
                if known.and_then(|known| known.hash.as_ref()) != Some(&hash) {
                    ledger.try_put_blob(&document.bytes).await?;
                    let text = String::from_utf8_lossy(&document.bytes);
                    note += &news_of(ledger, known, &path, &text).await?;
                }
                pin.hash = Some(hash);
            }
            Err(reason) => {
                if known.is_some_and(|known| known.hash.is_some()) {
                    let _ = writeln!(
                        note,
                        "Pinned file {path} cannot be read any more: what it said no longer applies."
                    );
                }
                pin.hash = None;
                changes.warnings.push(reason);
            }
        }
    }
    if pins != before {
        changes.rows.push(Event::set_pins(pins, is_later));
        if is_later {
            changes.note = note;
        }
    }
    choose_tools(ledger, &mut changes).await?;
    Ok(changes)
}

/// Stores the tools of servers to offer, if the next request begins anew; else names changes.
async fn choose_tools(ledger: &Ledger, changes: &mut PinChanges) -> Result<(), EngineError> {
    let (engine, settings) = (&ledger.engine, ledger.settings());
    let tools = engine.toolset(settings).await;
    let Ok(choice) = engine.choice(settings) else {
        return Ok(());
    };
    let known = engine.models().window_tokens(&choice);
    let window = engine.budget(settings, &choice, known).cap;
    if settings.tools.is_some() && !is_prefix_unsent(&ledger.agent) {
        changes.tools = offered_tools::difference(&tools, window);
        return Ok(());
    }
    let offered = offered_tools::to_offer(&tools, window);
    let bytes = offered_tools::encode(&offered);
    let hash = blobs::hash_of(&bytes).to_string();
    let stored = settings.tools.as_ref();
    let is_same = stored.and_then(|stored| stored.hash.as_ref()) == Some(&hash);
    if is_same || offered.is_empty() && stored.is_none() {
        return Ok(());
    }
    ledger.try_put_blob(&bytes).await?;
    let chosen = Settings {
        tools: Some(StoredTools {
            hash: Some(hash),
            bytes: Some(bytes.len() as u64),
        }),
        ..Settings::default()
    };
    changes.rows.push(Event::set("tools", chosen.as_set()));
    Ok(())
}

/// Describes the new text of a pinned file to the model.
async fn news_of(
    ledger: &Ledger,
    known: Option<&Pin>,
    path: &str,
    text: &str,
) -> Result<String, EngineError> {
    let hash = known.and_then(|known| known.hash.as_deref());
    let Some(hash) = hash else {
        let whole = if text.len() <= MOST_NOTE_BYTES {
            format!("Pinned file {path}, new for you:\n{}\n", text.trim_end())
        } else {
            unread(path, "is new for you", text)
        };
        return Ok(whole);
    };
    if text.len() <= MOST_NOTE_BYTES {
        let text = text.trim_end();
        return Ok(format!(
            "Pinned file {path} changed. It now says:\n{text}\n"
        ));
    }
    let old = text_of(ledger.engine.reader(), hash).await?;
    let new = text.to_owned();
    let compare = move || old.map(|old| line_changes(old.as_bytes(), new.as_bytes()));
    Ok(match tokio::task::spawn_blocking(compare).await {
        Ok(Some(changes)) if changes.len() <= MOST_NOTE_BYTES => {
            format!("Pinned file {path} changed:\n{changes}")
        }
        _ => unread(path, "changed", text),
    })
}

fn unread(path: &str, verb: &str, text: &str) -> String {
    let size = size(text.len());
    format!("Pinned file {path} {verb}. It has {size}: read it before you go on.\n")
}

fn place_of(ledger: &Ledger) -> Place {
    Place {
        workdir: PathBuf::from(ledger.settings().workdir.as_deref().unwrap_or("/")),
        hidden: ledger.engine.safety().hidden.clone(),
    }
}

/// Returns the directories of files that tools read or wrote since the last turn started.
async fn touched_directories(
    ledger: &mut Ledger,
    place: &Place,
) -> Result<BTreeSet<PathBuf>, EngineError> {
    let start = ledger.last_start(is_message).await?;
    let entries = ledger.agent.view.entries().iter().rev();
    let since = entries.take_while(|entry| Some(entry.at()) != start);
    let results = since.filter(|entry| entry.kind() == Some(Kind::ToolResult));
    let mut directories = BTreeSet::new();
    for result in results {
        let data: ToolResultData = data::read(result.row.data.as_deref());
        let files = data.files.unwrap_or_default();
        let paths = files.iter().filter_map(|file| file.path.as_deref());
        let paths = paths.map(|path| place.workdir.join(path));
        directories.extend(paths.filter_map(|path| path.parent().map(Path::to_owned)));
    }
    Ok(directories)
}

/// Returns true if no request was sent since the prefix last took the pins of the settings.
fn is_prefix_unsent(agent: &Agent) -> bool {
    for entry in agent.view.entries().iter().rev() {
        if let Some(is_unsent) = sends_or_renews(entry) {
            return is_unsent;
        }
    }
    agent.view.is_complete(agent.state.path())
}

fn sends_or_renews(entry: &Entry) -> Option<bool> {
    match entry.kind()? {
        Kind::Clear | Kind::Rewind | Kind::Summary => Some(true),
        Kind::Fork => {
            let fork: ForkData = data::read(entry.row.data.as_deref());
            let is_child = fork.role == Some(ForkRole::Child);
            is_child.then_some(fork.context == Some(ForkContext::Fresh))
        }
        Kind::Assistant
        | Kind::ToolCall
        | Kind::ToolResult
        | Kind::Usage
        | Kind::Interrupted
        | Kind::Error => Some(false),
        Kind::System
        | Kind::User
        | Kind::Mark
        | Kind::Command
        | Kind::AgentKilled
        | Kind::Process
        | Kind::Files => None,
    }
}

impl TurnLoop<'_> {
    /// Reads pinned files for a turn that starts without a message, before its first request.
    ///
    /// A child that inherits shares the prefix of its parent; its next message has the note.
    pub(super) async fn read_pins(&mut self, front: &mut FrontEnd<'_>) -> Result<(), EngineError> {
        if !is_prefix_unsent(self.worker.agent()) {
            return Ok(());
        }
        let changes = read_held!(front, pin_changes(self.worker.ledger_mut()));
        changes.warn(front);
        if !changes.rows.is_empty() {
            let plan = CommitPlan::events(changes.rows).waiting(front);
            let rows = self.worker.commit(plan).await?;
            front.emit_rows(rows);
        }
        Ok(())
    }

    /// Takes over the settings and documents that the start of the turn stored.
    pub(super) async fn take_pins(&mut self, front: &mut FrontEnd<'_>) -> Result<(), EngineError> {
        let are_tools_new = self.turn.settings.tools != self.worker.settings().tools;
        self.turn.settings = self.worker.settings().clone();
        if are_tools_new {
            let tools = toolset(self.worker.ledger()).await;
            self.turn.target.tools = tools.offer();
            self.turn.tools = tools;
        }
        self.turn.target.documents = read_held!(front, async {
            let state = &self.worker.agent().state;
            Ok::<_, EngineError>(documents(self.worker.engine().reader(), state).await?)
        });
        Ok(())
    }
}
