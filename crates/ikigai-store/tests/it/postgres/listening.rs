//! Notifications between processes, and detection of dead processes.

use std::sync::Arc;
use std::time::Duration;

use ikigai_core::Seq;
use ikigai_store::postgres::{
    CommitListener, ConnectionRole, Link, ListenerHandle, MIGRATIONS, PostgresOwner,
    PostgresTarget, Url, is_alive,
};
use ikigai_store::{LogChanges, ProcessRecord, Watch, WatchedChanges};
use ikigai_testkit::postgres::{Database, PgServer};
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::support::{agent, process};

/// Time limit of each step of a test.
const PATIENCE: Duration = Duration::from_secs(30);

/// Listener of one process.
struct Listening {
    record: ProcessRecord,
    target: Arc<PostgresTarget>,
    owner: Arc<PostgresOwner>,
    notifier: ListenerHandle,
    task: tokio::task::JoinHandle<()>,
}

impl Listening {
    async fn start(database: &Database, number: u64) -> Self {
        let target = PostgresTarget::new(Url::parse(&database.url()).unwrap(), MIGRATIONS).unwrap();
        let target = Arc::new(target);
        target.prepare(ConnectionRole::Reading).await.unwrap();
        let record = process(number);
        let (listener, owner, notifier) = CommitListener::new(Arc::clone(&target), record.clone());
        Self {
            record,
            target,
            owner,
            notifier,
            task: tokio::spawn(listener.run()),
        }
    }

    async fn link(&self) -> Link {
        self.target.connect(ConnectionRole::Writing).await.unwrap()
    }

    /// Returns true if another process counts as alive.
    async fn sees(&self, other: &Self) -> bool {
        let link = self.link().await;
        is_alive(&link, other.record.id).await.unwrap()
    }

    /// Polls until another process counts as dead, or alive.
    async fn waits_until(&self, other: &Self, is_alive: bool) {
        let waiting = async {
            while self.sees(other).await != is_alive {
                tokio::task::yield_now().await;
            }
        };
        soon(waiting).await;
    }

    /// Returns a watch after the listener has subscribed, with no notification pending.
    async fn quiet_watch(&self, database: &Database) -> Watch {
        let watch = self.notifier.watch().unwrap();
        until(database, "'ikigai listen'").await;
        watch
    }

    /// Aborts the listener as a crash does.
    fn crash(self) {
        self.task.abort();
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it happens soon")
}

/// Waits until a connection of this name is idle.
async fn until(database: &Database, name: &str) {
    let question = format!(
        "SELECT 1 FROM pg_stat_activity WHERE application_name = {name} AND state = 'idle'
         AND datname = current_database()"
    );
    soon(async {
        while database.sql(&question).is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn run(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test);
}

#[test]
fn a_commit_of_another_process_is_heard_of() {
    let database = Database::fresh();
    run(async {
        let one = Listening::start(&database, 1).await;
        let other = Listening::start(&database, 2).await;
        let mut watch = one.quiet_watch(&database).await;

        // The first notifications may be those of its start.
        for _ in 0..5 {
            other.notifier.committed(&LogChanges::default());
            assert!(soon(watch.changed()).await);
        }
    });
}

#[test]
fn a_notification_names_the_agents_that_changed() {
    let database = Database::fresh();
    run(async {
        let one = Listening::start(&database, 1).await;
        let other = Listening::start(&database, 2).await;
        let mut watch = one.quiet_watch(&database).await;
        let mut own = other.notifier.watch().unwrap();
        let changes = LogChanges {
            agents: [(agent(1), Seq(3))].into(),
            drafts: [agent(2)].into(),
            stored: 3,
            ..LogChanges::default()
        };
        let mut heard = WatchedChanges::default();

        other.notifier.committed(&changes);

        soon(async {
            while heard.others.agents.is_empty() && watch.changed().await {
                let news = watch.take();
                heard.others.add(&news.others);
                assert_eq!(news.own, LogChanges::default());
            }
        })
        .await;
        assert_eq!(heard.others.agents, changes.agents);
        assert_eq!(heard.others.drafts, changes.drafts);
        assert!(heard.may_concern(agent(1)) && heard.may_concern(agent(2)));
        assert_eq!(own.take().own, changes);
    });
}

#[test]
fn what_was_committed_is_told_before_the_end() {
    let database = Database::fresh();
    run(async {
        let one = Listening::start(&database, 1).await;
        let other = Listening::start(&database, 2).await;
        let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
        let ear =
            one.target
                .connect_with_notifications(ConnectionRole::Slow, move |notification| {
                    let _ = told.send(notification.payload().to_owned());
                });
        let ear = ear.await.unwrap();
        ear.client.batch_execute("LISTEN ikigai_log").await.unwrap();
        other.notifier.committed(&LogChanges::default());
        other.notifier.close().await;

        let sent = format!("{} n0", other.record.id);
        assert_eq!(soon(hears.recv()).await, Some(sent));
    });
}

#[test]
fn a_closed_watch_ends() {
    let database = Database::fresh();
    run(async {
        let one = Listening::start(&database, 1).await;
        let mut watch = one.quiet_watch(&database).await;

        one.notifier.close().await;

        soon(async { while watch.changed().await {} }).await;
        assert!(one.notifier.watch().is_err());
        soon(one.task).await.unwrap();
    });
}

#[test]
fn a_lost_connection_is_made_again_and_whoever_watches_looks_again() {
    let database = Database::fresh();
    run(async {
        let one = Listening::start(&database, 1).await;
        let mut watch = one.quiet_watch(&database).await;
        let key = one.owner.register().await.unwrap();

        for _ in 0..3 {
            database.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE application_name = 'ikigai listen' AND datname = current_database()",
            );
            assert!(soon(watch.changed()).await);
            until(&database, "'ikigai listen'").await;
        }

        assert_eq!(one.owner.register().await.unwrap(), key);
        let other = Listening::start(&database, 2).await;
        other.waits_until(&one, true).await;
    });
}

#[test]
fn a_process_lives_as_long_as_its_listening_connection() {
    let database = Database::fresh();
    run(async {
        let one = Listening::start(&database, 1).await;
        let other = Listening::start(&database, 2).await;
        assert!(!other.sees(&one).await);

        one.owner.register().await.unwrap();
        assert!(other.sees(&one).await);

        let second = Listening::start(&database, 1).await;
        let refused = second.owner.register().await.unwrap_err();
        assert!(refused.to_string().contains("another program"), "{refused}");
        second.crash();

        let record = one.record.clone();
        one.crash();
        let gone = Listening {
            record,
            ..Listening::start(&database, 3).await
        };
        other.waits_until(&gone, false).await;
    });
}

#[test]
fn whoever_ends_in_an_orderly_way_is_gone_at_once() {
    let database = Database::fresh();
    run(async {
        let one = Listening::start(&database, 1).await;
        let other = Listening::start(&database, 2).await;
        one.owner.register().await.unwrap();

        one.notifier.close().await;

        assert!(!other.sees(&one).await);
    });
}

#[test]
fn whoever_says_nothing_for_15_seconds_is_gone_though_it_has_its_lock() {
    let database = Database::fresh();
    run(async {
        let one = Listening::start(&database, 1).await;
        let stopped = Listening::start(&database, 2).await;
        let uuid = stopped.record.id;
        let says = |seconds: u32| {
            database.sql(&format!(
                "UPDATE processes
                 SET heartbeat = extract(epoch FROM now() - interval '{seconds} s') * 1000000
                 WHERE uuid = '{uuid}'"
            ))
        };
        database.sql(&format!(
            "INSERT INTO processes (uuid, pid, started, host, lock, heartbeat)
             VALUES ('{uuid}', 1, 1, 'there', 42, 1)"
        ));
        let holder = stopped.link().await;
        let hold = holder.client.batch_execute("SELECT pg_advisory_lock(42)");
        hold.await.unwrap();
        // A server that was just started gives processes more time.
        database
            .sql("SELECT pg_sleep(17 - extract(epoch FROM now() - pg_postmaster_start_time()))");

        says(10);
        assert!(one.sees(&stopped).await);
        says(16);
        assert!(!one.sees(&stopped).await);
    });
}

#[test]
fn after_a_restart_of_the_server_everybody_has_time_to_come_back() {
    let server = PgServer::start();
    let database = server.database();
    run(async {
        let one = Listening::start(&database, 1).await;
        let other = Listening::start(&database, 2).await;
        one.owner.register().await.unwrap();
        let record = one.record.clone();
        one.crash();
        let gone = Listening {
            record,
            ..Listening::start(&database, 3).await
        };
        other.waits_until(&gone, false).await;
        // Heartbeats become durable with the next write.
        database.sql("CREATE TABLE something (id bigint)");

        server.kill();
        server.start_again();

        assert!(other.sees(&gone).await);
    });
}
