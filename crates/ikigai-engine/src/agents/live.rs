//! The life of an agent in this process: it does what it is asked, reports, and listens.

use ikigai_core::AgentId;
use ikigai_core::data::Cause;
use ikigai_store::{AgentRecord, CommitError};
use tokio::sync::mpsc;

use crate::front::{Desk, Intent, Outcome, Stop, Update};
use crate::{EngineError, Worker};

/// What is asked of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Errand {
    /// To answer this.
    Say(String),
    /// To answer what is in its log already.
    Answer,
    /// To take its mail in and answer that.
    Mail,
    /// To go on with a stopped turn.
    Resume,
    /// To send the last turn again.
    Retry,
    /// To go on with what its log says is not done: open calls, or a message without an answer.
    GoOn,
    /// To carry out this line: a command, or one for the user's shell.
    Line(String),
}

impl Worker {
    /// Does what is asked, then waits for the children that its model forked meanwhile; what they
    /// leave as mail, when the last of them is done, is one more turn.
    pub async fn work(
        &mut self,
        errand: Errand,
        desk: &mut Desk<'_>,
    ) -> Result<Outcome, EngineError> {
        let mut outcome = self.carry_out(errand, desk).await?;
        loop {
            // A command may have ended the turn, and may begin another.
            if let Some(errand) = self.carry_out_waiting(desk).await? {
                outcome = self.carry_out(errand, desk).await?;
                continue;
            }
            if outcome != Outcome::Completed || self.children.is_empty() {
                return Ok(outcome);
            }
            if let Some(stop) = self.await_children(desk).await? {
                outcome = match stop {
                    Stop::Interrupt(cause) => Outcome::Interrupted(cause),
                    Stop::Deadline(after) => Outcome::Failed(format!(
                        "the children were not done within {} s",
                        after.as_secs()
                    )),
                };
            } else if self.has_mail().await? {
                outcome = self.carry_out(Errand::Mail, desk).await?;
            }
        }
    }

    /// Waits for what was started beside the agent, so that nothing is cut off by leaving. Returns
    /// why it was told to stop, if it was.
    pub async fn see_children_out(
        &mut self,
        desk: &mut Desk<'_>,
    ) -> Result<Option<Stop>, EngineError> {
        self.await_children(desk).await
    }

    /// Has another agent, which nobody holds, do something beside this one.
    pub(crate) async fn start_other(
        &mut self,
        other: &AgentRecord,
        errand: Errand,
    ) -> Result<(), EngineError> {
        let mut worker = self.engine.open(other).await?;
        worker.approve = self.approve;
        self.children.push(other.id);
        start(worker, errand);
        Ok(())
    }

    /// Has another agent go on with a turn that was stopped, if there is one and nobody holds it.
    pub(crate) async fn resume_other(&mut self, other: &AgentRecord) -> Result<bool, EngineError> {
        let mut worker = match self.engine.open(other).await {
            Ok(worker) => worker,
            Err(EngineError::Commit(CommitError::Held { .. }) | EngineError::Dead(_)) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        match worker.check_resumable().await {
            Ok(()) => {}
            Err(EngineError::NothingToResume) => {
                worker.release().await?;
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        worker.approve = self.approve;
        self.children.push(other.id);
        start(worker, Errand::Resume);
        Ok(true)
    }

    async fn carry_out(
        &mut self,
        errand: Errand,
        desk: &mut Desk<'_>,
    ) -> Result<Outcome, EngineError> {
        match errand {
            Errand::Say(text) => self.turn(&text, desk).await,
            Errand::Answer => self.answer(desk).await,
            Errand::Mail => self.answer_mail(desk).await,
            Errand::Resume => self.resume(desk).await,
            Errand::Retry => self.retry(desk).await,
            Errand::GoOn => self.go_on(desk).await,
            Errand::Line(line) => {
                desk.at_break.push_back(line);
                Ok(Outcome::Completed)
            }
        }
    }

    async fn has_mail(&self) -> Result<bool, EngineError> {
        let own = self.agent.state.agent();
        Ok(!self.engine.store.queued_mail(own).await?.is_empty())
    }

    /// Waits until no child works any more, unless it is told to stop.
    async fn await_children(&mut self, desk: &mut Desk<'_>) -> Result<Option<Stop>, EngineError> {
        let mut changes = self.engine.hub.changes(self.engine.store());
        loop {
            changes.mark_unchanged();
            let mut working = Vec::new();
            for child in std::mem::take(&mut self.children) {
                if self.engine.hub.is_working(child) == Some(true) {
                    working.push(child);
                }
            }
            self.children = working;
            if self.children.is_empty() {
                return Ok(None);
            }
            tokio::select! {
                biased;
                intent = desk.next() => if let Some(stop) = self.heed(intent, desk).await? {
                    self.stop_children(&stop);
                    return Ok(Some(stop));
                },
                _ = changes.changed() => {}
            }
        }
    }

    /// Whoever stops the program's only front end stops what it was waiting for.
    fn stop_children(&self, stop: &Stop) {
        for child in &self.children {
            self.engine.hub.deliver(*child, Intent::Stop(stop.clone()));
        }
    }
}

/// Starts an agent that has no front end of its own. A panic is its own affair: it is recorded, and
/// the others go on.
pub(super) fn start(worker: Worker, errand: Errand) {
    let engine = worker.engine.clone();
    let agent = worker.agent.state.agent();
    let intents = engine.hub.enlist(agent);
    let task = tokio::spawn(live(worker, errand, intents));
    tokio::spawn(async move {
        let panicked = task.await.is_err();
        engine.hub.leave(agent);
        if panicked {
            engine.broken_down(agent).await;
        }
    });
}

async fn live(mut worker: Worker, errand: Errand, mut intents: mpsc::Receiver<Intent>) {
    let engine = worker.engine.clone();
    let agent = worker.agent.state.agent();
    let (observer, answers) = engine.hub.observer();
    let name = worker.settings().name.clone().unwrap_or_default();
    let mut tell = |update: Update| {
        if let Some(observer) = &observer {
            observer(&name, &update);
        }
    };
    let mut next = Some(errand);
    while let Some(errand) = next {
        engine.hub.set_working(agent, true);
        let desk = Desk::new(&mut intents, &mut tell);
        let mut desk = if answers {
            desk
        } else {
            desk.without_answers()
        };
        let outcome = worker.work(errand, &mut desk).await;
        if let Err(error) = outcome {
            desk.tell(Update::Warning(error.to_string()));
            break;
        }
        if outcome.is_ok_and(|outcome| outcome == Outcome::Interrupted(Cause::Kill)) {
            break;
        }
        engine.hub.set_working(agent, false);
        next = listen(&mut intents).await;
    }
    // The lease ends with the process anyway.
    let _ = worker.release().await;
}

/// What an idle agent is asked next; none if it is to end.
async fn listen(intents: &mut mpsc::Receiver<Intent>) -> Option<Errand> {
    loop {
        match intents.recv().await? {
            Intent::Say(text) => return Some(Errand::Say(text)),
            Intent::Command(line) => return Some(Errand::Line(line)),
            Intent::Stop(Stop::Interrupt(Cause::Kill | Cause::Exit)) => return None,
            // There is nothing to stop, to take back or to answer.
            Intent::Stop(_) | Intent::TakeBack(_) | Intent::Answer { .. } => {}
        }
    }
}

impl crate::Engine {
    /// Records that an agent's task broke down, so that its turn is not left open for ever.
    async fn broken_down(&self, agent: AgentId) {
        let Ok(Some(record)) = self.store.agent(agent).await else {
            return;
        };
        // Whoever opens it settles it; the lease is still this process's.
        let _ = self.open(&record).await;
    }
}
