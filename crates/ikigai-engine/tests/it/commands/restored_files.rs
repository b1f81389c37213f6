//! Rewinds that restore files: exact, with a preview, and never over the work of others.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use ikigai_core::data::{self, FilesData, RewindData, Via};
use ikigai_core::{EffectClass, Event, Kind, RowRef, Seq, Span};
use ikigai_engine::Worker;
use ikigai_engine::commands::Next;
use ikigai_store::{Batch, Effect, HeadClaim, LeaseClaim, Log, ReadLog, RunEffect, RunId};
use ikigai_tools::{builtin, process};
use serde_json::json;

use super::support::{agent_in_a_directory, line, printed, survives, texts};
use crate::fakes::call;
use crate::support::{World, say};

fn with_real_tools() -> World {
    World::with_tools(builtin::all(process::ChildEnvironment::default()))
}

/// Lets the model write a file in one turn.
async fn write(world: &World, worker: &mut Worker, path: &str, content: &str) {
    let read = json!({"file_path": path});
    let write = json!({"file_path": path, "content": content});
    let steps = [("file_read", &read), ("file_write", &write)];
    for (tool, arguments) in steps {
        let calls = vec![call(tool, arguments)];
        world
            .provider
            .will([ikigai_testkit::Step::FinishWith(calls)]);
    }
    world.provider.will_say("done");
    say(worker, &format!("write {path}")).await.unwrap();
}

/// Everything about a tree that a restore promises: names, kinds, contents, modes and times.
fn tree(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let content = if metadata.is_file() {
            fs::read_to_string(&path).unwrap()
        } else {
            String::new()
        };
        let (mode, time) = (metadata.mode(), (metadata.mtime(), metadata.mtime_nsec()));
        found.push(format!("{name} {mode:o} {time:?} {content:?}"));
        if metadata.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
    found.sort();
    found
}

/// Creates a file with an old time, so that a changed time shows.
fn old_file(path: &Path, content: &str, mode: u32) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let file = fs::File::options().append(true).open(path).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_600_000_000, 123_456_789);
    file.set_modified(old).unwrap();
}

/// E12b: `/undo --files` restores files exactly, and `/redo --files` restores the changes. The row
/// and the next message name them.
#[tokio::test]
async fn undo_and_redo_restore_files_exactly() {
    let world = with_real_tools();
    let (place, mut worker) = agent_in_a_directory(&world).await;
    old_file(&place.path().join("a.txt"), "old\n", 0o640);
    let before = tree(place.path());
    let write_a = json!({"file_path": "a.txt", "content": "new\n"});
    let write_b = json!({"file_path": "src/deep/b.txt", "content": "b\n"});
    let read_a = json!({"file_path": "a.txt"});
    let read = vec![call("file_read", &read_a)];
    let written = vec![call("file_write", &write_a), call("file_write", &write_b)];
    world
        .provider
        .will([ikigai_testkit::Step::FinishWith(read)]);
    world
        .provider
        .will([ikigai_testkit::Step::FinishWith(written)]);
    world.provider.will_say("done");
    say(&mut worker, "write").await.unwrap();
    let after = tree(place.path());

    let undone = printed(&mut worker, "/undo --files").await;

    assert_eq!(tree(place.path()), before, "{undone}");
    assert!(undone.contains("4 files restored: "), "{undone}");
    let rows = world.rows(worker.agent().state.agent()).await;
    let rewind = rows.iter().rev().find(|row| row.kind.name() == "rewind");
    let rewind: RewindData = data::read(rewind.unwrap().data.as_deref());
    assert_eq!((rewind.restored.unwrap().len(), rewind.files), (4, None));
    let redone = printed(&mut worker, "/redo --files").await;
    assert_eq!(tree(place.path()), after, "{redone}");
    let again = printed(&mut worker, "/undo --files").await;
    assert_eq!(tree(place.path()), before, "{again}");
    world.provider.will_say("I see");
    say(&mut worker, "go on").await.unwrap();
    let told = texts(&world, &worker).await.join("\n");
    assert!(told.contains("Files restored to that point: "), "{told}");
    assert!(!told.contains("NOT restored"), "{told}");
    survives(&world, worker).await;
}

/// Without a choice nothing changes: the files are listed, and the input holds the command.
#[tokio::test]
async fn undo_lists_files_before_it_restores_them() {
    let world = with_real_tools();
    let (place, mut worker) = agent_in_a_directory(&world).await;
    old_file(&place.path().join("a.txt"), "old\n", 0o644);
    write(&world, &mut worker, "a.txt", "new\n").await;
    let head = worker.agent().state.head();

    let asked = line(&mut worker, "/undo").await;

    assert!(asked.output.contains("restore a.txt"), "{}", asked.output);
    assert!(
        asked.output.contains("/undo --conversation"),
        "{}",
        asked.output
    );
    assert_eq!(asked.next, Some(Next::Input("/undo --files".to_owned())));
    let rows = world.rows(worker.agent().state.agent()).await;
    let new: Vec<_> = rows[usize::try_from(head.0).unwrap()..].iter().collect();
    assert!(new.iter().all(|row| row.kind.name() == "command"));
    assert_eq!(
        fs::read_to_string(place.path().join("a.txt")).unwrap(),
        "new\n"
    );
}

/// A file that a person or another program changed since is kept, unless the user chooses to overwrite it.
/// A redo then brings that change back.
#[tokio::test]
async fn a_file_that_others_changed_is_overwritten_only_by_choice() {
    let world = with_real_tools();
    let (place, mut worker) = agent_in_a_directory(&world).await;
    let file = place.path().join("a.txt");
    let other = place.path().join("b.txt");
    old_file(&file, "old\n", 0o644);
    write(&world, &mut worker, "a.txt", "new\n").await;
    write(&world, &mut worker, "b.txt", "b\n").await;
    fs::write(&file, "by an editor\n").unwrap();

    let kept = printed(&mut worker, "/rewind #2 --files").await;

    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "by an editor\n",
        "{kept}"
    );
    assert!(!other.exists(), "{kept}");
    assert!(
        kept.contains("Not restored: a.txt (changed since)"),
        "{kept}"
    );
    line(&mut worker, "/redo --files").await;
    assert!(other.exists());
    line(&mut worker, "/rewind #2 --overwrite").await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "old\n");
    line(&mut worker, "/redo --files").await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "by an editor\n");
}

/// A change by others between two changes of the agent is not taken back with them.
#[tokio::test]
async fn a_change_in_between_is_not_taken_back() {
    let world = with_real_tools();
    let (place, mut worker) = agent_in_a_directory(&world).await;
    let file = place.path().join("a.txt");
    old_file(&file, "old\n", 0o644);
    write(&world, &mut worker, "a.txt", "new\n").await;
    fs::write(&file, "by an editor\n").unwrap();
    write(&world, &mut worker, "a.txt", "newest\n").await;

    let all = printed(&mut worker, "/rewind #2 --files").await;

    assert_eq!(fs::read_to_string(&file).unwrap(), "newest\n", "{all}");
    line(&mut worker, "/redo --conversation").await;
    let last = printed(&mut worker, "/undo --files").await;
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "by an editor\n",
        "{last}"
    );
}

/// A log can name any path: only files below the working directory are restored.
#[tokio::test]
async fn files_outside_the_working_directory_are_not_restored() {
    let world = with_real_tools();
    let (_place, mut worker) = agent_in_a_directory(&world).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("a.txt");
    write(&world, &mut worker, file.to_str().unwrap(), "new\n").await;

    let undone = printed(&mut worker, "/undo --files").await;

    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n", "{undone}");
    assert!(undone.contains("outside the working directory"), "{undone}");
}

/// A process that dies between a rewind and its files leaves work that the next one finishes.
#[tokio::test]
async fn a_restore_that_was_cut_short_is_finished() {
    let world = with_real_tools();
    let (place, mut worker) = agent_in_a_directory(&world).await;
    let file = place.path().join("a.txt");
    old_file(&file, "old\n", 0o600);
    let before = tree(place.path());
    write(&world, &mut worker, "a.txt", "new\n").await;
    let id = worker.agent().state.agent();
    let head = worker.agent().state.head();
    let changed = world.store.files_rows(Span::whole(id), 1).await.unwrap();
    let changed: FilesData = data::read(changed[0].data.as_deref());
    let entries = changed.entries.unwrap().into_iter().map(|mut entry| {
        std::mem::swap(&mut entry.before, &mut entry.after);
        entry
    });
    let rewind = RowRef::new(id, head.next());
    let events = [
        Event::rewind(RowRef::new(id, Seq(1)), RowRef::new(id, head), Via::Undo),
        Event::Files(FilesData {
            call: Some(rewind),
            entries: Some(entries.collect()),
            ..FilesData::default()
        }),
    ];
    let now = world.clock.now();
    let lease = world.store.head(id).await.unwrap().unwrap();
    let batch = Batch {
        heads: vec![HeadClaim {
            agent: id,
            lease: Some(LeaseClaim {
                epoch: lease.epoch,
                expected: head,
            }),
        }],
        rows: events
            .into_iter()
            .map(|event| event.into_row(id, now))
            .collect(),
        with: vec![Effect::Run(RunEffect::Start {
            run: RunId(9),
            call: rewind,
            class: EffectClass::Write,
            started: now,
            deadline: now,
        })],
    };
    world.store.commit(batch).await.unwrap();
    drop(worker);

    let next = world.restarted();
    let found = next.engine.agents().await.unwrap();
    let worker = next.engine.open(&found[0]).await.unwrap();

    assert_eq!(tree(place.path()), before);
    assert!(next.store.open_runs(id).await.unwrap().is_empty());
    let rows = next.rows(id).await;
    let is_new = |kind: Kind| {
        rows[usize::try_from(head.0).unwrap()..]
            .iter()
            .any(|row| row.kind.read_as() == Some(kind))
    };
    assert!(!is_new(Kind::Interrupted) && !is_new(Kind::ToolResult));
    drop(worker);
}
