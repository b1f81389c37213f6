//! The diagnostics log: written only on request, and without keys.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use ikigai_testkit::server::{Script, Server};

use crate::support::{TestUser, said};

const KEY: &str = "sk-this-is-a-secret";
const OTHER_KEY: &str = "sk-of-another-provider";
const FILE_KEY: &str = "sk-kept-in-the-file";
const PASSWORD: &str = "hunter22hunter";

fn log_of(user: &TestUser) -> PathBuf {
    user.home().join(".local/state/ikigai/log")
}

/// Starts a server that answers three attempts.
///
/// One is cut off with the key in two pieces, one fails and quotes the key, one is complete.
fn server() -> Server {
    let quote = format!("{{\"error\":{{\"message\":\"wrong key {KEY}\"}}}}");
    let chunk = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let cookie = [
        ("content-type", "text/event-stream"),
        ("set-cookie", "session=a-cookie-of-theirs"),
        ("x-request-id", "number-42"),
    ];
    let (head, tail) = KEY.split_at(7);
    Server::start([
        Script::stream().send(format!("data: {head}")).send(tail),
        Script::answer(503, &[("retry-after-ms", "1")], &quote),
        Script::new()
            .head(200, &cookie)
            .send(chunk("a whole answer"))
            .send(end)
            .send("data: [DONE]\n\n"),
    ])
}

/// Runs one turn with these variables; returns the diagnostics log.
fn log_with(variables: &[(&str, &str)]) -> Option<String> {
    let server = server();
    let user = TestUser::new();
    let directory = user.home().join(".config/ikigai");
    fs::create_dir_all(&directory).unwrap();
    let base = format!("http://margaret:{PASSWORD}@{}", server.address());
    // Only the exchange itself knows this key.
    let command = format!("key_command = \"echo {KEY}\"");
    let config = format!(
        "[providers.mine]\nbase_url = \"{base}\"\n{command}\n\
         [models.\"mine:small\"]\ncontext_window = 128000\n"
    );
    fs::write(directory.join("config.toml"), config).unwrap();
    let credentials = directory.join("credentials");
    fs::write(&credentials, format!("openai = \"{FILE_KEY}\"\n")).unwrap();
    fs::set_permissions(&credentials, fs::Permissions::from_mode(0o600)).unwrap();
    let prompt = format!("my words, {OTHER_KEY}, {FILE_KEY} and {KEY}");
    let mut command = user.command(&["run", &prompt, "--model", "mine:small"]);
    command
        .env("ANTHROPIC_API_KEY", OTHER_KEY)
        .envs(variables.iter().copied());

    let said = said(command.output().unwrap());

    assert_eq!(
        (said.code, said.out.as_str()),
        (Some(0), "a whole answer\n")
    );
    assert_eq!(server.received().len(), 3);
    let log = log_of(&user);
    if !log.exists() {
        return None;
    }
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode(log.parent().unwrap()), mode(&log)], [0o700, 0o600]);
    Some(fs::read_to_string(log).unwrap())
}

#[test]
fn nothing_is_written_without_a_variable() {
    for variables in [
        &[][..],
        &[("RUST_LOG", "off")],
        &[("RUST_LOG", "hyper=trace")],
        &[("IKIGAI_LOG_BODIES", "0")],
    ] {
        assert_eq!(log_with(variables), None, "{variables:?}");
    }
}

#[test]
fn the_log_has_actions_and_no_conversation() {
    let log = log_with(&[("RUST_LOG", "trace")]).unwrap();

    let told = [
        "started",
        "sending a request",
        "status=503",
        "kind=CutOff",
        "attempt=3",
        "number=number-42",
        "the answer is whole",
    ];
    for words in told {
        assert!(log.contains(words), "{words}: {log}");
    }
    let hidden = ["my words", "a whole answer", "wrong key", KEY, PASSWORD];
    for words in hidden {
        assert!(!log.contains(words), "{words}: {log}");
    }
    let levels = ["INFO", "DEBUG", "WARN"];
    let is_line = |line: &str| levels.contains(&line.split(' ').nth(2).unwrap_or_default());
    assert!(log.lines().all(is_line), "one event, one line: {log}");
}

#[test]
fn bodies_and_headers_are_there_when_asked_for_and_keys_are_not() {
    let log = log_with(&[("IKIGAI_LOG_BODIES", "1")]).unwrap();

    let told = [
        "my words, [secret], [secret] and [secret]",
        "\"model\":\"small\"",
        "authorization: [secret]",
        "content-type: application/json",
        "wrong key [secret]",
        "data: [secret]",
        "set-cookie: [secret]",
        "a whole answer",
        "/v1/chat/completions",
    ];
    for words in told {
        assert!(log.contains(words), "{words}: {log}");
    }
    let secrets = [KEY, OTHER_KEY, FILE_KEY, PASSWORD, "a-cookie-of-theirs"];
    for secret in secrets {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

/// An unwritable diagnostics log gives a warning and does not stop a turn.
#[test]
fn a_log_that_cannot_be_written_is_told_and_nothing_else() {
    let user = TestUser::new();
    fs::create_dir_all(log_of(&user)).unwrap();
    let mut command = user.command(&["run", "hello"]);

    let said = said(command.env("RUST_LOG", "info").output().unwrap());

    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.err.contains("cannot write the diagnostics log"),
        "{}",
        said.err
    );
}
