//! Recording of a command's changes: old states in a journal, compared with the present ones later.
//!
//! The journal is in a directory of the run, so that it outlives the process that writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ikigai_core::data::{FileKind, FileVersion};
use serde::{Deserialize, Serialize};

use super::link_groups::first_other;
use super::state::look_below_links;
use super::{FileSighting, KeptContent, MOST_CONTENT_BYTES, RecordedChanges};

/// Names of the files in a recording's directory.
const JOURNAL: &str = "journal";
const CONTENTS: &str = "contents";
const COLLECTED: &str = "collected";

/// Longest line of a journal that is read.
const MOST_LINE_BYTES: u64 = 1024 * 1024;

/// Most bytes of old contents that one command keeps.
const MOST_BYTES: u64 = 1024 * 1024 * 1024;

/// Recording of a command that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingPlan {
    /// Directory of the journal.
    pub directory: PathBuf,
    /// Directories in which changes are recorded.
    pub roots: Vec<PathBuf>,
}

/// Notes in the journal that changes are not recorded, if they are to be and are not watched.
pub(crate) fn miss_unwatched(plan: Option<&RecordingPlan>, is_watched: bool) -> io::Result<()> {
    match plan {
        Some(plan) if !is_watched => {
            let why = "its changes could not be watched";
            Journal::create(&plan.directory).map(|mut journal| journal.miss_all(why))
        }
        _ => Ok(()),
    }
}

/// Line of a journal: a path before its first change.
#[derive(Debug, Deserialize, Serialize)]
struct JournalLine {
    path: String,
    /// Its state; none if only the reason counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<FileVersion>,
    /// Place of its content in the file of contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<(u64, u64)>,
    /// Reason why it, or something about it, is missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    missed: Option<String>,
    /// True in a directory that git ignores: contents are not kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ignored: bool,
}

/// Journal that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    lines: File,
    contents: File,
    written: u64,
    /// Hash and place of the last content: names of one file are added one after the other.
    last: Option<(String, (u64, u64))>,
}

impl Journal {
    /// Creates the journal in its directory.
    pub(crate) fn create(directory: &Path) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let open = |name| {
            OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(directory.join(name))
        };
        let contents = open(CONTENTS)?;
        Ok(Self {
            lines: open(JOURNAL)?,
            written: contents.metadata()?.len(),
            contents,
            last: None,
        })
    }

    /// Adds a path as it is before its first change.
    ///
    /// A full disk must not stop the command, so a failure is only noted, if even that is possible.
    pub(crate) fn add(&mut self, path: &Path, mut seen: FileSighting) {
        let Some(path) = path.to_str() else {
            let path = path.to_string_lossy().into_owned();
            return self.miss(&path, "its name is not UTF-8");
        };
        let mut place = None;
        if let Some(content) = seen.content.take() {
            let bytes = content.len() as u64;
            let hash = seen.version.hash.clone();
            let known = self
                .last
                .as_ref()
                .filter(|(last, _)| Some(last) == hash.as_ref());
            if let Some((_, known)) = known {
                place = Some(*known);
            } else if self.written + bytes > MOST_BYTES {
                seen.missed = Some("this command changed too much".to_owned());
                seen.version.hash = None;
            } else if let Err(error) = self.contents.write_all(&content) {
                seen.missed = Some(format!("its old content was not kept: {error}"));
                seen.version.hash = None;
                self.written = self.contents.metadata().map_or(u64::MAX / 2, |it| it.len());
            } else {
                place = Some((self.written, bytes));
                self.written += bytes;
                self.last = hash.zip(place);
            }
        }
        self.write(&JournalLine {
            path: path.to_owned(),
            before: Some(seen.version),
            content: place,
            missed: seen.missed,
            ignored: false,
        });
    }

    /// Adds a path that is created in a directory that git ignores.
    pub(crate) fn add_ignored(&mut self, path: &Path) {
        let Some(path) = path.to_str() else {
            return;
        };
        self.write(&JournalLine {
            path: path.to_owned(),
            before: Some(FileVersion::absent()),
            content: None,
            missed: None,
            ignored: true,
        });
    }

    /// Notes that no change can be recorded.
    pub(crate) fn miss_all(&mut self, why: &str) {
        self.miss("", why);
    }

    /// Notes something that cannot be recorded.
    pub(crate) fn miss(&mut self, path: &str, why: &str) {
        self.write(&JournalLine {
            path: path.to_owned(),
            before: None,
            content: None,
            missed: Some(why.to_owned()),
            ignored: false,
        });
    }

    fn write(&mut self, line: &JournalLine) {
        if let Ok(mut text) = serde_json::to_vec(line) {
            text.push(b'\n');
            let _ = self.lines.write_all(&text);
        }
    }
}

/// Compares a recording with the present files; none if there is no recording. Blocks.
///
/// A later call returns what changed since this one.
pub fn collect(directory: &Path) -> Option<RecordedChanges> {
    let journal = File::open(directory.join(JOURNAL)).ok()?;
    let collected = directory.join(COLLECTED);
    let last: BTreeMap<String, FileVersion> = fs::read(&collected)
        .ok()
        .and_then(|json| serde_json::from_slice(&json).ok())
        .unwrap_or_default();
    let mut changes = RecordedChanges::default();
    let mut paths = Vec::new();
    let mut known = BTreeSet::new();
    for line in lines(journal) {
        match &line.missed {
            Some(why) if line.path.is_empty() => changes.miss_what("shell command", why),
            Some(why) => changes.miss(Path::new(&line.path), why),
            None => {}
        }
        if line.before.is_some() && known.insert(line.path.clone()) {
            let after = present_state(&line);
            paths.push((line, after));
        }
    }
    let names = names_by_file(&paths);
    let mut next = BTreeMap::new();
    for (line, mut after) in paths {
        let Some(before) = line.before else {
            continue;
        };
        let path = Path::new(&line.path);
        if after.names > 1 {
            let names = names.get(&after.id).into_iter().flatten().map(Path::new);
            let other = first_other(names, path).and_then(Path::to_str);
            after.version.same_as = other.map(str::to_owned);
        }
        let after_content = after.version.hash.clone().map(|hash| KeptContent::Present {
            hash,
            path: path.to_owned(),
        });
        next.insert(line.path.clone(), after.version.clone());
        let content = line.content.and_then(|(at, bytes)| {
            Some(KeptContent::Part {
                hash: before.hash.clone()?,
                file: directory.join(CONTENTS),
                at,
                bytes,
            })
        });
        let before = match last.get(&line.path) {
            // Its content was stored with the changes until then.
            Some(last) => (last.clone(), None),
            None => (before, content),
        };
        changes.compare(path, before, (after.version, after_content, after.missed));
    }
    if let Ok(json) = serde_json::to_vec(&next) {
        // Without it, the next comparison shows all changes again.
        let _ = fs::write(&collected, json);
    }
    Some(changes)
}

/// Looks at a recorded path. Its content is read again when it is stored.
fn present_state(line: &JournalLine) -> FileSighting {
    let most_bytes = if line.ignored { 0 } else { MOST_CONTENT_BYTES };
    let mut after =
        look_below_links(Path::new(&line.path), most_bytes).unwrap_or_else(|error| FileSighting {
            missed: Some(format!("cannot be read: {error}")),
            ..FileSighting::nothing()
        });
    after.content = None;
    if line.ignored {
        after.missed = None;
        after.version.hash = None;
    }
    after
}

/// Returns the recorded names of each file that has several.
fn names_by_file(paths: &[(JournalLine, FileSighting)]) -> BTreeMap<(u64, u64), Vec<String>> {
    let mut names: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (line, after) in paths {
        if after.names > 1 && after.version.kind() == Some(FileKind::File) {
            names.entry(after.id).or_default().push(line.path.clone());
        }
    }
    names
}

fn lines(journal: File) -> impl Iterator<Item = JournalLine> {
    let mut reader = BufReader::new(journal);
    std::iter::from_fn(move || {
        loop {
            let mut line = Vec::new();
            let mut bounded = io::Read::take(&mut reader, MOST_LINE_BYTES);
            if bounded.read_until(b'\n', &mut line).ok()? == 0 {
                return None;
            }
            // The last line may be cut.
            if let Ok(line) = serde_json::from_slice(&line) {
                return Some(line);
            }
        }
    })
}

/// Removes a recording that is stored. Blocks.
pub fn remove_recording(directory: &Path) {
    // A directory that cannot be removed costs little room.
    let _ = fs::remove_dir_all(directory);
}

/// Reads a part of a file of contents.
pub(super) fn read_part(file: &Path, at: u64, bytes: u64) -> Option<Vec<u8>> {
    let mut content = vec![0; usize::try_from(bytes).ok()?];
    File::open(file)
        .ok()?
        .read_exact_at(&mut content, at)
        .ok()?;
    Some(content)
}
