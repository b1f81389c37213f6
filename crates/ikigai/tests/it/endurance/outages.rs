//! The store goes away at random moments, for a random time.

use std::process::Stdio;
use std::time::Duration;

use ikigai_testkit::proxy::Proxy;
use ikigai_testkit::{Dice, tell};
use rusqlite::Connection;

use super::{Ledger, ROUNDS_PER_STORE, pause, read_beside, rounds, wait_end};
use crate::support::TestUser;

const LATEST_MILLISECONDS: u64 = 300;

/// Longest ordinary outage; a few are longer than the store's timeout.
const LONGEST_MILLISECONDS: u64 = 1500;

/// One outage in this many is longer than the timeout.
const LONG_ONES: u64 = 16;

/// A way to take the store away.
enum Outage {
    /// Another process writes and does not stop.
    Lock(Connection),
    /// The connection to the server is cut, or nothing passes.
    Proxy(Proxy),
}

#[test]
fn a_turn_outlives_outages_of_its_store_and_loses_nothing() {
    let mut dice = Dice::roll();
    let outages = rounds(12, 200);
    let mut acknowledged = 0;
    let mut done = 0;
    while done < outages {
        let user = TestUser::new();
        let first = user.ikigai(&["run", "hello"]);
        assert_eq!(first.code, Some(0), "{}", first.err);
        let outage = Outage::of(&user);
        let mut ledger = Ledger::default();
        for round in 0..ROUNDS_PER_STORE.min(outages - done) {
            let printed = through_outage(&user, &outage, &mut dice, round);
            ledger.add(&printed);
            ledger.check(&user);
            done += 1;
        }
        acknowledged += ledger.rows.len();
    }
    tell(&format!(
        "{outages} outages, {acknowledged} acknowledged rows, none lost"
    ));
}

/// Runs a turn during which the store is away for a while; returns its output.
fn through_outage(user: &TestUser, outage: &Outage, dice: &mut Dice, round: u64) -> String {
    let prompt = match dice.below(3) {
        0 => format!("hello {round}"),
        1 => "count slowly to 20".to_owned(),
        _ => format!("run `echo outage-{round} >> effects`"),
    };
    let mut command = user.command(&["run", "--json", "--approve", "all", &prompt]);
    if let Outage::Proxy(proxy) = outage {
        command.env("IKIGAI_DB", proxy.url());
    }
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let printed = read_beside(child.stdout.take().unwrap());
    pause(dice.below(LATEST_MILLISECONDS));
    let is_long = dice.below(LONG_ONES) == 0;
    let lasts = dice.below(LONGEST_MILLISECONDS) + if is_long { 5_000 } else { 0 };
    outage.take_away(dice, lasts);
    let (status, _) = wait_end(&mut child, "a run after its store came back");
    let printed = printed.join().unwrap();
    // A start without a store fails; a turn that has begun continues.
    let has_begun = !printed.is_empty();
    assert!(
        status.success() || status.code() == Some(3) && !has_begun,
        "{status}: {prompt}\n{printed}"
    );
    printed
}

impl Outage {
    fn of(user: &TestUser) -> Self {
        match user.server() {
            Some(server) => Self::Proxy(Proxy::to(server.database())),
            None => Self::Lock(Connection::open(user.database()).unwrap()),
        }
    }

    fn take_away(&self, dice: &mut Dice, milliseconds: u64) {
        match self {
            Self::Lock(connection) => {
                connection.busy_timeout(Duration::from_secs(30)).unwrap();
                connection.execute_batch("BEGIN IMMEDIATE").unwrap();
                pause(milliseconds);
                connection.execute_batch("ROLLBACK").unwrap();
            }
            Self::Proxy(proxy) => {
                if dice.below(2) == 0 {
                    proxy.cut();
                }
                proxy.silence();
                pause(milliseconds);
                proxy.open();
            }
        }
    }
}
