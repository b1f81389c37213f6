//! Commands that change settings.

use ikigai_core::Settings;
use ikigai_core::settings::Rule;

use super::support::{line, printed, seen, survives};
use crate::support::{HERE, World, say};

/// N4a E8b: `/name` accepts only a valid name that no other agent has.
#[tokio::test]
async fn a_name_is_valid_and_free() {
    let world = World::new();
    let other = world.root().await;
    let mut worker = world.root().await;
    let cases = [
        (
            "/name",
            "⚠ this agent is named parser-2 · /name NAME to rename it",
        ),
        ("/name parent", "⚠ the name parent is reserved"),
        (
            "/name Fix!",
            "⚠ invalid name Fix!: use up to 32 lower-case letters, digits and -, not - first",
        ),
        ("/name parser", "⚠ the name parser is taken"),
        ("/name parser-2", "⚠ this agent is already named parser-2"),
        (
            "/name two words",
            "⚠ /name takes one argument · quote it if it has spaces",
        ),
        ("/name fix-lexer", "Renamed to fix-lexer (was parser-2)"),
    ];

    for (typed, expected) in cases {
        assert_eq!(printed(&mut worker, typed).await, expected);
    }

    let found = world.engine.find("fix-lexer").await.unwrap();
    assert_eq!(found.id, worker.agent().state.agent());
    drop(other);
    survives(&world, worker).await;
}

/// N4d: `/cd` accepts only existing directories; clear and rewind keep the directory.
#[tokio::test]
async fn a_directory_is_there_and_stays_through_clear_and_rewind() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().to_str().unwrap().to_owned();
    std::fs::create_dir(place.path().join("a b")).unwrap();
    std::fs::write(place.path().join("file"), "").unwrap();
    let world = World::new();
    let mut worker = world.root().await;
    let to_root = format!("/cd {root}");
    let in_root = format!("Directory: {root} (was {HERE})");
    let cases = [
        (
            "/cd",
            format!("⚠ directory: {HERE} · /cd PATH to change it"),
        ),
        (to_root.as_str(), in_root),
        ("/cd file", format!("⚠ {root}/file is not a directory")),
        (
            "/cd nowhere",
            format!("⚠ cannot use {root}/nowhere: No such file or directory (os error 2)"),
        ),
        ("/cd a b", format!("Directory: {root}/a b (was {root})")),
        (
            "/cd \"../a b/..\"",
            format!("Directory: {root} (was {root}/a b)"),
        ),
    ];

    for (typed, expected) in cases {
        assert_eq!(printed(&mut worker, typed).await, expected);
    }

    world.provider.will_say("hi");
    say(&mut worker, "hello").await.unwrap();
    line(&mut worker, "/undo").await;
    line(&mut worker, "/clear").await;
    let settings = worker.agent().state.settings();
    assert_eq!(settings.workdir.as_deref(), Some(root.as_str()));
    survives(&world, worker).await;
}

#[tokio::test]
async fn tools_are_listed_shown_and_restricted() {
    let (world, _) = World::with_fakes();
    let mut worker = world.root().await;
    let list = printed(&mut worker, "/tools").await;
    assert!(list.contains("● change"), "{list}");
    assert!(list.ends_with("all enabled"), "{list}");
    let shown = printed(&mut worker, "/tools look").await;
    assert_eq!(shown, "look\nobeys\n{\n  \"type\": \"object\"\n}");
    let cases = [
        ("/tools loook", "⚠ no tool loook · did you mean look?"),
        ("/tools only", "⚠ usage: /tools only NAME…"),
        ("/tools only look x", "⚠ no tool x · /tools lists them"),
        ("/tools a b", "⚠ usage: /tools [NAME | only NAME… | all]"),
        (
            "/toolset only look change look",
            "Only change, look. /tools all to enable all",
        ),
    ];
    for (typed, expected) in cases {
        assert_eq!(printed(&mut worker, typed).await, expected);
    }
    let list = printed(&mut worker, "/tools").await;
    assert!(
        list.contains("● look") && list.contains("\n  fork"),
        "{list}"
    );
    assert_eq!(seen(&world, &worker).await.request.tools.len(), 2);
    let all = printed(&mut worker, "/tools all").await;

    assert!(
        all.starts_with("All ") && all.ends_with(" tools enabled"),
        "{all}"
    );
    assert_eq!(worker.agent().state.settings().toolset, None);
    survives(&world, worker).await;
}

#[tokio::test]
async fn permission_is_shown_and_set_and_rules_are_taken_back() {
    let rule = |pattern: &str| Rule {
        tool: Some("bash".to_owned()),
        pattern: Some(pattern.to_owned()),
    };
    let settings = Settings {
        rules: Some(vec![rule("cargo test *"), rule("ls *")]),
        ..Settings::default()
    };
    let world = World::new();
    let mut worker = world.root_with(&settings).await;
    let cases = [
        (
            "/approve",
            "Mode: ask. Edits and commands need your approval\n  1  always allowed: bash \"cargo test *\"\n  \
             2  always allowed: bash \"ls *\"\n/approve -N to revoke one",
        ),
        ("/approve -3", "⚠ no approval 3 · /approve lists them"),
        ("/approve -x", "⚠ no approval x · /approve lists them"),
        ("/approve -1", "Revoked: bash \"cargo test *\""),
        (
            "/approve edits",
            "Mode: edits. Edits inside the working directory run without asking",
        ),
        (
            "/approve wild",
            "⚠ unknown mode wild: use read, ask, edits or all",
        ),
        (
            "/approve",
            "Mode: edits. Edits inside the working directory run without asking\n  \
             1  always allowed: bash \"ls *\"\n/approve -N to revoke one",
        ),
    ];
    for (typed, expected) in cases {
        assert_eq!(printed(&mut worker, typed).await, expected, "{typed}");
    }

    line(&mut worker, "/fork --name docs").await;
    let child = world.engine.find("docs").await.unwrap();
    let mut child = world.engine.open(&child).await.unwrap();
    assert_eq!(
        printed(&mut child, "/approve all").await,
        "⚠ not allowed: the parent agent is in mode edits"
    );
    assert_eq!(
        printed(&mut child, "/approve read").await,
        "Mode: read. Tools can only read"
    );
    drop(child);
    survives(&world, worker).await;
}

#[tokio::test]
async fn a_system_prompt_is_shown_and_set() {
    let world = World::new();
    let mut worker = world.root().await;
    let first = seen(&world, &worker).await.request.system.unwrap();

    assert_eq!(printed(&mut worker, "/system").await, first);
    assert_eq!(
        printed(&mut worker, "/system \"Be \\\"kind\\\".\"").await,
        "System prompt set, from the next request on"
    );
    line(&mut worker, "/system Be brief; it's \"late\".").await;
    line(&mut worker, "/clear").await;

    let request = seen(&world, &worker).await.request;
    assert_eq!(request.system.as_deref(), Some("Be brief; it's \"late\"."));
    survives(&world, worker).await;
}

#[tokio::test]
async fn another_model_is_chosen_and_its_meaning_told() {
    let world = World::new();
    let mut worker = world.root().await;
    assert_eq!(
        printed(&mut worker, "/model").await,
        "model: scripted:scripted"
    );
    assert_eq!(
        printed(&mut worker, "/model first").await,
        "Switched to scripted first"
    );
    world.provider.will_say("hi");
    say(&mut worker, "hello").await.unwrap();

    let output = printed(&mut worker, "/model second").await;

    let (title, meaning) = output.split_once('\n').unwrap();
    assert_eq!(title, "Switched to scripted second");
    assert!(
        meaning.contains(" tokens are sent again (about $0.01). Uses 1% of 1.0M"),
        "{meaning}"
    );
    let twice = printed(&mut worker, "/model a b").await;
    assert_eq!(
        twice,
        "⚠ /model takes one argument · quote it if it has spaces"
    );
    let choice = worker.agent().state.settings().model.clone().unwrap();
    assert_eq!(choice.model.as_deref(), Some("second"));
    survives(&world, worker).await;
}
