//! A bounded queue from async callers to a thread.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::StoreError;

/// Sending end. Callers wait for room without blocking a thread.
pub(super) struct JobSender<T> {
    sender: Mutex<Option<SyncSender<(T, OwnedSemaphorePermit)>>>,
    room: Arc<Semaphore>,
}

/// Receiving end, for the thread.
pub(super) struct JobReceiver<T> {
    receiver: Receiver<(T, OwnedSemaphorePermit)>,
}

/// Creates a queue for at most `bound` jobs.
pub(super) fn queue<T>(bound: usize) -> (JobSender<T>, JobReceiver<T>) {
    let (sender, receiver) = sync_channel(bound);
    let queue = JobSender {
        sender: Mutex::new(Some(sender)),
        room: Arc::new(Semaphore::new(bound)),
    };
    (queue, JobReceiver { receiver })
}

impl<T> JobSender<T> {
    /// Queues a job. It is executed even if the caller goes away.
    pub(super) async fn put(&self, order: T) -> Result<(), StoreError> {
        let permit = Arc::clone(&self.room)
            .acquire_owned()
            .await
            .map_err(|_| StoreError::Closed)?;
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        // The permit reserves room, so this does not block.
        match sender.as_ref() {
            Some(sender) => sender.send((order, permit)).map_err(|_| StoreError::Closed),
            None => Err(StoreError::Closed),
        }
    }

    /// Closes the queue; the thread finishes the queued jobs and ends.
    pub(super) fn close(&self) {
        self.room.close();
        self.sender
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}

impl<T> JobReceiver<T> {
    /// Waits for the next job; `None` when the queue is closed and empty.
    pub(super) fn next(&self) -> Option<T> {
        self.receiver.recv().ok().map(|(order, _)| order)
    }

    /// Waits for the next job, but no longer than `limit`.
    pub(super) fn next_within(&self, limit: Duration) -> Result<T, RecvTimeoutError> {
        self.receiver.recv_timeout(limit).map(|(order, _)| order)
    }

    /// Takes the next job if there is one.
    pub(super) fn try_next(&self) -> Result<T, TryRecvError> {
        self.receiver.try_recv().map(|(order, _)| order)
    }
}
