//! Lines other than slash commands: `!command`, `!!command`, `@path`.

use std::fs;
use std::time::Duration;

use ikigai_core::data::{self, Cause, CommandData, Shell, UserData};
use ikigai_engine::{EngineError, Outcome, Safety, Stop, UiEvent, UserInput, UserRequest};
use ikigai_testkit::Step;

use super::support::{agent_in_a_directory, line, seen, survives, texts, typed};
use crate::fakes::{FakeCall, calling};
use crate::support::{World, attended_line, interrupt, say};

/// E19a: output of a `!` line reaches the model, that of `!!` does not.
#[tokio::test]
async fn shell_line_reaches_model_double_bang_does_not() {
    let world = World::new();
    let (place, mut worker) = agent_in_a_directory(&world).await;
    fs::write(place.path().join("a.txt"), "").unwrap();

    let (done, told) = typed(&mut worker, "!ls; echo oops >&2; exit 3").await;
    let hidden = line(&mut worker, "!!echo secret").await;

    assert_eq!(
        (done.warned, done.outcome),
        (true, None),
        "exit 3 is a warning"
    );
    let is_printed = |update: &UiEvent| matches!(update, UiEvent::Printed(_));
    assert!(told.iter().any(is_printed), "{told:?}");
    assert_eq!(world.provider.requests().len(), 0);
    assert_eq!(hidden.output, "$ echo secret\nsecret\n(exit 0)");
    let rows = world.rows(worker.agent().state.agent()).await;
    let [ran, kept] = rows.as_slice()[rows.len() - 2..].as_ref() else {
        panic!("{rows:#?}");
    };
    let text = "$ ls; echo oops >&2; exit 3\na.txt\noops\n(exit 3)";
    assert_eq!(ran.content.as_deref(), Some(text));
    let user: UserData = data::read(ran.data.as_deref());
    let shell = Shell {
        command: Some("ls; echo oops >&2; exit 3".to_owned()),
        exit: Some(3),
    };
    assert_eq!(user.shell, Some(shell));
    let command: CommandData = data::read(kept.data.as_deref());
    assert_eq!(command.echo.as_deref(), Some("!!echo secret"));

    world.provider.will_say("I see");
    say(&mut worker, "look").await.unwrap();
    assert_eq!(texts(&world, &worker).await, [text, "look", "I see"]);
    survives(&world, worker).await;
}

#[tokio::test]
async fn a_shell_line_is_stopped_by_an_interrupt_and_what_it_printed_is_kept() {
    let world = World::new();
    let (_place, mut worker) = agent_in_a_directory(&world).await;

    let (done, _) = attended_line(
        &mut worker,
        "!echo begun; sleep 1000",
        |update| match update {
            UiEvent::Printed(_) => vec![interrupt()],
            _ => Vec::new(),
        },
    )
    .await;

    assert!(matches!(done.outcome, Some(Outcome::Interrupted(_))));
    let said = texts(&world, &worker).await;
    assert_eq!(said, ["$ echo begun; sleep 1000\nbegun\n(stopped)"]);
    survives(&world, worker).await;
}

#[tokio::test]
async fn whoever_leaves_during_a_shell_line_leaves_the_turn_too() {
    let (world, _) = World::with_fakes();
    let (_place, mut worker) = agent_in_a_directory(&world).await;
    let quick = FakeCall::new("change", "quick").taking(Duration::ZERO);
    world.provider.will(calling(&[quick]));
    world.provider.will([Step::Hang]);
    let leave = UserRequest::Stop(Stop::Interrupt(Cause::Exit));

    let (done, _) = attended_line(&mut worker, "hello", |update| match update {
        UiEvent::Running(_) => vec![UserRequest::parse("!echo begun; sleep 1000")],
        UiEvent::Printed(_) => vec![leave.clone()],
        _ => Vec::new(),
    })
    .await;

    assert_eq!(done.outcome, Some(Outcome::Interrupted(Cause::Exit)));
    assert_eq!(
        texts(&world, &worker).await[1],
        "$ echo begun; sleep 1000\nbegun\n(stopped)"
    );
    survives(&world, worker).await;
}

#[tokio::test]
async fn a_shell_line_needs_a_directory() {
    let world = World::new();
    let mut worker = world.root().await;

    for (typed, name) in [("!true", "!"), ("!!true", "!!")] {
        let came = line(&mut worker, typed).await;

        assert!(came.warned);
        assert_eq!(
            came.output,
            "⚠ /home/margaret/parser is not a directory · /cd PATH"
        );
        let rows = world.rows(worker.agent().state.agent()).await;
        let row = rows.last().unwrap();
        let command: CommandData = data::read(row.data.as_deref());
        assert_eq!(command.command.as_deref(), Some(name));
    }
    survives(&world, worker).await;
}

#[tokio::test]
async fn a_message_brings_the_files_that_it_names() {
    let world = World::new();
    let (place, mut worker) = agent_in_a_directory(&world).await;
    fs::create_dir(place.path().join("src")).unwrap();
    fs::write(place.path().join("src/a.rs"), "one\ntwo ```\nthree\n").unwrap();
    let cases = [
        (
            "fix @src/a.rs.",
            "@src/a.rs · 18 bytes",
            "@src/a.rs:\n````\none\ntwo ```\nthree\n````",
        ),
        (
            "(@src/a.rs:2-9)",
            "@src/a.rs:2-9 of 3 lines · 13 bytes",
            "@src/a.rs:2-9 of 3 lines:\n````\ntwo ```\nthree\n````",
        ),
        (
            "see @src/a.rs:1",
            "@src/a.rs:1 of 3 lines · 3 bytes",
            "@src/a.rs:1 of 3 lines:\n```\none\n```",
        ),
        (
            "what is in @src?",
            "@src/ · 1 entry",
            "@src/ (directory, 1 entry):\n```\na.rs\n```",
        ),
        (
            "and @src/ too",
            "@src/ · 1 entry",
            "@src/ (directory, 1 entry):\n```\na.rs\n```",
        ),
    ];

    for (text, notice, attached) in cases {
        world.provider.will_say("ok");
        let (_, told) = typed(&mut worker, text).await;
        assert!(
            told.contains(&UiEvent::Notice(notice.to_owned())),
            "{told:#?}"
        );
        let said = texts(&world, &worker).await;
        assert_eq!(said[said.len() - 2], format!("{text}\n\n{attached}"));
        let shown = seen(&world, &worker).await.scrollback;
        assert!(shown.contains(&format!("❯ {text}")), "{shown:#?}");
    }
    for text in ["ask @margaret", "add @types/node", "mail me@src/a.rs", "@"] {
        world.provider.will_say("ok");
        say(&mut worker, text).await.unwrap();
        let said = texts(&world, &worker).await;
        assert_eq!(said[said.len() - 2], text);
    }
    survives(&world, worker).await;
}

#[tokio::test]
async fn a_file_that_cannot_be_brought_is_said_before_anything_is_sent() {
    let place = tempfile::tempdir().unwrap();
    let workdir = place.path().to_str().unwrap().to_owned();
    let hidden = place.path().join("key");
    fs::write(&hidden, "secret").unwrap();
    fs::create_dir(place.path().join("src")).unwrap();
    fs::write(place.path().join("binary"), [0, 1, 2]).unwrap();
    fs::write(place.path().join("large"), "x".repeat(300_000)).unwrap();
    fs::write(place.path().join("short"), "x\n").unwrap();
    let world = World::new().equipped(move |engine| {
        let safety = Safety {
            hidden: vec![hidden.clone()].into(),
            ..Safety::default()
        };
        engine.with_tools(std::sync::Arc::new(Vec::new()), safety)
    });
    let mut worker = world.engine.create_root(&workdir, &workdir).await.unwrap();
    let cases = [
        (
            "@src/nothing",
            "src/nothing cannot be read: No such file or directory (os error 2)",
        ),
        (
            "@./nothing",
            "nothing cannot be read: No such file or directory (os error 2)",
        ),
        (
            "@nothing:3",
            "nothing cannot be read: No such file or directory (os error 2)",
        ),
        (
            "@nothing.md",
            "nothing.md cannot be read: No such file or directory (os error 2)",
        ),
        ("@binary", "binary is not a text file"),
        ("@large", "large is larger than 256.0 KB"),
        ("@short:2", "short has 1 line, not 2"),
        (
            "@key",
            "`key` is off limits for tools: it holds keys or data of ikigai",
        ),
    ];

    for (text, expected) in cases {
        match say(&mut worker, text).await {
            Err(EngineError::NotSent(reason)) => assert_eq!(reason, expected, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }

    assert_eq!(world.provider.requests().len(), 0);
    let kinds = world.kinds(worker.agent().state.agent()).await;
    assert_eq!(kinds, ["system", "command"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_brings_its_files_or_is_handed_back() {
    let (world, _) = World::with_fakes();
    let (place, mut worker) = agent_in_a_directory(&world).await;
    fs::write(place.path().join("a.md"), "text").unwrap();
    world
        .provider
        .will(calling(&[FakeCall::new("change", "slow")]));
    world.provider.will_say("done");

    let (_, told) = attended_line(&mut worker, "work", |update| match update {
        UiEvent::Running(_) => ["see @a.md", "see @./b.md"]
            .map(|text| UserRequest::Line(UserInput::Message(text.to_owned())))
            .into(),
        _ => Vec::new(),
    })
    .await;

    let refused = UiEvent::NotStored {
        id: None,
        input: UserInput::parse("see @./b.md"),
        reason: "b.md cannot be read: No such file or directory (os error 2)".to_owned(),
    };
    assert!(told.contains(&refused), "{told:#?}");
    let said = texts(&world, &worker).await;
    assert_eq!(
        said,
        ["work", "see @a.md\n\n@a.md:\n```\ntext\n```", "done"]
    );
    survives(&world, worker).await;
}
