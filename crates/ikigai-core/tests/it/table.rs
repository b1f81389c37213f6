//! Table of stored shapes: events with the content and data of their rows.

use ikigai_core::data::{
    AgentKilledData, Amounts, AnsweredBy, AssistantData, BlobRef, Category, Cause, CommandData,
    ErrorData, ForkContext, ForkData, ForkRole, InterruptedData, KilledBy, Merge, Opaque,
    RefusalKind, RewindData, SandboxRefusal, Shell, StoredImage, StoredThinking, SummaryData,
    SystemData, SystemOrigin, Tagged, ToolCallData, ToolResultData, TouchedFile, UsageData,
    UserData, UserOrigin, Verdict, Via,
};
use ikigai_core::settings::{Approve, ModelChoice, Pin, Rule, Spend, StoredTools, WorktreeSetting};
use ikigai_core::words::Severity;
use ikigai_core::{AgentId, Event, RowRef, Seq, Settings};
use serde_json::{Value, json};

use crate::{files_shapes, process_shapes};

/// An agent.
pub(crate) const A: &str = "bniJxm7uT7exMXKgaMgsNA";
/// Another one.
pub(crate) const B: &str = "kKLiDyt8RXShFd9K4ITQlQ";

/// Parses an agent id.
pub(crate) fn id(text: &str) -> AgentId {
    text.parse().unwrap()
}

/// Returns the reference to row `seq` of an agent.
pub(crate) fn at(text: &str, seq: u64) -> RowRef {
    RowRef::new(id(text), Seq(seq))
}

/// Returns the value of a text field.
#[expect(clippy::unnecessary_wraps, reason = "every field of data is optional")]
pub(crate) fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// An event, and the content and data that its row must have.
pub(crate) type Shape = (Event, Option<&'static str>, Option<Value>);

fn opaque() -> Opaque {
    Opaque {
        thinking: Some(vec![StoredThinking {
            text: some("hm"),
            provider: some("p"),
            model: some("m"),
            payload: some("{\"signature\": \"x\"}"),
        }]),
        item: Some(Tagged {
            provider: some("p"),
            model: some("m"),
            payload: some("{ \"id\":1 }"),
        }),
    }
}

fn opaque_json() -> Value {
    json!({
        "thinking": [
            {"text": "hm", "provider": "p", "model": "m", "payload": "{\"signature\": \"x\"}"}
        ],
        "item": {"provider": "p", "model": "m", "payload": "{ \"id\":1 }"}
    })
}

fn settings() -> Settings {
    Settings {
        model: Some(ModelChoice {
            provider: some("p"),
            model: some("m"),
            level: some("high"),
        }),
        name: some("child"),
        workdir: some("/w"),
        toolset: Some(vec!["ls".to_owned()]),
        pins: Some(vec![Pin {
            path: some("AGENTS.md"),
            hash: some("00ff"),
            off: Some(true),
        }]),
        approve: Some(Approve::Ask),
        rules: Some(vec![Rule {
            tool: some("shell"),
            pattern: some("ls *"),
        }]),
        budget_tokens: Some(100_000),
        spend: Some(Spend {
            usd: serde_json::from_str("2.50").ok(),
            tokens: Some(9),
            agents: Some(20),
            seconds: Some(7200),
            since: Some(8),
            own: Some(true),
        }),
        worktree: Some(WorktreeSetting {
            agent: Some(id(B)),
            path: some("/c/child-x"),
            repository: some("/w/.git"),
            checkout: some("/w"),
            base: some("00ff"),
        }),
        tools: Some(StoredTools {
            hash: some("00ff"),
            bytes: Some(7),
        }),
    }
}

fn settings_json() -> Value {
    json!({
        "model": {"provider": "p", "model": "m", "level": "high"},
        "name": "child",
        "workdir": "/w",
        "toolset": ["ls"],
        "pins": [{"path": "AGENTS.md", "hash": "00ff", "off": true}],
        "approve": "ask",
        "rules": [{"tool": "shell", "pattern": "ls *"}],
        "budget_tokens": 100_000,
        "spend": {
            "usd": 2.5, "tokens": 9, "agents": 20, "seconds": 7200, "since": 8, "own": true
        },
        "worktree": {
            "agent": B, "path": "/c/child-x", "repository": "/w/.git", "checkout": "/w",
            "base": "00ff"
        },
        "tools": {"hash": "00ff", "bytes": 7}
    })
}

fn amounts() -> Amounts {
    Amounts {
        input: Some(1),
        cache_read: Some(2),
        cache_write: Some(3),
        output: Some(4),
        reasoning: Some(5),
        cost_nano_usd: Some(6),
    }
}

fn amounts_json() -> Value {
    json!({
        "input": 1, "cache_read": 2, "cache_write": 3, "output": 4, "reasoning": 5,
        "cost_nano_usd": 6
    })
}

/// Adds fields to an object.
pub(crate) fn with(mut object: Value, more: &Value) -> Value {
    let map = object.as_object_mut().unwrap();
    map.extend(more.as_object().unwrap().clone());
    object
}

fn image() -> StoredImage {
    serde_json::from_value(image_json()).unwrap()
}

fn image_json() -> Value {
    json!({"hash": "22", "type": "image/png", "bytes": 9, "width": 3, "height": 2})
}

fn said() -> Vec<Shape> {
    let full_user = UserData {
        origin: Some(UserOrigin::Mail),
        typed: some("seen"),
        from: Some(id(B)),
        shell: Some(Shell {
            command: some("ls"),
            exit: Some(-1),
        }),
        merge: Some(Merge {
            agent: Some(id(B)),
            from: Some(Seq(2)),
            to: Some(Seq(9)),
        }),
        environment: Some([("date".to_owned(), "1970-01-01".to_owned())].into()),
        process: Some(7),
        images: Some(vec![image()]),
    };
    let full_user_json = json!({
        "origin": "mail", "typed": "seen", "from": B,
        "shell": {"command": "ls", "exit": -1},
        "merge": {"agent": B, "from": 2, "to": 9},
        "environment": {"date": "1970-01-01"}, "process": 7, "images": [image_json()]
    });
    let full_assistant = AssistantData {
        response: Some(3),
        provider: some("p"),
        model: some("m"),
        level: some("low"),
        stop: some("end_turn"),
        opaque: Some(opaque()),
    };
    let full_assistant_json = json!({
        "response": 3, "provider": "p", "model": "m", "level": "low", "stop": "end_turn",
        "opaque": opaque_json()
    });
    let user = |text: &str, data| Event::User {
        text: text.to_owned(),
        data,
    };
    let system = |text: &str, data| Event::System {
        text: text.to_owned(),
        data,
    };
    let shown_user = full_user.clone();
    vec![
        (
            Event::system("be", SystemOrigin::Start),
            Some("be"),
            Some(json!({"origin": "start"})),
        ),
        (
            system("be", SystemData::default()),
            Some("be"),
            Some(json!({})),
        ),
        (
            Event::user("a\0b"),
            Some("a\u{2400}b"),
            Some(json!({"origin": "typed"})),
        ),
        (user("hi", shown_user), Some("hi"), Some(full_user_json)),
        (
            Event::assistant(1, ""),
            Some(""),
            Some(json!({"response": 1})),
        ),
        (
            Event::Assistant {
                text: "yes".to_owned(),
                data: full_assistant,
            },
            Some("yes"),
            Some(full_assistant_json),
        ),
    ]
}

fn tools() -> Vec<Shape> {
    let call = ToolCallData {
        tool_call_id: some("c"),
        name: some("ls"),
        arguments: some("{ \"a\\u0000\" :1}\0"),
        response: Some(2),
        opaque: Some(opaque()),
    };
    let call_json = json!({
        "tool_call_id": "c", "name": "ls", "arguments": "{ \"a\\u0000\" :1}\0", "response": 2,
        "opaque": opaque_json()
    });
    let result = ToolResultData {
        tool_call_id: some("c"),
        name: some("ls"),
        output: some("out"),
        success: Some(true),
        call: Some(at(A, 2)),
        blob: Some(BlobRef {
            hash: some("00ff"),
            bytes: Some(1 << 40),
        }),
        verdict: Some(Verdict::Ran),
        files: Some(vec![TouchedFile {
            path: some("f"),
            hash: some("11"),
            wrote: Some(false),
            added: Some(12),
            removed: Some(3),
        }]),
        process: Some(1),
        refused: Some(vec![SandboxRefusal {
            kind: Some(RefusalKind::Host),
            name: some("a.com:443"),
        }]),
        images: Some(vec![image()]),
    };
    let result_json = json!({
        "tool_call_id": "c", "name": "ls", "output": "out", "success": true,
        "call": {"agent": A, "seq": 2}, "blob": {"hash": "00ff", "bytes": 1_u64 << 40},
        "verdict": "ran", "files": [{"path": "f", "hash": "11", "wrote": false, "added": 12, "removed": 3}],
        "process": 1, "refused": [{"kind": "host", "name": "a.com:443"}],
        "images": [image_json()]
    });
    vec![
        (
            Event::tool_call(1, "", "", ""),
            None,
            Some(json!({"tool_call_id": "", "name": "", "arguments": "", "response": 1})),
        ),
        (
            Event::ToolCall {
                shown: some("ls ."),
                data: call,
            },
            Some("ls ."),
            Some(call_json),
        ),
        (
            Event::tool_result(at(B, 7), "c", "ls", "out", false),
            None,
            Some(json!({
                "tool_call_id": "c", "name": "ls", "output": "out", "success": false,
                "call": {"agent": B, "seq": 7}
            })),
        ),
        (
            Event::ToolResult {
                shown: some("1 line"),
                data: result,
            },
            Some("1 line"),
            Some(result_json),
        ),
    ]
}

fn places() -> Vec<Shape> {
    let rewind = RewindData {
        target: Some(at(A, 1)),
        from: Some(at(A, 3)),
        via: Some(Via::Undo),
        files: Some(vec!["f".to_owned()]),
        restored: Some(vec!["g".to_owned()]),
        turns: Some(2),
    };
    let (one, two) = (json!({"agent": A, "seq": 1}), json!({"agent": A, "seq": 2}));
    let undo = SummaryData {
        undo: Some(at(A, 2)),
        ..SummaryData::default()
    };
    vec![
        (Event::Clear, None, None),
        (Event::mark(None), None, Some(json!({}))),
        (Event::mark(Some("l")), None, Some(json!({"label": "l"}))),
        (
            Event::rewind(at(A, 1), at(A, 2), Via::Rewind),
            None,
            Some(json!({"target": one, "from": two, "via": "rewind"})),
        ),
        (
            Event::Rewind(rewind),
            None,
            Some(json!({
                "target": one, "from": {"agent": A, "seq": 3}, "via": "undo", "files": ["f"],
                "restored": ["g"],
                "turns": 2
            })),
        ),
        (
            Event::summary(None, at(A, 1), at(A, 2)),
            None,
            Some(json!({"from": one, "to": two})),
        ),
        (
            Event::summary(Some("short"), at(A, 1), at(A, 2)),
            Some("short"),
            Some(json!({"from": one, "to": two})),
        ),
        (
            Event::Summary {
                text: None,
                data: undo,
            },
            None,
            Some(json!({"undo": two})),
        ),
    ]
}

fn forks() -> Vec<Shape> {
    let parent = ForkData {
        role: Some(ForkRole::Parent),
        child_uuid: Some(id(B)),
        child_name: some("helper"),
        ..ForkData::default()
    };
    let child = ForkData {
        role: Some(ForkRole::Child),
        parent_uuid: Some(id(A)),
        fork_message_id: Some(Seq(4)),
        fork_point: Some(at(A, 4)),
        call: Some(at(A, 3)),
        context: Some(ForkContext::Inherit),
        parent_name: some("boss"),
        settings: Some(settings()),
        system: Some(at(A, 1)),
        prefix_pins: settings().pins,
        grant: some("tag"),
        ..ForkData::default()
    };
    let fork = |text: &str, data| Event::Fork {
        text: text.to_owned(),
        data: Box::new(data),
    };
    vec![
        (
            fork("Forked child", parent),
            Some("Forked child"),
            Some(json!({
                "role": "parent", "child_uuid": B, "child_name": "helper",
                "fork_message_id": null, "fork_point": null
            })),
        ),
        (
            fork("Forked from", child),
            Some("Forked from"),
            Some(json!({
                "role": "child", "parent_uuid": A, "fork_message_id": 4,
                "fork_point": {"agent": A, "seq": 4}, "call": {"agent": A, "seq": 3},
                "context": "inherit", "parent_name": "boss", "settings": settings_json(),
                "system": {"agent": A, "seq": 1}, "grant": "tag",
                "prefix_pins": [{"path": "AGENTS.md", "hash": "00ff", "off": true}]
            })),
        ),
    ]
}

fn commands_and_ends() -> Vec<Shape> {
    let command = CommandData {
        command: some("model"),
        args: some("m"),
        echo: some("/model m"),
        severity: Some(Severity::Warning),
        set: Some(settings().as_set()),
        of: Some(at(A, 1)),
        by: Some(AnsweredBy::Socket),
        resume: Some(true),
        grant: some("tag"),
        later: Some(true),
    };
    let plain = CommandData {
        command: some("help"),
        ..CommandData::default()
    };
    let killed = AgentKilledData {
        target: Some(id(A)),
        killed: Some(vec![id(A), id(B)]),
        by: Some(KilledBy::Model),
    };
    let usage = UsageData {
        response: Some(1),
        provider: some("p"),
        model: some("m"),
        amounts: amounts(),
        sum: Some(amounts()),
    };
    let bare_usage = UsageData {
        response: Some(1),
        sum: Some(Amounts::default()),
        ..UsageData::default()
    };
    let named = json!({"response": 1, "provider": "p", "model": "m", "sum": amounts_json()});
    let error = ErrorData {
        category: Some(Category::Omitted),
        status: Some(400),
        attempts: Some(3),
        omit: Some(vec![at(A, 2)]),
    };
    let bare_error = ErrorData {
        category: Some(Category::Internal),
        ..ErrorData::default()
    };
    let failed = |data| Event::Error {
        text: "no".to_owned(),
        data,
    };
    vec![
        (
            Event::Command {
                output: None,
                data: plain,
            },
            None,
            Some(json!({"command": "help"})),
        ),
        (
            Event::Command {
                output: some("set"),
                data: command,
            },
            Some("set"),
            Some(json!({
                "command": "model", "args": "m", "echo": "/model m", "severity": "warning", "set": settings_json(),
                "of": {"agent": A, "seq": 1}, "by": "socket", "resume": true, "later": true,
                "grant": "tag"
            })),
        ),
        (
            Event::AgentKilled(killed),
            None,
            Some(json!({"target": A, "killed": [A, B], "by": "model"})),
        ),
        (
            Event::Usage(usage),
            None,
            Some(with(named, &amounts_json())),
        ),
        (
            Event::Usage(bare_usage),
            None,
            Some(json!({"response": 1, "sum": {}})),
        ),
        (
            failed(error),
            Some("no"),
            Some(json!({
                "category": "omitted", "status": 400, "attempts": 3,
                "omit": [{"agent": A, "seq": 2}]
            })),
        ),
        (
            failed(bare_error),
            Some("no"),
            Some(json!({"category": "internal"})),
        ),
    ]
}

/// Returns every word that the table names, by the data that holds it.
fn words() -> Vec<Shape> {
    let mut shapes = Vec::new();
    let system = [
        (SystemOrigin::Start, "start"),
        (SystemOrigin::Typed, "typed"),
        (SystemOrigin::Fork, "fork"),
        (SystemOrigin::Clear, "clear"),
    ];
    for (origin, word) in system {
        let event = Event::system("s", origin);
        shapes.push((event, Some("s"), Some(json!({"origin": word}))));
    }
    let user = [
        (UserOrigin::Typed, "typed"),
        (UserOrigin::Fork, "fork"),
        (UserOrigin::Mail, "mail"),
        (UserOrigin::Notice, "notice"),
    ];
    for (origin, word) in user {
        let data = UserData {
            origin: Some(origin),
            ..UserData::default()
        };
        let text = "u".to_owned();
        let event = Event::User { text, data };
        shapes.push((event, Some("u"), Some(json!({"origin": word}))));
    }
    let verdicts = [
        (Verdict::Ran, "ran"),
        (Verdict::Refused, "refused"),
        (Verdict::Interrupted, "interrupted"),
        (Verdict::Unknown, "unknown"),
    ];
    for (verdict, word) in verdicts {
        let data = ToolResultData {
            verdict: Some(verdict),
            ..ToolResultData::default()
        };
        let event = Event::ToolResult { shown: None, data };
        shapes.push((event, None, Some(json!({"verdict": word}))));
    }
    let ways = [
        (Via::Rewind, "rewind"),
        (Via::Undo, "undo"),
        (Via::Redo, "redo"),
        (Via::Retry, "retry"),
    ];
    for (via, word) in ways {
        let data = RewindData {
            via: Some(via),
            ..RewindData::default()
        };
        shapes.push((Event::Rewind(data), None, Some(json!({"via": word}))));
    }
    let causes = [
        (Cause::User, "user"),
        (Cause::Exit, "exit"),
        (Cause::Crash, "crash"),
        (Cause::Kill, "kill"),
    ];
    for (cause, word) in causes {
        let data = InterruptedData { cause: Some(cause) };
        let event = Event::Interrupted(data);
        shapes.push((event, None, Some(json!({"cause": word}))));
    }
    let categories = [
        (Category::Provider, "provider"),
        (Category::Limit, "limit"),
        (Category::Budget, "budget"),
        (Category::Omitted, "omitted"),
        (Category::Internal, "internal"),
    ];
    for (category, word) in categories {
        let data = ErrorData {
            category: Some(category),
            ..ErrorData::default()
        };
        let text = "e".to_owned();
        let event = Event::Error { text, data };
        shapes.push((event, Some("e"), Some(json!({"category": word}))));
    }
    shapes
}

/// Returns every kind with all fields and with required fields only, and every word.
pub(crate) fn all() -> Vec<Shape> {
    [
        said(),
        tools(),
        places(),
        forks(),
        commands_and_ends(),
        process_shapes::all(),
        files_shapes::all(),
        words(),
    ]
    .concat()
}
