//! The agents at work in this process, and how they hear of each other.

mod mail_watch;
mod merge_cache;
mod open_questions;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ikigai_core::data::Cause;
use ikigai_core::settings::{Approve, ModelChoice};
use ikigai_core::{AgentId, Seq};
use ikigai_providers::TypedKey;
use ikigai_store::{MailId, Pulse, ReadLog, Watch, WatchedChanges};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use self::merge_cache::MergeCache;
use self::open_questions::OpenQuestions;
use crate::frontend::TurnEnd;
use crate::frontend::{Stop, USER_REQUESTS, UiEvent, UserRequest};
use crate::inbox_entry::InboxCache;

pub(crate) use open_questions::OpenQuestion;

/// Minimum interval between polls of other processes' commits.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Delay before the log is watched: ending a watch costs more than a short turn.
const MOMENT: Duration = Duration::from_millis(200);

/// Interval of wake-ups for waits on other processes; a process that dies stores nothing.
const OUTSIDE: Duration = Duration::from_secs(2);

/// Delay before a failed watch is retried.
const AGAIN: Duration = Duration::from_secs(1);

/// Receives the events of agents without a front end, with their ids and names.
pub type Observer = Arc<dyn Fn(AgentId, &str, &UiEvent) + Send + Sync>;

/// Records the agent that the user talks or switches to.
pub type UseObserver = Arc<dyn Fn(AgentId) + Send + Sync>;

/// Settings with which the first agent of a front end starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// The agent; none if it is made.
    pub agent: Option<AgentId>,
    /// Model from now on.
    pub model: Option<ModelChoice>,
    /// Approval mode of this process.
    pub approve: Option<Approve>,
}

/// State that the agents of this process share.
pub(crate) struct Hub {
    /// Calls of children that wait for an answer.
    pub(crate) open_questions: Arc<OpenQuestions>,
    slots: Mutex<HashMap<AgentId, Slot>>,
    /// Number of the newest seat.
    seats: AtomicU64,
    /// Counter of events that a waiting task may need.
    changes: watch::Sender<u64>,
    /// True if a task waits for an agent of another process.
    outside: AtomicBool,
    /// Wakes the watcher when such a wait begins.
    questions_changed: Arc<Notify>,
    /// Limits parallel requests.
    pub(crate) requests: Semaphore,
    /// Held while an agent is opened here, so that none is opened twice.
    pub(crate) door: Semaphore,
    front: Mutex<Front>,
    /// The program leaves: agents that start now end at once.
    leaving: AtomicBool,
    /// Ends of last turns, each with the head at which it was read.
    turn_ends: Mutex<HashMap<AgentId, (Seq, TurnEnd)>>,
    /// Cache of inbox entries.
    pub(crate) inbox: InboxCache,
    /// Cache of merged children.
    pub(crate) merges: MergeCache,
    /// Agents whose grants from elsewhere were offered to the user.
    offered: Mutex<HashSet<AgentId>>,
    /// Approval modes that replace those of the settings in this process.
    process_modes: Mutex<HashMap<AgentId, Approve>>,
}

/// One agent of this process.
struct Slot {
    requests: mpsc::Sender<UserRequest>,
    working: bool,
    /// It starts or shows something, which does not count as work.
    minds: bool,
    /// Reason why it ends here, if it does.
    end: Option<LifeEnd>,
    /// Mail that starts no turn, or has started one.
    known_mail: HashSet<MailId>,
    /// Number that distinguishes this seat from earlier ones of the same agent.
    number: u64,
}

/// Reason for an agent's life in this process to end.
/// Stored in addition to the stop that is sent, because a running command may swallow the stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LifeEnd {
    /// A user or another agent killed it.
    Killed,
    /// The program leaves, or gives its lease back.
    Dismissed,
}

impl Slot {
    /// Returns true if it has handled all requests but its current job.
    fn is_caught_up(&self) -> bool {
        !self.minds && !self.has_pending()
    }

    fn has_pending(&self) -> bool {
        self.requests.capacity() < self.requests.max_capacity()
    }

    /// Interrupts its work and ends it after the requests sent before.
    fn dismiss(&mut self) {
        self.end.get_or_insert(LifeEnd::Dismissed);
        let _ = self
            .requests
            .try_send(UserRequest::Stop(Stop::Interrupt(Cause::Exit)));
    }
}

/// An agent's place among those of this process, which it leaves when this is dropped.
pub(crate) struct Seat {
    hub: Arc<Hub>,
    agent: AgentId,
    number: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut slots = self.hub.slots();
        let slot = slots.get(&self.agent);
        if slot.is_some_and(|slot| slot.number == self.number) {
            slots.remove(&self.agent);
        }
        drop(slots);
        self.hub.bump();
    }
}

/// Abilities of this process's front end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum FrontDisplay {
    /// Lines only.
    #[default]
    Lines,
    /// A screen, which may be headless.
    Screen,
    /// A screen on a terminal, where the user's editor can run.
    Terminal,
}

/// Observer of agents that have no front end.
#[derive(Clone, Default)]
struct Front {
    observer: Option<Observer>,
    answers: bool,
    watching: bool,
    display: FrontDisplay,
    /// Records the agent that the user uses.
    use_observer: Option<UseObserver>,
    /// Settings for an agent that is about to start.
    opening: Option<Opening>,
    /// Keys that were typed and not taken yet, by provider.
    keys: HashMap<String, TypedKey>,
}

impl Hub {
    pub(crate) fn new(requests: usize) -> Self {
        Self {
            open_questions: Arc::default(),
            slots: Mutex::default(),
            seats: AtomicU64::new(0),
            changes: watch::channel(0).0,
            outside: AtomicBool::new(false),
            questions_changed: Arc::default(),
            requests: Semaphore::new(requests),
            door: Semaphore::new(1),
            front: Mutex::default(),
            leaving: AtomicBool::new(false),
            turn_ends: Mutex::default(),
            inbox: InboxCache::default(),
            merges: MergeCache::default(),
            offered: Mutex::default(),
            process_modes: Mutex::default(),
        }
    }

    /// Returns true for the first offer of this agent's grants in this process.
    pub(crate) fn offers_grants(&self, agent: AgentId) -> bool {
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        offered.insert(agent)
    }

    fn process_modes(&self) -> MutexGuard<'_, HashMap<AgentId, Approve>> {
        let modes = self.process_modes.lock();
        modes.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the mode that replaces that of the agent's settings in this process, if any.
    pub(crate) fn process_mode(&self, agent: AgentId) -> Option<Approve> {
        self.process_modes().get(&agent).copied()
    }

    pub(crate) fn set_process_mode(&self, agent: AgentId, mode: Option<Approve>) {
        let mut modes = self.process_modes();
        match mode {
            Some(mode) => modes.insert(agent, mode),
            None => modes.remove(&agent),
        };
    }

    /// Returns the cached end of an agent's last turn at this head.
    pub(crate) fn turn_end_at(&self, agent: AgentId, head: Seq) -> Option<TurnEnd> {
        let ends = self.turn_ends.lock();
        let ends = ends.unwrap_or_else(PoisonError::into_inner);
        let (at, end) = ends.get(&agent)?;
        (*at == head).then_some(*end)
    }

    /// Caches the end of an agent's last turn.
    pub(crate) fn remember_turn_end(&self, agent: AgentId, head: Seq, end: TurnEnd) {
        let ends = self.turn_ends.lock();
        let mut ends = ends.unwrap_or_else(PoisonError::into_inner);
        ends.insert(agent, (head, end));
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<AgentId, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn front(&self) -> MutexGuard<'_, Front> {
        self.front.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers an agent; returns its seat and the receiver of its requests.
    pub(crate) fn enlist(self: &Arc<Self>, agent: AgentId) -> (Seat, mpsc::Receiver<UserRequest>) {
        let (requests, receiver) = mpsc::channel(USER_REQUESTS);
        let number = self.seats.fetch_add(1, Ordering::Relaxed);
        let is_leaving = self.leaving.load(Ordering::Relaxed);
        let slot = Slot {
            requests,
            working: true,
            minds: false,
            end: is_leaving.then_some(LifeEnd::Dismissed),
            known_mail: HashSet::new(),
            number,
        };
        self.slots().insert(agent, slot);
        let hub = self.clone();
        let seat = Seat { hub, agent, number };
        (seat, receiver)
    }

    /// Says that an agent works, or that it has ended its work and listens.
    pub(crate) fn set_working(&self, agent: AgentId, working: bool) {
        if let Some(slot) = self.slots().get_mut(&agent) {
            // A pending request may be work; the agent corrects this when it has handled it.
            slot.working = working || slot.has_pending();
            slot.minds = false;
        }
        self.bump();
    }

    /// Marks an agent as busy with something that is no work.
    pub(crate) fn set_minding(&self, agent: AgentId) {
        if let Some(slot) = self.slots().get_mut(&agent) {
            slot.working = false;
            slot.minds = true;
        }
    }

    /// Stops a killed agent of this process, once.
    pub(crate) fn kill(&self, agent: AgentId) {
        if let Some(slot) = self.slots().get_mut(&agent)
            && slot.end.replace(LifeEnd::Killed) != Some(LifeEnd::Killed)
        {
            let stop = UserRequest::Stop(Stop::Interrupt(Cause::Kill));
            let _ = slot.requests.try_send(stop);
        }
    }

    /// Returns true if an agent of this process was killed.
    pub(crate) fn is_killed(&self, agent: AgentId) -> bool {
        self.life_end(agent) == Some(LifeEnd::Killed)
    }

    /// Returns true if an agent of this process works; none for other agents.
    pub(crate) fn is_working(&self, agent: AgentId) -> Option<bool> {
        self.slots().get(&agent).map(|slot| slot.working)
    }

    /// Returns the agents of this process.
    pub(crate) fn active_agents(&self) -> Vec<AgentId> {
        self.slots().keys().copied().collect()
    }

    /// Returns the agents of this process that work.
    pub(crate) fn working(&self) -> Vec<AgentId> {
        let slots = self.slots();
        let working = slots.iter().filter(|(_, slot)| slot.working);
        working.map(|(agent, _)| *agent).collect()
    }

    /// Ends all agents of this process, also later ones.
    pub(crate) fn dismiss_all(&self) {
        self.leaving.store(true, Ordering::Relaxed);
        self.slots().values_mut().for_each(Slot::dismiss);
    }

    /// Returns true if an agent ends here after its pending requests.
    pub(crate) fn is_dismissed(&self, agent: AgentId) -> bool {
        self.life_end(agent) == Some(LifeEnd::Dismissed)
    }

    fn life_end(&self, agent: AgentId) -> Option<LifeEnd> {
        self.slots().get(&agent)?.end
    }

    /// Sends a request to an agent of this process; false if it cannot receive it.
    pub(crate) fn deliver(&self, agent: AgentId, request: UserRequest) -> bool {
        let mut slots = self.slots();
        let Some(slot) = slots.get_mut(&agent) else {
            return false;
        };
        // A waiting task must not find it idle before it has received its work.
        let works = request.starts_work();
        let receiver = slot.requests.try_send(request).is_ok();
        slot.working |= works && receiver;
        receiver
    }

    /// Returns the request channel of an agent of this process.
    pub(crate) fn ear_of(&self, agent: AgentId) -> Option<mpsc::Sender<UserRequest>> {
        self.slots().get(&agent).map(|slot| slot.requests.clone())
    }

    /// Ends an agent of this process and waits until its lease is released.
    pub(crate) async fn let_go(&self, agent: AgentId) {
        let requests = self.slots().get_mut(&agent).map(|slot| {
            slot.dismiss();
            slot.requests.clone()
        });
        if let Some(requests) = requests {
            requests.closed().await;
        }
    }

    /// Returns true if an agent has handled all requests but its current job.
    pub(crate) fn is_caught_up(&self, agent: AgentId) -> bool {
        self.slots().get(&agent).is_none_or(Slot::is_caught_up)
    }

    /// Returns the watch that changes when an agent of this process starts or ends work.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Wakes all waiting tasks.
    pub(crate) fn bump(&self) {
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Returns the watch that changes when this or another process may have changed something.
    pub(crate) fn changes(self: &Arc<Self>, store: &Arc<dyn ReadLog>) -> watch::Receiver<u64> {
        self.watch(store);
        self.changes.subscribe()
    }

    /// Starts the watcher of other processes, once.
    pub(crate) fn watch(self: &Arc<Self>, store: &Arc<dyn ReadLog>) {
        let mut front = self.front();
        if front.watching {
            return;
        }
        front.watching = true;
        tokio::spawn(look_on(Arc::downgrade(self), Arc::downgrade(store)));
    }

    /// Stops the agents of this process that others have killed.
    async fn stop_the_dead(&self, store: &dyn ReadLog) {
        let own: Vec<_> = self.slots().keys().copied().collect();
        // Ignore a failing store; the next change retries.
        let dead = store.dead_among(own).await.unwrap_or_default();
        for agent in &dead {
            self.kill(*agent);
        }
        if !dead.is_empty() {
            self.bump();
        }
    }

    /// Stops, wakes or notifies the agents that named changes concern.
    async fn handle_changes(&self, store: &dyn ReadLog, changes: &WatchedChanges) {
        let is_here = |agent: &AgentId| self.slots().contains_key(agent);
        // Only other processes can stop an agent of this one without its knowledge.
        if changes.others.agents.keys().any(is_here) {
            self.stop_the_dead(store).await;
        }
        let (own, others) = (&changes.own, &changes.others);
        let has_rows = !own.agents.is_empty() || !others.agents.is_empty();
        let has_mail = !own.mail.is_empty() || !others.mail.is_empty();
        if has_mail || has_rows && self.looks_outside() {
            self.bump();
        }
        if own.mail.iter().chain(&others.mail).any(is_here) {
            self.wake_idle(store).await;
        }
    }

    /// Records that a task waits for an agent of another process.
    pub(crate) fn look_outside(&self) {
        if !self.outside.swap(true, Ordering::Relaxed) {
            self.questions_changed.notify_one();
        }
    }

    /// Returns true if a task began such a wait since the last wake-up.
    fn looks_outside(&self) -> bool {
        self.outside.swap(false, Ordering::Relaxed)
    }

    /// Sets the observer of agents without a front end, and whether it answers questions.
    pub(crate) fn set_front(&self, observer: Observer, answers: bool) {
        let mut front = self.front();
        front.observer = Some(observer);
        front.answers = answers;
    }

    /// Sets the abilities of the front end.
    pub(crate) fn set_screen(&self) {
        let display = &mut self.front().display;
        *display = (*display).max(FrontDisplay::Screen);
    }

    pub(crate) fn has_screen(&self) -> bool {
        self.front().display >= FrontDisplay::Screen
    }

    /// Says that there is a terminal for the user's editor.
    pub(crate) fn set_editor(&self) {
        self.front().display = FrontDisplay::Terminal;
    }

    pub(crate) fn has_editor(&self) -> bool {
        self.front().display == FrontDisplay::Terminal
    }

    pub(crate) fn set_use_observer(&self, observer: UseObserver) {
        self.front().use_observer = Some(observer);
    }

    pub(crate) fn use_observer(&self) -> Option<UseObserver> {
        self.front().use_observer.clone()
    }

    pub(crate) fn set_opening(&self, opening: Opening) {
        self.front().opening = Some(opening);
    }

    /// Takes the settings for this agent or for a new one, once.
    pub(crate) fn take_opening(&self, agent: Option<AgentId>) -> Option<Opening> {
        let opening = &mut self.front().opening;
        opening.take_if(|opening| opening.agent == agent)
    }

    pub(crate) fn set_typed_key(&self, provider: &str, key: TypedKey) {
        self.front().keys.insert(provider.to_owned(), key);
    }

    pub(crate) fn typed_key(&self, provider: &str) -> Option<TypedKey> {
        self.front().keys.remove(provider)
    }

    pub(crate) fn observer(&self) -> (Option<Observer>, bool) {
        let front = self.front();
        (front.observer.clone(), front.answers)
    }
}

/// Watches the log: wakes waiting tasks and idle agents, and stops killed agents.
///
/// Streamed text wakes no task, and a log that grows all the time is polled at intervals. Keeps
/// neither the agents nor the store alive.
async fn look_on(hub: Weak<Hub>, store: Weak<dyn ReadLog>) {
    let Some((mut watch, mut seen)) = start_watching(&hub, &store).await else {
        return;
    };
    let Some(questions_changed) = hub.upgrade().map(|hub| Arc::clone(&hub.questions_changed))
    else {
        return;
    };
    // Time of the next wake-up of waits for other processes; none without such a wait.
    let mut wake = None;
    loop {
        let later = async {
            match wake {
                Some(wake) => sleep_until(wake).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            is_there = watch.changed() => if !is_there {
                return;
            },
            () = questions_changed.notified() => {
                wake = Some(Instant::now() + OUTSIDE);
                continue;
            }
            () = later => {
                wake = None;
                let Some(hub) = hub.upgrade() else {
                    return;
                };
                // A task that still waits asks again.
                hub.looks_outside();
                hub.bump();
                continue;
            }
        }
        let (Some(hub), Some(store)) = (hub.upgrade(), store.upgrade()) else {
            return;
        };
        let changes = watch.take();
        if !changes.is_partial() {
            hub.handle_changes(&*store, &changes).await;
        } else if let Ok(pulse) = store.pulse().await {
            // A failing store gives no answer; the next change triggers another check.
            if pulse.rows != seen.rows {
                hub.stop_the_dead(&*store).await;
            }
            if pulse.mail != seen.mail || pulse.rows != seen.rows && hub.looks_outside() {
                hub.bump();
            }
            if pulse.mail != seen.mail {
                hub.wake_idle(&*store).await;
            }
            seen = pulse;
        }
        drop((hub, store));
        sleep(LOOK_PAUSE).await;
    }
}

/// Starts the watch after an agent has worked for a moment; retries a failing store.
///
/// Returns none if the hub is gone.
async fn start_watching(hub: &Weak<Hub>, store: &Weak<dyn ReadLog>) -> Option<(Watch, Pulse)> {
    let mut pause = MOMENT;
    loop {
        sleep(pause).await;
        let store = store.upgrade()?;
        if let (Ok(watch), Ok(pulse)) = (store.watch(), store.pulse().await) {
            // Events before the watch began.
            let hub = hub.upgrade()?;
            hub.bump();
            hub.stop_the_dead(&*store).await;
            hub.wake_idle(&*store).await;
            return Some((watch, pulse));
        }
        pause = AGAIN;
    }
}
