//! Changes of files that a call made, as a row with its contents.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ikigai_core::data::{BlobRef, FilesData, MissedChange};
use ikigai_core::{AgentId, Event, RowRef};
use ikigai_store::RunId;
use ikigai_tools::file_history::{
    KeptContent, RecordedChanges, collect, content_hash, remove_recording,
};

use crate::environment::cookie_of;
use crate::frontend::FrontEnd;
use crate::ledger::{Ledger, put_blobs};
use crate::{EngineError, EngineReader};

/// Most entries in the row itself; more are a blob.
const MOST_ENTRIES: usize = 500;

/// Bytes of contents that are stored at a time.
const GROUP_BYTES: usize = 8 * 1024 * 1024;

/// Stores the contents of a call's changes; returns the row about them, if there were any.
///
/// A content with a key of ikigai is not kept.
pub(crate) async fn store_changes(
    ledger: &Ledger,
    call: RowRef,
    mut changes: RecordedChanges,
    mut front: Option<&mut FrontEnd<'_>>,
) -> Result<Option<Event>, EngineError> {
    if changes.is_empty() {
        return Ok(None);
    }
    let contents = std::mem::take(&mut changes.contents);
    let lost = store_contents(ledger, contents, &mut front).await?;
    drop_contents(&mut changes, &lost);
    let data = files_data(ledger, call, changes, &mut front).await?;
    Ok(Some(Event::Files(data)))
}

/// Stores contents, a few in memory at a time; returns the hashes of those that are not stored.
pub(crate) async fn store_contents(
    ledger: &Ledger,
    contents: Vec<KeptContent>,
    front: &mut Option<&mut FrontEnd<'_>>,
) -> Result<BTreeMap<String, &'static str>, EngineError> {
    let blank = ledger.engine.safety().blank.clone();
    let mut lost = BTreeMap::new();
    let mut contents = contents.into_iter();
    loop {
        let (left, group, gone) = blocking_load(contents).await;
        contents = left;
        lost.extend(gone.into_iter().map(|hash| (hash, "it changed meanwhile")));
        if group.is_empty() {
            return Ok(lost);
        }
        let (group, secret): (Vec<_>, Vec<_>) = group
            .into_iter()
            .partition(|content| *blank(content) == **content);
        let secret = secret.iter().map(|content| content_hash(content));
        lost.extend(secret.map(|hash| (hash, "it has an API key")));
        put_blobs(ledger, &group, front).await?;
    }
}

/// Contents that are left, loaded ones, and the hashes of those that are gone.
type LoadedGroup = (std::vec::IntoIter<KeptContent>, Vec<Vec<u8>>, Vec<String>);

/// Loads the next contents.
async fn blocking_load(mut contents: std::vec::IntoIter<KeptContent>) -> LoadedGroup {
    let load = move || {
        let (mut group, mut gone, mut bytes) = (Vec::new(), Vec::new(), 0);
        while bytes < GROUP_BYTES
            && let Some(content) = contents.next()
        {
            match content.load() {
                Ok(content) => {
                    bytes += content.len();
                    group.push(content);
                }
                Err(hash) => gone.push(hash),
            }
        }
        (contents, group, gone)
    };
    let loaded = tokio::task::spawn_blocking(load).await;
    loaded.unwrap_or_default()
}

/// Takes contents that are not stored out of the entries, and names them as missed.
fn drop_contents(changes: &mut RecordedChanges, lost: &BTreeMap<String, &'static str>) {
    if lost.is_empty() {
        return;
    }
    for entry in &mut changes.entries {
        for version in [&mut entry.before, &mut entry.after].into_iter().flatten() {
            let why = version.hash.as_ref().and_then(|hash| lost.get(hash));
            if let Some(why) = why {
                version.hash = None;
                changes.missed.push(MissedChange {
                    path: entry.path.clone(),
                    why: Some((*why).to_owned()),
                    ..MissedChange::default()
                });
            }
        }
    }
}

/// Builds the data of the row; many entries become a blob.
pub(crate) async fn files_data(
    ledger: &Ledger,
    call: RowRef,
    changes: RecordedChanges,
    front: &mut Option<&mut FrontEnd<'_>>,
) -> Result<FilesData, EngineError> {
    let RecordedChanges {
        entries, missed, ..
    } = changes;
    let mut data = FilesData {
        call: Some(call),
        missed: Some(missed).filter(|missed| !missed.is_empty()),
        ..FilesData::default()
    };
    if entries.len() > MOST_ENTRIES {
        let json = serde_json::to_vec(&entries).unwrap_or_default();
        data.blob = Some(BlobRef {
            bytes: Some(json.len() as u64),
            hash: Some(match front {
                Some(front) => ledger.put_blob(&json, front).await?,
                None => ledger.try_put_blob(&json).await?,
            }),
        });
    } else {
        data.entries = Some(entries);
    }
    Ok(data)
}

/// Returns the directory in which the changes of a run are recorded.
pub(crate) fn recording_directory(
    engine: &EngineReader,
    agent: AgentId,
    run: RunId,
) -> Option<PathBuf> {
    let directory = engine.keepers()?.directory.join(agent.to_string());
    Some(directory.join(format!("{}.files", cookie_of(Some(run)))))
}

/// Stores what a run changed since this was last done; returns the row, if there is one.
pub(crate) async fn store_recording(
    ledger: &Ledger,
    (call, run): (RowRef, RunId),
    front: Option<&mut FrontEnd<'_>>,
) -> Result<Option<Event>, EngineError> {
    let changes = recorded(&ledger.engine, ledger.id(), run).await;
    store_changes(ledger, call, changes, front).await
}

/// Returns what a run changed since this was last asked.
pub(crate) async fn recorded(engine: &EngineReader, agent: AgentId, run: RunId) -> RecordedChanges {
    let Some(directory) = recording_directory(engine, agent, run) else {
        return RecordedChanges::default();
    };
    let collected = tokio::task::spawn_blocking(move || collect(&directory)).await;
    collected.ok().flatten().unwrap_or_default()
}

/// Removes the recording of a run that has ended and is stored.
pub(crate) async fn remove_recorded(engine: &EngineReader, agent: AgentId, run: RunId) {
    if let Some(directory) = recording_directory(engine, agent, run) {
        let _ = tokio::task::spawn_blocking(move || remove_recording(&directory)).await;
    }
}
