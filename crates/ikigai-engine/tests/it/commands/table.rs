//! The command table, parsing of lines, and rows common to all commands.

use ikigai_core::data::{self, CommandData};
use ikigai_core::render::Shown;
use ikigai_core::words::Severity;
use ikigai_engine::UserInput;
use ikigai_engine::commands::{all, page};
use serde_json::{Value, json};

use super::support::{line, printed, seen, survives};
use crate::support::{World, say};

#[test]
fn names_are_unique_and_every_command_says_what_it_does() {
    let mut names: Vec<_> = all()
        .flat_map(|command| command.aliases.iter().chain([&command.name]).copied())
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();

    assert_eq!(names.len(), count);
    for command in all() {
        assert!(!command.help.is_empty(), "/{}", command.name);
        assert!(!command.help.ends_with('.'), "/{}", command.name);
        for (example, _) in command.examples {
            let UserInput::Command(found) = UserInput::parse(*example) else {
                panic!("{example} is no command");
            };
            assert_eq!(found.command, command);
        }
    }
}

/// `docs/commands.md` matches the command table.
#[test]
fn commands_page_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
    if std::env::var_os("IKIGAI_WRITE_DOCS").is_some() {
        std::fs::write(path, page()).unwrap();
    }

    let stored = std::fs::read_to_string(path).unwrap_or_default();

    assert!(
        stored == page(),
        "docs/commands.md is not current: \
         IKIGAI_WRITE_DOCS=1 cargo test -p ikigai-engine --test it commands_page"
    );
}

#[test]
fn only_a_first_word_that_begins_with_a_letter_after_a_slash_is_a_command() {
    let what = |line: &str| match UserInput::parse(line) {
        UserInput::Message(text) => format!("message {text}"),
        UserInput::Command(typed) => format!("command {} {}", typed.command.name, typed.arguments),
        UserInput::Unknown(typed) => format!("unknown {} {}", typed.name, typed.arguments),
        UserInput::Shell(typed) => format!("shell {} {}", typed.command, typed.sent),
    };
    let cases = [
        ("/mark", "command mark "),
        ("/mark  a  b ", "command mark a  b"),
        ("/exit", "command quit "),
        ("/mark\nx", "command mark x"),
        ("/rewnid 3", "unknown rewnid 3"),
        ("/Mark", "unknown Mark "),
        ("/usr/bin/x", "message /usr/bin/x"),
        ("/tmp2", "unknown tmp2 "),
        ("/2tmp", "message /2tmp"),
        ("/", "message /"),
        ("/ mark", "message / mark"),
        (" /mark", "message  /mark"),
        ("//mark", "message //mark"),
        ("a /mark", "message a /mark"),
        ("!ls -l", "shell ls -l true"),
        ("!!ls", "shell ls false"),
        ("! ", "message ! "),
        ("!!", "message !!"),
        (" !ls", "message  !ls"),
        ("", "message "),
    ];

    for (line, expected) in cases {
        assert_eq!(what(line), expected, "{line:?}");
        assert_eq!(UserInput::parse(line).line(), line);
    }
}

/// S3-22a: echo and output of commands are the same on screen after a restart.
#[tokio::test]
async fn commands_and_warnings_are_the_same_after_a_restart() {
    let world = World::new();
    world.provider.will_say("hi");
    let mut worker = world.root().await;
    say(&mut worker, "hello").await.unwrap();

    let cases = [
        ("/mark a", "⚑ a · /rewind a to return"),
        (
            "/rewnid 3",
            "⚠ no command /rewnid · did you mean /rewind? · start with a space to send it as text",
        ),
        (
            "/frobnicate",
            "⚠ no command /frobnicate · /help lists them · start with a space to send it as text",
        ),
        (
            "/undo now",
            "⚠ /undo takes no arguments · /undo [--files | --conversation]",
        ),
        ("/help \"x", "⚠ missing closing \" · /help [command]"),
    ];
    for (typed, expected) in cases {
        assert_eq!(printed(&mut worker, typed).await, expected, "{typed}");
    }

    let shown = seen(&world, &worker).await.scrollback;
    for (typed, output) in cases {
        let drawn = format!("{typed}\n\n{output}");
        assert!(shown.contains(&drawn), "{drawn} is not in {shown:#?}");
    }
    survives(&world, worker).await;
}

/// A command that other programs have exists, or its warning names the way to it here.
#[tokio::test]
async fn commands_of_other_programs_lead_somewhere() {
    let world = World::new();
    let mut worker = world.root().await;

    for name in [
        "resume", "quit", "exit", "cost", "agents", "model", "help", "diff",
    ] {
        let typed = format!("/{name}");
        assert!(
            matches!(UserInput::parse(typed), UserInput::Command(_)),
            "{name}"
        );
    }
    for (typed, instead) in [
        ("/new", "/clear"),
        ("/status", "/context"),
        ("/init", "AGENTS.md"),
        ("/review", "git diff"),
        ("/config", "ikigai config"),
        ("/permissions", "/approve"),
    ] {
        let output = printed(&mut worker, typed).await;

        let head = format!("⚠ no command {typed} · ");
        assert!(output.starts_with(&head), "{output}");
        assert!(output.contains(instead), "{output}");
    }
}

/// Commands that need a screen are refused without one.
#[tokio::test]
async fn what_only_a_screen_can_do_is_refused_without_one() {
    let world = World::new();
    let mut worker = world.root().await;

    for typed in [
        "/theme dark",
        "/mouse on",
        "/view",
        "/refresh",
        "/keys",
        "/copy",
    ] {
        let came = line(&mut worker, typed).await;
        let name = typed.split(' ').next().unwrap();
        let needs = format!("⚠ {name} needs a screen · start `ikigai` without `run`");
        assert_eq!(came.output, needs);
        assert_eq!(came.next, None, "{typed}");
    }
}

#[tokio::test]
async fn a_key_that_is_typed_after_a_command_is_in_no_row() {
    let world = World::new();
    let mut worker = world.root().await;
    let key = "sk-ant-0123456789abcdefghijkl";

    let lines = [
        format!("/key anthropic {key}"),
        format!("/key {key}"),
        "/key openai".to_owned(),
    ];
    for typed in &lines {
        line(&mut worker, typed).await;
    }

    let rows = world.rows(worker.agent().state.agent()).await;
    let commands = rows.iter().filter(|row| row.kind.name() == "command");
    let echoes: Vec<_> = commands
        .filter_map(|row| data::read::<CommandData>(row.data.as_deref()).echo)
        .collect();
    assert_eq!(echoes, ["/key anthropic", "/key", "/key openai"]);
    assert!(!format!("{rows:?}").contains(key));
}

/// S3-23 S3-44: a command row has the output as content; its data has arguments and echo.
#[tokio::test]
async fn a_command_is_stored_with_its_arguments_its_echo_and_its_output() {
    let world = World::new();
    let mut worker = world.root().await;

    line(&mut worker, "/mark  \"a \\ b\"  ").await;
    line(&mut worker, "/exit").await;

    let rows = world.rows(worker.agent().state.agent()).await;
    let stored: Vec<_> = rows
        .iter()
        .skip(2)
        .filter(|row| row.kind.name() == "command")
        .map(|row| {
            let data: Value = serde_json::from_str(row.data.as_deref().unwrap()).unwrap();
            (row.content.as_deref().unwrap(), data)
        })
        .collect();
    let mark = json!({"command": "mark", "args": "\"a \\ b\"", "echo": "/mark  \"a \\ b\""});
    let quit = json!({"command": "quit", "echo": "/exit"});
    assert_eq!(
        stored,
        [("⚑ a \\ b · /rewind a \\ b to return", mark), ("", quit)]
    );
    survives(&world, worker).await;
}

/// S3-42: a command row is shown as echo, empty line and output.
#[tokio::test]
async fn a_command_row_is_shown_as_echo_and_output() {
    let world = World::new();
    let mut worker = world.root().await;
    line(&mut worker, "/mark a").await;

    let live: Vec<_> = worker.agent().view.scrollback().collect();
    let drawn = live.last().unwrap();

    let expected = Shown::Command {
        echo: "/mark a".to_owned(),
        output: "⚑ a · /rewind a to return".to_owned(),
        severity: Severity::Info,
    };
    assert_eq!(*drawn, expected);
    assert_eq!(drawn.to_string(), "/mark a\n\n⚑ a · /rewind a to return");
    // The row with the starting settings has no echo.
    let seen = seen(&world, &worker).await.scrollback;
    assert_eq!(seen.len(), 3, "{seen:#?}");
    survives(&world, worker).await;
}
