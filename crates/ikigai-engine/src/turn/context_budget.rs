//! Context rows at request boundaries: shorten old outputs, summarise, cut as the last resort.

use ikigai_core::counts::counted;
use ikigai_core::data::SummaryData;
use ikigai_core::project::{
    Elision, Keep, Scale, SummaryRange, plan_elision, plan_last_elision, plan_summary, used_tokens,
};
use ikigai_core::{Budget, Event};
use ikigai_providers::{FailureKind, ProviderError};
use ikigai_store::Agent;
use ikigai_tools::output::{MOST_SENT_BYTES, OutputLimit};
use ikigai_tools::tool_names::{TODO, current_name};

use super::Turn;
use super::compact::{ContextKeeper, MOST_FAILURES};
use crate::budget::used_up;
use crate::calls::OpenCall;
use crate::environment::CrashPoint;
use crate::figures::tokens;
use crate::frontend::{FrontEnd, Stop, UiEvent};
use crate::ledger::{CommitPlan, Ledger, read_held};
use crate::{EngineError, window};

/// Budgets below this are too small for a request that asks for a summary.
const LEAST_SUMMARY_BUDGET: u64 = 8_000;

/// Smallest part of the budget that a summary ahead of need replaces.
const LEAST_FRESH_PART: u64 = 5;

/// A request above this share of the budget is not sent; estimates are not exact.
const FULL_PERCENT: u64 = 97;

/// Smallest refused request, in tokens, that corrects a window.
const LEAST_WINDOW: u64 = 512;

/// Messages up to this size fit the smallest window.
const SHORT_MESSAGE_BYTES: usize = 1_024;

/// Share of a refused request, or of its stated limit, that is sent instead.
const OVERFLOW_PERCENT: u64 = 85;

/// Bytes per token, as estimated for ASCII.
const BYTES_PER_TOKEN: u64 = 4;

impl ContextKeeper<'_> {
    /// Limits the size of each result of a response. Together they must leave room for the rest.
    pub(super) fn share_results(&mut self, turn: &Turn, calls: usize) {
        let limits = self.worker.engine().context_limits();
        let together = turn.window.cap.saturating_mul(limits.results) / 100;
        let calls = calls.max(1) as u64;
        let bytes = together.saturating_mul(BYTES_PER_TOKEN) / calls;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let size = OutputLimit {
            bytes: bytes.min(limits.result_bytes),
            tokens: together / calls,
        };
        self.worker.set_result_size(size);
    }

    /// Returns the largest size of a call's result. The to-do list is read back out of its
    /// results, so none of these is cut.
    pub(super) fn result_limit(&self, call: &OpenCall) -> OutputLimit {
        if current_name(&call.name) == TODO {
            OutputLimit::of_bytes(MOST_SENT_BYTES)
        } else {
            self.worker.result_size()
        }
    }

    /// Writes context rows until the next request fits its budget.
    /// Returns the stop of the turn, if the user stops it meanwhile.
    pub(super) async fn fit_context(
        &mut self,
        turn: &mut Turn,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        loop {
            self.take_in_summary(front).await?;
            read_held!(front, turn.read_window(self.worker.ledger_mut()));
            let Agent { state, view, .. } = self.worker.agent();
            let limits = self.worker.engine().context_limits();
            if let Some(elision) = plan_elision(state, view, &turn.target, &turn.window, &limits) {
                if self.store_elision(elision, turn, front).await? {
                    continue;
                }
                return Ok(None);
            }
            let used = used_tokens(state, view, &turn.target);
            let cap = turn.window.cap;
            let share = |percent: u64| cap.saturating_mul(percent) / 100;
            let threshold = limits.summarise_above.unwrap_or(FULL_PERCENT);
            if used <= share(threshold.min(FULL_PERCENT)) {
                return Ok(None);
            }
            let keep = Keep::NewestResponse;
            let range = plan_summary(state, view, &turn.target, &turn.window, &limits, keep);
            let is_useful = |range: &SummaryRange| range.is_worth_asking(&turn.window);
            let Some(range) = range.filter(is_useful) else {
                // No summary frees enough, so the newest outputs must be shorter.
                if self.store_last_elision(turn, Keep::Nothing, front).await? {
                    continue;
                }
                return Ok(None);
            };
            let is_needed = used > share(FULL_PERCENT);
            if self.worker.summary().is_none() {
                let is_worth_it = range.fresh.saturating_mul(LEAST_FRESH_PART) >= cap;
                let starts = (is_needed || is_worth_it) && self.may_summarise(turn);
                if starts
                    && read_held!(front, used_up(self.worker.engine(), self.worker.agent()))
                        .is_none()
                {
                    self.start_summary(turn, used, range.clone(), front).await?;
                }
            }
            if !is_needed {
                return Ok(None);
            }
            if self.worker.summary().is_some() {
                if let Some(stop) = self.finish_summary(front).await? {
                    return Ok(Some(stop));
                }
            } else if !self.store_last_elision(turn, keep, front).await?
                && !self.store_cut(&range, turn, front).await?
            {
                return Ok(None);
            }
        }
    }

    /// Elides outputs of a request that is too large, except the rows in `keep`. Returns `false` if
    /// that is not needed or saves nothing.
    async fn store_last_elision(
        &mut self,
        turn: &Turn,
        keep: Keep,
        front: &mut FrontEnd<'_>,
    ) -> Result<bool, EngineError> {
        let Agent { state, view, .. } = self.worker.agent();
        let goal = turn.window.cap.saturating_mul(FULL_PERCENT) / 100;
        match plan_last_elision(state, view, &turn.target, goal, keep) {
            Some(elision) => self.store_elision(elision, turn, front).await,
            None => Ok(false),
        }
    }

    /// Requests an unknown model's window from the server, and makes the turn fit. Returns the stop
    /// of the turn, if the user stops it meanwhile.
    pub(super) async fn learn_window(
        &mut self,
        turn: &mut Turn,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        let models = self.worker.engine().models().clone();
        let mut learned = models.learn_window(&turn.choice);
        loop {
            tokio::select! {
                biased;
                () = &mut learned => break,
                request = front.next() => if let Some(stop) = self.worker.handle(request, front).await? {
                    return Ok(Some(stop));
                },
            }
        }
        drop(learned);
        if self.has_stale_window(turn) {
            turn.renew(self.worker.ledger(), front).await?;
        }
        Ok(None)
    }

    /// Prepares a turn again if a long message requires the model's window from the server.
    ///
    /// Short messages fit any window, so they are stored without a request to the server.
    pub(super) async fn turn_for(&self, message: &Event, turn: Turn) -> Result<Turn, EngineError> {
        let is_long =
            matches!(message, Event::User { text, .. } if text.len() > SHORT_MESSAGE_BYTES);
        if !is_long {
            return Ok(turn);
        }
        self.worker
            .engine()
            .look_up_window(self.worker.settings())
            .await?;
        if self.has_stale_window(&turn) {
            return Turn::prepare(self.worker.ledger()).await;
        }
        Ok(turn)
    }

    /// Returns true if the window of a turn's model became known since it was prepared.
    fn has_stale_window(&self, turn: &Turn) -> bool {
        self.worker.engine().models().window_tokens(&turn.choice) != turn.model.window_tokens()
    }

    /// Derives the model's true window from a refusal as too long, once per request. Returns true
    /// if the request can be sent again, shorter.
    pub(super) fn shrink_window(
        &mut self,
        turn: &mut Turn,
        error: &ProviderError,
        front: &mut FrontEnd<'_>,
    ) -> bool {
        if error.kind != FailureKind::TooLong || turn.overflowed {
            return false;
        }
        let Agent { state, view, .. } = self.worker.agent();
        let scale = Scale::of(state, view, &turn.target, turn.scale);
        let sent = scale.counted(used_tokens(state, view, &turn.target));
        let share = |tokens: u64| tokens.saturating_mul(OVERFLOW_PERCENT) / 100;
        // The model's window, if the refusal states it; the room to use is another matter,
        // since estimates can be wrong.
        let window = error.stated_window.map_or(share(sent), share);
        let room = window.min(share(sent));
        if room >= turn.budget.window || room < LEAST_WINDOW {
            return false;
        }
        turn.overflowed = true;
        self.worker.engine().correct_window(&turn.choice, window);
        turn.budget = Budget::new(room, Some(turn.budget.cap));
        let text = format!(
            "Request too long for the model: window corrected to {} tokens, sending a shorter one",
            tokens(window)
        );
        front.emit(UiEvent::Warning(text));
        true
    }

    fn may_summarise(&self, turn: &Turn) -> bool {
        self.worker
            .engine()
            .context_limits()
            .summarise_above
            .is_some()
            && turn.window.cap >= LEAST_SUMMARY_BUDGET
            && self.worker.summary_failures() < MOST_FAILURES
    }

    async fn start_summary(
        &mut self,
        turn: &Turn,
        used: u64,
        range: SummaryRange,
        front: &mut FrontEnd<'_>,
    ) -> Result<(), EngineError> {
        let share = used.saturating_mul(100) / turn.window.cap.max(1);
        let text = format!(
            "Context {share}% full ({} tokens): summarising {}",
            tokens(turn.budget.cap),
            counted(range.turns, "turn")
        );
        let summary = read_held!(front, self.write_summary(turn, range.clone(), None));
        *self.worker.summary() = Some(Box::new(summary));
        front.emit(UiEvent::Notice(text));
        Ok(())
    }

    /// Stores an elision; returns `false` if the path has no root.
    async fn store_elision(
        &mut self,
        elision: Elision,
        turn: &Turn,
        front: &mut FrontEnd<'_>,
    ) -> Result<bool, EngineError> {
        let data = SummaryData {
            to: Some(elision.to),
            elide: Some(elision.lines),
            ..SummaryData::default()
        };
        let points = [
            CrashPoint::BeforeElisionStored,
            CrashPoint::AfterElisionStored,
        ];
        if !self.store_context_row(data, points, turn, front).await? {
            return Ok(false);
        }
        let what = counted(elision.outputs, "old tool output");
        let saved = turn.scale.counted(elision.saved);
        let text = format!("Shortened {what}: {} tokens freed", tokens(saved));
        front.emit(UiEvent::Notice(text));
        Ok(true)
    }

    /// Stores a cut; returns `false` if the path has no root.
    async fn store_cut(
        &mut self,
        range: &SummaryRange,
        turn: &Turn,
        front: &mut FrontEnd<'_>,
    ) -> Result<bool, EngineError> {
        let data = SummaryData {
            to: Some(range.to),
            verbatim_from: range.verbatim_from,
            cut: Some(true),
            ..SummaryData::default()
        };
        let points = [CrashPoint::BeforeWindowCut, CrashPoint::AfterWindowCut];
        if !self.store_context_row(data, points, turn, front).await? {
            return Ok(false);
        }
        self.worker.set_summary_failures(0);
        let text = format!(
            "Context full: {} left out without a summary. Your own messages stay. /context undo",
            counted(range.turns, "turn")
        );
        front.emit(UiEvent::Warning(text));
        Ok(true)
    }

    /// Stores a context row without text, from the path's root; `false` without one.
    ///
    /// `points` are the crash points before and after the commit.
    async fn store_context_row(
        &mut self,
        data: SummaryData,
        points: [CrashPoint; 2],
        turn: &Turn,
        front: &mut FrontEnd<'_>,
    ) -> Result<bool, EngineError> {
        let Ledger { agent, engine, .. } = self.worker.ledger_mut();
        let from = read_held!(front, window::root_of(engine.reader(), agent));
        if from.is_none() {
            return Ok(false);
        }
        let scale = Scale::of(&agent.state, &agent.view, &turn.target, turn.scale);
        let scale = scale.stored(&turn.target, turn.scale);
        let data = SummaryData {
            from,
            scale,
            ..data
        };
        let row = Event::Summary { text: None, data };
        let [before, after] = points;
        self.worker.crash_point(before);
        let rows = self
            .worker
            .commit(CommitPlan::events(vec![row]).waiting(front))
            .await?;
        self.worker.crash_point(after);
        front.emit_rows(rows);
        Ok(true)
    }
}
