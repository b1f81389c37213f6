//! The agents at work in this process, and how they hear of each other.

mod open_questions;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ikigai_core::data::Cause;
use ikigai_core::settings::{Approve, ModelChoice};
use ikigai_core::{AgentId, Seq};
use ikigai_providers::TypedKey;
use ikigai_store::{Log, Pulse, Watch};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use self::open_questions::OpenQuestions;
use crate::frontend::TurnEnd;
use crate::frontend::{Stop, USER_REQUESTS, UiEvent, UserRequest};

pub(crate) use open_questions::OpenQuestion;

/// How often it is looked at most what other processes did: a log that grows all the time must not
/// be read all the time.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// A turn that is over sooner is not worth a watch: to end one takes the kernel longer than many a
/// whole turn takes.
const MOMENT: Duration = Duration::from_millis(200);

/// How often those are woken who wait for agents of other processes, though nothing was stored: a
/// process that dies stores nothing.
const OUTSIDE: Duration = Duration::from_secs(2);

/// After so long a store that could not be watched is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Is told what happens to agents that have no front end of their own, with their ids and names.
pub type Observer = Arc<dyn Fn(AgentId, &str, &UiEvent) + Send + Sync>;

/// Notes which agent the user talks or switches to.
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

/// What this process's agents share.
pub(crate) struct Hub {
    /// Calls of children that wait for an answer.
    pub(crate) open_questions: Arc<OpenQuestions>,
    slots: Mutex<HashMap<AgentId, Slot>>,
    /// Number of the newest seat.
    seats: AtomicU64,
    /// Grows whenever something happened that somebody may wait for.
    changes: watch::Sender<u64>,
    /// Somebody has asked how an agent of another process goes on.
    outside: AtomicBool,
    /// Tells that somebody begins to ask.
    asked: Arc<Notify>,
    /// How many requests run at the same time.
    pub(crate) requests: Semaphore,
    /// Held by whoever opens an agent to have it live here, so that none is opened twice.
    pub(crate) door: Semaphore,
    front: Mutex<Front>,
    /// The program leaves: agents that start now end at once.
    leaving: AtomicBool,
    /// Ends of last turns, each with the head at which it was read.
    turn_ends: Mutex<HashMap<AgentId, (Seq, TurnEnd)>>,
    /// Agents whose grants from elsewhere were offered to the user.
    offered: Mutex<HashSet<AgentId>>,
}

/// One agent of this process.
struct Slot {
    requests: mpsc::Sender<UserRequest>,
    working: bool,
    /// It sees to something that is no work: it begins to live here, or shows something.
    minds: bool,
    /// Why its life here ends, if it does.
    end: Option<LifeEnd>,
    /// Tells this seat from an earlier one of the same agent.
    number: u64,
}

/// Reason for an agent's life in this process to end. It is kept beside the stop that is sent,
/// because a command that runs at that moment may swallow the stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LifeEnd {
    /// A user or another agent killed it.
    Killed,
    /// The program leaves, or gives its lease back.
    Dismissed,
}

impl Slot {
    /// Whether all that it was told was heard and seen to, but for the work that it does.
    fn has_heard(&self) -> bool {
        !self.minds && self.requests.capacity() == self.requests.max_capacity()
    }

    /// Interrupts its work, and ends its life here after what it was told before.
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

/// What the front end of this process can show.
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

/// Who sees and answers for agents that have no front end of their own.
#[derive(Clone, Default)]
struct Front {
    observer: Option<Observer>,
    answers: bool,
    watching: bool,
    display: FrontDisplay,
    /// Notes which agent the user uses.
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
            asked: Arc::default(),
            requests: Semaphore::new(requests),
            door: Semaphore::new(1),
            front: Mutex::default(),
            leaving: AtomicBool::new(false),
            turn_ends: Mutex::default(),
            offered: Mutex::default(),
        }
    }

    /// Says whether grants of this agent were not offered in this process yet, and notes that.
    pub(crate) fn offers_grants(&self, agent: AgentId) -> bool {
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        offered.insert(agent)
    }

    /// The end of an agent's last turn, if it was looked up at this head.
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

    /// Takes an agent in; what is said to it comes out of the channel.
    pub(crate) fn enlist(self: &Arc<Self>, agent: AgentId) -> (Seat, mpsc::Receiver<UserRequest>) {
        let (requests, heard) = mpsc::channel(USER_REQUESTS);
        let number = self.seats.fetch_add(1, Ordering::Relaxed);
        let is_leaving = self.leaving.load(Ordering::Relaxed);
        let slot = Slot {
            requests,
            working: true,
            minds: false,
            end: is_leaving.then_some(LifeEnd::Dismissed),
            number,
        };
        self.slots().insert(agent, slot);
        let hub = self.clone();
        let seat = Seat { hub, agent, number };
        (seat, heard)
    }

    /// Says that an agent works, or that it has ended its work and listens.
    pub(crate) fn set_working(&self, agent: AgentId, working: bool) {
        if let Some(slot) = self.slots().get_mut(&agent) {
            slot.working = working;
            slot.minds = false;
        }
        self.bump();
    }

    /// Says that an agent sees to something for which nobody has to wait.
    pub(crate) fn set_minding(&self, agent: AgentId) {
        if let Some(slot) = self.slots().get_mut(&agent) {
            slot.working = false;
            slot.minds = true;
        }
    }

    /// Stops an agent of this process that was killed; once, however often it is told.
    pub(crate) fn kill(&self, agent: AgentId) {
        if let Some(slot) = self.slots().get_mut(&agent)
            && slot.end.replace(LifeEnd::Killed) != Some(LifeEnd::Killed)
        {
            let stop = UserRequest::Stop(Stop::Interrupt(Cause::Kill));
            let _ = slot.requests.try_send(stop);
        }
    }

    /// Whether an agent of this process was killed.
    pub(crate) fn is_killed(&self, agent: AgentId) -> bool {
        self.life_end(agent) == Some(LifeEnd::Killed)
    }

    /// Whether an agent of this process works; none if it is not of this process.
    pub(crate) fn is_working(&self, agent: AgentId) -> Option<bool> {
        self.slots().get(&agent).map(|slot| slot.working)
    }

    /// The agents of this process.
    pub(crate) fn attended(&self) -> Vec<AgentId> {
        self.slots().keys().copied().collect()
    }

    /// The agents of this process that work.
    pub(crate) fn working(&self) -> Vec<AgentId> {
        let slots = self.slots();
        let working = slots.iter().filter(|(_, slot)| slot.working);
        working.map(|(agent, _)| *agent).collect()
    }

    /// Ends the lives of all agents of this process, and of those that start from now on.
    pub(crate) fn dismiss_all(&self) {
        self.leaving.store(true, Ordering::Relaxed);
        self.slots().values_mut().for_each(Slot::dismiss);
    }

    /// True if an agent is to end its life here once it has heard what it was told.
    pub(crate) fn is_dismissed(&self, agent: AgentId) -> bool {
        self.life_end(agent) == Some(LifeEnd::Dismissed)
    }

    fn life_end(&self, agent: AgentId) -> Option<LifeEnd> {
        self.slots().get(&agent)?.end
    }

    /// Says something to an agent of this process; `false` if it is none, or does not listen.
    pub(crate) fn deliver(&self, agent: AgentId, request: UserRequest) -> bool {
        let mut slots = self.slots();
        let Some(slot) = slots.get_mut(&agent) else {
            return false;
        };
        // Whoever waits for it must not find it idle before it has heard of its work.
        let works = matches!(request, UserRequest::Do(_));
        let heard = slot.requests.try_send(request).is_ok();
        slot.working |= works && heard;
        heard
    }

    /// Where an agent of this process is spoken to.
    pub(crate) fn ear_of(&self, agent: AgentId) -> Option<mpsc::Sender<UserRequest>> {
        self.slots().get(&agent).map(|slot| slot.requests.clone())
    }

    /// Ends the life of an agent of this process, and waits until its lease is given back.
    pub(crate) async fn let_go(&self, agent: AgentId) {
        let requests = self.slots().get_mut(&agent).map(|slot| {
            slot.dismiss();
            slot.requests.clone()
        });
        if let Some(requests) = requests {
            requests.closed().await;
        }
    }

    /// Whether an agent has heard and seen to all that it was told, but for the work that it does.
    pub(crate) fn has_heard(&self, agent: AgentId) -> bool {
        self.slots().get(&agent).is_none_or(Slot::has_heard)
    }

    /// Tells whenever an agent of this process begins or ends its work.
    pub(crate) fn stirs(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Wakes whoever waits for something to happen.
    pub(crate) fn bump(&self) {
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Tells whenever something may have happened, in this process or in another one.
    pub(crate) fn changes(self: &Arc<Self>, store: &Arc<dyn Log>) -> watch::Receiver<u64> {
        self.watch(store);
        self.changes.subscribe()
    }

    /// Begins to look at what other processes do, unless that is done already.
    pub(crate) fn watch(self: &Arc<Self>, store: &Arc<dyn Log>) {
        let mut front = self.front();
        if front.watching {
            return;
        }
        front.watching = true;
        tokio::spawn(look_on(Arc::downgrade(self), Arc::downgrade(store)));
    }

    /// Stops the agents of this process that others have killed.
    async fn stop_the_dead(&self, store: &dyn Log) {
        let own: Vec<_> = self.slots().keys().copied().collect();
        // A store that fails tells nothing; the next change is another occasion.
        let dead = store.dead_among(own).await.unwrap_or_default();
        for agent in &dead {
            self.kill(*agent);
        }
        if !dead.is_empty() {
            self.bump();
        }
    }

    /// Notes that somebody wants to know how an agent of another process goes on.
    pub(crate) fn look_outside(&self) {
        if !self.outside.swap(true, Ordering::Relaxed) {
            self.asked.notify_one();
        }
    }

    /// Whether somebody wanted that since they were woken last.
    fn looks_outside(&self) -> bool {
        self.outside.swap(false, Ordering::Relaxed)
    }

    /// Says who sees agents that have no front end, and whether somebody answers for them.
    pub(crate) fn set_front(&self, observer: Observer, answers: bool) {
        let mut front = self.front();
        front.observer = Some(observer);
        front.answers = answers;
    }

    /// Says that there is a screen.
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

    /// The settings for this agent, or for one that was made; they are handed out once.
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

/// Wakes whoever waits when mail came or an agent of another process went on, and has the killed
/// stopped. What is only streamed wakes nobody, and a log that grows all the time is looked at now
/// and then. Keeps neither the agents nor the store alive.
async fn look_on(hub: Weak<Hub>, store: Weak<dyn Log>) {
    let Some((mut watch, mut seen)) = start_watching(&hub, &store).await else {
        return;
    };
    let Some(asked) = hub.upgrade().map(|hub| Arc::clone(&hub.asked)) else {
        return;
    };
    // When those are woken who wait for others; none waits before it is told.
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
            () = asked.notified() => {
                wake = Some(Instant::now() + OUTSIDE);
                continue;
            }
            () = later => {
                wake = None;
                let Some(hub) = hub.upgrade() else {
                    return;
                };
                // Whoever still waits asks again.
                hub.looks_outside();
                hub.bump();
                continue;
            }
        }
        let (Some(hub), Some(store)) = (hub.upgrade(), store.upgrade()) else {
            return;
        };
        // A store that fails tells nothing; the next change is another occasion.
        if let Ok(pulse) = store.pulse().await {
            if pulse.rows != seen.rows {
                hub.stop_the_dead(&*store).await;
            }
            if pulse.mail != seen.mail || pulse.rows != seen.rows && hub.looks_outside() {
                hub.bump();
            }
            seen = pulse;
        }
        drop((hub, store));
        sleep(LOOK_PAUSE).await;
    }
}

/// Begins to watch the log, once somebody has worked for a moment; a store that fails is asked
/// again. None if nobody is there any more.
async fn start_watching(hub: &Weak<Hub>, store: &Weak<dyn Log>) -> Option<(Watch, Pulse)> {
    let mut pause = MOMENT;
    loop {
        sleep(pause).await;
        let store = store.upgrade()?;
        if let (Ok(watch), Ok(pulse)) = (store.watch(), store.pulse().await) {
            // What happened before it was watched.
            let hub = hub.upgrade()?;
            hub.bump();
            hub.stop_the_dead(&*store).await;
            return Some((watch, pulse));
        }
        pause = AGAIN;
    }
}
