//! Execution of the calls of an answer.
//!
//! Calls that touch different files run in parallel, others in order; each is journalled before it
//! starts and answered when it ends.

use std::collections::HashMap;
use std::sync::Arc;

use ikigai_core::data::{Category, Verdict};
use ikigai_core::spelling::spell_out;
use ikigai_core::{EffectClass, Event};
use ikigai_store::{Effect, RunEffect, RunId};
use ikigai_tools::output::present_within;
use ikigai_tools::permission::Decision;
use ikigai_tools::process::OutputListener;
use ikigai_tools::{CallContext, CallEnding, CallInputs, Confinement, Output, Prepared, Touches};
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::background_calls::{ProcessCalls, background_of};
use super::queue::{Boundary, Senders, withdrawn};
use super::tool_run::{BROKE_DOWN, GRACE, carry_out, is_exit, not_run};
use super::{Turn, TurnStep, failed_report};
use crate::blobs::{store_images, store_output};
use crate::calls::{Came, OpenCall, close};
use crate::changed_files::store_changes;
use crate::environment::{CrashPoint, cookie_of};
use crate::family::Wait;
use crate::frontend::{FrontEnd, Question, Stop, UiEvent, UserRequest};
use crate::hub::OpenQuestion;
use crate::ledger::{Ledger, read_held};
use crate::recall;
use crate::response::failure;
use crate::tools::Freedom;
use crate::{EngineError, Worker};

/// Most calls that run at the same time.
const MOST_RUNNING: usize = 8;

/// Refusals of one call, with the same arguments, that end a turn.
const MOST_REFUSALS: usize = 5;

/// Most lines of progress that wait for the front end; more are dropped.
const PROGRESS_LINES: usize = 64;

/// The calls of one answer.
pub(super) struct CallSet {
    pub(super) calls: Vec<Call>,
    /// Questions as they were asked.
    pub(super) questions: Vec<Question>,
    /// Calls that siblings may settle.
    pub(super) open_questions: Vec<OpenQuestion>,
    tasks: JoinSet<Output>,
    /// Index of each task's call.
    running: HashMap<Id, usize>,
    progress: mpsc::Sender<UiEvent>,
    /// Results of calls that do not run; one commit stores them.
    pub(super) refused: Vec<Event>,
    /// Tools and arguments of calls that were refused, also by the user.
    pub(super) refusals: Vec<(String, String)>,
}

pub(super) struct Call {
    pub(super) open: OpenCall,
    pub(super) touches: Touches,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    /// Not handled, because a call before it ended the agent.
    Unseen,
    /// It may start when no call before it blocks it.
    Ready(Box<Prepared>, Freedom),
    /// It waits for an approval.
    Question(Box<Prepared>),
    /// It runs.
    Running {
        stop: CancellationToken,
        run: Option<RunId>,
    },
    /// It waits for other agents, at most until this time.
    Waiting(Wait, Instant),
    /// Its result is stored.
    Ended,
}

/// Runs the calls of one response, and asks questions about them.
pub(crate) struct ToolRound<'a> {
    pub(super) worker: &'a mut Worker,
}

impl ToolRound<'_> {
    /// Executes calls until each has its result.
    pub(super) async fn run_tools(
        &mut self,
        turn: &mut Turn,
        open: Vec<OpenCall>,
        front: &mut FrontEnd<'_>,
    ) -> Result<TurnStep, EngineError> {
        turn.calls += open.len();
        self.worker.context_keeper().share_results(turn, open.len());
        if turn.calls > self.worker.engine().limits().calls {
            let text = format!(
                "limit reached: {} tool calls in one turn",
                self.worker.engine().limits().calls
            );
            let mut rows = close(&open, &format!("not run: {text}"));
            rows.push(failure(Category::Limit, &text, None, 1));
            return self.worker.give_up(rows, text, front).await;
        }
        let (progress, mut lines) = mpsc::channel(PROGRESS_LINES);
        let mut round = CallSet {
            calls: Vec::new(),
            questions: Vec::new(),
            open_questions: Vec::new(),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            progress,
            refused: Vec::new(),
            refusals: Vec::new(),
        };
        let mut open = open.into_iter();
        while let Some(call) = open.next() {
            if let Some(stop) = self.admit(call, turn, &mut round, front).await? {
                round.calls.extend(open.map(Call::unseen));
                return self.stop_calls(round, &stop, front).await;
            }
        }
        self.store_refusals(&mut round, front).await?;
        let mut changes = self
            .worker
            .engine()
            .hub()
            .changes(self.worker.engine().shared_reader());
        loop {
            if let Some(stop) = self.start_ready(turn, &mut round, front).await? {
                return self.stop_calls(round, &stop, front).await;
            }
            changes.mark_unchanged();
            self.answer_waits(&mut round, front).await?;
            if round.is_done() {
                break;
            }
            // Time spent waiting only for the user does not count for the turn.
            let only_asked = round.running.is_empty() && !round.is_waiting();
            let since = Instant::now();
            tokio::select! {
                biased;
                request = front.next() => match request {
                    UserRequest::Answer { call, answer, by } => {
                        self.handle_answer(turn, (call, answer, by), &mut round, front).await?;
                    }
                    other => if let Some(stop) = self.worker.handle(other, front).await? {
                        return self.stop_calls(round, &stop, front).await;
                    },
                },
                () = sleep_until(turn.deadline), if !only_asked => {
                    let stop = Stop::Deadline(self.worker.engine().limits().time);
                    return self.stop_calls(round, &stop, front).await;
                }
                _ = changes.changed(), if round.is_waiting() => {}
                () = sleep_until(round.wait_ends(turn.deadline)), if round.is_waiting() => {}
                Some(update) = lines.recv() => front.emit(update),
                Some(ended) = round.tasks.join_next_with_id() => {
                    let ended = round.all_ended(ended);
                    self.record(ended, &mut round, front).await?;
                }
            }
            if only_asked {
                turn.deadline += since.elapsed();
            }
        }
        if let Some(stop) = self.worker.drain(front).await? {
            return self.worker.stop_here(&stop, front).await;
        }
        if let Some(tool) = turn.count_refusals(round.refusals) {
            let text = format!(
                "the model repeated a refused call of `{tool}` {MOST_REFUSALS} times without a change"
            );
            let rows = vec![failure(Category::Limit, &text, None, 1)];
            return self.worker.give_up(rows, text, front).await;
        }
        self.worker.processes().record_news(front).await?;
        self.worker
            .inbox()
            .take_in(Senders::UserAndProcesses, Boundary::Within, front)
            .await?;
        Ok(TurnStep::Ask)
    }

    /// Decides about a call; answers one that cannot or may not run at once.
    async fn admit(
        &mut self,
        open: OpenCall,
        turn: &Turn,
        round: &mut CallSet,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        let prepared =
            match read_held!(front, self.worker.family().prepare_call(&turn.tools, &open)) {
                Ok(prepared) => Box::new(prepared),
                Err(reason) => return Ok(round.refuse(&open, reason)),
            };
        let starts_process = background_of(&prepared.needs).is_some();
        if let Some(reason) = ProcessCalls::of(self.worker)
            .refuse_background(starts_process)
            .await?
        {
            return Ok(round.refuse(&open, reason));
        }
        let prepared = self.worker.engine().without_needless_door(prepared);
        let sandbox = self.worker.engine().sandbox_for(prepared.class).await;
        let decision = self.judge(&open, &prepared, &turn.tools.place, sandbox);
        if let (Decision::Allow, Some(tool)) = (&decision, turn.tools.agent_tool(&open.name)) {
            self.store_refusals(round, front).await?;
            return self.admit_deal(tool, open, round, front).await;
        }
        let stage = match decision {
            Decision::Allow => {
                let freedom = Freedom::of(&prepared);
                Stage::Ready(prepared, freedom)
            }
            Decision::AllowConfined => Stage::Ready(prepared, Freedom::Reading),
            Decision::Refuse(reason) => return Ok(round.refuse(&open, reason)),
            Decision::Ask { .. } if !front.answers => {
                let reason = format!(
                    "{} needs approval and there is no terminal to ask on. Use --approve edits or --approve all",
                    open.name
                );
                return Ok(round.refuse(&open, reason));
            }
            // Questions that were answered before the turn continued are not asked again.
            Decision::Ask { .. } if front.is_answered(open.at) => Stage::Question(prepared),
            Decision::Ask { pattern } => {
                let question = self.question(&open, &prepared, &turn.tools.place, pattern);
                let preview = (prepared.preview.clone(), prepared.needs.clone());
                let preview = match Box::pin(self.preview_call(preview, front)).await? {
                    Ok(preview) => preview,
                    // A call before it may still make it succeed.
                    Err(output) if round.is_touched(&prepared.touches) => {
                        Some(spell_out(&format!("it would fail now: {}", output.shown)))
                    }
                    Err(output) => return Box::pin(self.fail(&open, *output, front)).await,
                };
                let question = Question {
                    preview,
                    ..question
                };
                let open = read_held!(front, self.register(&question));
                round.open_questions.extend(open);
                round.questions.push(question.clone());
                front.emit(UiEvent::Question(question));
                Stage::Question(prepared)
            }
        };
        let touches = match &stage {
            Stage::Ready(prepared, _) | Stage::Question(prepared) => prepared.touches.clone(),
            _ => Touches::default(),
        };
        round.calls.push(Call {
            open,
            touches,
            stage,
        });
        Ok(None)
    }

    /// Starts every call that no call before it blocks.
    /// Returns a stop if one of them ended this agent.
    async fn start_ready(
        &mut self,
        turn: &Turn,
        round: &mut CallSet,
        front: &mut FrontEnd<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        let mut starting = Vec::new();
        for index in round.ready() {
            if let Some(tool) = turn.tools.agent_tool(&round.calls[index].open.name) {
                if let Some(stop) = self.start_agent_tool(tool, index, round, front).await? {
                    return Ok(Some(stop));
                }
                continue;
            }
            let Stage::Ready(prepared, _) = &round.calls[index].stage else {
                continue;
            };
            let (class, needs) = (prepared.class, prepared.needs.clone());
            let mut inputs = read_held!(
                front,
                recall::inputs(self.worker.engine(), self.worker.agent(), &needs)
            );
            inputs.processes =
                read_held!(front, ProcessCalls::of(self.worker).known_processes(&needs));
            if class == EffectClass::Execute {
                inputs.own_runs = self.worker.processes().own_runs();
            }
            starting.push((index, inputs));
        }
        let indices: Vec<_> = starting.iter().map(|(index, _)| *index).collect();
        let runs = self.journal(&indices, round, front).await?;
        for ((index, mut inputs), (run, place)) in starting.into_iter().zip(runs) {
            let stage = &round.calls[index].stage;
            ProcessCalls::of(self.worker).set_places(stage, (run, place), &mut inputs);
            self.start(index, (run, inputs), turn, round, front);
        }
        Ok(None)
    }

    /// Starts a call, which is journalled if necessary.
    fn start(
        &mut self,
        index: usize,
        (run, inputs): (Option<RunId>, CallInputs),
        turn: &Turn,
        round: &mut CallSet,
        front: &mut FrontEnd<'_>,
    ) {
        let call = &mut round.calls[index];
        let stage = std::mem::replace(&mut call.stage, Stage::Ended);
        let Stage::Ready(prepared, freedom) = stage else {
            call.stage = stage;
            return;
        };
        let at = call.open.at;
        let deadline = prepared.deadline;
        let stop = CancellationToken::new();
        let place = &turn.tools.place;
        let confinement = match prepared.class {
            EffectClass::Execute => {
                let usual = turn.tools.confinement(self.worker.engine(), freedom);
                usual.with_servers_of(&inputs.own_runs)
            }
            _ => Confinement::None,
        };
        let context = CallContext {
            place: place.clone(),
            stop: stop.clone(),
            inputs,
            progress: listener(self.worker.ledger(), &round.progress, move |line| {
                UiEvent::Progress { call: at, line }
            }),
            output: listener(self.worker.ledger(), &round.progress, move |text| {
                UiEvent::Output { call: at, text }
            }),
            cookie: cookie_of(run),
            temporary: (freedom != Freedom::Reading).then(|| self.worker.temporary()),
            confinement,
        };
        let task = round
            .tasks
            .spawn(carry_out(prepared.run, context, deadline));
        round.running.insert(task.id(), index);
        round.calls[index].stage = Stage::Running { stop, run };
        front.emit(UiEvent::Running(at));
        self.worker.crash_point(CrashPoint::AfterCallStarted);
    }

    /// Builds the row of a result, and the effect that ends its run. Stores the blob first.
    pub(super) async fn result_of(
        &mut self,
        open: &OpenCall,
        run: Option<RunId>,
        mut output: Output,
        front: &mut FrontEnd<'_>,
    ) -> Result<(Vec<Event>, Vec<Effect>), EngineError> {
        let learned = ProcessCalls::of(self.worker)
            .learn_of_process(open.at, &mut output, front)
            .await?;
        if let Some(stale) = &output.stale
            && let Some(who) = read_held!(
                front,
                recall::who_changed(self.worker.engine(), self.worker.id(), stale)
            )
        {
            let line = format!("{} was changed by {who}.\n", stale.path);
            line.trim_end().clone_into(&mut output.shown);
            output.body.splice(0..0, line.into_bytes());
        }
        let blank = self.worker.engine().safety().blank.clone();
        let presented = present_within(
            &output.body,
            &*blank,
            self.worker.context_keeper().result_limit(open),
        );
        let ledger = self.worker.ledger();
        let blob = store_output(ledger, presented.blob.as_deref(), front).await?;
        let images = store_images(ledger, &output.images, front).await?;
        let verdict = match output.ending {
            CallEnding::Ran => Verdict::Ran,
            CallEnding::Stopped => Verdict::Interrupted,
        };
        let came = Came {
            output: presented.text,
            shown: Some(String::from_utf8_lossy(&blank(output.shown.as_bytes())).into_owned()),
            success: output.success,
            blob,
            files: output.files,
            process: learned.number,
            refused: output.refused,
            images,
        };
        let changed = store_changes(ledger, open.at, output.changes, Some(front)).await?;
        let ended = self.worker.engine().environment().now();
        let end = run.map(|run| Effect::Run(RunEffect::End { run, ended }));
        let result = std::iter::once(open.result(came, verdict));
        Ok((
            result.chain(learned.row).chain(changed).collect(),
            end.into_iter().chain(learned.effects).collect(),
        ))
    }

    /// Stops all calls with their processes, and stores their results and the reason.
    async fn stop_calls(
        &mut self,
        mut round: CallSet,
        stop: &Stop,
        front: &mut FrontEnd<'_>,
    ) -> Result<TurnStep, EngineError> {
        for call in &round.calls {
            match &call.stage {
                Stage::Running { stop, .. } => stop.cancel(),
                Stage::Question(..) => front.emit(UiEvent::Unasked(call.open.at)),
                _ => {}
            }
        }
        let mut ended = Vec::new();
        let _ = timeout(GRACE, async {
            while let Some(task) = round.tasks.join_next_with_id().await {
                ended.push(task);
            }
        })
        .await;
        let mut events = Vec::new();
        let mut ends = Vec::new();
        for task in ended {
            let (index, output) = round.ended(task);
            let call = &mut round.calls[index];
            let (open, run) = (&call.open, call.stage.run());
            let (rows, end) = self.result_of(open, run, output, front).await?;
            call.stage = Stage::Ended;
            events.extend(rows);
            ends.extend(end);
        }
        round.tasks.abort_all();
        for call in &round.calls {
            let (reason, run) = match &call.stage {
                Stage::Ended => continue,
                Stage::Running { run, .. } => ("did not stop in time", *run),
                // After a restart the question is asked again, and the wait continues.
                Stage::Question(..) | Stage::Waiting(..) if is_exit(stop) => continue,
                Stage::Waiting(..) => ("the wait was stopped", None),
                Stage::Unseen | Stage::Ready(..) | Stage::Question(..) => (not_run(stop), None),
            };
            events.push(call.open.result(Came::failed(reason), Verdict::Interrupted));
            let ended = self.worker.engine().environment().now();
            ends.extend(run.map(|run| Effect::Run(RunEffect::End { run, ended })));
        }
        let (last, outcome) = self.worker.stopped_by(stop);
        events.push(last);
        let taken = self.worker.inbox().taken_back(stop, front).await?;
        ends.extend(withdrawn(&taken));
        let report = failed_report(&outcome);
        self.worker.crash_point(CrashPoint::BeforeStopStored);
        let rows = self
            .worker
            .ledger_mut()
            .commit_ending(events, ends, report.as_ref(), front)
            .await?;
        self.worker.crash_point(CrashPoint::AfterStopStored);
        front.emit_rows(rows);
        front.hand_back(taken);
        self.worker.processes().watch_all().await?;
        Ok(TurnStep::Done(outcome))
    }
}

/// Forwards the output of a tool to front ends, without secrets.
fn listener(
    ledger: &Ledger,
    updates: &mpsc::Sender<UiEvent>,
    update: impl Fn(String) -> UiEvent + Send + Sync + 'static,
) -> OutputListener {
    let blank = ledger.engine.safety().blank.clone();
    let updates = updates.clone();
    Arc::new(move |text| {
        let text = String::from_utf8_lossy(&blank(text.as_bytes())).into_owned();
        // A slow front end misses lines, but no results.
        let _ = updates.try_send(update(text));
    })
}

impl Turn {
    /// Counts refused calls; returns the tool of one that is repeated in vain.
    fn count_refusals(&mut self, refusals: Vec<(String, String)>) -> Option<String> {
        let mut repeated = None;
        for refusal in refusals {
            let tool = refusal.0.clone();
            let count = self.refusals.entry(refusal).or_default();
            *count += 1;
            if *count >= MOST_REFUSALS {
                repeated = Some(tool);
            }
        }
        repeated
    }
}

impl Call {
    fn unseen(open: OpenCall) -> Self {
        Self {
            open,
            touches: Touches::default(),
            stage: Stage::Unseen,
        }
    }
}

impl Stage {
    /// Returns the journalled run of a running call.
    pub(super) fn run(&self) -> Option<RunId> {
        match self {
            Self::Running { run, .. } => *run,
            _ => None,
        }
    }
}

impl CallSet {
    fn is_done(&self) -> bool {
        self.calls
            .iter()
            .all(|call| matches!(call.stage, Stage::Ended))
    }

    /// Returns the calls that may start now, up to the limit.
    fn ready(&self) -> Vec<usize> {
        let room = MOST_RUNNING.saturating_sub(self.running.len());
        let indices = 0..self.calls.len();
        let ready = indices.filter(|index| self.may_start(*index));
        ready.take(room).collect()
    }

    /// Returns true if a call may start now.
    /// It is allowed, and no unfinished call before it touches the same files.
    fn may_start(&self, index: usize) -> bool {
        let call = &self.calls[index];
        let before = &self.calls[..index];
        matches!(call.stage, Stage::Ready(..))
            && !before.iter().any(|earlier| {
                !matches!(earlier.stage, Stage::Ended)
                    && earlier.touches.conflicts_with(&call.touches)
            })
    }

    fn is_waiting(&self) -> bool {
        let waits = |call: &Call| matches!(call.stage, Stage::Waiting(..));
        self.calls.iter().any(waits)
    }

    /// Returns the deadline of the first wait.
    fn wait_ends(&self, latest: Instant) -> Instant {
        let ends = self.calls.iter().filter_map(|call| match &call.stage {
            Stage::Waiting(_, until) => Some(*until),
            _ => None,
        });
        ends.min().unwrap_or(latest)
    }

    /// Returns the calls that have ended, with their outputs.
    fn all_ended(&mut self, first: Result<(Id, Output), JoinError>) -> Vec<(usize, Output)> {
        let mut ended = vec![self.ended(first)];
        while let Some(next) = self.tasks.try_join_next_with_id() {
            ended.push(self.ended(next));
        }
        ended
    }

    /// Returns the call of a finished task, with its output. A tool that panics has failed.
    fn ended(&mut self, ended: Result<(Id, Output), JoinError>) -> (usize, Output) {
        let (id, output) = match ended {
            Ok(ended) => ended,
            Err(error) => (error.id(), Output::failed(BROKE_DOWN)),
        };
        (self.running.remove(&id).unwrap_or_default(), output)
    }
}
