//! What the engine tells, until the screen looks. Deltas of one answer become one, so that it holds
//! little however long the screen does not look.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use ikigai_core::AgentId;
use ikigai_engine::{Observer, Update};
use tokio::sync::Notify;

use super::around::Found;

/// Something for the screen.
#[derive(Debug)]
pub(crate) enum Letter {
    /// The engine tells this of an agent.
    Told(AgentId, Update),
    /// Something was found out.
    Found(Found),
}

/// See the module.
#[derive(Default)]
pub(crate) struct Mailbox {
    waiting: Mutex<VecDeque<Letter>>,
    came: Notify,
}

impl Mailbox {
    /// Puts everything that the engine tells here.
    pub(crate) fn observer(self: &Arc<Self>) -> Observer {
        let mailbox = self.clone();
        Arc::new(move |agent, _, update| mailbox.put(agent, update))
    }

    fn put(&self, agent: AgentId, update: &Update) {
        let mut waiting = self.lock();
        if let Some(Letter::Told(of, before)) = waiting.back_mut()
            && *of == agent
            && is_joined(before, update)
        {
            return;
        }
        waiting.push_back(Letter::Told(agent, update.clone()));
        drop(waiting);
        self.came.notify_one();
    }

    /// Puts in what was found out.
    pub(crate) fn found(&self, found: Found) {
        self.lock().push_back(Letter::Found(found));
        self.came.notify_one();
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
    pub(crate) fn take(&self) -> VecDeque<Letter> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Letter>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Joins what is told to what was told before, if one can stand for both.
fn is_joined(before: &mut Update, update: &Update) -> bool {
    match (before, update) {
        (Update::Text(text), Update::Text(more))
        | (Update::Thinking(text), Update::Thinking(more)) => {
            text.push_str(more);
            true
        }
        (
            Update::Progress { call, line },
            Update::Progress {
                call: same,
                line: newer,
            },
        ) if call == same => {
            line.clone_from(newer);
            true
        }
        _ => false,
    }
}
