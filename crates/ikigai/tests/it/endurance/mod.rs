//! Kills, exits and store outages at random moments.
//!
//! Nothing acknowledged is lost, no effect runs twice, and nothing hangs. `IKIGAI_TEST_LONG=1`
//! repeats them a thousand times.

mod kills;
mod leaves;
mod outages;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::process::{Child, ChildStdout, ExitStatus};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ikigai_testkit::ChosenEngine;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::support::TestUser;

/// A program that takes longer to end than this hangs. Leaving takes two seconds at most; the rest
/// is for a busy machine.
const HANGS: Duration = Duration::from_secs(15);

/// Rounds with the same store, so that each finds what the ones before left.
const ROUNDS_PER_STORE: u64 = 20;

/// Returns the number of rounds: fewer on a server, where each takes longer.
fn rounds(short: u64, long: u64) -> u64 {
    let is_long = std::env::var_os("IKIGAI_TEST_LONG").is_some_and(|value| value == "1");
    let rounds = if is_long { long } else { short };
    match ChosenEngine::here() {
        ChosenEngine::Postgres => rounds.div_ceil(4),
        _ => rounds,
    }
}

/// Rows and effects that the program has acknowledged.
#[derive(Default)]
struct Ledger {
    /// Rows as `--json` prints them, once they are stored.
    rows: BTreeSet<String>,
}

impl Ledger {
    /// Adds the output of a run. A line without its end was not acknowledged.
    fn add(&mut self, printed: &str) {
        let whole = printed.split_inclusive('\n');
        let whole = whole.filter(|line| line.ends_with('\n'));
        self.rows
            .extend(whole.map(|line| line.trim_end().to_owned()));
    }

    /// Fails if a row is missing or differs, or if an effect happened twice.
    fn check(&self, user: &TestUser) {
        let log = user.ikigai(&["log", "--all", "--json"]);
        // The first run may have been ended before it had made an agent.
        let is_empty = self.rows.is_empty() && log.code == Some(4);
        assert!(log.code == Some(0) || is_empty, "{}", log.err);
        let stored: BTreeSet<_> = log.out.lines().collect();
        for row in &self.rows {
            assert!(
                stored.contains(&**row),
                "lost: {row}\nthere is\n{}",
                log.out
            );
        }
        let effects = fs::read_to_string(effects(user)).unwrap_or_default();
        let mut counted = BTreeMap::<_, usize>::new();
        for effect in effects.lines() {
            *counted.entry(effect).or_default() += 1;
        }
        let twice: Vec<_> = counted.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "done twice: {twice:?}");
    }
}

/// Returns the file to which effects are appended.
fn effects(user: &TestUser) -> std::path::PathBuf {
    user.home().join("project/effects")
}

/// Reads a pipe to its end in a thread.
fn read_beside(mut out: ChildStdout) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A program that was killed may leave half a character.
        let _ = out.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for the end of a program; fails, and kills it, if it hangs.
fn wait_end(child: &mut Child, what: &str) -> (ExitStatus, Duration) {
    let since = Instant::now();
    let handle = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap();
    let timeout = Timespec::try_from(HANGS).unwrap();
    let mut polled = [PollFd::new(&handle, PollFlags::IN)];
    let ended = poll(&mut polled, Some(&timeout));
    if !matches!(ended, Ok(1..)) {
        let _ = child.kill();
        let _ = child.wait();
        panic!("it hangs: {what}");
    }
    (child.wait().unwrap(), since.elapsed())
}

fn send(child: &Child, signal: Signal) {
    // It may have ended.
    let _ = kill_process(Pid::from_child(child), signal);
}

fn pause(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}
