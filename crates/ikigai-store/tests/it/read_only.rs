//! Stores that cannot be written: everything in them can be read, and nothing is created.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ikigai_core::find::Words;
use ikigai_store::sql::QueryLimits;
use ikigai_store::sqlite::SqliteOptions;
use ikigai_store::{
    Admin, Batch, CommitError, Effect, LeaseEffect, Log, ReadLog, SearchQuery, SqliteStore,
    StoreError,
};
use ikigai_testkit::{block_on, copy_program};
use tempfile::TempDir;

use crate::support::{
    Disk, Player, agent, only, open, part, process, say, tell, texts, wait_for_parent,
};

fn open_reading(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(SqliteOptions::new(path, process(9)).reading())
}

/// A directory with files that another user may only read.
struct Archive {
    directory: TempDir,
}

impl Archive {
    /// Copies these files of a store; `log.db` and its suffixes.
    fn of(disk: &Disk, suffixes: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for suffix in suffixes {
            let name = format!("log.db{suffix}");
            let path = directory.path().join(&name);
            fs::copy(disk.directory.path().join(&name), &path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        }
        copy_program(&directory.path().join("program"));
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).unwrap();
        Self { directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("log.db")
    }

    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<_> = fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_name() != "program")
            .map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                (name, fs::read(entry.path()).unwrap())
            })
            .collect();
        files.sort();
        files
    }

    /// Returns rows that a user without write access reads.
    fn read(&self) -> Vec<String> {
        read_as_nobody(&self.directory.path().join("program"), &self.path())
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        let mode = fs::Permissions::from_mode(0o755);
        let _ = fs::set_permissions(self.directory.path(), mode);
    }
}

fn read_as_nobody(program: &Path, path: &Path) -> Vec<String> {
    let mut command = Command::new(program);
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    let part = path.display().to_string();
    Player::run(command, "read_only::reads_all_there_is", &part).finish()
}

/// The part of a reader without the right to write.
#[test]
#[ignore = "a part that another test starts"]
fn reads_all_there_is() {
    let Some(part) = part() else { return };
    let store = match open_reading(Path::new(&part[0])) {
        Ok(store) => store,
        Err(error) => return tell(&format!("error: {error}")),
    };
    tell(&texts(&store).join(" "));
    let query = SearchQuery {
        words: Words::parse("row"),
        limit: 10,
        ..SearchQuery::default()
    };
    let page = block_on(store.search(query)).unwrap();
    assert!(!page.cut);
    let found: Vec<_> = page.hits.into_iter().map(|hit| hit.snippet.text).collect();
    tell(&found.join(" "));
    let limits = QueryLimits {
        rows: 10,
        time: std::time::Duration::from_mins(1),
    };
    let table = store
        .query("SELECT count(*) FROM messages", limits)
        .unwrap();
    tell(&format!("{:?}", table.rows));
    let (lines, mut told) = tokio::sync::mpsc::channel(1000);
    block_on(store.dump(None, lines)).unwrap();
    let mut count = 0;
    while told.blocking_recv().is_some() {
        count += 1;
    }
    assert!(count > 3, "{count}");
    assert_eq!(block_on(store.integrity()).unwrap(), Vec::<String>::new());
    let _watch = store.watch().unwrap();
    let refused = block_on(store.commit(Batch {
        with: vec![Effect::Lease(LeaseEffect::Take { agent: agent(1) })],
        ..Batch::default()
    }));
    assert!(
        matches!(refused, Err(CommitError::Store(StoreError::ReadOnly(_)))),
        "{refused:?}"
    );
    store.close();
}

/// Takes the agent if need be and adds a row.
fn add(store: &SqliteStore, text: &str) {
    block_on(store.commit(only(Effect::Lease(LeaseEffect::Take { agent: agent(1) })))).unwrap();
    let head = block_on(store.head(agent(1))).unwrap().unwrap();
    block_on(store.commit(say(agent(1), head.epoch, head.seq, text))).unwrap();
}

/// Returns a store with its first row in database and index.
///
/// Its second row is in neither.
fn half_folded() -> (Disk, SqliteStore) {
    let disk = Disk::with_store();
    let store = open(&disk.path, 1).unwrap();
    add(&store, "row-one");
    while block_on(store.index_chunk()).unwrap() > 0 {}
    drop(store);
    let store = open(&disk.path, 2).unwrap();
    add(&store, "row-two");
    (disk, store)
}

const ALL: [&str; 3] = ["kept row-one row-two", "row-two row-one", "[[Integer(3)]]"];

#[test]
fn a_store_that_was_closed_is_read_without_its_log() {
    let (disk, store) = half_folded();
    drop(store);
    let archive = Archive::of(&disk, &[""]);
    let before = archive.files();

    assert_eq!(archive.read(), ALL);
    assert_eq!(archive.files(), before);
}

/// A crash, or a copy of a running store, leaves rows in the log.
#[test]
fn a_log_that_was_left_is_read_with_and_without_its_index() {
    let (disk, store) = half_folded();
    for suffixes in [&["", "-wal", "-shm"][..], &["", "-wal"]] {
        let archive = Archive::of(&disk, suffixes);
        let before = archive.files();

        assert_eq!(archive.read(), ALL, "{suffixes:?}");
        assert_eq!(archive.files(), before);
    }
    drop(store);
}

/// An empty write-ahead log does not prevent reading.
#[test]
fn an_empty_log_is_no_obstacle() {
    let (disk, store) = half_folded();
    drop(store);
    fs::write(disk.directory.path().join("log.db-wal"), "").unwrap();
    let archive = Archive::of(&disk, &["", "-wal"]);

    assert_eq!(archive.read(), ALL);
}

/// Commits of another user's running process are seen.
#[test]
fn a_store_of_another_user_is_read_while_it_is_written() {
    let (disk, store) = half_folded();
    let directory = disk.directory.path();
    let program = directory.join("program");
    copy_program(&program);
    for suffix in ["", "-wal", "-shm"] {
        let path = directory.join(format!("log.db{suffix}"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    if !rustix::process::geteuid().is_root() {
        return;
    }

    assert_eq!(read_as_nobody(&program, &disk.path), ALL);
    add(&store, "row-three");
    let told = read_as_nobody(&program, &disk.path);
    assert_eq!(
        told[..2],
        [
            "kept row-one row-two row-three",
            "row-three row-two row-one"
        ]
    );
}

/// An unreadable write-ahead log is an error, instead of silently missing rows.
#[test]
fn a_log_that_cannot_be_read_is_named() {
    let (disk, store) = half_folded();
    let archive = Archive::of(&disk, &["", "-wal"]);
    let log = archive.directory.path().join("log.db-wal");
    fs::set_permissions(log, fs::Permissions::from_mode(0o000)).unwrap();

    let found = archive.read();

    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("log.db-wal`, which cannot be read"),
        "{found:?}"
    );
    drop(store);
}

/// A file that changes while it is read without locks is read anew.
#[test]
fn a_file_that_changes_meanwhile_is_read_anew() {
    let (disk, store) = half_folded();
    drop(store);
    let archive = Archive::of(&disk, &[""]);
    let mut command = Command::new(archive.directory.path().join("program"));
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    let part = archive.path().display().to_string();
    let mut player = Player::run(command, "read_only::reads_before_and_after", &part);
    assert_eq!(player.hear().as_deref(), Some("3"));
    let newer = open(&disk.path, 4).unwrap();
    add(&newer, "newer");
    drop(newer);
    fs::set_permissions(archive.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = archive.directory.path().join("copy");
    fs::copy(&disk.path, &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o444)).unwrap();
    fs::rename(&copy, archive.path()).unwrap();
    fs::set_permissions(archive.directory.path(), fs::Permissions::from_mode(0o555)).unwrap();

    assert_eq!(player.finish(), ["4"]);
}

/// The part of a reader whose file is replaced.
#[test]
#[ignore = "a part that another test starts"]
fn reads_before_and_after() {
    let Some(part) = part() else { return };
    let store = open_reading(Path::new(&part[0])).unwrap();
    tell(&texts(&store).len().to_string());
    wait_for_parent();
    tell(&texts(&store).len().to_string());
}
