//! A turn: the message is stored, the request projected from the log, the answer streamed into a
//! draft, and its rows stored in one transaction.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use ikigai_core::data::{Category, Cause, ErrorData, SummaryData, ToolResultData, Verdict};
use ikigai_core::load::{Loaded, load};
use ikigai_core::message::Block;
use ikigai_core::path::Note;
use ikigai_core::project::{Scale, cut_for, estimate_request, project, rows_behind};
use ikigai_core::{Budget, Event, Kind, Row, RowRef, Target};
use ikigai_providers::{
    Answer, AnswerBlock, Delta, FailureKind, Model, ProviderError, Response, StopReason, Wait,
};
use ikigai_store::{Agent, CommitError, Effect, StoreError};
use tokio::time::{Instant, sleep, sleep_until};

use crate::engine::target_of;
use crate::worker::Tally;
use crate::{EngineError, Worker, response, window};

/// Of a running answer at most so much is not yet stored.
const DRAFT_EVERY: Duration = Duration::from_millis(250);

/// How long a provider may be silent before the turn is given up.
const SILENCE: Duration = Duration::from_mins(5);

/// How often, and after which pause, an answer that arrived is offered to a store that fails.
const HELD_TRIES: u32 = 60;
const HELD_PAUSE: Duration = Duration::from_secs(1);

/// How often a model may call tools in one turn.
const MOST_ROUNDS: usize = 100;

/// What a front end is told while a turn goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// A row was stored.
    Stored(Row),
    /// More text came; it is not yet a row.
    Text(String),
    /// The model thinks; not yet a row.
    Thinking(String),
    /// The model begins to call this tool.
    Calling(String),
    /// The request failed and will be sent again after a pause.
    Waiting(Wait),
    /// The answer begins anew; text that was told before does not count.
    Again,
    /// The store fails and is tried again; nothing is lost so far.
    StoreAway(String),
}

/// Why a turn is to end early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Somebody wants it.
    Interrupt(Cause),
    /// It took this long.
    Deadline(Duration),
}

/// How a turn ended. All of it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The model said all it had to say.
    Completed,
    /// It was interrupted.
    Interrupted(Cause),
    /// It failed, for this reason.
    Failed(String),
}

/// What came of the stream.
enum Ending {
    Finished(Response),
    Failed(ProviderError),
    Stopped(Stop),
}

/// A front end's ear.
type Updates<'a> = &'a mut (dyn FnMut(Update) + Send);

impl Worker {
    /// Says something to the agent and has it answered, unless `stop` ends the turn before.
    pub async fn turn(
        &mut self,
        text: &str,
        stop: Pin<&mut (dyn Future<Output = Stop> + Send)>,
        updates: Updates<'_>,
    ) -> Result<Outcome, EngineError> {
        if text.trim().is_empty() {
            return Err(EngineError::EmptyMessage);
        }
        let choice = self.engine.choice(self.agent.state.settings())?;
        let model = self.engine.models.resolve(&choice)?;
        let rows = self.commit(vec![Event::user(text)], Vec::new()).await?;
        told(rows, updates);
        let target = target_of(&choice);
        let budget = self
            .engine
            .budget(self.agent.state.settings(), model.window_tokens());
        let first = self.engine.models.token_scale(&choice);
        let budget = self.move_window(&target, budget, first, updates).await?;
        self.rounds(&*model, &target, &budget, stop, updates).await
    }

    /// Asks the model until it calls no more tools.
    async fn rounds(
        &mut self,
        model: &dyn Model,
        target: &Target,
        budget: &Budget,
        mut stop: Pin<&mut (dyn Future<Output = Stop> + Send)>,
        updates: Updates<'_>,
    ) -> Result<Outcome, EngineError> {
        let conversation = self.agent.state.agent().to_string();
        for _ in 0..MOST_ROUNDS {
            let projected = project(&self.agent.state, &self.agent.view, target, budget);
            let request = match projected {
                Ok(request) => request,
                Err(missing) => return self.give_up(&missing.to_string(), updates).await,
            };
            self.tally.estimate = estimate_request(&request);
            let mut answer = model.answer(request, &conversation);
            let mut draft = Draft::default();
            let ending = self
                .stream(&mut *answer, stop.as_mut(), &mut draft, updates)
                .await?;
            drop(answer);
            if let Some(omitted) = self.refused_item(target, budget, &ending) {
                self.forget_draft(&mut draft).await?;
                told(
                    self.commit_held(vec![omitted], Vec::new(), updates).await?,
                    updates,
                );
                continue;
            }
            let ending = priced(ending, model);
            let (rows, outcome) = self.finish(model, target, draft, ending, updates).await?;
            let calls: Vec<_> = rows.iter().filter_map(refused_call).collect();
            told(rows, updates);
            if outcome != Outcome::Completed || calls.is_empty() {
                return Ok(outcome);
            }
            let results = self.commit_held(calls, Vec::new(), updates).await?;
            told(results, updates);
        }
        let text = format!("the model called tools {MOST_ROUNDS} times in one turn");
        self.give_up(&text, updates).await
    }

    /// Ends a turn that cannot go on with a row that says why.
    async fn give_up(&mut self, text: &str, updates: Updates<'_>) -> Result<Outcome, EngineError> {
        let limit = failure(Category::Limit, text, None, 1);
        told(
            self.commit_held(vec![limit], Vec::new(), updates).await?,
            updates,
        );
        Ok(Outcome::Failed(text.to_owned()))
    }

    /// The row that leaves out what the provider refused by name, if it named anything that is not
    /// left out already.
    fn refused_item(&self, target: &Target, budget: &Budget, ending: &Ending) -> Option<Event> {
        let Ending::Failed(error) = ending else {
            return None;
        };
        let index = error
            .names_message
            .filter(|_| error.kind == FailureKind::BadRequest)?;
        let Agent { state, view, .. } = &self.agent;
        let rows = rows_behind(state, view, target, budget, index);
        // What a person said is not taken away from the model behind their back.
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

    /// Reads what the request needs and, if it is too much, stores a cut first. Returns the budget
    /// in estimated tokens.
    async fn move_window(
        &mut self,
        target: &Target,
        budget: Budget,
        first: Scale,
        updates: Updates<'_>,
    ) -> Result<Budget, EngineError> {
        let Worker { agent, engine, .. } = &mut *self;
        let budget = window::read(engine.store(), agent, target, budget, first).await?;
        let Some(to) = cut_for(&agent.state, &agent.view, target, &budget) else {
            return Ok(budget);
        };
        let data = SummaryData {
            from: window::root_of(engine.store(), agent).await?,
            to: Some(to),
            undo: None,
        };
        let rows = self
            .commit(vec![Event::Summary { text: None, data }], Vec::new())
            .await?;
        told(rows, updates);
        Ok(budget)
    }

    async fn stream(
        &mut self,
        answer: &mut dyn Answer,
        mut stop: Pin<&mut (dyn Future<Output = Stop> + Send)>,
        draft: &mut Draft,
        updates: Updates<'_>,
    ) -> Result<Ending, EngineError> {
        loop {
            let due = draft.due.unwrap_or_else(|| Instant::now() + SILENCE);
            tokio::select! {
                biased;
                stopped = &mut stop => return Ok(Ending::Stopped(stopped)),
                () = sleep_until(due), if draft.due.is_some() => self.store_draft(draft, updates).await?,
                delta = answer.next() => match delta {
                    Some(Ok(Delta::Text(text))) => {
                        draft.add(&text);
                        updates(Update::Text(text));
                    }
                    Some(Ok(Delta::Finished(response))) => return Ok(Ending::Finished(response)),
                    Some(Ok(Delta::Thinking(text))) => updates(Update::Thinking(text)),
                    Some(Ok(Delta::Call(name))) => updates(Update::Calling(name)),
                    Some(Ok(Delta::Waiting(wait))) => updates(Update::Waiting(wait)),
                    Some(Ok(Delta::Again)) => {
                        self.forget_draft(draft).await?;
                        updates(Update::Again);
                    }
                    Some(Err(error)) => return Ok(Ending::Failed(error)),
                    None => return Ok(Ending::Failed(cut_off())),
                },
                () = sleep(SILENCE) => return Ok(Ending::Failed(silent())),
            }
        }
    }

    /// Stores what came since the last part. A store that is away is no reason to stop listening.
    async fn store_draft(
        &mut self,
        draft: &mut Draft,
        updates: Updates<'_>,
    ) -> Result<(), EngineError> {
        let append = Effect::AppendDraft {
            agent: self.agent.state.agent(),
            epoch: self.epoch,
            text: draft.text[draft.stored_bytes..].to_owned(),
            at: self.engine.environment.now(),
        };
        match self.commit(Vec::new(), vec![append]).await {
            Ok(_) => draft.stored(),
            Err(EngineError::Commit(CommitError::Store(error))) => {
                updates(Update::StoreAway(error.to_string()));
                draft.due = Some(Instant::now() + DRAFT_EVERY);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Drops what came of an answer that begins anew.
    async fn forget_draft(&mut self, draft: &mut Draft) -> Result<(), EngineError> {
        if draft.stored_bytes > 0 {
            let agent = self.agent.state.agent();
            let drop = Effect::DropDraft {
                agent,
                epoch: self.epoch,
            };
            self.commit(Vec::new(), vec![drop]).await?;
        }
        *draft = Draft::default();
        Ok(())
    }

    async fn finish(
        &mut self,
        model: &dyn Model,
        target: &Target,
        draft: Draft,
        ending: Ending,
        updates: Updates<'_>,
    ) -> Result<(Vec<Row>, Outcome), EngineError> {
        let drop = (draft.stored_bytes > 0).then_some(Effect::DropDraft {
            agent: self.agent.state.agent(),
            epoch: self.epoch,
        });
        let (events, outcome) = rows_of(&self.tally, model, target, draft.text, ending);
        let rows = self
            .commit_held(events, drop.into_iter().collect(), updates)
            .await?;
        Ok((rows, outcome))
    }

    /// Stores what has arrived and must not be lost: a store that is away is tried again.
    async fn commit_held(
        &mut self,
        events: Vec<Event>,
        with: Vec<Effect>,
        updates: Updates<'_>,
    ) -> Result<Vec<Row>, EngineError> {
        for _ in 1..HELD_TRIES {
            match self.commit(events.clone(), with.clone()).await {
                Err(EngineError::Commit(CommitError::Store(error))) if may_return(&error) => {
                    updates(Update::StoreAway(error.to_string()));
                    sleep(HELD_PAUSE).await;
                }
                other => return other,
            }
        }
        self.commit(events, with).await
    }
}

/// Decides which rows an answer becomes, however it ended.
fn rows_of(
    tally: &Tally,
    model: &dyn Model,
    target: &Target,
    text: String,
    ending: Ending,
) -> (Vec<Event>, Outcome) {
    let stop = stop_word(&ending);
    let (last, outcome) = match ending {
        Ending::Finished(answer) => return rows_of_answer(tally, model, target, answer),
        Ending::Failed(error) => (
            failure(
                Category::Provider,
                &error.message,
                error.status,
                error.attempts,
            ),
            Outcome::Failed(error.message),
        ),
        Ending::Stopped(Stop::Interrupt(cause)) => {
            (Event::interrupted(cause), Outcome::Interrupted(cause))
        }
        Ending::Stopped(Stop::Deadline(after)) => {
            let text = format!("the turn was not finished within {} s", after.as_secs());
            (
                failure(Category::Limit, &text, None, 1),
                Outcome::Failed(text),
            )
        }
    };
    let said = Some(text).filter(|text| !text.is_empty());
    let said = said.map(|text| response::partial(text, stop, tally, Some(target)));
    (said.into_iter().chain([last]).collect(), outcome)
}

fn omitted_by(note: &Note) -> Option<&[RowRef]> {
    match note {
        Note::Omit(rows) => Some(rows),
        Note::Mark(_) | Note::Summary { .. } | Note::Undo(_) => None,
    }
}

/// A whole answer that is not all the model had to say, and calls nothing, ends the turn too soon.
fn rows_of_answer(
    tally: &Tally,
    model: &dyn Model,
    target: &Target,
    answer: Response,
) -> (Vec<Event>, Outcome) {
    let short = match &answer.stop {
        StopReason::Length => Some("the answer was cut at the longest length asked for"),
        StopReason::ContextFull => Some("the model's context is full"),
        StopReason::Paused => Some("the provider paused in the middle of the answer"),
        StopReason::Refused => Some("the model, or its provider, declined to answer"),
        StopReason::End | StopReason::Calls | StopReason::Other(_) => None,
    };
    let calls = |block: &AnswerBlock| matches!(block, AnswerBlock::Call { .. });
    let short = short.filter(|_| !answer.blocks.iter().any(calls));
    let mut events = response::rows_of(answer, tally, target, model.level());
    match short {
        None => (events, Outcome::Completed),
        Some(text) => {
            events.push(failure(Category::Limit, text, None, 1));
            (events, Outcome::Failed(text.to_owned()))
        }
    }
}

/// Puts the price on an answer, unless the provider told it.
fn priced(mut ending: Ending, model: &dyn Model) -> Ending {
    if let Ending::Finished(response) = &mut ending {
        let told = response.usage.cost_nano_usd;
        response.usage.cost_nano_usd = told.or_else(|| model.cost_nano_usd(&response.usage));
    }
    ending
}

/// The result of a call of a tool that the agent does not have: it has none.
fn refused_call(row: &Row) -> Option<Event> {
    let Ok(Loaded::Message(part)) = load(row) else {
        return None;
    };
    let Some(Block::ToolCall { id, name, .. }) = part.message.blocks.last() else {
        return None;
    };
    let data = ToolResultData {
        tool_call_id: Some(id.clone()),
        name: Some(name.clone()),
        output: Some(format!("There is no tool `{name}`.")),
        success: Some(false),
        call: Some(row.at),
        verdict: Some(Verdict::Refused),
        ..ToolResultData::default()
    };
    Some(Event::ToolResult { shown: None, data })
}

fn told(rows: Vec<Row>, updates: Updates<'_>) {
    for row in rows {
        updates(Update::Stored(row));
    }
}

/// Says whether a store that fails so may work again by itself.
fn may_return(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Busy(_) | StoreError::Full(_) | StoreError::Io(_) | StoreError::ReadOnly(_)
    )
}

fn stop_word(ending: &Ending) -> &'static str {
    match ending {
        Ending::Finished(_) => "end",
        Ending::Failed(_) => "failed",
        Ending::Stopped(_) => "interrupted",
    }
}

fn failure(category: Category, text: &str, status: Option<u16>, attempts: u32) -> Event {
    let data = ErrorData {
        category: Some(category),
        status,
        attempts: Some(attempts),
        omit: None,
    };
    Event::Error {
        text: text.to_owned(),
        data,
    }
}

fn cut_off() -> ProviderError {
    ProviderError::new(FailureKind::CutOff, "the answer ended before it was whole")
}

fn silent() -> ProviderError {
    let message = format!("the provider said nothing for {} s", SILENCE.as_secs());
    ProviderError::new(FailureKind::Timeout, message)
}

/// What came of an answer so far.
#[derive(Default)]
struct Draft {
    text: String,
    stored_bytes: usize,
    /// When the part that is not stored must be.
    due: Option<Instant>,
}

impl Draft {
    fn add(&mut self, text: &str) {
        self.text.push_str(text);
        self.due.get_or_insert_with(|| Instant::now() + DRAFT_EVERY);
    }

    fn stored(&mut self) {
        self.stored_bytes = self.text.len();
        self.due = None;
    }
}
