//! The screen of the built program in a real terminal: start, end and restored state.

use std::time::Duration;

use ikigai_testkit::pty::Pty;
use ikigai_testkit::server::{Script, Server};
use rustix::process::{Signal, kill_process};

use crate::support::{PROGRAM, TestUser};

impl TestUser {
    /// Starts the screen, and waits until it can be used.
    fn screen(&self, columns: u16, rows: u16) -> Pty {
        let mut pty = self.in_terminal(PROGRAM, &[], columns, rows);
        wait_for_screen(&mut pty);
        pty
    }
}

fn wait_for_screen(pty: &mut Pty) {
    pty.wait_for("the screen", |screen| {
        screen.alternate_screen() && screen.contents().contains('❯')
    });
}

/// Returns the terminal states that the screen did not restore.
fn left_behind(pty: &Pty) -> Vec<&'static str> {
    let screen = pty.screen();
    let no_mouse = vt100::MouseProtocolMode::None;
    let table = [
        (pty.modes() != *pty.modes_at_start(), "modes"),
        (screen.alternate_screen(), "alternate screen"),
        (screen.hide_cursor(), "hidden cursor"),
        (screen.bracketed_paste(), "bracketed paste"),
        (screen.mouse_protocol_mode() != no_mouse, "mouse"),
    ];
    let left = table.into_iter().filter(|(is_left, _)| *is_left);
    left.map(|(_, what)| what).collect()
}

const NOTHING: [&str; 0] = [];

#[test]
fn every_way_out_gives_the_terminal_back() {
    let ways = [
        ("\x04", None),
        ("\x03\x03", None),
        ("count slowly to 5000\r", Some(Signal::TERM)),
        ("count slowly to 5000\r", Some(Signal::HUP)),
    ];
    for (keys, signal) in ways {
        let user = TestUser::new();
        let mut pty = user.screen(80, 24);

        pty.send(keys);
        if let Some(signal) = signal {
            // Also in the middle of an answer.
            pty.wait_for_text("4 5 6");
            pty.signal(signal);
        }
        let ended = pty.wait_end();

        let way = format!("{keys:?} {signal:?}, {ended}:\n{}", pty.text());
        assert_eq!(left_behind(&pty), NOTHING, "{way}");
        assert!(pty.text().contains("ikigai: "), "{way}");
        // Ends the background process that continues the turn.
        user.ikigai(&["ctl", "release"]);
    }
}

#[test]
fn a_closed_terminal_ends_the_screen_and_loses_nothing() {
    let user = TestUser::new();
    let mut pty = user.screen(80, 24);
    pty.send("hello\r");
    pty.wait_for_text("●");

    pty.hang_up();

    let log = user.ikigai(&["log"]);
    assert!(log.out.contains("hello"), "{}{}", log.out, log.err);
}

#[test]
fn a_shell_suspends_the_screen_and_continues_it() {
    let user = TestUser::new();
    let mut pty = user.in_terminal("sh", &["-i"], 80, 24);
    pty.wait_for_text("$");
    pty.send(format!("{PROGRAM}\r"));
    wait_for_screen(&mut pty);
    pty.send("not sent");
    pty.wait_for_text("❯ not sent");

    pty.send("\x1a");
    pty.wait_for("the shell", |screen| {
        !screen.alternate_screen() && screen.contents().contains("Stopped")
    });
    let suspended = left_behind(&pty);
    pty.send("echo =$((40 + 2))=\r");
    pty.wait_for_text("=42=");
    pty.resize(70, 20);
    pty.send("fg\r");
    pty.wait_for("the screen again", |screen| {
        screen.alternate_screen() && screen.contents().contains("❯ not sent")
    });

    assert_eq!(suspended, NOTHING);
    pty.send("!");
    pty.wait_for_text("❯ not sent!");
}

/// Editor that prints that it runs, and reads a line.
const EDITOR: &str = "#!/bin/sh\necho EDITING; read line; printf '%s' \"$line\" > \"$1\"\n";

fn with_editor(user: &TestUser) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let editor = user.home().join("editor");
    std::fs::write(&editor, EDITOR).unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&editor, executable).unwrap();
    editor.to_str().unwrap().to_owned()
}

#[test]
fn an_editor_is_stopped_and_continued_with_the_screen() {
    let user = TestUser::new();
    let editor = with_editor(&user);
    let mut pty = user.in_terminal("sh", &["-i"], 80, 24);
    pty.wait_for_text("$");
    pty.send(format!("EDITOR={editor} {PROGRAM}\r"));
    wait_for_screen(&mut pty);
    pty.send("\x07");
    pty.wait_for_text("EDITING");

    pty.send("\x1a");
    pty.wait_for_text("Stopped");
    pty.wait_for("the prompt", |screen| {
        screen.contents().trim_end().ends_with('$')
    });
    pty.send("echo =$((40 + 2))=\r");
    pty.wait_for_text("=42=");
    pty.send("fg\r");
    pty.wait_for("the job", |screen| {
        screen.contents().matches("ikigai").count() > 1
    });
    pty.send("written there\r");

    pty.wait_for("the screen", |screen| {
        screen.alternate_screen() && screen.contents().contains("❯ written there")
    });
    pty.send("!");
    pty.wait_for_text("❯ written there!");
}

#[test]
fn a_program_that_wants_the_terminal_gets_it() {
    let user = TestUser::new();
    let vi = user.home().join("vi");
    std::fs::copy(with_editor(&user), &vi).unwrap();
    let mut pty = user.screen(80, 24);

    pty.send(format!("!{} notes\r", vi.display()));
    pty.wait_for("the program", |screen| {
        !screen.alternate_screen() && screen.contents().contains("EDITING")
    });
    pty.send("from the terminal\r");
    pty.wait_for("the screen", |screen| {
        screen.alternate_screen() && screen.contents().contains("vi notes")
    });

    let notes = std::fs::read_to_string(user.home().join("project/notes"));
    assert_eq!(notes.unwrap(), "from the terminal");
}

#[test]
fn in_the_background_agents_work_and_nothing_is_written() {
    let user = TestUser::new();
    let mut pty = user.in_terminal("sh", &["-i"], 80, 24);
    pty.wait_for_text("$");
    pty.send(format!("{PROGRAM}\r"));
    wait_for_screen(&mut pty);
    pty.send("count slowly to 5000\r");
    pty.wait_for_text("4 5 6");

    kill_process(pty.foreground(), Signal::TSTP).unwrap();
    pty.wait_for_text("Stopped");
    pty.send("bg; echo =$((40 + 2))=\r");
    pty.wait_for_text("=42=");
    pty.wait_for("the prompt", |screen| {
        screen.contents().trim_end().ends_with('$')
    });
    let written = pty.listen(Duration::from_millis(500));
    pty.send("fg\r");
    pty.wait_for("a later screen", |screen| {
        screen.alternate_screen() && screen.contents().contains("13 14 15")
    });

    assert_eq!(written, 0);
    pty.send("\x1b");
    pty.wait_for_text("✗");
}

#[test]
fn an_idle_screen_writes_nothing() {
    let user = TestUser::new();
    let mut pty = user.screen(120, 40);
    pty.send("hello\r");
    pty.wait_for_text("●");
    pty.send("x");
    pty.wait_for_text("❯ x");
    // Updates after the end of a turn may still arrive.
    while pty.listen(Duration::from_millis(500)) > 0 {}

    assert_eq!(pty.listen(Duration::from_secs(3)), 0, "{}", pty.text());
}

#[test]
fn the_cursor_is_where_letters_will_appear() {
    let user = TestUser::new();
    let mut pty = user.screen(80, 24);

    pty.send("a中e\u{301}");
    pty.wait_for("the cursor behind the letters", |screen| {
        let (row, column) = screen.cursor_position();
        let before = screen.contents_between(row, 0, row, column);
        !screen.hide_cursor() && before == "❯ a中e\u{301}"
    });
}

#[test]
fn a_key_is_typed_at_the_terminal_without_being_shown() {
    let user = TestUser::new();
    let key = "sk-ant-0123456789abcdefghijkl";
    let list = r#"{"data":[{"id":"a"}]}"#;
    let server = Server::start([Script::answer(200, &[], list)]);
    let base = format!("ANTHROPIC_BASE_URL={}", server.url(""));
    let arguments = [base.as_str(), PROGRAM, "run", "/key anthropic"];

    let mut pty = user.in_terminal("env", &arguments, 80, 24);
    pty.wait_for_text("anthropic API key (hidden):");
    pty.send(format!("{key}\r"));
    pty.wait_for_text("accepts the key");
    assert!(pty.wait_end().success());
    let shown = String::from_utf8_lossy(pty.output()).into_owned();
    assert!(!shown.contains("sk-ant"), "{shown}");
    assert_eq!(left_behind(&pty), NOTHING);

    let mut pty = user.in_terminal("env", &arguments, 80, 24);
    pty.wait_for_text("anthropic API key (hidden):");
    pty.send("half\x03");
    pty.wait_for_text("no key entered");
    assert!(!pty.wait_end().success());
    assert_eq!(left_behind(&pty), NOTHING);
    let file = user.home().join(".config/ikigai/credentials");
    let kept = std::fs::read_to_string(file).unwrap();
    assert_eq!(kept, format!("anthropic = \"{key}\"\n"));
}

#[test]
fn whoever_does_not_look_is_told_by_their_own_command() {
    let user = TestUser::new();
    let pipe = user.home().join("notified");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let config = user.home().join(".config/ikigai");
    std::fs::create_dir_all(&config).unwrap();
    let line = format!("notify = \"command printf %s > {}\"\n", pipe.display());
    std::fs::write(config.join("config.toml"), line).unwrap();
    let (sender, notified) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(std::fs::read_to_string(pipe)));

    let mut pty = user.screen(80, 24);
    pty.send("\x1b[O");
    pty.send("run `touch made`\r");
    let notified = notified.recv_timeout(Duration::from_secs(30)).unwrap();

    assert_eq!(
        notified.unwrap(),
        "project needs approval: bash: touch made"
    );
    assert!(!String::from_utf8_lossy(pty.output()).contains("]9;"));
}
