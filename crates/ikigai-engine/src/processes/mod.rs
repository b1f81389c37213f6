//! Background processes of an agent: start, adoption, end, and notices about them.
//!
//! Rows and machine facts change in one commit. A process is recorded before its keeper starts, and
//! its end together with the notice about it, so a crash at any moment leaves a process that the
//! next holder of the lease finds.

mod lookup;
mod notices;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ikigai_core::data::{ProcessCause, ProcessData, ProcessState};
use ikigai_core::{AgentId, Event, RowRef, Span, data};
use ikigai_store::{Batch, Effect, JobEffect, JobRecord, MailEffect, RunId};
use ikigai_tools::background::{BackgroundOrder, BackgroundPlace};
use ikigai_tools::process::end_cookie;
use ikigai_tools::process::keeper::{self, KeptState, ProcessEnd, StopCause};
use tokio::time::timeout;

use crate::changed_files::{remove_recorded, store_recording};
use crate::environment::{cookie_of, draw_mail};
use crate::frontend::FrontEnd;
use crate::ledger::{CommitPlan, Ledger};
use crate::process_watch::ListedProcess;
use crate::{Engine, EngineError, EngineReader, Keepers};

pub(crate) use lookup::known_processes;
pub(crate) use notices::shown_notice;

/// Most processes of one agent that run at the same time.
pub(crate) const MOST_RUNNING_PROCESSES: usize = 16;

/// Longest wait for a keeper to end its command; afterwards the command is ended without it.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// `process` rows read at a time to find the newest number.
const PAGE_ROWS: usize = 16;

/// Plan to start a process, to be stored before it starts.
pub(crate) struct PlannedProcess {
    pub(crate) job: JobRecord,
    pub(crate) place: BackgroundPlace,
    pub(crate) row: Event,
}

/// Outcome of the adoption of an agent's processes.
#[derive(Default)]
pub(crate) struct AdoptedProcesses {
    /// Numbers of the processes that run, by run.
    pub(crate) running: BTreeMap<RunId, u64>,
    /// Rows of those that have ended.
    pub(crate) rows: Vec<Event>,
    /// Their ends, and notices about them.
    pub(crate) effects: Vec<Effect>,
}

/// Background processes of one agent of this process.
pub(crate) struct Processes<'a> {
    pub(crate) ledger: &'a mut Ledger,
}

impl Processes<'_> {
    fn engine(&self) -> &Engine {
        &self.ledger.engine
    }

    /// Plans the start of a process by a call, the `nth` of one commit.
    pub(crate) async fn plan(
        &self,
        (run, call): (RunId, RowRef),
        order: &BackgroundOrder,
        nth: u64,
    ) -> Result<Option<PlannedProcess>, EngineError> {
        let Some(keepers) = self.engine().keepers() else {
            return Ok(None);
        };
        let number = self.newest_number().await? + 1 + nth;
        let agent = self.ledger.id();
        let directory = keepers
            .directory
            .join(agent.to_string())
            .join(number.to_string());
        let started = self.engine().environment().now();
        let job = JobRecord {
            id: run,
            agent,
            number,
            command: order.command.clone(),
            started,
            deadline: started.after(keepers.time_limit),
            host: keepers.host.clone(),
            directory: directory.display().to_string(),
            pattern: order.pattern.clone(),
            read_to: 0,
            ended: None,
        };
        let row = Event::Process {
            command: order.command.clone(),
            data: ProcessData {
                process: Some(number),
                state: Some(ProcessState::Started),
                call: Some(call),
                workdir: Some(order.workdir.display().to_string()),
                ..ProcessData::default()
            },
        };
        let place = BackgroundPlace {
            number,
            directory,
            keeper: keepers.program.clone(),
            time_limit: keepers.time_limit,
        };
        Ok(Some(PlannedProcess { job, place, row }))
    }

    /// Returns the number of the agent's newest process; 0 if it has none.
    ///
    /// An imported agent has rows of its processes, but no records.
    pub(crate) async fn newest_number(&self) -> Result<u64, EngineError> {
        let store = self.engine().reader();
        let agent = self.ledger.id();
        if let Some(job) = store.jobs(agent, 1).await?.first() {
            return Ok(job.number);
        }
        let rows = store.process_rows(Span::whole(agent), PAGE_ROWS).await?;
        let numbers = rows.iter().filter_map(|row| {
            let process: ProcessData = data::read(row.data.as_deref());
            process.process
        });
        Ok(numbers.max().unwrap_or(0))
    }

    /// Stores the ends and matching lines of processes, with a notice for each.
    ///
    /// Returns true if there was one.
    pub(crate) async fn record_news(
        &mut self,
        front: &mut FrontEnd<'_>,
    ) -> Result<bool, EngineError> {
        let agent = self.ledger.id();
        let all = self.engine().processes().news(agent);
        for (job, news) in &all {
            let mut rows = Vec::new();
            let mut effects = Vec::new();
            if let Some(line) = &news.matched {
                effects.push(Effect::Job(JobEffect::DropPattern { job: job.id }));
                effects.push(self.notify(job, notices::matched(job, line)));
            }
            if let Some(state) = &news.end {
                let (row, with) = self.ending(job, state).await;
                rows.push(row);
                effects.extend(with);
                rows.extend(self.changes_of(job, Some(front)).await?);
            }
            let plan = CommitPlan::events(rows).with(effects);
            let rows = self.ledger.commit(plan.waiting(front)).await?;
            self.engine().processes().drop_news(job.id);
            if news.end.is_some() {
                remove_recorded(self.engine(), agent, job.id).await;
            }
            front.emit_rows(rows);
        }
        Ok(!all.is_empty())
    }

    /// Returns the row about files that an ended process changed, if there is one.
    async fn changes_of(
        &self,
        job: &JobRecord,
        front: Option<&mut FrontEnd<'_>>,
    ) -> Result<Option<Event>, EngineError> {
        let rows = self
            .engine()
            .reader()
            .process_rows(Span::whole(job.agent), PAGE_ROWS);
        let call = rows.await?.iter().find_map(|row| {
            let process: ProcessData = data::read(row.data.as_deref());
            process.call.filter(|_| process.process == Some(job.number))
        });
        let Some(call) = call else {
            return Ok(None);
        };
        store_recording(self.ledger, (call, job.id), front).await
    }

    /// Returns the row and the effects of an end, with a notice about it.
    async fn ending(&self, job: &JobRecord, state: &KeptState) -> (Event, Vec<Effect>) {
        let end = match state {
            KeptState::Ended(end) => Some(end),
            KeptState::Running | KeptState::Gone => None,
        };
        if end.is_none() {
            end_processes(job.id).await;
        }
        let blank = &*self.engine().safety().blank;
        let text = notices::ended(job, end, blank).await;
        let effects = vec![self.end_effect(job.id), self.notify(job, text)];
        (ended_row(job, end), effects)
    }

    /// Returns the effect that ends the record of a process.
    pub(crate) fn end_effect(&self, job: RunId) -> Effect {
        let ended = self.engine().environment().now();
        Effect::Job(JobEffect::End { job, ended })
    }

    fn notify(&self, job: &JobRecord, text: String) -> Effect {
        Effect::Mail(MailEffect::Notify {
            mail: draw_mail(self.engine().environment()),
            to: job.agent,
            process: job.number,
            text,
            at: self.engine().environment().now(),
        })
    }

    /// Takes over the agent's processes from a process that died, or that gave the lease back.
    ///
    /// Running ones are watched from now on. The processes of a dead keeper are ended.
    pub(crate) async fn adopt(&self) -> Result<AdoptedProcesses, EngineError> {
        let mut adopted = AdoptedProcesses::default();
        let open = self
            .engine()
            .reader()
            .open_jobs(Some(self.ledger.id()))
            .await?;
        for job in open {
            if self.engine().processes().watches(job.id) {
                adopted.running.insert(job.id, job.number);
                continue;
            }
            let state = if is_here(self.engine(), &job) {
                keeper::look(Path::new(&job.directory)).await
            } else if job.deadline < self.engine().environment().now() {
                // Its keeper has stopped it by now, if its machine still runs.
                KeptState::Gone
            } else {
                adopted.running.insert(job.id, job.number);
                continue;
            };
            if state == KeptState::Running {
                adopted.running.insert(job.id, job.number);
                self.engine().processes().watch(self.engine().hub(), job);
                continue;
            }
            let (row, effects) = self.ending(&job, &state).await;
            adopted.rows.push(row);
            adopted.rows.extend(self.changes_of(&job, None).await?);
            adopted.effects.extend(effects);
        }
        Ok(adopted)
    }

    /// Returns the cookies of the agent's processes.
    pub(crate) fn own_runs(&self) -> Vec<String> {
        let own = self.engine().processes().running(self.ledger.id());
        own.iter().map(|job| cookie_of(Some(job.id))).collect()
    }

    /// Watches all running processes of the agent that are not watched yet.
    pub(crate) async fn watch_all(&self) -> Result<(), EngineError> {
        let engine = self.engine();
        for job in engine.reader().open_jobs(Some(self.ledger.id())).await? {
            if is_here(engine, &job) {
                engine.processes().watch(engine.hub(), job);
            }
        }
        Ok(())
    }

    /// Ends the processes of the agent on this machine with higher numbers, and stores their ends.
    pub(crate) async fn end_after(
        &mut self,
        number: u64,
        cause: StopCause,
    ) -> Result<usize, EngineError> {
        let open = self
            .engine()
            .reader()
            .open_jobs(Some(self.ledger.id()))
            .await?;
        let here = open.into_iter().filter(|job| is_here(self.engine(), job));
        let here: Vec<JobRecord> = here.filter(|job| job.number > number).collect();
        for job in &here {
            let end = stop_process(job, cause).await;
            self.engine().processes().claim_end(job.id);
            let effects = vec![self.end_effect(job.id)];
            let mut rows = vec![ended_row(job, end.as_ref())];
            rows.extend(self.changes_of(job, None).await?);
            let plan = CommitPlan::events(rows).with(effects);
            self.ledger.commit(plan).await?;
            remove_recorded(self.engine(), job.agent, job.id).await;
        }
        Ok(here.len())
    }
}

/// Returns the directory of a command that may go on in the background.
pub(crate) fn foreground_directory(
    keepers: &Keepers,
    agent: AgentId,
    run: Option<RunId>,
) -> PathBuf {
    keepers
        .directory
        .join(agent.to_string())
        .join(cookie_of(run))
}

/// Ends the command of a call that the former holder of its agent started, and removes its files.
/// Returns the number of processes that still ran.
pub(crate) async fn end_foreground(engine: &EngineReader, agent: AgentId, run: RunId) -> usize {
    let directory = engine
        .keepers()
        .map(|keepers| foreground_directory(keepers, agent, Some(run)));
    let mut ended = 0;
    // A keeper that has not started its command yet has no process that the cookie would find.
    if let Some(directory) = &directory {
        let stopped = timeout(STOP_PATIENCE, keeper::stop(directory, StopCause::Request)).await;
        if let Ok(KeptState::Ended(end)) = stopped {
            ended += usize::from(end.stopped == Some(StopCause::Request));
        }
    }
    let cookie = cookie_of(Some(run));
    let found = tokio::task::spawn_blocking(move || end_cookie(&cookie)).await;
    if let Some(directory) = &directory {
        keeper::remove(directory).await;
    }
    ended + found.unwrap_or(0)
}

/// Returns true if a process runs on this machine.
pub(crate) fn is_here(engine: &EngineReader, job: &JobRecord) -> bool {
    let keepers = engine.keepers();
    keepers.is_some_and(|keepers| keepers.host == job.host)
}

/// Ends a process of this machine; returns its end, if its keeper lived.
pub(crate) async fn stop_process(job: &JobRecord, cause: StopCause) -> Option<ProcessEnd> {
    match keeper::stop(Path::new(&job.directory), cause).await {
        KeptState::Ended(end) => Some(end),
        KeptState::Running | KeptState::Gone => {
            end_processes(job.id).await;
            None
        }
    }
}

/// Returns the running processes of all living agents, in order of start.
pub(crate) async fn running_processes(
    engine: &EngineReader,
) -> Result<Vec<JobRecord>, EngineError> {
    let mut open = engine.reader().open_jobs(None).await?;
    let owners = open.iter().map(|job| job.agent).collect();
    let dead = engine.reader().dead_among(owners).await?;
    open.retain(|job| !dead.contains(&job.agent));
    Ok(open)
}

impl Engine {
    /// Returns the running processes of this process's agents, by agent and number.
    pub fn listed_processes(&self) -> Vec<ListedProcess> {
        let mut listed = self.processes().list();
        for process in &mut listed {
            let line = (self.safety().blank)(process.last_line.as_bytes()).into_owned();
            process.last_line = String::from_utf8_lossy(&line).into_owned();
        }
        listed
    }

    /// Stops the processes of this process's agents, because the user quits.
    ///
    /// The next process that opens an agent records the ends, so no notice wakes an agent now.
    pub async fn stop_processes(&self) {
        let mut stops = tokio::task::JoinSet::new();
        for job in self.processes().take_all() {
            stops.spawn(async move {
                stop_process(&job, StopCause::Request).await;
            });
        }
        while stops.join_next().await.is_some() {}
    }

    /// Ends the processes of killed agents that no process holds.
    ///
    /// A living holder ends those of its agents itself.
    pub(crate) async fn end_processes_of(&self, killed: &[AgentId]) -> Result<(), EngineError> {
        for agent in killed {
            if self.hub().is_working(*agent).is_some() {
                continue;
            }
            for job in self.reader().open_jobs(Some(*agent)).await? {
                if !is_here(self, &job) {
                    continue;
                }
                stop_process(&job, StopCause::OwnerKilled).await;
                let owner = self.reader().agent(*agent).await?.and_then(|it| it.owner);
                let is_held = match owner {
                    Some(owner) => self.reader().is_process_alive(&owner).await?,
                    None => false,
                };
                if !is_held {
                    let ended = self.environment().now();
                    let end = Effect::Job(JobEffect::End { job: job.id, ended });
                    let batch = Batch {
                        with: vec![end],
                        ..Batch::default()
                    };
                    self.commit_without_lease(batch).await?;
                }
            }
        }
        Ok(())
    }
}

/// Ends all processes of a run whose keeper is dead.
async fn end_processes(run: RunId) {
    let cookie = cookie_of(Some(run));
    let _ = tokio::task::spawn_blocking(move || end_cookie(&cookie)).await;
}

/// Returns the row of an end; without an exit status the process is lost.
pub(crate) fn ended_row(job: &JobRecord, end: Option<&ProcessEnd>) -> Event {
    let cause = match end {
        None => ProcessCause::Lost,
        Some(end) => match end.stopped {
            None => ProcessCause::Exit,
            Some(StopCause::Request | StopCause::Deadline) => ProcessCause::Stop,
            Some(StopCause::OwnerKilled) => ProcessCause::Kill,
        },
    };
    Event::Process {
        command: job.command.clone(),
        data: ProcessData {
            process: Some(job.number),
            state: Some(ProcessState::Ended),
            exit: end.and_then(|end| end.exit),
            signal: end.and_then(|end| end.signal),
            cause: Some(cause),
            ..ProcessData::default()
        },
    }
}

/// Returns the directory of a process.
pub(crate) fn directory_of(job: &JobRecord) -> PathBuf {
    PathBuf::from(&job.directory)
}
