//! Task of an agent in this process: runs jobs, reports, receives requests.

use std::any::Any;
use std::time::Duration;

use ikigai_core::AgentId;
use ikigai_core::data::{Category, Cause};
use ikigai_store::Agent;
use ikigai_tools::process::keeper::StopCause;
use tokio::sync::mpsc;

use crate::commands::{Dispatcher, carry_out_waiting, store_merge, store_terminal_run};
use crate::family::{ChildReport, Started};
use crate::frontend::{AgentJob, FrontEnd, Outcome, Stop, UiEvent, UserRequest, WaitingLine};
use crate::hub::Seat;
use crate::input::UserInput;
use crate::ledger::{CommitPlan, Ledger};
use crate::response::failure;
use crate::turn::check_resumable;
use crate::{EngineError, Worker};

/// Time that stopping agents have to store their outcome.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// End of a wait for other agents.
enum Awaited {
    /// They finished; they may have left mail.
    Done {
        reports: bool,
    },
    /// A request interrupts the wait.
    Requested,
    Stopped(Stop),
}

impl Worker {
    /// Runs a job, then waits for children that its model forked meanwhile.
    ///
    /// Their mail, when the last of them has finished, starts one more turn.
    pub async fn work(
        &mut self,
        job: AgentJob,
        front: &mut FrontEnd<'_>,
    ) -> Result<Outcome, EngineError> {
        self.job_loop().work(job, front).await
    }

    /// Waits for agents that run with this one before leaving.
    ///
    /// Returns the stop that ended the wait, if any.
    pub async fn see_children_out(
        &mut self,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        self.job_loop().see_children_out(front).await
    }

    fn job_loop(&mut self) -> JobLoop<'_> {
        JobLoop { worker: self }
    }
}

/// Runs the jobs of one agent, and waits for its children.
pub(super) struct JobLoop<'a> {
    pub(super) worker: &'a mut Worker,
}

impl JobLoop<'_> {
    async fn work(
        &mut self,
        job: AgentJob,
        front: &mut FrontEnd<'_>,
    ) -> Result<Outcome, EngineError> {
        self.worker
            .engine()
            .hub()
            .watch(self.worker.engine().shared_reader());
        let seat = self.take_seat(front);
        let outcome = self.work_seated(job, front).await;
        drop(seat);
        // Keep requests of the last moment.
        if outcome.is_ok()
            && let Some(Stop::Interrupt(cause @ (Cause::Exit | Cause::Kill))) =
                self.worker.drain(front).await?
        {
            return Ok(Outcome::Interrupted(cause));
        }
        outcome
    }

    /// Registers an agent of a front end, so that others can kill and await it.
    fn take_seat(&self, front: &mut FrontEnd<'_>) -> Option<Seat> {
        let agent = self.worker.agent().state.agent();
        if self.worker.engine().hub().is_working(agent).is_some() {
            return None;
        }
        let (seat, others) = self.worker.engine().hub().enlist(agent);
        front.listen_to(others);
        Some(seat)
    }

    async fn work_seated(
        &mut self,
        job: AgentJob,
        front: &mut FrontEnd<'_>,
    ) -> Result<Outcome, EngineError> {
        let own = self.worker.agent().state.agent();
        let mut outcome = self.carry_out(job, front).await?;
        loop {
            if self.worker.engine().hub().is_killed(own) {
                return Ok(Outcome::Interrupted(Cause::Kill));
            }
            // A command may have ended the turn and may start another.
            if let Some(job) = self.next_errand(front).await? {
                outcome = self.carry_out(job, front).await?;
                continue;
            }
            if self.worker.children().is_empty() {
                return Ok(outcome);
            }
            if let Some(stop) = self.worker.take_stop() {
                // A stop of the agent stops the agents that run with it.
                self.stop_others(&stop).await;
                return Ok(outcome);
            }
            if outcome != Outcome::Completed {
                return Ok(outcome);
            }
            match self.await_children(front).await? {
                Awaited::Stopped(Stop::Interrupt(cause)) => outcome = Outcome::Interrupted(cause),
                Awaited::Stopped(Stop::Deadline(after)) => {
                    outcome = Outcome::Failed(format!(
                        "the child agents did not finish within {} s",
                        after.as_secs()
                    ));
                }
                // A child forked by a command reports in its own log only.
                Awaited::Done { reports: true } if self.has_mail().await? => {
                    outcome = self.carry_out(AgentJob::Mail, front).await?;
                }
                Awaited::Done { .. } | Awaited::Requested => {}
            }
        }
    }

    /// Returns the next job after a turn: of commands, other agents, or the user.
    async fn next_errand(
        &mut self,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<AgentJob>, EngineError> {
        if let Some(job) = carry_out_waiting(self.worker, front).await? {
            return Ok(Some(job));
        }
        while let Some(job) = front.jobs.pop_front() {
            let is_moot = match job {
                AgentJob::Mail => !self.has_mail().await?,
                AgentJob::Processes => {
                    let own = self.worker.id();
                    self.worker.engine().processes().news(own).is_empty()
                }
                AgentJob::Resume => matches!(
                    check_resumable(self.worker.ledger_mut()).await,
                    Err(EngineError::NothingToResume)
                ),
                _ => false,
            };
            if !is_moot {
                return Ok(Some(job));
            }
        }
        Ok(None)
    }

    /// Stores the lines that were typed before the program exits.
    /// Messages wait as mail; no turn begins, and no shell command starts.
    async fn finish_lines(&mut self, front: &mut FrontEnd<'_>) {
        let mut finished = self.worker.drain(front).await.map(drop);
        while finished.is_ok() {
            let starts_shell = |waiting: &WaitingLine| matches!(waiting.input, UserInput::Shell(_));
            front.at_break.retain(|waiting| !starts_shell(waiting));
            front.after_turn.retain(|waiting| !starts_shell(waiting));
            match carry_out_waiting(self.worker, front).await {
                Ok(None) => return,
                Ok(Some(_)) => {}
                Err(error) => finished = Err(error),
            }
        }
        if let Err(error) = finished {
            front.emit(UiEvent::Warning(error.to_string()));
        }
    }

    async fn see_children_out(
        &mut self,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        // Handle kills meanwhile.
        let _seat = self.take_seat(front);
        loop {
            match self.await_children(front).await? {
                Awaited::Stopped(stop) => return Ok(Some(stop)),
                Awaited::Done { .. } => return Ok(None),
                // The front end is about to exit: its messages become mail for the next turn.
                Awaited::Requested => {}
            }
        }
    }

    /// Drops the view, since hundreds of agents may be idle.
    ///
    /// The next turn reads the rows that it needs.
    async fn rest(&mut self) {
        let own = self.worker.agent().state.agent();
        // Keep the view if it cannot be read again.
        if let Ok(agent) = Agent::restore(self.worker.engine().reader(), own).await
            && agent.state.head() == self.worker.agent().state.head()
        {
            self.worker.ledger_mut().agent = agent;
        }
    }

    async fn carry_out(
        &mut self,
        job: AgentJob,
        front: &mut FrontEnd<'_>,
    ) -> Result<Outcome, EngineError> {
        self.worker.take_stop();
        match job {
            AgentJob::Say(text) => self.worker.turn(&text, front).await,
            AgentJob::Answer => self.worker.answer(front).await,
            AgentJob::Mail if !self.has_mail().await? => Ok(Outcome::Completed),
            AgentJob::Mail => self.worker.answer_mail(front).await,
            AgentJob::Processes => {
                if self.worker.processes().record_news(front).await? {
                    return self.worker.answer_mail(front).await;
                }
                Ok(Outcome::Completed)
            }
            AgentJob::Resume => self.worker.resume(front).await,
            AgentJob::Retry => self.worker.retry(front).await,
            AgentJob::GoOn => self.worker.go_on(front).await,
            AgentJob::Line(line) => {
                front.at_break.push_back(line.into());
                Ok(Outcome::Completed)
            }
            AgentJob::Submit(submission) => {
                if submission.input.is_message() {
                    return self.worker.handle_submission(submission, front).await;
                }
                front.at_break.push_back(submission.into());
                Ok(Outcome::Completed)
            }
            AgentJob::TerminalRan(run) => {
                store_terminal_run(self.worker, run, front).await?;
                Ok(Outcome::Completed)
            }
            AgentJob::StoreSummary(draft, edited) => {
                self.worker
                    .context_keeper()
                    .store_edited(*draft, edited, front)
                    .await?;
                Ok(Outcome::Completed)
            }
            AgentJob::Merge(preview, text) => {
                match store_merge(self.worker, &preview, &text, front).await {
                    Err(EngineError::Refused(reason)) => front.emit(UiEvent::Warning(reason)),
                    merged => merged?,
                }
                Ok(Outcome::Completed)
            }
        }
    }

    async fn has_mail(&self) -> Result<bool, EngineError> {
        let own = self.worker.agent().state.agent();
        Ok(!self
            .worker
            .engine()
            .reader()
            .queued_mail(own)
            .await?
            .is_empty())
    }

    /// Waits until all agents that it started are idle, or a request comes.
    async fn await_children(&mut self, front: &mut FrontEnd<'_>) -> Result<Awaited, EngineError> {
        let mut changes = self
            .worker
            .engine()
            .hub()
            .changes(self.worker.engine().shared_reader());
        let reports = self.worker.children().iter().any(|child| child.reports);
        loop {
            changes.mark_unchanged();
            let hub = self.worker.engine().hub().clone();
            let still_works = |child: &Started| hub.is_working(child.id) == Some(true);
            if !self.worker.children().iter().any(still_works) {
                self.worker.forget_children();
                return Ok(Awaited::Done { reports });
            }
            tokio::select! {
                biased;
                request = front.next() => {
                    let stop = self.worker.handle(request, front).await?;
                    // A command that interrupts turns finds no turn to interrupt.
                    if !front.after_turn.is_empty() || !front.at_break.is_empty() {
                        return Ok(Awaited::Requested);
                    }
                    if let Some(stop) = stop {
                        self.stop_others(&stop).await;
                        return Ok(Awaited::Stopped(stop));
                    }
                    if !front.queued.is_empty() {
                        front.jobs.push_back(AgentJob::Mail);
                    }
                    if !front.jobs.is_empty() {
                        return Ok(Awaited::Requested);
                    }
                }
                _ = changes.changed() => {}
            }
        }
    }

    /// Stops agents that run with this one and waits until they stored their end.
    async fn stop_others(&mut self, stop: &Stop) {
        let hub = self.worker.engine().hub().clone();
        for child in self.worker.children() {
            hub.deliver(child.id, UserRequest::Stop(stop.clone()));
        }
        let mut changes = hub.changes(self.worker.engine().shared_reader());
        let ended = async {
            loop {
                changes.mark_unchanged();
                let works = |child: &Started| hub.is_working(child.id) == Some(true);
                if !self.worker.children().iter().any(works) || changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // The next process that opens an agent settles it if it stored nothing by then.
        let _ = tokio::time::timeout(LAST_WORDS, ended).await;
        self.worker.forget_children();
    }
}

/// Starts the task of an agent without a front end, perhaps with a job.
///
/// A panic ends this task only: it is recorded, and other agents continue.
pub(crate) fn start(ledger: Ledger, job: Option<AgentJob>) {
    let engine = ledger.engine.clone();
    let agent = ledger.id();
    let (seat, requests) = engine.hub().enlist(agent);
    engine.hub().watch(engine.shared_reader());
    engine
        .hub()
        .know_mail(agent, ledger.old_mail.iter().copied());
    if job.is_none() {
        engine.hub().set_minding(agent);
    }
    let task = tokio::spawn(live(Worker::new(ledger, &Dispatcher), job, requests));
    tokio::spawn(async move {
        if let Err(broken) = task.await
            && let Ok(panicked) = broken.try_into_panic()
        {
            broken_down(&engine, agent, &reason_of(&*panicked)).await;
        }
        // Keep it until then, so that waiting tasks learn its outcome.
        drop(seat);
    });
}

async fn live(
    mut worker: Worker,
    job: Option<AgentJob>,
    mut requests: mpsc::Receiver<UserRequest>,
) {
    let engine = worker.engine().clone();
    let agent = worker.agent().state.agent();
    let (observer, answers) = engine.hub().observer();
    let name = worker.settings().name.clone().unwrap_or_default();
    let mut tell = |update: UiEvent| {
        if let Some(observer) = &observer {
            observer(agent, &name, &update);
        }
    };
    let mut next = NextWork {
        job,
        ..NextWork::default()
    };
    loop {
        let front = FrontEnd::new(&mut requests, &mut tell);
        let mut front = if answers {
            front
        } else {
            front.without_answers()
        };
        front.push_first(next.pending);
        let has_worked = next.job.is_some();
        let said = match &next.job {
            Some(AgentJob::Say(text)) => Some(text.clone()),
            _ => None,
        };
        let outcome = match next.job {
            Some(job) => {
                engine.hub().set_working(agent, true);
                worker.work(job, &mut front).await
            }
            None => worker.greet(&mut front).await.map(|()| Outcome::Completed),
        };
        let is_completed = matches!(outcome, Ok(Outcome::Completed));
        let is_left = match (outcome, said) {
            // No part of the message is stored, so the agent can continue.
            (Err(error), Some(said)) if error.refuses_message() => {
                front.not_stored(UserInput::Message(said).into(), &error);
                false
            }
            (Err(error), _) => {
                front.end(&error);
                break;
            }
            (Ok(outcome), _) => outcome == Outcome::Interrupted(Cause::Exit),
        };
        if engine.hub().is_killed(agent) {
            break;
        }
        if is_left || has_worked && engine.hub().is_dismissed(agent) {
            worker.job_loop().finish_lines(&mut front).await;
            break;
        }
        // Handle requests and mail of the last moment as new ones. Mail waits after a stop.
        let wakes = has_worked && worker.takes_new_mail().await;
        if !front.queued.is_empty() || wakes && is_completed {
            front.jobs.push_back(AgentJob::Mail);
        }
        match worker.job_loop().next_errand(&mut front).await {
            Ok(None) => {}
            Ok(Some(job)) => {
                next = NextWork {
                    job: Some(job),
                    pending: front.take_waiting(),
                };
                continue;
            }
            Err(error) => {
                front.end(&error);
                break;
            }
        }
        worker.job_loop().rest().await;
        engine.hub().set_working(agent, false);
        if worker.takes_new_mail().await {
            engine.hub().wake(agent);
        }
        match listen(&mut worker, &mut front).await {
            Some(pending) => next = pending,
            None => break,
        }
    }
    if engine.hub().is_killed(agent) {
        // A process that cannot be reached now ends when its keeper's time is over.
        let _ = worker
            .processes()
            .end_after(0, StopCause::OwnerKilled)
            .await;
    }
    // The lease ends with the process anyway.
    let _ = worker.release().await;
}

/// Next job of an agent.
#[derive(Default)]
struct NextWork {
    job: Option<AgentJob>,
    /// Requests to handle during the job.
    pending: Vec<UserRequest>,
}

impl From<AgentJob> for NextWork {
    fn from(job: AgentJob) -> Self {
        Self {
            job: Some(job),
            pending: Vec::new(),
        }
    }
}

/// Waits for the next job of an idle agent; none if it ends.
async fn listen(worker: &mut Worker, front: &mut FrontEnd<'_>) -> Option<NextWork> {
    let agent = worker.agent().state.agent();
    loop {
        let request = if worker.engine().hub().is_dismissed(agent) {
            // A command may have swallowed the stop, so no other request might come.
            front.next_pending()?
        } else {
            front.next().await
        };
        match request {
            UserRequest::Line(input) => {
                return Some(match worker.resolved(input).await {
                    UserInput::Message(text) => AgentJob::Say(text).into(),
                    input => AgentJob::Line(input).into(),
                });
            }
            UserRequest::Submit(mut submission) => {
                submission.input = worker.resolved(submission.input).await;
                return Some(AgentJob::Submit(submission).into());
            }
            UserRequest::Do(job) => return Some(job.into()),
            UserRequest::Stop(Stop::Interrupt(Cause::Kill | Cause::Exit)) => return None,
            UserRequest::List(listing) => {
                worker.engine().hub().set_minding(agent);
                if let Err(error) = worker.interpreter().list(worker, listing, front).await {
                    front.emit(UiEvent::Warning(error.to_string()));
                }
            }
            // The answer to a question of a stopped turn resumes the turn (E9d).
            answer @ UserRequest::Answer { .. } => {
                return Some(NextWork {
                    job: Some(AgentJob::Resume),
                    pending: vec![answer],
                });
            }
            UserRequest::TakeBack(mail) => {
                worker.engine().hub().set_minding(agent);
                worker.inbox().take_back(mail, front).await;
            }
            // There is nothing to stop.
            UserRequest::Stop(_) => {}
        }
        worker.engine().hub().set_working(agent, false);
    }
}

/// Records that an agent's task panicked, so that its turn does not stay open.
async fn broken_down(engine: &crate::Engine, agent: AgentId, reason: &str) {
    let text = format!("internal error in ikigai (please report): {reason}");
    let (name, recorded) = match record_breakdown(engine, agent, &text).await {
        Ok(name) => (name, Ok(())),
        Err(error) => (agent.to_string(), Err(error)),
    };
    if let (Some(observer), _) = engine.hub().observer() {
        observer(agent, &name, &UiEvent::Warning(text));
        if let Err(error) = recorded {
            observer(agent, &name, &UiEvent::Warning(error.to_string()));
        }
    }
}

/// Settles the agent's turn and stores the reason for it and its parent. Returns its name.
async fn record_breakdown(
    engine: &crate::Engine,
    agent: AgentId,
    text: &str,
) -> Result<String, EngineError> {
    let record = engine.reader().agent(agent).await?;
    let record = record.ok_or_else(|| EngineError::NoSuchAgent(agent.to_string()))?;
    // The lease is still this process's.
    let mut worker = engine.open(&record).await?;
    let report = worker
        .ledger()
        .report(&ChildReport::of_failure(text))
        .await?;
    let row = failure(Category::Internal, text, None, 1);
    let with = report.into_iter().collect();
    let rows = worker
        .ledger_mut()
        .commit(CommitPlan::events(vec![row]).with(with))
        .await?;
    worker.ledger_mut().settled.extend(rows);
    worker.release().await?;
    Ok(record.name)
}

/// Returns the message of a panic.
fn reason_of(panicked: &(dyn Any + Send)) -> String {
    let text = panicked
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    let text = text.or_else(|| panicked.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no reason given".to_owned())
}
