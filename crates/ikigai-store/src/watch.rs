//! Waiting for the log to grow.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

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
