//! The listener task: its connection receives and sends notifications, and holds the process's
//! lock.
//!
//! A lost connection is made again, and subscribers check for commits they missed.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};
use tokio_postgres::types::ToSql;

use super::connect::{ConnectionRole, Link, PostgresTarget};
use super::errors::ServerError;
use super::owner::{HEARTBEAT, ListenerRequest, PostgresOwner, take_lock};
use crate::error::StoreError;
use crate::records::ProcessRecord;
use crate::watch::{CommitSignal, Watch};

/// Capacity of the channel of requests.
const REQUESTS: usize = 64;

/// Minimum interval between notifications. Commits with a notification wait for each other, so they
/// must be rare.
const NOTIFY_PAUSE: Duration = Duration::from_millis(20);

/// Timeout of the small statements of this connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// Backoff of reconnecting: first, and limit.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// Timeout of closing.
const FAREWELL: Duration = Duration::from_secs(2);

/// Deletes processes that own nothing and had no heartbeat for a day, and witnesses of unknown
/// processes.
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

/// Reads how many row and mail ids were drawn, without reading rows.
const BEGUN: &str = "SELECT m.last_value, l.last_value FROM messages_id_seq m, mail_id_seq l";

/// Returns the notification channel of a schema.
fn channel(schema: &str) -> String {
    format!("{schema}_log")
}

/// Handle of the listener task, for the rest of this process.
#[derive(Clone, Debug)]
pub struct ListenerHandle {
    changes: CommitSignal,
    signals: Arc<ListenerSignals>,
    requests: mpsc::Sender<ListenerRequest>,
}

/// Signals without a reply.
#[derive(Debug, Default)]
struct ListenerSignals {
    is_committed: AtomicBool,
    woken: Notify,
    grown: Notify,
}

impl ListenerHandle {
    /// Notifies all subscribers of a commit.
    pub fn committed(&self) {
        self.changes.notify();
        self.signals.is_committed.store(true, Ordering::SeqCst);
        self.signals.woken.notify_one();
        self.signals.grown.notify_one();
    }

    /// Waits for a commit of this process since the last call; one caller may wait.
    pub(super) async fn grown(&self) {
        self.signals.grown.notified().await;
    }

    /// Adds a subscriber, which hears of every commit after this returns.
    pub fn watch(&self) -> Result<Watch, StoreError> {
        let changes = self.changes.subscribe().ok_or(StoreError::Closed)?;
        // Subscribers are notified again once the connection is up.
        self.signals.woken.notify_one();
        Ok(Watch::new(changes, Arc::new(())))
    }

    /// Sends the last notification, releases the process's lock, and ends the task.
    pub async fn close(&self) {
        self.changes.close();
        let (answer, answered) = oneshot::channel();
        if self
            .requests
            .send(ListenerRequest::Close(answer))
            .await
            .is_ok()
        {
            let _ = answered.await;
        }
    }
}

/// The listener task.
#[derive(Debug)]
pub struct CommitListener {
    requests: mpsc::Receiver<ListenerRequest>,
    state: ListenerState,
}

/// State that outlives a connection.
#[derive(Debug)]
struct ListenerState {
    target: Arc<PostgresTarget>,
    owner: Arc<PostgresOwner>,
    changes: CommitSignal,
    signals: Arc<ListenerSignals>,
    /// Callers that wait for the registration of this process.
    waiting: Vec<oneshot::Sender<Result<i64, ServerError>>>,
    /// This process is registered, so it holds its lock whenever it is connected.
    is_owner: bool,
    /// A notification is due, and the earliest time for it.
    is_behind: bool,
    next_notify: Instant,
    /// Backend id of the connection that has the lock.
    backend: i32,
    /// Drawn ids at the last two heartbeats.
    begun: [Option<(i64, i64)>; 2],
}

/// A listening connection.
struct ListenerConnection {
    link: Link,
    /// Resolves when it is lost.
    lost: oneshot::Receiver<()>,
}

/// Reason why listening ended.
enum ListenEnd {
    Lost,
    Closed(Option<oneshot::Sender<()>>),
}

impl CommitListener {
    /// Creates the task and its handles. It connects with the first subscriber, commit or lease.
    pub fn new(
        target: Arc<PostgresTarget>,
        record: ProcessRecord,
    ) -> (Self, Arc<PostgresOwner>, ListenerHandle) {
        let (requests, ordered) = mpsc::channel(REQUESTS);
        let owner = Arc::new(PostgresOwner::new(record, requests.clone()));
        let notifier = ListenerHandle {
            changes: CommitSignal::new(),
            signals: Arc::default(),
            requests,
        };
        let state = ListenerState {
            target,
            owner: Arc::clone(&owner),
            changes: notifier.changes.clone(),
            signals: Arc::clone(&notifier.signals),
            waiting: Vec::new(),
            is_owner: false,
            is_behind: false,
            next_notify: Instant::now(),
            backend: 0,
            begun: [None; 2],
        };
        let listener = Self {
            requests: ordered,
            state,
        };
        (listener, owner, notifier)
    }

    /// Listens until the store is closed.
    pub async fn run(mut self) {
        let closed = match self.wait_until_needed().await {
            Some(ListenEnd::Closed(closed)) => closed,
            _ => self.listen().await,
        };
        self.state.notify_late().await;
        if let Some(closed) = closed {
            // The caller may be gone.
            let _ = closed.send(());
        }
    }

    /// Waits until the connection is needed; returns the end if it never is.
    async fn wait_until_needed(&mut self) -> Option<ListenEnd> {
        let Self { requests, state } = self;
        let signals = Arc::clone(&state.signals);
        tokio::select! {
            () = signals.woken.notified() => None,
            order = requests.recv() => state.accept(order),
        }
    }

    /// Connects again and again, and serves each connection.
    async fn listen(&mut self) -> Option<oneshot::Sender<()>> {
        let mut pause = FIRST_PAUSE;
        loop {
            let connected = match self.connect().await {
                Ok(connection) => connection,
                Err(closed) => return closed,
            };
            if let Ok(connection) = connected {
                let begun = Instant::now();
                match self.serve(connection).await {
                    ListenEnd::Closed(closed) => return closed,
                    ListenEnd::Lost if begun.elapsed() > LAST_PAUSE => pause = FIRST_PAUSE,
                    ListenEnd::Lost => {}
                }
            }
            let Self { requests, state } = self;
            tokio::select! {
                () = sleep(pause) => {}
                order = requests.recv() => if let Some(ListenEnd::Closed(closed)) = state.accept(order) {
                    return closed;
                }
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Connects, unless the task ends first. Waiting callers receive a failure.
    async fn connect(
        &mut self,
    ) -> Result<Result<ListenerConnection, ()>, Option<oneshot::Sender<()>>> {
        let Self { requests, state } = self;
        let mut kept = Vec::new();
        let ended = {
            let mut connecting = std::pin::pin!(state.connect());
            loop {
                tokio::select! {
                    connection = &mut connecting => break Ok(connection),
                    order = requests.recv() => match order {
                        Some(ListenerRequest::Register(answer)) => kept.push(answer),
                        Some(ListenerRequest::Close(closed)) => break Err(Some(closed)),
                        None => break Err(None),
                    },
                }
            }
        };
        state.waiting.append(&mut kept);
        match ended {
            Ok(Ok(connection)) => Ok(Ok(connection)),
            Ok(Err(cause)) => {
                for answer in state.waiting.drain(..) {
                    let _ = answer.send(Err(cause.clone()));
                }
                Ok(Err(()))
            }
            Err(closed) => Err(closed),
        }
    }

    /// Serves one connection until it is lost or the store is closed.
    async fn serve(&mut self, connection: ListenerConnection) -> ListenEnd {
        let Self { requests, state } = self;
        let ListenerConnection { link, mut lost } = connection;
        let signals = Arc::clone(&state.signals);
        let mut beat = interval(HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        state.begun = [None; 2];
        loop {
            let done = tokio::select! {
                _ = &mut lost => return ListenEnd::Lost,
                order = requests.recv() => match state.accept(order) {
                    Some(over) => {
                        let _ = timeout(FAREWELL, state.unregister(&link)).await;
                        return over;
                    }
                    None => Ok(()),
                },
                () = signals.woken.notified() => Ok(()),
                () = sleep_until(state.next_notify), if state.is_behind => {
                    state.notify(&link).await
                }
                _ = beat.tick() => state.beat(&link).await,
            };
            state.is_behind |= state.signals.is_committed.swap(false, Ordering::SeqCst);
            if let Err(cause) = done {
                // The server may keep refusing, so fail the waiting callers.
                for answer in state.waiting.drain(..) {
                    let _ = answer.send(Err(cause.clone()));
                }
                return ListenEnd::Lost;
            }
            if state.answer_waiting(&link).await.is_err() {
                return ListenEnd::Lost;
            }
        }
    }
}

impl ListenerState {
    /// Stores a request for later; returns the end if it is one.
    fn accept(&mut self, order: Option<ListenerRequest>) -> Option<ListenEnd> {
        match order {
            Some(ListenerRequest::Register(answer)) => {
                self.waiting.push(answer);
                None
            }
            Some(ListenerRequest::Close(closed)) => Some(ListenEnd::Closed(Some(closed))),
            None => Some(ListenEnd::Closed(None)),
        }
    }

    async fn connect(&mut self) -> Result<ListenerConnection, ServerError> {
        let (alive, lost) = oneshot::channel();
        let own = self.owner.id().to_string();
        let changes = self.changes.clone();
        let on_notification = move |notification: &tokio_postgres::Notification| {
            // It is dropped with the connection, which reveals the loss.
            let _ = &alive;
            if notification.payload() != own {
                changes.notify();
            }
        };
        let link = self
            .target
            .connect_with_notifications(ConnectionRole::Listening, on_notification)
            .await?;
        let listen = format!("LISTEN {}", channel(self.target.url().schema()));
        with_timeout(link.client.batch_execute(&listen)).await?;
        if self.is_owner {
            self.take_lock(&link).await?;
        }
        // Subscribers check for earlier commits.
        self.changes.notify();
        Ok(ListenerConnection { link, lost })
    }

    /// Takes the process's lock from its former connection, or waits for a liveness test.
    async fn take_lock(&mut self, link: &Link) -> Result<(), ServerError> {
        let held = take_lock(link, self.owner.lock, self.backend);
        self.backend = timeout(PATIENCE, held)
            .await
            .map_err(|_| ServerError::Silence)??;
        Ok(())
    }

    async fn answer_waiting(&mut self, link: &Link) -> Result<(), ServerError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let entered = self.register(link).await;
        for answer in self.waiting.drain(..) {
            // The caller may be gone.
            let _ = answer.send(entered.clone());
        }
        entered.map(|_| ())
    }

    /// Registers this process in the database and takes its lock.
    async fn register(&mut self, link: &Link) -> Result<i64, ServerError> {
        if let Some(key) = self.owner.key().filter(|_| self.is_owner) {
            return Ok(key);
        }
        let lock = self.owner.lock;
        let try_lock = "SELECT pg_backend_pid(), pg_try_advisory_lock($1)";
        let tried = with_timeout(link.client.query_one(try_lock, &[&lock])).await?;
        if !tried.try_get::<_, bool>(1)? {
            return Err(ServerError::Unfit {
                reason: "another program uses the id of this process".to_owned(),
                advice: "restart ikigai",
            });
        }
        self.backend = tried.try_get(0)?;
        with_timeout(link.client.batch_execute(FORGET)).await?;
        let key = self.write_heartbeat(link).await?;
        self.is_owner = true;
        Ok(key)
    }

    /// Writes the heartbeat by the server's clock; returns the process's key.
    async fn write_heartbeat(&self, link: &Link) -> Result<i64, ServerError> {
        let record = &self.owner.record;
        let uuid = record.id.to_string();
        let beaten = with_timeout(link.client.query_opt(BEAT, &[&uuid])).await?;
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

    /// Writes the heartbeat, and notifies subscribers of commits whose process died before its
    /// notification.
    ///
    /// An id that was drawn may be committed until the next heartbeat.
    async fn beat(&mut self, link: &Link) -> Result<(), ServerError> {
        if self.is_owner {
            self.write_heartbeat(link).await?;
        }
        let begun = match with_timeout(link.client.query_one(BEGUN, &[])).await {
            Ok(row) => Some((row.try_get(0)?, row.try_get(1)?)),
            // Without the privilege to read sequences, notify every time.
            Err(ServerError::Sql(error)) if !link.is_broken_by(&error) => None,
            Err(cause) => return Err(cause),
        };
        if begun.is_none() || self.begun != [begun; 2] {
            self.changes.notify();
        }
        self.begun = [begun, self.begun[0]];
        Ok(())
    }

    /// Sends the notification of commits.
    async fn notify(&mut self, link: &Link) -> Result<(), ServerError> {
        let channel = channel(self.target.url().schema());
        let own = self.owner.id().to_string();
        let notify = with_timeout(link.prepared("SELECT pg_notify($1, $2)")).await?;
        with_timeout(link.client.execute(&notify, &[&channel, &own])).await?;
        self.is_behind = false;
        self.next_notify = Instant::now() + NOTIFY_PAUSE;
        Ok(())
    }

    /// Ends the registration, so that other processes can take over the agents immediately.
    async fn unregister(&mut self, link: &Link) -> Result<(), ServerError> {
        self.is_behind |= self.signals.is_committed.swap(false, Ordering::SeqCst);
        if self.is_behind {
            self.notify(link).await?;
        }
        if self.is_owner {
            let uuid = self.owner.id().to_string();
            let ended = "UPDATE processes SET heartbeat = 0 WHERE uuid = $1";
            with_timeout(link.client.execute(ended, &[&uuid])).await?;
            let let_go = "SELECT pg_advisory_unlock_all()";
            with_timeout(link.client.execute(let_go, &[])).await?;
        }
        Ok(())
    }

    /// Sends the last notification if there was no connection when the store was closed.
    async fn notify_late(&mut self) {
        if self.is_behind || self.signals.is_committed.load(Ordering::SeqCst) {
            let _ = timeout(FAREWELL, async {
                let connection = self.connect().await?;
                self.unregister(&connection.link).await
            })
            .await;
        }
    }
}

/// Waits for the server with a timeout.
async fn with_timeout<T>(
    query: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, ServerError> {
    let answer = timeout(PATIENCE, query).await;
    Ok(answer.map_err(|_| ServerError::Silence)??)
}

/// Reads the only value of a statement.
async fn one<T>(link: &Link, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<T, ServerError>
where
    T: for<'a> tokio_postgres::types::FromSql<'a>,
{
    let row = with_timeout(link.client.query_one(sql, values)).await?;
    Ok(row.try_get(0)?)
}
