//! Files sent to the model: pinned ones, and files that a message mentions.

mod imports;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use ikigai_core::AgentState;
use ikigai_core::counts::counted;
use ikigai_store::{ReadLog, StoreError};
use ikigai_tools::images::{self, SentImage};
use ikigai_tools::paths::Located;
use ikigai_tools::{BadArguments, Place, paths};

use crate::EngineReader;

/// Size limit of a file. A larger one would fill the window of most models alone.
const MOST_BYTES: u64 = 256 * 1024;

/// Bytes at the start of a file that tell an image from a text.
const START_BYTES: u64 = 64;

/// File with its contents.
pub(crate) struct Document {
    /// Path with all links resolved.
    pub(crate) path: PathBuf,
    /// Text without secrets.
    pub(crate) bytes: Vec<u8>,
}

impl Document {
    /// Reads a file by its name in a place, or returns an error message. Files hidden from tools
    /// are hidden here too: the model would see them.
    pub(crate) async fn read(
        engine: &EngineReader,
        place: &Place,
        name: &str,
    ) -> Result<Self, String> {
        let located = paths::locate(place, name).map_err(|BadArguments(reason)| reason)?;
        let path = located.path.clone();
        let read = tokio::task::spawn_blocking(move || read_text(&located)).await;
        let read = read.unwrap_or_else(|_| Err("reading it failed".to_owned()));
        let bytes =
            read.map_err(|reason| format!("{} {reason}", paths::display_path(place, &path)))?;
        let bytes = (engine.safety().blank)(&bytes).into_owned();
        Ok(Self { path, bytes })
    }

    /// Reads a pinned file, unless a link leads out of its project.
    ///
    /// Pins are sent without a call that could be asked about, and a repository may bring
    /// `AGENTS.md` as a link to anything.
    pub(crate) async fn read_pinned(
        engine: &EngineReader,
        place: &Place,
        name: &str,
    ) -> Result<Self, String> {
        let path = paths::resolve(place, name);
        let leaves = tokio::task::spawn_blocking(move || leaves_project(&path)).await;
        if leaves.unwrap_or(true) {
            let name = paths::display_path(place, &paths::resolve(place, name));
            return Err(format!("{name} is a link out of the project"));
        }
        let document = Self::read(engine, place, name).await?;
        Ok(imports::with_imports(engine, place, document).await)
    }
}

/// Returns the texts of pinned documents, by their hashes: those of the prefix, and those that it
/// takes at the next context row.
pub(crate) async fn documents(
    store: &dyn ReadLog,
    state: &AgentState,
) -> Result<BTreeMap<String, String>, StoreError> {
    let mut documents = BTreeMap::new();
    let pins = state.settings().pins.iter().flatten();
    for pin in state.prefix_pins().iter().chain(pins) {
        let Some(hash) = &pin.hash else { continue };
        if documents.contains_key(hash) {
            continue;
        }
        if let Some(text) = text_of(store, hash).await? {
            documents.insert(hash.clone(), text);
        }
    }
    Ok(documents)
}

/// Returns the text of a pinned document by its hash, if it is stored.
pub(crate) async fn text_of(store: &dyn ReadLog, hash: &str) -> Result<Option<String>, StoreError> {
    let Ok(hash) = hash.parse() else {
        return Ok(None);
    };
    let bytes = store.blob(hash).await?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Returns true if links lead from a file out of its repository. Without a repository, its
/// directory counts.
#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
fn leaves_project(path: &Path) -> bool {
    let Some(directory) = path.parent() else {
        return false;
    };
    let root = directory
        .ancestors()
        .find(|ancestor| ancestor.join(".git").exists())
        .unwrap_or(directory);
    match (path.canonicalize(), root.canonicalize()) {
        (Ok(real), Ok(root)) => !real.starts_with(root),
        // A file that does not exist is reported when it is read.
        _ => false,
    }
}

/// Reads an image by its name in a place; none if the file is no image.
///
/// Files hidden from tools are hidden here too.
pub(crate) async fn read_image(place: &Place, name: &str) -> Result<Option<SentImage>, String> {
    let located = paths::locate(place, name).map_err(|BadArguments(reason)| reason)?;
    let path = located.path.clone();
    let read = tokio::task::spawn_blocking(move || image_in(&located)).await;
    let read = read.unwrap_or_else(|_| Err("reading it failed".to_owned()));
    read.map_err(|reason| format!("{} {reason}", paths::display_path(place, &path)))
}

#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
fn image_in(located: &Located) -> Result<Option<SentImage>, String> {
    let is_file = fs::metadata(&located.real).is_ok_and(|found| found.is_file());
    if !is_file {
        return Ok(None);
    }
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    let file = located.open()?;
    let mut bytes = Vec::new();
    let mut reader = file.take(images::MOST_FILE_BYTES + 1);
    let start = &mut (&mut reader).take(START_BYTES);
    start.read_to_end(&mut bytes).map_err(failed)?;
    if !images::is_image(&bytes) {
        return Ok(None);
    }
    reader.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > images::MOST_FILE_BYTES {
        return Err("is an image of more than 32 MB".to_owned());
    }
    images::prepare(bytes).map(Some)
}

#[expect(clippy::disallowed_methods, reason = "runs on a blocking thread")]
fn read_text(located: &Located) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    let found = fs::metadata(&located.real).map_err(failed)?;
    if found.is_dir() {
        return Err("is a directory".to_owned());
    }
    if !found.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let file = located.open()?;
    let mut bytes = Vec::new();
    let mut reader = file.take(MOST_BYTES + 1);
    reader.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!(
            "is larger than {}",
            size(usize::try_from(MOST_BYTES).unwrap_or(0))
        ));
    }
    if bytes.contains(&0) || std::str::from_utf8(&bytes).is_err() {
        let reason = if is_image(&located.real) {
            "is an image of a format that models do not take; PNG, JPEG, GIF and WebP can be attached"
        } else {
            "is not a text file"
        };
        return Err(reason.to_owned());
    }
    Ok(bytes)
}

/// Returns true if the name of a file is that of an image.
fn is_image(path: &std::path::Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    let known = ["png", "jpg", "jpeg", "gif", "webp", "bmp", "svg"];
    known
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
}

/// Formats a size.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        ..1024 => counted(bytes, "byte"),
        _ => format!("{}.{} KB", bytes / 1024, bytes % 1024 * 10 / 1024),
    }
}
