//! Commands that set something.

use super::support::{line, printed, survives};
use crate::support::{HERE, World, say};

/// N4a E8b
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

/// N4d
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
