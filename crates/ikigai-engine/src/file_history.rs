//! Files at earlier moments: rows about changes, and the plan to take them back.

use std::path::{Path, PathBuf};

use ikigai_core::counts::counted;
use ikigai_core::data::{self, FileKind, FileVersion, FilesData, MissedChange};
use ikigai_core::file_plan::{FilePlan, PlannedFile};
use ikigai_core::spelling::spell_out;
use ikigai_core::{AgentId, Micros, RowRef, Seq, Span};
use ikigai_store::{ReadLog, StoreError};
use ikigai_tools::file_history::{
    IGNORED, LinkPlan, PathStanding, RestoreReach, RestoreStep, standing,
};
use ikigai_tools::{Place, paths};

use crate::{EngineError, EngineReader};

/// Rows read per query.
const PAGE_ROWS: usize = 64;

/// Files named in a list before the rest is counted.
const MOST_NAMED: usize = 20;

/// Row about changed files, with all its entries.
#[derive(Clone, Debug)]
pub(crate) struct FilesRow {
    pub(crate) at: RowRef,
    pub(crate) created_at: Micros,
    pub(crate) data: FilesData,
}

/// Reads rows about changed files, newest first, with all their entries.
pub(crate) async fn files_rows(
    store: &dyn ReadLog,
    mut span: Span,
) -> Result<Vec<FilesRow>, StoreError> {
    let mut found = Vec::new();
    loop {
        let rows = store.files_rows(span, PAGE_ROWS).await?;
        let last = rows.last().map(|row| row.at.seq);
        let is_all = rows.len() < PAGE_ROWS;
        for row in rows {
            let mut data: FilesData = data::read(row.data.as_deref());
            let blob = data.blob.as_ref().and_then(|blob| blob.hash.as_deref());
            if let Some(hash) = blob.and_then(|hash| hash.parse().ok()) {
                let entries = store.blob(hash).await?;
                data.entries = entries.and_then(|json| serde_json::from_slice(&json).ok());
                if data.entries.is_none() {
                    data.missed.get_or_insert_default().push(MissedChange {
                        what: Some(format!("event {}", row.at)),
                        why: Some("its list of files was removed".to_owned()),
                        ..MissedChange::default()
                    });
                }
            }
            found.push(FilesRow {
                at: row.at,
                created_at: row.created_at,
                data,
            });
        }
        match last {
            Some(Seq(last)) if !is_all && last > span.from.0 => span.to = Seq(last - 1),
            _ => return Ok(found),
        }
    }
}

/// Files that a rewind would restore.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileRestore {
    /// Paths in the state in which the agent left them.
    pub(crate) steps: Vec<RestoreStep>,
    /// Paths that a person or another program changed since.
    pub(crate) changed: Vec<RestoreStep>,
    /// Paths and other changes that cannot be restored, with the reason.
    pub(crate) lost: Vec<(String, String)>,
    /// The working directory, without links, for short names.
    pub(crate) place: Option<Place>,
}

impl FileRestore {
    /// Computes the way back to a row, for the files that the agent itself changed since.
    pub(crate) async fn plan(
        engine: &EngineReader,
        (agent, target): (AgentId, RowRef),
        place: &Place,
    ) -> Result<Self, EngineError> {
        let mut span = Span::whole(agent);
        if target.agent == agent {
            span.from = target.seq.next();
        }
        let rows = files_rows(engine.reader(), span).await?;
        if rows.is_empty() {
            return Ok(Self::default());
        }
        let plan = FilePlan::of_rows(rows.into_iter().map(|row| row.data));
        let (place, writable) = (place.clone(), engine.safety().writable.clone());
        let compare = move || {
            let reach = RestoreReach::new(&place, &writable);
            Self {
                place: Some(reach.place()),
                ..Self::compare(plan, &reach)
            }
        };
        let compared = tokio::task::spawn_blocking(compare).await;
        Ok(compared.unwrap_or_default())
    }

    /// Compares a plan with the present files. Blocks.
    fn compare(plan: FilePlan, reach: &RestoreReach) -> Self {
        let mut restore = Self::default();
        let is_of_ignored = |missed: &&MissedChange| missed.why.as_deref() == Some(IGNORED);
        let ignored = plan.missed.iter().filter(is_of_ignored);
        let ignored: Vec<String> = ignored
            .filter_map(|missed| missed.path.clone())
            .map(|path| path.trim_end_matches('/').to_owned())
            .collect();
        for (path, file) in plan.files {
            let is_ignored = ignored.iter().any(|top| Path::new(&path).starts_with(top));
            restore.add(path, file, is_ignored, reach);
        }
        for missed in plan.missed {
            let what = missed.path.or(missed.what).unwrap_or_default();
            let why = missed.why.unwrap_or_else(|| "not recorded".to_owned());
            if !restore.lost.iter().any(|(lost, _)| *lost == what) {
                restore.lost.push((what, why));
            }
        }
        restore
    }

    fn add(&mut self, path: String, file: PlannedFile, is_ignored: bool, reach: &RestoreReach) {
        let is_only_time = file.is_only_time();
        let PlannedFile {
            expected,
            mut target,
            is_continuous,
        } = file;
        let is_refused = |other: &String| reach.refuse(Path::new(other)).is_some();
        if target.same_as.as_ref().is_some_and(is_refused) {
            target.same_as = None;
        }
        let step = RestoreStep {
            path: PathBuf::from(&path),
            expected,
            target,
            is_ignored,
            links: LinkPlan::default(),
        };
        if let Some(reason) = reach.refuse(&step.path) {
            if !is_only_time {
                self.lost.push((path, reason));
            }
            return;
        }
        let is_unkept = step.target.kind() == Some(FileKind::File)
            && step.target.hash.is_none()
            && step.expected.hash != step.target.hash;
        match standing(&step) {
            PathStanding::AsWanted => {}
            _ if is_unkept => self
                .lost
                .push((path, "its old content was not kept".to_owned())),
            PathStanding::AsExpected if is_continuous || is_only_time => self.steps.push(step),
            PathStanding::AsExpected | PathStanding::Changed(_) => {
                if !is_only_time {
                    self.changed.push(step);
                }
            }
            PathStanding::Unreadable(reason) => self.lost.push((path, reason)),
        }
    }

    /// Returns true if there is nothing to restore, and nothing that was lost.
    pub(crate) fn is_empty(&self) -> bool {
        let has_steps = self
            .steps
            .iter()
            .any(|step| step.is_ignored || is_named(step));
        !has_steps && self.changed.is_empty() && self.lost.is_empty()
    }

    /// Returns the steps that descriptions name.
    pub(crate) fn named(&self) -> impl Iterator<Item = &RestoreStep> {
        self.steps.iter().filter(|step| is_named(step))
    }

    /// Describes the files for a choice: what would be restored, and what would not.
    pub(crate) fn preview(&self) -> String {
        let Some(place) = &self.place else {
            return String::new();
        };
        let mut lines = Vec::new();
        let named: Vec<_> = self.named().collect();
        if !named.is_empty() {
            let count = counted(named.len(), "file");
            lines.push(format!("{count} would be restored:"));
            lines.extend(list(named.iter().map(|step| {
                format!("{} {}", action(step), shown_path(place, &step.path))
            })));
        }
        let ignored = self.steps.iter().filter(|step| step.is_ignored).count();
        if ignored > 0 {
            let count = counted(ignored, "new path");
            lines.push(format!("{count} in ignored directories would be deleted"));
        }
        if !self.changed.is_empty() {
            lines.push("Changed since by you or another program, so kept:".to_owned());
            let changed = self.changed.iter();
            lines.extend(list(changed.map(|step| shown_path(place, &step.path))));
        }
        if !self.lost.is_empty() {
            lines.push("Not restored:".to_owned());
            lines.extend(list(self.lost.iter().map(|lost| shown_loss(place, lost))));
        }
        lines.join("\n")
    }
}

/// Returns true for steps that change more than the time of a directory, the other names of a file,
/// or an ignored path.
pub(crate) fn is_named(step: &RestoreStep) -> bool {
    if step.is_ignored {
        return false;
    }
    let is_directory = |version: &FileVersion| version.kind() == Some(FileKind::Directory);
    let is_other_name = step.target.is_like(&step.expected)
        && step.target.mtime_ns == step.expected.mtime_ns
        && step.target.kind() == Some(FileKind::File);
    let is_time = is_directory(&step.target) && step.target.is_like(&step.expected);
    !is_time && !is_other_name
}

/// Returns the paths of steps, as rows name them.
pub(crate) fn names_of<'a>(steps: impl Iterator<Item = &'a RestoreStep>) -> Vec<String> {
    steps
        .map(|step| step.path.to_string_lossy().into_owned())
        .collect()
}

/// Names the first paths of a list on one line, and counts the rest.
pub(crate) fn one_line(place: &Place, paths: &[String]) -> String {
    const MOST: usize = 8;
    let mut named: Vec<_> = paths
        .iter()
        .take(MOST)
        .map(|path| shown_path(place, Path::new(path)))
        .collect();
    if let more @ 1.. = paths.len().saturating_sub(MOST) {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}

/// Describes a loss: `target/ (ignored)`.
pub(crate) fn shown_loss(place: &Place, (what, why): &(String, String)) -> String {
    let slash = if what.ends_with('/') { "/" } else { "" };
    let path = shown_path(place, Path::new(what));
    let path = path.trim_end_matches('/');
    format!("{path}{slash} ({why})")
}

fn shown_path(place: &Place, path: &Path) -> String {
    spell_out(&paths::display_path(place, path))
}

fn action(step: &RestoreStep) -> &'static str {
    match (step.expected.is_absent(), step.target.is_absent()) {
        (true, _) => "bring back",
        (_, true) => "delete",
        _ if step.target.hash == step.expected.hash && step.target.link == step.expected.link => {
            "restore the mode of"
        }
        _ => "restore",
    }
}

fn list(lines: impl Iterator<Item = String>) -> Vec<String> {
    let all: Vec<String> = lines.collect();
    let mut listed: Vec<String> = all
        .iter()
        .take(MOST_NAMED)
        .map(|line| format!("  {line}"))
        .collect();
    if let more @ 1.. = all.len().saturating_sub(MOST_NAMED) {
        listed.push(format!("  {more} more"));
    }
    listed
}
