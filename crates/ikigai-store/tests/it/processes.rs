//! Several processes on one log.

use ikigai_core::data::{AgentKilledData, ForkRole};
use ikigai_core::{AgentId, Epoch, Event, Micros, PageQuery, Row, RowRef, Seq, Span};
use ikigai_store::{
    AgentEffect, Batch, CommitError, Effect, HeadClaim, LeaseEffect, Log, MailEffect, MailId,
    MailOrigin, MailTopic, NewAgent, Status,
};
use ikigai_testkit::block_on;

use crate::support::{
    Player, agent, claim, create, fork_row, is_long, make_agent, make_session, only, open, open_at,
    part, process, said, say, session, tell, wait_for_parent,
};

const WRITERS: u64 = 8;
const FIGHTERS: u64 = 2;

/// The agent that two processes want.
const SHARED: u64 = 100;

fn rows_of(store: &dyn Log, agent: AgentId, from: Seq) -> Vec<Row> {
    let query = PageQuery::oldest(Span::new(agent, from, Seq(u64::MAX)), usize::MAX);
    block_on(store.page(query)).unwrap()
}

fn texts(rows: &[Row]) -> Vec<String> {
    rows.iter().filter_map(|row| row.content.clone()).collect()
}

/// Eight processes create one store and write to it concurrently.
///
/// Two more take one lease from each other. No write fails, no row is lost, and the lease has
/// one owner at a time.
///
/// N5a: only the holder writes. D12b: no gaps.
#[test]
fn many_processes_lose_no_row() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep").join("log.db");
    lose_no_row(path.to_str().unwrap());
}

/// Runs the test on a new log at `place`.
pub(crate) fn lose_no_row(place: &str) {
    let rows = if is_long() { 2000 } else { 100 };
    let start = |name: &str, number: u64| {
        let part = format!("{number} {rows} {place}");
        Player::start(name, &part)
    };

    let writers: Vec<_> = (1..=WRITERS)
        .map(|number| start("processes::writes_its_own_agent", number))
        .collect();
    let fighters: Vec<_> = (1..=FIGHTERS)
        .map(|number| start("processes::fights_for_a_lease", WRITERS + number))
        .collect();
    let told: Vec<_> = fighters.into_iter().flat_map(Player::finish).collect();
    for writer in writers {
        writer.finish();
    }

    let store = open_at(place, 99).unwrap();
    for number in 1..=WRITERS {
        let written: Vec<_> = (1..=rows).map(|row| format!("row {row}")).collect();
        assert_eq!(texts(&rows_of(&*store, agent(number), Seq(1))), written);
    }
    let fought = texts(&rows_of(&*store, agent(SHARED), Seq(1)));
    assert_eq!(fought, in_order_of_epochs(&told, &fought));
    assert_eq!(fought.len() as u64, FIGHTERS * rows);
}

/// Orders the writers' reported rows by epoch; each epoch belonged to one process.
fn in_order_of_epochs(told: &[String], fought: &[String]) -> Vec<String> {
    let epoch = |line: &String| -> u64 { line.split(' ').next().unwrap().parse().unwrap() };
    let mut ordered = told.to_vec();
    // Stable: within an epoch the order is that of its only writer.
    ordered.sort_by_key(epoch);
    assert_eq!(ordered.len(), fought.len());
    ordered
}

/// The part of a writer in [`many_processes_lose_no_row`].
#[test]
#[ignore = "a part that another test starts"]
fn writes_its_own_agent() {
    let Some(part) = part() else { return };
    let number: u64 = part[0].parse().unwrap();
    let store = open_at(&part[2], number).unwrap();
    prepare(&*store);
    let own = agent(number);
    block_on(store.commit(only(create(own, None)))).unwrap();

    for row in 1..=part[1].parse().unwrap() {
        let batch = say(own, Epoch(1), Seq(row - 1), &format!("row {row}"));
        block_on(store.commit(batch)).unwrap();
    }
}

/// The part of a fighter in [`many_processes_lose_no_row`].
#[test]
#[ignore = "a part that another test starts"]
fn fights_for_a_lease() {
    let Some(part) = part() else { return };
    let number: u64 = part[0].parse().unwrap();
    let mut left: u64 = part[1].parse().unwrap();
    let store = open_at(&part[2], number).unwrap();
    prepare(&*store);
    let own = agent(SHARED);
    match block_on(store.commit(only(create(own, None)))) {
        Ok(_) | Err(CommitError::AgentExists(_)) => {}
        Err(error) => panic!("{error}"),
    }

    while left > 0 {
        let (epoch, mut head) = take(&*store, own);
        for _ in 0..left.min(10) {
            let text = format!("{epoch} of {number} at {head}");
            block_on(store.commit(say(own, epoch, head, &text))).unwrap();
            tell(&text);
            head = head.next();
            left -= 1;
        }
        block_on(store.commit(only(Effect::Lease(LeaseEffect::Give { agent: own, epoch }))))
            .unwrap();
        let stale = block_on(store.commit(say(own, epoch, head, "late")));
        // The other process may have written meanwhile, but a stale epoch is checked first.
        assert!(
            matches!(stale, Err(CommitError::Fenced { .. })),
            "{stale:?}"
        );
    }
}

/// Makes the session that all agents are in, unless another process has.
fn prepare(store: &dyn Log) {
    match block_on(store.commit(only(make_session()))) {
        Ok(_) | Err(CommitError::BadBatch(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Takes a lease as soon as its holder gives it back.
fn take(store: &dyn Log, own: AgentId) -> (Epoch, Seq) {
    let mut watch = store.watch().unwrap();
    loop {
        match block_on(store.commit(only(Effect::Lease(LeaseEffect::Take { agent: own })))) {
            Ok(done) => {
                let head = block_on(store.head(own)).unwrap().unwrap();
                return (done.leases[0].1, head.seq);
            }
            Err(CommitError::Held { .. }) => assert!(block_on(watch.changed())),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A second process is refused with the owner's name while the owner lives.
///
/// Once the owner is killed, the next attempt takes the agent over.
///
/// N5a.
#[test]
fn one_writer_per_agent_dead_owner_replaced_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    dead_owner_is_replaced(path.to_str().unwrap(), || ());
}

/// Runs the test on a new log at `place`; `notice` returns once the death is known there.
pub(crate) fn dead_owner_is_replaced(place: &str, notice: impl FnOnce()) {
    let part = format!("1 {place}");
    let mut holder = Player::start("processes::holds_a_lease", &part);
    assert_eq!(holder.hear().unwrap(), "held");
    let store = open_at(place, 2).unwrap();
    let take =
        || block_on(store.commit(only(Effect::Lease(LeaseEffect::Take { agent: agent(1) }))));

    let refused = take();
    match refused {
        Err(CommitError::Held { agent: of, owner }) => {
            assert_eq!(
                (of, owner.id, owner.pid),
                (agent(1), process(1).id, holder.pid())
            );
        }
        other => panic!("{other:?}"),
    }
    holder.kill();
    notice();
    let taken = take().unwrap();

    assert_eq!(taken.leases, [(agent(1), Epoch(2))]);
    block_on(store.commit(say(agent(1), Epoch(2), Seq(1), "mine"))).unwrap();
}

/// A write with a stale lease is refused and leaves no row.
///
/// N5b.
#[test]
fn stale_lease_write_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    let part = format!("1 {}", path.display());
    let mut holder = Player::start("processes::holds_a_lease", &part);
    assert_eq!(holder.hear().unwrap(), "held");
    // Without its lock file the owner counts as dead, although it runs.
    let locks = directory.path().join("log.db-locks");
    std::fs::remove_file(locks.join(process(1).id.to_string())).unwrap();
    let store = open(&path, 2).unwrap();

    let taken =
        block_on(store.commit(only(Effect::Lease(LeaseEffect::Take { agent: agent(1) })))).unwrap();
    let told = holder.finish();

    assert_eq!(taken.leases, [(agent(1), Epoch(2))]);
    assert_eq!(told, ["fenced by 2"]);
    assert_eq!(texts(&rows_of(&store, agent(1), Seq(1))), ["first"]);
}

/// The part of the holder: it writes once, waits, and writes again.
#[test]
#[ignore = "a part that another test starts"]
fn holds_a_lease() {
    let Some(part) = part() else { return };
    let store = open_at(&part[1], part[0].parse().unwrap()).unwrap();
    make_agent(&*store, agent(1));
    block_on(store.commit(say(agent(1), Epoch(1), Seq(0), "first"))).unwrap();
    tell("held");

    wait_for_parent();

    match block_on(store.commit(say(agent(1), Epoch(1), Seq(1), "second"))) {
        Err(CommitError::Fenced { epoch, .. }) => tell(&format!("fenced by {epoch}")),
        other => panic!("{other:?}"),
    }
}

/// A process without the lease sees each row once, in order, and can fork, kill and mail.
///
/// Other writes are refused.
///
/// N5c.
#[test]
fn second_process_watches_forks_kills_and_mails_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.db");
    watches_forks_kills_and_mails_only(path.to_str().unwrap());
}

/// Runs the test on a new log at `place`.
pub(crate) fn watches_forks_kills_and_mails_only(place: &str) {
    const ROWS: u64 = 300;
    let store = open_at(place, 2).unwrap();
    let mut watch = store.watch().unwrap();
    let part = format!("1 {ROWS} {place}");
    let mut holder = Player::start("processes::writes_while_watched", &part);
    assert_eq!(holder.hear().unwrap(), "made");
    let own = agent(1);

    let mut seen = Vec::new();
    while (seen.len() as u64) < ROWS {
        assert!(block_on(watch.changed()));
        let rows = rows_of(&*store, own, Seq(seen.len() as u64 + 1));
        seen.extend(texts(&rows));
    }

    let written: Vec<_> = (1..=ROWS).map(|row| format!("row {row}")).collect();
    assert_eq!(seen, written);
    let free = HeadClaim {
        agent: own,
        lease: None,
    };
    fork_without_lease(&*store, free, RowRef::new(own, Seq(ROWS)));
    let mail = Effect::Mail(MailEffect::Send {
        mail: MailId(1),
        to: own,
        origin: MailOrigin::User,
        from: None,
        about: MailTopic::Message,
        text: "stop".to_owned(),
        at: Micros(1),
        author: None,
    });
    block_on(store.commit(only(mail))).unwrap();
    let foreign = block_on(store.commit(say(own, Epoch(1), Seq(ROWS + 1), "mine")));
    assert!(
        matches!(foreign, Err(CommitError::Fenced { .. })),
        "{foreign:?}"
    );
    let ordinary = block_on(store.commit(Batch {
        heads: vec![free],
        rows: vec![said(own, "mine")],
        with: Vec::new(),
    }));
    assert!(
        matches!(ordinary, Err(CommitError::BadBatch(_))),
        "{ordinary:?}"
    );
    let killed = Event::AgentKilled(AgentKilledData {
        target: Some(own),
        ..AgentKilledData::default()
    });
    let kill = Batch {
        heads: vec![free],
        rows: vec![killed.into_row(own, Micros(2))],
        with: vec![Effect::Agent(AgentEffect::SetStatus {
            agent: own,
            status: Status::Dead,
        })],
    };
    block_on(store.commit(kill)).unwrap();
    assert_eq!(holder.finish(), ["fork agent_killed; mail stop; dead"]);
}

/// Creates a child without owner, with its first rows and the parent's `fork` row.
fn fork_without_lease(store: &dyn Log, parent: HeadClaim, fork_point: RowRef) {
    let child = agent(2);
    let batch = Batch {
        heads: vec![parent, claim(child, Epoch(0), Seq(0))],
        rows: vec![
            fork_row(parent.agent, ForkRole::Parent),
            fork_row(child, ForkRole::Child),
            said(child, "go on"),
        ],
        with: vec![Effect::Agent(AgentEffect::Create {
            agent: NewAgent {
                id: child,
                name: "child".to_owned(),
                session: session(1),
                parent: Some(parent.agent),
                fork_point: Some(fork_point),
                created_at: Micros(1),
            },
            owned: false,
        })],
    };
    let done = block_on(store.commit(batch)).unwrap();
    assert_eq!(
        done.rows[0],
        RowRef::new(parent.agent, fork_point.seq.next())
    );
}

/// The part of the owner in [`second_process_watches_forks_kills_and_mails_only`].
///
/// It writes rows, then prints the changes that its watch reports.
#[test]
#[ignore = "a part that another test starts"]
fn writes_while_watched() {
    let Some(part) = part() else { return };
    let rows: u64 = part[1].parse().unwrap();
    let store = open_at(&part[2], part[0].parse().unwrap()).unwrap();
    let own = agent(1);
    make_agent(&*store, own);
    tell("made");
    for row in 1..=rows {
        let batch = say(own, Epoch(1), Seq(row - 1), &format!("row {row}"));
        block_on(store.commit(batch)).unwrap();
    }

    let mut watch = store.watch().unwrap();
    while block_on(store.agent(own)).unwrap().unwrap().status == Status::Running {
        assert!(block_on(watch.changed()));
    }

    let news = rows_of(&*store, own, Seq(rows + 1));
    let kinds: Vec<_> = news.iter().map(|row| row.kind.name()).collect();
    let mail = block_on(store.mail(own)).unwrap();
    tell(&format!("{}; mail {}; dead", kinds.join(" "), mail[0].text));
}
