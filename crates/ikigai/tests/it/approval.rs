//! The approved call runs: on a terminal, in plain mode, on the screen, over the socket.

use std::fs;

use ikigai_testkit::mock::{Mock, MockAnswer};
use ikigai_testkit::pty::Pty;
use serde_json::{Value, json};

use crate::control::{ctl, start};
use crate::e2e::program::Program;
use crate::support::{PROGRAM, TestUser};

/// Commands with control characters that disguise them on a terminal, and their escaped form.
const DISGUISED: [(&str, &str); 6] = [
    ("touch pwned #\rls -la", "touch pwned #␍ls -la"),
    (
        "touch pwned #\u{1b}[2K\u{1b}[1Gls -la",
        "touch pwned #␛[2K␛[1Gls -la",
    ),
    ("touch pwned #\u{8}\u{8}\u{8}ls", "touch pwned #␈␈␈ls"),
    (
        "touch pwned #\u{202e}sl\u{200b}",
        "touch pwned #⟨U+202E⟩sl⟨U+200B⟩",
    ),
    ("touch pwned #\u{9b}2Kls", "touch pwned #⟨U+009B⟩2Kls"),
    // Blanks that output may contain and an approved text may not.
    (
        "touch pwned #\u{a0}ls\u{2800}",
        "touch pwned #⟨U+00A0⟩ls⟨U+2800⟩",
    ),
];

fn pwned(user: &TestUser) -> bool {
    user.home().join("project/pwned").exists()
}

fn prompt(command: &str) -> String {
    format!("run `{command}`")
}

/// Returns a program's terminal output with LF line ends.
fn written(pty: &Pty) -> String {
    String::from_utf8_lossy(pty.output()).replace("\r\n", "\n")
}

fn idle(program: &Program) -> Value {
    let request = json!({"type": "wait_idle", "timeout_ms": 60_000});
    program.ask(&request).unwrap()
}

fn question(program: &Program) -> Value {
    let agents = program.ask(&json!({"type": "agents"})).unwrap();
    agents["agents"][0]["questions"][0].clone()
}

/// Starts a scripted model and makes it the newcomer's.
fn mocked(user: &TestUser) -> Mock {
    let mock = Mock::start();
    let url = mock.url();
    let directory = user.home().join(".config/ikigai");
    fs::create_dir_all(&directory).unwrap();
    let config = format!("model = \"mock:m\"\n[providers.mock]\nbase_url = \"{url}\"\n");
    fs::write(directory.join("config.toml"), config).unwrap();
    mock
}

#[test]
fn run_asks_about_the_exact_command() {
    for (command, spelled) in DISGUISED {
        let user = TestUser::new();
        let mut pty = user.in_terminal(PROGRAM, &["run", &prompt(command)], 100, 30);
        pty.wait_for_text("with a reason >");
        pty.send("n\r");
        pty.wait_end();

        let text = written(&pty);
        assert!(text.contains(&format!("\n    {spelled}\n")), "{text:?}");
        assert!(text.contains(&format!("→ bash: {spelled}")), "{text:?}");
        assert!(!text.contains(command), "{text:?}");
        assert!(!pwned(&user));
    }
}

#[test]
fn run_prints_the_whole_command() {
    let user = TestUser::new();
    let command = format!("# note\n: {}; touch pwned", "a b ".repeat(500));
    let mut pty = user.in_terminal(PROGRAM, &["run", &prompt(&command)], 100, 60);
    pty.wait_for_text("with a reason >");
    pty.send("n\r");
    pty.wait_end();

    let text = written(&pty);
    let (note, rest) = command.split_once('\n').unwrap();
    assert!(
        text.contains(&format!("\n    {note}\n    {rest}\n")),
        "{text}"
    );
}

#[test]
fn plain_mode_asks_about_the_exact_and_whole_command() {
    let user = TestUser::new();
    let command = format!("{}\u{a0}{}", DISGUISED[1].0, "x".repeat(400));
    let arguments = ["--plain", &prompt(&command)];
    let mut pty = user.in_terminal(PROGRAM, &arguments, 100, 30);
    pty.wait_for_text("answer 1 to 4: ");
    pty.send("3\r");
    pty.wait_for_text("The user said no");

    let text = written(&pty);
    let shown = format!("\n  {}⟨U+00A0⟩{}\n", DISGUISED[1].1, "x".repeat(400));
    assert!(text.contains(&shown), "{text:?}");
    assert!(!text.contains(&command), "{text:?}");
}

#[test]
fn the_screen_shows_the_end_of_a_command_before_it_takes_a_yes() {
    for (columns, rows) in [(80, 24), (40, 10)] {
        let user = TestUser::new();
        let command = format!("touch pwned #{}\n: the end", "\nls -la".repeat(60));
        let mut pty = user.in_terminal(PROGRAM, &[&prompt(&command)], columns, rows);
        pty.wait_for_text("Esc reject and stop");
        pty.send("y");
        pty.wait_for_text("PgDn");
        pty.wait_for_text("first");
        assert!(!pwned(&user));
        while !pty.text().contains(": the end") {
            let before = pty.text();
            pty.send("\x1b[6~");
            pty.wait_for("another page", |screen| {
                let text: Vec<_> = screen.rows(0, columns).collect();
                let text: Vec<_> = text.iter().map(|row| row.trim_end()).collect();
                text.join("\n").trim_end() != before.trim_end()
            });
            pty.wait_for_text("Esc reject and stop");
        }
        pty.send("y");
        pty.wait_for("its end", |_| pwned(&user));
    }
}

#[test]
fn scrollback_and_log_show_the_exact_command() {
    for (command, spelled) in DISGUISED {
        let user = TestUser::new();
        let arguments = ["run", "--approve", "all", &prompt(command)];
        user.ikigai(&arguments);
        let mut pty = user.in_terminal(PROGRAM, &[], 100, 30);
        pty.wait_for_text("→ bash:");

        let log = user.ikigai(&["log"]).out;

        assert!(pty.text().contains(spelled), "{}", pty.text());
        assert!(log.contains(&format!("→ bash: {spelled}\n")), "{log:?}");
        assert!(!log.contains(&format!("→ bash: {command}")), "{log:?}");
        let steering = ['\r', '\u{1b}', '\u{8}', '\u{202e}', '\u{200b}', '\u{9b}'];
        assert!(!log.contains(steering), "{log:?}");
    }
}

#[test]
fn an_approval_over_the_socket_names_the_exact_call() {
    let user = TestUser::new();
    let program = start(&user, &[]);
    let (command, spelled) = DISGUISED[0];
    let submit = json!({"type": "submit", "text": prompt(command)});
    program.ask(&submit).unwrap();
    assert_eq!(idle(&program), json!({"type": "idle", "asks": true}));
    let asked = question(&program);
    assert_eq!(asked["shown"], spelled);
    let call = asked["call"].as_str().unwrap().to_owned();

    for answer in ["once", "always"] {
        let without = ctl(&user, &["approve", answer]);
        let wrong = ctl(&user, &["approve", answer, "--call", "0123456789abcdef"]);

        assert_eq!((without.code, wrong.code), (Some(1), Some(1)));
        assert!(without.err.contains("--call HASH"), "{}", without.err);
        assert!(wrong.err.contains("agents"), "{}", wrong.err);
    }
    assert!(!pwned(&user));
    assert_eq!(question(&program)["call"], call);
    let right = ctl(&user, &["approve", "once", "--call", &call]);
    assert_eq!(right.code, Some(0), "{}", right.err);
    assert_eq!(idle(&program), json!({"type": "idle"}));
    assert!(pwned(&user));
}

#[test]
fn another_call_has_another_hash_and_no_needs_none() {
    let user = TestUser::new();
    let program = start(&user, &[]);
    let mut hashes = Vec::new();
    for command in ["touch a", "touch b", "touch a "] {
        let submit = json!({"type": "submit", "text": prompt(command)});
        program.ask(&submit).unwrap();
        idle(&program);
        hashes.push(question(&program)["call"].as_str().unwrap().to_owned());
        let no = json!({"type": "approve", "answer": "no"});
        assert_eq!(program.ask(&no).unwrap(), json!({"type": "ok"}));
        idle(&program);
    }

    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 3, "{hashes:?}");
}

#[test]
fn a_call_that_is_known_to_fail_is_not_asked_about() {
    let user = TestUser::new();
    let program = start(&user, &[]);
    fs::create_dir(user.home().join("project/notes.txt")).unwrap();
    let submit = json!({
        "type": "submit",
        "text": "create notes.txt with three lines, then change the second",
    });
    program.ask(&submit).unwrap();

    assert_eq!(idle(&program), json!({"type": "idle"}));
    let log = user.ikigai(&["log"]).out;
    assert!(
        log.contains("✗ file_write: `notes.txt` is a directory"),
        "{log}"
    );
}

#[test]
fn text_for_a_process_that_does_not_exist_is_not_asked_about() {
    let user = TestUser::new();
    let text = json!({"action": "send", "process": 7, "text": "exit"});
    let (_mock, program) = calling(&user, &[("process", text)]);

    assert_eq!(idle(&program), json!({"type": "idle"}));
    let log = user.ikigai(&["log"]).out;
    assert!(log.contains("✗ process: there is no such process"), "{log}");
}

/// `wait_idle` reports an open question while another call of the same response runs.
#[test]
fn wait_idle_reports_a_question_while_another_call_runs() {
    let user = TestUser::new();
    let mock = mocked(&user);
    let bash = |command: &str| ("bash".to_owned(), json!({ "command": command }).to_string());
    mock.expect([MockAnswer {
        calls: vec![bash("tail -f /dev/null"), bash("touch pwned")],
        ..MockAnswer::default()
    }]);
    let program = start(&user, &[]);
    let submit = json!({"type": "submit", "text": "watch it, then touch it"});
    program.ask(&submit).unwrap();

    let asks = idle(&program);

    assert_eq!(asks, json!({"type": "idle", "asks": true}));
    assert_eq!(question(&program)["shown"], "touch pwned");
    program.ask(&json!({"type": "interrupt"})).unwrap();
    assert_eq!(idle(&program), json!({"type": "idle"}));
    assert!(!pwned(&user));
}

/// Starts a program whose model makes these calls.
fn calling(user: &TestUser, calls: &[(&str, Value)]) -> (Mock, Program) {
    let mock = mocked(user);
    let calls = calls.iter();
    mock.expect([
        MockAnswer {
            calls: calls
                .map(|(tool, arguments)| ((*tool).to_owned(), arguments.to_string()))
                .collect(),
            ..MockAnswer::default()
        },
        MockAnswer::default(),
    ]);
    let program = start(user, &[]);
    let submit = json!({"type": "submit", "text": "change the file"});
    program.ask(&submit).unwrap();
    (mock, program)
}

fn approve(user: &TestUser, program: &Program) {
    assert_eq!(idle(program), json!({"type": "idle", "asks": true}));
    let call = question(program)["call"].as_str().unwrap().to_owned();
    let approved = ctl(user, &["approve", "once", "--call", &call]);
    assert_eq!(approved.code, Some(0), "{}", approved.err);
}

/// An approval is for the diff on the screen, not for another one.
///
/// Attack: a file that changes between the question and the approval.
#[test]
fn a_diff_that_changed_since_its_question_is_asked_about_again() {
    let user = TestUser::new();
    let file = user.home().join("project/notes.txt");
    fs::write(&file, "original\n").unwrap();
    let edit = json!({"file_path": "notes.txt", "old_string": "original", "new_string": "new"});
    let (_mock, program) = calling(&user, &[("file_edit", edit)]);
    assert_eq!(idle(&program), json!({"type": "idle", "asks": true}));
    fs::write(&file, "original, typed meanwhile\n").unwrap();

    approve(&user, &program);
    assert_eq!(idle(&program), json!({"type": "idle", "asks": true}));
    let preview = question(&program)["preview"].clone();
    let kept = fs::read_to_string(&file).unwrap();
    approve(&user, &program);
    assert_eq!(idle(&program), json!({"type": "idle"}));

    assert_eq!(kept, "original, typed meanwhile\n");
    let preview = preview.as_str().unwrap();
    assert!(preview.contains("\n+new, typed meanwhile"), "{preview}");
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written, "new, typed meanwhile\n");
}

#[test]
fn several_edits_of_one_file_are_asked_about_once_each() {
    let user = TestUser::new();
    let file = user.home().join("project/notes.txt");
    fs::write(&file, "one\ntwo\nthree\n").unwrap();
    let edit = |old: &str, new: &str| {
        let edit = json!({"file_path": "notes.txt", "old_string": old, "new_string": new});
        ("file_edit", edit)
    };
    let edits = [edit("one", "1\n1"), edit("two", "2"), edit("three", "3")];
    let (_mock, program) = calling(&user, &edits);

    for _ in &edits {
        approve(&user, &program);
    }

    assert_eq!(idle(&program), json!({"type": "idle"}));
    assert_eq!(fs::read_to_string(&file).unwrap(), "1\n1\n2\n3\n");
}
