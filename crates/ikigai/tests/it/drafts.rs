//! Nothing typed is lost: a killed screen, and a store that is away.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ikigai_testkit::pty::Pty;
use rusqlite::Connection;
use rustix::process::Signal;

use crate::control::{ctl, start};
use crate::support::{PROGRAM, TestUser};

/// Time limit of a wait; reaching it means that the event never comes.
const PATIENCE: Duration = Duration::from_mins(1);

fn screen(user: &TestUser) -> Pty {
    let mut pty = user.in_terminal(PROGRAM, &[], 80, 24);
    pty.wait_for("the screen", |screen| {
        screen.alternate_screen() && screen.contents().contains('❯')
    });
    pty
}

/// Returns the draft files with this extension.
fn kept(user: &TestUser, ending: &str) -> Vec<PathBuf> {
    let stores = fs::read_dir(user.home().join(".local/state/ikigai/drafts"));
    let stores = stores.into_iter().flatten().flatten();
    let files = stores.flat_map(|store| fs::read_dir(store.path()).into_iter().flatten().flatten());
    let paths = files.map(|file| file.path());
    let ends = |path: &PathBuf| path.extension().is_some_and(|end| end == ending);
    paths.filter(ends).collect()
}

fn wait_until(what: &str, is_it: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_it() {
        assert!(Instant::now() < end, "{what} never comes");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the number of rows with this text.
fn messages(user: &TestUser, text: &str) -> i64 {
    let log = Connection::open(user.database()).unwrap();
    let count = "SELECT count(*) FROM messages WHERE content = ?1 OR content LIKE '%</environment>' || char(10) || char(10) || ?1";
    log.query_row(count, [text], |row| row.get(0)).unwrap()
}

#[test]
fn a_draft_survives_a_killed_screen() {
    let user = TestUser::with_file();
    let mut pty = screen(&user);
    pty.send("half a sen");
    wait_until("the draft", || !kept(&user, "draft").is_empty());
    pty.signal(Signal::KILL);
    pty.wait_end();

    let mut pty = screen(&user);
    pty.wait_for_text("❯ half a sen");
    pty.send("tence\r");
    pty.wait_for_text("●");

    wait_until("the end of the draft", || kept(&user, "draft").is_empty());
    assert_eq!(messages(&user, "half a sentence"), 1);
}

#[test]
fn a_message_sent_while_the_store_is_away_is_stored_once_after_a_kill() {
    let user = TestUser::with_file();
    let mut pty = screen(&user);
    pty.send("first\r");
    pty.wait_for_text("●");
    pty.wait_for("the end of the turn", |screen| {
        !screen.contents().contains('◐')
    });
    let lock = Connection::open(user.database()).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();

    pty.send("hello out there\r");
    wait_until("the pending file", || !kept(&user, "pending").is_empty());
    pty.wait_for_text("pending: store is away");
    let shown = pty.text();
    pty.signal(Signal::KILL);
    pty.wait_end();
    lock.execute_batch("ROLLBACK").unwrap();
    let mut pty = screen(&user);
    pty.wait_for_text("hello out there");
    wait_until("the end of it", || kept(&user, "pending").is_empty());
    pty.send("\x04");
    pty.wait_end();

    assert!(shown.contains("hello out there"), "{shown}");
    assert_eq!(messages(&user, "hello out there"), 1);
}

#[test]
fn a_command_of_a_dead_screen_is_shown_by_plain_mode_and_kept_for_the_next_screen() {
    let user = TestUser::with_file();
    let mut pty = screen(&user);
    pty.send("first\r");
    pty.wait_for_text("●");
    pty.wait_for("the end of the turn", |screen| {
        !screen.contents().contains('◐')
    });
    let lock = Connection::open(user.database()).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    pty.send("/mark here\r");
    wait_until("the pending file", || !kept(&user, "pending").is_empty());
    pty.signal(Signal::KILL);
    pty.wait_end();
    lock.execute_batch("ROLLBACK").unwrap();

    let mut plain = user.in_terminal(PROGRAM, &["--plain"], 100, 30);
    plain.wait_for_text("not run, from the last run: /mark here (type it again to run it)");
    plain.send("\x04");
    plain.wait_end();
    let mut pty = screen(&user);

    pty.wait_for_text("❯ /mark here");
    assert!(kept(&user, "pending").is_empty());
}

#[test]
fn a_submission_over_the_socket_is_ok_if_stored_and_else_pending_and_stored_once() {
    let user = TestUser::with_file();
    let program = start(&user, &[]);

    let first = ctl(&user, &["submit", "first"]);
    let is_stored = messages(&user, "first");
    ctl(&user, &["wait_idle", "60000"]);
    let lock = Connection::open(user.database()).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let away = ctl(&user, &["submit", "hello out there"]);
    let is_stored_while_away = messages(&user, "hello out there");
    lock.execute_batch("ROLLBACK").unwrap();
    wait_until("the row", || messages(&user, "hello out there") > 0);
    wait_until("the end of it", || kept(&user, "pending").is_empty());
    ctl(&user, &["wait_idle", "60000"]);
    let last = ctl(&user, &["submit", "last"]);
    program.end().unwrap();

    assert_eq!((first.out.as_str(), is_stored), ("{\"type\":\"ok\"}\n", 1));
    assert!(away.out.contains("\"type\":\"pending\""), "{away:?}");
    assert_eq!(is_stored_while_away, 0);
    assert_eq!(messages(&user, "hello out there"), 1);
    assert_eq!(last.out, "{\"type\":\"ok\"}\n");
}

#[test]
fn a_submission_over_the_socket_is_pending_while_the_store_is_removed() {
    let user = TestUser::with_file();
    let program = start(&user, &[]);
    ctl(&user, &["submit", "first"]);
    ctl(&user, &["wait_idle", "60000"]);
    let directory = user.database().parent().unwrap().to_owned();
    let elsewhere = directory.with_extension("moved");
    fs::rename(&directory, &elsewhere).unwrap();

    let away = ctl(&user, &["submit", "hello out there"]);
    fs::rename(&elsewhere, &directory).unwrap();
    wait_until("the row", || messages(&user, "hello out there") > 0);
    program.end().unwrap();

    assert!(away.out.contains("\"type\":\"pending\""), "{away:?}");
    assert!(away.out.contains("store is away"), "{away:?}");
    assert_eq!(messages(&user, "hello out there"), 1);
}
