//! Requests to the model: sends one, streams the answer, stores its rows.

use std::time::Duration;

use ikigai_core::data::{Category, ErrorData};
use ikigai_core::path::Note;
use ikigai_core::project::{Scale, estimate_request, project, rows_behind};
use ikigai_core::{Event, Kind, Request, Row, RowRef};
use ikigai_providers::{
    AnswerBlock, Delta, FailureKind, Model, ProviderError, Response, ResponseStream, StopReason,
};
use ikigai_store::{Agent, Effect};
use tokio::sync::{AcquireError, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use super::chains::CHAIN_IS_OVER;
use super::draft::Draft;
use super::preparation::PinStage;
use super::queue::{Boundary, Senders, withdrawn};
use super::turn_loop::TurnLoop;
use super::{TurnStep, failed_report};
use crate::EngineError;
use crate::blobs::load_images;
use crate::budget::caps;
use crate::calls::OpenCall;
use crate::environment::CrashPoint;
use crate::family::ChildReport;
use crate::frontend::{FrontEnd, Outcome, Stop, UiEvent};
use crate::hub::Hub;
use crate::ledger::{CommitPlan, Estimate, Reservation, read_held};
use crate::response::{self, failure};

/// End of the stream.
enum Ending {
    Finished(Response),
    Failed(ProviderError),
    Stopped(Stop),
}

/// Permission to send a request.
enum Admission<'h> {
    /// With a place among the requests of this process, and the reserved estimate.
    Admitted(
        Result<SemaphorePermit<'h>, AcquireError>,
        Option<Reservation>,
    ),
    /// The turn was stopped meanwhile.
    Stopped(Stop),
    /// Refused for this reason.
    OverBudget(String),
}

/// Pause between two attempts to reserve while other requests run.
const BUDGET_PAUSE: Duration = Duration::from_secs(1);

impl TurnLoop<'_> {
    /// Adds the bytes of images. Informs the user if the model takes none.
    async fn add_images(
        &self,
        request: &mut Request,
        front: &mut FrontEnd<'_>,
    ) -> Result<(), EngineError> {
        let model = &*self.turn.model;
        read_held!(
            front,
            load_images(self.worker.engine().reader(), model, request)
        );
        let newest = request.messages.last();
        if !model.takes_images() && newest.is_some_and(|newest| newest.images().next().is_some()) {
            let text = format!(
                "{} does not take images: it gets a note instead",
                model.name()
            );
            front.emit(UiEvent::Notice(text));
        }
        Ok(())
    }

    /// Sends one request to the model and stores the answer.
    pub(super) async fn ask(&mut self, front: &mut FrontEnd<'_>) -> Result<TurnStep, EngineError> {
        if std::mem::take(&mut self.turn.chain_is_over) {
            let limit = failure(Category::Limit, CHAIN_IS_OVER, None, 1);
            let text = CHAIN_IS_OVER.to_owned();
            return self.worker.give_up(vec![limit], text, front).await;
        }
        if let Some(text) = self.turn.no_worktree.take() {
            let missing = failure(Category::Internal, &text, None, 1);
            return self.worker.give_up(vec![missing], text, front).await;
        }
        if self.turn.requests >= self.worker.engine().limits().requests {
            let text = format!("limit reached: {} requests in one turn", self.turn.requests);
            let limit = failure(Category::Limit, &text, None, 1);
            return self.worker.give_up(vec![limit], text, front).await;
        }
        self.turn.requests += 1;
        let Agent { state, view, .. } = self.worker.agent();
        let mut request = match project(state, view, &self.turn.target, &self.turn.window) {
            Ok(request) => request,
            Err(missing) => {
                let text = missing.to_string();
                let limit = failure(Category::Limit, &text, None, 1);
                return self.worker.give_up(vec![limit], text, front).await;
            }
        };
        self.add_images(&mut request, front).await?;
        if self.turn.requests > 1 && self.turn.requests == self.worker.engine().limits().requests {
            // Without tools the model has to answer: better than a turn that ends with nothing.
            request.tools.clear();
            let text = "last request of this turn: sent without tools";
            front.emit(UiEvent::Notice(text.to_owned()));
        }
        let scale = Scale::of(state, view, &self.turn.target, self.turn.scale);
        let input = scale.counted(estimate_request(&request));
        let estimate = Estimate::new(&*self.turn.model, input, 1);
        let hub = self.worker.engine().hub().clone();
        let mut draft = Draft::default();
        let (ending, reservation) = match self.admit(&hub, estimate, front).await? {
            Admission::Admitted(_permit, reservation) => {
                self.worker.crash_point(CrashPoint::BeforeRequest);
                let conversation = self.worker.agent().state.agent().to_string();
                let mut answer = self.turn.model.answer(request, &conversation);
                self.worker.crash_point(CrashPoint::AfterRequest);
                let ending = self
                    .stream(&mut *answer, self.turn.deadline, &mut draft, front)
                    .await?;
                release(answer);
                (ending, reservation)
            }
            Admission::Stopped(stop) => (Ending::Stopped(stop), None),
            Admission::OverBudget(text) => {
                let budget = failure(Category::Budget, &text, None, 1);
                return self.worker.give_up(vec![budget], text, front).await;
            }
        };
        if let Ending::Failed(error) = &ending
            && !draft.is_stored()
            && self
                .worker
                .context_keeper()
                .shrink_window(&mut self.turn, error, front)
        {
            return Ok(TurnStep::Ask);
        }
        self.turn.overflowed = false;
        if let Some(omitted) = self.refused_item(&ending) {
            let drop = draft.is_stored().then(|| self.drop_draft());
            self.worker.crash_point(CrashPoint::BeforeFailureStored);
            let rows = self
                .worker
                .commit(
                    CommitPlan::events(vec![omitted])
                        .with(drop.into_iter().collect())
                        .waiting(front),
                )
                .await?;
            self.worker.crash_point(CrashPoint::AfterFailureStored);
            front.emit_rows(rows);
            return Ok(TurnStep::Ask);
        }
        let taken = match &ending {
            Ending::Stopped(stop) => self.worker.inbox().taken_back(stop, front).await?,
            Ending::Finished(_) | Ending::Failed(_) => Vec::new(),
        };
        let is_empty = matches!(&ending, Ending::Finished(answer) if is_empty(answer));
        let with = withdrawn(&taken);
        let (rows, outcome) = self.finish(draft, ending, with, reservation, front).await?;
        let calls: Vec<_> = rows.iter().filter_map(OpenCall::of).collect();
        front.emit_rows(rows);
        front.hand_back(taken);
        if is_empty {
            let text = "the model returned an empty answer";
            front.emit(UiEvent::Warning(text.to_owned()));
        }
        match outcome {
            Outcome::Completed if !calls.is_empty() => Ok(TurnStep::RunTools(calls)),
            Outcome::Completed => self.answered_all(front).await,
            outcome => Ok(TurnStep::Done(outcome)),
        }
    }

    /// Starts another turn with messages that arrived meanwhile, unless the user stops it.
    async fn answered_all(&mut self, front: &mut FrontEnd<'_>) -> Result<TurnStep, EngineError> {
        let stop = match self.worker.context_keeper().await_summary(front).await? {
            Some(stop) => Some(stop),
            None => self.worker.drain(front).await?,
        };
        if let Some(stop) = stop {
            let taken = self.worker.inbox().taken_back(&stop, front).await?;
            if !taken.is_empty() {
                self.worker
                    .commit(CommitPlan::effects(withdrawn(&taken)).waiting(front))
                    .await?;
                front.hand_back(taken);
            }
            return Ok(TurnStep::Done(Outcome::Completed));
        }
        let inbox = &mut self.worker.inbox();
        let taken = inbox.take_in(Senders::User, Boundary::Start, front);
        if !taken.await? {
            return Ok(TurnStep::Done(Outcome::Completed));
        }
        self.turn.pins = PinStage::Take;
        self.turn.requests = 0;
        self.turn.calls = 0;
        self.turn.deadline = Instant::now() + self.worker.engine().limits().time;
        self.begin_turn(front).await?;
        Ok(TurnStep::Ask)
    }

    /// Waits for a place among the requests of this process, and reserves the estimate.
    async fn admit<'h>(
        &mut self,
        hub: &'h Hub,
        estimate: Estimate,
        front: &mut FrontEnd<'_>,
    ) -> Result<Admission<'h>, EngineError> {
        if hub.requests.available_permits() == 0 {
            let most = self.worker.engine().crowd().requests;
            let text = format!("waiting: {most} requests are running (the limit)");
            front.emit(UiEvent::Notice(text));
        }
        let mut is_told = false;
        loop {
            let permit = loop {
                tokio::select! {
                    biased;
                    request = front.next() => if let Some(stop) = self.worker.handle(request, front).await? {
                        return Ok(Admission::Stopped(stop));
                    },
                    permit = hub.requests.acquire() => break permit,
                }
            };
            let caps = read_held!(front, caps(self.worker.engine(), self.worker.agent()));
            let ledger = self.worker.ledger_mut();
            let refused = match ledger.reserve(&caps, estimate, Some(front)).await? {
                Ok(reservation) => return Ok(Admission::Admitted(permit, reservation)),
                Err(refused) => refused,
            };
            drop(permit);
            if !refused.may_fit_later {
                return Ok(Admission::OverBudget(refused.reason));
            }
            if !is_told {
                is_told = true;
                let text = "waiting: running requests may use up the budget";
                front.emit(UiEvent::Notice(text.to_owned()));
            }
            let end = Instant::now() + BUDGET_PAUSE;
            if let Some(stop) = self.pause_until(end, front).await? {
                return Ok(Admission::Stopped(stop));
            }
        }
    }

    /// Pauses, unless the turn is stopped.
    async fn pause_until(
        &mut self,
        end: Instant,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        loop {
            tokio::select! {
                biased;
                request = front.next() => if let Some(stop) = self.worker.handle(request, front).await? {
                    return Ok(Some(stop));
                },
                () = sleep_until(self.turn.deadline) => {
                    return Ok(Some(Stop::Deadline(self.worker.engine().limits().time)));
                }
                () = sleep_until(end) => return Ok(None),
            }
        }
    }

    async fn stream(
        &mut self,
        answer: &mut dyn ResponseStream,
        deadline: Instant,
        draft: &mut Draft,
        front: &mut FrontEnd<'_>,
    ) -> Result<Ending, EngineError> {
        let mut parts = 0_u32;
        let patience = answer.patience();
        let mut silent_until = Instant::now() + patience;
        loop {
            let due = draft.due.unwrap_or(deadline);
            tokio::select! {
                biased;
                request = front.next() => if let Some(stop) = self.worker.handle(request, front).await? {
                    return Ok(Ending::Stopped(stop));
                },
                () = sleep_until(deadline) => {
                    return Ok(Ending::Stopped(Stop::Deadline(self.worker.engine().limits().time)));
                }
                () = sleep_until(due), if draft.due.is_some() => {
                    self.worker.crash_point(CrashPoint::BeforeDraftStored);
                    self.store_draft(draft, front).await?;
                    self.worker.crash_point(CrashPoint::AfterDraftStored);
                }
                delta = answer.next() => {
                    if is_content(delta.as_ref()) {
                        silent_until = Instant::now() + patience;
                    }
                    match delta {
                    Some(Ok(Delta::Text(text))) => {
                        if parts == 0 {
                            self.worker.crash_point(CrashPoint::AtFirstWords);
                        }
                        parts += 1;
                        draft.add(&text);
                        front.emit(UiEvent::Text(text));
                    }
                    Some(Ok(Delta::Finished(response))) => return Ok(Ending::Finished(response)),
                    Some(Ok(Delta::Thinking(text))) => front.emit(UiEvent::Thinking(text)),
                    Some(Ok(Delta::Progress)) => {}
                    Some(Ok(Delta::Call(name))) => front.emit(UiEvent::Calling(name)),
                    Some(Ok(Delta::Waiting(wait))) => front.emit(UiEvent::Waiting(wait)),
                    Some(Ok(Delta::Again)) => {
                        draft.restart();
                        front.emit(UiEvent::Again);
                    }
                    Some(Err(error)) => return Ok(Ending::Failed(error)),
                    None => return Ok(Ending::Failed(cut_off())),
                    }
                }
                () = sleep_until(silent_until) => return Ok(Ending::Failed(silent(patience))),
            }
        }
    }

    /// Builds the row that omits rows that the provider refused by name. None if it named none, or
    /// only rows that are omitted already.
    fn refused_item(&self, ending: &Ending) -> Option<Event> {
        let Ending::Failed(error) = ending else {
            return None;
        };
        let index = error
            .names_message
            .filter(|_| error.kind == FailureKind::BadRequest)?;
        let Agent { state, view, .. } = self.worker.agent();
        let rows = rows_behind(state, view, &self.turn.target, &self.turn.window, index);
        // Messages of the user are never left out.
        let by_user = |row: &RowRef| {
            let said = view.entries().iter().rev().find(|entry| entry.at() == *row);
            said.is_some_and(|entry| entry.kind() == Some(Kind::User))
        };
        if rows.iter().any(by_user) {
            return None;
        }
        let known: Vec<_> = state
            .path()
            .notes()
            .filter_map(|(_, note)| omitted_by(note))
            .flatten()
            .collect();
        let omit: Vec<_> = rows
            .into_iter()
            .filter(|row| !known.contains(&row))
            .collect();
        if omit.is_empty() {
            return None;
        }
        let data = ErrorData {
            category: Some(Category::Omitted),
            status: error.status,
            attempts: Some(error.attempts),
            omit: Some(omit),
        };
        Some(Event::Error {
            text: error.message.clone(),
            data,
        })
    }

    async fn finish(
        &mut self,
        draft: Draft,
        ending: Ending,
        mut with: Vec<Effect>,
        reservation: Option<Reservation>,
        front: &mut FrontEnd<'_>,
    ) -> Result<(Vec<Row>, Outcome), EngineError> {
        let dropped = draft.is_stored().then(|| self.drop_draft());
        with.extend(dropped);
        let (events, outcome) = self.rows_of(draft.text, ending);
        let report = report_of(&events, &outcome);
        self.worker.crash_point(CrashPoint::BeforeAnswerStored);
        // The commit with the usage releases it.
        drop(reservation);
        let rows = self
            .worker
            .ledger_mut()
            .commit_ending(events, with, report.as_ref(), front)
            .await?;
        self.worker.crash_point(CrashPoint::AfterAnswerStored);
        Ok((rows, outcome))
    }

    /// Converts the end of a stream into rows.
    fn rows_of(&mut self, text: String, ending: Ending) -> (Vec<Event>, Outcome) {
        let (word, last, outcome) = match ending {
            Ending::Finished(answer) => {
                return self.rows_of_answer(add_price(answer, &*self.turn.model));
            }
            Ending::Failed(error) => {
                let (status, attempts) = (error.status, error.attempts);
                let row = failure(Category::Provider, &error.message, status, attempts);
                ("failed", row, Outcome::Failed(error.message))
            }
            Ending::Stopped(stop) => {
                let (row, outcome) = self.worker.stopped_by(&stop);
                ("interrupted", row, outcome)
            }
        };
        let said = Some(text).filter(|text| !text.is_empty());
        let said = said.map(|text| {
            response::partial(
                text,
                word,
                &self.worker.ledger().tally,
                Some(&self.turn.target),
            )
        });
        (said.into_iter().chain([last]).collect(), outcome)
    }

    /// Converts a whole answer into rows.
    /// An incomplete answer without calls fails the turn.
    fn rows_of_answer(&self, answer: Response) -> (Vec<Event>, Outcome) {
        let short = match &answer.stop {
            StopReason::Length => Some("the answer was cut at the maximum length"),
            StopReason::ContextFull => Some("the model's context is full"),
            StopReason::Paused => Some("the provider paused in the middle of the answer"),
            StopReason::Refused => Some("the model, or its provider, declined to answer"),
            StopReason::End | StopReason::Calls | StopReason::Other(_) => None,
        };
        let calls = |block: &AnswerBlock| matches!(block, AnswerBlock::Call { .. });
        let short = short.filter(|_| !answer.blocks.iter().any(calls));
        let shown = |name: &str, arguments: &str| self.turn.tools.shown(name, arguments);
        let level = self.turn.model.level();
        let mut events = response::rows_of(
            answer,
            &self.worker.ledger().tally,
            &self.turn.target,
            level,
            &shown,
        );
        match short {
            None => (events, Outcome::Completed),
            Some(text) => {
                events.push(failure(Category::Limit, text, None, 1));
                (events, Outcome::Failed(text.to_owned()))
            }
        }
    }
}

/// Builds the report of a child to its parent, after its work.
fn report_of(events: &[Event], outcome: &Outcome) -> Option<ChildReport> {
    let calls = |event: &Event| matches!(event, Event::ToolCall { .. });
    match outcome {
        Outcome::Completed if events.iter().any(calls) => None,
        Outcome::Completed => Some(ChildReport::of_answer(answer_text(events))),
        Outcome::Failed(_) | Outcome::Interrupted(_) => failed_report(outcome),
    }
}

fn answer_text(events: &[Event]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        Event::Assistant { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn omitted_by(note: &Note) -> Option<&[RowRef]> {
    match note {
        Note::Omit(rows) => Some(rows),
        Note::Mark(_) | Note::Summary { .. } | Note::Undo(_) => None,
    }
}

/// Adds the price to an answer, unless the provider stated it.
pub(super) fn add_price(mut response: Response, model: &dyn Model) -> Response {
    let reported = response.usage.cost_nano_usd;
    response.usage.cost_nano_usd = reported.or_else(|| model.cost_nano_usd(&response.usage));
    response
}

/// Returns true if a complete answer has neither text nor calls.
fn is_empty(answer: &Response) -> bool {
    let says = |block: &AnswerBlock| match block {
        AnswerBlock::Text { text, .. } => !text.trim().is_empty(),
        AnswerBlock::Call { .. } => true,
        AnswerBlock::Thinking { .. } => false,
    };
    let ends = matches!(
        answer.stop,
        StopReason::End | StopReason::Calls | StopReason::Other(_)
    );
    ends && !answer.blocks.iter().any(says)
}

/// Drops an answer. A task reads the rest of a finished one, so that its connection is reused.
pub(super) fn release(answer: Box<dyn ResponseStream>) {
    if let Some(rest) = answer.into_rest() {
        tokio::spawn(rest);
    }
}

fn is_content(delta: Option<&Result<Delta, ProviderError>>) -> bool {
    delta.is_some_and(|delta| delta.as_ref().is_ok_and(Delta::is_content))
}

fn cut_off() -> ProviderError {
    ProviderError::new(FailureKind::CutOff, "the answer was cut off")
}

pub(super) fn silent(patience: Duration) -> ProviderError {
    let message = format!(
        "stopped: no content from the provider for {} s",
        patience.as_secs()
    );
    ProviderError::new(FailureKind::Timeout, message)
}
