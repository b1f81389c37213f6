//! The program is killed at random moments of turns, commands and effects.

use std::process::Stdio;

use ikigai_testkit::{Dice, tell};
use rustix::process::Signal;

use super::{Ledger, ROUNDS_PER_STORE, pause, read_beside, rounds, send, wait_end};
use crate::support::TestUser;

/// Longer than most runs take, so that some end before they are killed.
const LATEST_MILLISECONDS: u64 = 700;

/// Law 1 and law 7 against `kill -9`.
#[test]
fn nothing_acknowledged_is_lost_and_nothing_runs_twice_by_random_kills() {
    let mut dice = Dice::roll();
    let kills = rounds(24, 1000);
    let mut acknowledged = 0;
    let mut done = 0;
    while done < kills {
        let user = TestUser::new();
        let mut ledger = Ledger::default();
        for round in 0..ROUNDS_PER_STORE.min(kills - done) {
            let prompt = prompt(&mut dice, round);
            let printed = killed(&user, &prompt, dice.below(LATEST_MILLISECONDS));
            ledger.add(&printed);
            ledger.check(&user);
            done += 1;
        }
        let next = user.ikigai(&["run", "hello"]);
        assert_eq!(next.code, Some(0), "it goes on: {}", next.err);
        ledger.check(&user);
        acknowledged += ledger.rows.len();
    }
    tell(&format!(
        "{kills} kills, {acknowledged} acknowledged rows, none lost"
    ));
}

fn prompt(dice: &mut Dice, round: u64) -> String {
    match dice.below(6) {
        0 => format!("hello {round}"),
        1 => "count slowly to 40".to_owned(),
        2 => format!("/mark m{round}"),
        3 => format!("!echo shell-{round} >> effects"),
        4 => "list the rust files".to_owned(),
        _ => format!("run `echo tool-{round} >> effects`"),
    }
}

/// Starts a turn and kills it after a while; returns its output.
fn killed(user: &TestUser, prompt: &str, after: u64) -> String {
    let mut child = user
        .command(&["run", "--json", "--approve", "all", prompt])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let printed = read_beside(child.stdout.take().unwrap());
    pause(after);
    send(&child, Signal::KILL);
    wait_end(&mut child, prompt);
    printed.join().unwrap()
}
