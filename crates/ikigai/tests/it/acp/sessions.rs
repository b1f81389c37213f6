//! Sessions of the store: loaded, listed, closed, deleted, shared with other processes.

use std::fs;

use serde_json::{Value, json};

use super::client::{AcpClient, Permission, is_answer, prompt};
use crate::support::TestUser;

fn load(client: &mut AcpClient, user: &TestUser, session: &str, method: &str) -> Value {
    client.seen.clear();
    let cwd = user.home().join("project");
    let params = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    client.call(method, &params)
}

/// Returns kind and text of the updates, joined by kind.
fn transcript(client: &AcpClient) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for message in &client.seen {
        let update = &message["params"]["update"];
        let Some(kind) = update["sessionUpdate"].as_str() else {
            continue;
        };
        let text = match kind {
            "tool_call" => update["title"].as_str(),
            "tool_call_update" if update["status"] == "in_progress" => continue,
            "tool_call_update" => update["status"].as_str(),
            _ => update["content"]["text"].as_str(),
        };
        let text = text.unwrap_or_default();
        match found.last_mut() {
            Some((last, joined)) if last == kind => joined.push_str(text),
            _ => found.push((kind.to_owned(), text.to_owned())),
        }
    }
    found
}

fn listed(client: &mut AcpClient, params: &Value) -> Vec<String> {
    let answer = client.call("session/list", params);
    let sessions = answer["result"]["sessions"].as_array().unwrap().iter();
    let ids = sessions.map(|session| session["sessionId"].as_str().unwrap().to_owned());
    ids.collect()
}

#[test]
fn a_session_is_loaded_after_kill_9_as_it_was_shown() {
    let user = TestUser::new();
    let project = user.home().join("project");
    fs::write(project.join("main.rs"), "fn main() {}\n").unwrap();
    let mut client = AcpClient::start(&user, &[]);
    let session = client.open(&project);
    client.prompt(&session, "list the rust files");
    let live = transcript(&client);
    client.kill();

    let mut client = AcpClient::start(&user, &[]);
    let loaded = load(&mut client, &user, &session, "session/load");
    let replayed = transcript(&client);
    let said = client.prompt(&session, "what did I say");
    let text = client.text("agent_message_chunk");
    let mut other = AcpClient::start(&user, &[]);
    let stranger = load(&mut other, &user, "AAAAAAAAAAAAAAAAAAAAAA", "session/load");

    assert!(loaded.get("error").is_none(), "{loaded}");
    let asked = (
        "user_message_chunk".to_owned(),
        "list the rust files".to_owned(),
    );
    assert_eq!(replayed[0], asked);
    assert_eq!(replayed[1..], live);
    assert_eq!(said["result"]["stopReason"], "end_turn");
    assert!(text.contains("list the rust files"), "{text}");
    assert_eq!(stranger["error"]["code"], -32002);
}

#[test]
fn a_resumed_session_has_its_memory_without_a_replay() {
    let user = TestUser::new();
    let mut client = AcpClient::start(&user, &[]);
    let session = client.open(&user.home().join("project"));
    client.prompt(&session, "hello");
    client.end();

    let mut client = AcpClient::start(&user, &[]);
    let resumed = load(&mut client, &user, &session, "session/resume");
    let updates = transcript(&client).len();
    client.prompt(&session, "what did I say");

    assert!(resumed.get("error").is_none(), "{resumed}");
    assert_eq!(updates, 0);
    assert!(client.text("agent_message_chunk").contains("1. hello"));
}

#[test]
fn a_stopped_question_is_asked_again_and_its_answer_continues_the_turn() {
    let user = TestUser::new();
    let project = user.home().join("project");
    let mut client = AcpClient::start(&user, &[]);
    let session = client.open(&project);
    client.request("session/prompt", &prompt(&session, "run `touch made`"));
    // The answer of the client never comes.
    client.permission = Permission::Silent;
    client.wait_for(|message| message["method"] == "session/request_permission");
    client.kill();

    let mut client = AcpClient::start(&user, &[]);
    load(&mut client, &user, &session, "session/load");
    client.wait_for(|message| {
        let update = &message["params"]["update"];
        update["sessionUpdate"] == "tool_call_update" && update["status"] == "completed"
    });

    assert!(project.join("made").exists());
}

#[test]
fn living_roots_are_listed_until_they_are_deleted_and_nothing_is_lost() {
    let user = TestUser::new();
    let project = user.home().join("project");
    let elsewhere = user.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut client = AcpClient::start(&user, &[]);
    let first = client.open(&project);
    let second = client.open(&project);
    let third = client.open(&elsewhere);
    for session in [&third, &second, &first] {
        client.prompt(session, "hello");
    }

    let all = listed(&mut client, &json!({}));
    let here = listed(&mut client, &json!({"cwd": project}));
    let deleted = client.call("session/delete", &json!({"sessionId": first}));
    let again = client.call("session/delete", &json!({"sessionId": first}));
    let left = listed(&mut client, &json!({"cwd": project}));
    let loaded = load(&mut client, &user, &first, "session/load");
    let goes_on = client.prompt(&second, "hello");
    let wrong = client.call("session/list", &json!({"cursor": "garbage"}));
    client.end();

    assert_eq!(all, [first.clone(), second.clone(), third]);
    assert_eq!(here, [first.clone(), second.clone()]);
    assert!(deleted.get("error").is_none(), "{deleted}");
    assert!(again.get("error").is_none(), "{again}");
    assert_eq!(left, [second]);
    assert_eq!(loaded["error"]["code"], -32002);
    assert_eq!(goes_on["result"]["stopReason"], "end_turn");
    assert_eq!(wrong["error"]["code"], -32602);
    let log = user.ikigai(&["log", &first, "--all"]).out;
    assert!(log.contains("hello"), "{log}");
}

#[test]
fn a_closed_session_cancels_its_prompt_and_can_be_opened_elsewhere() {
    let user = TestUser::new();
    let mut client = AcpClient::start(&user, &[]);
    let session = client.open(&user.home().join("project"));
    let id = client.request("session/prompt", &prompt(&session, "count slowly to 5000"));
    client.wait_for(|message| message["method"] == "session/update");

    let closing = client.request("session/close", &json!({"sessionId": session}));
    let cancelled = client.wait_for(|message| is_answer(message, id));
    client.wait_for(|message| is_answer(message, closing));
    let unknown = client.prompt(&session, "hello");
    let agents = user.ikigai(&["agents"]).out;

    assert_eq!(cancelled["result"]["stopReason"], "cancelled");
    assert_eq!(unknown["error"]["code"], -32002);
    assert!(!agents.contains("open in"), "{agents}");
}

#[test]
fn an_agent_of_another_process_is_watched_and_gets_messages_as_mail() {
    let user = TestUser::new();
    let mut owner = AcpClient::start(&user, &[]);
    let session = owner.open(&user.home().join("project"));
    owner.prompt(&session, "hello");
    let mut watcher = AcpClient::start(&user, &[]);

    let loaded = load(&mut watcher, &user, &session, "session/load");
    let history = watcher.text("agent_message_chunk");
    owner.prompt(&session, "what did I say");
    watcher.wait_for(|message| message["params"]["update"]["content"]["text"] == "what did I say");
    let sent = watcher.prompt(&session, "think about mail");
    owner.wait_for_text("Done thinking");
    watcher.wait_for_text("Done thinking");
    let command = watcher.prompt(&session, "/mark here");
    owner.end();
    let taken = watcher.prompt(&session, "/mark here");

    assert!(loaded.get("error").is_none(), "{loaded}");
    assert!(history.contains("Open in another ikigai"), "{history}");
    assert_eq!(sent["result"]["stopReason"], "end_turn");
    assert!(command.get("error").is_some(), "{command}");
    assert_eq!(taken["result"]["stopReason"], "end_turn", "{taken}");
}
