//! Jobs that one agent gives to another of this process.

use ikigai_store::{AgentRecord, CommitError};

use super::{Worker, check_resumable};
use crate::EngineError;
use crate::frontend::{AgentJob, UserRequest};
use crate::ledger::share_process_mode;

/// Starts a job of another agent that no other process holds.
pub(crate) async fn start_other(
    worker: &mut Worker,
    other: &AgentRecord,
    job: AgentJob,
) -> Result<(), EngineError> {
    let hub = worker.engine().hub();
    // Deliver it to an active agent: opening it again would settle its running turn.
    if hub.is_working(other.id).is_some() && hub.deliver(other.id, UserRequest::Do(job.clone())) {
        worker.await_child(other.id, false);
        return Ok(());
    }
    let engine = worker.engine().clone();
    let _door = engine.hub().door.acquire().await;
    let opened = open_other(worker, other).await?;
    worker.family().start(opened.into_ledger(), job);
    Ok(())
}

/// Starts a turn of an agent that the user sent mail. The process that holds it sees the mail.
pub(crate) async fn wake_other(
    worker: &mut Worker,
    other: &AgentRecord,
) -> Result<(), EngineError> {
    let own = worker.id();
    let ancestors = worker.family().family_tree().await?.ancestors(own);
    // An ancestor is not awaited: it may wait for this agent.
    let is_awaited = other.id != own && !ancestors.contains(&other.id);
    match start_unawaited(worker, other).await {
        Ok(()) if is_awaited => worker.await_child(other.id, false),
        Ok(()) | Err(EngineError::Commit(CommitError::Held { .. })) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Starts a turn of an idle parent or child that has new mail. Other agents read it later.
pub(super) async fn wake_relative(
    worker: &mut Worker,
    other: &AgentRecord,
) -> Result<(), EngineError> {
    let fork = worker.agent().state.fork();
    let is_parent = fork.is_some_and(|fork| fork.parent_uuid == Some(other.id));
    let is_child = other.parent == Some(worker.id());
    if !is_parent && !is_child {
        return Ok(());
    }
    match start_unawaited(worker, other).await {
        Ok(()) => {}
        // Its process sees the mail; a dead agent gets none.
        Err(EngineError::Commit(CommitError::Held { .. }) | EngineError::Dead(_)) => return Ok(()),
        Err(error) => return Err(error),
    }
    // A parent is not awaited: it may wait for this agent.
    if is_child {
        worker.await_child(other.id, true);
    }
    Ok(())
}

/// Returns true if a front end of this process runs an agent without a task, and is between two
/// turns. The next one has the mail.
async fn is_run_directly(worker: &Worker, other: &AgentRecord) -> Result<bool, EngineError> {
    let engine = &worker.engine();
    if engine.hub().is_working(other.id).is_some() {
        return Ok(false);
    }
    let record = engine.reader().agent(other.id).await?;
    let owner = record.and_then(|record| record.owner);
    Ok(owner.is_some_and(|owner| owner.id == engine.reader().process()))
}

/// Starts a turn with new mail of an agent that no other process holds.
async fn start_unawaited(worker: &Worker, other: &AgentRecord) -> Result<(), EngineError> {
    let engine = worker.engine().clone();
    let _door = engine.hub().door.acquire().await;
    if engine.hub().wake(other.id) || is_run_directly(worker, other).await? {
        return Ok(());
    }
    let opened = open_other(worker, other).await?;
    let ledger = opened.into_ledger();
    share_process_mode(worker.ledger(), &ledger);
    (ledger.starter)(ledger, Some(AgentJob::Mail));
    Ok(())
}

/// Resumes a stopped turn of another agent that no process holds, if any.
pub(crate) async fn resume_other(
    worker: &mut Worker,
    other: &AgentRecord,
) -> Result<bool, EngineError> {
    if worker.engine().hub().is_working(other.id) == Some(true) {
        return Ok(false);
    }
    if worker.engine().hub().is_working(other.id).is_some() {
        start_other(worker, other, AgentJob::Resume).await?;
        return Ok(true);
    }
    let engine = worker.engine().clone();
    let _door = engine.hub().door.acquire().await;
    let mut opened = match open_other(worker, other).await {
        Ok(worker) => worker,
        Err(EngineError::Commit(CommitError::Held { .. }) | EngineError::Dead(_)) => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    match check_resumable(opened.ledger_mut()).await {
        Ok(()) => {}
        Err(error) => {
            opened.release().await?;
            return match error {
                EngineError::NothingToResume => Ok(false),
                error => Err(error),
            };
        }
    }
    worker
        .family()
        .start(opened.into_ledger(), AgentJob::Resume);
    Ok(true)
}

async fn open_other(worker: &Worker, other: &AgentRecord) -> Result<Worker, EngineError> {
    let engine = &worker.engine();
    Worker::open(engine, other, worker.ledger().starter, worker.interpreter()).await
}
