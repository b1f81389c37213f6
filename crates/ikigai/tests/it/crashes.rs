//! The program is killed and interrupted in the middle of a turn.

use std::io::Read;
use std::process::{Child, Stdio};

use crate::support::{Newcomer, Said, said};

/// Starts a slow answer and reads it until `words` have come, so that the turn is under way.
fn slow_turn(newcomer: &Newcomer, words: usize) -> (Child, String) {
    let mut child = newcomer
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

fn ended(child: Child) -> Said {
    said(child.wait_with_output().unwrap())
}

/// Law 1: of a running stream at most the last 250 ms are lost, of what was stored nothing.
#[test]
fn a_killed_turn_is_settled_and_the_conversation_goes_on() {
    let newcomer = Newcomer::new();
    newcomer.ikigai(&["run", "hello"]);
    let before = newcomer.ikigai(&["log", "--json"]).out;
    // 50 ms a word: 40 words are about two seconds, of which at most the last 250 ms may be lost.
    let (child, seen) = slow_turn(&newcomer, 40);
    signal(&child, "KILL");
    ended(child);

    let found = newcomer.ikigai(&["log", "--json"]).out;
    let next = newcomer.ikigai(&["run", "what did I say"]);
    let after = newcomer.ikigai(&["log", "--json"]).out;

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
        "I was given these messages before:\n1. hello\n2. count slowly to 5000\n3. [The program stopped unexpectedly before this turn was finished.]\n"
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
    let newcomer = Newcomer::new();
    let (child, _) = slow_turn(&newcomer, 3);
    signal(&child, "INT");

    let ended = ended(child);

    assert_eq!(ended.code, Some(130), "{}", ended.err);
    assert!(
        ended
            .err
            .contains("interrupted; what came so far is stored")
    );
    let log = newcomer.ikigai(&["log"]).out;
    assert!(log.contains("✗ interrupted by the user"), "{log}");
    assert!(log.contains("● 1 2 3"), "{log}");
}

#[test]
fn a_second_process_is_told_who_holds_the_agent_and_may_read() {
    let newcomer = Newcomer::new();
    let (child, _) = slow_turn(&newcomer, 2);

    let refused = newcomer.ikigai(&["run", "me too"]);
    let read = newcomer.ikigai(&["log"]);
    let listed = newcomer.ikigai(&["agents"]);
    let pid = child.id();
    signal(&child, "KILL");
    ended(child);
    let taken_over = newcomer.ikigai(&["run", "what did I say"]);

    assert_eq!(refused.code, Some(4), "{}", refused.err);
    assert!(
        refused.err.contains(&format!("is open in pid {pid} on")),
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
