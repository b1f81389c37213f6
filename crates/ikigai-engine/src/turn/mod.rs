//! A turn, from the message to the last answer.
//!
//! The message is stored, the request projected from the log, the answer streamed into a draft and
//! stored whole, its calls executed and their results stored, until the model makes no more calls.

mod agent_calls;
mod ask;
mod background_calls;
mod calls;
mod chains;
mod command_context;
mod compact;
mod context_budget;
mod draft;
mod environment;
mod interpreter;
mod other_agents;
mod pins;
mod preparation;
mod questions;
mod queue;
mod records;
mod restored_files;
mod settle;
mod summary_edit;
mod tool_run;
mod turn_loop;
mod worker;

pub(crate) use command_context::CommandContext;
pub(crate) use compact::{Summary, Written};
pub(crate) use interpreter::Interpreter;
pub(crate) use other_agents::{resume_other, wake_other};
pub(crate) use preparation::check_resumable;
use preparation::{PinStage, Turn};
pub(crate) use restored_files::FileRestorer;
pub use worker::Worker;

use ikigai_core::data::{Category, Via};
use ikigai_core::{Event, Micros, RowRef, Seq};
use ikigai_store::CommitError;

use self::queue::{Boundary, Senders, consume, withdrawn};
use self::turn_loop::TurnLoop;
use crate::calls::OpenCall;
use crate::environment::CrashPoint;
use crate::family::ChildReport;
use crate::frontend::{FrontEnd, Outcome, Stop, Submission, UiEvent};
use crate::ledger::CommitPlan;
use crate::response::failure;
use crate::rewind_effects::leave_for;
use crate::{EngineError, mentions};

/// Next step of a turn. Between two steps everything is stored.
enum TurnStep {
    /// Send a request.
    Ask,
    /// Execute these calls of the answer.
    RunTools(Vec<OpenCall>),
    /// End the turn.
    Done(Outcome),
}

impl Worker {
    /// Sends a message to the agent and runs the turn.
    pub async fn turn(
        &mut self,
        text: &str,
        front: &mut FrontEnd<'_>,
    ) -> Result<Outcome, EngineError> {
        let turn = self.store_message(text, None, front).await?;
        Box::pin(TurnLoop { worker: self, turn }.run(TurnStep::Ask, front)).await
    }

    /// Stores a submitted message and runs its turn.
    ///
    /// A message that could not be stored is reported to the front end, which keeps it; that is not
    /// an error of the agent unless it lost its lease.
    pub(crate) async fn handle_submission(
        &mut self,
        submission: Submission,
        front: &mut FrontEnd<'_>,
    ) -> Result<Outcome, EngineError> {
        let Submission { id, at, input } = &submission;
        match self.store_message(input.line(), Some(*at), front).await {
            Ok(turn) => {
                front.emit(UiEvent::Received(*id));
                Box::pin(TurnLoop { worker: self, turn }.run(TurnStep::Ask, front)).await
            }
            Err(error) => {
                let is_over = matches!(&error, EngineError::Commit(CommitError::Fenced { .. }));
                let outcome = Outcome::Failed(error.to_string());
                front.not_stored(submission.into(), &error);
                if is_over { Err(error) } else { Ok(outcome) }
            }
        }
    }

    /// Stores a message with the rows that precede it, and prepares its turn.
    async fn store_message(
        &mut self,
        text: &str,
        at: Option<Micros>,
        front: &mut FrontEnd<'_>,
    ) -> Result<Turn, EngineError> {
        if text.trim().is_empty() {
            return Err(EngineError::EmptyMessage);
        }
        self.tell_settled(front).await?;
        let turn = Turn::prepare(self.ledger()).await?;
        let (message, files) = mentions::message_row(self.ledger_mut(), text).await?;
        let mut turn = self.context_keeper().turn_for(&message, turn).await?;
        turn.pins = PinStage::Take;
        turn.check_message(&message, &self.ledger().agent)?;
        for file in files {
            front.emit(UiEvent::Notice(file));
        }
        let closed = self.ledger_mut().close_open_calls().await?;
        // Queued messages are older than this one.
        let waiting = self.inbox().waiting(Senders::Anybody).await?;
        let queued = self.inbox().shown(&waiting).await?;
        let changes = pins::pin_changes(self.ledger_mut()).await?;
        changes.warn(front);
        let first = (closed.len() + changes.rows.len()) as u64;
        let agent = self.ledger().agent.state.agent();
        let consume = |head: Seq| consume(&waiting, RowRef::new(agent, Seq(head.0 + first)));
        let mut messages: Vec<_> = queued.into_iter().chain([message]).collect();
        let answers = front.answers;
        environment::add(self.ledger_mut(), &mut messages, answers, &changes).await?;
        let events = closed.into_iter().chain(changes.rows).chain(messages);
        let before = usize::try_from(first).unwrap_or(usize::MAX);
        let plan = CommitPlan::events(events.collect()).by_senders(before, &waiting);
        self.ledger().crash_point(CrashPoint::BeforeMessageStored);
        let rows = self
            .ledger_mut()
            .commit(plan.with_at(&consume).at_time(at))
            .await?;
        self.ledger().crash_point(CrashPoint::AfterMessageStored);
        for mail in &waiting {
            front.emit(UiEvent::Delivered(mail.id));
        }
        front.emit_rows(rows);
        Ok(turn)
    }

    /// Answers messages in the log, such as a fork's prompt.
    pub(crate) async fn answer(
        &mut self,
        front: &mut FrontEnd<'_>,
    ) -> Result<Outcome, EngineError> {
        self.tell_settled(front).await?;
        let mut turn = Turn::prepare(self.ledger()).await?;
        turn.pins = PinStage::Read;
        Box::pin(TurnLoop { worker: self, turn }.run(TurnStep::Ask, front)).await
    }

    /// Delivers the agent's mail and answers it.
    pub(crate) async fn answer_mail(
        &mut self,
        front: &mut FrontEnd<'_>,
    ) -> Result<Outcome, EngineError> {
        self.tell_settled(front).await?;
        let waiting = self.inbox().waiting(Senders::Anybody).await?;
        let is_chain_over = self.is_chain_over(&waiting).await?;
        let inbox = &mut self.inbox();
        let taken = inbox.take_in(Senders::Anybody, Boundary::Start, front);
        let pins = if taken.await? {
            PinStage::Take
        } else {
            PinStage::Read
        };
        let mut turn = Turn::prepare(self.ledger()).await?;
        turn.pins = pins;
        turn.chain_is_over = is_chain_over;
        Box::pin(TurnLoop { worker: self, turn }.run(TurnStep::Ask, front)).await
    }

    /// Resumes a stopped turn.
    pub async fn resume(&mut self, front: &mut FrontEnd<'_>) -> Result<Outcome, EngineError> {
        self.tell_settled(front).await?;
        check_resumable(self.ledger_mut()).await?;
        self.ledger()
            .crash_point(CrashPoint::BeforeResumptionStored);
        let rows = self
            .ledger_mut()
            .commit(CommitPlan::events(vec![Event::resume()]))
            .await?;
        self.ledger().crash_point(CrashPoint::AfterResumptionStored);
        front.emit_rows(rows);
        self.go_on(front).await
    }

    /// Repeats the last turn; its rows leave the path.
    pub async fn retry(&mut self, front: &mut FrontEnd<'_>) -> Result<Outcome, EngineError> {
        self.tell_settled(front).await?;
        Turn::prepare(self.ledger()).await?;
        let message = self.ledger_mut().last_message().await?;
        let (data, _) = leave_for(
            self.ledger().engine.reader(),
            &self.ledger().agent,
            message,
            Via::Retry,
        )
        .await?;
        self.ledger().crash_point(CrashPoint::BeforeRetryStored);
        let rows = self
            .ledger_mut()
            .commit(CommitPlan::events(vec![Event::Rewind(data)]))
            .await?;
        self.ledger().crash_point(CrashPoint::AfterRetryStored);
        front.emit_rows(rows);
        self.answer(front).await
    }

    /// Continues unfinished work in the log: open calls, or an unanswered message.
    pub(crate) async fn go_on(&mut self, front: &mut FrontEnd<'_>) -> Result<Outcome, EngineError> {
        let mut turn = Turn::prepare(self.ledger()).await?;
        turn.pins = PinStage::Current;
        let open = self.ledger_mut().open_calls().await?;
        let first = if open.is_empty() {
            TurnStep::Ask
        } else {
            TurnStep::RunTools(open)
        };
        TurnLoop { worker: self, turn }.run(first, front).await
    }

    /// Reports settled turns, after settling this worker's own unfinished one.
    pub(crate) async fn tell_settled(
        &mut self,
        front: &mut FrontEnd<'_>,
    ) -> Result<(), EngineError> {
        if self.is_unsettled() {
            self.settlement().settle().await?;
            self.set_unsettled(false);
        }
        for row in std::mem::take(&mut self.ledger_mut().settled) {
            front.emit(UiEvent::Settled(row));
        }
        Ok(())
    }

    /// Ends a turn that cannot continue, with these rows; the last one has the reason.
    async fn give_up(
        &mut self,
        events: Vec<Event>,
        text: String,
        front: &mut FrontEnd<'_>,
    ) -> Result<TurnStep, EngineError> {
        let outcome = Outcome::Failed(text);
        let report = failed_report(&outcome);
        self.ledger().crash_point(CrashPoint::BeforeFailureStored);
        let rows = self
            .ledger_mut()
            .commit_ending(events, Vec::new(), report.as_ref(), front)
            .await?;
        self.ledger().crash_point(CrashPoint::AfterFailureStored);
        front.emit_rows(rows);
        Ok(TurnStep::Done(outcome))
    }

    /// Builds the row with the reason of a stop, and the outcome.
    pub(super) fn stopped_by(&mut self, stop: &Stop) -> (Event, Outcome) {
        self.note_stop(stop);
        stop_event(stop)
    }

    /// Ends a turn between two steps.
    async fn stop_here(
        &mut self,
        stop: &Stop,
        front: &mut FrontEnd<'_>,
    ) -> Result<TurnStep, EngineError> {
        let taken = self.inbox().taken_back(stop, front).await?;
        let (event, outcome) = self.stopped_by(stop);
        let report = failed_report(&outcome);
        self.ledger().crash_point(CrashPoint::BeforeStopStored);
        let rows = self
            .ledger_mut()
            .commit_ending(vec![event], withdrawn(&taken), report.as_ref(), front)
            .await?;
        self.ledger().crash_point(CrashPoint::AfterStopStored);
        front.emit_rows(rows);
        front.hand_back(taken);
        Ok(TurnStep::Done(outcome))
    }
}

/// Builds the row and the outcome of a stopped turn.
fn stop_event(stop: &Stop) -> (Event, Outcome) {
    match stop {
        Stop::Interrupt(cause) => (Event::interrupted(*cause), Outcome::Interrupted(*cause)),
        Stop::Deadline(after) => {
            let text = format!("the turn did not finish within {} s", after.as_secs());
            let event = failure(Category::Limit, &text, None, 1);
            (event, Outcome::Failed(text))
        }
    }
}

/// Builds the report of a failed child. Its parent must not wait in vain.
fn failed_report(outcome: &Outcome) -> Option<ChildReport> {
    match outcome {
        Outcome::Failed(reason) => Some(ChildReport::of_failure(reason)),
        Outcome::Completed | Outcome::Interrupted(_) => None,
    }
}
