//! The listener task: its connection receives and sends notifications, and holds the process's
//! lock.
//!
//! A lost connection is made again, and subscribers check for commits they missed.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until, timeout};

use super::connect::{ConnectionRole, Link, PostgresTarget};
use super::errors::ServerError;
use super::owner::{HEARTBEAT, ListenerRequest, PostgresOwner, take_lock};
use super::pipeline::{Value, send_all};
use crate::changes::LogChanges;
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

/// A process whose key is a multiple of this deletes old records at its registration.
const TIDIED_BY: i64 = 64;

/// Deletes processes that own nothing and had no heartbeat for a day, and witnesses of unknown
/// processes.
const FORGET: &str = "DELETE FROM processes p
     WHERE p.heartbeat < (extract(epoch FROM now() - interval '1 day') * 1000000)::bigint
       AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.owner = p.id);
     DELETE FROM witnesses w WHERE w.at < now() - interval '7 days'
       AND NOT EXISTS (SELECT 1 FROM processes p WHERE p.uuid = w.process)";

/// Sends a notification.
const NOTIFY: &str = "SELECT pg_notify($1, $2)";

/// Writes the heartbeat, and reads how many row and mail ids were drawn, without reading rows.
const BEAT: &str = "WITH beaten AS (
         UPDATE processes SET heartbeat = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
         WHERE uuid = $1 RETURNING id)
     SELECT (SELECT id FROM beaten), m.last_value + l.last_value
     FROM messages_id_seq m, mail_id_seq l";

/// The same without the privilege to read sequences.
const BEAT_ONLY: &str = "UPDATE processes
     SET heartbeat = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
     WHERE uuid = $1 RETURNING id, NULL::bigint";

/// Takes the lock of this process and registers it, both in one statement.
///
/// Sessions of a log of before machines become this machine's. Those of another host wait for it.
const REGISTER: &str = "WITH tried AS MATERIALIZED (
         SELECT pg_backend_pid() AS backend, pg_try_advisory_lock($5) AS has_lock),
     claimed AS (
         UPDATE sessions SET machine = $6::text, host = $4::text
         WHERE machine IS NULL AND $6::text IS NOT NULL AND (host IS NULL OR host = $4::text)),
     entered AS (
         INSERT INTO processes (uuid, pid, started, host, lock, heartbeat, machine, person)
         SELECT $1, $2, $3, $4, $5, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $6, $7
         FROM tried WHERE has_lock
         ON CONFLICT (uuid) DO UPDATE SET heartbeat = EXCLUDED.heartbeat
         RETURNING id)
     SELECT tried.backend, entered.id FROM tried LEFT JOIN entered ON true";

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
    /// Changes of this process that other processes have not been notified of.
    unsent: Mutex<LogChanges>,
    /// Rows and mails that notifications named, by all processes.
    named: AtomicU64,
    woken: Notify,
    grown: Notify,
}

impl ListenerSignals {
    fn add_unsent(&self, changes: &LogChanges) {
        self.named.fetch_add(changes.stored, Ordering::SeqCst);
        self.put_back(changes);
    }

    /// Keeps changes for another attempt.
    fn put_back(&self, changes: &LogChanges) {
        let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        unsent.add(changes);
    }

    fn take_unsent(&self) -> LogChanges {
        let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *unsent)
    }
}

impl ListenerHandle {
    /// Notifies all subscribers of a commit.
    pub fn committed(&self, changes: &LogChanges) {
        self.changes.notify_own(changes);
        self.signals.add_unsent(changes);
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
        let watch = self.changes.watch().ok_or(StoreError::Closed)?;
        // Subscribers are notified again once the connection is up.
        self.signals.woken.notify_one();
        Ok(watch)
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
    /// This process has deleted the records of processes that are long gone, with its first heartbeat.
    has_tidied: bool,
    /// Drawn ids that no notification named, at the last two heartbeats.
    unnamed: [Option<i64>; 2],
}

/// A listening connection.
struct ListenerConnection {
    link: Link,
    /// Resolves when it is lost.
    lost: oneshot::Receiver<()>,
    /// The process was registered over it.
    is_new: bool,
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
            has_tidied: false,
            unnamed: [None; 2],
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
        let ListenerConnection {
            link,
            mut lost,
            is_new,
        } = connection;
        let signals = Arc::clone(&state.signals);
        state.unnamed = [None; 2];
        if state.answer_waiting(&link).await.is_err() {
            return ListenEnd::Lost;
        }
        // The registration is a heartbeat.
        let first = Instant::now() + if is_new { HEARTBEAT } else { Duration::ZERO };
        let mut beat = interval_at(first, HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
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
        let (changes, signals) = (self.changes.clone(), Arc::clone(&self.signals));
        let on_notification = move |notification: &tokio_postgres::Notification| {
            // It is dropped with the connection, which reveals the loss.
            let _ = &alive;
            let payload = notification.payload();
            let (process, news) = payload.split_once(' ').unwrap_or((payload, ""));
            if process != own {
                let news = LogChanges::decode(news);
                signals.named.fetch_add(news.stored, Ordering::SeqCst);
                changes.notify_others(&news);
            }
        };
        let link = self
            .target
            .connect_with_notifications(ConnectionRole::Listening, on_notification)
            .await?;
        let listen = format!("LISTEN {}", channel(self.target.url().schema()));
        let listening = with_timeout(link.client.batch_execute(&listen));
        let is_new = !self.is_owner && !self.waiting.is_empty();
        if is_new {
            // In the same round trip, because a commit waits for it.
            let (listening, registered) = tokio::join!(listening, self.register(&link));
            listening?;
            registered?;
        } else {
            listening.await?;
        }
        if self.is_owner && !is_new {
            self.take_lock(&link).await?;
        }
        // Subscribers check for earlier commits.
        self.changes.notify();
        Ok(ListenerConnection { link, lost, is_new })
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
        let record = &self.owner.record;
        let values: [Value<'_>; 7] = [
            &record.id.to_string(),
            &i64::from(record.pid),
            &record.started.0,
            &record.host,
            &self.owner.lock,
            &record.machine.map(|machine| machine.to_string()),
            &record.person.as_ref().map(ToString::to_string),
        ];
        let entered = with_timeout(link.fetch(REGISTER, &values)).await?;
        let entered = entered.first().ok_or(ServerError::Silence)?;
        let Some(key) = entered.try_get::<_, Option<i64>>(1)? else {
            return Err(ServerError::Unfit {
                reason: "another program uses the id of this process".to_owned(),
                advice: "restart ikigai",
            });
        };
        self.backend = entered.try_get(0)?;
        self.owner.set_key(key);
        self.is_owner = true;
        // Programs that end before their first heartbeat share the work of deleting old records.
        if key % TIDIED_BY == 0 {
            self.has_tidied = true;
            with_timeout(link.client.batch_execute(FORGET)).await?;
        }
        Ok(key)
    }

    /// Writes the heartbeat by the server's clock, and notifies subscribers of commits whose process
    /// died before its notification.
    ///
    /// An id that was drawn may be committed until the next heartbeat.
    async fn beat(&mut self, link: &Link) -> Result<(), ServerError> {
        let uuid = self.owner.id().to_string();
        let beaten = match with_timeout(link.fetch(BEAT, &[&uuid])).await {
            // Without the privilege to read sequences, notify every time.
            Err(ServerError::Sql(error)) if !link.is_broken_by(&error) => {
                with_timeout(link.fetch(BEAT_ONLY, &[&uuid])).await?
            }
            beaten => beaten?,
        };
        let (key, unnamed) = match beaten.first() {
            Some(row) => {
                let drawn: Option<i64> = row.try_get(1)?;
                let named = self.signals.named.load(Ordering::SeqCst).cast_signed();
                let unnamed = drawn.map(|drawn| drawn.wrapping_sub(named));
                (row.try_get::<_, Option<i64>>(0)?, unnamed)
            }
            None => (None, None),
        };
        if self.is_owner && key.is_none() {
            // Its record was deleted as that of a process that is long gone.
            self.is_owner = false;
            self.register(link).await?;
        }
        if unnamed.is_none() || self.unnamed != [unnamed; 2] {
            self.changes.notify();
        }
        self.unnamed = [unnamed, self.unnamed[0]];
        if !std::mem::replace(&mut self.has_tidied, true) {
            with_timeout(link.client.batch_execute(FORGET)).await?;
        }
        Ok(())
    }

    /// Sends the notification of commits.
    async fn notify(&mut self, link: &Link) -> Result<(), ServerError> {
        let channel = channel(self.target.url().schema());
        let changes = self.signals.take_unsent();
        let payload = format!("{} {}", self.owner.id(), changes.encode());
        let values: [Value<'_>; 2] = [&channel, &payload];
        let sent = link.fetch(NOTIFY, &values);
        if let Err(cause) = with_timeout(sent).await {
            self.signals.put_back(&changes);
            return Err(cause);
        }
        self.is_behind = false;
        self.next_notify = Instant::now() + NOTIFY_PAUSE;
        Ok(())
    }

    /// Ends the registration, so that other processes can take over the agents immediately.
    ///
    /// One round trip, because the program waits for it when it ends.
    async fn unregister(&mut self, link: &Link) -> Result<(), ServerError> {
        self.is_behind |= self.signals.is_committed.swap(false, Ordering::SeqCst);
        let channel = channel(self.target.url().schema());
        let uuid = self.owner.id().to_string();
        let payload = format!("{uuid} {}", self.signals.take_unsent().encode());
        let (channel, uuid, payload): (Value<'_>, Value<'_>, Value<'_>) =
            (&channel, &uuid, &payload);
        let mut statements: Vec<(&'static str, Vec<Value<'_>>)> = Vec::new();
        if self.is_behind {
            statements.push((NOTIFY, vec![channel, payload]));
        }
        if self.is_owner {
            let ended = "UPDATE processes SET heartbeat = 0 WHERE uuid = $1";
            statements.push((ended, vec![uuid]));
            statements.push(("SELECT pg_advisory_unlock_all()", Vec::new()));
        }
        let sent = statements
            .iter()
            .map(|(sql, values)| link.fetch(sql, values));
        let answers = timeout(PATIENCE, send_all(sent)).await;
        for answer in answers.map_err(|_| ServerError::Silence)? {
            answer?;
        }
        self.is_behind = false;
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
