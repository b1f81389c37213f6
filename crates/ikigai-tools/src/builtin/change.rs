//! Atomic file changes of `file_write` and `file_edit`.
//!
//! A change is refused if the file changed since the agent last saw it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::EffectClass;
use ikigai_core::counts::counted;
use ikigai_core::data::TouchedFile;

use crate::arguments::BadArguments;
use crate::diff::{self, Diff};
use crate::file_history::{PathsBefore, RecordedChanges};
use crate::files::{self, FileError, FileSnapshot};
use crate::paths::Located;
use crate::permission::directory_pattern;
use crate::{CallContext, Need, Output, Place, Prepared, Run, Stale, Touches, paths};

/// Long enough for a large file on a slow disk.
const DEADLINE: Duration = Duration::from_mins(1);

/// Computes a file's new content from its present one, or refuses.
pub(super) type EditFn =
    Arc<dyn Fn(&FileSnapshot) -> Result<NewContent, ChangeRefusal> + Send + Sync>;

/// New content of a file.
pub(super) struct NewContent {
    pub(super) bytes: Vec<u8>,
    /// False if the content differs from the texts in the call, so that the result shows it.
    pub(super) is_exact: bool,
}

impl NewContent {
    /// Creates content that is as the call says.
    pub(super) fn exact(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            bytes: bytes.into(),
            is_exact: true,
        }
    }
}

/// Part of a file that a call replaces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it, so the model must have read it.
    Whole,
    /// Texts that the call quotes.
    Part,
}

/// Reason why a file is not changed.
pub(super) enum ChangeRefusal {
    /// The file does not exist.
    Missing,
    /// Reason, shown after the name of the file.
    Because(String),
}

/// Prepares a call that changes the file `file_path`.
pub(super) fn prepare(
    place: &Place,
    file_path: &str,
    extent: Extent,
    change: EditFn,
) -> Result<Prepared, BadArguments> {
    let located = paths::locate(place, file_path)?;
    let path = located.path.clone();
    let name = paths::display_path(place, &path);
    Ok(Prepared {
        class: EffectClass::Write,
        touches: Touches::writing([path.clone()]),
        shown: crate::arguments::display_text(
            &serde_json::json!({ "file_path": &name }).to_string(),
        ),
        pattern: directory_pattern(place, &path),
        subject: name,
        preview: Some(preview(
            place.clone(),
            located.clone(),
            extent,
            Arc::clone(&change),
        )),
        deadline: DEADLINE,
        needs: vec![Need::File(path)],
        unconfined: None,
        run: Run::Blocking(Box::new(move |context| {
            run(context, &located, extent, &change)
        })),
    })
}

/// Makes a preview: the whole diff, or the output of a change that will fail.
fn preview(place: Place, located: Located, extent: Extent, change: EditFn) -> crate::Preview {
    Arc::new(move |inputs| {
        let Located { path, real } = &located;
        let name = paths::display_path(&place, path);
        if let Err(reason) = paths::check(&place, &located) {
            return Err(Box::new(Output::failed(reason)));
        }
        let old = files::find(real);
        let old = old.map_err(|error| Output::failed(format!("`{name}` {error}")))?;
        if let Some(output) = stale(&name, path, &old, inputs.file.as_deref()) {
            return Err(Box::new(output));
        }
        let new = change(&old).map_err(|refusal| refusal_output(&name, real, refusal))?;
        let new = new.bytes;
        if extent == Extent::Whole && is_unread(&old, &new, inputs.file.as_deref()) {
            return Err(Box::new(unread(&name)));
        }
        Ok(match &old {
            FileSnapshot::Nothing => diff::whole(&[], &new),
            FileSnapshot::Whole { bytes, .. } => diff::whole(bytes, &new),
            FileSnapshot::Large { .. } => {
                let replaced = format!("the whole file is replaced by {}\n", count(&new));
                replaced + &diff::whole(&[], &new)
            }
        })
    })
}

fn run(context: &CallContext, located: &Located, extent: Extent, change: &EditFn) -> Output {
    let place = &context.place;
    let Located { path, real } = located;
    let name = paths::display_path(place, path);
    if let Err(reason) = paths::check(place, located) {
        return Output::failed(reason);
    }
    let old = match files::find(real) {
        Ok(old) => old,
        Err(error) => return Output::failed(format!("`{name}` {error}")),
    };
    if let Some(output) = stale(&name, path, &old, context.inputs.file.as_deref()) {
        return output;
    }
    let new = match change(&old) {
        Ok(new) => new,
        Err(refusal) => return refusal_output(&name, real, refusal),
    };
    let NewContent {
        bytes: new,
        is_exact,
    } = new;
    if extent == Extent::Whole && is_unread(&old, &new, context.inputs.file.as_deref()) {
        return unread(&name);
    }
    if context.stop.is_cancelled() {
        return Output::stopped();
    }
    let unchanged = matches!(&old, FileSnapshot::Whole { bytes, .. } if *bytes == new);
    let before = (!unchanged).then(|| PathsBefore::of(real));
    if !unchanged && let Err(error) = files::replace(real, &new, old.stamp()) {
        let mut output = Output::failed(format!("`{name}` {error}"));
        if matches!(error, FileError::Changed) {
            output.stale = seen_now(located);
        }
        // Directories may have been created.
        output.changes = changes_since(before);
        return output;
    }
    let diff = difference(&old, &new);
    let mut output = if let Some(diff) = &diff {
        describe(&name, &old, &new, diff, (extent, is_exact))
    } else {
        let text = format!("`{name}` is replaced by {}\n", count(&new));
        Output::done(text, format!("{name}: replaced"))
    };
    output.changes = changes_since(before);
    output.files = vec![TouchedFile {
        wrote: Some(!unchanged),
        added: diff.as_ref().map(|diff| diff.added as u64),
        removed: diff.as_ref().map(|diff| diff.removed as u64),
        ..files::read(path, files::sha256_hex(&new))
    }];
    output
}

fn changes_since(before: Option<PathsBefore>) -> RecordedChanges {
    before.map(PathsBefore::changes).unwrap_or_default()
}

/// Refuses a file whose hash is not the one the agent knows.
///
/// A deleted file may be written again, because nothing is lost.
fn stale(name: &str, path: &Path, old: &FileSnapshot, known: Option<&str>) -> Option<Output> {
    let known = known?;
    let hash = match old {
        FileSnapshot::Nothing => return None,
        FileSnapshot::Whole { bytes, .. } => files::sha256_hex(bytes),
        // Only files below the size limit are hashed, so a large one has changed.
        FileSnapshot::Large { .. } => String::new(),
    };
    if hash == known {
        return None;
    }
    let reason = format!("`{name}` was changed since you last read it; read it again first");
    Some(Output {
        stale: Some(Stale {
            path: path.to_string_lossy().into_owned(),
            hash,
        }),
        ..Output::failed(reason)
    })
}

/// Returns true for an existing file that the agent has neither read nor written.
///
/// Nothing is lost if it is empty or stays as it is. Large files are not hashed, so that reading
/// them leaves no trace.
fn is_unread(old: &FileSnapshot, new: &[u8], known: Option<&str>) -> bool {
    match old {
        FileSnapshot::Whole { bytes, .. } => known.is_none() && !bytes.is_empty() && bytes != new,
        FileSnapshot::Nothing | FileSnapshot::Large { .. } => false,
    }
}

fn unread(name: &str) -> Output {
    Output::failed(format!(
        "`{name}` exists and you have not read it; read it first with file_read, then replace it or \
         change it with file_edit"
    ))
}

fn seen_now(located: &Located) -> Option<Stale> {
    let Ok(FileSnapshot::Whole { bytes, .. }) = files::find(&located.real) else {
        return None;
    };
    Some(Stale {
        path: located.path.to_string_lossy().into_owned(),
        hash: files::sha256_hex(&bytes),
    })
}

fn refusal_output(name: &str, real: &Path, refusal: ChangeRefusal) -> Output {
    match refusal {
        ChangeRefusal::Missing => files::missing(name, real),
        ChangeRefusal::Because(reason) => Output::failed(format!("`{name}` {reason}")),
    }
}

/// Describes a write; shows the diff only if the content differs from the texts in the call.
fn describe(
    name: &str,
    old: &FileSnapshot,
    new: &[u8],
    diff: &Diff,
    (extent, is_exact): (Extent, bool),
) -> Output {
    let (count, counts) = (count(new), diff.counts());
    let shown = format!("{name}: {counts}\n{}", diff.text);
    let mut body = match old {
        FileSnapshot::Nothing => format!("made `{name}`: {count}\n"),
        _ if diff.text.is_empty() => format!("`{name}` was like this before: {count}\n"),
        _ if extent == Extent::Whole => format!("wrote `{name}`: {count}, {counts} lines\n"),
        _ => format!("edited `{name}`: {}, {counts} lines\n", diff.place()),
    };
    if !is_exact {
        body.push_str(&diff.text);
    }
    Output::done(body, shown.trim_end())
}

/// Compares both versions; none if the old file is too large.
fn difference(old: &FileSnapshot, new: &[u8]) -> Option<Diff> {
    match old {
        FileSnapshot::Nothing => Some(Diff::between(&[], new)),
        FileSnapshot::Whole { bytes, .. } => Some(Diff::between(bytes, new)),
        FileSnapshot::Large { .. } => None,
    }
}

fn count(bytes: &[u8]) -> String {
    let size = files::size(bytes.len() as u64);
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').count();
    format!("{size}, {}", counted(lines, "line"))
}
