//! A bounded queue from async callers to a thread.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::StoreError;

/// The callers' end. Whoever finds the queue full waits without blocking a thread.
pub(super) struct Queue<T> {
    sender: Mutex<Option<SyncSender<(T, OwnedSemaphorePermit)>>>,
    room: Arc<Semaphore>,
}

/// The thread's end.
pub(super) struct Orders<T> {
    receiver: Receiver<(T, OwnedSemaphorePermit)>,
}

/// Makes a queue for at most `bound` orders.
pub(super) fn queue<T>(bound: usize) -> (Queue<T>, Orders<T>) {
    let (sender, receiver) = sync_channel(bound);
    let queue = Queue {
        sender: Mutex::new(Some(sender)),
        room: Arc::new(Semaphore::new(bound)),
    };
    (queue, Orders { receiver })
}

impl<T> Queue<T> {
    /// Puts an order at the end. If the caller goes away afterwards, it is carried out all the
    /// same.
    pub(super) async fn put(&self, order: T) -> Result<(), StoreError> {
        let permit = Arc::clone(&self.room)
            .acquire_owned()
            .await
            .map_err(|_| StoreError::Closed)?;
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        // A permit stands for a free place, so this does not block.
        match sender.as_ref() {
            Some(sender) => sender.send((order, permit)).map_err(|_| StoreError::Closed),
            None => Err(StoreError::Closed),
        }
    }

    /// Lets nothing more in. The thread carries out what is queued and ends.
    pub(super) fn close(&self) {
        self.room.close();
        self.sender
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}

impl<T> Orders<T> {
    /// Waits for the next order; none when the queue is closed and empty.
    pub(super) fn next(&self) -> Option<T> {
        self.receiver.recv().ok().map(|(order, _)| order)
    }

    /// Waits for the next order, but no longer than `limit`.
    pub(super) fn next_within(&self, limit: Duration) -> Result<T, RecvTimeoutError> {
        self.receiver.recv_timeout(limit).map(|(order, _)| order)
    }

    /// Takes the next order if there is one.
    pub(super) fn at_once(&self) -> Result<T, TryRecvError> {
        self.receiver.try_recv().map(|(order, _)| order)
    }
}
