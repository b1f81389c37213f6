//! Expansion of a typed message: text, mentioned files, and a note about rewinds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ikigai_core::counts::counted;
use ikigai_core::data::{self, RewindData, StoredImage, SummaryData, UserData, UserOrigin};
use ikigai_core::view::Entry;
use ikigai_core::{Event, Kind};
use ikigai_tools::images::SentImage;
use ikigai_tools::paths::Located;
use ikigai_tools::{BadArguments, Place, paths};

use crate::blobs::stored_image;
use crate::documents::{Document, read_image, size};
use crate::invocation::{PromptCommands, invocation};
use crate::ledger::{Ledger, is_message};
use crate::rewind_effects::Departure;
use crate::{EngineError, window};

/// Punctuation at the end of a word that is not part of a path.
const PUNCTUATION: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '"'];

/// Extensions that make a word after `@` a file, even if it does not exist.
const FILE_ENDINGS: &[&str] = &[
    "c", "cfg", "conf", "cpp", "css", "csv", "gif", "go", "h", "hpp", "html", "ini", "java",
    "jpeg", "jpg", "js", "json", "jsx", "kt", "lock", "log", "lua", "md", "php", "png", "proto",
    "py", "rb", "rs", "rst", "sh", "sql", "swift", "toml", "ts", "tsx", "txt", "webp", "xml",
    "yaml", "yml",
];

/// Entries of a directory that are listed; a larger directory is cut.
const MOST_ENTRIES: usize = 500;

/// Most restored files that the model is given by name.
const MOST_RESTORED: usize = 50;

/// File mentioned in a message.
struct Mention {
    typed: String,
    path: String,
    is_directory: bool,
    /// Requested lines, from 1.
    lines: Option<(usize, usize)>,
}

/// Makes the row of a typed message, and a line about each file.
///
/// Stores nothing; a file that cannot be read is an error.
pub(crate) async fn message_row(
    ledger: &mut Ledger,
    text: &str,
) -> Result<(Event, Vec<String>), EngineError> {
    let note = taken_back_since(ledger).await?;
    let (sent, files) = sent_text(ledger, text, PromptCommands::Run).await?;
    let message = message_of((text, &sent), note.as_deref(), &files);
    let shown = files.into_iter().map(|file| file.shown);
    Ok((message, shown.collect()))
}

/// Makes the row of a queued message. Files that cannot be read any more stay plain words.
pub(crate) async fn queued_row(ledger: &Ledger, text: &str) -> Event {
    let sent = sent_text(ledger, text, PromptCommands::Run).await;
    let (sent, files) = sent.unwrap_or_else(|_| (text.to_owned(), Vec::new()));
    message_of((text, &sent), None, &files)
}

/// Makes the row of a message to be queued. A file that cannot be read is an error.
pub(crate) async fn waiting_row(ledger: &Ledger, text: &str) -> Result<Event, EngineError> {
    let (sent, files) = sent_text(ledger, text, PromptCommands::Skip).await?;
    Ok(message_of((text, &sent), None, &files))
}

/// Returns the text of a message for the model, and the files that it mentions.
///
/// It is the text as typed, or the prompt of the command or skill that it calls.
async fn sent_text(
    ledger: &Ledger,
    typed: &str,
    commands: PromptCommands,
) -> Result<(String, Vec<Attached>), EngineError> {
    let called = invocation(ledger, typed, commands).await;
    let called = called.map_err(EngineError::NotSent)?;
    let (sent, named) = match called {
        Some(called) => (called.text, called.without_outputs),
        None => (typed.to_owned(), typed.to_owned()),
    };
    let files = files_in(ledger, &named).await;
    Ok((sent, files.map_err(EngineError::NotSent)?))
}

async fn files_in(ledger: &Ledger, text: &str) -> Result<Vec<Attached>, String> {
    let mut files = Vec::new();
    if !text.contains('@') {
        return Ok(files);
    }
    let (place, text) = (place(ledger), text.to_owned());
    let found = tokio::task::spawn_blocking(move || mentions(&place, &text)).await;
    for mention in found.unwrap_or_default() {
        files.push(attach(ledger, &mention).await?);
    }
    Ok(files)
}

/// Builds the note for the model about rewinds since the last message.
async fn taken_back_since(ledger: &mut Ledger) -> Result<Option<String>, EngineError> {
    let rewinds = rewinds_since_message(ledger).await?;
    let mut changed = Vec::new();
    let mut restored = Vec::new();
    for rewind in rewinds {
        if rewind.restored.is_some() {
            restored.extend(rewind.restored.into_iter().flatten());
            changed.extend(rewind.files.map(|files| files.join(", ")));
        } else if let (Some(from), Some(target)) = (rewind.from, rewind.target) {
            let departure =
                Departure::between(ledger.engine.reader(), &ledger.agent, from, target).await?;
            changed.extend(departure.changed(ledger.settings().workdir.as_deref()));
        }
    }
    changed.dedup();
    let mut facts = Vec::new();
    if !restored.is_empty() {
        facts.push(format!(
            "Files restored to that point: {}.",
            named(&restored)
        ));
    }
    if !changed.is_empty() {
        facts.push(format!(
            "Files that were changed since then and are NOT restored: {}.",
            changed.join(", ")
        ));
    }
    Ok((!facts.is_empty()).then(|| {
        format!(
            "[The user went back to an earlier point of this conversation. {}]",
            facts.join(" ")
        )
    }))
}

/// Names the first restored files, and counts the rest.
fn named(paths: &[String]) -> String {
    let first = paths.iter().take(MOST_RESTORED).map(String::as_str);
    let mut named: Vec<_> = first.collect();
    let more = format!("{} more", paths.len().saturating_sub(MOST_RESTORED));
    if paths.len() > MOST_RESTORED {
        named.push(&more);
    }
    named.join(", ")
}

/// Returns the facts about its surroundings that the agent's model knows; none after a cut.
pub(crate) async fn known_environment(
    ledger: &mut Ledger,
) -> Result<Option<BTreeMap<String, String>>, EngineError> {
    let Ledger { agent, engine, .. } = ledger;
    loop {
        let entries = agent.view.entries();
        if let Some(newest) = entries.iter().rposition(is_user_message) {
            let is_cut = |entry: &Entry| {
                let data = entry.row.data.as_deref();
                entry.kind() == Some(Kind::Summary)
                    && data::read::<SummaryData>(data).cut == Some(true)
            };
            if entries.iter().skip(newest).any(is_cut) {
                return Ok(None);
            }
            let data = entries[newest].row.data.as_deref();
            return Ok(data::read::<UserData>(data).environment);
        }
        let rows = window::FIRST_PAGE_ROWS;
        if !agent.lengthen(engine.reader(), rows).await? {
            return Ok(None);
        }
    }
}

/// Returns the rewinds since the last user message, oldest first.
async fn rewinds_since_message(ledger: &mut Ledger) -> Result<Vec<RewindData>, EngineError> {
    let Ledger { agent, engine, .. } = ledger;
    loop {
        let entries = agent.view.entries();
        let message = entries.iter().rposition(is_user_message);
        let is_all = message.is_some() || agent.view.is_complete(agent.state.path());
        if is_all {
            let since = entries.iter().skip(message.map_or(0, |at| at + 1));
            let rewinds = since.filter(|entry| entry.kind() == Some(Kind::Rewind));
            return Ok(rewinds
                .map(|entry| data::read(entry.row.data.as_deref()))
                .collect());
        }
        let rows = window::FIRST_PAGE_ROWS;
        agent.lengthen(engine.reader(), rows).await?;
    }
}

/// Returns the files that a message mentions. A word after `@` is one if the file exists or if it
/// can be nothing else; `@types/node` and `@name` are words.
fn mentions(place: &Place, text: &str) -> Vec<Mention> {
    let words = text.split_whitespace();
    words
        .map(|word| word.trim_start_matches(['(', '[', '{', '"', '\'']))
        .filter_map(|word| word.strip_prefix('@'))
        .filter_map(|word| mention(place, word))
        .collect()
}

async fn attach(ledger: &Ledger, mention: &Mention) -> Result<Attached, String> {
    let place = place(ledger);
    if mention.is_directory {
        return list_directory(&place, mention).await;
    }
    if let Some(image) = read_image(&place, &mention.path).await? {
        return attach_image(ledger, &mention.typed, &image).await;
    }
    let document = Document::read(&ledger.engine, &place, &mention.path).await?;
    let text = String::from_utf8_lossy(&document.bytes);
    let (text, which) = match mention.lines {
        None => (text.into_owned(), String::new()),
        Some((from, to)) => {
            let lines: Vec<_> = text.lines().collect();
            if from > lines.len() {
                let count = counted(lines.len(), "line");
                return Err(format!("{} has {count}, not {from}", mention.path));
            }
            let wanted = lines[from - 1..to.min(lines.len())].join("\n");
            (wanted, format!(" of {}", counted(lines.len(), "line")))
        }
    };
    let size = size(text.len());
    let fence = fence_for(&text);
    let typed = &mention.typed;
    Ok(Attached {
        shown: format!("@{typed}{which} · {size}"),
        text: format!(
            "@{typed}{which}:\n{fence}\n{}\n{fence}",
            text.trim_end_matches('\n')
        ),
        image: None,
    })
}

/// Attaches an image. Its blob is stored before the row that names it.
async fn attach_image(ledger: &Ledger, typed: &str, image: &SentImage) -> Result<Attached, String> {
    let hash = ledger.try_put_blob(&image.bytes).await;
    let hash = hash.map_err(|error| format!("@{typed} cannot be stored: {error}"))?;
    Ok(Attached {
        shown: format!("@{typed} · {}", image.description),
        text: format!("[image {typed}: {}]", image.description),
        image: Some(stored_image(image, hash)),
    })
}

fn place(ledger: &Ledger) -> Place {
    Place {
        workdir: ledger.workdir(),
        hidden: ledger.engine.safety().hidden.clone(),
    }
}

/// Builds the row of a message: note for the model, sent text, files.
fn message_of((typed, sent): (&str, &str), note: Option<&str>, files: &[Attached]) -> Event {
    let mut text = match note {
        Some(note) => format!("{note}\n\n{sent}"),
        None => sent.to_owned(),
    };
    for file in files {
        let _ = write!(text, "\n\n{}", file.text);
    }
    let typed = Some(typed.to_owned()).filter(|typed| *typed != text);
    let images: Vec<_> = files.iter().filter_map(|file| file.image.clone()).collect();
    Event::User {
        text,
        data: UserData {
            origin: Some(UserOrigin::Typed),
            typed,
            images: Some(images).filter(|images| !images.is_empty()),
            ..UserData::default()
        },
    }
}

struct Attached {
    /// For people.
    shown: String,
    /// For the model.
    text: String,
    /// An image, for the model.
    image: Option<StoredImage>,
}

/// Lists a directory that a message mentions.
async fn list_directory(place: &Place, mention: &Mention) -> Result<Attached, String> {
    let located = paths::locate(place, &mention.path);
    let Located { path, real } = located.map_err(|BadArguments(reason)| reason)?;
    let hidden = place.hidden.clone();
    let read = tokio::task::spawn_blocking(move || entry_names(&real, &hidden)).await;
    let read = read.unwrap_or_else(|_| Err("listing it failed".to_owned()));
    let names = read.map_err(|reason| format!("{} {reason}", paths::display_path(place, &path)))?;
    let count = counted(names.len(), "entry");
    let mut text = names[..names.len().min(MOST_ENTRIES)].join("\n");
    if names.len() > MOST_ENTRIES {
        let _ = write!(text, "\n… and {} more", names.len() - MOST_ENTRIES);
    }
    let fence = fence_for(&text);
    let typed = mention.typed.trim_end_matches('/');
    Ok(Attached {
        shown: format!("@{typed}/ · {count}"),
        text: format!("@{typed}/ (directory, {count}):\n{fence}\n{text}\n{fence}"),
        image: None,
    })
}

/// Returns the names of the entries of a directory, sorted; directories end with `/`.
#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
fn entry_names(directory: &Path, hidden: &[PathBuf]) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(directory);
    let entries = entries.map_err(|error| format!("cannot be listed: {error}"))?;
    let mut names = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if hidden.contains(&path) {
            continue;
        }
        let slash = if path.is_dir() { "/" } else { "" };
        names.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
    }
    names.sort();
    Ok(names)
}

/// Returns true if it is a message that the model answers.
fn is_user_message(entry: &Entry) -> bool {
    entry.kind() == Some(Kind::User) && is_message(&data::read(entry.row.data.as_deref()))
}

/// Returns the file that a word mentions, if any.
#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
fn mention(place: &Place, word: &str) -> Option<Mention> {
    let spelled = [word, word.trim_end_matches(PUNCTUATION)];
    for typed in spelled {
        for (path, lines) in [split_range(typed), (typed, None)] {
            let found = paths::resolve(place, path);
            if !path.is_empty() && found.exists() {
                return Some(Mention {
                    typed: typed.to_owned(),
                    path: path.to_owned(),
                    is_directory: found.is_dir(),
                    lines,
                });
            }
        }
    }
    let typed = word.trim_end_matches(PUNCTUATION);
    let (path, lines) = split_range(typed);
    let is_path = ["/", "./", "../", "~/"]
        .iter()
        .any(|start| path.starts_with(start));
    let first = path.split_once('/').map(|(first, _)| first);
    let below = first.is_some_and(|first| {
        let directory: PathBuf = paths::resolve(place, first);
        !first.is_empty() && directory.is_dir()
    });
    let ending = path.rsplit_once('.').map(|(_, ending)| ending);
    let is_file = ending.is_some_and(|ending| FILE_ENDINGS.contains(&ending));
    (lines.is_some() || is_path || below || is_file).then(|| Mention {
        typed: typed.to_owned(),
        path: path.to_owned(),
        is_directory: false,
        lines,
    })
}

/// Splits off the lines behind a path's last `:`, if any: `a.rs:3`, `a.rs:3-9`.
fn split_range(typed: &str) -> (&str, Option<(usize, usize)>) {
    let lines = typed.rsplit_once(':').and_then(|(path, lines)| {
        let (from, to) = lines.split_once('-').unwrap_or((lines, lines));
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        (1 <= from && from <= to && !path.is_empty()).then_some((path, Some((from, to))))
    });
    lines.unwrap_or((typed, None))
}

/// Returns the fence that does not occur in the text.
fn fence_for(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    fence
}
