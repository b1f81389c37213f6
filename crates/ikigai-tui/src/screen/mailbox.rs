//! What the engine tells, until the screen looks. Deltas of one answer become one, so that it holds
//! little however long the screen does not look.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use ikigai_core::AgentId;
use ikigai_engine::{Observer, Update};
use tokio::sync::Notify;

/// See the module.
#[derive(Default)]
pub(crate) struct Mailbox {
    waiting: Mutex<VecDeque<(AgentId, Update)>>,
    came: Notify,
}

impl Mailbox {
    /// Puts everything that the engine tells here.
    pub(crate) fn observer(self: &Arc<Self>) -> Observer {
        let mailbox = self.clone();
        Arc::new(move |agent, _, update| mailbox.put(agent, update))
    }

    fn put(&self, agent: AgentId, update: &Update) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = waiting.is_empty();
        match (waiting.back_mut(), update) {
            (Some((of, Update::Text(text))), Update::Text(more)) if *of == agent => {
                text.push_str(more);
            }
            (Some((of, Update::Thinking(text))), Update::Thinking(more)) if *of == agent => {
                text.push_str(more);
            }
            (
                Some((of, Update::Progress { call, line })),
                Update::Progress {
                    call: same,
                    line: newer,
                },
            ) if *of == agent && call == same => {
                line.clone_from(newer);
            }
            _ => waiting.push_back((agent, update.clone())),
        }
        drop(waiting);
        if was_empty {
            self.came.notify_one();
        }
    }

    /// Waits until something is there. Safe to drop.
    pub(crate) async fn came(&self) {
        loop {
            let notified = self.came.notified();
            if !self.lock().is_empty() {
                return;
            }
            notified.await;
        }
    }

    /// Takes everything out.
    pub(crate) fn take(&self) -> VecDeque<(AgentId, Update)> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(AgentId, Update)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
