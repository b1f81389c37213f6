//! The listening task: its one connection hears of commits, tells of ours, and holds the lock of
//! this process. When it is lost it is made again, and whoever watches looks for what was missed.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};
use tokio_postgres::types::ToSql;

use super::connect::{Link, Role, Target};
use super::errors::Cause;
use super::owner::{HEARTBEAT, Order, Owner, hold};
use crate::error::StoreError;
use crate::records::ProcessRecord;
use crate::watch::{Changes, Watch};

/// How many orders may wait.
const ORDERS: usize = 64;

/// How far apart two notifications are at least. Everybody who commits one waits for everybody
/// else who does, so they must be few, however much is written.
const NOTIFY_PAUSE: Duration = Duration::from_millis(20);

/// How long the server may take for any of the small things that this connection asks.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait before a lost connection is made again: from, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// How long closing waits for the server.
const FAREWELL: Duration = Duration::from_secs(2);

/// After this time without a heartbeat a process that owns nothing is forgotten, and so is the
/// witness of one that is not known.
const FORGET: &str = "DELETE FROM processes p
     WHERE p.heartbeat < (extract(epoch FROM now() - interval '1 day') * 1000000)::bigint
       AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.owner = p.id);
     DELETE FROM witnesses w WHERE w.at < now() - interval '7 days'
       AND NOT EXISTS (SELECT 1 FROM processes p WHERE p.uuid = w.process)";

const BEAT: &str = "UPDATE processes
     SET heartbeat = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
     WHERE uuid = $1 RETURNING id";

const ENTER: &str = "INSERT INTO processes (uuid, pid, started, host, lock, heartbeat)
     VALUES ($1, $2, $3, $4, $5, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
     RETURNING id";

/// How many rows and mails were ever begun: what is told without reading any of them.
const BEGUN: &str = "SELECT m.last_value, l.last_value FROM messages_id_seq m, mail_id_seq l";

/// The channel of a schema's notifications.
fn channel(schema: &str) -> String {
    format!("{schema}_log")
}

/// What the others of this process have of the listening task.
#[derive(Clone, Debug)]
pub struct Notifier {
    changes: Changes,
    wishes: Arc<Wishes>,
    orders: mpsc::Sender<Order>,
}

/// Wishes that need no answer.
#[derive(Debug, Default)]
struct Wishes {
    is_committed: AtomicBool,
    woken: Notify,
    grown: Notify,
}

impl Notifier {
    /// Tells everybody that something was committed.
    pub fn committed(&self) {
        self.changes.tell();
        self.wishes.is_committed.store(true, Ordering::SeqCst);
        self.wishes.woken.notify_one();
        self.wishes.grown.notify_one();
    }

    /// Returns once this process has committed something since the last call; one may wait.
    pub(super) async fn grown(&self) {
        self.wishes.grown.notified().await;
    }

    /// Adds a listener. Whatever is committed after this returns, it is told of.
    pub fn watch(&self) -> Result<Watch, StoreError> {
        let changes = self.changes.subscribe().ok_or(StoreError::Closed)?;
        // If the connection is not there yet, everybody is told once it is.
        self.wishes.woken.notify_one();
        Ok(Watch::new(changes, Arc::new(())))
    }

    /// Tells others of what was committed, lets go of this process's lock, and ends the task.
    pub async fn close(&self) {
        self.changes.close();
        let (answer, answered) = oneshot::channel();
        if self.orders.send(Order::Close(answer)).await.is_ok() {
            let _ = answered.await;
        }
    }
}

/// The listening task.
#[derive(Debug)]
pub struct Listener {
    orders: mpsc::Receiver<Order>,
    state: State,
}

/// What it keeps from one connection to the next.
#[derive(Debug)]
struct State {
    target: Arc<Target>,
    owner: Arc<Owner>,
    changes: Changes,
    wishes: Arc<Wishes>,
    /// Those who wait for this process to be entered.
    waiting: Vec<oneshot::Sender<Result<i64, Cause>>>,
    /// Whether this process is entered, and so holds its lock whenever it is connected.
    is_owner: bool,
    /// Whether a commit was not told of yet, and when the next may be.
    is_behind: bool,
    next_notify: Instant,
    /// The server's number for the connection that has the lock.
    backend: i32,
    /// What was begun at the last two heartbeats.
    begun: [Option<(i64, i64)>; 2],
}

/// A connection that listens.
struct Ear {
    link: Link,
    /// Resolves when it is lost.
    lost: oneshot::Receiver<()>,
}

/// Why a connection is not listened to any more.
enum Over {
    Lost,
    Closed(Option<oneshot::Sender<()>>),
}

impl Listener {
    /// Makes the task, and what others of this process have of it. Nothing is connected before
    /// somebody watches, writes or takes a lease.
    pub fn new(target: Arc<Target>, record: ProcessRecord) -> (Self, Arc<Owner>, Notifier) {
        let (orders, ordered) = mpsc::channel(ORDERS);
        let owner = Arc::new(Owner::new(record, orders.clone()));
        let notifier = Notifier {
            changes: Changes::new(),
            wishes: Arc::default(),
            orders,
        };
        let state = State {
            target,
            owner: Arc::clone(&owner),
            changes: notifier.changes.clone(),
            wishes: Arc::clone(&notifier.wishes),
            waiting: Vec::new(),
            is_owner: false,
            is_behind: false,
            next_notify: Instant::now(),
            backend: 0,
            begun: [None; 2],
        };
        let listener = Self {
            orders: ordered,
            state,
        };
        (listener, owner, notifier)
    }

    /// Listens until it is told to end.
    pub async fn run(mut self) {
        let closed = match self.until_needed().await {
            Some(Over::Closed(closed)) => closed,
            _ => self.listen().await,
        };
        self.state.last_words().await;
        if let Some(closed) = closed {
            // Whoever closes may have gone.
            let _ = closed.send(());
        }
    }

    /// Waits until the connection is needed; tells if it never will be.
    async fn until_needed(&mut self) -> Option<Over> {
        let Self { orders, state } = self;
        let wishes = Arc::clone(&state.wishes);
        tokio::select! {
            () = wishes.woken.notified() => None,
            order = orders.recv() => state.keep(order),
        }
    }

    /// Makes one connection after the other and listens to it.
    async fn listen(&mut self) -> Option<oneshot::Sender<()>> {
        let mut pause = FIRST_PAUSE;
        loop {
            let connected = match self.connect().await {
                Ok(ear) => ear,
                Err(closed) => return closed,
            };
            if let Ok(ear) = connected {
                let begun = Instant::now();
                match self.serve(ear).await {
                    Over::Closed(closed) => return closed,
                    Over::Lost if begun.elapsed() > LAST_PAUSE => pause = FIRST_PAUSE,
                    Over::Lost => {}
                }
            }
            let Self { orders, state } = self;
            tokio::select! {
                () = sleep(pause) => {}
                order = orders.recv() => if let Some(Over::Closed(closed)) = state.keep(order) {
                    return closed;
                }
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Makes a connection, unless the task is to end first. Those who wait are told of a failure.
    async fn connect(&mut self) -> Result<Result<Ear, ()>, Option<oneshot::Sender<()>>> {
        let Self { orders, state } = self;
        let mut kept = Vec::new();
        let ended = {
            let mut connecting = std::pin::pin!(state.connect());
            loop {
                tokio::select! {
                    ear = &mut connecting => break Ok(ear),
                    order = orders.recv() => match order {
                        Some(Order::Register(answer)) => kept.push(answer),
                        Some(Order::Close(closed)) => break Err(Some(closed)),
                        None => break Err(None),
                    },
                }
            }
        };
        state.waiting.append(&mut kept);
        match ended {
            Ok(Ok(ear)) => Ok(Ok(ear)),
            Ok(Err(cause)) => {
                for answer in state.waiting.drain(..) {
                    let _ = answer.send(Err(cause.clone()));
                }
                Ok(Err(()))
            }
            Err(closed) => Err(closed),
        }
    }

    /// Listens until the connection is lost or nobody needs it.
    async fn serve(&mut self, ear: Ear) -> Over {
        let Self { orders, state } = self;
        let Ear { link, mut lost } = ear;
        let wishes = Arc::clone(&state.wishes);
        let mut beat = interval(HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        state.begun = [None; 2];
        loop {
            let done = tokio::select! {
                _ = &mut lost => return Over::Lost,
                order = orders.recv() => match state.keep(order) {
                    Some(over) => {
                        let _ = timeout(FAREWELL, state.farewell(&link)).await;
                        return over;
                    }
                    None => Ok(()),
                },
                () = wishes.woken.notified() => Ok(()),
                () = sleep_until(state.next_notify), if state.is_behind => {
                    state.notify(&link).await
                }
                _ = beat.tick() => state.beat(&link).await,
            };
            state.is_behind |= state.wishes.is_committed.swap(false, Ordering::SeqCst);
            if let Err(cause) = done {
                // A server may go on refusing; whoever waits must hear of it.
                for answer in state.waiting.drain(..) {
                    let _ = answer.send(Err(cause.clone()));
                }
                return Over::Lost;
            }
            if state.answer_waiting(&link).await.is_err() {
                return Over::Lost;
            }
        }
    }
}

impl State {
    /// Keeps an order for later; tells if it is to end.
    fn keep(&mut self, order: Option<Order>) -> Option<Over> {
        match order {
            Some(Order::Register(answer)) => {
                self.waiting.push(answer);
                None
            }
            Some(Order::Close(closed)) => Some(Over::Closed(Some(closed))),
            None => Some(Over::Closed(None)),
        }
    }

    async fn connect(&mut self) -> Result<Ear, Cause> {
        let (alive, lost) = oneshot::channel();
        let own = self.owner.id().to_string();
        let changes = self.changes.clone();
        let heard = move |notification: &tokio_postgres::Notification| {
            // It is dropped with the connection, by which the loss is heard of.
            let _ = &alive;
            if notification.payload() != own {
                changes.tell();
            }
        };
        let link = self.target.connect_hearing(Role::Listening, heard).await?;
        let listen = format!("LISTEN {}", channel(self.target.url().schema()));
        within(link.client.batch_execute(&listen)).await?;
        if self.is_owner {
            self.hold(&link).await?;
        }
        // What was committed before is found by whoever looks for it.
        self.changes.tell();
        Ok(Ear { link, lost })
    }

    /// Takes the lock of this process. Either its former connection has it, or somebody looks
    /// whether it lives.
    async fn hold(&mut self, link: &Link) -> Result<(), Cause> {
        let held = hold(link, self.owner.lock, self.backend);
        self.backend = timeout(PATIENCE, held)
            .await
            .map_err(|_| Cause::Silence)??;
        Ok(())
    }

    async fn answer_waiting(&mut self, link: &Link) -> Result<(), Cause> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let entered = self.enter(link).await;
        for answer in self.waiting.drain(..) {
            // A caller that went away does not care.
            let _ = answer.send(entered.clone());
        }
        entered.map(|_| ())
    }

    /// Enters this process into the database, holding its lock.
    async fn enter(&mut self, link: &Link) -> Result<i64, Cause> {
        if let Some(key) = self.owner.key().filter(|_| self.is_owner) {
            return Ok(key);
        }
        let lock = self.owner.lock;
        let try_lock = "SELECT pg_backend_pid(), pg_try_advisory_lock($1)";
        let tried = within(link.client.query_one(try_lock, &[&lock])).await?;
        if !tried.try_get::<_, bool>(1)? {
            return Err(Cause::Unfit {
                reason: "another program runs under the id of this process".to_owned(),
                advice: "restart ikigai",
            });
        }
        self.backend = tried.try_get(0)?;
        within(link.client.batch_execute(FORGET)).await?;
        let key = self.say_alive(link).await?;
        self.is_owner = true;
        Ok(key)
    }

    /// Says by the server's clock that this process lives; returns its key.
    async fn say_alive(&self, link: &Link) -> Result<i64, Cause> {
        let record = &self.owner.record;
        let uuid = record.id.to_string();
        let beaten = within(link.client.query_opt(BEAT, &[&uuid])).await?;
        let key = if let Some(row) = beaten {
            row.try_get(0)?
        } else {
            let (pid, started) = (i64::from(record.pid), record.started.0);
            let lock = self.owner.lock;
            let values: [&(dyn ToSql + Sync); 5] = [&uuid, &pid, &started, &record.host, &lock];
            one(link, ENTER, &values).await?
        };
        self.owner.set_key(key);
        Ok(key)
    }

    /// Says that this process lives, and that the connection does. Tells of commits whose process
    /// died before it could: a number that was drawn may be committed until the next heartbeat.
    async fn beat(&mut self, link: &Link) -> Result<(), Cause> {
        if self.is_owner {
            self.say_alive(link).await?;
        }
        let begun = match within(link.client.query_one(BEGUN, &[])).await {
            Ok(row) => Some((row.try_get(0)?, row.try_get(1)?)),
            // Whoever may not look at the numbers is told each time.
            Err(Cause::Sql(error)) if !link.is_broken_by(&error) => None,
            Err(cause) => return Err(cause),
        };
        if begun.is_none() || self.begun != [begun; 2] {
            self.changes.tell();
        }
        self.begun = [begun, self.begun[0]];
        Ok(())
    }

    /// Tells other processes of what was committed.
    async fn notify(&mut self, link: &Link) -> Result<(), Cause> {
        let channel = channel(self.target.url().schema());
        let own = self.owner.id().to_string();
        let notify = within(link.prepared("SELECT pg_notify($1, $2)")).await?;
        within(link.client.execute(&notify, &[&channel, &own])).await?;
        self.is_behind = false;
        self.next_notify = Instant::now() + NOTIFY_PAUSE;
        Ok(())
    }

    /// Leaves in an orderly way, so that whatever this process owns can be taken over at once.
    async fn farewell(&mut self, link: &Link) -> Result<(), Cause> {
        self.is_behind |= self.wishes.is_committed.swap(false, Ordering::SeqCst);
        if self.is_behind {
            self.notify(link).await?;
        }
        if self.is_owner {
            let uuid = self.owner.id().to_string();
            let ended = "UPDATE processes SET heartbeat = 0 WHERE uuid = $1";
            within(link.client.execute(ended, &[&uuid])).await?;
            let let_go = "SELECT pg_advisory_unlock_all()";
            within(link.client.execute(let_go, &[])).await?;
        }
        Ok(())
    }

    /// Tells of a commit although no connection was there when the store was closed.
    async fn last_words(&mut self) {
        if self.is_behind || self.wishes.is_committed.load(Ordering::SeqCst) {
            let _ = timeout(FAREWELL, async {
                let ear = self.connect().await?;
                self.farewell(&ear.link).await
            })
            .await;
        }
    }
}

/// Waits for the server, but not for ever.
async fn within<T>(
    asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Cause> {
    let answer = timeout(PATIENCE, asked).await;
    Ok(answer.map_err(|_| Cause::Silence)??)
}

/// Reads the one value that a statement has.
async fn one<T>(link: &Link, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<T, Cause>
where
    T: for<'a> tokio_postgres::types::FromSql<'a>,
{
    let row = within(link.client.query_one(sql, values)).await?;
    Ok(row.try_get(0)?)
}
