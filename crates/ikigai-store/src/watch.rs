//! Notification of commits.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::watch;

use crate::changes::LogChanges;

/// Changes that a subscriber has not taken yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedChanges {
    /// Changes by this process.
    pub own: LogChanges,
    /// Changes by other processes.
    pub others: LogChanges,
}

impl WatchedChanges {
    /// Returns changes of which nothing is known.
    fn unknown() -> Self {
        Self {
            own: LogChanges::unknown(),
            others: LogChanges::unknown(),
        }
    }

    /// Reports whether more may have changed than is named.
    pub fn is_partial(&self) -> bool {
        self.own.is_partial || self.others.is_partial
    }

    /// Reports whether rows, record, draft or mail of an agent may have changed.
    pub fn may_concern(&self, agent: ikigai_core::AgentId) -> bool {
        self.own.may_concern(agent) || self.others.may_concern(agent)
    }
}

/// A subscription that wakes up after commits.
///
/// It is a hint: the subscriber reads on from its own cursor, by agent and sequence number. Every
/// commit before the hint is visible.
pub struct Watch {
    changes: watch::Receiver<u64>,
    /// None if the source names no changes.
    untaken: Option<Arc<Mutex<WatchedChanges>>>,
    // Keeps the source of the signal alive.
    _feed: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// Creates a watch on a channel that names no changes, and keeps `feed` alive with it.
    pub fn new(changes: watch::Receiver<u64>, feed: Arc<dyn Any + Send + Sync>) -> Self {
        Self {
            changes,
            untaken: None,
            _feed: feed,
        }
    }

    /// Waits for a commit since the last call; `false` once the store is closed.
    pub async fn changed(&mut self) -> bool {
        self.changes.changed().await.is_ok()
    }

    /// Takes the changes since the last call, as far as the source names them.
    pub fn take(&mut self) -> WatchedChanges {
        match &self.untaken {
            Some(untaken) => {
                std::mem::take(&mut *untaken.lock().unwrap_or_else(PoisonError::into_inner))
            }
            None => WatchedChanges::unknown(),
        }
    }
}

/// The signal to this process's subscribers; closed with the store.
#[derive(Clone, Debug)]
pub(crate) struct CommitSignal(Arc<Mutex<Option<Subscribers>>>);

#[derive(Debug)]
struct Subscribers {
    sender: watch::Sender<u64>,
    untaken: Vec<Weak<Mutex<WatchedChanges>>>,
}

impl CommitSignal {
    pub(crate) fn new() -> Self {
        let subscribers = Subscribers {
            sender: watch::Sender::new(0),
            untaken: Vec::new(),
        };
        Self(Arc::new(Mutex::new(Some(subscribers))))
    }

    /// Signals that something may have been committed.
    pub(crate) fn notify(&self) {
        self.notify_with(|untaken| untaken.others.is_partial = true);
    }

    /// Signals a commit of this process.
    pub(crate) fn notify_own(&self, changes: &LogChanges) {
        self.notify_with(|untaken| untaken.own.add(changes));
    }

    /// Signals commits of another process.
    pub(crate) fn notify_others(&self, changes: &LogChanges) {
        self.notify_with(|untaken| untaken.others.add(changes));
    }

    fn notify_with(&self, change: impl Fn(&mut WatchedChanges)) {
        let mut subscribers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(subscribers) = subscribers.as_mut() else {
            return;
        };
        subscribers.untaken.retain(|untaken| {
            let Some(untaken) = untaken.upgrade() else {
                return false;
            };
            change(&mut untaken.lock().unwrap_or_else(PoisonError::into_inner));
            true
        });
        let sender = &subscribers.sender;
        sender.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Adds a subscriber; `None` once the store is closed.
    pub(crate) fn subscribe(&self) -> Option<watch::Receiver<u64>> {
        let subscribers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let subscribers = subscribers.as_ref()?;
        Some(subscribers.sender.subscribe())
    }

    /// Adds a subscriber that is given the named changes; `None` once the store is closed.
    pub(crate) fn watch(&self) -> Option<Watch> {
        let mut subscribers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let subscribers = subscribers.as_mut()?;
        let untaken = Arc::default();
        subscribers.untaken.push(Arc::downgrade(&untaken));
        Some(Watch {
            changes: subscribers.sender.subscribe(),
            untaken: Some(untaken),
            _feed: Arc::new(()),
        })
    }

    /// Closes the signal.
    pub(crate) fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
