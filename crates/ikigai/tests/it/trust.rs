//! Trust in projects, in the built program.

use std::fs;

use crate::support::{PROGRAM, TestUser};

/// A project with a command and a tool.
fn project() -> TestUser {
    let user = TestUser::new();
    let commands = user.home().join("project/.claude/commands");
    fs::create_dir_all(&commands).unwrap();
    fs::write(commands.join("fix.md"), "Fix everything").unwrap();
    user
}

#[test]
fn a_one_shot_run_says_once_what_it_did_not_load_and_goes_on() {
    let user = project();
    let notice = "Not loaded, because this project is not trusted: 1 command. \
                  Review and trust: ikigai trust";

    let first = user.ikigai(&["run", "hello"]);
    let trusting = user.ikigai(&["run", "--trust", "hello"]);
    let later = user.ikigai(&["run", "hello"]);

    assert_eq!(first.code, Some(0), "{}", first.err);
    assert_eq!(first.err.matches(notice).count(), 1, "{}", first.err);
    for silent in [trusting, later] {
        assert_eq!(silent.code, Some(0), "{}", silent.err);
        assert!(!silent.err.contains("Not loaded"), "{}", silent.err);
    }
}

#[test]
fn trust_is_shown_given_and_revoked() {
    let user = project();
    let row = |state: &str| {
        format!("  {state:<8} command  .claude/commands/fix.md  fix: Fix everything\n")
    };

    assert_eq!(user.ikigai(&["trust"]).out, row("new"));
    assert_eq!(user.ikigai(&["trust", "--yes"]).out, row("trusted"));
    fs::write(
        user.home().join("project/.claude/commands/fix.md"),
        "Fix everything\nand push",
    )
    .unwrap();
    assert_eq!(user.ikigai(&["trust"]).out, row("changed"));
    assert_eq!(user.ikigai(&["trust", "--no"]).out, row("refused"));
    let revoked = user.ikigai(&["trust", "--revoke"]);
    assert!(revoked.err.starts_with("Revoked"), "{}", revoked.err);
    assert_eq!(user.ikigai(&["trust"]).out, row("new"));
}

#[test]
fn the_screen_asks_one_question_before_it_opens_and_not_again() {
    let user = project();

    let mut first = user.in_terminal(PROGRAM, &["--plain"], 100, 30);
    first.wait_for_text("Trust them as they are now?");
    first.send("y\r");
    first.wait_for_text("you: ");
    first.hang_up();

    assert!(user.ikigai(&["trust"]).out.contains("trusted"));
    let mut second = user.in_terminal(PROGRAM, &["--plain"], 100, 30);
    second.wait_for_text("you: ");
    assert!(!second.text().contains("Trust them"), "{}", second.text());
}
