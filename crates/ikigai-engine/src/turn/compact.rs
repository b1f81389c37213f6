//! Summaries: a model writes a text that stands for whole turns, beside the agent's work.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::data::{SummaryData, UsageData};
use ikigai_core::project::{Filling, Scale, Story, estimate_tokens, story};
use ikigai_core::summary::{summary_request, summary_text};
use ikigai_core::{Event, Request, RowRef};
use ikigai_providers::{AnswerBlock, Delta, Model, Response, StopReason};
use ikigai_store::{Agent, history};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Turn;
use super::ask::{priced, release, silent};
use super::held::read_held;
use crate::agents::Hub;
use crate::figures::tokens;
use crate::front::{Desk, Stop, Update};
use crate::{EngineError, Worker, window};

/// How long a summary may take; turns go on meanwhile.
const LONGEST: Duration = Duration::from_mins(15);

/// After a summary that came to nothing so many turns begin before another one is tried.
const TURNS_OF_REST: usize = 8;

/// By itself only what is at least this part of the budget is summarised.
const LEAST_SHARE: u64 = 5;

/// A summary that is being written. Dropped, it is written no further.
pub(crate) struct Summary {
    /// The range it will stand for.
    from: Option<RowRef>,
    to: RowRef,
    /// What is sent of that range now.
    pub(crate) tokens: u64,
    pub(crate) turns: usize,
    /// What the model counts for a token that is estimated.
    scale: Scale,
    provider: String,
    model: String,
    writing: JoinHandle<Result<Response, String>>,
}

impl Drop for Summary {
    fn drop(&mut self) {
        self.writing.abort();
    }
}

impl Summary {
    /// What came of it, or why nothing did. Safe to drop before it is ready.
    async fn came(&mut self) -> Result<Response, String> {
        match (&mut self.writing).await {
            Ok(came) => came,
            Err(_) => Err("it broke down, which is a mistake in ikigai".to_owned()),
        }
    }
}

/// What came of a summary that the user asked for.
pub(crate) enum Written {
    /// It is stored.
    Shrunk(Shrunk),
    /// It is not, for this reason.
    Nothing(String),
    /// It was to be stopped.
    Stopped(Stop),
}

/// What a summary did.
#[derive(Debug)]
pub(crate) struct Shrunk {
    pub(crate) turns: usize,
    /// What the range needed before, and needs now.
    pub(crate) before: u64,
    pub(crate) after: u64,
}

impl fmt::Display for Shrunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (tokens(self.before), tokens(self.after));
        let turns = turns(self.turns);
        write!(
            f,
            "{turns} summarised: {before} → {after} tokens · /compact --undo"
        )
    }
}

impl Worker {
    /// What there is to summarise, in the whole conversation.
    pub(crate) async fn story(&mut self) -> Result<Option<Story>, EngineError> {
        let mut turn = self.prepare_turn().await?;
        self.read_window(&mut turn).await?;
        let Agent { state, view, .. } = &self.agent;
        Ok(story(state, view, &turn.target, &turn.window))
    }

    /// Begins to have a summary written of all turns that are whole, at a user's wish. One that was
    /// begun before is given up.
    pub(crate) async fn begin_summary(
        &mut self,
        instructions: Option<&str>,
    ) -> Result<Option<Summary>, EngineError> {
        self.summary = None;
        let mut turn = self.prepare_turn().await?;
        self.read_window(&mut turn).await?;
        let Agent { state, view, .. } = &self.agent;
        let Some(story) = story(state, view, &turn.target, &turn.window) else {
            return Ok(None);
        };
        Ok(Some(self.write_summary(&turn, &story, instructions).await?))
    }

    async fn write_summary(
        &mut self,
        turn: &Turn,
        story: &Story,
        instructions: Option<&str>,
    ) -> Result<Summary, EngineError> {
        let request = summary_request(&story.messages, instructions, turn.window.window);
        let Worker { agent, engine, .. } = &mut *self;
        // No other request of the agent begins like this one.
        let conversation = format!("{}-summary", agent.state.agent());
        let writing = write(
            turn.model.clone(),
            request,
            conversation,
            engine.hub.clone(),
        );
        let scale = Scale::of(&agent.state, &agent.view, &turn.target, turn.scale);
        Ok(Summary {
            scale,
            from: window::root_of(engine.store(), agent).await?,
            to: story.to,
            tokens: story.tokens,
            turns: story.turns,
            provider: turn.target.provider.clone(),
            model: turn.target.model.clone(),
            writing: tokio::spawn(writing),
        })
    }

    /// Has the conversation summarised beside the turn that begins, if it fills as much of the
    /// budget as is configured.
    pub(super) async fn summarise_if_full(
        &mut self,
        turn: &Turn,
        desk: &mut Desk<'_>,
    ) -> Result<(), EngineError> {
        let Some(percent) = self.engine.summarise_at else {
            return Ok(());
        };
        if self.summary.is_some() {
            return Ok(());
        }
        self.summary_rest = self.summary_rest.saturating_sub(1);
        if self.summary_rest > 0 {
            return Ok(());
        }
        let Agent { state, view, .. } = &self.agent;
        let filling = Filling::of(state, view, &turn.target, &turn.window);
        let (used, cap) = (
            filling.fixed_tokens() + filling.turn_tokens(),
            turn.window.cap.max(1),
        );
        if used.saturating_mul(100) <= cap.saturating_mul(percent) {
            return Ok(());
        }
        let Some(story) = story(state, view, &turn.target, &turn.window) else {
            return Ok(());
        };
        if story.tokens.saturating_mul(LEAST_SHARE) < cap
            || read_held!(desk, self.used_up()).is_some()
        {
            return Ok(());
        }
        let share = used.saturating_mul(100) / cap;
        let text = format!(
            "the conversation fills {share}% of {} tokens: {} are being summarised",
            tokens(turn.budget.cap),
            turns(story.turns)
        );
        self.summary = Some(read_held!(desk, self.write_summary(turn, &story, None)));
        desk.tell(Update::Notice(text));
        Ok(())
    }

    /// Stores a summary that was written beside the turn, if it is there.
    pub(super) async fn take_in_summary(&mut self, desk: &mut Desk<'_>) -> Result<(), EngineError> {
        match self
            .summary
            .take_if(|summary| summary.writing.is_finished())
        {
            Some(summary) => self.end_summary(summary, desk).await,
            None => Ok(()),
        }
    }

    /// Waits for a summary that is being written beside the turn, unless something else is said:
    /// then it is written on. Returns why it is to stop, if it is.
    pub(super) async fn await_summary(
        &mut self,
        desk: &mut Desk<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        while !desk.has_something_to_do()
            && let Some(mut summary) = self.summary.take()
        {
            tokio::select! {
                biased;
                intent = desk.next() => {
                    if let Some(stop) = self.heed(intent, desk).await? {
                        return Ok(Some(stop));
                    }
                    self.summary = Some(summary);
                }
                came = summary.came() => {
                    let ended = self.store_summary(&summary, came, desk).await?;
                    self.tell_summary(ended, desk);
                }
            }
        }
        Ok(None)
    }

    async fn end_summary(
        &mut self,
        mut summary: Summary,
        desk: &mut Desk<'_>,
    ) -> Result<(), EngineError> {
        let came = summary.came().await;
        let ended = self.store_summary(&summary, came, desk).await?;
        self.tell_summary(ended, desk);
        Ok(())
    }

    fn tell_summary(&mut self, ended: Result<Shrunk, String>, desk: &mut Desk<'_>) {
        match ended {
            Ok(shrunk) => desk.tell(Update::Notice(shrunk.to_string())),
            Err(reason) => {
                self.summary_rest = TURNS_OF_REST;
                let text = format!("no summary: {reason} · the conversation is sent as before");
                desk.tell(Update::Warning(text));
            }
        }
    }

    /// Waits for a summary that the user asked for.
    pub(crate) async fn see_written(
        &mut self,
        mut summary: Summary,
        desk: &mut Desk<'_>,
    ) -> Result<Written, EngineError> {
        loop {
            tokio::select! {
                biased;
                intent = desk.next() => if let Some(stop) = self.heed(intent, desk).await? {
                    return Ok(Written::Stopped(stop));
                },
                came = summary.came() => {
                    return Ok(match self.store_summary(&summary, came, desk).await? {
                        Ok(shrunk) => Written::Shrunk(shrunk),
                        Err(reason) => Written::Nothing(reason),
                    });
                }
            }
        }
    }

    /// Stores what a summary cost, and the summary itself if it is any good. Otherwise says why it
    /// is not; the conversation is sent as before then.
    async fn store_summary(
        &mut self,
        summary: &Summary,
        came: Result<Response, String>,
        desk: &mut Desk<'_>,
    ) -> Result<Result<Shrunk, String>, EngineError> {
        let response = match came {
            Ok(response) => response,
            Err(reason) => return Ok(Err(reason)),
        };
        let usage = Event::Usage(UsageData {
            response: Some(self.tally.response + 1),
            provider: Some(summary.provider.clone()),
            model: Some(summary.model.clone()),
            sum: Some(self.tally.spent.plus(&response.usage)),
            amounts: response.usage.clone(),
        });
        let judged = match judge(summary, &response) {
            // Whoever went back or began anew does not want it.
            Ok(_) if !read_held!(desk, self.is_on_path(summary.to)) => {
                Err("what it stands for is not remembered any more".to_owned())
            }
            judged => judged,
        };
        let row = judged.as_ref().ok().map(|(text, _)| Event::Summary {
            text: Some(text.clone()),
            data: SummaryData {
                from: summary.from,
                to: Some(summary.to),
                undo: None,
            },
        });
        self.passes("before the summary is stored");
        let rows = [usage].into_iter().chain(row).collect();
        let rows = self.commit_held(rows, Vec::new(), desk).await?;
        self.passes("after the summary is stored");
        desk.told(rows);
        Ok(judged.map(|(_, after)| Shrunk {
            turns: summary.turns,
            before: summary.scale.counted(summary.tokens),
            after: summary.scale.counted(after),
        }))
    }

    /// Says whether a row is on the agent's path, wherever that has to be looked for.
    async fn is_on_path(&mut self, row: RowRef) -> Result<bool, EngineError> {
        let Worker { agent, engine, .. } = &mut *self;
        while !agent.state.path().contains(row) {
            if agent.state.path().is_complete() {
                return Ok(false);
            }
            history::extend(engine.store(), agent.state.path_mut()).await?;
        }
        Ok(true)
    }
}

/// Has a summary written. Nothing is stored.
async fn write(
    model: Arc<dyn Model>,
    request: Request,
    conversation: String,
    hub: Arc<Hub>,
) -> Result<Response, String> {
    let written = async {
        let _permit = hub.requests.acquire().await;
        let mut answer = model.answer(request, &conversation);
        let patience = answer.patience();
        loop {
            match timeout(patience, answer.next()).await {
                Ok(Some(Ok(Delta::Finished(response)))) => {
                    release(answer);
                    return Ok(priced(response, &*model));
                }
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => return Err(error.message),
                Ok(None) => return Err("the answer ended before it was whole".to_owned()),
                Err(_) => return Err(silent(patience).message),
            }
        }
    };
    let most = LONGEST.as_secs();
    let written = timeout(LONGEST, written).await;
    written.unwrap_or_else(|_| Err(format!("it was not written within {most} s")))
}

/// The text that is stored, with its tokens, or why it is no summary.
fn judge(summary: &Summary, response: &Response) -> Result<(String, u64), String> {
    match response.stop {
        StopReason::Length => return Err("it is too long".to_owned()),
        StopReason::ContextFull => return Err("the model's context is full".to_owned()),
        StopReason::Refused => return Err("the model declined to write one".to_owned()),
        StopReason::Paused => return Err("the provider paused in the middle of it".to_owned()),
        StopReason::End | StopReason::Calls | StopReason::Other(_) => {}
    }
    let texts = response.blocks.iter().filter_map(|block| match block {
        AnswerBlock::Text { text, .. } => Some(text.as_str()),
        AnswerBlock::Thinking { .. } | AnswerBlock::Call { .. } => None,
    });
    let written = texts.collect::<Vec<_>>().join("\n");
    if written.trim().is_empty() {
        return Err("the model wrote nothing".to_owned());
    }
    let text = summary_text(&written);
    let after = estimate_tokens(&text);
    if after >= summary.tokens {
        return Err("it is no shorter than what it stands for".to_owned());
    }
    Ok((text, after))
}

/// A number of turns.
pub(crate) fn turns(number: usize) -> String {
    match number {
        1 => "1 turn".to_owned(),
        some => format!("{some} turns"),
    }
}
