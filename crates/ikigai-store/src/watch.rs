//! Waiting for the log to grow.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// Tells that something may have been committed since it was last asked.
///
/// It is a hint and carries nothing: whoever is woken reads on from its own cursor, by agent and
/// sequence number. A commit that happened before the hint was given is always visible.
#[derive(Clone)]
pub struct Watch {
    changes: watch::Receiver<u64>,
    // Whatever feeds the channel lives as long as somebody listens.
    _feed: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// Makes a watch on a channel; `feed` is kept alive with it.
    pub fn new(changes: watch::Receiver<u64>, feed: Arc<dyn Any + Send + Sync>) -> Self {
        Self {
            changes,
            _feed: feed,
        }
    }

    /// Returns once something may have been committed since the last call, or `false` if nothing
    /// ever will be again because the store is closed.
    pub async fn changed(&mut self) -> bool {
        self.changes.changed().await.is_ok()
    }
}

/// The channel to this process's listeners; none once the store is closed.
#[derive(Clone, Debug)]
pub(crate) struct Changes(Arc<Mutex<Option<watch::Sender<u64>>>>);

impl Changes {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Some(watch::Sender::new(0)))))
    }

    /// Tells them that something may have been committed.
    pub(crate) fn tell(&self) {
        if let Some(sender) = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
        {
            sender.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Adds a listener; none once the store is closed.
    pub(crate) fn subscribe(&self) -> Option<watch::Receiver<u64>> {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sender.as_ref().map(watch::Sender::subscribe)
    }

    /// Tells them that nothing more will come.
    pub(crate) fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
