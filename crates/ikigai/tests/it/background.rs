//! Agents that continue to work after the terminal is closed or lost.

use std::fs;

use serde_json::{Value, json};

use crate::control::{ctl, screen, start};
use crate::support::PROGRAM;
use crate::support::TestUser;

fn mode(user: &TestUser) -> Value {
    let version = ctl(user, &["version"]);
    let version: Value = serde_json::from_str(&version.out).unwrap_or_default();
    version["mode"].clone()
}

#[test]
fn agents_are_left_working_and_the_next_screen_takes_them_back() {
    let user = TestUser::new();
    let mut terminal = user.in_terminal(PROGRAM, &["count slowly to 60"], 100, 30);
    terminal.wait_for_text("1 2 3");
    let on_screen = mode(&user);

    terminal.send("\x04");
    terminal.wait_for_text(
        "1 agent working:  q pause it and quit · b quit, keep it running · Esc cancel",
    );
    terminal.send("b");
    let left = terminal.wait_end();
    let in_between = mode(&user);
    let next = start(&user, &[]);
    let idle = next.ask(&json!({"type": "wait_idle", "timeout_ms": 60_000}));
    let shown = screen(&next);

    assert_eq!(on_screen, "screen");
    assert!(left.success(), "{left}");
    assert!(
        terminal.text().contains("1 agent in the background"),
        "{}",
        terminal.text()
    );
    assert_eq!(in_between, "background");
    assert_eq!(idle.unwrap()["type"], "idle");
    assert!(shown.contains(" 59 60"), "{shown}");
    assert_eq!(
        mode(&user),
        "headless",
        "the one in the background has ended"
    );
    assert_eq!(next.end(), Ok(()));
}

#[test]
fn agents_without_the_sandbox_stay_without_it_in_the_background() {
    let user = TestUser::new();
    let mut terminal = user.in_terminal(PROGRAM, &["--no-sandbox", "count slowly to 60"], 100, 30);
    terminal.wait_for_text("1 2 3");
    terminal.send("\x04");
    terminal.wait_for_text("b quit, keep it running without sandbox");
    terminal.send("b");
    terminal.wait_end();

    ctl(&user, &["submit", "/sandbox"]);
    let where_to = mode(&user);
    ctl(&user, &["wait_idle", "60000"]);
    let log = user.ikigai(&["log"]).out;

    assert_eq!(where_to, "background");
    assert!(log.contains("Sandbox: off"), "{log}");
}

/// A screen with another setting than the background says so when it takes the agents back.
#[test]
fn a_change_of_the_sandbox_is_shown_when_agents_come_back() {
    let user = TestUser::new();
    let mut terminal =
        user.in_terminal(PROGRAM, &["--no-sandbox", "count slowly to 5000"], 100, 30);
    terminal.wait_for_text("1 2 3");
    terminal.send("\x04");
    terminal.wait_for_text("keep it running without sandbox");
    terminal.send("b");
    terminal.wait_end();
    assert_eq!(mode(&user), "background");
    let version = ctl(&user, &["version"]).out;
    assert!(version.contains("\"sandbox\":false"), "{version}");

    let mut terminal = user.in_terminal(PROGRAM, &[], 100, 30);

    terminal.wait_for_text("Commands run in the sandbox from now on");
    terminal.wait_for_text("Esc to interrupt");
    terminal.send("\x04");
    terminal.wait_for_text("b quit, keep it running · Esc cancel");
    terminal.send("q");
    terminal.wait_end();
}

#[test]
fn a_lost_terminal_leaves_agents_working_or_pauses_them() {
    let user = TestUser::new();
    let mut terminal = user.in_terminal(PROGRAM, &["count slowly to 20"], 100, 30);
    terminal.wait_for_text("1 2 3");

    terminal.hang_up();
    let lost = mode(&user);
    ctl(&user, &["wait_idle", "60000"]);
    let log = user.ikigai(&["log"]).out;

    assert_eq!(lost, "background");
    assert!(log.contains(" 19 20"), "{log}");

    let directory = user.home().join(".config/ikigai");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("config.toml"), "on_hangup = \"pause\"\n").unwrap();
    let mut terminal = user.in_terminal(PROGRAM, &["count slowly to 5000"], 100, 30);
    terminal.wait_for_text("❯ count slowly to 5000");
    terminal.hang_up();
    let agents = user.ikigai(&["agents"]).out;
    let log = user.ikigai(&["log", "--json"]).out;

    assert!(!agents.contains("open in"), "{agents}");
    let newest = log
        .lines()
        .rfind(|line| line.contains("\"kind\":\"interrupted\""));
    assert!(newest.unwrap().contains("\"cause\":\"exit\""), "{log}");
}
