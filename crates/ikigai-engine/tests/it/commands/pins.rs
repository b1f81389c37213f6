//! Pins: files sent after the system prompt.

use std::fs;
use std::os::unix::fs::symlink;

use ikigai_core::settings::Pin;
use ikigai_engine::{Safety, UiEvent, UserRequest};
use ikigai_store::{ReadLog, blobs};

use super::support::{agent_in_a_directory, line, printed, seen, survives, typed};
use crate::fakes::{Deed, calling};
use crate::support::{World, attended_line, say};

fn system_of(world: &World) -> String {
    let request = world.provider.requests().pop().unwrap();
    request.system.unwrap()
}

/// E3b: pins are read when a turn starts, not between its requests. New content is stored as a blob
/// and a hidden row before the request.
#[tokio::test(start_paused = true)]
async fn pins_are_read_when_a_turn_starts() {
    let (world, _) = World::with_fakes();
    let (place, mut worker) = agent_in_a_directory(&world).await;
    let file = place.path().join("style.md");
    fs::write(&file, "first").unwrap();
    line(&mut worker, "/pin style.md").await;
    fs::write(&file, "second").unwrap();
    world.provider.will(calling(&[Deed::new("look", "slow")]));
    world.provider.will_say("done");

    attended_line(&mut worker, "hello", |update| {
        if let UiEvent::Running(_) = update {
            fs::write(&file, "third").unwrap();
        }
        Vec::<UserRequest>::new()
    })
    .await;

    let systems: Vec<_> = world
        .provider
        .requests()
        .into_iter()
        .map(|request| request.system.unwrap())
        .collect();
    assert!(systems[0].ends_with("style.md\n\nsecond"), "{systems:#?}");
    assert_eq!(systems[0], systems[1]);
    let id = worker.agent().state.agent();
    let kinds = world.kinds(id).await;
    assert_eq!(kinds[4..7], ["user", "command", "tool_call"]);
    let blob = world.store.blob(blobs::hash_of(b"second")).await.unwrap();
    assert_eq!(blob.as_deref(), Some(&b"second"[..]));
    let request = seen(&world, &worker).await.request;
    assert_eq!(request.system.as_deref(), Some(systems[1].as_str()));

    world.provider.will_say("yes");
    say(&mut worker, "again").await.unwrap();
    assert!(system_of(&world).ends_with("style.md\n\nthird"));
    let rows = world.kinds(id).await.len();
    world.provider.will_say("yes");
    say(&mut worker, "and again").await.unwrap();
    assert_eq!(world.kinds(id).await.len(), rows + 3, "nothing was new");
    survives(&world, worker).await;
}

/// E3a: an unreadable pin is left out, with a warning at each turn.
#[tokio::test]
async fn a_pin_that_cannot_be_read_is_left_out_and_said() {
    let world = World::new();
    let (place, mut worker) = agent_in_a_directory(&world).await;
    let file = place.path().join("style.md");
    fs::write(&file, "Be kind.").unwrap();
    line(&mut worker, "/pin style.md").await;
    fs::remove_file(&file).unwrap();

    for _ in 0..2 {
        world.provider.will_say("ok");
        let (_, told) = typed(&mut worker, "hello").await;
        let said =
            "pinned file left out: style.md cannot be read: No such file or directory (os error 2)";
        assert!(
            told.contains(&UiEvent::Warning(said.to_owned())),
            "{told:#?}"
        );
        assert!(!system_of(&world).contains("style.md"));
    }
    let listed = printed(&mut worker, "/pin").await;
    assert_eq!(listed, "style.md · cannot be read, left out");
    fs::write(&file, "Be brief.").unwrap();
    world.provider.will_say("ok");
    say(&mut worker, "hello").await.unwrap();

    assert!(system_of(&world).ends_with("style.md\n\nBe brief."));
    survives(&world, worker).await;
}

#[tokio::test]
async fn pins_are_listed_added_and_taken_away() {
    let place = tempfile::tempdir().unwrap();
    let workdir = place.path().to_str().unwrap().to_owned();
    let key = place.path().join("key");
    fs::write(&key, "secret").unwrap();
    fs::write(place.path().join("a b.md"), "x").unwrap();
    let world = World::new().equipped(move |engine| {
        let safety = Safety {
            hidden: vec![key.clone()].into(),
            ..Safety::default()
        };
        engine.with_tools(std::sync::Arc::new(Vec::new()), safety)
    });
    let mut worker = world.engine.create_root(&workdir, &workdir).await.unwrap();
    let pinned = "a b.md (1 byte). /unpin a b.md to remove it";
    let first = format!("Pinned: {pinned}");
    let again = format!("Already pinned, reloaded: {pinned}");
    let gone = "Unpinned: a b.md";
    let cases = [
        ("/pin", "No pinned files. /pin PATH to add one"),
        ("/pin a b.md", first.as_str()),
        ("/pin \"./a b.md\"", again.as_str()),
        ("/pin", "a b.md"),
        (
            "/pin -other.md",
            "⚠ other.md is not pinned · /pin lists pinned files",
        ),
        ("/pin -a b.md", gone),
        ("/pin a b.md", first.as_str()),
        ("/unpin a b.md", gone),
        ("/unpin", "⚠ usage: /unpin PATH · /pin lists them"),
        (
            "/pin nothing",
            "⚠ nothing cannot be read: No such file or directory (os error 2)",
        ),
        ("/pin .", "⚠ . is a directory"),
        (
            "/pin key",
            "⚠ `key` is off limits for tools: it holds keys or data of ikigai",
        ),
    ];

    for (typed, expected) in cases {
        assert_eq!(printed(&mut worker, typed).await, expected, "{typed}");
    }
    survives(&world, worker).await;
}

/// An `AGENTS.md` that links out of the project is left out, with a warning. A repository must not
/// choose which file of the user is sent.
#[tokio::test]
async fn agents_md_that_links_out_of_the_project_is_left_out_and_said() {
    let place = tempfile::tempdir().unwrap();
    let outer = place.path().canonicalize().unwrap();
    let repository = outer.join("repository");
    let inner = repository.join("inner");
    fs::create_dir_all(repository.join(".git")).unwrap();
    fs::create_dir_all(outer.join("elsewhere/inner")).unwrap();
    fs::write(outer.join("elsewhere/history"), "private words").unwrap();
    fs::write(outer.join("elsewhere/inner/AGENTS.md"), "foreign words").unwrap();
    symlink("../elsewhere/history", repository.join("AGENTS.md")).unwrap();
    symlink("../elsewhere/inner", &inner).unwrap();
    let world = World::new();
    let workdir = inner.to_str().unwrap();

    let mut worker = world.engine.create_root(workdir, workdir).await.unwrap();
    world.provider.will_say("ok");
    let (_, told) = typed(&mut worker, "hello").await;

    let request = world.provider.requests().pop().unwrap();
    let system = request.system.unwrap_or_default();
    assert!(!system.contains("private words"), "{system}");
    assert!(!system.contains("foreign words"), "{system}");
    for name in [repository.join("AGENTS.md").to_str().unwrap(), "AGENTS.md"] {
        let said = format!("pinned file left out: {name} is a link out of the project");
        assert!(
            told.iter()
                .any(|update| matches!(update, UiEvent::Warning(text) if *text == said)),
            "{said}: {told:?}"
        );
    }
}

/// An `AGENTS.md` that later becomes a link out of the project is left out. A process of the agent
/// may swap the file at any time.
#[tokio::test]
async fn agents_md_that_becomes_a_link_out_of_the_project_is_left_out() {
    let place = tempfile::tempdir().unwrap();
    let outer = place.path().canonicalize().unwrap();
    let repository = outer.join("repository");
    fs::create_dir_all(repository.join(".git")).unwrap();
    fs::create_dir(repository.join("docs")).unwrap();
    fs::write(outer.join("history"), "private words").unwrap();
    fs::write(repository.join("docs/agents.md"), "good words").unwrap();
    symlink("docs/agents.md", repository.join("AGENTS.md")).unwrap();
    let world = World::new();
    let workdir = repository.to_str().unwrap();
    let mut worker = world.engine.create_root(workdir, workdir).await.unwrap();
    world.provider.will_say("ok");
    say(&mut worker, "hello").await.unwrap();
    let before = system_of(&world);

    fs::remove_file(repository.join("AGENTS.md")).unwrap();
    symlink("../history", repository.join("AGENTS.md")).unwrap();
    world.provider.will_say("ok");
    say(&mut worker, "again").await.unwrap();

    assert!(before.contains("good words"), "a link inside is followed");
    let request = world.provider.requests().pop().unwrap();
    let system = request.system.unwrap_or_default();
    assert!(!system.contains("private words"), "{system}");
    assert!(!system.contains("foreign words"), "{system}");
}

/// E3c: a new agent pins each `AGENTS.md` from the repository root down to its directory. Opening
/// an existing agent pins none.
#[tokio::test]
async fn agents_md_is_pinned_when_agent_is_made() {
    let place = tempfile::tempdir().unwrap();
    let outer = place.path().canonicalize().unwrap();
    let repository = outer.join("repository");
    let inner = repository.join("crates/one");
    fs::create_dir_all(&inner).unwrap();
    fs::create_dir(repository.join(".git")).unwrap();
    for (directory, text) in [
        (&outer, "no"),
        (&repository, "general"),
        (&inner, "special"),
    ] {
        fs::write(directory.join("AGENTS.md"), text).unwrap();
    }
    let world = World::new();
    let workdir = inner.to_str().unwrap();

    let mut worker = world.engine.create_root(workdir, workdir).await.unwrap();

    let paths = |pins: Option<&Vec<Pin>>| -> Vec<String> {
        let pins = pins.cloned().unwrap_or_default();
        pins.into_iter().filter_map(|pin| pin.path).collect()
    };
    let expected = [
        repository.join("AGENTS.md").to_str().unwrap().to_owned(),
        inner.join("AGENTS.md").to_str().unwrap().to_owned(),
    ];
    let settings = worker.agent().state.settings();
    assert_eq!(paths(settings.pins.as_ref()), expected);
    world.provider.will_say("ok");
    say(&mut worker, "hello").await.unwrap();
    let system = system_of(&world);
    let (general, special) = (
        system.find("general").unwrap(),
        system.find("special").unwrap(),
    );
    assert!(general < special);
    line(&mut worker, "/unpin AGENTS.md").await;
    drop(worker);
    let again = world.restarted();
    let agent = again.engine.latest(workdir).await.unwrap().unwrap();
    let worker = again.engine.open(&agent).await.unwrap();
    let settings = worker.agent().state.settings();
    assert_eq!(paths(settings.pins.as_ref()), expected[..1]);
}
