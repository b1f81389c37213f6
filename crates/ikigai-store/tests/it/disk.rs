//! The file and its disk: what cannot be used is refused by its reason and left as it is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ikigai_core::{Direction, Epoch, PageQuery, Seq, Span};
use ikigai_store::sqlite::{CommitFault, MIGRATIONS, Migrations, OpenOptions};
use ikigai_store::{Batch, CommitError, Effect, SqliteStore, Store, StoreError};
use ikigai_testkit::block_on;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::support::{
    Player, agent, claim, create, is_long, make_agent, make_session, only, open, part, process,
    said, say, tell,
};

struct Disk {
    directory: TempDir,
    path: PathBuf,
}

impl Disk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.db");
        Self { directory, path }
    }

    /// A disk with a store of one agent and one row.
    fn with_store() -> Self {
        let disk = Self::new();
        let store = open(&disk.path, 1).unwrap();
        make_agent(&store, agent(1));
        block_on(store.commit(say(agent(1), Epoch(1), Seq(0), "kept"))).unwrap();
        disk
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn texts(store: &dyn Store) -> Vec<String> {
    let query = PageQuery {
        span: Span::new(agent(1), Seq(1), Seq(u64::MAX)),
        direction: Direction::Forwards,
        limit: usize::MAX,
    };
    let rows = block_on(store.page(query)).unwrap();
    rows.into_iter().filter_map(|row| row.content).collect()
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A full disk fails the append with its reason, nothing is half-written, and it goes on when
/// there is room.
///
/// S2-32: the failure is returned to the caller at once.
#[test]
fn store_failure_propagates() {
    let disk = Disk::new();
    let store = open(&disk.path, 1).unwrap();
    make_agent(&store, agent(1));
    let text = "x".repeat(3000);
    let three = |expected| Batch {
        heads: vec![claim(agent(1), Epoch(1), expected)],
        rows: vec![
            said(agent(1), &text),
            said(agent(1), &text),
            said(agent(1), &text),
        ],
        with: Vec::new(),
    };

    store.faults().limit_pages(60);
    let mut head = Seq(0);
    let failure = loop {
        match block_on(store.commit(three(head))) {
            Ok(done) => head = done.rows.last().unwrap().seq,
            Err(error) => break error,
        }
        assert!(head.0 < 300, "the disk is never full");
    };

    assert!(
        matches!(failure, CommitError::Store(StoreError::Full(_))),
        "{failure:?}"
    );
    assert!(head.0 > 0);
    assert_eq!(block_on(store.head(agent(1))).unwrap().unwrap().seq, head);
    assert_eq!(texts(&store).len() as u64, head.0);
    let again = block_on(store.commit(three(head)));
    assert!(
        matches!(again, Err(CommitError::Store(StoreError::Full(_)))),
        "{again:?}"
    );
    store.faults().limit_pages(0);
    let done = block_on(store.commit(three(head))).unwrap();
    assert_eq!(done.rows[0].seq, head.next());
}

/// Batches that share a transaction with one that finds no room are stored all the same, if there
/// is room for them.
#[test]
fn a_batch_without_room_fails_alone() {
    let disk = Disk::with_store();
    let store = open(&disk.path, 1).unwrap();
    block_on(store.commit(only(Effect::TakeLease { agent: agent(1) }))).unwrap();
    store.faults().limit_pages(80);
    let large = "x".repeat(1024 * 1024);

    // All three are queued before the first is waited for.
    let mut first = store.commit(say(agent(1), Epoch(1), Seq(1), "first"));
    let mut second = store.commit(say(agent(1), Epoch(1), Seq(2), &large));
    let mut third = store.commit(say(agent(1), Epoch(1), Seq(2), "second"));
    let mut results = [None, None, None];
    block_on(std::future::poll_fn(|context| {
        let futures = [&mut first, &mut second, &mut third];
        for (future, result) in futures.into_iter().zip(&mut results) {
            if result.is_none()
                && let std::task::Poll::Ready(done) = future.as_mut().poll(context)
            {
                *result = Some(done);
            }
        }
        if results.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    }));

    let [first, second, third] = results.map(Option::unwrap);
    first.unwrap();
    assert!(
        matches!(second, Err(CommitError::Store(StoreError::Full(_)))),
        "{second:?}"
    );
    third.unwrap();
    assert_eq!(texts(&store), ["kept", "first", "second"]);
}

/// A row whose agent is not there, or which belongs to none of the claims, is refused.
///
/// S3-3 S3-14: also by the tables themselves.
#[test]
fn row_without_owner_is_refused() {
    let disk = Disk::with_store();
    let store = open(&disk.path, 2).unwrap();

    let unknown = block_on(store.commit(say(agent(2), Epoch(1), Seq(0), "lost")));
    let unclaimed = block_on(store.commit(Batch {
        rows: vec![said(agent(1), "lost")],
        ..Batch::default()
    }));
    let connection = Connection::open(&disk.path).unwrap();
    connection
        .pragma_update(None, "foreign_keys", true)
        .unwrap();
    let insert = |agent: Option<i64>| {
        connection.execute(
            "INSERT INTO messages (agent, seq, kind, control, created_at, content)
             VALUES (?1, 2, 'user', 0, 1, 'lost')",
            [agent],
        )
    };

    assert!(
        matches!(unknown, Err(CommitError::NoAgent(_))),
        "{unknown:?}"
    );
    assert!(
        matches!(unclaimed, Err(CommitError::BadBatch(_))),
        "{unclaimed:?}"
    );
    assert!(insert(None).is_err());
    assert!(insert(Some(7)).is_err());
    assert_eq!(texts(&store), ["kept"]);
}

/// A store of a newer program is refused with both versions named, and left as it is.
///
/// E13.
#[test]
fn newer_store_is_refused_with_versions() {
    let disk = Disk::with_store();
    let connection = Connection::open(&disk.path).unwrap();
    connection.pragma_update(None, "user_version", 41).unwrap();
    connection
        .execute_batch("DROP TABLE tool_runs; ALTER TABLE heads RENAME TO tips")
        .unwrap();
    drop(connection);
    let before = fs::read(&disk.path).unwrap();

    let refused = open(&disk.path, 2).unwrap_err();

    assert!(
        matches!(
            refused,
            StoreError::Newer {
                store: 41,
                program: 1
            }
        ),
        "{refused:?}"
    );
    let text = refused.to_string();
    assert!(text.contains("41") && text.contains("version 1"), "{text}");
    assert_eq!(fs::read(&disk.path).unwrap(), before);
}

const NEXT: Migrations = &[
    MIGRATIONS[0],
    "CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT;",
];
const BROKEN: Migrations = &[
    MIGRATIONS[0],
    "CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT; INSERT INTO nothing VALUES (1);",
];

fn open_as(path: &Path, number: u64, migrations: Migrations) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(OpenOptions::new(path, process(number)).with_migrations(migrations))
}

/// A store is copied before it is migrated, and a process under which that happened stops writing.
///
/// E13.
#[test]
fn a_store_is_migrated_after_a_backup_and_old_processes_are_told() {
    let disk = Disk::with_store();
    let old = open(&disk.path, 1).unwrap();
    let taken = block_on(old.commit(only(Effect::TakeLease { agent: agent(1) }))).unwrap();
    let epoch = taken.leases[0].1;
    block_on(old.commit(say(agent(1), epoch, Seq(1), "in the log only"))).unwrap();

    let new = open_as(&disk.path, 2, NEXT).unwrap();

    let late = block_on(old.commit(say(agent(1), epoch, Seq(2), "late")));
    assert!(
        matches!(
            late,
            Err(CommitError::Store(StoreError::Migrated {
                store: 2,
                program: 1
            }))
        ),
        "{late:?}"
    );
    assert_eq!(texts(&new), ["kept", "in the log only"]);
    let backup = disk.path.with_file_name("log.db.backup-v1");
    assert_eq!(mode(&backup), 0o600);
    let copy = open(&backup, 3).unwrap();
    assert_eq!(texts(&copy), ["kept", "in the log only"]);
    drop((old, new, copy));
    assert!(matches!(
        open(&disk.path, 4),
        Err(StoreError::Newer {
            store: 2,
            program: 1
        })
    ));
}

/// A migration that fails changes nothing, and its copy is not overwritten by that of the next.
#[test]
fn a_failed_migration_changes_nothing_and_no_backup_is_overwritten() {
    let disk = Disk::with_store();
    let backup = disk.path.with_file_name("log.db.backup-v1");
    fs::write(&backup, "something else").unwrap();

    let failed = open_as(&disk.path, 2, BROKEN);

    assert!(matches!(failed, Err(StoreError::Io(_))), "{failed:?}");
    assert_eq!(texts(&open(&disk.path, 3).unwrap()), ["kept"]);
    assert_eq!(texts(&open_as(&disk.path, 4, NEXT).unwrap()), ["kept"]);
    assert_eq!(fs::read_to_string(&backup).unwrap(), "something else");
    let names = disk.names();
    assert!(
        names.contains(&"log.db.backup-v1.2".to_owned()),
        "{names:?}"
    );
    assert!(
        names.contains(&"log.db.backup-v1.3".to_owned()),
        "{names:?}"
    );
    assert!(
        !names.iter().any(|name| name.ends_with("partial")),
        "{names:?}"
    );
}

/// What is not one of our databases is refused and left byte for byte as it is.
#[test]
fn what_is_not_ours_is_left_alone() {
    let disk = Disk::new();
    let foreign = disk.directory.path().join("foreign.db");
    Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE theirs (a)")
        .unwrap();
    let tagged = disk.directory.path().join("tagged.db");
    Connection::open(&tagged)
        .unwrap()
        .execute_batch("PRAGMA application_id = 7")
        .unwrap();
    let text = disk.directory.path().join("notes.txt");
    fs::write(
        &text,
        "not a database, but much longer than the header of one. ".repeat(40),
    )
    .unwrap();
    let short = disk.directory.path().join("short");
    fs::write(&short, "x").unwrap();

    for path in [foreign, tagged, text, short] {
        let before = fs::read(&path).unwrap();
        let refused = open(&path, 1);
        assert!(
            matches!(refused, Err(StoreError::NotOurs { .. })),
            "{path:?}: {refused:?}"
        );
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

/// A damaged store is named as such, when it is opened or when the damaged part is read.
#[test]
fn a_damaged_store_is_named_and_left_alone() {
    let disk = Disk::with_store();
    let connection = Connection::open(&disk.path).unwrap();
    let page: usize = connection
        .query_row(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'agents'",
            [],
            |row| row.get::<_, i64>(0),
        )
        .unwrap()
        .try_into()
        .unwrap();
    drop(connection);
    let intact = fs::read(&disk.path).unwrap();
    let mut damaged = intact.clone();
    damaged[100..4096].fill(0xa5);
    fs::write(&disk.path, &damaged).unwrap();
    let refused = open(&disk.path, 2);
    assert!(
        matches!(refused, Err(StoreError::Corrupt(_))),
        "{refused:?}"
    );
    assert_eq!(fs::read(&disk.path).unwrap(), damaged);

    let mut damaged = intact;
    damaged[(page - 1) * 4096..page * 4096].fill(0xa5);
    fs::write(&disk.path, &damaged).unwrap();
    let store = open(&disk.path, 2).unwrap();
    let read = block_on(store.agents(None));
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    let written = block_on(store.commit(only(create(agent(2), None))));
    assert!(
        matches!(written, Err(CommitError::Store(StoreError::Corrupt(_)))),
        "{written:?}"
    );
}

/// A row that is no text does not keep the others from being read.
#[test]
fn a_row_that_is_no_text_is_read_as_far_as_it_goes() {
    let disk = Disk::with_store();
    let connection = Connection::open(&disk.path).unwrap();
    connection
        .execute_batch("UPDATE messages SET content = CAST(x'41ff42' AS TEXT)")
        .unwrap();

    assert_eq!(texts(&open(&disk.path, 2).unwrap()), ["A\u{fffd}B"]);
}

/// Directories and files are made for their owner alone; what is there is not changed.
#[test]
fn missing_directories_are_made_for_the_owner_alone() {
    let root = tempfile::tempdir().unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let directory = root.path().join("one").join("two");
    let path = directory.join("log.db");
    let store = open(&path, 1).unwrap();
    let _watch = store.watch().unwrap();
    make_agent(&store, agent(1));

    assert_eq!(mode(root.path()), 0o755);
    assert_eq!(mode(root.path().join("one")), 0o700);
    assert_eq!(mode(&directory), 0o700);
    let mut seen = Vec::new();
    for entry in fs::read_dir(&directory).unwrap() {
        let entry = entry.unwrap();
        let expected = if entry.path().is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(entry.path()), expected, "{:?}", entry.path());
        seen.push(entry.file_name().into_string().unwrap());
    }
    seen.sort();
    assert_eq!(
        seen,
        [
            "log.db",
            "log.db-locks",
            "log.db-notify",
            "log.db-shm",
            "log.db-wal"
        ]
    );
    let lock = directory
        .join("log.db-locks")
        .join(process(1).id.to_string());
    assert_eq!(mode(&lock), 0o600);
    drop(store);
    assert!(!lock.exists(), "a clean end leaves its lock");
    assert!(
        !path.with_file_name("log.db-wal").exists(),
        "a clean end leaves its log"
    );

    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let _ = open(&path, 2);
    assert_eq!(mode(&path), 0o400);
}

/// A place that can hold no file is refused, and nothing is made there.
#[test]
fn an_unusable_place_is_named() {
    let disk = Disk::new();
    let file = disk.directory.path().join("file");
    fs::write(&file, "mine").unwrap();

    for path in [
        file.join("log.db"),
        disk.directory.path().to_owned(),
        PathBuf::from("/"),
    ] {
        let refused = open(&path, 1);
        assert!(
            matches!(refused, Err(StoreError::Place { .. })),
            "{path:?}: {refused:?}"
        );
    }
    assert_eq!(disk.names(), ["file"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

/// Whoever may not write the file or its directory is told so. Root may write anything, so the
/// part is played as nobody.
#[test]
fn a_write_protected_store_is_refused() {
    let disk = Disk::with_store();
    let directory = disk.directory.path();
    let program = directory.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&disk.path, fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o555)).unwrap();
    let before = fs::read(&disk.path).unwrap();

    let missing = directory.join("missing.db");
    let deep = directory.join("deep").join("log.db");
    let told: Vec<_> = [&disk.path, &missing, &deep]
        .into_iter()
        .flat_map(|path| {
            let mut command = Command::new(&program);
            if rustix::process::geteuid().is_root() {
                command.uid(65534).gid(65534);
            }
            let part = path.display().to_string();
            Player::run(command, "disk::tells_why_it_cannot_open", &part).finish()
        })
        .collect();

    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(told, ["read-only", "read-only", "place"]);
    assert_eq!(fs::read(&disk.path).unwrap(), before);
    assert!(!missing.exists() && !deep.exists());
}

/// The part of somebody else in [`a_write_protected_store_is_refused`].
#[test]
#[ignore = "a part that another test starts"]
fn tells_why_it_cannot_open() {
    let Some(part) = part() else { return };
    tell(match open(Path::new(&part[0]), 2) {
        Err(StoreError::ReadOnly(_)) => "read-only",
        Err(StoreError::Place { .. }) => "place",
        other => panic!("{other:?}"),
    });
}

/// Opening a store of this version and reading from it commits nothing.
#[test]
fn opening_and_reading_commit_nothing() {
    let disk = Disk::with_store();
    let connection = Connection::open(&disk.path).unwrap();
    let version = || {
        connection
            .query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let before = (version(), fs::read(&disk.path).unwrap());

    let store = open(&disk.path, 2).unwrap();
    assert_eq!(texts(&store), ["kept"]);
    let _watch = store.watch().unwrap();
    store.close();

    assert_eq!((version(), fs::read(&disk.path).unwrap()), before);
    assert!(matches!(
        block_on(store.agents(None)),
        Err(StoreError::Closed)
    ));
    let late = block_on(store.commit(Batch::default()));
    assert!(
        matches!(late, Err(CommitError::Store(StoreError::Closed))),
        "{late:?}"
    );
}

/// A commit whose outcome is unknown is read back: what is stored is told as stored, what is not
/// as failed, and nothing is written twice.
#[test]
fn an_unknown_outcome_is_read_back() {
    let disk = Disk::with_store();
    let store = open(&disk.path, 1).unwrap();
    let lease = block_on(store.commit(only(Effect::TakeLease { agent: agent(1) }))).unwrap();
    let epoch = lease.leases[0].1;
    let say = |expected, text| block_on(store.commit(say(agent(1), epoch, Seq(expected), text)));

    store.faults().fail_commit(CommitFault::Stored);
    let stored = say(1, "stored").unwrap();
    store.faults().fail_commit(CommitFault::Lost);
    let lost = say(2, "lost");
    let after = say(2, "after").unwrap();
    store.faults().fail_commit(CommitFault::Unreadable);
    let unknown = say(3, "unknown");
    let behind = say(3, "unknown");

    assert_eq!(stored.rows[0].seq, Seq(2));
    assert!(
        matches!(lost, Err(CommitError::Store(StoreError::Io(_)))),
        "{lost:?}"
    );
    assert_eq!(after.rows[0].seq, Seq(3));
    assert!(
        matches!(unknown, Err(CommitError::Unknown(_))),
        "{unknown:?}"
    );
    assert!(
        matches!(behind, Err(CommitError::Behind { actual: Seq(4), .. })),
        "{behind:?}"
    );
    assert_eq!(texts(&store), ["kept", "stored", "after", "unknown"]);
}

/// The outcome of a commit without rows is read back as well.
#[test]
fn an_unknown_outcome_without_rows_is_read_back() {
    let disk = Disk::with_store();
    let store = open(&disk.path, 1).unwrap();
    let create = |number| block_on(store.commit(only(create(agent(number), None))));

    store.faults().fail_commit(CommitFault::Lost);
    let lost = create(2);
    store.faults().fail_commit(CommitFault::Stored);
    let stored = create(3);
    store.faults().fail_commit(CommitFault::Lost);
    let lost_again = create(4);

    assert!(
        matches!(lost, Err(CommitError::Store(StoreError::Io(_)))),
        "{lost:?}"
    );
    assert_eq!(stored.unwrap().leases, [(agent(3), Epoch(1))]);
    assert!(lost_again.is_err());
    let there = |number| block_on(store.agent(agent(number))).unwrap().is_some();
    assert_eq!([2, 3, 4].map(there), [false, true, false]);
    let session = block_on(store.commit(only(make_session())));
    assert!(
        matches!(session, Err(CommitError::BadBatch(_))),
        "{session:?}"
    );
}

/// A database that another program keeps locked is told as busy, and can be written once it is
/// free. It takes as long as the store is patient.
#[test]
fn a_locked_store_is_busy_until_it_is_free() {
    if !is_long() {
        return;
    }
    let disk = Disk::with_store();
    let store = open(&disk.path, 1).unwrap();
    let other = Connection::open(&disk.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let take = || block_on(store.commit(only(Effect::TakeLease { agent: agent(1) })));

    let busy = take();
    other.execute_batch("ROLLBACK").unwrap();

    assert!(
        matches!(busy, Err(CommitError::Store(StoreError::Busy(_)))),
        "{busy:?}"
    );
    take().unwrap();
}

/// Two links to one file are one store: its processes find the same locks.
#[test]
fn a_link_leads_to_the_same_store() {
    let disk = Disk::with_store();
    let link = disk.directory.path().join("link.db");
    std::os::unix::fs::symlink(&disk.path, &link).unwrap();
    let first = open(&disk.path, 1).unwrap();
    block_on(first.commit(only(Effect::TakeLease { agent: agent(1) }))).unwrap();

    let second = open(&link, 2).unwrap();
    let refused = block_on(second.commit(only(Effect::TakeLease { agent: agent(1) })));

    assert_eq!(second.path(), first.path());
    assert!(
        matches!(refused, Err(CommitError::Held { .. })),
        "{refused:?}"
    );
}
