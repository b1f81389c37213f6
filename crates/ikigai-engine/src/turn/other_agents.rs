//! Jobs that one agent gives to another of this process.

use ikigai_store::{AgentRecord, CommitError};

use super::{Worker, check_resumable};
use crate::EngineError;
use crate::family::Started;
use crate::frontend::{AgentJob, UserRequest};

/// Starts a job of another agent that no other process holds.
pub(crate) async fn start_other(
    worker: &mut Worker,
    other: &AgentRecord,
    job: AgentJob,
) -> Result<(), EngineError> {
    let hub = &worker.ledger.engine.hub;
    // Deliver it to an active agent: opening it again would settle its running turn.
    if hub.is_working(other.id).is_some() && hub.deliver(other.id, UserRequest::Do(job.clone())) {
        worker.children.push(Started {
            id: other.id,
            reports: false,
        });
        return Ok(());
    }
    let engine = worker.ledger.engine.clone();
    let _door = engine.hub.door.acquire().await;
    let opened = open_other(worker, other).await?;
    worker.family().start(opened.ledger, job);
    Ok(())
}

/// Resumes a stopped turn of another agent that no process holds, if any.
pub(crate) async fn resume_other(
    worker: &mut Worker,
    other: &AgentRecord,
) -> Result<bool, EngineError> {
    if worker.ledger.engine.hub.is_working(other.id) == Some(true) {
        return Ok(false);
    }
    if worker.ledger.engine.hub.is_working(other.id).is_some() {
        start_other(worker, other, AgentJob::Resume).await?;
        return Ok(true);
    }
    let engine = worker.ledger.engine.clone();
    let _door = engine.hub.door.acquire().await;
    let mut opened = match open_other(worker, other).await {
        Ok(worker) => worker,
        Err(EngineError::Commit(CommitError::Held { .. }) | EngineError::Dead(_)) => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    match check_resumable(&mut opened.ledger).await {
        Ok(()) => {}
        Err(error) => {
            opened.release().await?;
            return match error {
                EngineError::NothingToResume => Ok(false),
                error => Err(error),
            };
        }
    }
    worker.family().start(opened.ledger, AgentJob::Resume);
    Ok(true)
}

async fn open_other(worker: &Worker, other: &AgentRecord) -> Result<Worker, EngineError> {
    let engine = &worker.ledger.engine;
    Worker::open(engine, other, worker.ledger.starter, worker.interpreter).await
}
