//! No stored or typed text controls the terminal of any command.

use std::fs;

use serde_json::json;

use crate::support::{PROGRAM, TestUser};

/// Escape sequences, C1 controls, bidirectional controls, and the ends of lines.
const HOSTILE: &str = "word\u{1b}]0;title\u{7}\u{1b}[31mred\u{9b}2J\u{8}\u{7f}\r\u{85}\
                       \u{202e}rtl\u{2066}\u{200f}\u{61c}\u{2028}end";

/// Id of the hostile agent.
const AGENT: &str = "BPmejX5xRbWrXEkDhAXo1w";

/// Returns a log for `import` in which every text is hostile.
fn log() -> String {
    let row = |seq: u64, kind: &str, content: &str, data: serde_json::Value| {
        json!({"row": {
            "agent": AGENT, "seq": seq, "kind": kind, "content": content, "control": 0,
            "created_at": 1_794_841_062_475_602_u64, "data": data.to_string(),
        }})
    };
    let name = format!("name{HOSTILE}");
    let call =
        json!({"tool_call_id": HOSTILE, "name": HOSTILE, "arguments": HOSTILE, "response": 1});
    let result =
        json!({"tool_call_id": HOSTILE, "name": HOSTILE, "output": HOSTILE, "success": false});
    let start = json!({"command": "start", "set": {
        "name": name, "workdir": "/", "model": {"provider": "demo", "model": "demo"},
    }});
    let usage =
        json!({"response": 1, "provider": HOSTILE, "model": HOSTILE, "input": 1, "output": 1});
    let lines = [
        json!({"ikigai-log": 1}),
        json!({"session": {
            "uuid": "ACUpKib0RrCPtLWJ1T4oRA", "name": name, "directory": format!("/{HOSTILE}"),
            "created_at": 1_794_841_062_475_602_u64,
        }}),
        json!({"agent": {
            "uuid": AGENT, "session": "ACUpKib0RrCPtLWJ1T4oRA", "name": name, "status": "running",
            "epoch": 2, "created_at": 1_794_841_062_475_602_u64,
        }}),
        row(1, "system", HOSTILE, json!({"origin": "start"})),
        row(2, "command", "", start),
        row(3, "user", HOSTILE, json!({"origin": "typed"})),
        row(
            4,
            "assistant",
            HOSTILE,
            json!({"response": 1, "model": HOSTILE, "provider": HOSTILE}),
        ),
        row(5, "tool_call", HOSTILE, call),
        row(6, "tool_result", HOSTILE, result),
        row(7, "usage", "", usage),
        row(8, "error", HOSTILE, json!({"category": "network"})),
        row(9, "mark", "", json!({"label": HOSTILE})),
        row(10, "fork", HOSTILE, json!({"role": "parent"})),
        row(
            11,
            "command",
            HOSTILE,
            json!({"command": "x", "echo": HOSTILE}),
        ),
        row(12, &format!("kind{HOSTILE}"), HOSTILE, json!({})),
        row(13, "summary", HOSTILE, json!({})),
        json!({"end": {"rows": 13}}),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

/// Returns the first unescaped control character with its context.
fn find_raw(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output).replace("\r\n", "\n");
    // Allowed sequences: bold words of `search`, and the progress line.
    let text = ["\u{1b}[1m", "\u{1b}[22m", "\r\u{1b}[K"]
        .iter()
        .fold(text, |text, own| text.replace(own, ""));
    let is_raw = |c: char| match c {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        _ => c.is_control(),
    };
    let at = text.find(is_raw)?;
    let near = text[..at].chars().rev().take(40).collect::<String>();
    let near: String = near.chars().rev().collect();
    Some(format!("{near:?} then {:?}", text[at..].chars().next()))
}

#[test]
fn no_command_lets_stored_text_steer_the_terminal() {
    let user = TestUser::new();
    let file = user.home().join("hostile.json");
    fs::write(&file, log()).unwrap();
    let imported = user.ikigai(&["import", file.to_str().unwrap()]);
    assert_eq!(imported.code, Some(0), "{}", imported.err);
    let tools = user.home().join(".config/ikigai/tools");
    fs::create_dir_all(&tools).unwrap();
    fs::write(tools.join("broken\u{1b}[31m\u{202e}"), "").unwrap();
    let quote = format!("select '{HOSTILE}' as \"{HOSTILE}\"");
    let typo = format!("selec {HOSTILE}");
    let commands: &[&[&str]] = &[
        &["log", AGENT],
        &["log", "--all", AGENT],
        &["log", "--all", "--json", AGENT],
        &["log", "--request", AGENT],
        &["log", HOSTILE],
        &["search", "title"],
        &["search", "--json", "title"],
        &["agents"],
        &["agents", "--json"],
        &["cost"],
        &["cost", "--json"],
        &["cost", "--by", "model"],
        &["cost", "--by", "model", "--json"],
        &["models", HOSTILE],
        &["models"],
        &["tools"],
        &["sql", "select * from agents"],
        &["sql", &quote],
        &["sql", "--json", &quote],
        &["sql", &typo],
        &["export", AGENT],
        &["export", AGENT, "--format", "html"],
        &["export", AGENT, "--format", "json"],
        &["config"],
        &["doctor"],
        &["run", "--agent", AGENT, "what did I say"],
        &["run", "--agent", AGENT, "--json", "what did I say"],
        &["run", "--agent", HOSTILE, "hello"],
        &["run", "--agent", AGENT, "/history"],
        &["run", "--agent", AGENT, "/agents"],
        &["run", "--agent", AGENT, "/search title"],
        &["run", "--agent", AGENT, "/marks"],
        &["run", "--agent", AGENT, HOSTILE],
        &["ctl", "--socket", HOSTILE, "version"],
    ];
    for arguments in commands {
        let mut pty = user.in_terminal(PROGRAM, arguments, 100, 30);
        pty.wait_end();

        assert!(!pty.output().is_empty(), "{arguments:?} printed nothing");
        let raw = find_raw(pty.output());
        assert_eq!(raw, None, "{arguments:?}");
    }
}

#[test]
fn a_piped_answer_is_exact_and_messages_are_clean() {
    let user = TestUser::new();
    user.ikigai(&["run", HOSTILE]);

    let said = user.ikigai(&["run", "what did I say"]);
    let wrong = user.ikigai(&["run", "--agent", HOSTILE, "hello"]);
    let log = user.ikigai(&["log"]);

    assert!(said.out.contains(HOSTILE), "{:?}", said.out);
    for text in [&said.err, &wrong.err, &log.out, &log.err] {
        assert_eq!(find_raw(text.as_bytes()), None);
    }
}
