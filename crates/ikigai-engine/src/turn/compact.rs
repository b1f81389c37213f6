//! Summaries: the model writes texts that replace older rows, in parallel to turns.

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::counts::counted;
use ikigai_core::data::{Amounts, CountScale, SummaryData, UsageData};
use ikigai_core::project::{
    Keep, Scale, SummaryRange, assemble, estimate_request, estimate_tokens, messages_up_to,
    plan_summary,
};
use ikigai_core::summary::{SummaryChunks, summary_message, summary_text};
use ikigai_core::{Event, Request, RowRef};
use ikigai_providers::{AnswerBlock, Delta, Model, Response, StopReason};
use ikigai_store::{Agent, Status, history};
use ikigai_tools::Need;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Turn;
use super::ask::{add_price, release, silent};
use super::environment;
use super::pins::PinChanges;
use crate::blobs::load_images;
use crate::budget::caps;
use crate::environment::CrashPoint;
use crate::figures::tokens;
use crate::frontend::{FrontEnd, Stop, UiEvent};
use crate::hub::Hub;
use crate::ledger::{CommitPlan, Estimate, Ledger, Reservation, read_held};
use crate::recall;
use crate::{EngineError, Worker, window};

/// Longest time for one summary; turns continue meanwhile where they can.
const LONGEST: Duration = Duration::from_mins(15);

/// Failed summaries after which the conversation is cut instead.
pub(super) const MOST_FAILURES: u32 = 3;

/// A shorter text with calls announces them and is no summary.
const LEAST_WITH_CALLS_BYTES: usize = 500;

/// Most running children that a summary names.
const MOST_CHILDREN: usize = 20;

/// Reason why a summary of rows that were left behind is not used.
pub(super) const NOT_ON_PATH: &str = "its events are no longer in context";

/// A summary that is being written; dropping it cancels the request.
pub(crate) struct Summary {
    /// First row of the range; none if the path has no root.
    pub(super) from: Option<RowRef>,
    pub(super) range: SummaryRange,
    /// Ratio of the model's tokens to estimated ones.
    pub(super) scale: Scale,
    /// The same for its row.
    stored_scale: Option<CountScale>,
    provider: String,
    model: String,
    writing: JoinHandle<Result<Response, String>>,
    reservation: Option<Reservation>,
}

impl Drop for Summary {
    fn drop(&mut self) {
        self.writing.abort();
    }
}

impl Summary {
    /// Returns the range of the summary's row.
    pub(super) fn data(&self) -> SummaryData {
        SummaryData {
            from: self.from,
            to: Some(self.range.to),
            verbatim_from: self.range.verbatim_from,
            scale: self.stored_scale.clone(),
            ..SummaryData::default()
        }
    }

    /// Waits for the response or an error message. Cancel safe.
    async fn response(&mut self) -> Result<Response, String> {
        match (&mut self.writing).await {
            Ok(response) => response,
            Err(_) => Err("internal error in ikigai (please report)".to_owned()),
        }
    }
}

/// Requests that lead to a summary.
enum Asking {
    /// The conversation as sent, with one more message. A prompt cache has most of it.
    Conversation(Request),
    /// The conversation as text, chunk by chunk.
    Chunks(SummaryChunks, Option<String>),
}

/// Outcome of a summary that the user asked for.
pub(crate) enum Written {
    /// Stored.
    Shrunk(Shrunk),
    /// Not stored, for this reason.
    Nothing(String),
    /// Stopped by a request.
    Stopped(Stop),
}

/// Effect of a summary.
#[derive(Debug)]
pub(crate) struct Shrunk {
    pub(crate) turns: usize,
    /// Tokens of the range before and now.
    pub(crate) before: u64,
    pub(crate) after: u64,
}

impl fmt::Display for Shrunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (tokens(self.before), tokens(self.after));
        let turns = counted(self.turns, "turn");
        write!(
            f,
            "{turns} summarised: {before} → {after} tokens · /compact --undo"
        )
    }
}

/// Keeps requests within the model's window: summaries, elisions and cuts.
pub(crate) struct ContextKeeper<'a> {
    pub(super) worker: &'a mut Worker,
}

impl ContextKeeper<'_> {
    /// Starts a summary that the user requested; drops one that is running.
    pub(crate) async fn begin_summary(
        &mut self,
        instructions: Option<&str>,
    ) -> Result<Option<Summary>, EngineError> {
        *self.worker.summary() = None;
        self.worker
            .engine()
            .look_up_window(self.worker.settings())
            .await?;
        let mut turn = Turn::prepare(self.worker.ledger()).await?;
        turn.read_window(self.worker.ledger_mut()).await?;
        let Some(range) = compactable(self.worker.ledger(), &turn) else {
            return Ok(None);
        };
        Ok(Some(self.write_summary(&turn, range, instructions).await?))
    }

    pub(super) async fn write_summary(
        &mut self,
        turn: &Turn,
        range: SummaryRange,
        instructions: Option<&str>,
    ) -> Result<Summary, EngineError> {
        let mut asking = self.summary_requests(turn, &range, instructions);
        if let Asking::Conversation(request) = &mut asking {
            load_images(self.worker.engine().reader(), &*turn.model, request).await?;
        }
        let estimate = self.estimate_summary(turn, &asking);
        let ledger = self.worker.ledger_mut();
        let caps = caps(&ledger.engine, &ledger.agent).await?;
        let reserved = ledger.reserve(&caps, estimate, None).await?;
        let Ledger { agent, engine, .. } = self.worker.ledger_mut();
        let conversation = agent.state.agent().to_string();
        let (writing, reservation) = match reserved {
            Ok(reservation) => {
                let hub = engine.hub().clone();
                let writing = write(turn.model.clone(), asking, conversation, hub);
                (tokio::spawn(writing), reservation)
            }
            Err(refused) => (tokio::spawn(ready(Err(refused.reason))), None),
        };
        let scale = Scale::of(&agent.state, &agent.view, &turn.target, turn.scale);
        Ok(Summary {
            scale,
            stored_scale: scale.stored(&turn.target, turn.scale),
            from: window::root_of(engine.reader(), agent).await?,
            range,
            provider: turn.target.provider.clone(),
            model: turn.target.model.clone(),
            writing,
            reservation,
        })
    }

    fn estimate_summary(&self, turn: &Turn, asking: &Asking) -> Estimate {
        let Agent { state, view, .. } = self.worker.agent();
        let scale = Scale::of(state, view, &turn.target, turn.scale);
        let (input, requests) = match asking {
            Asking::Conversation(request) => (estimate_request(request), 1),
            // Two neighbouring chunks fill more than one request.
            Asking::Chunks(chunks, _) => {
                let input = chunks.tokens();
                (input, input.saturating_mul(2) / turn.window.cap.max(1) + 1)
            }
        };
        Estimate::new(&*turn.model, scale.counted(input), requests)
    }

    fn summary_requests(
        &self,
        turn: &Turn,
        range: &SummaryRange,
        instructions: Option<&str>,
    ) -> Asking {
        let Agent { state, view, .. } = self.worker.agent();
        // The window leaves room for an answer.
        let room = turn.window.cap;
        if let Ok(mut request) = assemble(state, view, &turn.target, &turn.window) {
            request.messages.push(summary_message(instructions));
            if estimate_request(&request) <= room {
                return Asking::Conversation(request);
            }
        }
        let messages = messages_up_to(state, view, &turn.target, range.to);
        let chunks = SummaryChunks::new(&messages, room);
        Asking::Chunks(chunks, instructions.map(str::to_owned))
    }

    /// Stores a summary that was written in parallel, if it is finished.
    pub(super) async fn take_in_summary(
        &mut self,
        front: &mut FrontEnd<'_>,
    ) -> Result<(), EngineError> {
        match self
            .worker
            .summary()
            .take_if(|summary| summary.writing.is_finished())
        {
            Some(summary) => self.end_summary(*summary, front).await,
            None => Ok(()),
        }
    }

    /// Waits within a turn for a summary without which the next request is too large.
    /// Returns the stop of the turn, if there is one.
    pub(super) async fn finish_summary(
        &mut self,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        let Some(mut summary) = self.worker.summary().take() else {
            return Ok(None);
        };
        match self.summary_response(&mut summary, front).await? {
            Ok(response) => {
                let ended = self.store_summary(&summary, response, front).await?;
                self.report_summary(ended, front);
                Ok(None)
            }
            Err(stop) => Ok(Some(stop)),
        }
    }

    /// Waits for a summary that is written in parallel, until another request arrives.
    /// The summary continues then. Returns the stop, if there is one.
    pub(super) async fn await_summary(
        &mut self,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        while !front.has_something_to_do()
            && let Some(mut summary) = self.worker.summary().take()
        {
            tokio::select! {
                biased;
                request = front.next() => {
                    if let Some(stop) = self.worker.handle(request, front).await? {
                        return Ok(Some(stop));
                    }
                    *self.worker.summary() = Some(summary);
                }
                response = summary.response() => {
                    let ended = self.store_summary(&summary, response, front).await?;
                    self.report_summary(ended, front);
                }
            }
        }
        Ok(None)
    }

    async fn end_summary(
        &mut self,
        mut summary: Summary,
        front: &mut FrontEnd<'_>,
    ) -> Result<(), EngineError> {
        let response = summary.response().await;
        let ended = self.store_summary(&summary, response, front).await?;
        self.report_summary(ended, front);
        Ok(())
    }

    fn report_summary(&mut self, ended: Result<Shrunk, String>, front: &mut FrontEnd<'_>) {
        match ended {
            Ok(shrunk) => {
                self.worker.set_summary_failures(0);
                front.emit(UiEvent::Notice(shrunk.to_string()));
            }
            Err(reason) => {
                let failures = self.worker.summary_failures();
                self.worker.set_summary_failures(failures + 1);
                let text = format!("no summary: {reason} · conversation unchanged");
                front.emit(UiEvent::Warning(text));
            }
        }
    }

    /// Waits for a summary that the user requested, and stores it.
    pub(crate) async fn see_written(
        &mut self,
        mut summary: Summary,
        front: &mut FrontEnd<'_>,
    ) -> Result<Written, EngineError> {
        let response = match self.summary_response(&mut summary, front).await? {
            Ok(response) => response,
            Err(stop) => return Ok(Written::Stopped(stop)),
        };
        Ok(match self.store_summary(&summary, response, front).await? {
            Ok(shrunk) => Written::Shrunk(shrunk),
            Err(reason) => Written::Nothing(reason),
        })
    }

    /// Waits for the response to a summary request, unless the user stops it.
    pub(super) async fn summary_response(
        &mut self,
        summary: &mut Summary,
        front: &mut FrontEnd<'_>,
    ) -> Result<Result<Result<Response, String>, Stop>, EngineError> {
        loop {
            tokio::select! {
                biased;
                request = front.next() => if let Some(stop) = self.worker.handle(request, front).await? {
                    return Ok(Err(stop));
                },
                response = summary.response() => return Ok(Ok(response)),
            }
        }
    }

    /// Stores the usage of a summary, and the summary itself if it is usable.
    /// Otherwise returns the reason, and the conversation is sent as before.
    async fn store_summary(
        &mut self,
        summary: &Summary,
        response: Result<Response, String>,
        front: &mut FrontEnd<'_>,
    ) -> Result<Result<Shrunk, String>, EngineError> {
        let response = match response {
            Ok(response) => response,
            Err(reason) => return Ok(Err(reason)),
        };
        let usage = self.summary_usage(summary, &response);
        let judged = self.judge_summary(summary, &response, front).await?;
        let row = judged.as_ref().ok().map(|(text, _)| Event::Summary {
            text: Some(text.clone()),
            data: summary.data(),
        });
        self.worker.crash_point(CrashPoint::BeforeSummaryStored);
        // The commit with the usage releases it.
        if let Some(reservation) = &summary.reservation {
            reservation.end();
        }
        let rows = [usage].into_iter().chain(row).collect();
        let rows = self
            .worker
            .commit(CommitPlan::events(rows).waiting(front))
            .await?;
        self.worker.crash_point(CrashPoint::AfterSummaryStored);
        front.emit_rows(rows);
        Ok(judged.map(|(_, after)| Shrunk {
            turns: summary.range.turns,
            before: summary.scale.counted(summary.range.tokens),
            after: summary.scale.counted(after),
        }))
    }

    /// Builds the usage row of a summary.
    pub(super) fn summary_usage(&self, summary: &Summary, response: &Response) -> Event {
        Event::Usage(UsageData {
            response: Some(self.worker.ledger().tally.response + 1),
            provider: Some(summary.provider.clone()),
            model: Some(summary.model.clone()),
            sum: Some(self.worker.ledger().tally.spent.plus(&response.usage)),
            amounts: response.usage.clone(),
        })
    }

    /// Judges a summary: its text and new tokens, or the reason against it.
    pub(super) async fn judge_summary(
        &mut self,
        summary: &Summary,
        response: &Response,
        front: &mut FrontEnd<'_>,
    ) -> Result<Result<(String, u64), String>, EngineError> {
        let answers = front.answers;
        let open = read_held!(front, self.still_open(answers));
        Ok(match judge(&summary.range, response, &open) {
            // Rewound or cleared meanwhile.
            Ok(_) if !read_held!(front, self.is_on_path(summary.range.to)) => {
                Err(NOT_ON_PATH.to_owned())
            }
            judged => judged,
        })
    }

    /// Describes the to-do list, running children and surroundings, for the end of a summary.
    async fn still_open(&self, answers: bool) -> Result<String, EngineError> {
        let mut open = String::new();
        if let Some(list) = recall::inputs(self.worker.engine(), self.worker.agent(), &[Need::List])
            .await?
            .list
            && !list.trim().is_empty()
        {
            open.push_str("To-do list:\n");
            open.push_str(list.trim());
        }
        let own = self.worker.agent().state.agent();
        let mut running = Vec::new();
        for child in self.worker.engine().agents().await? {
            let is_child = child.parent == Some(own) && child.status == Status::Running;
            if is_child
                && running.len() < MOST_CHILDREN
                && self.worker.engine().works(child.id).await?
            {
                running.push(child.name);
            }
        }
        if !running.is_empty() {
            if !open.is_empty() {
                open.push_str("\n\n");
            }
            open.push_str("Child agents still running: ");
            open.push_str(&running.join(", "));
        }
        let unchanged = PinChanges::default();
        let facts = environment::facts(self.worker.ledger(), answers, false, &unchanged);
        if let Some(facts) = facts.await {
            if !open.is_empty() {
                open.push_str("\n\n");
            }
            open.push_str(&facts.for_summary());
        }
        Ok(open)
    }

    /// Returns true if a row is on the agent's path; reads the path as needed.
    pub(super) async fn is_on_path(&mut self, row: RowRef) -> Result<bool, EngineError> {
        let Ledger { agent, engine, .. } = self.worker.ledger_mut();
        while !agent.state.path().contains(row) {
            if agent.state.path().is_complete() {
                return Ok(false);
            }
            history::extend(engine.reader(), agent.state.path_mut()).await?;
        }
        Ok(true)
    }
}

/// Finds rows for `/compact`: all but the newest response, or else all.
fn compactable(ledger: &Ledger, turn: &Turn) -> Option<SummaryRange> {
    let Agent { state, view, .. } = &ledger.agent;
    let limits = &ledger.engine.context_limits();
    let plan = |keep| plan_summary(state, view, &turn.target, &turn.window, limits, keep);
    let part = plan(Keep::NewestResponse).filter(SummaryRange::is_worth_replacing);
    part.or_else(|| plan(Keep::Nothing))
}

/// Returns the rows that `/compact` would summarise now.
pub(super) async fn summary_range(
    ledger: &mut Ledger,
) -> Result<Option<SummaryRange>, EngineError> {
    let mut turn = Turn::prepare(ledger).await?;
    turn.read_window(ledger).await?;
    Ok(compactable(ledger, &turn))
}

/// Requests a summary. Stores nothing.
async fn write(
    model: Arc<dyn Model>,
    asking: Asking,
    conversation: String,
    hub: Arc<Hub>,
) -> Result<Response, String> {
    let written = async {
        let _permit = hub.requests.acquire().await;
        match asking {
            Asking::Conversation(request) => respond(&*model, request, &conversation).await,
            Asking::Chunks(chunks, instructions) => {
                write_chunks(&*model, chunks, instructions.as_deref(), &conversation).await
            }
        }
    };
    let most = LONGEST.as_secs();
    let written = timeout(LONGEST, written).await;
    written.unwrap_or_else(|_| Err(format!("not written within {most} s")))
}

/// Summarises one chunk after the other; the last response has the sum of all usage.
async fn write_chunks(
    model: &dyn Model,
    mut chunks: SummaryChunks,
    instructions: Option<&str>,
    conversation: &str,
) -> Result<Response, String> {
    // Requests of this form share no prefix with those of the agent.
    let conversation = format!("{conversation}-summary");
    let mut spent = Amounts::default();
    let mut newest: Option<Response> = None;
    let mut earlier: Option<String> = None;
    while let Some(request) = chunks.next_request(earlier.as_deref(), instructions) {
        let response = respond(model, request, &conversation).await?;
        spent = spent.plus(&response.usage);
        // Later chunks cannot replace a missing one.
        let written = written_text(&response).ok();
        newest = Some(response);
        if written.is_none() {
            break;
        }
        earlier = written;
    }
    let newest = newest.ok_or_else(|| "nothing to summarise".to_owned())?;
    Ok(Response {
        usage: spent,
        ..newest
    })
}

/// Sends one request and reads the whole response.
async fn respond(
    model: &dyn Model,
    request: Request,
    conversation: &str,
) -> Result<Response, String> {
    let mut answer = model.answer(request, conversation);
    let patience = answer.patience();
    loop {
        match timeout(patience, answer.next()).await {
            Ok(Some(Ok(Delta::Finished(response)))) => {
                release(answer);
                return Ok(add_price(response, model));
            }
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(error))) => return Err(error.message),
            Ok(None) => return Err("the answer was cut off".to_owned()),
            Err(_) => return Err(silent(patience).message),
        }
    }
}

fn text_of(response: &Response) -> String {
    let texts = response.blocks.iter().filter_map(|block| match block {
        AnswerBlock::Text { text, .. } => Some(text.as_str()),
        AnswerBlock::Thinking { .. } | AnswerBlock::Call { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the summary in a response, or the reason why there is none.
fn written_text(response: &Response) -> Result<String, String> {
    match response.stop {
        StopReason::Length => return Err("the summary is too long".to_owned()),
        StopReason::ContextFull => return Err("the model's context is full".to_owned()),
        StopReason::Refused => return Err("the model declined to write one".to_owned()),
        StopReason::Paused => return Err("the provider paused in the middle of it".to_owned()),
        StopReason::End | StopReason::Calls | StopReason::Other(_) => {}
    }
    let written = text_of(response);
    let calls = |block: &AnswerBlock| matches!(block, AnswerBlock::Call { .. });
    if written.trim().is_empty() {
        return Err("the model returned no text".to_owned());
    }
    if written.len() < LEAST_WITH_CALLS_BYTES && response.blocks.iter().any(calls) {
        return Err("the model called tools instead".to_owned());
    }
    Ok(written)
}

/// Judges a response: the text to store and its tokens, or the reason against it.
fn judge(range: &SummaryRange, response: &Response, open: &str) -> Result<(String, u64), String> {
    let text = summary_text(&written_text(response)?, open);
    let after = estimate_tokens(&text) + range.verbatim;
    if after >= range.tokens {
        return Err("the summary is not shorter than the original".to_owned());
    }
    Ok((text, after))
}
