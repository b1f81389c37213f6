//! Pins: files sent after the system prompt.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use ikigai_core::Block;
use ikigai_core::settings::Approve;
use ikigai_engine::{Safety, UiEvent, UserRequest, Worker};
use ikigai_store::{ReadLog, blobs};
use ikigai_testkit::Step;
use ikigai_tools::{builtin, process};

use super::support::{agent_in_a_directory, line, printed, seen, survives, typed};
use crate::fakes::{FakeCall, call, calling};
use crate::support::{World, attended_line, say};

fn system_of(world: &World) -> String {
    let request = world.provider.requests().pop().unwrap();
    request.system.unwrap()
}

/// Returns the text of the newest message that the provider got.
fn newest_message(world: &World) -> String {
    let request = world.provider.requests().pop().unwrap();
    let texts = request.messages.iter().flat_map(|message| &message.blocks);
    let mut texts = texts.filter_map(|block| match block {
        Block::Text { text } => Some(text.clone()),
        _ => None,
    });
    texts.next_back().unwrap()
}

/// E3b: pins are read when a turn starts, not between its requests. New content is stored as a blob
/// and a hidden row with the message, which carries a note. The prefix takes it at the next
/// context row.
#[tokio::test(start_paused = true)]
async fn pins_are_read_when_a_turn_starts() {
    let (world, _) = World::with_fakes();
    let (place, mut worker) = agent_in_a_directory(&world).await;
    let file = place.path().join("style.md");
    fs::write(&file, "first").unwrap();
    line(&mut worker, "/pin style.md").await;
    fs::write(&file, "second").unwrap();
    world
        .provider
        .will(calling(&[FakeCall::new("look", "slow")]));
    world.provider.will_say("done");

    attended_line(&mut worker, "hello", |update| {
        if let UiEvent::Running(_) = update {
            fs::write(&file, "third").unwrap();
        }
        Vec::<UserRequest>::new()
    })
    .await;

    let systems = |world: &World| -> Vec<_> {
        let requests = world.provider.requests().into_iter();
        requests.map(|request| request.system.unwrap()).collect()
    };
    // No request was sent yet, so there is no cached prefix to keep.
    let first = systems(&world);
    assert!(first[0].ends_with("style.md\n\nsecond"), "{first:#?}");
    assert_eq!(first[0], first[1]);
    let id = worker.agent().state.agent();
    let kinds = world.kinds(id).await;
    assert_eq!(kinds[4..7], ["command", "user", "tool_call"], "{kinds:?}");
    let blob = world.store.blob(blobs::hash_of(b"second")).await.unwrap();
    assert_eq!(blob.as_deref(), Some(&b"second"[..]));
    let request = seen(&world, &worker).await.request;
    assert_eq!(request.system.as_deref(), Some(first[1].as_str()));

    world.provider.will_say("yes");
    say(&mut worker, "again").await.unwrap();
    assert_eq!(system_of(&world), first[1]);
    let path = file.canonicalize().unwrap();
    let note = format!(
        "<note>\nChanged since the last message:\nPinned file {} changed. It now says:\nthird\n\
         </note>\n\nagain",
        path.display()
    );
    assert_eq!(newest_message(&world), note);
    let shown = seen(&world, &worker).await.scrollback;
    assert!(!shown.join("\n").contains("third"), "{shown:#?}");
    let rows = world.kinds(id).await.len();
    world.provider.will_say("yes");
    say(&mut worker, "and again").await.unwrap();
    assert_eq!(world.kinds(id).await.len(), rows + 3, "nothing was new");
    assert_eq!(system_of(&world), first[1]);
    assert_eq!(newest_message(&world), "and again");
    let requests = world.provider.requests();
    for pair in requests.windows(2) {
        assert!(pair[1].messages.starts_with(&pair[0].messages));
    }

    survives(&world, worker).await;
}

/// E3b: after a clear, which is a context row, the prefix takes changes at once without a
/// note. A note on a long text has its changed lines, or its size.
#[tokio::test]
async fn changed_pins_reach_the_prefix_after_a_context_row() {
    let world = World::new();
    let (place, mut worker) = agent_in_a_directory(&world).await;
    let file = place.path().join("style.md");
    let long = "be kind\n".repeat(4_000);
    fs::write(&file, "first").unwrap();
    line(&mut worker, "/pin style.md").await;
    world.provider.will_say("ok");
    say(&mut worker, "hello").await.unwrap();

    fs::write(&file, &long).unwrap();
    world.provider.will_say("ok");
    say(&mut worker, "long").await.unwrap();
    let note = newest_message(&world);
    assert!(note.contains("changed. It has 31.2 KB: read it"), "{note}");
    fs::write(&file, format!("{long}be brief\n")).unwrap();
    world.provider.will_say("ok");
    say(&mut worker, "longer").await.unwrap();
    let note = newest_message(&world);
    assert!(
        note.contains("\n+be brief\n") && note.len() < 1_000,
        "{note}"
    );
    fs::remove_file(&file).unwrap();
    world.provider.will_say("ok");
    say(&mut worker, "gone").await.unwrap();
    let note = newest_message(&world);
    assert!(note.contains("cannot be read any more"), "{note}");
    assert!(system_of(&world).ends_with("style.md\n\nfirst"));

    fs::write(&file, "again").unwrap();
    world.provider.will_say("yes");
    line(&mut worker, "/retry").await;
    assert!(system_of(&world).ends_with("style.md\n\nagain"));
    line(&mut worker, "/clear").await;
    fs::write(&file, "fresh").unwrap();
    world.provider.will_say("ok");
    say(&mut worker, "hello").await.unwrap();

    assert!(system_of(&world).ends_with("style.md\n\nfresh"));
    assert!(!newest_message(&world).contains("fresh"));
    survives(&world, worker).await;
}

/// A child that inherits shares its parent's prefix, with changes that wait; a fresh one does not.
#[tokio::test]
async fn an_inheriting_child_has_the_prefix_of_its_parent() {
    let world = World::new();
    let (place, mut worker) = agent_in_a_directory(&world).await;
    let file = place.path().join("style.md");
    fs::write(&file, "first").unwrap();
    line(&mut worker, "/pin style.md").await;
    for text in ["one", "two"] {
        world.provider.will_say("ok");
        say(&mut worker, text).await.unwrap();
        fs::write(&file, "second").unwrap();
    }
    let parent = system_of(&world);
    assert!(parent.ends_with("first"), "{parent}");

    for (context, ending) in [("", "first"), ("--fresh ", "second")] {
        line(&mut worker, &format!("/fork {context}--name {ending}")).await;
        let child = world.engine.find(ending).await.unwrap();
        let request = world.engine.next_request(child.id).await.unwrap();
        let system = request.system.unwrap();
        assert!(system.ends_with(ending), "{context}: {system}");
    }
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
    let note = newest_message(&world);
    assert!(note.contains("style.md, new for you:\nBe brief."), "{note}");
    line(&mut worker, "/clear").await;
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

fn paths(worker: &Worker) -> Vec<String> {
    let pins = worker.agent().state.settings().pins.clone();
    let pins = pins.into_iter().flatten();
    let pins = pins.filter(|pin| pin.off != Some(true));
    pins.filter_map(|pin| pin.path).collect()
}

/// A new agent pins each `AGENTS.md` from the repository root down to its directory. Opening
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

    let expected = [
        repository.join("AGENTS.md").to_str().unwrap().to_owned(),
        inner.join("AGENTS.md").to_str().unwrap().to_owned(),
    ];
    assert_eq!(paths(&worker), expected);
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
    assert_eq!(paths(&worker), expected[..1]);
}

/// E3c: instruction files are looked for when a turn starts, in the directories of the project that
/// hold the working directory, and in one whose files a tool touched. A note comes with the next
/// message. CLAUDE.md counts where there is no AGENTS.md, and deeper files follow.
#[tokio::test(start_paused = true)]
async fn instructions_are_found_when_a_turn_starts() {
    let place = tempfile::tempdir().unwrap();
    let outer = place.path().canonicalize().unwrap();
    let repository = outer.join("repository");
    let inner = repository.join("crates/one");
    let foreign = ["vendored", "node_modules/package", "open", "linked"];
    fs::create_dir_all(&inner).unwrap();
    fs::create_dir_all(repository.join(".git")).unwrap();
    fs::create_dir_all(repository.join("vendored/.git")).unwrap();
    fs::create_dir_all(repository.join("node_modules/package")).unwrap();
    fs::create_dir_all(repository.join("open")).unwrap();
    let everyone = fs::Permissions::from_mode(0o777);
    fs::set_permissions(repository.join("open"), everyone).unwrap();
    fs::create_dir_all(outer.join("elsewhere")).unwrap();
    symlink("../elsewhere", repository.join("linked")).unwrap();
    for directory in foreign {
        fs::write(repository.join(directory).join("a.txt"), "x").unwrap();
        fs::write(repository.join(directory).join("AGENTS.md"), "foreign").unwrap();
    }
    fs::write(inner.join("a.txt"), "x").unwrap();
    fs::write(inner.join("CLAUDE.md"), "claude of one").unwrap();
    fs::write(repository.join("crates/CLAUDE.md"), "not this one").unwrap();
    fs::write(repository.join("crates/AGENTS.md"), "rules of crates").unwrap();
    let tools = builtin::all(process::ChildEnvironment::default());
    let world = World::with_tools(tools);
    let workdir = repository.to_str().unwrap();
    let mut worker = world.engine.create_root(workdir, workdir).await.unwrap();
    worker.approve_for_now(Approve::All).await.unwrap();
    let prefix_of = |world: &World| {
        let requests = world.provider.requests();
        requests.last().unwrap().system.clone()
    };

    let read = |path: &str| call("file_read", &serde_json::json!({ "file_path": path }));
    let files = foreign.map(|directory| read(&format!("{directory}/a.txt")));
    let touched = [read("crates/one/a.txt")].into_iter().chain(files);
    world.provider.will([Step::FinishWith(touched.collect())]);
    world.provider.will_say("read");
    say(&mut worker, "look").await.unwrap();
    let first = prefix_of(&world);
    assert_eq!(paths(&worker), Vec::<String>::new());
    fs::write(repository.join("AGENTS.md"), "rules of all").unwrap();
    world.provider.will_say("ok");
    say(&mut worker, "again").await.unwrap();

    let files = ["AGENTS.md", "crates/AGENTS.md", "crates/one/CLAUDE.md"];
    let files = files.map(|file| repository.join(file).to_str().unwrap().to_owned());
    assert_eq!(paths(&worker), files);
    let note = newest_message(&world);
    let places: Vec<_> = ["rules of all", "rules of crates", "claude of one", "again"]
        .iter()
        .map(|text| note.find(text).unwrap())
        .collect();
    assert!(places.is_sorted(), "{note}");
    assert!(!note.contains("foreign"), "{note}");
    assert_eq!(prefix_of(&world), first, "the prefix is cached");
    world.provider.will_say("ok");
    say(&mut worker, "once more").await.unwrap();
    assert_eq!(newest_message(&world), "once more");

    line(&mut worker, "/unpin crates/one/CLAUDE.md").await;
    line(&mut worker, "/clear").await;
    world.provider.will_say("ok");
    say(&mut worker, "hello").await.unwrap();
    assert_eq!(paths(&worker), files[..2]);
    let system = prefix_of(&world).unwrap();
    assert!(system.contains("rules of all") && system.ends_with("rules of crates"));
    assert_eq!(
        printed(&mut worker, "/pin").await,
        "AGENTS.md\ncrates/AGENTS.md"
    );
    survives(&world, worker).await;
}
