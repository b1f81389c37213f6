//! Background processes of the built program: quits, crashes, and none left behind.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use ikigai_testkit::mock::{Mock, MockAnswer};
use ikigai_testkit::{Dice, tell};
use serde_json::{Value, json};

use crate::control::start;
use crate::e2e::program::Program;
use crate::support::{PROGRAM, TestUser};

/// Longest wait for something that a process does.
const PATIENCE: Duration = Duration::from_mins(1);

/// Server that listens on the port in its argument, and prints each connection.
const SERVER: &str = "import socket, sys\n\
    server = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n\
    print('listening', flush=True)\n\
    while True:\n\
    \x20   server.accept()[0].close()\n\
    \x20   print('connected', flush=True)\n";

fn mock_model(user: &TestUser) -> Mock {
    let mock = Mock::start();
    configure(user, &mock);
    mock
}

fn configure(user: &TestUser, mock: &Mock) {
    let directory = user.home().join(".config/ikigai");
    fs::create_dir_all(&directory).unwrap();
    let url = mock.url();
    let config = format!("model = \"mock:m\"\n[providers.mock]\nbase_url = \"{url}\"\n");
    fs::write(directory.join("config.toml"), config).unwrap();
}

fn calls(tool: &str, arguments: &Value) -> MockAnswer {
    MockAnswer {
        calls: vec![(tool.to_owned(), arguments.to_string())],
        ..MockAnswer::default()
    }
}

fn says(text: &str) -> MockAnswer {
    MockAnswer {
        content: Some(text.to_owned()),
        ..MockAnswer::default()
    }
}

fn background(command: &str) -> MockAnswer {
    calls("bash", &json!({"command": command, "background": true}))
}

fn submit(program: &Program, text: &str) {
    let submit = json!({"type": "submit", "text": text});
    program.ask(&submit).unwrap();
    let idle = json!({"type": "wait_idle", "timeout_ms": 60_000});
    assert_eq!(program.ask(&idle).unwrap()["type"], "idle");
}

/// Returns the last result that the model was given.
fn last_result(mock: &Mock) -> String {
    let body = mock.asked().pop().unwrap().body;
    let messages = body["messages"].as_array().unwrap().clone();
    let results = messages
        .into_iter()
        .rfind(|message| message["role"] == "tool");
    results.unwrap()["content"].as_str().unwrap().to_owned()
}

/// Returns the processes of this machine whose environment has this entry.
fn with_mark(mark: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let marked = entries.filter(|entry| {
        fs::read(entry.path().join("environ")).is_ok_and(|all| {
            all.split(|byte| *byte == 0)
                .any(|one| one == mark.as_bytes())
        })
    });
    let names = marked.map(|entry| entry.file_name().into_string().unwrap());
    names.collect()
}

fn wait_until(is_reached: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_reached() {
        assert!(begun.elapsed() < PATIENCE, "it is not reached");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the ids of the runs of recorded processes that have not ended.
fn open_jobs(user: &TestUser) -> Vec<String> {
    let sql = match user.server() {
        Some(_) => "SELECT encode(uuid, 'hex') AS id FROM ikigai.jobs WHERE ended IS NULL",
        None => "SELECT lower(hex(uuid)) AS id FROM jobs WHERE ended IS NULL",
    };
    let said = user.ikigai(&["sql", "--json", sql]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines = said.out.lines();
    let rows = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

fn is_long() -> bool {
    std::env::var_os("IKIGAI_TEST_LONG").is_some_and(|value| value == "1")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// `kill -9` while a server runs in the background: it is listed, read and stopped afterwards, and
/// its port is free.
#[test]
fn a_server_outlives_a_kill_and_is_stopped() {
    let user = TestUser::new();
    let mock = mock_model(&user);
    let port = free_port();
    fs::write(user.home().join("project/server.py"), SERVER).unwrap();
    let program = start(&user, &["--approve", "all"]);
    mock.expect([background(&format!("python3 server.py {port}")), says("up")]);
    submit(&program, "start the server");
    assert!(last_result(&mock).contains("process 1 runs in the background"));
    let jobs = open_jobs(&user);
    assert_eq!(jobs.len(), 1);
    wait_until(|| TcpListener::bind(("127.0.0.1", port)).is_err());
    let connect = format!(
        "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port})); print('reached')\""
    );
    mock.expect([calls("bash", &json!({"command": connect})), says("fine")]);
    submit(&program, "test it");
    assert!(
        last_result(&mock).starts_with("reached\n"),
        "{}",
        last_result(&mock)
    );

    program.kill();
    assert!(
        TcpListener::bind(("127.0.0.1", port)).is_err(),
        "it still listens"
    );
    let program = start(&user, &["--approve", "all"]);
    submit(&program, "/ps");
    let listed = user.ikigai(&["log"]).out;
    assert!(listed.contains("python3 server.py"), "{listed}");
    mock.expect([calls("process", &json!({"action": "list"})), says("I see")]);
    submit(&program, "list");
    let list = last_result(&mock);
    assert!(list.starts_with("1  running  python3 server.py"), "{list}");
    mock.expect([
        calls("process", &json!({"action": "read", "process": 1})),
        says("I read"),
    ]);
    submit(&program, "read it");
    let read = last_result(&mock);
    assert!(read.starts_with("connected\n"), "{read}");
    assert!(read.contains("process 1: running"), "{read}");
    mock.expect([
        calls("process", &json!({"action": "stop", "process": 1})),
        says("gone"),
    ]);
    submit(&program, "stop it");

    assert!(
        last_result(&mock).contains("process 1: stopped"),
        "{}",
        last_result(&mock)
    );
    TcpListener::bind(("127.0.0.1", port)).unwrap();
    assert_eq!(open_jobs(&user), Vec::<String>::new());
    assert_eq!(
        with_mark(&format!("IKIGAI_RUN={}", jobs[0])),
        Vec::<String>::new()
    );
    program.end().unwrap();
}

/// The directory for temporary files that a killed program left is removed at the next start.
/// A background process of the agent opens no port to programs of the user, whatever it listens on.
#[test]
fn a_process_on_the_port_of_another_program_does_not_lead_to_it() {
    let user = TestUser::new();
    let mock = mock_model(&user);
    let foreign = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = foreign.local_addr().unwrap().port();
    let listen = format!(
        "import socket, time; s = socket.socket(); s.bind((\"127.0.0.2\", {port})); s.listen(); \
         print(\"up\", flush=True); time.sleep(600)"
    );
    let connect = |address: &str| {
        let script =
            format!("import socket; print(socket.socket().connect_ex((\"{address}\", {port})))");
        calls(
            "bash",
            &json!({"command": format!("python3 -c '{script}'")}),
        )
    };
    let program = start(&user, &["--approve", "all"]);
    let says_done = || says("done");
    mock.expect([background(&format!("python3 -c '{listen}'")), says_done()]);
    submit(&program, "listen");
    wait_until(|| TcpListener::bind(("127.0.0.2", port)).is_err());

    mock.expect([connect("127.0.0.2"), says_done()]);
    submit(&program, "connect to it");
    let own = last_result(&mock);
    mock.expect([connect("127.0.0.1"), says_done()]);
    submit(&program, "connect to the other");
    let other = last_result(&mock);
    stop_all(&user, &program);
    program.end().unwrap();

    assert!(own.starts_with("0\n"), "{own}");
    assert!(other.starts_with("13\n"), "{other}");
}

#[test]
fn a_killed_program_leaves_no_temporary_directory_for_long() {
    let user = TestUser::new();
    let mock = mock_model(&user);
    let program = start(&user, &["--approve", "all"]);
    let command = json!({"command": "touch \"$TMPDIR/file\"; echo \"$TMPDIR\""});
    mock.expect([calls("bash", &command), says("done")]);
    submit(&program, "make a file");
    let result = last_result(&mock);
    let directory = Path::new(result.lines().next().unwrap());
    assert!(directory.join("file").exists(), "{result}");

    program.kill();
    assert!(directory.join("file").exists());
    let program = start(&user, &[]);
    wait_until(|| !directory.exists());
    program.end().unwrap();
}

/// `run` ends its processes, except with `--keep`.
#[test]
fn run_ends_its_processes_unless_it_keeps_them() {
    let user = TestUser::new();
    let mock = mock_model(&user);
    mock.expect([background("sleep 1000"), says("started")]);
    let said = user.ikigai(&["run", "--approve", "all", "start it"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.err.contains("Background processes were stopped"),
        "{}",
        said.err
    );
    assert_eq!(open_jobs(&user), Vec::<String>::new());

    mock.expect([background("sleep 1000"), says("started")]);
    let said = user.ikigai(&["run", "--keep", "--approve", "all", "start it"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let jobs = open_jobs(&user);
    assert_eq!(jobs.len(), 1);
    let mark = format!("IKIGAI_RUN={}", jobs[0]);
    assert!(!with_mark(&mark).is_empty());

    // A later run ends only its own.
    mock.expect([background("sleep 1000"), says("started")]);
    let said = user.ikigai(&["run", "--approve", "all", "start another"]);
    assert!(said.err.contains("were stopped"), "{}", said.err);
    assert_eq!(open_jobs(&user), jobs);
    let said = user.ikigai(&["run", "/ps"]);
    assert!(said.out.contains("sleep 1000"), "{}", said.out);
    assert!(!with_mark(&mark).is_empty());

    let said = user.ikigai(&["run", "/ps stop 2"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("Process 2: stopped"), "{}", said.out);
    assert_eq!(with_mark(&mark), Vec::<String>::new());
}

/// Quitting asks whether processes are stopped; the next start knows how they ended.
#[test]
fn quitting_asks_before_it_stops_processes() {
    let user = TestUser::new();
    let mock = mock_model(&user);
    mock.expect([background("sleep 1000"), says("it has started")]);
    let arguments = ["--approve", "all", "start it"];
    let mut terminal = user.in_terminal(PROGRAM, &arguments, 100, 30);
    terminal.wait_for_text("it has started");
    let jobs = open_jobs(&user);
    assert_eq!(jobs.len(), 1);
    let mark = format!("IKIGAI_RUN={}", jobs[0]);

    terminal.send("\x04");
    terminal.wait_for_text(
        "1 background process running:  q stop it and quit · b quit, keep it running · Esc cancel",
    );
    assert!(!with_mark(&mark).is_empty());
    terminal.send("q");

    assert!(terminal.wait_end().success());
    assert_eq!(with_mark(&mark), Vec::<String>::new());
    let next = start(&user, &[]);
    wait_until(|| open_jobs(&user).is_empty());
    let log = user.ikigai(&["log"]).out;
    assert!(log.contains("process 1 was stopped: sleep 1000"), "{log}");
    next.end().unwrap();
}

/// Killing the owner ends its processes.
#[test]
fn a_killed_agent_takes_its_processes_along() {
    let user = TestUser::new();
    let mock = mock_model(&user);
    let program = start(&user, &["--approve", "all"]);
    submit(&program, "/approve all");
    submit(&program, "/fork --fresh --name child");
    mock.expect([background("sleep 1000"), says("started")]);
    let to_child = json!({"type": "submit", "text": "start it", "agent": "child"});
    program.ask(&to_child).unwrap();
    let idle = json!({"type": "wait_idle", "timeout_ms": 60_000, "agent": "child"});
    assert_eq!(program.ask(&idle).unwrap()["type"], "idle");
    let jobs = open_jobs(&user);
    assert_eq!(jobs.len(), 1);
    let mark = format!("IKIGAI_RUN={}", jobs[0]);

    submit(&program, "/kill child");

    wait_until(|| with_mark(&mark).is_empty());
    wait_until(|| open_jobs(&user).is_empty());
    program.end().unwrap();
}

/// Random kills: no process is orphaned, and none is started twice, also not around the moment at
/// which a command goes on in the background.
#[test]
fn random_kills_leave_no_orphan_and_start_nothing_twice() {
    let mut dice = Dice::roll();
    let user = TestUser::new();
    let mock = Mock::play(|request| match to_start(&request.body) {
        Some(number) => {
            let command = format!("echo {number} >> started; sleep 1000");
            match number.parse::<u64>().unwrap() % 2 {
                0 => background(&command),
                // It goes on in the background after a second.
                _ => calls("bash", &json!({"command": command, "timeout": 1})),
            }
        }
        None => says("well"),
    });
    configure(&user, &mock);
    let project = user.home().join("project");
    let kills = if is_long() { 200 } else { 20 };
    let mut adopted = 0;
    for number in 0..kills {
        let program = start(&user, &["--approve", "all"]);
        let submit = json!({"type": "submit", "text": format!("start {number}")});
        program.ask(&submit).unwrap();
        std::thread::sleep(Duration::from_millis(dice.below(1200 + number % 2 * 800)));
        program.kill();
        // Sometimes the program that adopts them is killed too.
        if dice.below(2) == 0 {
            let program = start(&user, &["--approve", "all"]);
            std::thread::sleep(Duration::from_millis(dice.below(300)));
            program.kill();
        }

        let program = start(&user, &["--approve", "all"]);
        let idle = json!({"type": "wait_idle", "timeout_ms": 60_000});
        program.ask(&idle).unwrap();
        let mut once = started(&project);
        once.sort_by_key(|number| number.parse::<u64>().unwrap());
        once.dedup();
        assert_eq!(started(&project), once, "none is started twice");
        // A shell that the keeper has just started does not sleep yet.
        wait_until(|| sleeping_in(&project) == open_jobs(&user).len());
        adopted += open_jobs(&user).len();
        for job in &open_jobs(&user) {
            let mark = format!("IKIGAI_RUN={job}");
            assert!(!with_mark(&mark).is_empty(), "{number}: {job} is dead");
        }
        stop_all(&user, &program);
        wait_until(|| sleeping_in(&project) == 0);
        program.kill();
    }
    let begun = started(&project).len();
    tell(&format!(
        "{kills} kills: {begun} commands started, each once; {adopted} adopted and stopped, the others \
         ended; none left"
    ));
}

/// Returns the number in the user's message `start N`, if it has no answer yet.
fn to_start(body: &Value) -> Option<String> {
    let last = body["messages"].as_array()?.last()?;
    let text = last["content"]
        .as_str()
        .filter(|_| last["role"] == "user")?;
    let (_, number) = text.rsplit_once("start ")?;
    (!number.contains(|c: char| !c.is_ascii_digit())).then(|| number.to_owned())
}

/// Stops all running processes by `/ps`.
fn stop_all(user: &TestUser, program: &Program) {
    let sql = match user.server() {
        Some(_) => "SELECT number FROM ikigai.jobs WHERE ended IS NULL",
        None => "SELECT number FROM jobs WHERE ended IS NULL",
    };
    let said = user.ikigai(&["sql", "--json", sql]);
    for line in said.out.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let line = format!("/ps stop {}", row["number"]);
        let submit = json!({"type": "submit", "text": line});
        program.ask(&submit).unwrap();
        let idle = json!({"type": "wait_idle", "timeout_ms": 60_000});
        program.ask(&idle).unwrap();
    }
}

fn started(project: &Path) -> Vec<String> {
    let text = fs::read_to_string(project.join("started")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Returns the number of processes that work in a directory and belong to no program.
fn sleeping_in(directory: &Path) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let here = entries.filter(|entry| {
        let cwd = fs::read_link(entry.path().join("cwd"));
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        cwd.is_ok_and(|cwd| cwd == directory) && command.starts_with(b"sleep\0")
    });
    here.count()
}
