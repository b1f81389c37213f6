//! The agents at work in this process, and how they hear of each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ikigai_core::AgentId;
use ikigai_core::data::Cause;
use ikigai_store::Store;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::front::{INTENTS, Intent, Stop, Update};

/// Is told what happens to agents that have no front end of their own, with their names.
pub type Observer = Arc<dyn Fn(&str, &Update) + Send + Sync>;

/// What this process's agents share.
pub(crate) struct Hub {
    slots: Mutex<HashMap<AgentId, Slot>>,
    /// Grows whenever something happened that somebody may wait for.
    changes: watch::Sender<u64>,
    /// How many requests run at the same time.
    pub(crate) requests: Semaphore,
    front: Mutex<Front>,
}

/// One agent of this process.
struct Slot {
    intents: mpsc::Sender<Intent>,
    working: bool,
}

/// Who sees and answers for agents that have no front end of their own.
#[derive(Clone, Default)]
struct Front {
    observer: Option<Observer>,
    answers: bool,
    watching: bool,
}

impl Hub {
    pub(crate) fn new(requests: usize) -> Self {
        Self {
            slots: Mutex::default(),
            changes: watch::channel(0).0,
            requests: Semaphore::new(requests),
            front: Mutex::default(),
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<AgentId, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn front(&self) -> MutexGuard<'_, Front> {
        self.front.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an agent in; what is said to it comes out of the channel.
    pub(crate) fn enlist(&self, agent: AgentId) -> mpsc::Receiver<Intent> {
        let (intents, heard) = mpsc::channel(INTENTS);
        let slot = Slot {
            intents,
            working: true,
        };
        self.slots().insert(agent, slot);
        heard
    }

    /// Says that an agent works, or that it has ended its work.
    pub(crate) fn set_working(&self, agent: AgentId, working: bool) {
        if let Some(slot) = self.slots().get_mut(&agent) {
            slot.working = working;
        }
        self.bump();
    }

    /// Lets an agent go.
    pub(crate) fn leave(&self, agent: AgentId) {
        self.slots().remove(&agent);
        self.bump();
    }

    /// Whether an agent of this process works; none if it is not of this process.
    pub(crate) fn is_working(&self, agent: AgentId) -> Option<bool> {
        self.slots().get(&agent).map(|slot| slot.working)
    }

    /// Lets all agents go that are idle, and waits until they are gone.
    pub(crate) async fn dismiss(&self) {
        let leave = Intent::Stop(Stop::Interrupt(Cause::Exit));
        let idle: Vec<_> = {
            let slots = self.slots();
            let idle = slots.iter().filter(|(_, slot)| !slot.working);
            idle.map(|(_, slot)| slot.intents.clone()).collect()
        };
        for intents in &idle {
            let _ = intents.try_send(leave.clone());
        }
        for intents in idle {
            intents.closed().await;
        }
    }

    /// Says something to an agent of this process; `false` if it is none, or does not listen.
    pub(crate) fn deliver(&self, agent: AgentId, intent: Intent) -> bool {
        let slots = self.slots();
        let slot = slots.get(&agent);
        slot.is_some_and(|slot| slot.intents.try_send(intent).is_ok())
    }

    /// Wakes whoever waits for something to happen.
    pub(crate) fn bump(&self) {
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Tells whenever something may have happened, in this process or in another one.
    pub(crate) fn changes(self: &Arc<Self>, store: &dyn Store) -> watch::Receiver<u64> {
        let first = !std::mem::replace(&mut self.front().watching, true);
        if first && let Ok(mut watch) = store.watch() {
            let hub: Weak<Self> = Arc::downgrade(self);
            tokio::spawn(async move {
                while watch.changed().await {
                    let Some(hub) = hub.upgrade() else { return };
                    hub.bump();
                }
            });
        }
        self.changes.subscribe()
    }

    /// Says who sees agents that have no front end, and whether somebody answers for them.
    pub(crate) fn set_front(&self, observer: Observer, answers: bool) {
        let mut front = self.front();
        front.observer = Some(observer);
        front.answers = answers;
    }

    pub(crate) fn observer(&self) -> (Option<Observer>, bool) {
        let front = self.front();
        (front.observer.clone(), front.answers)
    }
}
