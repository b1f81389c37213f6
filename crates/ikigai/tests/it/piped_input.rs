//! Text that is piped into `run`.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::support::{MockAnswer, PROGRAM, TestUser, said};

/// Runs a turn with this standard input; returns its output and the stored message.
fn run_with(user: &TestUser, input: &[u8], arguments: &[&str]) -> (MockAnswer, String) {
    let mut child = user
        .command(&[&["run"], arguments].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let input = input.to_vec();
    // The program may end before it has read all.
    let writing = std::thread::spawn(move || drop(pipe.write_all(&input)));
    let said = said(child.wait_with_output().unwrap());
    writing.join().unwrap();
    (said, last_message(user))
}

fn last_message(user: &TestUser) -> String {
    let log = user.ikigai(&["log", "--all", "--json"]).out;
    let rows = log
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut messages = rows.filter(|row| row["kind"] == "user");
    let last = messages.next_back().map(|row| row["content"].clone());
    last.unwrap_or_default()
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn piped_text_is_appended_to_the_prompt() {
    let user = TestUser::new();

    let (said, message) = run_with(&user, b"+ added\n- removed\n", &["hello, review this"]);

    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(message.starts_with("<environment>\n"), "{message}");
    let (_, typed) = message.split_once("\n</environment>\n\n").unwrap();
    assert_eq!(
        typed,
        "hello, review this\n\n<stdin>\n+ added\n- removed\n</stdin>"
    );
    let (_, empty) = run_with(&user, b"", &["hello empty"]);
    assert_eq!(empty, "hello empty");
    let (_, dash) = run_with(&user, b"hello dash", &["-"]);
    assert_eq!(dash, "hello dash");
    let (command, message) = run_with(&user, b"unread", &["/mark here"]);
    assert_eq!(command.code, Some(0), "{}", command.err);
    assert_eq!(message, "hello dash", "commands take no input");
}

#[test]
fn endless_input_is_cut_and_a_silent_pipe_is_not_waited_for() {
    let user = TestUser::new();
    let (said, message) = run_with(&user, &b"y\n".repeat(2 << 20), &["hello"]);
    assert!(said.err.contains("only the first 1024 KB"), "{}", said.err);
    assert!(message.len() < (1 << 20) + 200, "{}", message.len());

    // The test, an ancestor, keeps the pipe open.
    let mut child = user
        .command(&["run", "--new", "hello silence"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pipe = child.stdin.take();
    let ended = crate::support::said(child.wait_with_output().unwrap());
    drop(pipe);

    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.err.contains("no data on stdin"), "{}", ended.err);
}

/// `run` waits for a slow producer, but not past the timeout.
#[test]
fn the_timeout_ends_the_wait_for_piped_input() {
    let user = TestUser::new();
    let line = "(sleep 30; echo late >&2) | { \"$0\" run --timeout 3 hello; \
                echo \"ended $?\" >&2; kill 0; }";
    let mut shell = Command::new("sh");
    user.at_home(shell.args(["-c", line, PROGRAM]));

    let output = shell.process_group(0).output().unwrap();

    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.contains("reading stdin"), "{printed}");
    assert!(printed.contains("ended 1"), "{printed}");
    assert!(!printed.contains("late"), "{printed}");
}

#[test]
fn a_shell_command_that_fails_fails_the_run() {
    let user = TestUser::new();

    for (line, code) in [
        ("!true", 0),
        ("!false", 1),
        ("!!exit 7", 1),
        ("!kill -9 $$", 1),
    ] {
        let said = user.ikigai(&["run", line]);
        assert_eq!(said.code, Some(code), "{line}: {}", said.err);
    }
}

/// Text and calls have separate lines under `2>&1`, as on build servers.
#[test]
fn words_and_calls_have_lines_of_their_own_in_one_file() {
    let user = TestUser::new();
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" run \"list the rust files\" 2>&1", PROGRAM]);

    let said = said(user.at_home(&mut shell).output().unwrap());

    let calls = said.out.lines().filter(|line| line.contains("→ glob"));
    let calls: Vec<_> = calls.collect();
    assert_eq!(calls.len(), 1, "{}", said.out);
    assert!(calls[0].starts_with("→ glob"), "{}", said.out);
}
