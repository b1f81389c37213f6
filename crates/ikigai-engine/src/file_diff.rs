//! Diffs of what agents changed in files, from the rows about it.

use std::path::{Path, PathBuf};

use ikigai_core::data::FileVersion;
use ikigai_core::file_plan::{FilePlan, PlannedFile};
use ikigai_core::{AgentId, Seq, Span};
use ikigai_store::{BlobHash, ReadLog};
use ikigai_tools::file_history::{FilePatch, PatchText};

use crate::file_history::files_rows;
use crate::{EngineError, EngineReader};

/// Rows whose changes a diff shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffRange {
    /// First row; all from the beginning if none.
    pub from: Option<Seq>,
    /// Last row; all to the end if none.
    pub to: Option<Seq>,
    /// Also the agents below, with all their rows.
    pub family: bool,
}

/// Changes of files as one patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDiff {
    /// Unified diff that `git apply` takes, with paths below `directory`.
    pub patch: PatchText,
    /// Number of changed files.
    pub files: usize,
    /// Changes that were not recorded, with the reason.
    pub missed: Vec<(String, String)>,
}

impl DiffRange {
    /// Parses `A..B`, `A..`, `..B` or `A`, with numbers of rows; `#` may precede them.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is no range of events, such as 12..40");
        let number = |text: &str| -> Result<Option<Seq>, String> {
            let digits = text.trim().trim_start_matches('#');
            if digits.is_empty() {
                return Ok(None);
            }
            digits
                .parse()
                .map(|number| Some(Seq(number)))
                .map_err(|_| wrong())
        };
        let (from, to) = match text.split_once("..") {
            Some((from, to)) => (number(from)?, number(to)?),
            None => (number(text)?, number(text)?),
        };
        Ok(Self {
            from,
            to,
            family: false,
        })
    }
}

/// Reads diffs of changed files from the log.
pub struct DiffReader<'a> {
    /// The engine of the log.
    pub engine: &'a EngineReader,
}

impl DiffReader<'_> {
    /// Computes what an agent changed in files, below a directory.
    pub async fn read(
        &self,
        agent: AgentId,
        range: &DiffRange,
        directory: &Path,
    ) -> Result<FileDiff, EngineError> {
        let mut span = Span::whole(agent);
        span.from = range.from.unwrap_or(span.from);
        span.to = range.to.unwrap_or(span.to);
        let mut rows = files_rows(self.engine.reader(), span).await?;
        if range.family {
            for other in self.engine.family_of(agent).await? {
                if other != agent {
                    rows.extend(files_rows(self.engine.reader(), Span::whole(other)).await?);
                }
            }
            rows.sort_by_key(|row| std::cmp::Reverse((row.created_at, row.at)));
        }
        let plan = FilePlan::of_rows(rows.into_iter().map(|row| row.data));
        let mut diff = FileDiff::default();
        for (path, file) in plan.files {
            let name = name_below(directory, &path);
            let text = self.patch_of(&name, &file).await?;
            if !text.text.is_empty() {
                diff.files += 1;
                diff.patch.added += text.added;
                diff.patch.removed += text.removed;
                diff.patch.text.push_str(&text.text);
            }
        }
        let missed = plan.missed.into_iter();
        diff.missed = missed
            .map(|missed| {
                let what = missed.path.or(missed.what).unwrap_or_default();
                (what, missed.why.unwrap_or_default())
            })
            .collect();
        Ok(diff)
    }

    async fn patch_of(&self, name: &str, file: &PlannedFile) -> Result<PatchText, EngineError> {
        let old = content_of(self.engine.reader(), &file.target).await?;
        let new = content_of(self.engine.reader(), &file.expected).await?;
        let (name, file) = (name.to_owned(), file.clone());
        let patch = move || {
            let patch = FilePatch {
                name: &name,
                before: (&file.target, old.as_deref()),
                after: (&file.expected, new.as_deref()),
            };
            patch.text()
        };
        // Comparing long files takes time.
        let text = tokio::task::spawn_blocking(patch).await;
        Ok(text.unwrap_or_default())
    }
}

/// Reads the content of a recorded state; none if it was not kept.
pub(crate) async fn content_of(
    store: &dyn ReadLog,
    version: &FileVersion,
) -> Result<Option<Vec<u8>>, EngineError> {
    let hash = version.hash.as_deref();
    match hash.and_then(|hash| hash.parse::<BlobHash>().ok()) {
        Some(hash) => Ok(store.blob(hash).await?),
        None => Ok(None),
    }
}

/// Returns a path below a directory, or without its first slash.
fn name_below(directory: &Path, path: &str) -> String {
    let below = Path::new(path).strip_prefix(directory).ok();
    let name = below.map_or_else(
        || PathBuf::from(path.trim_start_matches('/')),
        Path::to_owned,
    );
    name.to_string_lossy().into_owned()
}
