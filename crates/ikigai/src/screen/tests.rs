use std::fs;
use std::path::Path;

use clap::Parser as _;
use ikigai_testkit::pty::{Pty, command};

use super::{ScreenOptions, show};
use crate::arguments::Arguments;
use crate::context::configuration;

/// File that makes the clock fail.
const BROKEN: &str = "clock-is-broken";

#[test]
#[ignore = "the program with a clock that may break down, which another test starts in a terminal"]
fn program() {
    let order = Arguments::parse_from(["ikigai"]).screen;
    let config = configuration().unwrap();
    let mut manner = ScreenOptions::of(&config).unwrap();
    manner.around.time_of_day = |_| {
        assert!(!Path::new(BROKEN).exists(), "the clock has broken down");
        "14:03".to_owned()
    };
    show(None, &order, &config, manner).unwrap();
    // Keeps the test harness from printing.
    std::process::exit(0);
}

fn started(home: &Path) -> Pty {
    let mut command = command(std::env::current_exe().unwrap());
    command
        .args(["--ignored", "--exact", "--nocapture"])
        .arg("screen::tests::program")
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .env("TERM", "xterm-256color");
    let mut pty = Pty::start(command, 80, 24);
    pty.wait_for("the screen", |screen| {
        screen.alternate_screen() && screen.contents().contains('❯')
    });
    pty
}

#[test]
fn a_panic_gives_the_terminal_back_says_why_and_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut pty = started(home.path());
    pty.send("count to 3\r");
    pty.wait_for_text("· 14:03");

    fs::write(home.path().join(BROKEN), "").unwrap();
    // A resize redraws everything.
    pty.resize(70, 20);
    let ended = pty.wait_end();

    assert!(!ended.success(), "{ended}");
    assert_eq!(pty.modes(), *pty.modes_at_start());
    let screen = pty.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor());
    assert!(!screen.bracketed_paste());
    let words = screen.contents();
    assert!(words.contains("error: "), "{words}");
    assert!(words.contains("the clock has broken down"), "{words}");
    fs::remove_file(home.path().join(BROKEN)).unwrap();
    let mut pty = started(home.path());
    pty.wait_for_text("❯ count to 3");
    pty.wait_for_text("● 1 2 3");
    assert!(!pty.text().contains("stopped in the middle"));
    pty.send("\x04");
    assert!(pty.wait_end().success());
}
