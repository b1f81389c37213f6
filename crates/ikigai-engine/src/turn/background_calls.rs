//! Calls that start or use background processes.

use ikigai_core::{Event, RowRef};
use ikigai_store::{Effect, JobEffect, RunId};
use ikigai_tools::background::{
    BackgroundOrder, BackgroundPlace, ForegroundKeeper, KnownProcess, LeftCommand,
};
use ikigai_tools::{CallInputs, Need, Output};

use super::calls::Stage;
use crate::changed_files::{recorded, recording_directory};
use crate::frontend::FrontEnd;
use crate::ledger::read_held;
use crate::processes::{MOST_RUNNING_PROCESSES, ended_row, foreground_directory, known_processes};
use crate::{EngineError, Worker};

/// Rows and effects that follow from a call's report about a process.
#[derive(Default)]
pub(super) struct LearnedFacts {
    /// Number of the process as which the call goes on.
    pub(super) number: Option<u64>,
    /// Row of its start or its end.
    pub(super) row: Option<Event>,
    pub(super) effects: Vec<Effect>,
}

/// Returns the order to start a background process, if a call has one.
pub(super) fn background_of(needs: &[Need]) -> Option<&BackgroundOrder> {
    needs.iter().find_map(|need| match need {
        Need::Background(order) => Some(order),
        _ => None,
    })
}

/// Background processes of the calls of a response.
pub(super) struct ProcessCalls<'a> {
    worker: &'a mut Worker,
}

impl<'a> ProcessCalls<'a> {
    pub(super) fn of(worker: &'a mut Worker) -> Self {
        Self { worker }
    }

    /// Returns the reason why a call that `starts` a process may not do so now, if there is one.
    pub(super) async fn refuse_background(
        &mut self,
        starts: bool,
    ) -> Result<Option<String>, EngineError> {
        if !starts {
            return Ok(None);
        }
        let engine = self.worker.engine();
        if engine.keepers().is_none() {
            let reason = "background processes are not available here: run it without `background`";
            return Ok(Some(reason.to_owned()));
        }
        let running = engine
            .reader()
            .open_jobs(Some(self.worker.id()))
            .await?
            .len();
        let reason = format!(
            "{running} background processes run, which is the limit: stop one with `process`"
        );
        Ok((running >= MOST_RUNNING_PROCESSES).then_some(reason))
    }

    /// Sets the places of processes that a call starts or leaves running.
    pub(super) fn set_places(
        &self,
        stage: &Stage,
        (run, place): (Option<RunId>, Option<BackgroundPlace>),
        inputs: &mut CallInputs,
    ) {
        inputs.background = place;
        let (engine, own) = (self.worker.engine(), self.worker.id());
        inputs.recording = run.and_then(|run| recording_directory(engine, own, run));
        if let Stage::Ready(prepared, _) = stage {
            inputs.keeper = self.foreground_keeper(run, &prepared.needs);
        }
    }

    /// Returns the keeper for a call's command that may go on in the background.
    fn foreground_keeper(&self, run: Option<RunId>, needs: &[Need]) -> Option<ForegroundKeeper> {
        let engine = self.worker.engine();
        let keepers = engine.keepers()?;
        let own = self.worker.id();
        let has_room = engine.processes().running(own).len() < MOST_RUNNING_PROCESSES;
        (needs.contains(&Need::Keeper) && has_room).then(|| ForegroundKeeper {
            directory: foreground_directory(keepers, own, run),
            keeper: keepers.program.clone(),
            time_limit: keepers.time_limit,
        })
    }

    /// Returns the processes that a call may act on.
    pub(super) async fn known_processes(
        &self,
        needs: &[Need],
    ) -> Result<Vec<KnownProcess>, EngineError> {
        for need in needs {
            if let Need::Processes(name) = need {
                let (engine, own) = (self.worker.engine(), self.worker.id());
                return known_processes(engine, own, name.as_deref()).await;
            }
        }
        Ok(Vec::new())
    }

    /// Turns a report about a process into rows and effects, and watches a started one.
    pub(super) async fn learn_of_process(
        &mut self,
        call: RowRef,
        output: &mut Output,
        front: &mut FrontEnd<'_>,
    ) -> Result<LearnedFacts, EngineError> {
        let mut learned = LearnedFacts::default();
        let Some(mut report) = output.process.take() else {
            return Ok(learned);
        };
        let Ok(id) = u128::from_str_radix(&report.cookie, 16) else {
            return Ok(learned);
        };
        let id = RunId(id);
        if let Some(left) = report.left.take() {
            let learned = self.leave((id, call), &left, report.read_to, front).await?;
            if let Some(number) = learned.number {
                output.go_on_as(number);
            }
            return Ok(learned);
        }
        if output.changes.is_empty() {
            let (engine, own) = (self.worker.engine(), self.worker.id());
            output.changes = recorded(engine, own, id).await;
        }
        if let Some(bytes) = report.read_to {
            let read = JobEffect::Read { job: id, bytes };
            learned.effects.push(Effect::Job(read));
        }
        let engine = self.worker.engine().clone();
        let job = if report.is_started {
            let own = Some(self.worker.id());
            let open = read_held!(front, async {
                Ok::<_, EngineError>(engine.reader().open_jobs(own).await?)
            });
            open.into_iter().find(|job| job.id == id)
        } else if report.end.is_some() {
            engine.processes().claim_end(id)
        } else {
            None
        };
        let Some(job) = job else {
            return Ok(learned);
        };
        if report.is_started {
            learned.number = Some(job.number);
        }
        match &report.end {
            Some(end) => {
                learned.row = Some(ended_row(&job, Some(end)));
                learned.effects.push(self.worker.processes().end_effect(id));
            }
            None => engine.processes().watch(engine.hub(), job),
        }
        Ok(learned)
    }

    /// Records a command that goes on after its call as a process of the agent.
    ///
    /// The commit of the result stores both.
    async fn leave(
        &mut self,
        call: (RunId, RowRef),
        left: &LeftCommand,
        read_to: Option<u64>,
        front: &mut FrontEnd<'_>,
    ) -> Result<LearnedFacts, EngineError> {
        let processes = self.worker.processes();
        let planned = read_held!(front, processes.plan(call, &left.order, 0));
        let Some(mut planned) = planned else {
            return Ok(LearnedFacts::default());
        };
        planned.job.directory = left.directory.display().to_string();
        planned.job.read_to = read_to.unwrap_or_default();
        let engine = self.worker.engine();
        engine.processes().watch(engine.hub(), planned.job.clone());
        Ok(LearnedFacts {
            number: Some(planned.job.number),
            row: Some(planned.row),
            effects: vec![Effect::Job(JobEffect::Start(planned.job))],
        })
    }
}
