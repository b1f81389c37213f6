//! Snapshots of every kind of row.

use std::fmt::Write as _;
use std::path::Path;

use super::*;

/// A realistic event of each kind, with the name of its snapshot.
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn gallery() -> Vec<(&'static str, Shown)> {
    let typed = |text: &str| UserData {
        typed: Some(text.to_owned()),
        ..UserData::default()
    };
    let mail = UserData {
        origin: Some(UserOrigin::Mail),
        from: Some(agent(2)),
        ..typed("✉ count-src: there are 41 files, and the largest of them is the lexer")
    };
    let merge = UserData {
        merge: Some(Merge {
            agent: Some(agent(2)),
            from: Some(Seq(3)),
            to: Some(Seq(41)),
        }),
        ..typed("⇐ count-src #3–#41")
    };
    let shell = UserData {
        shell: Some(Shell {
            command: Some("cargo test".to_owned()),
            exit: Some(101),
        }),
        ..UserData::default()
    };
    let numbered = |count: usize| {
        let lines: Vec<_> = (1..=count)
            .map(|n| format!("test number {n} ... ok"))
            .collect();
        lines.join("\n")
    };
    let answer = "Two things are **wrong**:\n\n1. `lex` never ends on `\"`\n2. no one tests it\n\n\
                  ```rust\nfn lex(text: &str) -> Vec<Token> {\n    todo!() // soon\n}\n```\n\n\
                  | file | lines |\n|---|--:|\n| lexer.rs | 410 |\n| parser.rs | 1200 |\n";
    let edit = "src/lexer.rs: +2 −1\n@@ -98,4 +98,5 @@\n fn end(&self) -> bool {\n-    self.at > self.text.len()\n\
                +    // the last byte counts\n+    self.at >= self.text.len()\n }\n";
    let command_line =
        json!({"command": "cargo test -p lexer --test it -- --nocapture 2>&1 | tail -40"});
    let called = Event::ToolCall {
        shown: Some("cargo test -p lexer --test it -- --nocapture 2>&1 | tail -40".to_owned()),
        data: ToolCallData {
            tool_call_id: Some("c".to_owned()),
            name: Some("bash".to_owned()),
            arguments: Some(command_line.to_string()),
            ..ToolCallData::default()
        },
    };
    let events = [
        (
            "user",
            Event::user(
                "what is wrong with the lexer, and why does no one notice?\nlook at the tests too",
            ),
        ),
        (
            "user_mail",
            user("Message from agent count-src:\nthere are 41 files", mail),
        ),
        (
            "user_merge",
            user("Result of the child agent count-src:\nall is well", merge),
        ),
        (
            "user_shell",
            user(
                &format!(
                    "$ cargo test\n{}\nerror: test failed\n(exit 101)",
                    numbered(30)
                ),
                shell,
            ),
        ),
        ("assistant", Event::assistant(1, answer)),
        (
            "assistant_thinking",
            thinking(
                "The user wants to know what is wrong.\nI look at the lexer first.",
                "It never ends.",
            ),
        ),
        ("tool_call", called),
        (
            "tool_result",
            result("bash", "exit 0 · 41 lines", &numbered(41), true),
        ),
        (
            "tool_result_read",
            result("glob", "12 files", &numbered(12), true),
        ),
        (
            "tool_result_failed",
            result("bash", "exit 101 · 30 lines", &numbered(30), false),
        ),
        (
            "tool_result_diff",
            result("file_edit", edit, "wrote it", true),
        ),
        (
            "system",
            Event::system(
                "You are a careful programmer who reads before writing.\nBe terse.",
                SystemOrigin::Typed,
            ),
        ),
        ("clear", Event::Clear),
        ("mark", Event::mark(Some("before the lexer"))),
        (
            "rewind",
            rewind(
                Via::Undo,
                vec!["src/lexer.rs".to_owned(), "src/parser.rs".to_owned()],
            ),
        ),
        (
            "fork_parent",
            fork(ForkRole::Parent, Some(agent(2)), "count-src"),
        ),
        ("fork_child", fork(ForkRole::Child, Some(agent(2)), "root")),
        (
            "command",
            command(
                "/model opus/high",
                "Switched to Anthropic opus\n  Thinking: high (effort: high)",
            ),
        ),
        (
            "command_listing",
            command("/help", "talk\n  /retry\n  /undo"),
        ),
        (
            "command_listing_line",
            command("/budget", "budget: $1.20 of $5.00 · 3 turns"),
        ),
        (
            "command_warning",
            command(
                "/modle",
                "⚠ no command /modle · did you mean /model? · start with a space to send it as text",
            ),
        ),
        (
            "command_shell",
            command("!!ls", "$ ls\na.rs\nb.rs\n(exit 0)"),
        ),
        ("agent_killed", killed()),
        ("usage", Event::Usage(UsageData::default())),
        ("interrupted", Event::interrupted(Cause::User)),
        ("interrupted_crash", Event::interrupted(Cause::Crash)),
        (
            "error",
            error(
                Category::Provider,
                Some(529),
                "overloaded: the server is busy, try again later",
            ),
        ),
        (
            "error_key",
            error(Category::Provider, Some(401), "invalid x-api-key"),
        ),
        (
            "error_omitted",
            error(
                Category::Omitted,
                Some(400),
                "messages.3: signature is not valid",
            ),
        ),
        (
            "summary",
            summary(Some("The lexer was repaired.\nTests pass."), None),
        ),
        ("summary_cut", summary(None, None)),
        ("summary_undo", summary(None, Some(at(5)))),
    ];
    let mut all: Vec<_> = events.map(|(name, event)| (name, stored(event))).into();
    all.push((
        "warning",
        Shown::Warning("row #3 of kind `x` is skipped: unknown kind `x`".to_owned()),
    ));
    all
}

/// Draws an event at three widths, folded and open.
fn picture(shown: &Shown) -> String {
    let mut picture = String::new();
    for (title, fold, columns) in [
        ("100 columns", FoldState::Folded, 100),
        ("60 columns", FoldState::Folded, 60),
        ("30 columns", FoldState::Folded, 30),
        ("60 columns, open", FoldState::Open, 60),
    ] {
        let block = block(shown, fold, &context(columns));
        let folded = block
            .folded
            .map_or_else(String::new, |rows| format!(", {rows} folded"));
        let _ = writeln!(picture, "--- {title}{folded}");
        for line in &block.lines {
            let _ = writeln!(picture, "{}", line.text().trim_end());
        }
    }
    picture
}

/// The snapshots are in `screens/`; set `DRAW_SCREENS` to draw them again, then review them.
#[test]
fn every_kind_looks_as_in_its_picture() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rows/screens");
    let mut differ = Vec::new();
    for (name, shown) in gallery() {
        let path = folder.join(format!("{name}.txt"));
        let picture = picture(&shown);
        if std::env::var_os("DRAW_SCREENS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &picture).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        if picture != expected {
            differ.push(format!("{name} is\n{picture}\nand should be\n{expected}"));
        }
    }

    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
