//! The control socket: access, many and invalid requests, and headless start and end.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::e2e::program::{Program, ask};
use crate::support::{MockAnswer, TestUser, said};

fn runtime(user: &TestUser) -> PathBuf {
    user.home().join(".local/state/ikigai/run")
}

pub(crate) fn start(user: &TestUser, arguments: &[&str]) -> Program {
    let mut command = user.command(&[&["--headless"], arguments].concat());
    command.env("LANG", "C.UTF-8");
    Program::start(command).unwrap()
}

pub(crate) fn ctl(user: &TestUser, arguments: &[&str]) -> MockAnswer {
    user.ikigai(&[&["ctl"], arguments].concat())
}

fn request(program: &Program, request: &Value) -> Value {
    program.ask(request).unwrap()
}

fn say(program: &Program, text: &str) {
    request(
        program,
        &json!({"type": "send_keys", "keys": format!("{text}\\r")}),
    );
    let idle = request(program, &json!({"type": "wait_idle", "timeout_ms": 60_000}));
    assert_eq!(idle["type"], "idle");
}

pub(crate) fn screen(program: &Program) -> String {
    let seen = request(program, &json!({"type": "read_framebuffer"}));
    let lines = seen["lines"].as_array().unwrap().iter().map(|line| {
        let spans = line["spans"].as_array().unwrap().iter();
        spans.map(|span| span["text"].as_str().unwrap()).collect()
    });
    lines.collect::<Vec<String>>().join("\n")
}

#[test]
fn a_program_without_a_terminal_is_found_asked_and_ended() {
    let user = TestUser::new();
    let none = ctl(&user, &["version"]);
    let program = start(&user, &["--size", "80x20"]);

    let version = ctl(&user, &["version"]);
    let typed = ctl(&user, &["send_keys", "what is 2 + 2\\r"]);
    let idle = ctl(&user, &["wait_idle", "60000"]);
    let text = ctl(&user, &["read_framebuffer", "--text"]);
    let events = ctl(&user, &["events"]);
    let refused = ctl(&user, &["approve"]);
    let wrong = ctl(&user, &["submit", "--agent", "stranger", "hello"]);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (directory, socket) = (mode(runtime(&user)), mode(program.socket().to_owned()));
    let log = user.ikigai(&["log", "--all", "--json"]).out;
    let ended = program.end();

    assert_eq!(none.code, Some(4), "{}", none.err);
    let version: Value = serde_json::from_str(&version.out).unwrap();
    assert_eq!(version["mode"], "headless");
    assert_eq!(typed.out, "{\"type\":\"ok\"}\n");
    assert_eq!(
        (idle.code, idle.out.as_str()),
        (Some(0), "{\"type\":\"idle\"}\n")
    );
    assert!(text.out.contains("❯ what is 2 + 2"), "{}", text.out);
    assert_eq!(text.out.lines().count(), 20);
    assert_eq!(events.out, log, "events are the rows of the log");
    assert_eq!(refused.code, Some(1));
    assert_eq!(refused.err, "error: no open question\n");
    assert_eq!(wrong.code, Some(1), "{}", wrong.out);
    assert_eq!((directory, socket), (0o700, 0o600));
    assert_eq!(ended, Ok(()));
    assert!(
        user.ikigai(&["agents"])
            .out
            .lines()
            .all(|line| !line.contains("open in"))
    );
}

#[test]
fn what_dead_programs_left_is_removed_and_several_must_be_chosen_from() {
    let user = TestUser::new();
    let directory = runtime(&user);
    fs::create_dir_all(&directory).unwrap();
    let stale = directory.join("ikigai-1.sock");
    drop(UnixListener::bind(&stale).unwrap());

    let first = start(&user, &[]);
    let was_stale = stale.exists();
    let second = start(&user, &["--new"]);
    let unclear = ctl(&user, &["version"]);
    let chosen = ctl(&user, &["--pid", &second.id().to_string(), "version"]);
    let socket = first.socket().to_string_lossy().into_owned();
    let by_path = ctl(&user, &["--socket", &socket, "version"]);

    assert!(!was_stale);
    assert_eq!(unclear.code, Some(4), "{}", unclear.out);
    assert!(unclear.err.contains("--pid"), "{}", unclear.err);
    assert!(
        chosen.out.contains(&format!("\"pid\":{}", second.id())),
        "{}",
        chosen.out
    );
    assert!(
        by_path.out.contains(&format!("\"pid\":{}", first.id())),
        "{}",
        by_path.out
    );
}

/// 1,000 concurrent requests of 8 clients, with garbage, half requests and far too long ones.
#[test]
fn many_and_wrong_requests_leave_the_program_responsive_and_the_session_intact() {
    let user = TestUser::new();
    let program = start(&user, &[]);
    say(&program, "hello");
    let before = request(&program, &json!({"type": "agents"}));
    // Half a request, which waits for its other half until the end.
    let mut half = UnixStream::connect(program.socket()).unwrap();
    half.write_all(b"{\"type\":\"read_fra").unwrap();
    let requests = [
        "{\"type\":\"read_framebuffer\"}",
        "{\"type\":\"wait_idle\",\"timeout_ms\":0}",
        "{\"type\":\"read_token_cache\"}",
        "{\"type\":\"agents\"}",
        "{\"type\":\"send_keys\",\"keys\":\"x\\\\x7f\"}",
        "{\"type\":\"version\"}",
        "garbage",
        "{\"type\":\"nothing\"}",
        "[1, 2",
        "{\"type\":\"send_keys\",\"keys\":7}",
    ];

    let answers = thread::scope(|scope| {
        let clients = (0..8).map(|client| {
            let (requests, socket) = (&requests, program.socket());
            scope.spawn(move || {
                let of = |number: usize| {
                    let line = requests[(client + number) % requests.len()];
                    (line, ask(socket, line.as_bytes()).unwrap())
                };
                (0..125).map(of).collect::<Vec<_>>()
            })
        });
        let clients: Vec<_> = clients.collect();
        for bytes in [vec![b'x'; 10_000_000], vec![0; 2_000_000], vec![0xff; 3]] {
            let answer = ask(program.socket(), &bytes).unwrap();
            assert!(answer["error"].is_string(), "{answer}");
        }
        let answers = clients
            .into_iter()
            .flat_map(|client| client.join().unwrap());
        answers.collect::<Vec<_>>()
    });
    half.write_all(b"mebuffer\"}\n").unwrap();
    let mut whole = String::new();
    half.read_to_string(&mut whole).unwrap();
    let after = request(&program, &json!({"type": "agents"}));
    say(&program, "what did I say");

    assert_eq!(answers.len(), 1000);
    for (line, answer) in answers {
        let is_wrong = answer["error"].is_string();
        let should_be =
            !line.starts_with("{\"type\"") || line.contains("nothing") || line.contains(":7");
        assert_eq!(is_wrong, should_be, "{line}: {answer}");
    }
    assert!(whole.starts_with("{\"type\":\"framebuffer\""), "{whole}");
    assert_eq!(before, after, "nothing was stored");
    assert!(
        screen(&program).contains("1. hello"),
        "{}",
        screen(&program)
    );
    assert_eq!(program.end(), Ok(()));
}

#[test]
fn events_are_followed_until_the_client_closes() {
    let user = TestUser::new();
    let program = start(&user, &[]);
    let mut follower = UnixStream::connect(program.socket()).unwrap();
    follower
        .write_all(b"{\"type\":\"events\",\"follow\":true}\n")
        .unwrap();

    say(&program, "hello");
    let mut listed = String::new();
    let mut part = [0; 4096];
    while !listed.contains("\"kind\":\"usage\"") {
        let count = follower.read(&mut part).unwrap();
        listed.push_str(std::str::from_utf8(&part[..count]).unwrap());
    }
    drop(follower);

    let log = user.ikigai(&["log", "--all", "--json"]).out;
    assert_eq!(listed, log, "each row once, in order");
    assert_eq!(program.end(), Ok(()));
}

#[test]
fn a_question_is_answered_by_a_program() {
    let user = TestUser::new();
    let program = start(&user, &[]);
    request(&program, &json!({"type": "submit", "text": "ask to push"}));
    let asks = request(
        &program,
        &json!({"type": "wait_idle", "timeout_ms": 60_000}),
    );
    let agents = request(&program, &json!({"type": "agents"}));

    let approve = json!({"type": "approve", "answer": "no", "reason": "not on a Sunday"});
    request(&program, &approve);
    let idle = request(
        &program,
        &json!({"type": "wait_idle", "timeout_ms": 60_000}),
    );

    assert_eq!(asks, json!({"type": "idle", "asks": true}));
    assert_eq!(agents["agents"][0]["questions"][0]["shown"], "git push");
    assert_eq!(idle, json!({"type": "idle"}));
    assert!(
        screen(&program).contains("not on a Sunday"),
        "{}",
        screen(&program)
    );
    let log = user.ikigai(&["log", "--json"]).out;
    assert!(log.contains("\"by\":\"socket\""), "{log}");
}

#[test]
fn a_turn_is_interrupted_by_a_program() {
    let user = TestUser::new();
    let program = start(&user, &[]);
    request(
        &program,
        &json!({"type": "submit", "text": "count slowly to 5000"}),
    );
    let busy = request(&program, &json!({"type": "wait_idle", "timeout_ms": 0}));

    request(&program, &json!({"type": "interrupt"}));
    let idle = request(
        &program,
        &json!({"type": "wait_idle", "timeout_ms": 60_000}),
    );

    assert_eq!(
        busy["type"], "timeout",
        "what was submitted before counts as work"
    );
    assert_eq!(idle["type"], "idle");
    assert!(
        screen(&program).contains("✗ interrupted"),
        "{}",
        screen(&program)
    );
}

/// A second screen watches, sends its messages to the owner, and takes the agent over.
#[test]
fn a_second_screen_hands_over_what_is_typed_and_takes_the_agent() {
    let user = TestUser::new();
    let first = start(&user, &[]);
    say(&first, "hello");
    let second = start(&user, &[]);
    request(&second, &json!({"type": "wait_idle", "timeout_ms": 60_000}));
    let looks_on = screen(&second);

    say(&second, "what did I say");
    let handed = screen(&second);
    request(&first, &json!({"type": "wait_idle", "timeout_ms": 60_000}));
    let answered = screen(&first);
    request(&second, &json!({"type": "submit", "text": "/take"}));
    let taken = screen(&second);
    say(&second, "count to 3");
    let here = screen(&second);
    request(
        &second,
        &json!({"type": "submit", "text": "count slowly to 5000"}),
    );
    shows(&first, |seen| seen.contains("[project ◐]"));
    request(&second, &json!({"type": "interrupt"}));
    shows(&first, |seen| seen.contains("[project]"));

    let holder = format!("open in another ikigai (pid {}", first.id());
    assert!(looks_on.contains(&holder), "{looks_on}");
    assert!(handed.contains(": sent there"), "{handed}");
    assert!(answered.contains("1. hello"), "{answered}");
    assert!(taken.contains("Took over from pid"), "{taken}");
    assert!(!taken.contains("open in another ikigai"), "{taken}");
    assert!(here.contains("● 1 2 3"), "{here}");
    assert!(
        screen(&first).contains("taken over by pid"),
        "{}",
        screen(&first)
    );
    let agents = user.ikigai(&["agents"]).out;
    assert!(
        agents.contains(&format!("open in pid {}", second.id())),
        "{agents}"
    );
}

/// Polls a screen until a condition holds for its text.
fn shows(program: &Program, what: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        let seen = screen(program);
        if what(&seen) {
            return seen;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "{seen}");
        thread::yield_now();
    }
}

/// A second screen shows a running answer, the state of agents, and the owner's death.
#[test]
fn a_second_screen_looks_on_live() {
    let user = TestUser::new();
    let first = start(&user, &[]);
    say(&first, "/name held");
    let second = start(&user, &[]);
    let submit = |program: &Program, text: &str| {
        request(program, &json!({"type": "submit", "text": text}));
    };

    shows(&second, |seen| seen.contains("open in another ikigai"));
    submit(&second, "/fork --name own");
    let own = shows(&second, |seen| seen.contains("[own]"));
    submit(&second, "/switch ..");
    shows(&second, |seen| seen.contains("[held]"));
    submit(&second, "/switch own");
    shows(&second, |seen| seen.contains("[own]"));
    submit(&second, "/switch held");
    submit(&first, "count slowly to 5000");
    let seen = shows(&second, |seen| seen.contains("● 1 2 3 4 5"));
    shows(&second, |seen| seen.contains("[held ◐]"));
    let holder = format!("open in another ikigai (pid {}", first.id());
    let is_there = screen(&first).contains("[held ◐]");
    first.kill();
    let left = shows(&second, |seen| !seen.contains(&holder));

    assert!(!own.contains("open in"), "a fork is its own: {own}");
    assert!(seen.contains(&holder), "{seen}");
    assert!(is_there, "what the second one looks at is its own affair");
    assert!(!left.contains('◐'), "no agent works any more: {left}");
}

/// `run` queues its message at the process that owns the agent, which answers it.
#[test]
fn run_hands_its_message_to_the_program_that_holds_the_agent() {
    let user = TestUser::new();
    let holder = start(&user, &[]);
    say(&holder, "hello");

    let handed = user.ikigai(&["run", "what did I say"]);
    let idle = request(&holder, &json!({"type": "wait_idle", "timeout_ms": 60_000}));
    let seen = screen(&holder);

    assert_eq!(handed.code, Some(4), "it has no answer: {}", handed.err);
    assert!(
        handed.err.contains("Your message was sent there"),
        "{}",
        handed.err
    );
    assert_eq!(idle["type"], "idle");
    assert!(seen.contains("1. hello"), "it is answered there: {seen}");
}

/// A background process ends once idle, and gives running agents back to the next screen.
#[test]
fn a_program_in_the_background_ends_by_itself_or_gives_its_agents_back() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    let idle = start(&user, &["--until-idle"]).wait();
    let works = start(&user, &["--until-idle", "count slowly to 40"]);

    let screen_of = start(&user, &[]);
    let background = works.wait();
    request(
        &screen_of,
        &json!({"type": "wait_idle", "timeout_ms": 60_000}),
    );
    let shown = screen(&screen_of);

    assert_eq!((idle, background), (Some(0), Some(0)));
    assert!(shown.contains("❯ count slowly to 40"), "{shown}");
    assert!(shown.contains(" 39 40"), "it goes on: {shown}");
}

/// The script of the documentation page drives a session as described.
#[test]
fn the_script_of_the_page_drives_a_session() {
    let user = TestUser::new();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/control-socket.md");
    let page = fs::read_to_string(page).unwrap();
    let script = page.split("```sh\n").nth(1).unwrap();
    let script = script.split("```").next().unwrap();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_ikigai"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap_or_default()
    );

    let mut command = std::process::Command::new("bash");
    user.at_home(command.args(["-c", script]))
        .envs([("LANG", "C.UTF-8"), ("PATH", &path)]);
    let ran = said(command.output().unwrap());

    assert_eq!(script.lines().count(), 10);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("❯ list the rust files"), "{}", ran.out);
    assert!(ran.out.contains("1. list the rust files"), "{}", ran.out);
    assert!(ran.out.contains("\"turn_count\":2"), "{}", ran.out);
}

/// Enter runs the typed text, though the completion list would spell it otherwise.
#[test]
fn a_pin_and_a_directory_are_typed_as_they_are_shown() {
    let user = TestUser::new();
    let project = user.home().join("project");
    std::fs::write(project.join("notes.md"), "Be kind.").unwrap();
    std::fs::create_dir(project.join("below")).unwrap();
    let program = start(&user, &[]);

    for (keys, shown) in [
        ("/pin notes.md\\r", "Pinned: notes.md"),
        ("/unpin notes.md\\r", "Unpinned: notes.md"),
        ("/cd below\\r", " ~/project/below · "),
    ] {
        request(&program, &json!({"type": "send_keys", "keys": keys}));
        request(
            &program,
            &json!({"type": "wait_idle", "timeout_ms": 60_000}),
        );
        let seen = screen(&program);
        assert!(seen.contains(shown), "{seen}");
    }
}

/// A runtime directory that others can write is refused: they could place a socket there.
#[test]
fn a_runtime_directory_that_others_can_write_is_refused() {
    let user = TestUser::new();
    let directory = user.home().join("open");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = user.command(arguments);
        command.env("IKIGAI_RUNTIME_DIR", &directory);
        said(command.output().unwrap())
    };

    for arguments in [&["ctl", "read_framebuffer"][..], &["--headless"]] {
        let listed = run(arguments);
        assert_eq!(listed.code, Some(1), "{arguments:?}: {}", listed.err);
        assert!(
            listed.err.contains("other users can write"),
            "{}",
            listed.err
        );
    }
    let found = run(&["doctor"]).out;
    assert!(found.contains("other users can write"), "{found}");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}
