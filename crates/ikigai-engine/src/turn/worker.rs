//! One agent at work: its ledger, and state that lives between its turns.

use std::sync::Arc;

use ikigai_core::data::Cause;
use ikigai_core::settings::{Approve, ModelChoice};
use ikigai_core::spelling::spell_out;
use ikigai_core::{AgentId, Row, RowRef, Settings};
use ikigai_store::{Agent, AgentRecord};
use ikigai_tools::TemporaryDirectory;
use ikigai_tools::output::{MOST_SENT_BYTES, OutputLimit};
use ikigai_tools::permission::Decision;
use ikigai_tools::process::keeper::StopCause;

use super::calls::ToolRound;
use super::compact::ContextKeeper;
use super::settle::Settlement;
use super::{Interpreter, Summary};
use crate::budget::{UsedCap, used_caps};
use crate::context::Context;

use crate::environment::CrashPoint;
use crate::family::{Family, Started};
use crate::frontend::{FrontEnd, Question, Stop, UiEvent};
use crate::inbox::mark_read;
use crate::ledger::{CommitPlan, Ledger, Starter};
use crate::processes::Processes;
use crate::{Engine, EngineError};

/// An agent of this process.
pub struct Worker {
    ledger: Ledger,
    /// Runs lines that the user types during a turn.
    interpreter: &'static dyn Interpreter,
    /// Agents that it started and that may still work.
    children: Vec<Started>,
    /// Summary that is being written in parallel.
    summary: Option<Box<Summary>>,
    /// Largest size of each result of the newest response.
    result_size: OutputLimit,
    /// Number of consecutive failed summaries.
    summary_failures: u32,
    /// Reason for which its last turn was stopped, if it was.
    stopped: Option<Stop>,
    /// A turn has begun and not reached its end: it failed, or was dropped.
    unsettled: bool,
    /// Stop that ended that turn, because the store did not come back.
    gave_up: Option<Cause>,
    /// Directory for temporary files of its commands; removed with it.
    temporary: Arc<TemporaryDirectory>,
}

impl Worker {
    /// Wraps a ledger, without settling an unfinished turn.
    pub(crate) fn new(ledger: Ledger, interpreter: &'static dyn Interpreter) -> Self {
        Self {
            ledger,
            interpreter,
            children: Vec::new(),
            summary: None,
            result_size: OutputLimit::of_bytes(MOST_SENT_BYTES),
            summary_failures: 0,
            stopped: None,
            unsettled: false,
            gave_up: None,
            temporary: Arc::default(),
        }
    }

    /// Takes an agent's lease, and settles a former holder's unfinished turn.
    pub(crate) async fn open(
        engine: &Engine,
        agent: &AgentRecord,
        starter: Starter,
        interpreter: &'static dyn Interpreter,
    ) -> Result<Self, EngineError> {
        let ledger = Ledger::open(engine, agent, starter).await?;
        let mut worker = Self::new(ledger, interpreter);
        worker.settlement().settle().await?;
        Ok(worker)
    }

    /// Returns the state and rows of the agent.
    pub fn agent(&self) -> &Agent {
        &self.ledger.agent
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.ledger.engine
    }

    pub(crate) fn id(&self) -> AgentId {
        self.ledger.id()
    }

    /// Returns the newest row of the agent.
    pub(crate) fn newest(&self) -> RowRef {
        RowRef::new(self.id(), self.ledger.agent.state.head())
    }

    pub(super) fn crash_point(&self, point: CrashPoint) {
        self.ledger.crash_point(point);
    }

    /// Stores rows and effects; see [`Ledger::commit`].
    pub(crate) async fn commit(
        &mut self,
        plan: CommitPlan<'_, '_>,
    ) -> Result<Vec<Row>, EngineError> {
        self.ledger.commit(plan).await
    }

    pub(crate) fn settings(&self) -> &Settings {
        self.ledger.settings()
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    pub(crate) fn into_ledger(self) -> Ledger {
        self.ledger
    }

    pub(crate) fn interpreter(&self) -> &'static dyn Interpreter {
        self.interpreter
    }

    /// Returns the agents that it started and that may still work.
    pub(crate) fn children(&self) -> &[Started] {
        &self.children
    }

    /// Adds an agent to those that run with this one.
    pub(super) fn await_child(&mut self, id: AgentId, reports: bool) {
        match self.children.iter_mut().find(|child| child.id == id) {
            Some(child) => child.reports |= reports,
            None => self.children.push(Started { id, reports }),
        }
    }

    pub(crate) fn forget_children(&mut self) {
        self.children.clear();
    }

    /// Returns the summary that is being written in parallel.
    pub(super) fn summary(&mut self) -> &mut Option<Box<Summary>> {
        &mut self.summary
    }

    /// Returns the number of consecutive failed summaries.
    pub(super) fn summary_failures(&self) -> u32 {
        self.summary_failures
    }

    pub(super) fn set_summary_failures(&mut self, failures: u32) {
        self.summary_failures = failures;
    }

    pub(super) fn result_size(&self) -> OutputLimit {
        self.result_size
    }

    pub(super) fn set_result_size(&mut self, size: OutputLimit) {
        self.result_size = size;
    }

    /// Records why a turn was stopped.
    pub(super) fn note_stop(&mut self, stop: &Stop) {
        self.stopped = Some(stop.clone());
        self.summary = None;
    }

    /// Returns the reason for which the last turn was stopped, and forgets it.
    pub(crate) fn take_stop(&mut self) -> Option<Stop> {
        self.stopped.take()
    }

    /// Returns true if a turn has begun and not reached its end.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.unsettled
    }

    pub(super) fn set_unsettled(&mut self, unsettled: bool) {
        self.unsettled = unsettled;
    }

    /// Returns the stop that ended an unsettled turn, because the store did not come back.
    pub(super) fn gave_up(&self) -> Option<Cause> {
        self.gave_up
    }

    pub(super) fn set_gave_up(&mut self, cause: Option<Cause>) {
        self.gave_up = cause;
    }

    pub(super) fn temporary(&self) -> Arc<TemporaryDirectory> {
        self.temporary.clone()
    }

    /// Operations on other agents.
    pub(crate) fn family(&mut self) -> Family<'_> {
        Family {
            ledger: &mut self.ledger,
            children: &mut self.children,
            result_size: self.result_size,
        }
    }

    /// Returns true if mail came that starts a turn; asks once per mail.
    pub(crate) async fn takes_new_mail(&self) -> bool {
        let hub = self.ledger.engine.hub();
        let taken = hub.takes_new_mail(self.ledger.engine.reader(), self.id());
        // A failing store gives no answer; the next mail is another occasion.
        taken.await.unwrap_or(false)
    }

    /// Sets the approval mode of this process; the log has a row about it.
    pub async fn approve_for_now(&mut self, mode: Approve) -> Result<Vec<Row>, EngineError> {
        self.ledger.approve_for_now(mode).await
    }

    /// Chooses the model from the next request on.
    pub async fn choose_model(&mut self, choice: ModelChoice) -> Result<Vec<Row>, EngineError> {
        self.ledger.choose_model(choice).await
    }

    /// Offers, once per process, to accept the foreign grants of a root agent's log.
    pub fn offer_grants(&self, front: &mut FrontEnd<'_>) {
        self.ledger.offer_grants(front);
    }

    /// Returns the caps of the agent and its ancestors, the nearest first.
    pub async fn caps(&self) -> Result<Vec<UsedCap>, EngineError> {
        used_caps(&self.ledger.engine, &self.ledger.agent).await
    }

    /// Returns the contents of the window.
    pub async fn context(&self) -> Result<Context, EngineError> {
        // A copy, so that the sent view does not grow.
        let agent = self.ledger.agent.clone();
        self.ledger.engine.context_of(agent).await
    }

    /// Notes that the user has read the agent's newest answer.
    pub async fn mark_read(&self) -> Result<(), EngineError> {
        let row = RowRef::new(self.id(), self.ledger.agent.state.head());
        mark_read(self.engine(), row).await
    }

    /// Gives the lease back, so that another process can take it at once.
    ///
    /// The observer gets the rows that settled a former process's work, if no front end has them
    /// yet: a screen may have read the agent before.
    pub async fn release(mut self) -> Result<(), EngineError> {
        self.engine().processes().forget(self.id());
        let settled = std::mem::take(&mut self.ledger.settled);
        if let (Some(observer), _) = self.ledger.engine.hub().observer() {
            let name = self.settings().name.clone().unwrap_or_default();
            for row in settled {
                observer(self.ledger.id(), &name, &UiEvent::Settled(row));
            }
        }
        self.ledger.release().await
    }

    /// Reports unfinished work and queued messages, and asks open questions again (E9d).
    pub(crate) async fn greet(&mut self, front: &mut FrontEnd<'_>) -> Result<(), EngineError> {
        self.tell_settled(front).await?;
        self.offer_grants(front);
        self.inbox().tell_queued(front).await?;
        let open = self.ledger.open_calls().await?;
        if open.is_empty() || !front.answers {
            return Ok(());
        }
        let tools = self.ledger.engine.toolset(self.ledger.settings()).await;
        for call in open {
            let Ok(prepared) = self.family().prepare_call(&tools, &call).await? else {
                continue;
            };
            let sandbox = self.ledger.engine.sandbox_for(prepared.class).await;
            let judged = self
                .tool_round()
                .judge(&call, &prepared, &tools.place, sandbox);
            if let Decision::Ask { pattern } = judged {
                let question = self
                    .tool_round()
                    .question(&call, &prepared, &tools.place, pattern);
                let preview = (prepared.preview, prepared.needs);
                let preview = match Box::pin(self.tool_round().preview_call(preview, front)).await?
                {
                    Ok(preview) => preview,
                    // Without a question, the stopped turn could not continue.
                    Err(output) => Some(spell_out(&format!("it will fail: {}", output.shown))),
                };
                front.emit(UiEvent::Question(Question {
                    preview,
                    ..question
                }));
            }
        }
        Ok(())
    }

    /// Background processes of the agent.
    pub(crate) fn processes(&mut self) -> Processes<'_> {
        Processes {
            ledger: &mut self.ledger,
        }
    }

    /// Returns the number of the agent's newest background process; 0 if it has none.
    pub async fn newest_process(&mut self) -> Result<u64, EngineError> {
        self.processes().newest_number().await
    }

    /// Ends the agent's background processes after this one on this machine; returns their number.
    pub async fn end_processes(&mut self, after: u64) -> Result<usize, EngineError> {
        self.processes().end_after(after, StopCause::Request).await
    }

    /// Borrows the calls of a response, and questions about them.
    pub(crate) fn tool_round(&mut self) -> ToolRound<'_> {
        ToolRound { worker: self }
    }

    /// Borrows the window and its summaries.
    pub(crate) fn context_keeper(&mut self) -> ContextKeeper<'_> {
        ContextKeeper { worker: self }
    }

    pub(super) fn settlement(&mut self) -> Settlement<'_> {
        Settlement { worker: self }
    }
}
