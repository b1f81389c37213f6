//! The program is killed and interrupted in the middle of a turn.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use crate::support::{MockAnswer, TestUser, said};

/// Starts a slow answer and reads `words` of it, so that the turn is running.
fn slow_turn(user: &TestUser, words: usize) -> (Child, String) {
    let mut child = user
        .command(&["run", "count slowly to 5000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = String::new();
    let out = child.stdout.as_mut().unwrap();
    let mut buffer = [0; 64];
    while seen.split_whitespace().count() < words {
        let count = out.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "the answer ended early: {seen}");
        seen.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    (child, seen)
}

fn signal(child: &Child, name: &str) {
    let sent = std::process::Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

fn ended(child: Child) -> MockAnswer {
    said(child.wait_with_output().unwrap())
}

/// Law 1: a kill loses at most the last 250 ms of a running stream, and no stored row.
#[test]
fn a_killed_turn_is_settled_and_the_conversation_goes_on() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    let before = user.ikigai(&["log", "--json"]).out;
    // 50 ms a word: 40 words are about two seconds, of which at most the last 250 ms may be lost.
    let (child, seen) = slow_turn(&user, 40);
    signal(&child, "KILL");
    ended(child);

    let found = user.ikigai(&["log", "--json"]).out;
    let next = user.ikigai(&["run", "what did I say"]);
    let after = user.ikigai(&["log", "--json"]).out;

    assert!(
        found.starts_with(&before),
        "nothing that was stored has changed"
    );
    assert_eq!(
        found.lines().count(),
        before.lines().count() + 1,
        "only the message was a row"
    );
    assert!(after.starts_with(&found));
    assert_eq!(
        next.out,
        "Your earlier messages:\n1. hello\n2. count slowly to 5000\n3. [The program stopped unexpectedly before this turn was finished.]\n"
    );
    let kept = after
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .find(|row| row["data"]["stop"] == "interrupted")
        .expect("the partial answer is a row");
    let kept = kept["content"].as_str().unwrap();
    let expected = seen.split_whitespace().count();
    let stored = kept.split_whitespace().count();
    assert!(
        stored + 10 >= expected,
        "{stored} of {expected} words are kept"
    );
    assert!(seen.starts_with(kept) || kept.starts_with(seen.trim_end()));
}

#[test]
fn an_interrupt_stores_what_came_and_says_so() {
    let user = TestUser::new();
    let (child, _) = slow_turn(&user, 3);
    signal(&child, "INT");

    let ended = ended(child);

    assert_eq!(ended.code, Some(130), "{}", ended.err);
    assert!(
        ended
            .err
            .contains("Interrupted; the answer so far is saved")
    );
    let log = user.ikigai(&["log"]).out;
    assert!(log.contains("✗ interrupted by you"), "{log}");
    assert!(log.contains("● 1 2 3"), "{log}");
}

#[test]
fn an_interrupt_of_a_command_that_takes_its_time_ends_it_as_a_turn() {
    let user = TestUser::new();
    for _ in 0..4 {
        user.ikigai(&["run", &"x ".repeat(60)]);
    }
    let mut child = user
        .command(&["run", "/compact slowly"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let (mut first, mut rest) = (String::new(), String::new());
    out.read_line(&mut first).unwrap();
    signal(&child, "INT");
    out.read_to_string(&mut rest).unwrap();

    let ended = ended(child);

    assert!(first.starts_with("summarising "), "{first}");
    assert_eq!(rest, "⚠ interrupted · conversation unchanged\n");
    assert_eq!((ended.code, ended.err.as_str()), (Some(130), ""));
}

#[test]
fn a_second_process_is_told_who_holds_the_agent_and_may_read() {
    let user = TestUser::new();
    let (child, _) = slow_turn(&user, 2);

    let refused = user.ikigai(&["run", "me too"]);
    let read = user.ikigai(&["log"]);
    let listed = user.ikigai(&["agents"]);
    let pid = child.id();
    signal(&child, "KILL");
    ended(child);
    let taken_over = user.ikigai(&["run", "what did I say"]);

    assert_eq!(refused.code, Some(4), "{}", refused.err);
    assert!(
        refused
            .err
            .contains(&format!("is open in another ikigai (pid {pid} on")),
        "{}",
        refused.err
    );
    assert!(read.out.contains("❯ count slowly to 5000"));
    assert!(
        listed.out.contains(&format!("open in pid {pid}")),
        "{}",
        listed.out
    );
    assert_eq!(taken_over.code, Some(0), "{}", taken_over.err);
    assert!(
        taken_over.out.contains("me too"),
        "what was left as mail is read: {}",
        taken_over.out
    );
}

/// N5c N5d, law 6: a second process lists, watches, forks and mails a foreign agent.
///
/// It cannot write to the agent. Once the owner is killed, exactly one contender gets the lease.
#[test]
fn a_second_process_watches_forks_and_mails_and_takes_over_once() {
    let user = TestUser::new();
    user.ikigai(&["run", "/name root"]);
    let (first, _) = slow_turn(&user, 2);
    let mut follower = user
        .command(&["log", "--all", "--json", "--follow", "root"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();

    let forked = user.ikigai(&["run", "--agent", "root", "/fork --name mine count to 3"]);
    let idle = user.ikigai(&["run", "--agent", "root", "/fork --name waits"]);
    let marked = user.ikigai(&["run", "--agent", "root", "/mark a"]);
    let mailed = user.ikigai(&["run", "--agent", "root", "and then?"]);
    let listed = user.ikigai(&["agents"]);
    signal(&first, "KILL");
    ended(first);
    let contend = || {
        let mut command = user.command(&["run", "--agent", "root", "count slowly to 5000"]);
        let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
        silent.spawn().unwrap()
    };
    let mut contenders = [contend(), contend()];
    let loser = loop {
        let gone = |child: &mut Child| child.try_wait().unwrap();
        if let Some(status) = contenders.iter_mut().find_map(gone) {
            break status;
        }
        std::thread::yield_now();
    };
    let mut lines = BufReader::new(follower.stdout.take().unwrap());
    let mut watched = String::new();
    while !watched.contains("\"kind\":\"interrupted\"") {
        assert_ne!(lines.read_line(&mut watched).unwrap(), 0);
    }
    let holders = contenders.iter_mut().map(|child| child.try_wait().unwrap());
    let holders = holders.filter(Option::is_none).count();
    for mut child in contenders {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    assert_eq!(forked.code, Some(0), "{}", forked.err);
    assert_eq!(forked.out, "├ forked mine · count to 3\n1 2 3\n");
    assert_eq!(idle.out, "├ forked waits · no prompt\n", "{}", idle.err);
    assert_eq!(marked.code, Some(4), "{}", marked.err);
    assert_eq!(mailed.code, Some(4), "{}", mailed.err);
    for name in ["root", "mine", "waits"] {
        assert!(listed.out.contains(name), "{}", listed.out);
    }
    assert_eq!((loser.code(), holders), (Some(4), 1), "one of them has it");
    let log = user.ikigai(&["log", "root", "--all", "--json"]).out;
    while watched.len() < log.len() {
        assert_ne!(lines.read_line(&mut watched).unwrap(), 0);
    }
    follower.kill().unwrap();
    follower.wait().unwrap();
    assert_eq!(watched, log, "each row once, in order");
    let of_kind = |kind: &str| {
        let is_it = |line: &&str| line.contains(&format!("\"kind\":\"{kind}\""));
        log.lines().filter(is_it).count()
    };
    assert_eq!((of_kind("fork"), of_kind("interrupted")), (2, 1), "{log}");
    let child = user.ikigai(&["log", "mine"]).out;
    assert!(
        child.contains("❯ count slowly to 5000"),
        "it inherits: {child}"
    );
}
