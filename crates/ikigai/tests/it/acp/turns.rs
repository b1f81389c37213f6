//! Prompts: text, calls, permission, cancellation, invalid input and the end.

use std::fs;

use ikigai_testkit::mock::{Mock, MockAnswer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::client::{AcpClient, Permission, is_answer, prompt};
use crate::support::TestUser;

/// Starts a scripted model and makes it the user's.
fn mocked(user: &TestUser, answers: &[Value]) -> Mock {
    let mock = Mock::start();
    let url = mock.url();
    let directory = user.home().join(".config/ikigai");
    fs::create_dir_all(&directory).unwrap();
    let config = format!("model = \"mock:m\"\n[providers.mock]\nbase_url = \"{url}\"\n");
    fs::write(directory.join("config.toml"), config).unwrap();
    mock.expect(
        answers
            .iter()
            .map(|answer| MockAnswer::read(answer).unwrap()),
    );
    mock
}

fn stop_reason(answer: &Value) -> &str {
    answer["result"]["stopReason"].as_str().unwrap_or_default()
}

#[test]
fn a_prompt_streams_thoughts_text_and_calls_and_ends_its_turn() {
    let user = TestUser::new();
    let project = user.home().join("project");
    fs::write(project.join("main.rs"), "fn main() {}\n").unwrap();
    let mut client = AcpClient::start(&user, &[]);
    let session = client.open(&project);

    let listed = client.prompt(&session, "list the rust files");
    let text = client.text("agent_message_chunk");
    let calls = client.updates("tool_call");
    let changes = client.updates("tool_call_update");
    let thought = client.prompt(&session, "think about it");
    let thoughts = client.text("agent_thought_chunk");
    let ended = client.end();

    assert_eq!(stop_reason(&listed), "end_turn", "{listed}");
    assert_eq!(text, "Looking for Rust files.Found 1 Rust file.");
    assert_eq!(calls.len(), 1);
    let title = calls[0]["title"].as_str().unwrap();
    assert!(
        title.starts_with("glob: ") && title.contains("**/*.rs"),
        "{title}"
    );
    assert_eq!(calls[0]["kind"], "search");
    assert_eq!(calls[0]["status"], "pending");
    assert_eq!(calls[0]["rawInput"]["pattern"], "**/*.rs");
    let last = changes.last().unwrap();
    assert_eq!(last["toolCallId"], calls[0]["toolCallId"]);
    assert_eq!(last["status"], "completed");
    let output = last["content"][0]["content"]["text"].as_str().unwrap();
    assert!(output.contains("main.rs"), "{output}");
    assert_eq!(stop_reason(&thought), "end_turn");
    assert!(thoughts.contains("I am only a script"), "{thoughts}");
    assert_eq!(ended, Some(0));
}

#[test]
fn a_command_runs_only_as_the_user_permits() {
    let user = TestUser::new();
    let project = user.home().join("project");
    let mut client = AcpClient::start(&user, &[]);
    let session = client.open(&project);
    let run = "run `touch made`";
    let is_made = || fs::remove_file(project.join("made")).is_ok();

    client.permission = Permission::Choose("reject");
    let rejected = client.prompt(&session, run);
    let question = client.questions().remove(0);
    let failed = client.updates("tool_call_update");
    let made_when_rejected = is_made();
    client.permission = Permission::Choose("allow-once");
    client.prompt(&session, run);
    let made_once = is_made();
    client.permission = Permission::Choose("allow-always");
    client.prompt(&session, run);
    let made_always = is_made();
    client.prompt(&session, run);
    let questions_after = client.questions().len();
    let made_after = is_made();

    assert_eq!(stop_reason(&rejected), "end_turn", "{rejected}");
    assert_eq!(question["sessionId"], session);
    assert_eq!(question["toolCall"]["title"], "bash: touch made");
    assert_eq!(question["toolCall"]["kind"], "execute");
    let shown = &question["toolCall"]["content"][0]["content"]["text"];
    assert_eq!(shown, "```\ntouch made\n```");
    let kinds = question["options"].as_array().unwrap().iter();
    let kinds: Vec<_> = kinds
        .map(|option| option["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
    assert!(failed.iter().any(|update| update["status"] == "failed"));
    assert_eq!(
        (made_when_rejected, made_once, made_always, made_after),
        (false, true, true, true)
    );
    assert_eq!(questions_after, 0);
}

#[test]
fn an_edit_is_asked_and_reported_with_its_diff() {
    let user = TestUser::new();
    let project = user.home().join("project");
    fs::write(project.join("a.txt"), "one\ntwo\n").unwrap();
    let edit = json!({"file_path": "a.txt", "old_string": "two", "new_string": "three"});
    let made = json!({"file_path": "new.txt", "content": "hello\n"});
    let answers = [
        json!({"tool_calls": [{"name": "file_read", "arguments": {"file_path": "a.txt"}}]}),
        json!({"tool_calls": [{"name": "file_edit", "arguments": edit}]}),
        json!({"tool_calls": [{"name": "file_write", "arguments": made}]}),
        json!({"content": "Done."}),
    ];
    let _mock = mocked(&user, &answers);
    let mut client = AcpClient::start(&user, &[]);
    let session = client.open(&project);

    let done = client.prompt(&session, "edit it");
    let questions = client.questions();
    let changes = client.updates("tool_call_update");
    let calls = client.updates("tool_call");

    assert_eq!(stop_reason(&done), "end_turn", "{done}");
    let path = |name: &str| project.join(name).to_string_lossy().into_owned();
    let diffs = |update: &Value| {
        let content = update["content"].as_array().cloned().unwrap_or_default();
        let diffs = content
            .into_iter()
            .filter(|content| content["type"] == "diff");
        diffs.collect::<Vec<_>>()
    };
    let edited = json!({
        "type": "diff", "path": path("a.txt"), "oldText": "one\ntwo\n", "newText": "one\nthree\n",
    });
    let written = json!({
        "type": "diff", "path": path("new.txt"), "oldText": null, "newText": "hello\n",
    });
    assert_eq!(
        diffs(&questions[0]["toolCall"]),
        std::slice::from_ref(&edited)
    );
    assert_eq!(
        diffs(&questions[1]["toolCall"]),
        std::slice::from_ref(&written)
    );
    let completed = changes
        .iter()
        .filter(|update| update["status"] == "completed");
    let completed: Vec<_> = completed.map(diffs).collect();
    assert_eq!(completed, [vec![], vec![edited], vec![written]]);
    assert_eq!(calls[1]["locations"][0]["path"], path("a.txt"));
    assert_eq!(calls[1]["kind"], "edit");
}

#[test]
fn a_cancelled_prompt_ends_and_the_session_goes_on() {
    let user = TestUser::new();
    let mut client = AcpClient::start(&user, &[]);
    let session = client.open(&user.home().join("project"));

    let id = client.request("session/prompt", &prompt(&session, "count slowly to 5000"));
    client.wait_for(|message| message["method"] == "session/update");
    client.notify("session/cancel", &json!({"sessionId": session}));
    let cancelled = client.wait_for(|message| is_answer(message, id));
    client.permission = Permission::Cancelled;
    let refused = client.prompt(&session, "run `touch made`");
    let greeted = client.prompt(&session, "hello");

    assert_eq!(stop_reason(&cancelled), "cancelled");
    assert_eq!(stop_reason(&refused), "cancelled");
    assert!(!user.home().join("project/made").exists());
    assert_eq!(stop_reason(&greeted), "end_turn");
}

#[test]
fn a_failed_turn_is_an_error_with_its_reason() {
    let user = TestUser::new();
    let mut client = AcpClient::start(&user, &[]);
    let session = client.open(&user.home().join("project"));

    let failed = client.prompt(&session, "fail");
    let again = client.prompt(&session, "fail once");

    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("the demo model failed"), "{failed}");
    assert_eq!(stop_reason(&again), "end_turn", "{again}");
    let text = client.text("agent_message_chunk");
    assert!(text.contains("The answer starts again"), "{text}");
    assert!(text.ends_with("this is the second."), "{text}");
}

#[test]
fn invalid_input_is_answered_with_errors_and_disturbs_nothing() {
    let user = TestUser::new();
    let mut client = AcpClient::start(&user, &[]);
    let session = client.open(&user.home().join("project"));
    let mut code_of = |line: &str| {
        client.send_raw(line.as_bytes());
        client.send_raw(b"\n");
        client.wait_for(|message| message.get("error").is_some())["error"]["code"].clone()
    };

    let codes = [
        code_of("garbage"),
        code_of("[]"),
        code_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/fly\"}"),
        code_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\",\"params\":{}}"),
        code_of(
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\",\"params\":{\"cwd\":\"x\"}}",
        ),
        code_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/prompt\",\"params\":[1]}"),
        code_of(
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"x\",\"prompt\":[]}}",
        ),
    ];
    client.notify("session/cancel", &json!({"sessionId": 7}));
    client.notify("no/such", &json!(null));
    let greeted = client.prompt(&session, "hello");
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"meth");
    let ended = client.end();

    let codes = codes.map(|code| code.as_i64().unwrap());
    assert_eq!(
        codes,
        [-32700, -32600, -32601, -32602, -32602, -32602, -32002]
    );
    assert_eq!(stop_reason(&greeted), "end_turn");
    assert_eq!(ended, Some(0));
}

#[test]
fn at_the_end_of_input_and_at_a_signal_the_agents_pause() {
    for ends_by_signal in [false, true] {
        let user = TestUser::new();
        let mut client = AcpClient::start(&user, &[]);
        let session = client.open(&user.home().join("project"));
        client.request("session/prompt", &prompt(&session, "count slowly to 5000"));
        client.wait_for(|message| message["method"] == "session/update");

        if ends_by_signal {
            let pid = Pid::from_raw(i32::try_from(client.id()).unwrap()).unwrap();
            kill_process(pid, Signal::TERM).unwrap();
            assert_eq!(client.wait(), Some(0));
        } else {
            assert_eq!(client.end(), Some(0));
        }

        let agents = user.ikigai(&["agents"]).out;
        assert!(!agents.contains("open in"), "{agents}");
        let log = user.ikigai(&["log", "--all"]).out;
        assert!(log.contains("interrupted: ikigai quit"), "{log}");
    }
}
