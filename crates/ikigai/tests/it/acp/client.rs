//! A client of `ikigai acp` that checks every message it gets.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::TestUser;

/// Longer than any answer takes; only a program that hangs gets there.
const PATIENCE: Duration = Duration::from_secs(90);

/// Fields that each kind of update must have.
const UPDATES: &[(&str, &[&str])] = &[
    ("user_message_chunk", &["content"]),
    ("agent_message_chunk", &["content"]),
    ("agent_thought_chunk", &["content"]),
    ("tool_call", &["toolCallId", "title"]),
    ("tool_call_update", &["toolCallId"]),
    ("plan", &["entries"]),
    ("available_commands_update", &["availableCommands"]),
    ("current_mode_update", &["currentModeId"]),
    ("config_option_update", &["configOptions"]),
    ("session_info_update", &[]),
    ("usage_update", &["used", "size"]),
    ("notice", &["severity", "title"]),
    ("compaction_update", &["compactionId", "status"]),
];

/// Fields that the answer to each method must have.
const ANSWERS: &[(&str, &[&str])] = &[
    ("initialize", &["protocolVersion"]),
    ("session/new", &["sessionId"]),
    ("session/prompt", &["stopReason"]),
    ("session/list", &["sessions"]),
    ("session/set_config_option", &["configOptions"]),
];

/// Words that some fields may have.
const WORDS: &[(&str, &[&str])] = &[
    (
        "stopReason",
        &[
            "end_turn",
            "max_tokens",
            "max_turn_requests",
            "refusal",
            "cancelled",
        ],
    ),
    ("status", &["pending", "in_progress", "completed", "failed"]),
    (
        "kind",
        &[
            "read",
            "edit",
            "delete",
            "move",
            "search",
            "execute",
            "think",
            "fetch",
            "switch_mode",
            "other",
            "allow_once",
            "allow_always",
            "reject_once",
            "reject_always",
        ],
    ),
    ("priority", &["high", "medium", "low"]),
];

/// Answer to questions about calls.
#[derive(Clone, Copy)]
pub(crate) enum Permission {
    Choose(&'static str),
    /// The turn was cancelled.
    Cancelled,
    /// None.
    Silent,
}

/// The client, and the program behind it.
pub(crate) struct AcpClient {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    requests: u64,
    pub(crate) permission: Permission,
    /// All messages since the last prompt.
    pub(crate) seen: Vec<Value>,
}

impl AcpClient {
    /// Starts the program in the user's project, and greets it.
    pub(crate) fn start(user: &TestUser, arguments: &[&str]) -> Self {
        let mut client = Self::start_silent(user, arguments);
        let answer = client.call("initialize", &json!({"protocolVersion": 1}));
        assert_eq!(answer["result"]["protocolVersion"], 1);
        client
    }

    pub(crate) fn start_silent(user: &TestUser, arguments: &[&str]) -> Self {
        let mut command = user.command(&[&["acp"], arguments].concat());
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        thread::spawn(move || {
            for line in out.lines() {
                let line = line.unwrap();
                let message = serde_json::from_str(&line);
                let message = message.unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            messages,
            requests: 0,
            permission: Permission::Choose("allow-once"),
            seen: Vec::new(),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request without waiting for the answer.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        let answer = self.wait_for(|message| is_answer(message, id));
        let fields = ANSWERS.iter().find(|(name, _)| *name == method);
        if answer.get("error").is_none() {
            has_fields(&answer["result"], fields.map_or(&[], |(_, fields)| fields));
        }
        answer
    }

    /// Opens a session in a directory; returns its id.
    pub(crate) fn open(&mut self, directory: &Path) -> String {
        let params = json!({"cwd": directory, "mcpServers": []});
        let answer = self.call("session/new", &params);
        answer["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> Value {
        self.seen.clear();
        self.call("session/prompt", &prompt(session, text))
    }

    /// Reads messages until one fits, and answers questions meanwhile.
    pub(crate) fn wait_for(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().unwrap();
            if fits(&message) {
                return message;
            }
        }
    }

    /// Reads messages until the agent's text since the last prompt contains this.
    pub(crate) fn wait_for_text(&mut self, text: &str) {
        while !self.text("agent_message_chunk").contains(text) {
            assert!(self.next().is_some(), "the program ended before `{text}`");
        }
    }

    /// Reads the next message; none at the end of the output.
    pub(crate) fn next(&mut self) -> Option<Value> {
        let message = match self.messages.recv_timeout(PATIENCE) {
            Ok(message) => message,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(error) => panic!("{error} after {:?}", self.seen),
        };
        check(&message);
        self.seen.push(message.clone());
        if message["method"] == "session/request_permission" {
            let outcome = match self.permission {
                Permission::Choose(option) => json!({"outcome": "selected", "optionId": option}),
                Permission::Cancelled => json!({"outcome": "cancelled"}),
                Permission::Silent => return Some(message),
            };
            let result = json!({"outcome": outcome});
            self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        }
        Some(message)
    }

    /// Returns the updates of one kind since the last prompt.
    pub(crate) fn updates(&self, kind: &str) -> Vec<Value> {
        let updates = self.seen.iter().map(|message| &message["params"]["update"]);
        let updates = updates.filter(|update| update["sessionUpdate"] == kind);
        updates.cloned().collect()
    }

    /// Returns the texts of one kind of chunk since the last prompt.
    pub(crate) fn text(&self, kind: &str) -> String {
        let updates = self.updates(kind).into_iter();
        let texts = updates.map(|update| update["content"]["text"].as_str().unwrap().to_owned());
        texts.collect()
    }

    /// Returns the questions since the last prompt.
    pub(crate) fn questions(&self) -> Vec<Value> {
        let messages = self.seen.iter();
        let asked = messages.filter(|message| message["method"] == "session/request_permission");
        asked.map(|message| message["params"].clone()).collect()
    }

    /// Closes the input, and returns the exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.input = None;
        self.wait()
    }

    /// Waits until the program has ended.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        while self.next().is_some() {}
        self.child.wait().unwrap().code()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for AcpClient {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

pub(crate) fn is_answer(message: &Value, id: u64) -> bool {
    message.get("method").is_none() && message["id"] == id
}

/// Checks that a message has its required fields.
fn check(message: &Value) {
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    check_words(message);
    let params = &message["params"];
    match message.get("method").and_then(Value::as_str) {
        None => {
            // An answer to an invalid message has the id null.
            assert!(message.get("id").is_some(), "{message}");
            let error = message.get("error");
            assert!(
                error.is_some() != message.get("result").is_some(),
                "{message}"
            );
            if let Some(error) = error {
                assert!(
                    error["code"].is_i64() && error["message"].is_string(),
                    "{message}"
                );
            }
        }
        Some("session/update") => {
            has_fields(params, &["sessionId"]);
            let update = &params["update"];
            let kind = update["sessionUpdate"].as_str().unwrap_or_default();
            let known = UPDATES.iter().find(|(name, _)| *name == kind);
            let (_, fields) = known.unwrap_or_else(|| panic!("unknown update {message}"));
            has_fields(update, fields);
            check_contents(update);
        }
        Some("session/request_permission") => {
            has_fields(message, &["id"]);
            has_fields(params, &["sessionId", "options"]);
            has_fields(&params["toolCall"], &["toolCallId"]);
            check_contents(&params["toolCall"]);
            for option in params["options"].as_array().unwrap() {
                has_fields(option, &["optionId", "name", "kind"]);
            }
        }
        Some("$/cancel_request") => has_fields(params, &["requestId"]),
        Some(other) => panic!("unknown method {other}"),
    }
}

fn check_contents(update: &Value) {
    if let Some(content) = update.get("content").filter(|content| content.is_object()) {
        has_fields(content, &["type", "text"]);
    }
    for content in update["content"].as_array().into_iter().flatten() {
        match content["type"].as_str() {
            Some("content") => has_fields(&content["content"], &["type", "text"]),
            Some("diff") => {
                has_fields(content, &["path", "newText"]);
                assert!(
                    content["path"].as_str().unwrap().starts_with('/'),
                    "{update}"
                );
            }
            _ => panic!("unknown content {update}"),
        }
    }
    for location in update["locations"].as_array().into_iter().flatten() {
        has_fields(location, &["path"]);
    }
}

fn has_fields(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(!value[field].is_null(), "{field} is missing in {value}");
    }
}

/// Checks the fields that have fixed words, at any depth outside of the inputs of tools.
fn check_words(value: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|(name, _)| *name != "rawInput") {
                let words = WORDS.iter().find(|(field, _)| field == name);
                if let (Some((_, words)), Some(word)) = (words, value.as_str()) {
                    assert!(words.contains(&word), "{name} is {word}");
                }
                check_words(value);
            }
        }
        Value::Array(values) => values.iter().for_each(check_words),
        _ => {}
    }
}
