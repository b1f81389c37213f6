//! Skills, commands and agent definitions, in the built program.

use std::fs;

use crate::support::TestUser;

/// A user in a trusted project with these files.
fn with_files(files: &[(&str, &str)]) -> TestUser {
    let user = TestUser::new();
    for (name, text) in files {
        let path = user.home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let trusted = user.ikigai(&["trust", "--yes"]);
    assert_eq!(trusted.code, Some(0), "{}", trusted.err);
    user
}

fn request(user: &TestUser, agent: &[&str]) -> String {
    let mut arguments = vec!["log", "--request"];
    arguments.extend(agent);
    user.ikigai(&arguments).out
}

#[test]
fn a_command_is_sent_as_its_prompt_and_shown_as_typed() {
    let user = with_files(&[(
        "project/.claude/commands/git/fix.md",
        "---\ndescription: Fixes\n---\nFix issue $1 of:\n!`echo from the command` @notes.txt",
    )]);
    fs::write(user.home().join("project/notes.txt"), "the notes").unwrap();

    let ran = user.ikigai(&["run", "--approve", "all", "/fix 12"]);

    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let sent = request(&user, &[]);
    assert!(
        sent.contains("Fix issue 12 of:\\nfrom the command"),
        "{sent}"
    );
    assert!(sent.contains("the notes"), "{sent}");
    let shown = user.ikigai(&["log"]).out;
    assert!(shown.contains("❯ /fix 12"), "{shown}");
    assert!(!shown.contains("❯ Fix issue"), "{shown}");
}

#[test]
fn a_command_in_a_prompt_that_needs_approval_stops_the_message() {
    let user = with_files(&[(
        "project/.claude/commands/push.md",
        "Output: !`touch made; git push`",
    )]);

    let ran = user.ikigai(&["run", "/push"]);

    assert_ne!(ran.code, Some(0), "{}", ran.out);
    assert!(ran.err.contains("needs approval"), "{}", ran.err);
    assert!(!user.home().join("project/made").exists());
}

#[test]
fn a_command_of_a_project_that_is_not_trusted_is_unknown() {
    let user = with_files(&[("project/.claude/commands/fix.md", "Fix it")]);
    user.ikigai(&["trust", "--revoke"]);

    let ran = user.ikigai(&["run", "/fix"]);

    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(!request(&user, &[]).contains("Fix it"));
}

#[test]
fn the_model_learns_of_skills_and_can_open_them() {
    let skill = "---\nname: pdf\ndescription: Fills in forms\n---\nUse tool X for $ARGUMENTS";
    let user = with_files(&[(".claude/skills/pdf/SKILL.md", skill)]);

    user.ikigai(&["run", "hello"]);
    let sent = request(&user, &[]);
    let called = user.ikigai(&["run", "/pdf the form"]);

    assert!(sent.contains("- pdf: Fills in forms"), "{sent}");
    assert!(sent.contains("\"name\": \"skill\"") || sent.contains("\"name\":\"skill\""));
    assert_eq!(called.code, Some(0), "{}", called.err);
    assert!(request(&user, &[]).contains("Use tool X for the form"));
    let help = user.ikigai(&["run", "/help"]).out;
    assert!(help.contains("/pdf"), "{help}");
}

#[test]
fn a_child_can_have_an_agent_definition() {
    let user = with_files(&[(
        "project/.claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Reviews\ntools: Read, Grep\n---\nYou review changes.",
    )]);

    let ran = user.ikigai(&["run", "/fork --as reviewer --name judge \"say hello\""]);
    let missing = user.ikigai(&["run", "/fork --as missing \"say hello\""]);

    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let sent = request(&user, &["judge"]);
    assert!(sent.contains("You review changes."), "{sent}");
    assert!(
        sent.contains("file_read") && !sent.contains("file_write"),
        "{sent}"
    );
    let all = format!("{}{}", missing.out, missing.err);
    assert!(all.contains("There are: reviewer"), "{all}");
}
