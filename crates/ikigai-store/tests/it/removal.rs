//! Store files that are moved, removed or replaced while a process has them open.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ikigai_core::{Epoch, Seq};
use ikigai_store::{
    Admin, CommitError, Effect, LeaseEffect, Log, ReadLog, SqliteStore, StoreError,
};
use ikigai_testkit::block_on;
use rusqlite::Connection;

use crate::support::{Disk, agent, create, make_agent, only, open, say, texts};

/// Returns a store with one row, and its writer that has committed another.
fn working() -> (Disk, SqliteStore) {
    let disk = Disk::with_store();
    let store = open(&disk.path, 1).unwrap();
    block_on(store.commit(only(Effect::Lease(LeaseEffect::Take { agent: agent(1) })))).unwrap();
    commit(&store, "second").unwrap();
    (disk, store)
}

/// Adds a row as the owner of the agent.
fn commit(store: &SqliteStore, text: &str) -> Result<(), CommitError> {
    let head = block_on(store.head(agent(1))).unwrap().unwrap();
    block_on(store.commit(say(agent(1), head.epoch, head.seq, text))).map(|_| ())
}

/// Returns the reason why a commit found the store away.
fn away(store: &SqliteStore, text: &str) -> String {
    match commit(store, text) {
        Err(CommitError::Store(StoreError::Away { reason, .. })) => reason,
        other => panic!("{other:?}"),
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// Moves the database and its log files; returns the database's other path.
fn move_files(from: &Path, to: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        if beside(from, suffix).exists() {
            fs::rename(beside(from, suffix), beside(to, suffix)).unwrap();
        }
    }
}

#[test]
fn a_moved_store_is_away_until_it_is_back() {
    let (disk, store) = working();
    let elsewhere = disk.directory.path().join("moved.db");

    move_files(&disk.path, &elsewhere);
    let reason = away(&store, "lost");
    assert!(reason.contains("removed or renamed"), "{reason}");
    assert!(!disk.path.exists(), "the store was made anew");
    away(&store, "lost");
    move_files(&elsewhere, &disk.path);

    commit(&store, "third").unwrap();
    drop(store);
    let store = open(&disk.path, 2).unwrap();
    assert_eq!(texts(&store), ["kept", "second", "third"]);
}

#[test]
fn nothing_is_written_to_a_moved_store() {
    for files in [&["", "-wal", "-shm"][..], &[""]] {
        let (disk, store) = working();
        let elsewhere = disk.directory.path().join("moved.db");
        for suffix in files {
            fs::rename(beside(&disk.path, suffix), beside(&elsewhere, suffix)).unwrap();
        }

        away(&store, "lost");
        drop(store);

        if files.len() == 1 {
            move_files(&disk.path, &elsewhere);
        }
        let store = open(&elsewhere, 2).unwrap();
        assert_eq!(texts(&store), ["kept", "second"]);
    }
}

/// Removes a directory in which the store's threads may still create a file.
fn remove_directory(directory: &Path) {
    while let Err(error) = fs::remove_dir_all(directory) {
        assert_eq!(error.kind(), io::ErrorKind::DirectoryNotEmpty, "{error}");
    }
}

#[test]
fn a_removed_directory_is_away() {
    let (disk, store) = working();
    let directory = disk.path.parent().unwrap().join("gone");
    fs::create_dir(&directory).unwrap();
    drop(store);
    let path = directory.join("log.db");
    move_files(&disk.path, &path);
    let store = open(&path, 3).unwrap();
    block_on(store.commit(only(Effect::Lease(LeaseEffect::Take { agent: agent(1) })))).unwrap();

    remove_directory(&directory);
    let lost = commit(&store, "lost");

    assert!(
        matches!(lost, Err(CommitError::Store(StoreError::Away { .. }))),
        "{lost:?}"
    );
    drop(store);
    assert!(!directory.exists());
}

/// A store that was opened and never written notices its replacement at the first commit.
#[test]
fn a_store_replaced_before_the_first_commit_is_away() {
    let disk = Disk::with_store();
    let other = Disk::with_store();
    let store = open(&disk.path, 1).unwrap();

    fs::rename(&other.path, &disk.path).unwrap();
    let lost = block_on(store.commit(only(Effect::Lease(LeaseEffect::Take { agent: agent(1) }))));

    let Err(CommitError::Store(StoreError::Away { reason, .. })) = lost else {
        panic!("{lost:?}");
    };
    assert!(reason.contains("was replaced"), "{reason}");
}

/// Another store at the path is neither written nor robbed of its log.
#[test]
fn a_replaced_store_asks_for_a_restart_and_leaves_the_other_alone() {
    let (disk, store) = working();
    let elsewhere = disk.directory.path().join("moved.db");
    move_files(&disk.path, &elsewhere);
    let other = open(&disk.path, 5).unwrap();
    make_agent(&other, agent(1));
    block_on(other.commit(say(agent(1), Epoch(1), Seq(0), "theirs"))).unwrap();

    let reason = away(&store, "lost");
    assert!(reason.contains("restart ikigai"), "{reason}");
    drop(store);

    assert!(beside(&disk.path, "-wal").exists(), "its log was removed");
    assert_eq!(texts(&other), ["theirs"]);
    drop(other);
    assert_eq!(texts(&open(&disk.path, 6).unwrap()), ["theirs"]);
    let first = open(&elsewhere, 7).unwrap();
    assert_eq!(texts(&first), ["kept", "second"]);
}

/// Rows that were committed to a log which was removed since are saved at the end.
#[test]
fn a_removed_log_is_away_and_its_rows_are_saved_at_the_end() {
    for removed in [&["-wal"][..], &["-wal", "-shm"]] {
        let (disk, store) = working();
        // Opens the reading connection while the log is there.
        assert_eq!(texts(&store), ["kept", "second"]);
        for suffix in removed {
            fs::remove_file(beside(&disk.path, suffix)).unwrap();
        }

        away(&store, "lost");
        drop(store);

        let _ = fs::remove_file(beside(&disk.path, "-shm"));
        let store = open(&disk.path, 2).unwrap();
        assert_eq!(texts(&store), ["kept", "second"], "{removed:?}");
    }
}

fn remove_log(path: &Path) {
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(beside(path, suffix));
    }
}

/// An unlinked log is not moved into a database that another process wrote since.
#[test]
fn a_removed_log_does_not_overwrite_later_commits() {
    overtake_removed_log(false);
}

/// The same if the other process's log is gone too and only the database shows the write.
#[test]
fn a_removed_log_does_not_overwrite_a_database_that_was_written_since() {
    overtake_removed_log(true);
}

fn overtake_removed_log(is_removed_again: bool) {
    let (disk, store) = working();
    let head = block_on(store.head(agent(1))).unwrap().unwrap();
    remove_log(&disk.path);
    let program = std::env::current_exe().unwrap();
    let part = disk.path.display().to_string();
    let player = ikigai_testkit::Player::run(
        std::process::Command::new(program),
        "removal::commits_as_another_process",
        &part,
    );
    assert_eq!(player.finish(), ["done"]);
    if is_removed_again {
        remove_log(&disk.path);
    }

    let lost = block_on(store.commit(say(agent(1), head.epoch, head.seq, "lost")));
    assert!(
        matches!(lost, Err(CommitError::Store(StoreError::Away { .. }))),
        "{lost:?}"
    );
    drop(store);

    let store = open(&disk.path, 2).unwrap();
    let head = block_on(store.head(agent(2))).unwrap().unwrap();
    assert_eq!(head.seq, Seq(50));
    assert_eq!(block_on(store.integrity()).unwrap(), Vec::<String>::new());
}

#[test]
#[ignore = "a part that another test starts"]
fn commits_as_another_process() {
    let Some(part) = ikigai_testkit::part() else {
        return;
    };
    let store = open(Path::new(&part[0]), 9).unwrap();
    block_on(store.commit(only(create(agent(2), None)))).unwrap();
    for seq in 0..50 {
        let text = "theirs ".repeat(500);
        block_on(store.commit(say(agent(2), Epoch(1), Seq(seq), &text))).unwrap();
    }
    drop(store);
    let connection = Connection::open(&part[0]).unwrap();
    let fold = "PRAGMA wal_checkpoint(TRUNCATE)";
    connection.query_row(fold, [], |_| Ok(())).unwrap();
    ikigai_testkit::tell("done");
}
