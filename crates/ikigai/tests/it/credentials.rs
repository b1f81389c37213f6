//! Keys of the program: in no file that it writes, no transcript and no child process.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ikigai_testkit::server::{Script, Server};
use serde_json::json;

use crate::support::{MockAnswer, TestUser, said};

/// Key of the server in use, from a variable that the configuration names.
const USED_KEY: &str = "sk-used-0123456789abcdef";
/// Key of another provider, from its usual variable.
const OTHER_KEY: &str = "sk-ant-other-0123456789abcdef";
/// Key in the file of credentials.
const FILE_KEY: &str = "sk-file-0123456789abcdef";

const KEYS: [&str; 3] = [USED_KEY, OTHER_KEY, FILE_KEY];

/// Prints all keys without containing one, in an output that is short or stored as a blob.
fn printing(times: u32) -> String {
    format!(
        "env > child-{times}.txt; for i in $(seq {times}); do \
         for name in used ant-other file; do echo sk-$name-0123456789$(echo abcdef); done; done"
    )
}

fn event(delta: &serde_json::Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    format!("data: {}\n\n", json!({ "choices": [choice] }))
}

/// Answers with calls of `bash`.
fn calls(commands: &[String]) -> Script {
    let calls: Vec<_> = commands
        .iter()
        .enumerate()
        .map(|(index, command)| {
            let arguments = json!({ "command": command }).to_string();
            let function = json!({ "name": "bash", "arguments": arguments });
            json!({ "index": index, "id": format!("c{index}"), "type": "function", "function": function })
        })
        .collect();
    Script::stream()
        .send(event(&json!({ "tool_calls": calls }), None))
        .send(event(&json!({}), Some("tool_calls")))
        .send("data: [DONE]\n\n")
}

fn says(text: &str) -> Script {
    Script::stream()
        .send(event(&json!({ "content": text }), None))
        .send(event(&json!({}), Some("stop")))
        .send("data: [DONE]\n\n")
}

fn with_keys(command: &mut Command) -> MockAnswer {
    command
        .env("MINE_KEY", USED_KEY)
        .env("ANTHROPIC_API_KEY", OTHER_KEY)
        .env("PATH", "/usr/bin:/bin")
        .env("RUST_LOG", "trace")
        .env("IKIGAI_LOG_BODIES", "1");
    said(command.output().unwrap())
}

/// Returns all files below a directory, except those in which the user keeps the keys.
fn files_under(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_under(&path));
        } else if path.is_file() && !path.ends_with(".config/ikigai/credentials") {
            found.push(path);
        }
    }
    found
}

/// E15: the program's keys are in no file it writes, no transcript and no child process.
///
/// The model's commands print them all the same; the output is stored with the keys blanked.
#[test]
fn credentials_never_stored() {
    let commands = [printing(1), printing(2000)];
    let server = Server::start([calls(&commands), says("done")]);
    let user = TestUser::new();
    let directory = user.home().join(".config/ikigai");
    fs::create_dir_all(&directory).unwrap();
    let config = format!(
        "[providers.mine]\nbase_url = \"http://{}\"\nkey_env = \"MINE_KEY\"\n\
         [models.\"mine:small\"]\ncontext_window = 128000\n",
        server.address()
    );
    fs::write(directory.join("config.toml"), config).unwrap();
    let credentials = directory.join("credentials");
    fs::write(&credentials, format!("openai = \"{FILE_KEY}\"\n")).unwrap();
    fs::set_permissions(&credentials, fs::Permissions::from_mode(0o600)).unwrap();

    let arguments = ["run", "--approve", "all", "--model", "mine:small", "go"];
    let turn = with_keys(&mut user.command(&arguments));
    let shell = with_keys(&mut user.command(&["run", "!env > child-shell.txt; env"]));
    let rows = "SELECT content, data FROM messages ORDER BY id";
    let stored = with_keys(&mut user.command(&["sql", "--json", rows]));
    let transcript = with_keys(&mut user.command(&["export", "--tree"]));

    for ran in [&turn, &shell, &stored, &transcript] {
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        for key in KEYS {
            assert!(!ran.out.contains(key) && !ran.err.contains(key), "{ran:?}");
        }
    }
    let received = server.received();
    let bearer = format!("Bearer {USED_KEY}");
    assert_eq!(received.len(), 2);
    for request in received {
        assert_eq!(request.header("authorization"), Some(&*bearer), "in use");
        let body = String::from_utf8_lossy(&request.body);
        assert!(KEYS.iter().all(|key| !body.contains(key)), "{body}");
    }
    let lines: Vec<_> = stored.out.lines().collect();
    let blanked = lines.iter().filter(|line| line.contains("[blanked]"));
    assert_eq!(blanked.count(), 2, "two results with blanked keys");
    let files = files_under(user.home());
    let has = |end: &str| files.iter().any(|path| path.ends_with(end));
    for file in [
        "child-1.txt",
        "child-2000.txt",
        "child-shell.txt",
        "state/ikigai/log",
    ] {
        assert!(has(file), "{file} is not in {files:?}");
    }
    for file in files {
        let bytes = fs::read(&file).unwrap();
        for key in KEYS {
            let mut parts = bytes.windows(key.len());
            assert!(!parts.any(|part| part == key.as_bytes()), "{key}: {file:?}");
        }
    }
}
