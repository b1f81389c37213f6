//! Thread that reads and writes draft files, so that no key waits for a disk.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use ikigai_core::AgentId;
use ikigai_engine::MailId;
use tokio::sync::oneshot;

use super::{DraftFiles, PendingMessage, SavedDraft};

/// Jobs that may wait; the screen queues few, and each is small.
const MOST_JOBS: usize = 1024;

/// Work on draft files, done in order.
pub(crate) enum DraftJob {
    /// Takes over the draft of an agent from dead processes.
    ClaimDraft(AgentId),
    /// Takes over the pending messages of dead processes.
    ClaimPending,
    /// Writes or removes the draft of an agent.
    SaveDraft(AgentId, String),
    /// Writes a pending message.
    SavePending(PendingMessage),
    /// Removes a message that is no longer pending.
    DropPending(MailId),
    /// Answers when everything before is done.
    Flush(oneshot::Sender<()>),
}

/// Result of a job.
#[derive(Debug)]
pub(crate) enum DraftReport {
    /// The draft of an agent was claimed.
    Draft(AgentId, SavedDraft),
    /// Pending messages were claimed.
    Pending(Vec<PendingMessage>),
    /// A pending message is on disk, or only in memory.
    Saved(MailId, bool),
}

/// Handle of the thread, which ends when this is dropped.
pub(crate) struct DraftWriter {
    jobs: SyncSender<DraftJob>,
}

impl DraftWriter {
    /// Starts the thread. Without files, everything is in memory only.
    pub(crate) fn start(
        files: Option<DraftFiles>,
        report: impl Fn(DraftReport) + Send + 'static,
    ) -> Self {
        let (jobs, queue) = sync_channel(MOST_JOBS);
        std::thread::spawn(move || work(files, &queue, &report));
        Self { jobs }
    }

    /// Queues a job; returns false if the queue is full.
    pub(crate) fn queue(&self, job: DraftJob) -> bool {
        !matches!(
            self.jobs.try_send(job),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_))
        )
    }
}

fn work(mut files: Option<DraftFiles>, queue: &Receiver<DraftJob>, report: &dyn Fn(DraftReport)) {
    for job in queue {
        // Ignore failures: the input still has the draft.
        match (job, &mut files) {
            (DraftJob::ClaimDraft(agent), Some(files)) => {
                if let Ok(Some(draft)) = files.claim_draft(agent) {
                    report(DraftReport::Draft(agent, draft));
                }
            }
            (DraftJob::ClaimPending, Some(files)) => {
                let pending = files.claim_pending().unwrap_or_default();
                if !pending.is_empty() {
                    report(DraftReport::Pending(pending));
                }
            }
            (DraftJob::SaveDraft(agent, text), Some(files)) => {
                let _ = files.save_draft(agent, &text);
            }
            (DraftJob::SavePending(pending), files) => {
                let id = pending.submission.id;
                let saved = files.as_mut().map(|files| files.save_pending(&pending));
                report(DraftReport::Saved(id, matches!(saved, Some(Ok(())))));
            }
            (DraftJob::DropPending(id), Some(files)) => {
                let _ = files.drop_pending(id);
            }
            (DraftJob::Flush(done), _) => {
                let _ = done.send(());
            }
            (_, None) => {}
        }
    }
}
