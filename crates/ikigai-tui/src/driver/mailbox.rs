//! Queue of engine events until the screen reads them.
//! Deltas of one answer are merged, so that the queue stays small however long the screen does not
//! read.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ikigai_core::AgentId;
use ikigai_engine::{Observer, UiEvent};
use tokio::sync::Notify;

use super::background::LoadResult;

/// Limit of queued output per call: more than a screen shows.
const MOST_OUTPUT_BYTES: usize = 512 * 1024;

/// Number of letters searched for one to merge with: two per call that can run.
const MOST_LOOKED_BACK: usize = 64;

/// Event or result for the screen.
#[derive(Debug)]
pub(crate) enum MailboxItem {
    Event(AgentId, UiEvent),
    /// Result of a background load.
    Found(LoadResult),
}

/// Queue of events and results for the screen.
#[derive(Default)]
pub(crate) struct Mailbox {
    waiting: Mutex<VecDeque<MailboxItem>>,
    came: Notify,
    /// A letter waits that no frame of a stream may delay.
    is_urgent: AtomicBool,
    urgent: Notify,
}

impl Mailbox {
    /// Creates an observer that queues all events of the engine.
    pub(crate) fn observer(self: &Arc<Self>) -> Observer {
        let mailbox = self.clone();
        Arc::new(move |agent, _, update| mailbox.put(agent, update))
    }

    fn put(&self, agent: AgentId, update: &UiEvent) {
        let mut waiting = self.lock();
        // Several calls print by turns, each lines and a newest line.
        for item in waiting.iter_mut().rev().take(MOST_LOOKED_BACK) {
            let MailboxItem::Event(of, before) = item else {
                break;
            };
            if *of == agent && is_joined(before, update) {
                return;
            }
            if !is_output(before) || !is_output(update) {
                break;
            }
        }
        waiting.push_back(MailboxItem::Event(agent, update.clone()));
        drop(waiting);
        self.came.notify_one();
        if is_urgent(update) {
            self.is_urgent.store(true, Ordering::Release);
            self.urgent.notify_one();
        }
    }

    /// Queues the result of a load.
    pub(crate) fn found(&self, found: LoadResult) {
        self.lock().push_back(MailboxItem::Found(found));
        self.came.notify_one();
    }

    /// Waits for a letter. Cancel safe.
    pub(crate) async fn came(&self) {
        loop {
            let notified = self.came.notified();
            if !self.lock().is_empty() {
                return;
            }
            notified.await;
        }
    }

    /// Reports whether an event waits that needs a frame at once.
    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent.load(Ordering::Acquire)
    }

    /// Waits for a letter that needs a frame at once. Cancel safe.
    pub(crate) async fn urgent(&self) {
        while !self.is_urgent() {
            self.urgent.notified().await;
        }
    }

    /// Takes everything out.
    pub(crate) fn take(&self) -> VecDeque<MailboxItem> {
        self.is_urgent.store(false, Ordering::Release);
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<MailboxItem>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Queue of engine events for a front end without a screen.
#[derive(Clone, Default)]
pub struct EventQueue {
    mailbox: Arc<Mailbox>,
}

impl EventQueue {
    /// Creates an observer that queues all events of the engine.
    pub fn observer(&self) -> Observer {
        self.mailbox.observer()
    }

    /// Waits for an event. Cancel safe.
    pub async fn came(&self) {
        self.mailbox.came().await;
    }

    /// Takes all events out, with their agents.
    pub fn take(&self) -> Vec<(AgentId, UiEvent)> {
        let items = self.mailbox.take().into_iter();
        let events = items.filter_map(|item| match item {
            MailboxItem::Event(agent, event) => Some((agent, event)),
            MailboxItem::Found(_) => None,
        });
        events.collect()
    }
}

/// Returns true if a user waits for the event. It ends a turn, or is the effect of a command.
fn is_urgent(update: &UiEvent) -> bool {
    match update {
        UiEvent::Ended(_)
        | UiEvent::Next(_)
        | UiEvent::Preview { .. }
        | UiEvent::Question(_)
        | UiEvent::NotStored { .. }
        | UiEvent::TakenBack { .. }
        | UiEvent::Unstored { .. }
        | UiEvent::ShellStarted { .. } => true,
        UiEvent::Began
        | UiEvent::Stored(_)
        | UiEvent::Settled(_)
        | UiEvent::Text(_)
        | UiEvent::Thinking(_)
        | UiEvent::Calling(_)
        | UiEvent::Waiting(_)
        | UiEvent::Again
        | UiEvent::Running(_)
        | UiEvent::Progress { .. }
        | UiEvent::Output { .. }
        | UiEvent::Unasked(_)
        | UiEvent::Queued { .. }
        | UiEvent::Delivered(_)
        | UiEvent::Received(_)
        | UiEvent::ShellEnded
        | UiEvent::Printed(_)
        | UiEvent::Notice(_)
        | UiEvent::Warning(_)
        | UiEvent::GrantOffer(_)
        | UiEvent::StoreAway(_) => false,
    }
}

fn is_output(update: &UiEvent) -> bool {
    matches!(update, UiEvent::Progress { .. } | UiEvent::Output { .. })
}

/// Merges an event into an earlier one, if one can represent both.
fn is_joined(before: &mut UiEvent, update: &UiEvent) -> bool {
    match (before, update) {
        (UiEvent::Text(text), UiEvent::Text(more))
        | (UiEvent::Thinking(text), UiEvent::Thinking(more)) => {
            text.push_str(more);
            true
        }
        (
            UiEvent::Progress { call, line },
            UiEvent::Progress {
                call: same,
                line: newer,
            },
        ) if call == same => {
            line.clone_from(newer);
            true
        }
        (
            UiEvent::Output { call, text },
            UiEvent::Output {
                call: same,
                text: more,
            },
        ) if call == same => {
            text.push_str(more);
            let surplus = text.len().saturating_sub(MOST_OUTPUT_BYTES);
            let surplus = text.ceil_char_boundary(surplus);
            text.drain(..surplus);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use ikigai_engine::Outcome;
    use ikigai_engine::commands::Next;

    use super::*;

    fn agent(byte: u8) -> AgentId {
        AgentId::from_random([byte; 16]).unwrap()
    }

    fn is_urgent_after(updates: &[UiEvent]) -> bool {
        let mailbox = Mailbox::default();
        for update in updates {
            mailbox.put(agent(1), update);
        }
        mailbox.is_urgent()
    }

    #[test]
    fn only_updates_that_a_user_waits_for_are_urgent() {
        let text = UiEvent::Text("words".to_owned());
        let ended = UiEvent::Ended(Outcome::Completed);
        let switch = UiEvent::Next(Next::Switch(agent(2)));

        assert!(!is_urgent_after(&[text.clone(), text.clone()]));
        assert!(is_urgent_after(&[text.clone(), ended]));
        assert!(is_urgent_after(&[switch, text]));
    }

    #[tokio::test]
    async fn an_urgent_letter_wakes_a_waiting_screen_until_it_is_taken() {
        let mailbox = Arc::new(Mailbox::default());
        let waiting = tokio::spawn({
            let mailbox = mailbox.clone();
            async move { mailbox.urgent().await }
        });
        tokio::task::yield_now().await;

        mailbox.put(agent(1), &UiEvent::Ended(Outcome::Completed));

        waiting.await.unwrap();
        assert_eq!(mailbox.take().len(), 1);
        assert!(!mailbox.is_urgent());
    }
}
