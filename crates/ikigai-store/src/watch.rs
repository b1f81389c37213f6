//! Notification of commits.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// A subscription that wakes up after commits.
///
/// It is a hint without content: the subscriber reads on from its own cursor, by agent and sequence
/// number. Every commit before the hint is visible.
#[derive(Clone)]
pub struct Watch {
    changes: watch::Receiver<u64>,
    // Keeps the source of the signal alive.
    _feed: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// Creates a watch on a channel and keeps `feed` alive with it.
    pub fn new(changes: watch::Receiver<u64>, feed: Arc<dyn Any + Send + Sync>) -> Self {
        Self {
            changes,
            _feed: feed,
        }
    }

    /// Waits for a commit since the last call; `false` once the store is closed.
    pub async fn changed(&mut self) -> bool {
        self.changes.changed().await.is_ok()
    }
}

/// The signal to this process's subscribers; closed with the store.
#[derive(Clone, Debug)]
pub(crate) struct CommitSignal(Arc<Mutex<Option<watch::Sender<u64>>>>);

impl CommitSignal {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Some(watch::Sender::new(0)))))
    }

    /// Signals that something may have been committed.
    pub(crate) fn notify(&self) {
        if let Some(sender) = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
        {
            sender.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Adds a subscriber; `None` once the store is closed.
    pub(crate) fn subscribe(&self) -> Option<watch::Receiver<u64>> {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sender.as_ref().map(watch::Sender::subscribe)
    }

    /// Closes the signal.
    pub(crate) fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
