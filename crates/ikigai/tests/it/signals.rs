//! `run` ends at its deadline and at one signal, also while the store cannot be written.

use std::io::Read as _;
use std::process::{Child, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::support::TestUser;

/// Leaving takes two seconds at most; the rest is for a busy machine.
const HANGS: Duration = Duration::from_secs(15);

/// Waits for the end, and returns the exit code; none if it hangs.
fn ended(child: &mut Child) -> Option<i32> {
    let handle = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap();
    let timeout = Timespec::try_from(HANGS).unwrap();
    let mut polled = [PollFd::new(&handle, PollFlags::IN)];
    if !matches!(poll(&mut polled, Some(&timeout)), Ok(1..)) {
        child.kill().unwrap();
    }
    child.wait().unwrap().code()
}

/// Starts a long answer, and waits until its first words are printed.
fn started(user: &TestUser, arguments: &[&str]) -> Child {
    let mut child = user
        .command(&[&["run", "count slowly to 5000"], arguments].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut byte = [0];
    let out = child.stdout.as_mut().unwrap();
    out.read_exact(&mut byte).unwrap();
    child
}

#[test]
fn run_ends_at_its_deadline_and_at_one_signal_while_the_store_cannot_be_written() {
    let user = TestUser::with_file();
    user.ikigai(&["run", "hello"]);
    let ways = [
        (None, Some(1)),
        (Some(Signal::INT), Some(130)),
        (Some(Signal::TERM), Some(130)),
        (Some(Signal::HUP), Some(130)),
    ];
    for (signal, code) in ways {
        let timeout: &[&str] = match signal {
            None => &["--timeout", "2"],
            Some(_) => &[],
        };
        let mut child = started(&user, timeout);
        let writer = Connection::open(user.database()).unwrap();
        writer.busy_timeout(HANGS).unwrap();
        writer.execute_batch("BEGIN IMMEDIATE").unwrap();

        if let Some(signal) = signal {
            kill_process(Pid::from_child(&child), signal).unwrap();
        }
        let ended = ended(&mut child);
        writer.execute_batch("ROLLBACK").unwrap();

        assert_eq!(ended, code, "{signal:?}");
        let next = user.ikigai(&["run", "hello"]);
        assert_eq!(next.code, Some(0), "{signal:?}: {}", next.err);
        let log = user.ikigai(&["log"]).out;
        assert!(log.contains("count slowly to 5000"), "{log}");
    }
}

#[test]
fn every_program_ends_at_a_signal_while_the_store_cannot_be_written() {
    let user = TestUser::with_file();
    user.ikigai(&["run", "hello"]);
    for mode in ["--plain", "--headless"] {
        let mut child = user
            .command(&[mode, "count slowly to 5000"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut byte = [0];
        let out = child.stdout.as_mut().unwrap();
        out.read_exact(&mut byte).unwrap();
        let writer = Connection::open(user.database()).unwrap();
        writer.busy_timeout(HANGS).unwrap();
        writer.execute_batch("BEGIN IMMEDIATE").unwrap();

        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let ended = ended(&mut child);
        writer.execute_batch("ROLLBACK").unwrap();

        assert!(ended.is_some(), "{mode} hangs");
    }
}
