//! Commits around calls: the journal before they start, their results after they ended.
//!
//! Calls that start or end together share a commit: each one costs a flush of the disk.

use ikigai_core::EffectClass;
use ikigai_core::Event;
use ikigai_core::data::Verdict;
use ikigai_store::{CommitError, Effect, JobEffect, RunEffect, RunId};
use ikigai_tools::Output;
use ikigai_tools::background::BackgroundPlace;

use super::background_calls::background_of;
use super::calls::{CallSet, Stage, ToolRound};
use crate::calls::{Came, OpenCall};
use crate::changed_files::remove_recorded;
use crate::environment::{CrashPoint, draw_run};
use crate::frontend::{FrontEnd, Stop};
use crate::ledger::{CommitPlan, read_held};
use crate::{EngineError, Worker};

/// Journalled run of a call, and the place of the background process that it starts.
type JournalledRun = (Option<RunId>, Option<BackgroundPlace>);

/// Journal attempts after an unknown outcome.
const MOST_DOUBTS: usize = 16;

impl ToolRound<'_> {
    /// Journals calls that are about to run, in one commit; returns the run of each.
    ///
    /// Read-only calls have none: they may run again. A background process is recorded in the
    /// same commit.
    pub(super) async fn journal(
        &mut self,
        indices: &[usize],
        round: &mut CallSet,
        front: &mut FrontEnd<'_>,
    ) -> Result<Vec<JournalledRun>, EngineError> {
        let started = self.worker.engine().environment().now();
        let mut runs = Vec::new();
        let mut effects = Vec::new();
        let mut rows = Vec::new();
        for index in indices {
            let call = &round.calls[*index];
            let Stage::Ready(prepared, _) = &call.stage else {
                runs.push((None, None));
                continue;
            };
            let is_journalled = prepared.class != EffectClass::Read;
            let run = is_journalled.then(|| draw_run(self.worker.engine().environment()));
            effects.extend(run.map(|run| {
                Effect::Run(RunEffect::Start {
                    run,
                    call: call.open.at,
                    class: prepared.class,
                    started,
                    deadline: started.after(prepared.deadline),
                })
            }));
            let planned = match (run, background_of(&prepared.needs)) {
                (Some(run), Some(order)) => {
                    let (at, nth) = ((run, call.open.at), rows.len() as u64);
                    read_held!(front, self.worker.processes().plan(at, order, nth))
                }
                _ => None,
            };
            let place = planned.map(|planned| {
                effects.push(Effect::Job(JobEffect::Start(planned.job)));
                rows.push(planned.row);
                planned.place
            });
            runs.push((run, place));
        }
        if let Some(first) = runs.iter().find_map(|(run, _)| *run) {
            self.worker.crash_point(CrashPoint::BeforeCallJournalled);
            commit_journal(self.worker, first, rows, effects, front).await?;
            self.worker.crash_point(CrashPoint::AfterCallJournalled);
        }
        Ok(runs)
    }

    /// Stores the results of calls that ended together.
    pub(super) async fn record(
        &mut self,
        ended: Vec<(usize, Output)>,
        round: &mut CallSet,
        front: &mut FrontEnd<'_>,
    ) -> Result<(), EngineError> {
        self.worker.crash_point(CrashPoint::BeforeResultStored);
        let mut events = Vec::new();
        let mut ends = Vec::new();
        let indices: Vec<_> = ended.iter().map(|(index, _)| *index).collect();
        for (index, output) in ended {
            let call = &mut round.calls[index];
            let (open, run) = (&call.open, call.stage.run());
            let (rows, end) = self.result_of(open, run, output, front).await?;
            events.extend(rows);
            ends.extend(end);
        }
        let rows = self
            .worker
            .commit(CommitPlan::events(events).with(ends).waiting(front))
            .await?;
        remove_recordings(self.worker, round.end(&indices)).await;
        self.worker.crash_point(CrashPoint::AfterResultStored);
        front.emit_rows(rows);
        Ok(())
    }

    /// Stores the results of calls that were refused.
    pub(super) async fn store_refusals(
        &mut self,
        round: &mut CallSet,
        front: &mut FrontEnd<'_>,
    ) -> Result<(), EngineError> {
        if round.refused.is_empty() {
            return Ok(());
        }
        let refused = std::mem::take(&mut round.refused);
        self.worker.crash_point(CrashPoint::BeforeResultStored);
        let rows = self
            .worker
            .commit(CommitPlan::events(refused).waiting(front))
            .await?;
        self.worker.crash_point(CrashPoint::AfterResultStored);
        front.emit_rows(rows);
        Ok(())
    }
}

/// Removes the recordings of runs that are not in the background.
async fn remove_recordings(worker: &Worker, runs: Vec<RunId>) {
    let engine = worker.engine();
    for run in runs {
        if !engine.processes().watches(run) {
            remove_recorded(engine, worker.id(), run).await;
        }
    }
}

/// Stores journal entries, among them `first`.
async fn commit_journal(
    worker: &mut Worker,
    first: RunId,
    rows: Vec<Event>,
    effects: Vec<Effect>,
    front: &mut FrontEnd<'_>,
) -> Result<(), EngineError> {
    let agent = worker.agent().state.agent();
    for _ in 0..MOST_DOUBTS {
        match worker
            .commit(
                CommitPlan::events(rows.clone())
                    .with(effects.clone())
                    .waiting(front),
            )
            .await
        {
            Ok(rows) => {
                front.emit_rows(rows);
                return Ok(());
            }
            // The journal itself shows if it was written.
            Err(EngineError::Commit(CommitError::Unknown(_))) => {}
            other => return other.map(drop),
        }
        let open = read_held!(front, worker.engine().reader().open_runs(agent));
        if open.iter().any(|open| open.id == first) {
            return Ok(());
        }
    }
    worker
        .commit(CommitPlan::events(rows).with(effects).waiting(front))
        .await
        .map(|rows| front.emit_rows(rows))
}

impl CallSet {
    /// Marks calls as ended; returns their journalled runs.
    fn end(&mut self, indices: &[usize]) -> Vec<RunId> {
        let mut runs = Vec::new();
        for index in indices {
            let call = &mut self.calls[*index];
            runs.extend(call.stage.run());
            call.stage = Stage::Ended;
        }
        runs
    }

    /// Remembers a refused call, to end a turn that repeats it.
    pub(super) fn count_refusal(&mut self, open: &OpenCall) {
        let refusal = (open.name.clone(), open.arguments.clone());
        self.refusals.push(refusal);
    }

    /// Answers a call that does not run. The turn continues.
    pub(super) fn refuse(&mut self, open: &OpenCall, reason: String) -> Option<Stop> {
        let result = open.result(Came::failed(reason), Verdict::Refused);
        self.refused.push(result);
        self.count_refusal(open);
        None
    }
}
