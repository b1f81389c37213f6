//! Long conversations and their cost, seen from the shell.

use serde_json::Value;

use crate::control::{ctl, screen, start};
use crate::support::{PROGRAM, TestUser};

/// Runs many turns with the demo model, more than its window holds.
fn talk(user: &TestUser, turns: usize) {
    for turn in 0..turns {
        let said = user.ikigai(&["run", &format!("count to 300, round {turn}")]);
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
}

fn configure(user: &TestUser, text: &str) {
    let directory = user.home().join(".config/ikigai");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.toml"), text).unwrap();
}

#[test]
fn a_conversation_beyond_its_budget_goes_on_and_is_compacted_and_brought_back() {
    let user = TestUser::new();
    configure(&user, "budget_tokens = 6000\ncompact_at = 0\n");
    talk(&user, 16);

    let context = user.ikigai(&["run", "/context"]).out;
    assert!(context.contains("% of 6.0k"), "{context}");
    assert!(
        context.contains(" earlier turns · /context undo"),
        "{context}"
    );
    let before = user.ikigai(&["log", "--request"]).out;
    let compacted = user.ikigai(&["run", "/compact"]).out;
    assert!(compacted.contains(" turns summarised: "), "{compacted}");
    let after = user.ikigai(&["log", "--request"]).out;
    let request: Value = serde_json::from_str(&after).unwrap();
    let first = request["messages"][0]["blocks"][0]["text"].as_str();
    assert!(
        first.is_some_and(|text| text.starts_with("Summary of the conversation")),
        "{after}"
    );
    user.ikigai(&["run", "/compact --undo"]);

    assert_eq!(user.ikigai(&["log", "--request"]).out, before);
}

#[test]
fn a_full_conversation_is_summarised_by_itself() {
    let user = TestUser::new();
    configure(&user, "budget_tokens = 8500\ncompact_at = 50\n");

    talk(&user, 14);

    let log = user.ikigai(&["log"]).out;
    assert!(
        log.contains("── summary ──\nSummary of the conversation"),
        "{log}"
    );
    assert!(!log.contains("── context"), "nothing had to be cut: {log}");
    configure(&user, "compact_at = 101\n");
    let wrong = user.ikigai(&["run", "hello"]);
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong.err.contains("expected 0 to 100 percent"),
        "{}",
        wrong.err
    );
}

#[test]
fn past_requests_are_printed_in_every_dialect() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", "count to 3"]);

    let first = user.ikigai(&["log", "--request", "--at", "#3"]);
    let request: Value = serde_json::from_str(&first.out).unwrap();

    assert_eq!(
        request["messages"].as_array().unwrap().len(),
        1,
        "{}",
        first.out
    );
    for (dialect, key) in [
        ("responses", "input"),
        ("chat", "messages"),
        ("messages", "messages"),
        ("gemini", "contents"),
        ("own", "messages"),
    ] {
        let order = ["log", "--request", "--at", "3", "--dialect", dialect];
        let spelled = user.ikigai(&order);
        assert_eq!(spelled.code, Some(0), "{}", spelled.err);
        let body: Value = serde_json::from_str(&spelled.out).unwrap();
        let said = body[key].to_string();
        assert!(
            said.contains("hello") && !said.contains("count"),
            "{dialect}: {said}"
        );
    }
    let nowhere = user.ikigai(&["log", "--request", "--at", "#99"]);
    assert_eq!(nowhere.code, Some(1), "{}", nowhere.err);
    assert!(nowhere.err.contains("99"), "{}", nowhere.err);
    let nothing = user.ikigai(&["log", "--request", "--at", "#x"]);
    assert!(
        nothing.err.contains("invalid event `#x`"),
        "{}",
        nothing.err
    );
    assert_eq!(user.ikigai(&["log", "--at", "#3"]).code, Some(2));
}

#[test]
fn cost_is_printed_by_agent_model_and_day() {
    let user = TestUser::new();
    let nobody = user.ikigai(&["cost"]);
    assert_eq!((nobody.code, nobody.out.as_str()), (Some(0), ""));
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", "--fresh", "hello"]);

    let text = user.ikigai(&["cost"]).out;

    assert!(text.starts_with("project "), "{text}");
    assert!(text.contains("  with descendants (1): "), "{text}");
    assert!(text.contains("\n  child "), "{text}");
    let line = |arguments: &[&str]| -> Value {
        let said = user.ikigai(arguments);
        serde_json::from_str(said.out.lines().next().unwrap()).unwrap()
    };
    let agent = line(&["cost", "--json"]);
    assert_eq!(
        (&agent["name"], &agent["descendants"]),
        (&"project".into(), &1.into())
    );
    let model = line(&["cost", "--by", "model", "--json"]);
    assert_eq!(
        (&model["model"], &model["responses"]),
        (&"demo:demo".into(), &2.into())
    );
    assert_eq!(model["input"], agent["family"]["input"]);
    let day = line(&["cost", "child", "--by", "day", "--json"]);
    assert_eq!(day["responses"], 1);
    assert_eq!(day["day"].as_str().unwrap().len(), 10);
}

#[test]
fn shares_of_the_context_are_configured_listed_and_checked() {
    let user = TestUser::new();
    configure(&user, "compact_at = 35\n[context]\nresult_kb = 8\n");

    let listed = user.ikigai(&["config"]).out;

    assert!(
        listed.contains("\nresult_kb = 8  # your file\n"),
        "{listed}"
    );
    let lowered = "\nshorten_at = 35  # default, lowered to fit the others\n";
    assert!(listed.contains(lowered), "{listed}");
    assert!(
        listed.contains("\nkeep_messages = 20  # default\n"),
        "{listed}"
    );
    configure(&user, "[context]\nshorten_at = 90\n");
    let wrong = user.ikigai(&["run", "hello"]);
    assert_eq!(wrong.code, Some(1));
    let expected = "`context.shorten_at` (90) must not exceed `compact_at` (80)";
    assert!(wrong.err.contains(expected), "{}", wrong.err);
    configure(&user, "[context]\nresult_kb = 0\n");
    let wrong = user.ikigai(&["config"]);
    assert!(wrong.err.contains("expected 1 to 1024"), "{}", wrong.err);
}

#[test]
fn a_message_over_half_of_the_budget_is_refused_everywhere() {
    let user = TestUser::new();
    configure(&user, "budget_tokens = 5000\n");
    let text = "all work and no play\n".repeat(1000);
    std::fs::write(user.home().join("project/big.txt"), &text).unwrap();
    user.ikigai(&["run", "hello"]);
    let rows = || user.ikigai(&["log", "--all", "--json"]).out;
    let before = rows();

    for prompt in [text.as_str(), "read @big.txt", &format!("/fork {text}")] {
        let refused = user.ikigai(&["run", prompt]);
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        let expected = "k tokens; at most 2.5k, half of the budget, can be sent";
        assert!(refused.err.contains(expected), "{}", refused.err);
        assert!(refused.err.len() < 1000, "{}", refused.err);
    }
    assert_eq!(rows(), before);

    let mut pty = user.in_terminal(PROGRAM, &["--plain"], 100, 50);
    pty.wait_for_text("you: ");
    pty.send("read @big.txt\r");
    pty.wait_for_text("half of the budget, can be sent");
    pty.wait_for("the prompt", |screen| {
        screen.contents().trim_end().ends_with("\nyou:")
    });
    pty.send("\x04");
    assert!(pty.wait_end().success());
    assert_eq!(rows(), before);

    let program = start(&user, &["--size", "80x20"]);
    let refused = ctl(&user, &["submit", "read @big.txt"]);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(
        refused.err.contains("half of the budget, can be sent"),
        "{}",
        refused.err
    );
    assert!(screen(&program).contains("read @big.txt"));
    assert_eq!(program.end(), Ok(()));
    assert_eq!(rows(), before);
}

#[test]
fn a_summary_is_edited_in_the_users_editor_on_the_screen_only() {
    let user = TestUser::new();
    talk(&user, 2);
    let editor = user.home().join("editor.sh");
    std::fs::write(&editor, "echo \"MY OWN SUMMARY\" > \"$1\"\n").unwrap();
    let variable = format!("EDITOR=sh {}", editor.display());
    let mut pty = user.in_terminal("env", &["-u", "VISUAL", &variable, PROGRAM], 100, 40);
    pty.wait_for_text("? keys");

    pty.send("/compact --edit\r");
    pty.wait_for_text("turns summarised: ");
    // The agent may still be busy, so the program may ask before it quits.
    pty.send("\x04q");
    assert!(pty.wait_end().success());

    let request = user.ikigai(&["log", "--request"]).out;
    let request: Value = serde_json::from_str(&request).unwrap();
    assert_eq!(
        request["messages"][0]["blocks"][0]["text"],
        "MY OWN SUMMARY"
    );
    let refused = user.ikigai(&["run", "/compact --edit"]);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    let said = format!("{}{}", refused.out, refused.err);
    assert!(said.contains("needs a screen"), "{said}");
}
