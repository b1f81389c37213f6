//! Real requests to a local server, and provider settings.

use std::fs;
use std::path::Path;

use ikigai_testkit::server::{Script, Server};

use crate::support::{MockAnswer, TestUser};

const KEY: &str = "sk-this-is-a-secret";

fn chunk(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

fn whole(text: &str) -> Script {
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    Script::stream()
        .send(chunk(text))
        .send(end)
        .send("data: [DONE]\n\n")
}

fn configure(user: &TestUser, text: &str) {
    let directory = user.home().join(".config/ikigai");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("config.toml"), text).unwrap();
}

/// Returns the configuration of a provider with a key and a model with a known window.
fn mine(base: &str) -> String {
    format!(
        "[providers.mine]\nbase_url = \"{base}\"\nkey_env = \"MINE_KEY\"\n\
         [models.\"mine:small\"]\ncontext_window = 128000\n"
    )
}

fn run(user: &TestUser, prompt: &str) -> MockAnswer {
    let mut command = user.command(&["run", prompt, "--model", "mine:small"]);
    crate::support::said(command.env("MINE_KEY", KEY).output().unwrap())
}

fn files_under(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_under(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_configured_server_answers_through_every_fault_and_no_key_is_left_anywhere() {
    let echo = format!("{{\"error\":{{\"message\":\"wrong key {KEY}\"}}}}");
    let server = Server::start([
        Script::answer(503, &[("retry-after-ms", "1")], &echo),
        Script::stream().send(chunk("half an ")),
        whole("half an answer and the rest"),
        Script::answer(401, &[("content-type", "application/json")], &echo),
    ]);
    let user = TestUser::new();
    let base = server.url("");
    configure(&user, &mine(&base));

    let answered = run(&user, "hello");
    let refused = run(&user, "again");

    assert_eq!(answered.code, Some(0), "{}", answered.err);
    assert_eq!(
        answered.out, "half an answer and the rest\n",
        "nothing is shown twice"
    );
    assert!(answered.err.contains("attempt 2 of 6"), "{}", answered.err);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    let received = server.received();
    assert_eq!(received.len(), 4);
    let bearer = format!("Bearer {KEY}");
    assert!(
        received
            .iter()
            .all(|request| request.header("authorization") == Some(&bearer))
    );
    for said in [&answered.out, &answered.err, &refused.out, &refused.err] {
        assert!(!said.contains(KEY), "{said}");
    }
    for file in files_under(user.home()) {
        let bytes = fs::read(&file).unwrap();
        let found = bytes
            .windows(KEY.len())
            .any(|window| window == KEY.as_bytes());
        assert!(!found, "{}", file.display());
    }
}

#[test]
fn mistakes_in_the_configuration_name_their_place() {
    let user = TestUser::new();
    let cases = [
        ("modell = \"demo\"\n", "unknown field `modell`"),
        ("model = 3\n", "line 1"),
        ("[providers.mine]\nbase = \"x\"\n", "line 2"),
        ("[providers.mine]\n\nidle = 0\n", "line 3"),
        ("[providers.mine]\nconnect = 3601\n", "1 to 3600 seconds"),
        ("[providers.mine]\nfirst_byte = 0.5\n", "line 2"),
        ("[providers.mine]\nalternating_roles = 1\n", "line 2"),
        ("[providers.mine]\nca_file = \"mine.pem\"\n", "line 2"),
        ("\nca_file = \"mine.pem\"\n", "expected an absolute path"),
        (
            "[models.\"something\"]\nmax_output = 3\n",
            "PROVIDER:something",
        ),
    ];

    for (text, words) in cases {
        configure(&user, text);
        let said = user.ikigai(&["run", "hello"]);
        assert_eq!(said.code, Some(1), "{text}");
        assert!(said.err.contains(words), "{text}: {}", said.err);
    }
}

#[test]
fn a_project_may_choose_the_model_but_not_where_keys_go() {
    let user = TestUser::new();
    let project = user.home().join("project/.ikigai");
    fs::create_dir_all(&project).unwrap();
    let file = project.join("config.toml");

    fs::write(
        &file,
        "[providers.openai]\nbase_url = \"http://127.0.0.1:9\"\n",
    )
    .unwrap();
    let widened = user.ikigai(&["run", "hello"]);
    fs::write(&file, "ca_file = \"/theirs.pem\"\n").unwrap();
    let trusting = user.ikigai(&["run", "hello"]);
    fs::write(&file, "model = \"demo\"\n").unwrap();
    let chosen = user.ikigai(&["run", "hello"]);

    assert_eq!(widened.code, Some(1));
    assert!(
        widened
            .err
            .contains("line 2: a project cannot set `providers.openai.base_url`"),
        "{}",
        widened.err
    );
    assert_eq!(trusting.code, Some(1));
    assert!(trusting.err.contains("`ca_file`"), "{}", trusting.err);
    assert_eq!(chosen.code, Some(0), "{}", chosen.err);
}

#[test]
fn models_are_listed_with_the_keys_that_are_present() {
    let user = TestUser::new();

    let without = user.ikigai(&["models", "claude"]);
    let mut command = user.command(&["models", "--json", "claude"]);
    let with = crate::support::said(command.env("ANTHROPIC_API_KEY", KEY).output().unwrap());
    let wrong = user.ikigai(&["run", "hello", "--model", "claude-opus-55"]);

    assert!(
        without.out.lines().all(|line| line.starts_with(' ')),
        "{}",
        without.out
    );
    assert!(without.out.contains("anthropic:claude-opus-5-5"));
    assert!(
        with.out.lines().all(|line| line.contains("\"key\":true")),
        "{}",
        with.out
    );
    assert!(wrong.err.contains("did you mean"), "{}", wrong.err);
}

#[test]
fn a_configuration_that_is_no_file_is_refused_at_once() {
    let user = TestUser::new();
    let project = user.home().join("project/.ikigai");
    fs::create_dir_all(&project).unwrap();

    for device in ["/dev/zero", "/dev/stdin", "/"] {
        std::os::unix::fs::symlink(device, project.join("config.toml")).unwrap();
        let said = user.ikigai(&["agents"]);
        assert_eq!(said.code, Some(1), "{device}: {}", said.err);
        assert!(said.err.contains("config.toml"), "{device}: {}", said.err);
        fs::remove_file(project.join("config.toml")).unwrap();
    }
}

#[test]
fn what_would_be_sent_can_be_looked_at_without_a_key() {
    let server = Server::start([whole("hello")]);
    let user = TestUser::new();
    let base = server.url("");
    configure(&user, &mine(&base));
    run(&user, "a question");
    configure(&user, "");

    let request = user.ikigai(&["log", "--request"]);

    assert_eq!(request.code, Some(0), "{}", request.err);
    assert!(request.out.contains("a question"), "{}", request.out);
}

/// A past request is printed in its provider's dialect, byte for byte as it was sent.
#[test]
fn a_past_request_is_printed_as_it_was_sent() {
    let server = Server::start([whole("one"), whole("two")]);
    let user = TestUser::new();
    let base = server.url("");
    configure(&user, &mine(&base));
    run(&user, "a question");
    run(&user, "another");
    let rows = user.ikigai(&["log", "--json"]).out;
    let questions = rows.lines().filter_map(|line| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        (row["kind"] == "user").then(|| format!("#{}", row["seq"]))
    });

    for (received, at) in server.received().iter().zip(questions) {
        let order = ["log", "--request", "--dialect", "own", "--at", &at];
        let printed = user.ikigai(&order);
        let printed: serde_json::Value = serde_json::from_str(&printed.out).unwrap();
        let body = serde_json::from_slice::<serde_json::Value>(&received.body).unwrap();
        assert_eq!(printed.to_string(), body.to_string());
    }
    assert_eq!(server.received().len(), 2);
}

#[test]
fn a_configured_model_that_cannot_be_asked_is_an_error_and_nobody_else_is_asked() {
    let user = TestUser::new();
    configure(&user, "model = \"gpt-5\"\n");
    let mut command = user.command(&["run", "something private"]);

    let said = crate::support::said(command.env("ANTHROPIC_API_KEY", KEY).output().unwrap());

    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("set OPENAI_API_KEY"), "{}", said.err);
}

/// CA files by precedence: the provider's, the global one, then the variable's.
#[test]
fn whom_to_trust_is_configured_or_in_the_environment() {
    let user = TestUser::new();
    let all = "ca_file = \"/nowhere/all.pem\"\n";
    let section = "[providers.mine]\nbase_url = \"https://127.0.0.1:9\"\n";
    let own = "ca_file = \"/nowhere/own.pem\"\n";
    let cases = [
        (format!("{all}{section}{own}"), "/nowhere/own.pem"),
        (format!("{all}{section}"), "/nowhere/all.pem"),
        (format!("{all}{section}idle = 7\n"), "/nowhere/all.pem"),
        (section.to_owned(), "/nowhere/variable.pem"),
    ];

    for (text, file) in cases {
        configure(&user, &text);
        let mut command = user.command(&["run", "hello", "--model", "mine:small"]);
        let output = command
            .env("SSL_CERT_FILE", "/nowhere/variable.pem")
            .output();
        let said = crate::support::said(output.unwrap());

        assert_eq!(said.code, Some(1), "{text}");
        assert!(said.err.contains(file), "{text}: {}", said.err);
    }
}
