//! Calls that start or use background processes.

use ikigai_core::Event;
use ikigai_store::{Effect, JobEffect, RunId};
use ikigai_tools::Need;
use ikigai_tools::background::{BackgroundOrder, KnownProcess, ProcessReport};

use crate::frontend::FrontEnd;
use crate::ledger::read_held;
use crate::processes::{MOST_RUNNING_PROCESSES, ended_row, known_processes};
use crate::{EngineError, Worker};

/// Rows and effects that follow from a call's report about a process.
#[derive(Default)]
pub(super) struct LearnedFacts {
    /// Number of the process as which the call goes on.
    pub(super) number: Option<u64>,
    /// Row of its end.
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
        report: Option<ProcessReport>,
        front: &mut FrontEnd<'_>,
    ) -> Result<LearnedFacts, EngineError> {
        let mut learned = LearnedFacts::default();
        let Some(report) = report else {
            return Ok(learned);
        };
        let Ok(id) = u128::from_str_radix(&report.cookie, 16) else {
            return Ok(learned);
        };
        let id = RunId(id);
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
}
