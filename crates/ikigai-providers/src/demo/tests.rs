//! Tests of the rules.

use ikigai_core::Request;
use ikigai_core::message::{Message, Role};
use ikigai_core::project::{ToolFacts, ToolSpec};
use ikigai_core::summary::{SummaryChunks, summary_message};
use serde_json::json;

use super::rules::{Ask, DemoStep, answer, summarise};

fn request(messages: Vec<Message>, tools: &[&str]) -> Request {
    let tool = |name: &&str| ToolSpec {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: json!({}),
        facts: ToolFacts::default(),
    };
    Request {
        messages,
        tools: tools.iter().map(tool).collect(),
        ..Request::default()
    }
}

fn said(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn tools_called(steps: &[DemoStep]) -> Vec<&str> {
    let called = steps.iter().filter_map(|step| match step {
        DemoStep::Call { tool, .. } => Some(tool.as_str()),
        _ => None,
    });
    called.collect()
}

#[test]
fn each_rule_calls_its_tools_or_none() {
    let all = ["bash", "file_read", "fork", "glob", "grep"];
    let cases: [(&str, &[&str]); 10] = [
        ("list the rust files", &["glob"]),
        ("run `ls -l`", &["bash"]),
        ("read README.md", &["file_read"]),
        ("fix the failing test", &["bash"]),
        ("fix it", &["bash"]),
        ("fork two helpers to count words", &["fork", "fork"]),
        ("ask to push", &["bash"]),
        ("think hard", &[]),
        ("hello", &[]),
        ("whatever", &[]),
    ];

    for (text, tools) in cases {
        let request = request(vec![said(text)], &all);
        assert_eq!(tools_called(&answer(&Ask::of(&request))), tools, "{text}");
    }
}

#[test]
fn a_tool_that_was_not_given_is_not_called() {
    let request = request(vec![said("run `ls`")], &[]);

    let steps = answer(&Ask::of(&request));

    let words = "I would use the tool `bash`, but it is not available.";
    assert_eq!(steps, [DemoStep::Say(words.to_owned())]);
}

#[test]
fn calls_are_nested_over_rounds_and_end() {
    let mut messages = vec![said("fix the failing test")];
    let mut rounds = Vec::new();
    for _ in 0..3 {
        let request = request(messages.clone(), &["bash", "grep", "glob"]);
        let steps = answer(&Ask::of(&request));
        rounds.push(tools_called(&steps).len());
        messages.push(Message::tool_call("a", "bash", "{}"));
        messages.push(Message::tool_result("a", "FAILED", true));
    }

    assert_eq!(rounds, [1, 2, 0]);
}

/// Makes a request with this message, results of tools since, and all tools.
fn with_tools(said: &str, results: &[&str]) -> Request {
    let mut messages = vec![Message::text(Role::User, said)];
    for (index, result) in results.iter().enumerate() {
        let id = index.to_string();
        messages.push(Message::tool_call(&id, "x", "{}"));
        messages.push(Message::tool_result(&id, *result, false));
    }
    let tools = ["bash", "file_edit", "file_read", "file_write", "glob"];
    request(messages, &tools)
}

fn calls(request: &Request) -> Vec<(String, String)> {
    let steps = answer(&Ask::of(request));
    let calls = steps.into_iter().filter_map(|step| match step {
        DemoStep::Call { tool, arguments } => Some((tool, arguments)),
        _ => None,
    });
    calls.collect()
}

/// Message, results of tools since, and the expected calls.
type Case = (
    &'static str,
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
);

#[test]
fn it_calls_tools_for_what_is_asked() {
    let create = "create notes.txt with three lines, then change the second";
    let cases: [Case; 5] = [
        (
            "list the rust files and count them",
            &[],
            &[("glob", r#"{"pattern":"**/*.rs"}"#)],
        ),
        (
            create,
            &[],
            &[(
                "file_write",
                r#"{"content":"line 1\nline 2\nline 3\n","file_path":"notes.txt"}"#,
            )],
        ),
        (
            create,
            &["written"],
            &[(
                "file_edit",
                r#"{"file_path":"notes.txt","new_string":"line 2, changed\n","old_string":"line 2\n"}"#,
            )],
        ),
        (create, &["written", "edited"], &[]),
        (
            "read README.md and Cargo.toml.",
            &[],
            &[
                ("file_read", r#"{"file_path":"README.md"}"#),
                ("file_read", r#"{"file_path":"Cargo.toml"}"#),
            ],
        ),
    ];

    for (said, results, expected) in cases {
        let called = calls(&with_tools(said, results));
        let called: Vec<_> = called
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        assert_eq!(called, expected, "{said}");
    }
}

#[test]
fn it_counts_one_file_as_one() {
    let cases = [
        ("list the rust files", "", "Found no Rust files."),
        ("list the rust files", "a.rs", "Found 1 Rust file."),
        ("list the rust files", "a.rs\nb.rs", "Found 2 Rust files."),
        (
            "count the files in src",
            "src/a.rs",
            "There is 1 file in src.",
        ),
        (
            "count the files in src",
            "src/a\nsrc/b",
            "There are 2 files in src.",
        ),
        (
            "count the tests",
            "src/lib.rs:5:#[test]",
            "Found 1 test in the Rust files here.",
        ),
        (
            "count the tests",
            "",
            "Found no tests in the Rust files here.",
        ),
    ];

    for (said, result, expected) in cases {
        let steps = answer(&Ask::of(&with_tools(said, &[result])));
        assert_eq!(steps, [DemoStep::Say(expected.to_owned())], "{said}");
    }
}

#[test]
fn notes_before_a_message_are_no_order_and_a_failure_is_not_counted() {
    let noted = "[The user went back. Files that are NOT restored: a.txt +4 −1.]\n\ncount to 3";
    let steps = answer(&Ask::of(&with_tools(noted, &[])));
    assert_eq!(steps, [DemoStep::Say("1 2 3".to_owned())]);

    let mut refused = with_tools("run `rm x`", &[]);
    refused.messages.push(Message::tool_call("0", "bash", "{}"));
    refused
        .messages
        .push(Message::tool_result("0", "The user said no.", true));
    let words = "It did not run: The user said no.";
    assert_eq!(
        answer(&Ask::of(&refused)),
        [DemoStep::Say(words.to_owned())]
    );

    let mut request = with_tools("count the files in src", &[]);
    let failed = Message::tool_result("0", "`src` is not a directory", true);
    request.messages.push(Message::tool_call("0", "x", "{}"));
    request.messages.push(failed);
    let words = "Result: `src` is not a directory";
    assert_eq!(
        answer(&Ask::of(&request)),
        [DemoStep::Say(words.to_owned())]
    );
}

/// The summary counts and quotes user messages, or fails on request, in both forms.
#[test]
fn a_summary_counts_and_quotes() {
    let mut messages = Vec::new();
    for number in 1..=20 {
        messages.push(said(&format!("count to {number}")));
        messages.push(Message::text(Role::Assistant, "1 2 3"));
    }
    let as_text = |wishes| {
        let mut chunks = SummaryChunks::new(&messages, 100_000);
        chunks.next_request(None, wishes).unwrap()
    };
    let as_sent = |wishes| {
        let mut messages = messages.clone();
        messages.push(summary_message(wishes));
        request(messages, &["bash"])
    };
    let both = |wishes| [as_text(wishes), as_sent(wishes)];
    for request in both(None) {
        let [DemoStep::Say(text)] = &summarise(&Ask::of(&request))[..] else {
            panic!("it says something")
        };
        assert!(
            text.starts_with("The user sent 20 messages. The last ones: count to 9 / "),
            "{text}"
        );
        assert!(text.contains("count to 20."), "{text}");
    }
    for request in both(Some("fail")) {
        let written = summarise(&Ask::of(&request));
        assert!(matches!(written[..], [DemoStep::Fail(_)]));
    }
}
