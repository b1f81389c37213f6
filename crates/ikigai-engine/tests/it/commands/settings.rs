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
            "⚠ this agent is called parser-2 · /name NAME changes that",
        ),
        (
            "/name parent",
            "⚠ no agent is called parent: models call their parent so",
        ),
        (
            "/name Fix!",
            "⚠ Fix! is no name: up to 32 small letters, digits and -, not - first",
        ),
        ("/name parser", "⚠ another agent is called parser"),
        ("/name parser-2", "⚠ this agent is called parser-2 already"),
        (
            "/name two words",
            "⚠ /name takes one argument · put quotes around one with spaces",
        ),
        ("/name fix-lexer", "called fix-lexer · was parser-2"),
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
    let in_root = format!("in {root} · was {HERE}");
    let cases = [
        (
            "/cd",
            format!("⚠ this agent works in {HERE} · /cd PATH changes that"),
        ),
        (to_root.as_str(), in_root),
        ("/cd file", format!("⚠ {root}/file is no directory")),
        (
            "/cd nowhere",
            format!("⚠ {root}/nowhere cannot be used: No such file or directory (os error 2)"),
        ),
        ("/cd a b", format!("in {root}/a b · was {root}")),
        ("/cd \"../a b/..\"", format!("in {root} · was {root}/a b")),
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
    assert!(list.ends_with("the model has all of them"), "{list}");
    let shown = printed(&mut worker, "/tools look").await;
    assert_eq!(
        shown,
        "look\ndoes as it is told\n{\n  \"type\": \"object\"\n}"
    );
    let cases = [
        (
            "/tools loook",
            "⚠ there is no tool loook · did you mean look?",
        ),
        ("/tools only", "⚠ /tools only NAME…: name the tools"),
        (
            "/tools only look x",
            "⚠ there is no tool x · /tools lists them",
        ),
        (
            "/tools a b",
            "⚠ /tools shows one tool · /tools only NAME… restricts them",
        ),
        (
            "/toolset only look change look",
            "only change, look · /tools all",
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

    assert!(all.starts_with("all ") && all.ends_with(" tools"), "{all}");
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
            "ask: whatever changes something is asked\n  1  always: bash \"cargo test *\"\n  \
             2  always: bash \"ls *\"\n/approve -N takes one back",
        ),
        (
            "/approve -3",
            "⚠ nothing stands under 3 · /approve lists them",
        ),
        (
            "/approve -x",
            "⚠ nothing stands under x · /approve lists them",
        ),
        ("/approve -1", "asks again: bash \"cargo test *\""),
        (
            "/approve edits",
            "edits: writes inside the working directory need no question · was ask",
        ),
        (
            "/approve wild",
            "⚠ wild is no mode: read, ask, edits or all",
        ),
        (
            "/approve",
            "edits: writes inside the working directory need no question\n  \
             1  always: bash \"ls *\"\n/approve -N takes one back",
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
        "⚠ the parent of this agent is in mode edits, and a child has no wider one"
    );
    assert_eq!(
        printed(&mut child, "/approve read").await,
        "read: tools only read, the rest is refused · was edits"
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
        "system prompt set · from the next request on"
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
        "scripted:scripted answers"
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
        meaning.contains(" tokens are read afresh, about $0.01 · fits (1% of 1.0M)"),
        "{meaning}"
    );
    let twice = printed(&mut worker, "/model a b").await;
    assert_eq!(
        twice,
        "⚠ /model takes one argument · put quotes around one with spaces"
    );
    let choice = worker.agent().state.settings().model.clone().unwrap();
    assert_eq!(choice.model.as_deref(), Some("second"));
    survives(&world, worker).await;
}
