//! Ways out of the sandbox: asked about, exact, and for commands of the user's choice.

use std::fs;

use ikigai_testkit::mock::{Mock, MockAnswer};
use serde_json::{Value, json};

use crate::control::start;
use crate::e2e::program::Program;
use crate::support::TestUser;

/// Command that writes the number of its system call filters to a file.
const COUNT: &str = "grep Seccomp_filters /proc/self/status > filters.txt";

/// Starts a mock model for a user.
fn mock_model(user: &TestUser) -> Mock {
    mock_model_with(user, "")
}

/// Starts a mock model for a user whose configuration has these sections too.
fn mock_model_with(user: &TestUser, sections: &str) -> Mock {
    let mock = Mock::start();
    let url = mock.url();
    let directory = user.home().join(".config/ikigai");
    fs::create_dir_all(&directory).unwrap();
    let config = format!("model = \"mock:m\"\n[providers.mock]\nbase_url = \"{url}\"\n{sections}");
    fs::write(directory.join("config.toml"), config).unwrap();
    mock
}

fn calls(arguments: &Value) -> MockAnswer {
    MockAnswer {
        calls: vec![("bash".to_owned(), arguments.to_string())],
        ..MockAnswer::default()
    }
}

fn says(text: &str) -> MockAnswer {
    MockAnswer {
        content: Some(text.to_owned()),
        ..MockAnswer::default()
    }
}

fn outside(command: &str) -> Value {
    json!({ "command": command, "unconfined": true, "reason": "the cache is elsewhere" })
}

/// Sends a message; returns the question that it ends with, if any.
fn submit(program: &Program, text: &str) -> Option<Value> {
    let submit = json!({"type": "submit", "text": text});
    program.ask(&submit).unwrap();
    let idle = json!({"type": "wait_idle", "timeout_ms": 60_000});
    let idle = program.ask(&idle).unwrap();
    let agents = program.ask(&json!({"type": "agents"})).unwrap();
    let question = agents["agents"][0]["questions"][0].clone();
    (idle["asks"] == json!(true)).then_some(question)
}

fn answer(program: &Program, question: &Value, answer: &str) {
    let answer = json!({"type": "approve", "answer": answer, "call": question["call"]});
    assert_eq!(program.ask(&answer).unwrap(), json!({"type": "ok"}));
    let idle = json!({"type": "wait_idle", "timeout_ms": 60_000});
    assert_eq!(program.ask(&idle).unwrap(), json!({"type": "idle"}));
}

/// Returns the filters that the last command counted.
fn counted(user: &TestUser) -> String {
    let file = user.home().join("project/filters.txt");
    let text = fs::read_to_string(&file).unwrap_or_default();
    let _ = fs::remove_file(file);
    text.trim().to_owned()
}

/// Returns the filters of a process without a sandbox: those of the test itself.
fn own_filters() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("Seccomp_filters"));
    line.unwrap().trim().to_owned()
}

/// Attack: leave the sandbox without approval, in any mode.
#[test]
fn a_command_leaves_the_sandbox_only_after_approval_in_any_mode() {
    let user = TestUser::new();
    let mock = mock_model(&user);
    let program = start(&user, &["--approve", "all"]);

    mock.expect([calls(&json!({ "command": COUNT })), says("inside")]);
    assert_eq!(submit(&program, "count"), None);
    assert_ne!(counted(&user), own_filters());

    mock.expect([calls(&outside(COUNT)), says("outside")]);
    let asked = submit(&program, "count outside").unwrap();
    assert_eq!(asked["tool"], "bash unconfined");
    assert_eq!(asked["shown"], COUNT);
    let preview = asked["preview"].as_str().unwrap();
    assert!(preview.contains("outside the sandbox"), "{preview}");
    assert!(preview.contains("the cache is elsewhere"), "{preview}");
    assert_eq!(counted(&user), "");
    answer(&program, &asked, "once");
    assert_eq!(counted(&user), own_filters());

    mock.expect([calls(&outside(COUNT)), says("a pity")]);
    let asked = submit(&program, "count again").unwrap();
    answer(&program, &asked, "no");
    assert_eq!(counted(&user), "");
    let last = mock.asked().pop().unwrap().body.to_string();
    assert!(last.contains("Work inside the sandbox"), "{last}");
}

/// Attack: leave the sandbox by a rule for another command.
#[test]
fn always_lets_the_same_command_out_and_no_other() {
    let user = TestUser::new();
    let mock = mock_model(&user);
    let program = start(&user, &["--approve", "edits"]);

    mock.expect([calls(&outside(COUNT)), says("one")]);
    let asked = submit(&program, "count").unwrap();
    answer(&program, &asked, "always");
    assert_eq!(counted(&user), own_filters());

    mock.expect([calls(&outside(COUNT)), says("two")]);
    assert_eq!(submit(&program, "count again"), None);
    assert_eq!(counted(&user), own_filters());

    mock.expect([calls(&outside("touch made")), says("three")]);
    let asked = submit(&program, "touch").unwrap();
    assert_eq!(asked["shown"], "touch made");
    answer(&program, &asked, "no");
    assert!(!user.home().join("project/made").exists());
}

#[test]
fn without_the_sandbox_leaving_it_is_no_question() {
    let user = TestUser::new();
    let mock = mock_model(&user);
    let program = start(&user, &["--approve", "all", "--no-sandbox"]);

    for arguments in [json!({ "command": COUNT }), outside(COUNT)] {
        mock.expect([calls(&arguments), says("done")]);
        assert_eq!(submit(&program, "count"), None);
        assert_eq!(counted(&user), own_filters());
    }
}

/// Returns true if the answers of commands hold a text.
fn has_answered(user: &TestUser, text: &str) -> bool {
    let query =
        format!("SELECT 'found' FROM messages WHERE kind = 'command' AND content LIKE '%{text}%'");
    user.ikigai(&["sql", &query]).out.contains("found")
}

/// `/sandbox` shows the line by which the last command was probably stopped.
#[test]
fn the_cause_of_a_failed_command_is_shown() {
    let user = TestUser::new();
    let mock = mock_model(&user);
    let program = start(&user, &["--approve", "all"]);
    let command = "touch /usr/ikigai-test-file; echo over; exit 1";

    mock.expect([calls(&json!({ "command": command })), says("a pity")]);
    assert_eq!(submit(&program, "touch"), None);
    assert_eq!(submit(&program, "/sandbox"), None);
    let line = "refused   probably: touch: cannot touch %/usr/ikigai-test-file%";
    assert!(has_answered(&user, line));

    // A command that succeeds afterwards was not stopped.
    mock.expect([calls(&json!({ "command": "true" })), says("good")]);
    assert_eq!(submit(&program, "again"), None);
    assert_eq!(submit(&program, "/sandbox"), None);
    program.end().unwrap();
    let count = "SELECT count(*) AS n FROM messages WHERE content LIKE '%refused   probably%'";
    let found = user.ikigai(&["sql", "--json", count]).out;
    assert!(found.contains("\"n\":1}"), "{found}");
}

/// The model and `/sandbox` learn which address and host the sandbox refused.
#[test]
fn refused_addresses_and_hosts_are_shown() {
    let user = TestUser::new();
    let listed = "[sandbox]\nnetwork = [\"example.org\"]\n";
    let mock = mock_model_with(&user, listed);
    let program = start(&user, &["--approve", "all"]);
    let command = "exec 3<>/dev/tcp/192.0.2.1/80
        exec 3<>/dev/tcp/127.0.0.1/${HTTPS_PROXY##*:}
        printf 'CONNECT evil.com:443 HTTP/1.1\\r\\n\\r\\n' >&3; head -1 <&3; exit 7";

    mock.expect([calls(&json!({ "command": command })), says("a pity")]);
    assert_eq!(submit(&program, "connect"), None);
    program.end().unwrap();
    // Memory may hold nothing of an idle agent.
    let program = start(&user, &["--approve", "all"]);
    assert_eq!(submit(&program, "/sandbox"), None);
    program.end().unwrap();

    let last = mock.asked().pop().unwrap().body.to_string();
    let refused = "the sandbox refused a connection to 192.0.2.1:80, the host evil.com:443, which";
    assert!(last.contains("HTTP/1.1 403 Forbidden"), "{last}");
    assert!(last.contains(refused), "{last}");
    assert!(
        last.contains("may reach only example.org, by HTTP"),
        "{last}"
    );
    for line in [
        "example.org through a proxy",
        "refused   connection to 192.0.2.1:80",
        "host evil.com:443: not in `[sandbox] network`",
    ] {
        assert!(has_answered(&user, line), "{line}");
    }
}
