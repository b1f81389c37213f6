//! Stores of other versions.

use std::fs;

use ikigai_core::{MachineId, PageQuery, Seq, Span};
use ikigai_store::sqlite::{MIGRATIONS, Migrations, SqliteOptions};
use ikigai_store::{
    CommitError, Effect, LeaseEffect, Log, MailOrigin, MailTopic, ProcessRecord, ReadLog,
    SqliteStore, StoreError,
};
use ikigai_testkit::block_on;
use rusqlite::Connection;

use crate::support::{
    Disk, agent, make_old, mode, only, open, open_as, process, say, session, texts,
};

/// A store of a newer program is refused with both versions named, and stays unchanged.
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
        matches!(refused, StoreError::Newer { store: 41, program } if program as usize == OURS),
        "{refused:?}"
    );
    let text = refused.to_string();
    let ours = format!("version {OURS}");
    assert!(text.contains("41") && text.contains(&ours), "{text}");
    assert_eq!(fs::read(&disk.path).unwrap(), before);
}

/// The version of this program.
const OURS: usize = MIGRATIONS.len();

/// This program's versions and one more.
fn with(statements: &'static str) -> Migrations {
    [MIGRATIONS, &[statements]].concat().leak()
}

fn next() -> Migrations {
    with("CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT;")
}

fn broken() -> Migrations {
    with("CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT; INSERT INTO nothing VALUES (1);")
}

/// A store is backed up before a migration; processes of the old version stop writing.
///
/// E13.
#[test]
fn a_store_is_migrated_after_a_backup_and_old_processes_are_told() {
    let disk = Disk::with_store();
    let old = open(&disk.path, 1).unwrap();
    let taken =
        block_on(old.commit(only(Effect::Lease(LeaseEffect::Take { agent: agent(1) })))).unwrap();
    let epoch = taken.leases[0].1;
    block_on(old.commit(say(agent(1), epoch, Seq(1), "in the log only"))).unwrap();

    let new = open_as(&disk.path, 2, next()).unwrap();

    let late = block_on(old.commit(say(agent(1), epoch, Seq(2), "late")));
    let Err(CommitError::Store(StoreError::Migrated { store, program })) = late else {
        panic!("{late:?}");
    };
    assert_eq!((store as usize, program as usize), (OURS + 1, OURS));
    assert_eq!(texts(&new), ["kept", "in the log only"]);
    let backup = disk.path.with_file_name(format!("log.db.backup-v{OURS}"));
    assert_eq!(mode(&backup), 0o600);
    let copy = open(&backup, 3).unwrap();
    assert_eq!(texts(&copy), ["kept", "in the log only"]);
    drop((old, new, copy));
    let Err(StoreError::Newer { store, program }) = open(&disk.path, 4) else {
        panic!("a newer store is refused");
    };
    assert_eq!((store as usize, program as usize), (OURS + 1, OURS));
}

/// A store of the first version is migrated with all its rows.
#[test]
fn a_store_of_the_first_version_is_migrated() {
    const FIRST: Migrations = &[MIGRATIONS[0]];
    let disk = Disk::with_store();
    let early = disk.path.with_file_name("early.db");
    drop(make_old(&early, FIRST, "said early"));

    let migrated = open(&early, 2).unwrap();

    assert_eq!(texts(&migrated), ["said early"]);
    assert!(block_on(migrated.queued_mail(agent(1))).unwrap().is_empty());
    let usage = migrated.usage(Span::whole(agent(1)), 1);
    assert!(block_on(usage).unwrap().is_empty());
    let connection = Connection::open(&early).unwrap();
    let seen = connection.query_row(
        "SELECT m.agent, m.seq, m.content, a.last_seq FROM v_messages m JOIN v_agents a USING (agent)",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    );
    let expected: (String, i64, String, i64) =
        (agent(1).to_string(), 1, "said early".to_owned(), 1);
    assert_eq!(seen.unwrap(), expected);
}

/// A failed migration changes nothing; the next one does not overwrite its backup.
#[test]
fn a_failed_migration_changes_nothing_and_no_backup_is_overwritten() {
    let disk = Disk::with_store();
    let backup = disk.path.with_file_name(format!("log.db.backup-v{OURS}"));
    fs::write(&backup, "something else").unwrap();

    let failed = open_as(&disk.path, 2, broken());

    assert!(matches!(failed, Err(StoreError::Io(_))), "{failed:?}");
    assert_eq!(texts(&open(&disk.path, 3).unwrap()), ["kept"]);
    assert_eq!(texts(&open_as(&disk.path, 4, next()).unwrap()), ["kept"]);
    assert_eq!(fs::read_to_string(&backup).unwrap(), "something else");
    let names = disk.names();
    assert!(
        names.contains(&format!("log.db.backup-v{OURS}.2")),
        "{names:?}"
    );
    assert!(
        names.contains(&format!("log.db.backup-v{OURS}.3")),
        "{names:?}"
    );
    assert!(
        !names.iter().any(|name| name.ends_with("partial")),
        "{names:?}"
    );
}

/// E13b: an older program refuses a store whose rows have shapes that it would ignore: grant tags
/// (8), environment blocks (9), pins of the prefix (12), authors and names
/// of workspaces (17), changed files (19).
///
/// A store without them is migrated without a question or a loss.
#[test]
fn older_program_refuses_new_shapes() {
    for version in [7, 8, 11, 15, 16, 18] {
        refuses_new_shapes(version);
    }
}

fn refuses_new_shapes(version: u32) {
    let before: Migrations = &MIGRATIONS[..version as usize];
    let disk = Disk::new();
    drop(make_old(&disk.path, before, "kept"));

    let new = open(&disk.path, 2).unwrap();
    let refused = open_as(&disk.path, 3, before).unwrap_err();

    assert_eq!(texts(&new), ["kept"]);
    assert!(
        matches!(refused, StoreError::Newer { store, program } if (store as usize, program) == (OURS, version)),
        "{refused:?}"
    );
}

/// Mail of an older store gets its origin and topic. A report is known by its sender's answer.
#[test]
fn mail_of_an_older_store_gets_origin_and_topic() {
    let old: Migrations = &MIGRATIONS[..10];
    let disk = Disk::with_store();
    let early = disk.path.with_file_name("early.db");
    let connection = make_old(&early, old, "first");
    connection
        .execute_batch(
            "INSERT INTO agents (uuid, session, created_at, status, name)
             VALUES ('fke-1EabSM2M2Nm-7PN3lw', 1, 5, 'running', 'agent-2');
             INSERT INTO heads (agent, seq, epoch) VALUES (2, 0, 1);
             INSERT INTO messages (agent, seq, kind, control, created_at, content)
             VALUES (2, 1, 'assistant', 0, 1, 'it is done');
             UPDATE heads SET seq = 1 WHERE agent = 2;
             INSERT INTO mail (uuid, receiver, sender, sent_at, state, text) VALUES
                 (x'00000000000000000000000000000001', 1, NULL, 1, 'queued', 'I could not finish: me'),
                 (x'00000000000000000000000000000002', 1, 2, 1, 'queued', 'half way'),
                 (x'00000000000000000000000000000003', 1, 2, 1, 'queued', 'it is done'),
                 (x'00000000000000000000000000000004', 1, 2, 1, 'delivered', 'I could not finish: x');",
        )
        .unwrap();
    drop(connection);

    let migrated = open(&early, 2).unwrap();

    let mail = block_on(migrated.mail(agent(1))).unwrap();
    let told: Vec<_> = mail.iter().map(|mail| (mail.origin, mail.about)).collect();
    assert_eq!(
        told,
        [
            (MailOrigin::User, MailTopic::Message),
            (MailOrigin::Agent, MailTopic::Message),
            (MailOrigin::Agent, MailTopic::Report),
            (MailOrigin::Agent, MailTopic::Failed),
        ]
    );
}

/// E13b: a store of before machines keeps every row, and its sessions get machines without a question.
///
/// A session is of the machine with its newest owner's host name, else of the first one that works here.
#[test]
fn a_store_of_before_machines_keeps_its_rows_and_sessions_get_machines() {
    let old: Migrations = &MIGRATIONS[..16];
    let disk = Disk::new();
    let connection = make_old(&disk.path, old, "kept");
    let [second, third] = [2, 3].map(agent);
    connection
        .execute_batch(&format!(
            "INSERT INTO sessions (uuid, created_at, name, directory)
             VALUES ('{}', 1, 'work', '/b'), ('{}', 1, 'work', '/c');
             INSERT INTO processes (uuid, pid, started, host)
             VALUES ('{}', 1, 1, 'here'), ('{}', 2, 2, 'elsewhere'), ('{}', 3, 3, 'here');
             INSERT INTO agents (uuid, session, created_at, status, name)
             VALUES ('{second}', 2, 5, 'running', 'b'), ('{third}', 3, 5, 'running', 'c'),
                    ('{}', 2, 5, 'running', 'd');
             INSERT INTO heads (agent, seq, epoch, owner) VALUES (2, 0, 1, 3), (3, 0, 1, 2), (4, 0, 1, 2);",
            session(2),
            session(3),
            process(11).id,
            process(12).id,
            process(13).id,
            agent(4),
        ))
        .unwrap();
    let rows = |connection: &Connection| {
        let mut rows = connection
            .prepare(
                "SELECT id, agent, seq, kind, control, created_at, content, data FROM messages",
            )
            .unwrap();
        let read = rows.query_map([], |row| {
            let cells = (0..8).map(|cell| row.get::<_, rusqlite::types::Value>(cell));
            cells.collect::<Result<Vec<_>, _>>()
        });
        read.unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    let before = rows(&connection);
    let of = |number, host: &str, machine| ProcessRecord {
        host: host.to_owned(),
        machine: MachineId::from_random([machine; 16]),
        ..process(number)
    };
    let open = |record| SqliteStore::open(SqliteOptions::new(&disk.path, record)).unwrap();
    let (here, there) = (of(21, "here", 1), of(22, "elsewhere", 2));
    let machines = |store: &SqliteStore| {
        let sessions = block_on(store.sessions()).unwrap().into_iter();
        sessions.map(|it| it.machine).collect::<Vec<_>>()
    };

    let store = open(here.clone());
    let unclaimed = block_on(store.sessions()).unwrap();
    let take = |agent| only(Effect::Lease(LeaseEffect::Take { agent }));
    block_on(store.commit(take(agent(1)))).unwrap();
    let claimed = machines(&store);
    let other = open(there.clone());
    block_on(other.commit(take(third))).unwrap();

    assert_eq!(rows(&connection), before);
    assert_eq!(before.len(), 1);
    let is_here: Vec<_> = unclaimed
        .iter()
        .map(|it| it.is_on(here.machine, Some("here")))
        .collect();
    assert_eq!(is_here, [true, true, false]);
    assert_eq!(claimed, [here.machine, here.machine, None]);
    assert_eq!(
        machines(&other),
        [here.machine, here.machine, there.machine]
    );
    assert_eq!(block_on(store.mail(agent(1))).unwrap(), []);
    let authors = block_on(store.page(PageQuery::oldest(Span::whole(agent(1)), 9))).unwrap();
    assert!(authors.iter().all(|row| row.author.is_none()));
}
