//! Settings, their origins, and shell completions.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::TestUser;

fn configured() -> TestUser {
    let user = TestUser::new();
    let home = user.home();
    fs::create_dir_all(home.join(".config/ikigai")).unwrap();
    let yours = r#"
model = "demo"
mouse = false
[keys]
"ctrl-o" = "newline"
[limits]
requests = 50
[[permissions.refuse]]
tool = "bash"
pattern = "sudo *"
[providers.mine]
base_url = "http://me:hunter2@127.0.0.1:9"
headers = { "X-Api-Key" = "hunter2" }
key_command = "echo sk-ant-0123456789abcdefghijkl"
"#;
    fs::write(home.join(".config/ikigai/config.toml"), yours).unwrap();
    let project = home.join("project/.ikigai");
    fs::create_dir_all(&project).unwrap();
    let theirs = r#"
model = "anthropic:claude-opus-5-5/low"
mouse = true
[limits]
requests = 90
calls = 5
[[permissions.refuse]]
tool = "file_*"
"#;
    fs::write(project.join("config.toml"), theirs).unwrap();
    let trusted = user.ikigai(&["trust", "--yes"]);
    assert_eq!(trusted.code, Some(0), "{}", trusted.err);
    user
}

#[test]
fn a_project_that_is_not_trusted_can_only_restrict() {
    let user = configured();
    let revoked = user.ikigai(&["trust", "--revoke"]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.err);

    let said = user.ikigai(&["config"]);

    let has = |line: &str| said.out.contains(line);
    assert!(!has("anthropic:claude-opus-5-5/low"), "{}", said.out);
    assert!(has("calls = 5  # the project's file"), "{}", said.out);
    assert!(has("not trusted: it can only restrict"), "{}", said.out);
}

#[test]
fn every_setting_is_told_with_its_origin_and_without_secrets() {
    let user = configured();

    let said = user.ikigai(&["config"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let expected = [
        "model = \"anthropic:claude-opus-5-5/low\"  # the project's file",
        "mouse = false  # your file",
        "theme = \"terminal\"  # default",
        "# symbols: not set (default: from the locale)",
        "[keys]",
        "ctrl-o = \"newline\"  # your file",
        "requests = 50  # your file",
        "calls = 5  # the project's file",
        "minutes = 480  # default",
        "# your file and the project's",
        "[providers.mine]",
        "base_url = \"http://me:[secret]@127.0.0.1:9\"  # your file",
        "headers = { X-Api-Key = \"[secret]\" }  # your file",
        "key_command = \"[secret]\"  # your file",
    ];
    for line in expected {
        assert!(said.out.contains(line), "{line} is not in\n{}", said.out);
    }
    for secret in ["hunter2", "sk-ant"] {
        assert!(!said.out.contains(secret), "{}", said.out);
    }

    let said = user.ikigai(&["config", "--json", "--db", "/tmp/other.db"]);
    let lines = said.out.lines().map(serde_json::from_str::<Value>);
    let lines: Vec<_> = lines.map(Result::unwrap).collect();
    let of = |key: &str| lines.iter().find(|line| line["key"] == key).unwrap();
    assert_eq!(of("store")["value"], "/tmp/other.db");
    assert_eq!(of("store")["from"], "--db");
    assert_eq!(of("limits.calls")["value"], 5);
    let refused = of("permissions.refuse")["value"].as_array().unwrap();
    assert_eq!(refused.len(), 2);
}

/// The output of `ikigai config` is a configuration with the same settings.
#[test]
fn what_is_told_can_be_kept_as_a_file() {
    let user = configured();
    let before = user.ikigai(&["config"]).out;
    fs::remove_file(user.home().join("project/.ikigai/config.toml")).unwrap();

    let file = user.home().join(".config/ikigai/config.toml");
    fs::write(file, &before).unwrap();
    let said = user.ikigai(&["config"]);

    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("calls = 5  # your file"), "{}", said.out);
}

#[test]
fn a_mistake_is_told_with_its_place_and_help_lists_every_key() {
    let user = configured();
    let help = user.ikigai(&["config", "--help"]);
    for words in [
        "on_hangup                     \"background\"",
        "limits.minutes                480",
        "limits.process_hours          24",
        "providers.*.base_url",
        "IKIGAI_DB overrides it",
    ] {
        assert!(help.out.contains(words), "{words} is not in {}", help.out);
    }

    let file = user.home().join(".config/ikigai/config.toml");
    fs::write(file, "modl = 1\n").unwrap();
    let said = user.ikigai(&["config"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("line 1"), "{}", said.err);
}

#[test]
fn shells_are_told_what_can_be_typed() {
    let user = TestUser::new();
    for shell in ["bash", "zsh", "fish"] {
        let said = user.ikigai(&["completions", shell]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.out.contains("doctor"), "{}", said.out);
        assert!(said.out.contains("until-idle"), "{}", said.out);
    }
    let bash = user.ikigai(&["completions", "bash"]).out;
    let script = format!(
        "{bash}\nCOMP_WORDS=(ikigai comp); COMP_CWORD=1; _ikigai ikigai comp ikigai; echo \"${{COMPREPLY[@]}}\""
    );

    let completed = Command::new("bash").args(["-c", &script]).output().unwrap();

    let words = String::from_utf8_lossy(&completed.stdout);
    assert_eq!(words.trim(), "completions", "{completed:?}");
    assert_eq!(user.ikigai(&["completions", "tcsh"]).code, Some(2));
}
