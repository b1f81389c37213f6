//! The file and its disk: unusable files are refused with the reason and left unchanged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ikigai_core::{Epoch, Seq};
use ikigai_store::{
    Admin, Batch, CommitError, Effect, LeaseEffect, Log, MailEffect, MailId, ReadLog, StoreError,
};
use ikigai_testkit::{block_on, copy_program};
use rusqlite::Connection;

use crate::support::{
    Disk, Player, agent, claim, create, is_long, make_agent, mode, only, open, part, process, said,
    say, tell, texts, together,
};

/// A full disk fails the append with the reason and writes nothing.
///
/// Appends succeed again once there is space.
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

/// A batch without space fails alone; other batches of its transaction are stored.
#[test]
fn a_batch_without_room_fails_alone() {
    let disk = Disk::with_store();
    let store = open(&disk.path, 1).unwrap();
    block_on(store.commit(only(Effect::Lease(LeaseEffect::Take { agent: agent(1) })))).unwrap();
    store.faults().limit_pages(80);
    let large = "x".repeat(1024 * 1024);

    let results = together(
        &store,
        &disk.path,
        [
            say(agent(1), Epoch(1), Seq(1), "first"),
            say(agent(1), Epoch(1), Seq(2), &large),
            say(agent(1), Epoch(1), Seq(2), "second"),
        ],
    );

    let [first, second, third] = results;
    first.unwrap();
    assert!(
        matches!(second, Err(CommitError::Store(StoreError::Full(_)))),
        "{second:?}"
    );
    third.unwrap();
    assert_eq!(texts(&store), ["kept", "first", "second"]);
}

/// A refused batch leaves no row; other batches of its transaction are committed.
#[test]
fn a_refused_batch_is_taken_back_alone() {
    let disk = Disk::with_store();
    let store = open(&disk.path, 1).unwrap();
    block_on(store.commit(only(Effect::Lease(LeaseEffect::Take { agent: agent(1) })))).unwrap();
    let mut refused = say(agent(1), Epoch(1), Seq(3), "half");
    refused
        .with
        .push(Effect::Mail(MailEffect::Bounce { mail: MailId(1) }));

    let results = together(
        &store,
        &disk.path,
        [
            say(agent(1), Epoch(1), Seq(1), "first"),
            say(agent(1), Epoch(1), Seq(2), "second"),
            refused,
            say(agent(1), Epoch(1), Seq(3), "third"),
        ],
    );

    let [first, second, refused, third] = results;
    assert!(
        matches!(refused, Err(CommitError::MailGone(_))),
        "{refused:?}"
    );
    let seqs = [first, second, third].map(|done| done.unwrap().rows[0].seq);
    assert_eq!(seqs, [Seq(2), Seq(3), Seq(4)]);
    assert_eq!(texts(&store), ["kept", "first", "second", "third"]);
}

/// A row of an unknown agent, or without a claim, is refused.
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

/// Foreign files are refused and stay byte for byte as they are.
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

/// A damaged store is reported when it is opened or when the damaged part is read.
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

/// A row that is not text does not prevent reading the others.
#[test]
fn a_row_that_is_no_text_is_read_as_far_as_it_goes() {
    let disk = Disk::with_store();
    let connection = Connection::open(&disk.path).unwrap();
    connection
        .execute_batch("UPDATE messages SET content = CAST(x'41ff42' AS TEXT)")
        .unwrap();

    assert_eq!(texts(&open(&disk.path, 2).unwrap()), ["A\u{fffd}B"]);
}

/// New directories and files get owner-only permissions; existing ones stay unchanged.
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

/// A path that cannot hold a file is refused, and nothing is created.
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

/// Opening a write-protected file or directory fails with the reason.
///
/// Root may write anything, so the part runs as an unprivileged user.
#[test]
fn a_write_protected_store_is_refused() {
    let disk = Disk::with_store();
    let directory = disk.directory.path();
    let program = directory.join("program");
    copy_program(&program);
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
            Player::run(command, "disk::reports_why_it_cannot_open", &part).finish()
        })
        .collect();

    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(told, ["read-only", "read-only", "place"]);
    assert_eq!(fs::read(&disk.path).unwrap(), before);
    assert!(!missing.exists() && !deep.exists());
}

/// The part of the unprivileged user in [`a_write_protected_store_is_refused`].
#[test]
#[ignore = "a part that another test starts"]
fn reports_why_it_cannot_open() {
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

/// A database locked by another program is reported busy, and is writable once free.
///
/// The test takes as long as the store's busy timeout.
#[test]
fn a_locked_store_is_busy_until_it_is_free() {
    if !is_long() {
        return;
    }
    let disk = Disk::with_store();
    let store = open(&disk.path, 1).unwrap();
    let other = Connection::open(&disk.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let take =
        || block_on(store.commit(only(Effect::Lease(LeaseEffect::Take { agent: agent(1) }))));

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
    block_on(first.commit(only(Effect::Lease(LeaseEffect::Take { agent: agent(1) })))).unwrap();

    let second = open(&link, 2).unwrap();
    let refused =
        block_on(second.commit(only(Effect::Lease(LeaseEffect::Take { agent: agent(1) }))));

    assert_eq!(second.path(), first.path());
    assert!(
        matches!(refused, Err(CommitError::Held { .. })),
        "{refused:?}"
    );
}

/// An idle writer checkpoints a large write-ahead log into the database.
#[test]
fn an_idle_writer_folds_its_log() {
    if !is_long() {
        return;
    }
    let disk = Disk::with_store();
    let store = open(&disk.path, 1).unwrap();
    block_on(store.commit(only(Effect::Lease(LeaseEffect::Take { agent: agent(1) })))).unwrap();
    let large = "x".repeat(1024 * 1024);
    block_on(store.commit(say(agent(1), Epoch(1), Seq(1), &large))).unwrap();
    let log = disk.path.with_file_name("log.db-wal");
    let log_bytes = || fs::metadata(&log).unwrap().len();
    assert!(log_bytes() > 0);

    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while log_bytes() > 0 {
        assert!(
            std::time::Instant::now() < deadline,
            "the log is never folded"
        );
        std::thread::yield_now();
    }

    assert_eq!(texts(&store), ["kept".to_owned(), large]);
}
