//! Call shapes that models send because other programs taught them.
//!
//! None of them may be refused for its shape, and each means what that program would do.

use serde_json::{Value, json};

use crate::desk::{Desk, text};

/// A call as a model of another program writes it.
struct CallShape {
    program: &'static str,
    tool: &'static str,
    arguments: Value,
    /// The resolved call, as it is shown and judged.
    shown: &'static str,
    /// Text of the remark about ignored fields.
    ignored: &'static str,
}

fn shape(
    program: &'static str,
    tool: &'static str,
    arguments: Value,
    shown: &'static str,
) -> CallShape {
    CallShape {
        program,
        tool,
        arguments,
        shown,
        ignored: "",
    }
}

impl CallShape {
    fn ignoring(self, ignored: &'static str) -> Self {
        Self { ignored, ..self }
    }
}

fn commands() -> Vec<CallShape> {
    vec![
        shape(
            "claude-code",
            "bash",
            json!({"command": "ls -la", "description": "List files", "timeout": 120_000}),
            "ls -la",
        ),
        shape(
            "claude-code",
            "bash",
            json!({"command": "cargo add rand", "description": "Add rand", "dangerouslyDisableSandbox": true}),
            "cargo add rand",
        ),
        shape(
            "codex shell",
            "bash",
            json!({"command": ["bash", "-lc", "git status | head"], "workdir": "sub", "timeout_ms": 10_000}),
            "cd 'sub' && git status | head",
        ),
        shape(
            "codex shell",
            "bash",
            json!({"command": ["rg", "a b", "--files", "it's"], "timeout_ms": "5000"}),
            r"rg 'a b' --files 'it'\''s'",
        ),
        shape(
            "codex shell_command",
            "bash",
            json!({"command": "make", "login": false, "sandbox_permissions": "use_default", "justification": "build"}),
            "make",
        )
        .ignoring("`login`"),
        shape(
            "codex shell_command",
            "bash",
            json!({"command": "cargo add rand", "sandbox_permissions": "require_escalated", "justification": "needs the registry"}),
            "cargo add rand",
        ),
        shape(
            "codex exec_command",
            "bash",
            json!({"cmd": "cargo test", "workdir": ".", "yield_time_ms": 1000, "max_output_tokens": 4000, "tty": false}),
            "cargo test",
        )
        .ignoring("`max_output_tokens`, `tty`, `yield_time_ms`"),
        shape(
            "opencode",
            "bash",
            json!({"command": "npm test", "timeout": "60000", "workdir": "sub", "description": "Run tests"}),
            "cd 'sub' && npm test",
        ),
        shape(
            "other",
            "bash",
            json!({"command": "ls", "cwd": "sub", "timeout": 30.0}),
            "cd 'sub' && ls",
        ),
    ]
}

fn files() -> Vec<CallShape> {
    vec![
        shape(
            "claude-code Read",
            "file_read",
            json!({"file_path": "a.txt", "offset": "1", "limit": "20"}),
            r#"file_path="a.txt" limit=20 offset=1"#,
        ),
        shape(
            "opencode read",
            "file_read",
            json!({"filePath": "a.txt", "offset": 0, "limit": 2000}),
            r#"file_path="a.txt" limit=2000 offset=1"#,
        ),
        shape(
            "codex read_file",
            "file_read",
            json!({"file_path": "a.txt", "offset": 1, "limit": 5, "mode": "slice"}),
            r#"file_path="a.txt" limit=5 offset=1"#,
        )
        .ignoring("`mode`"),
        shape(
            "text editor",
            "file_read",
            json!({"command": "view", "path": "a.txt", "view_range": [1, 3]}),
            r#"file_path="a.txt" limit=3 offset=1"#,
        )
        .ignoring("`command`"),
        shape(
            "text editor",
            "file_read",
            json!({"path": "a.txt", "view_range": [2, -1]}),
            r#"file_path="a.txt" offset=2"#,
        ),
        shape(
            "claude-code Write",
            "file_write",
            json!({"file_path": "new.txt", "content": "x"}),
            r#"file_path="new.txt""#,
        ),
        shape(
            "opencode write",
            "file_write",
            json!({"content": "x", "filePath": "newer.txt"}),
            r#"file_path="newer.txt""#,
        ),
        shape(
            "text editor",
            "file_write",
            json!({"command": "create", "path": "newest.txt", "file_text": "x"}),
            r#"file_path="newest.txt""#,
        )
        .ignoring("`command`"),
        shape(
            "claude-code Edit",
            "file_edit",
            json!({"file_path": "a.txt", "old_string": "one", "new_string": "1", "replace_all": false}),
            r#"file_path="a.txt""#,
        ),
        shape(
            "opencode edit",
            "file_edit",
            json!({"filePath": "a.txt", "oldString": "two", "newString": "2", "replaceAll": "true"}),
            r#"file_path="a.txt""#,
        ),
        shape(
            "text editor",
            "file_edit",
            json!({"command": "str_replace", "path": "a.txt", "old_str": "three", "new_str": "3"}),
            r#"file_path="a.txt""#,
        )
        .ignoring("`command`"),
        shape(
            "claude-code MultiEdit",
            "file_edit",
            json!({"file_path": "a.txt", "edits": [{"old_string": "one", "new_string": "1"}]}),
            r#"file_path="a.txt""#,
        ),
        shape(
            "opencode multiedit",
            "file_edit",
            json!({"filePath": "a.txt", "edits": [
                {"filePath": "a.txt", "oldString": "one", "newString": "1", "replaceAll": false},
                {"filePath": "a.txt", "oldString": "two", "newString": "2"},
            ]}),
            r#"file_path="a.txt""#,
        ),
        shape(
            "edits as text",
            "file_edit",
            json!({"path": "a.txt", "edits": r#"[{"old_str": "one", "new_str": "1"}]"#}),
            r#"file_path="a.txt""#,
        ),
    ]
}

fn lists() -> Vec<CallShape> {
    vec![
        shape(
            "claude-code TodoWrite",
            "todo",
            json!({"todos": [
                {"content": "Fix it", "status": "in_progress", "activeForm": "Fixing it"},
                {"content": "Test it", "status": "completed", "activeForm": "Testing it"},
            ]}),
            r#"items=[{"status":"in_progress","text":"Fix it"},{"status":"done","text":"Test it"}]"#,
        ),
        shape(
            "codex update_plan",
            "todo",
            json!({"explanation": "why", "plan": [{"step": "Fix it", "status": "pending"}]}),
            r#"items=[{"status":"pending","text":"Fix it"}]"#,
        ),
        shape(
            "opencode todowrite",
            "todo",
            json!({"todos": [{"id": "1", "content": "Fix it", "status": "cancelled", "priority": "high"}]}),
            r#"items=[{"status":"cancelled","text":"Fix it"}]"#,
        ),
        shape(
            "todos as text",
            "todo",
            json!({"todos": r#"[{"content": "Fix it", "status": "pending"}]"#}),
            r#"items=[{"status":"pending","text":"Fix it"}]"#,
        ),
        shape("opencode todoread", "todo", json!({}), ""),
        shape(
            "older logs",
            "list",
            json!({"operation": "add", "item": "Fix it"}),
            r#"item="Fix it" operation="add""#,
        ),
    ]
}

fn searches() -> Vec<CallShape> {
    vec![
        shape(
            "claude-code Glob",
            "glob",
            json!({"pattern": "**/*.txt", "path": "sub"}),
            r#"path="sub" pattern="**/*.txt""#,
        ),
        shape(
            "codex",
            "glob",
            json!({"query": "*.txt", "directory": "sub"}),
            r#"path="sub" pattern="*.txt""#,
        ),
        shape(
            "claude-code Grep",
            "grep",
            json!({"pattern": "b", "path": ".", "glob": "*.txt", "output_mode": "content", "-C": "2"}),
            r#"context=2 glob="*.txt" output_mode="content" path="." pattern="b""#,
        ),
        shape(
            "claude-code Grep",
            "grep",
            json!({"pattern": "B", "-i": true, "-n": true, "-A": 3, "-B": "1", "type": "txt"}),
            r#"after=3 before=1 ignore_case=true pattern="B" type="txt""#,
        ),
        shape(
            "claude-code Grep",
            "grep",
            json!({"pattern": "b", "output_mode": "files_with_matches", "head_limit": 20, "multiline": false}),
            r#"output_mode="files" pattern="b""#,
        )
        .ignoring("`head_limit`, `multiline`"),
        shape(
            "opencode grep",
            "grep",
            json!({"pattern": "b", "path": "sub", "include": "*.txt"}),
            r#"glob="*.txt" path="sub" pattern="b""#,
        ),
        shape(
            "codex grep_files",
            "grep",
            json!({"pattern": "b", "include": "*.txt", "path": "sub", "limit": 100}),
            r#"glob="*.txt" path="sub" pattern="b""#,
        )
        .ignoring("`limit`"),
    ]
}

#[test]
fn calls_of_other_programs_are_not_refused_for_their_shape() {
    let shapes = [commands(), files(), lists(), searches()]
        .into_iter()
        .flatten();

    for call in shapes {
        let desk = Desk::new();
        desk.put("a.txt", "one\ntwo\nthree\n");
        desk.put("sub/b.txt", "b\n");
        let CallShape {
            program,
            tool,
            arguments,
            shown,
            ignored,
        } = call;
        let name = format!("{program}: {tool} {arguments}");

        let prepared = match desk.prepare(tool, &arguments) {
            Ok(prepared) => prepared,
            Err(reason) => panic!("{name}: {reason}"),
        };
        assert_eq!(prepared.shown, shown, "{name}");
        if tool == "bash" {
            assert_eq!(prepared.subject, shown, "{name}");
            let leaves = shown == "cargo add rand";
            assert_eq!(prepared.unconfined.is_some(), leaves, "{name}");
            continue;
        }

        let output = desk.run(prepared);

        assert!(output.success, "{name}: {}", text(&output));
        let remark = text(&output).lines().last().unwrap_or_default().to_owned();
        let is_remark = remark.starts_with("[ignored unknown field");
        assert_eq!(is_remark, !ignored.is_empty(), "{name}: {remark}");
        assert!(remark.contains(ignored), "{name}: {remark}");
    }
}

#[test]
fn two_spellings_of_one_field_must_agree() {
    let desk = Desk::new();
    let table = [
        ("bash", json!({"command": "ls", "cmd": "rm -r ."})),
        (
            "file_write",
            json!({"file_path": "a", "path": "b", "content": ""}),
        ),
        (
            "file_edit",
            json!({"file_path": "a", "old_string": "a", "old_str": "b", "new_string": "c"}),
        ),
        ("file_read", json!({"filePath": "a", "file_path": "b"})),
        ("grep", json!({"pattern": "a", "query": "b"})),
    ];

    for (tool, arguments) in table {
        let reason = desk.failed(tool, &arguments);
        assert!(reason.contains("mean the same and differ"), "{reason}");
    }
}
