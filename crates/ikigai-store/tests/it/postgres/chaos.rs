//! Eight processes with twenty agents each write, fork, mail and wait on one server.
//!
//! The server is restarted twice, and connections are ended and cut at random.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::data::{AgentKilledData, ForkRole};
use ikigai_core::{AgentId, Epoch, Event, Micros, NewRow, Seq};
use ikigai_core::{PageQuery, Row, Span};
use ikigai_store::postgres::{PostgresOptions, PostgresStore, Url};
use ikigai_store::{
    Admin, AgentEffect, Batch, CommitError, Committed, Effect, LeaseEffect, Log, MailEffect,
    MailId, MailOrigin, MailRecord, MailState, MailTopic, ReadLog, Status, StoreError, Watch,
};
use ikigai_testkit::postgres::{Database, PgServer};
use ikigai_testkit::proxy::Proxy;
use ikigai_testkit::{Player, block_on, part, tell, wait_for_parent};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::open;
use crate::support::{
    Dice, agent, claim, create, fork_row, is_long, make_session, only, process, said,
};

const PROCESSES: u64 = 8;
const AGENTS: u64 = 20;

/// The agent that all processes take from each other.
const SHARED: u64 = 1;

/// Delay before a retry.
const PAUSE: Duration = Duration::from_millis(20);

/// Time after which an operation, retries included, counts as hanging.
const PATIENCE: Duration = Duration::from_mins(3);

/// Returns the number of a process's agent; its children have the numbers after it.
fn number_of(process: u64, place: u64) -> u64 {
    1_000_000 * process + 10_000 * (place + 1)
}

/// No row is lost or duplicated, each agent has one writer, and every wait ends.
///
/// Every failed commit can be retried.
#[test]
fn nothing_is_lost_or_doubled_in_chaos() {
    let server = PgServer::with(&["fsync = on"]);
    let database = server.database();
    let seconds: u32 = if is_long() { 60 } else { 10 };
    let mut dice = Dice::roll();
    prepare(&database);

    // Half of them connect through a proxy that is cut now and then, so replies are lost.
    let proxy = Proxy::to(&database);
    let mut players: Vec<_> = (1..=PROCESSES)
        .map(|number| {
            let url = if number % 2 == 0 {
                database.url()
            } else {
                proxy.url()
            };
            let part = format!("{number} {seconds} {url}");
            Player::start("postgres::chaos::plays_a_part", &part)
        })
        .collect();
    for player in &mut players {
        assert_eq!(player.hear().as_deref(), Some("ready"));
    }
    let quarters = seconds * 4;
    for quarter in 0..quarters {
        if quarter == quarters / 3 {
            server.stop();
            server.start_again();
        } else if quarter == quarters * 2 / 3 {
            server.kill();
            server.start_again();
        }
        if dice.below(2) == 0 {
            proxy.cut();
        }
        let ended = dice.below(4);
        database.sql(&format!(
            "SELECT pg_terminate_backend(pid) FROM (
                 SELECT pid FROM pg_stat_activity
                 WHERE application_name LIKE 'ikigai %' ORDER BY random() LIMIT {ended}
             ) AS chosen;
             SELECT pg_sleep(0.25)"
        ));
    }
    // Each process reports when it waits for nothing; until all have, all go on answering.
    let mut told = Vec::new();
    for player in &mut players {
        loop {
            let line = player.hear().expect("it runs until it is stopped");
            if line == "quiet" {
                break;
            }
            told.push(line);
        }
    }
    let connections =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'ikigai %'";
    let connections = database.sql(connections)[0][0].clone().unwrap();
    assert!(
        connections.parse::<u64>().unwrap() <= 4 * PROCESSES,
        "{connections}"
    );
    for player in players {
        told.extend(player.finish());
    }

    let store = open(&database, 99).unwrap();
    check_agents(&store, &told);
    check_mail(&store);
    check_shared(&store, &told);
    assert_eq!(block_on(store.integrity()).unwrap(), [""; 0]);
}

/// Creates all agents without owners.
fn prepare(database: &Database) {
    let store = open(database, 99).unwrap();
    let own =
        (1..=PROCESSES).flat_map(|process| (0..AGENTS).map(move |place| number_of(process, place)));
    let made = own
        .chain([SHARED])
        .map(|number| match create(agent(number), None) {
            Effect::Agent(AgentEffect::Create { agent, .. }) => {
                Effect::Agent(AgentEffect::Create {
                    agent,
                    owned: false,
                })
            }
            other => other,
        });
    let batch = Batch {
        with: [make_session()].into_iter().chain(made).collect(),
        ..Batch::default()
    };
    block_on(store.commit(batch)).unwrap();
}

fn rows_of(store: &PostgresStore, agent: AgentId) -> Vec<Row> {
    let query = PageQuery::oldest(Span::whole(agent), usize::MAX);
    block_on(store.page(query)).unwrap()
}

/// Checks that each agent has the reported number of rows, and each row its position.
fn check_agents(store: &PostgresStore, told: &[String]) {
    let mut counted = 0;
    let mut written = 0;
    for line in told.iter().filter(|line| line.starts_with("head ")) {
        let numbers: Vec<u64> = line
            .split(' ')
            .skip(1)
            .map(|it| it.parse().unwrap())
            .collect();
        let rows = rows_of(store, agent(numbers[0]));
        let seqs: Vec<u64> = rows.iter().map(|row| row.at.seq.0).collect();
        assert_eq!(seqs, (1..=numbers[1]).collect::<Vec<_>>());
        for row in &rows {
            let text = row.content.as_deref().unwrap_or("forked");
            let place = text.split(' ').next().unwrap();
            assert!(
                place == "forked" || place == row.at.seq.0.to_string(),
                "{row:?}"
            );
        }
        counted += 1;
        written += rows.len();
    }
    assert_eq!(counted, PROCESSES * AGENTS);
    // The processes were busy.
    assert!(written > 200, "{written} rows");
}

/// Checks that each mail was delivered once, by a row that names it, and answered.
fn check_mail(store: &PostgresStore) {
    let agents = block_on(store.agents(None)).unwrap();
    let mut sent: BTreeSet<u128> = BTreeSet::new();
    let mut answered: BTreeSet<u128> = BTreeSet::new();
    for agent in agents {
        let mut shown: BTreeMap<String, u32> = BTreeMap::new();
        for row in rows_of(store, agent.id) {
            let text = row.content.unwrap_or_default();
            if let Some((_, mail)) = text.split_once(" got ") {
                *shown.entry(mail.to_owned()).or_default() += 1;
            }
        }
        for mail in block_on(store.mail(agent.id)).unwrap() {
            assert_eq!(mail.state, MailState::Delivered, "{mail:?}");
            assert_eq!(shown.remove(&mail.id.0.to_string()), Some(1), "{mail:?}");
            match mail.text.split_once(' ').unwrap() {
                ("ping", _) => assert!(sent.insert(mail.id.0)),
                (_, ping) => assert!(answered.insert(ping.parse().unwrap())),
            }
        }
        assert_eq!(shown.len(), 0);
    }
    assert_eq!(sent, answered);
    assert!(sent.len() > 20, "{} waits", sent.len());
}

/// Checks that each row of the shared agent is stored once, in order of epochs.
fn check_shared(store: &PostgresStore, told: &[String]) {
    let found: Vec<String> = rows_of(store, agent(SHARED))
        .into_iter()
        .filter_map(|row| row.content)
        .collect();
    let mut ordered: Vec<&str> = told
        .iter()
        .filter_map(|line| line.strip_prefix("shared "))
        .collect();
    let place = |line: &&str| -> (u64, u64) {
        let mut numbers = line.split(' ').map(|it| it.parse().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap())
    };
    ordered.sort_by_key(place);
    assert_eq!(found, ordered);
    assert!(!ordered.is_empty());
}

/// The part of a process in [`nothing_is_lost_or_doubled_in_chaos`].
#[test]
#[ignore = "a part that another test starts"]
fn plays_a_part() {
    let Some(part) = part() else { return };
    let number: u64 = part[0].parse().unwrap();
    let seconds: u64 = part[1].parse().unwrap();
    let url = Url::parse(&part[2]).unwrap();
    let store = PostgresStore::open(PostgresOptions::new(url, process(number))).unwrap();
    let store = Arc::new(store);
    tell("ready");
    let end = Instant::now() + Duration::from_secs(seconds);
    let (over, is_over) = watch::channel(false);
    std::thread::spawn(move || {
        wait_for_parent();
        over.send_replace(true);
    });

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let mut acting = tokio::task::JoinSet::new();
        let (quiet, mut quiets) = tokio::sync::mpsc::unbounded_channel();
        for place in 0..AGENTS {
            let actor = Actor::make(&store, number, place).await;
            acting.spawn_local(actor.act(end, quiet.clone(), is_over.clone()));
        }
        let fighting = tokio::task::spawn_local(fight(Arc::clone(&store), number, end));
        for _ in 0..AGENTS {
            timeout(PATIENCE, quiets.recv()).await.expect("waits end");
        }
        for line in fighting.await.unwrap() {
            tell(&format!("shared {line}"));
        }
        tell("quiet");
        while let Some(acted) = acting.join_next().await {
            let (number, head) = acted.unwrap();
            tell(&format!("head {number} {}", head.0));
        }
    });
    store.close();
}

/// Returns true if an error is temporary.
fn passes(error: &StoreError) -> bool {
    matches!(error, StoreError::Away { .. } | StoreError::Busy(_))
}

/// Reads with retries while the store is away.
async fn read<T>(read: impl AsyncFn() -> Result<T, StoreError>) -> T {
    loop {
        match read().await {
            Ok(found) => return found,
            Err(error) if passes(&error) => sleep(PAUSE).await,
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Commits with retries while the store is away; looks the batch up if its outcome is unknown.
async fn commit(
    store: &PostgresStore,
    batch: Batch,
    is_stored: impl AsyncFn() -> bool,
) -> Result<Committed, CommitError> {
    loop {
        match store.commit(batch.clone()).await {
            Err(CommitError::Store(error)) if passes(&error) => sleep(PAUSE).await,
            Err(CommitError::Unknown(_)) => {
                if is_stored().await {
                    return Ok(Committed::default());
                }
            }
            done => return done,
        }
    }
}

/// One agent and its random work.
struct Actor {
    store: Arc<PostgresStore>,
    number: u64,
    head: Seq,
    partner: AgentId,
    watch: Watch,
    dice: u64,
    mails: u64,
    children: u64,
    waits_for: Option<MailId>,
}

impl Actor {
    async fn make(store: &Arc<PostgresStore>, process: u64, place: u64) -> Self {
        let number = number_of(process, place);
        let take = only(Effect::Lease(LeaseEffect::Take {
            agent: agent(number),
        }));
        let taken = commit(store, take, async || false).await.unwrap();
        assert_eq!(taken.leases, [(agent(number), Epoch(1))]);
        Self {
            store: Arc::clone(store),
            number,
            head: Seq(0),
            partner: agent(number_of(process % PROCESSES + 1, place)),
            watch: store.watch().unwrap(),
            dice: number | 1,
            mails: 0,
            children: 0,
            waits_for: None,
        }
    }

    fn own(&self) -> AgentId {
        agent(self.number)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % bound
    }

    /// Works until `end`, then answers other agents until `is_over` is set.
    async fn act(
        mut self,
        end: Instant,
        quiet: tokio::sync::mpsc::UnboundedSender<()>,
        mut is_over: watch::Receiver<bool>,
    ) -> (u64, Seq) {
        while Instant::now() < end {
            match self.below(8) {
                0..=2 => self.say("says").await,
                3..=4 => self.say_much().await,
                5 => self.fork_and_kill().await,
                _ => self.ask_and_wait().await,
            }
            self.answer().await;
        }
        quiet.send(()).unwrap();
        while !*is_over.borrow() {
            self.answer().await;
            tokio::select! {
                _ = self.watch.changed() => {}
                _ = is_over.changed() => {}
            }
        }
        (self.number, self.head)
    }

    fn text(&self, after: u64, what: &str) -> NewRow {
        said(self.own(), &format!("{} {what}", self.head.0 + 1 + after))
    }

    /// Commits rows of this agent with effects.
    async fn commit(&mut self, rows: Vec<NewRow>, with: Vec<Effect>) {
        self.commit_with(rows, Vec::new(), with).await;
    }

    /// The same, with the first rows of a child.
    async fn commit_with(&mut self, rows: Vec<NewRow>, child: Vec<NewRow>, with: Vec<Effect>) {
        let (own, head) = (self.own(), self.head);
        let count = rows.len() as u64;
        let mut heads = vec![claim(own, Epoch(1), head)];
        heads.extend(child.first().map(|row| claim(row.agent, Epoch(1), Seq(0))));
        let batch = Batch {
            heads,
            rows: rows.into_iter().chain(child).collect(),
            with,
        };
        let store = Arc::clone(&self.store);
        let is_stored = async || {
            let now = read(async || store.head(own).await).await.unwrap();
            now.seq > head
        };
        commit(&self.store, batch, is_stored).await.unwrap();
        self.head = Seq(head.0 + count);
    }

    async fn say(&mut self, what: &str) {
        let row = self.text(0, what);
        self.commit(vec![row], Vec::new()).await;
    }

    async fn say_much(&mut self) {
        let rows = (0..5).map(|after| self.text(after, "says more")).collect();
        self.commit(rows, Vec::new()).await;
    }

    async fn fork_and_kill(&mut self) {
        if self.head == Seq(0) {
            return;
        }
        self.children += 1;
        let child = agent(self.number + self.children);
        let point = ikigai_core::RowRef::new(self.own(), self.head);
        let rows = vec![fork_row(self.own(), ForkRole::Parent)];
        let first = vec![fork_row(child, ForkRole::Child)];
        self.commit_with(rows, first, vec![create(child, Some(point))])
            .await;
        let killed = Event::AgentKilled(AgentKilledData {
            target: Some(child),
            ..AgentKilledData::default()
        });
        let row = killed.into_row(self.own(), Micros(9));
        let dead = Effect::Agent(AgentEffect::SetStatus {
            agent: child,
            status: Status::Dead,
        });
        self.commit(vec![row], vec![dead]).await;
    }

    fn mail(&mut self, to: AgentId, text: String) -> (MailId, Effect) {
        self.mails += 1;
        let mail = MailId(u128::from(self.number) << 64 | u128::from(self.mails));
        let effect = Effect::Mail(MailEffect::Send {
            mail,
            to,
            origin: MailOrigin::Agent,
            from: Some(self.own()),
            about: MailTopic::Message,
            text,
            at: Micros(3),
            author: None,
        });
        (mail, effect)
    }

    /// Asks its partner something and waits for the answer, answering others meanwhile.
    async fn ask_and_wait(&mut self) {
        let (asked, ask) = self.mail(self.partner, "ping -".to_owned());
        let row = self.text(0, "asks");
        self.commit(vec![row], vec![ask]).await;
        self.waits_for = Some(asked);
        timeout(PATIENCE, async {
            loop {
                self.answer().await;
                if self.waits_for.is_none() {
                    return;
                }
                assert!(self.watch.changed().await);
            }
        })
        .await
        .expect("a wait ends");
    }

    /// Delivers all queued mail and answers its questions.
    async fn answer(&mut self) {
        let own = self.own();
        let store = Arc::clone(&self.store);
        for mail in read(async || store.queued_mail(own).await).await {
            self.take_in(mail).await;
        }
    }

    async fn take_in(&mut self, mail: MailRecord) {
        let row = self.text(0, &format!("got {}", mail.id.0));
        let by = ikigai_core::RowRef::new(self.own(), self.head.next());
        let mut with = vec![Effect::Mail(MailEffect::Consume { mail: mail.id, by })];
        match mail.text.split_once(' ').unwrap() {
            ("ping", _) => {
                let text = format!("pong {}", mail.id.0);
                with.push(self.mail(mail.from.unwrap(), text).1);
            }
            (_, ping) => {
                if self.waits_for.map(|it| it.0.to_string()).as_deref() == Some(ping) {
                    self.waits_for = None;
                }
            }
        }
        self.commit(vec![row], with).await;
    }
}

/// Takes the shared agent's lease repeatedly and writes to it; returns the written rows.
async fn fight(store: Arc<PostgresStore>, number: u64, end: Instant) -> Vec<String> {
    let shared = agent(SHARED);
    let mut written = Vec::new();
    let head_of = async || read(async || store.head(shared).await).await.unwrap();
    while Instant::now() < end {
        let take = commit(
            &store,
            only(Effect::Lease(LeaseEffect::Take { agent: shared })),
            async || false,
        );
        let epoch = match take.await {
            Ok(done) => done.leases[0].1,
            Err(CommitError::Held { .. }) => {
                sleep(PAUSE).await;
                continue;
            }
            Err(error) => panic!("{error:?}"),
        };
        let mut head = head_of().await.seq;
        for _ in 0..5 {
            let text = format!("{} {} {number}", epoch.0, head.0 + 1);
            let batch = Batch {
                heads: vec![claim(shared, epoch, head)],
                rows: vec![said(shared, &text)],
                with: Vec::new(),
            };
            let is_stored = async || {
                let query = PageQuery::oldest(Span::new(shared, head.next(), head.next()), 1);
                let rows = read(async || store.page(query).await).await;
                rows.iter().any(|row| row.content.as_deref() == Some(&text))
            };
            match commit(&store, batch, is_stored).await {
                Ok(_) => written.push(text),
                // Its connection was closed, so another process took the lease.
                Err(CommitError::Fenced { .. }) => break,
                Err(error) => panic!("{error:?}"),
            }
            head = head.next();
        }
        let give = Effect::Lease(LeaseEffect::Give {
            agent: shared,
            epoch,
        });
        match commit(&store, only(give), async || head_of().await.epoch > epoch).await {
            Ok(_) | Err(CommitError::Fenced { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
        sleep(PAUSE).await;
    }
    written
}
