//! Rewinds that restore files: stored first, then carried out, and finished after a crash.

use std::collections::BTreeMap;

use ikigai_core::counts::counted;
use ikigai_core::data::{FileChange, FileKind, FileVersion, RewindData};
use ikigai_core::{EffectClass, Event, Kind, Row, RowRef, Seq, Span};
use ikigai_store::{BlobHash, Effect, RunEffect, RunId, RunRecord, history};
use ikigai_tools::file_history::{
    KeptContent, LinkPlan, PathStanding, RecordedChanges, RestoreStep, in_order, present,
    remove_left, restore, set_times, standing,
};

use crate::changed_files::{files_data, store_contents};
use crate::environment::draw_run;
use crate::file_history::{FileRestore, files_rows, is_named, names_of, one_line, shown_loss};
use crate::frontend::FrontEnd;
use crate::ledger::CommitPlan;
use crate::{EngineError, Worker};

/// Time limit of a restore in the journal; nothing stops it.
const DEADLINE: std::time::Duration = std::time::Duration::from_mins(10);

/// Rewind that restored files.
pub(crate) struct RestoredFiles {
    /// Description for people: what was restored, and what not.
    pub(crate) text: String,
    /// Effect that ends the entry in the journal, for the command's own commit.
    pub(crate) end: Effect,
}

/// Rewinds of an agent that restore files.
pub(crate) struct FileRestorer<'a> {
    pub(crate) worker: &'a mut Worker,
}

impl FileRestorer<'_> {
    /// Stores a rewind, then restores files as planned.
    ///
    /// `overwrites` also restores those that others changed since. If the process dies in between,
    /// the next holder of the lease finishes the work.
    pub(crate) async fn rewind_files(
        &mut self,
        mut data: RewindData,
        mut plan: FileRestore,
        overwrites: bool,
        front: &mut FrontEnd<'_>,
    ) -> Result<RestoredFiles, EngineError> {
        if overwrites {
            plan.steps.append(&mut plan.changed);
        }
        let mut lost = names_of(plan.changed.iter());
        lost.extend(plan.lost.iter().map(|(path, _)| path.clone()));
        data.files = Some(lost).filter(|lost| !lost.is_empty());
        let names = names_of(plan.named());
        data.restored = Some(names.clone()).filter(|names| !names.is_empty());
        let (steps, contents) = found_now(std::mem::take(&mut plan.steps)).await;
        let mut waits = Some(&mut *front);
        store_contents(self.worker.ledger(), contents, &mut waits).await?;
        let rewind = self.worker.newest();
        let rewind = RowRef::new(rewind.agent, rewind.seq.next());
        let changes = RecordedChanges {
            entries: steps.iter().map(change_of).collect(),
            ..RecordedChanges::default()
        };
        let files = files_data(self.worker.ledger(), rewind, changes, &mut waits).await?;
        let run = draw_run(self.worker.engine().environment());
        let started = self.worker.engine().environment().now();
        let start = |head: Seq| {
            vec![Effect::Run(RunEffect::Start {
                run,
                call: RowRef::new(rewind.agent, head.next()),
                class: EffectClass::Write,
                started,
                deadline: started.after(DEADLINE),
            })]
        };
        let events = vec![Event::Rewind(data), Event::Files(files)];
        let rows = self
            .worker
            .commit(CommitPlan::events(events).with_at(&start))
            .await?;
        front.emit_rows(rows);
        let failures = self.carry_out_steps(steps).await?;
        Ok(RestoredFiles {
            text: describe(&plan, &names, &failures),
            end: self.end_restore(run),
        })
    }

    fn end_restore(&self, run: RunId) -> Effect {
        let ended = self.worker.engine().environment().now();
        Effect::Run(RunEffect::End { run, ended })
    }

    /// Finishes restores that a former process had begun; returns the other runs, and the effects
    /// that end these.
    pub(crate) async fn finish_restores(
        &mut self,
        runs: Vec<RunRecord>,
    ) -> Result<(Vec<RunRecord>, Vec<Effect>), EngineError> {
        let mut others = Vec::new();
        let mut ends = Vec::new();
        for run in runs {
            let row = history::row_at(self.worker.engine().reader(), run.call).await?;
            if !row.as_ref().is_some_and(is_rewind) {
                others.push(run);
                continue;
            }
            let at = run.call;
            let span = Span::new(at.agent, at.seq.next(), at.seq.next());
            for row in files_rows(self.worker.engine().reader(), span).await? {
                let entries = row.data.entries.unwrap_or_default();
                let steps = entries.into_iter().filter_map(step_of).collect();
                self.carry_out_steps(steps).await?;
            }
            ends.push(self.end_restore(run.id));
        }
        Ok((others, ends))
    }

    /// Puts files into the states of steps, as far as they are as expected. Returns failures.
    async fn carry_out_steps(
        &mut self,
        steps: Vec<RestoreStep>,
    ) -> Result<Vec<(String, String)>, EngineError> {
        let steps = in_order(steps);
        let mut failures = BTreeMap::new();
        let mut fail = |step: &RestoreStep, reason| {
            let name = step.path.to_string_lossy().into_owned();
            failures.entry(name).or_insert(reason);
        };
        let mut pending = Vec::new();
        for step in steps.iter().rev() {
            let own = step.clone();
            let checked = blocking(move || match standing(&own) {
                PathStanding::AsExpected => remove_left(&own).map(|()| true),
                PathStanding::AsWanted => Ok(own.target.kind() == Some(FileKind::Directory)),
                PathStanding::Changed(_) => Err("it changed meanwhile".to_owned()),
                PathStanding::Unreadable(reason) => Err(reason),
            });
            match checked.await {
                Ok(true) => pending.push(step.clone()),
                Ok(false) => {}
                Err(reason) => fail(step, reason),
            }
        }
        pending.reverse();
        for step in &pending {
            let hash = step.target.hash.as_deref();
            let hash = hash.and_then(|hash| hash.parse::<BlobHash>().ok());
            let content = match hash {
                Some(hash) => self.worker.engine().reader().blob(hash).await?,
                None => None,
            };
            let own = step.clone();
            if let Err(reason) = blocking(move || restore(&own, content.as_deref())).await {
                fail(step, reason);
            }
        }
        // From below, because each change sets the time of the directory above.
        let directories: Vec<_> = pending.into_iter().rev().collect();
        let set = move || directories.iter().try_for_each(set_times);
        // A directory that is gone has no time.
        let _ = blocking(set).await;
        Ok(failures.into_iter().collect())
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err("internal error in ikigai (please report)".to_owned()))
}

/// Reads the present states of the paths, which a redo restores; returns contents of changed ones.
async fn found_now(steps: Vec<RestoreStep>) -> (Vec<RestoreStep>, Vec<KeptContent>) {
    let read = move || {
        let mut found = Vec::new();
        let mut contents = Vec::new();
        for mut step in steps {
            let (version, content) = present(&step.path);
            let is_known = version.hash == step.expected.hash;
            contents.extend(content.filter(|_| !is_known).map(KeptContent::Bytes));
            step.expected = FileVersion {
                same_as: step.expected.same_as.filter(|_| is_known),
                ..version
            };
            found.push(step);
        }
        (found, contents)
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_default()
}

fn is_rewind(row: &Row) -> bool {
    row.kind.read_as() == Some(Kind::Rewind)
}

fn change_of(step: &RestoreStep) -> FileChange {
    FileChange {
        path: Some(step.path.to_string_lossy().into_owned()),
        before: Some(step.expected.clone()),
        after: Some(step.target.clone()),
    }
}

fn step_of(change: FileChange) -> Option<RestoreStep> {
    Some(RestoreStep {
        path: change.path?.into(),
        expected: change.before?,
        target: change.after?,
        is_ignored: false,
        links: LinkPlan::default(),
    })
}

/// Describes what was restored: `Files restored: a.rs, b.rs. Not restored: c.rs (…)`.
fn describe(plan: &FileRestore, names: &[String], failures: &[(String, String)]) -> String {
    let Some(place) = &plan.place else {
        return String::new();
    };
    let mut parts = Vec::new();
    let failed = |name: &&String| failures.iter().any(|(path, _)| path == *name);
    let done: Vec<_> = names.iter().filter(|name| !failed(name)).cloned().collect();
    if !done.is_empty() {
        let count = counted(done.len(), "file");
        parts.push(format!("{count} restored: {}", one_line(place, &done)));
    }
    let changed = plan.changed.iter().filter(|step| is_named(step));
    let changed = changed.map(|step| {
        let path = step.path.to_string_lossy().into_owned();
        (path, "changed since".to_owned())
    });
    let lost = plan.lost.iter().chain(failures).cloned().chain(changed);
    let lost: Vec<_> = lost.map(|lost| shown_loss(place, &lost)).collect();
    if !lost.is_empty() {
        const MOST: usize = 8;
        let more = match lost.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let listed = lost[..lost.len().min(MOST)].join(", ");
        parts.push(format!("Not restored: {listed}{more}"));
    }
    parts.join(". ")
}
