//! Killed writers: every acknowledged commit is in the log afterwards.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use ikigai_core::data::ForkRole;
use ikigai_core::{AgentId, Epoch, Micros, RowRef, Seq};
use ikigai_store::{Batch, CommitError, DraftEffect, Effect, LeaseEffect, Log, ReadLog};
use ikigai_testkit::block_on;
use rusqlite::Connection;

use crate::support::{
    Dice, Player, agent, claim, create, fork_row, is_long, make_agent, make_session, only, open,
    open_at, part, said, say, tell, wait_for_parent,
};

/// Agents that are written at the same time, so that batches share transactions.
const WRITERS: u64 = 2;

/// Kills after which a store is replaced, because checking a larger one takes long.
const KILLS_PER_STORE: usize = 25;

/// Everything acknowledged before a kill is there afterwards, without gaps and with forks whole.
///
/// S2-28: the next start restores everything stored before. D12b: no gaps. D13b S3-37: forks are
/// whole or absent.
#[test]
fn abort_then_restart_restores_all() {
    let kills = if is_long() { 2000 } else { 50 };
    let mut dice = Dice::roll();
    let mut most_forks = 0;

    for left in (0..kills).step_by(KILLS_PER_STORE) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.db");
        let kills = KILLS_PER_STORE.min(kills - left);
        let forks = kill_writers(path.to_str().unwrap(), kills, &mut dice, &|sql| {
            let connection = Connection::open(&path).unwrap();
            connection.query_row(sql, [], |row| row.get(0)).unwrap()
        });
        most_forks = most_forks.max(forks);
        check_file(&path);
    }

    assert!(most_forks > 0, "no fork was ever made");
}

/// Kills `kills` writers in sequence at random moments; checks the log after each.
/// Returns the number of forks at the end. `one` runs a query that returns one number.
pub(crate) fn kill_writers(
    place: &str,
    kills: usize,
    dice: &mut Dice,
    one: &dyn Fn(&str) -> i64,
) -> i64 {
    let mut acknowledged = HashMap::new();
    let mut forks = 0;
    for kill in 1..=kills {
        let part = format!("{kill} {place}");
        let mut writer = Player::start("crash::appends_until_it_is_killed", &part);
        let mut told = Vec::new();
        for _ in 0..=dice.below(40) {
            told.push(
                writer
                    .hear()
                    .expect("the writer goes on until it is killed"),
            );
        }
        for _ in 0..dice.below(100_000) {
            std::hint::spin_loop();
        }
        told.extend(writer.kill());

        for line in told {
            let (agent, seq) = line.split_once(' ').unwrap();
            acknowledged.insert(agent.to_owned(), seq.parse::<i64>().unwrap());
        }
        forks = check(one, &acknowledged);
    }
    forks
}

/// Checks a file for damage.
fn check_file(path: &Path) {
    let connection = Connection::open(path).unwrap();
    let verdict: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
    let dangling = connection
        .prepare("PRAGMA foreign_key_check")
        .unwrap()
        .exists([])
        .unwrap();
    assert!(!dangling, "a row refers to nothing");
}

/// Checks a log with SQL; returns the number of forks.
fn check(one: &dyn Fn(&str) -> i64, acknowledged: &HashMap<String, i64>) -> i64 {
    let gaps = one(
        "SELECT count(*) FROM heads h WHERE h.seq <> (SELECT count(*) FROM messages m
             WHERE m.agent = h.agent AND m.seq BETWEEN 1 AND h.seq)
          OR EXISTS (SELECT 1 FROM messages m WHERE m.agent = h.agent AND m.seq > h.seq)",
    );
    assert_eq!(gaps, 0, "a sequence has a gap");
    let headless = one("SELECT count(*) FROM agents WHERE id NOT IN (SELECT agent FROM heads)");
    assert_eq!(headless, 0, "an agent has no head");
    let forks = one("SELECT count(*) FROM agents WHERE parent IS NOT NULL");
    let whole = one(
        "SELECT count(*) FROM agents c JOIN heads h ON h.agent = c.id
         JOIN messages parent ON parent.agent = c.parent AND parent.seq = c.fork_seq + 1
         JOIN messages first ON first.agent = c.id AND first.seq = 1
         JOIN messages prompt ON prompt.agent = c.id AND prompt.seq = 2
         WHERE h.seq = 2 AND parent.kind = 'fork' AND first.kind = 'fork' AND prompt.kind = 'user'",
    );
    assert_eq!(whole, forks, "a fork is not whole");
    let children = one(
        "SELECT count(*) FROM messages m JOIN agents a ON a.id = m.agent
         WHERE m.kind = 'fork' AND a.parent IS NULL",
    );
    assert_eq!(children, forks, "a parent has a fork row without a child");
    for (agent, seq) in acknowledged {
        let head = one(&format!(
            "SELECT h.seq FROM heads h JOIN agents a ON a.id = h.agent WHERE a.uuid = '{agent}'"
        ));
        assert!(
            head >= *seq,
            "agent {agent} has {head} rows, {seq} were acknowledged"
        );
    }
    let changed = one(
        "SELECT count(*) FROM messages WHERE kind = 'user' AND agent IN
             (SELECT id FROM agents WHERE parent IS NULL) AND content <> 'row ' || seq",
    );
    assert_eq!(changed, 0, "a row is not what was written");
    forks
}

/// A store whose creation was killed at any moment is completed by the next process.
#[test]
fn a_store_left_half_made_is_made_by_the_next() {
    let kills = if is_long() { 500 } else { 25 };
    let mut dice = Dice::roll();

    for _ in 0..kills {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep").join("log.db");
        let part = path.display().to_string();
        let mut maker = Player::start("crash::makes_a_store", &part);
        assert_eq!(maker.hear().unwrap(), "ready");
        for _ in 0..dice.below(200_000) {
            std::hint::spin_loop();
        }
        maker.kill();

        let store = open(&path, 2).unwrap();
        make_agent(&store, agent(2));
        assert_eq!(block_on(store.agents(None)).unwrap().len(), 1);
    }
}

/// The part of the maker in [`a_store_left_half_made_is_made_by_the_next`].
#[test]
#[ignore = "a part that another test starts"]
fn makes_a_store() {
    let Some(part) = part() else { return };
    tell("ready");
    let store = open(Path::new(&part[0]), 1).unwrap();
    wait_for_parent();
    drop(store);
}

/// The part of the writer in [`abort_then_restart_restores_all`].
#[test]
#[ignore = "a part that another test starts"]
fn appends_until_it_is_killed() {
    let Some(part) = part() else { return };
    let store = open_at(&part[1], part[0].parse().unwrap()).unwrap();
    match block_on(store.commit(only(make_session()))) {
        Ok(_) | Err(CommitError::BadBatch(_)) => {}
        Err(error) => panic!("{error}"),
    }
    let writers: Vec<_> = (1..=WRITERS)
        .map(|number| {
            let store = Arc::clone(&store);
            std::thread::spawn(move || append_for_ever(&*store, number))
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
}

fn append_for_ever(store: &dyn Log, number: u64) {
    let own = agent(number);
    let mut log = take(store, own);
    loop {
        let next = log.head.next();
        let mut batch = say(own, log.epoch, log.head, &format!("row {next}"));
        match next.0 % 7 {
            0 => batch = fork(own, log, agent(number * 1_000_000 + next.0)),
            3 => {
                let part = Effect::Draft(DraftEffect::Append {
                    agent: own,
                    epoch: log.epoch,
                    text: "so far".to_owned(),
                    at: Micros(3),
                });
                block_on(store.commit(only(part))).unwrap();
                batch.with.push(Effect::Draft(DraftEffect::Drop {
                    agent: own,
                    epoch: log.epoch,
                }));
            }
            _ => {}
        }
        let rows = batch.rows.iter().filter(|row| row.agent == own).count();
        block_on(store.commit(batch)).unwrap();
        log.head = Seq(log.head.0 + u64::try_from(rows).unwrap());
        tell(&format!("{own} {}", log.head));
    }
}

#[derive(Clone, Copy)]
struct HeldLog {
    epoch: Epoch,
    head: Seq,
}

/// Takes an agent over from the writer that was killed, or makes it.
fn take(store: &dyn Log, own: AgentId) -> HeldLog {
    let taken = loop {
        match block_on(store.commit(only(Effect::Lease(LeaseEffect::Take { agent: own })))) {
            Err(CommitError::NoAgent(_)) => break block_on(store.commit(only(create(own, None)))),
            // A server may take a moment to notice the death.
            Err(CommitError::Held { .. }) => std::thread::yield_now(),
            taken => break taken,
        }
    };
    let head = block_on(store.head(own)).unwrap().unwrap();
    HeldLog {
        epoch: taken.unwrap().leases[0].1,
        head: head.seq,
    }
}

/// Batch that creates a child: its first rows and the parent's `fork` row.
fn fork(own: AgentId, log: HeldLog, child: AgentId) -> Batch {
    Batch {
        heads: vec![
            claim(own, log.epoch, log.head),
            claim(child, Epoch(1), Seq(0)),
        ],
        rows: vec![
            fork_row(own, ForkRole::Parent),
            fork_row(child, ForkRole::Child),
            said(child, "go on"),
        ],
        with: vec![create(child, Some(RowRef::new(own, log.head)))],
    }
}
