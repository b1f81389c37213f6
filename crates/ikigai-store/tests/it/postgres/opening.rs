//! Connecting to a server, and migrations when a log is first opened.

use ikigai_core::{Epoch, MachineId, Seq};
use ikigai_store::postgres::{ConnectionRole, Link, MIGRATIONS, Migrations, PostgresTarget, Url};
use ikigai_store::{
    AgentEffect, CommitError, Effect, LeaseEffect, Log, ProcessRecord, Status, StoreError,
};
use ikigai_testkit::postgres::{Database, PgServer};
use ikigai_testkit::stores::open_log;
use ikigai_testkit::{Player, block_on, part};
use tokio::runtime::Builder;

use crate::support::{agent, make_agent, only, open_at, process, say, session, texts};

/// The log as the first version made it.
const FIRST: Migrations = &[MIGRATIONS[0]];

fn target(url: &str, migrations: Migrations) -> PostgresTarget {
    PostgresTarget::new(Url::parse(url).unwrap(), migrations).unwrap()
}

/// Opens a log and returns what `then` reads.
fn prepared<T>(
    target: &PostgresTarget,
    then: impl AsyncFnOnce(Link) -> T,
) -> Result<T, StoreError> {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let link = target.prepare(ConnectionRole::Reading).await?;
        Ok(then(link).await)
    })
}

fn prepare(target: &PostgresTarget) -> Result<(), StoreError> {
    prepared(target, async |_| ())
}

fn version(database: &Database) -> String {
    let rows = database.sql("SELECT version FROM schema_version");
    rows[0][0].clone().unwrap()
}

#[test]
fn a_log_is_made_once_and_then_only_read() {
    let database = Database::fresh();
    let target = target(&database.url(), MIGRATIONS);

    prepare(&target).unwrap();
    database
        .sql("INSERT INTO sessions (uuid, created_at, name, directory) VALUES ('s', 1, '', '')");
    prepare(&target).unwrap();

    assert_eq!(version(&database), MIGRATIONS.len().to_string());
    assert_eq!(
        database.sql("SELECT uuid FROM sessions"),
        [[Some("s".to_owned())]]
    );
}

#[test]
fn each_schema_is_a_log_of_its_own() {
    let database = Database::fresh();
    let url = format!("{}&schema=other", database.url());

    prepare(&target(&database.url(), MIGRATIONS)).unwrap();
    prepare(&target(&url, MIGRATIONS)).unwrap();
    database
        .sql("INSERT INTO sessions (uuid, created_at, name, directory) VALUES ('s', 1, '', '')");

    let count = prepared(&target(&url, MIGRATIONS), async |link: Link| {
        let row = link.client.query_one("SELECT count(*) FROM sessions", &[]);
        row.await.unwrap().get::<_, i64>(0)
    });
    assert_eq!(count.unwrap(), 0);
}

#[test]
fn an_older_log_is_migrated_and_a_newer_one_refused() {
    const NEXT: Migrations = &[MIGRATIONS[0], "CREATE TABLE next (id bigint);"];
    let database = Database::fresh();
    let old = target(&database.url(), FIRST);
    let new = target(&database.url(), NEXT);

    prepare(&old).unwrap();
    prepare(&new).unwrap();

    assert_eq!(version(&database), "2");
    let refused = prepare(&old).unwrap_err();
    assert!(
        matches!(
            refused,
            StoreError::Newer {
                store: 2,
                program: 1
            }
        ),
        "{refused:?}"
    );
}

/// E13b: an older program would ignore grant tags of rows, so it refuses the log.
#[test]
fn a_program_from_before_grants_refuses_the_log() {
    let database = Database::fresh();
    let old = target(&database.url(), MIGRATIONS.split_at(2).0);
    prepare(&old).unwrap();
    database
        .sql("INSERT INTO sessions (uuid, created_at, name, directory) VALUES ('s', 1, '', '')");

    prepare(&target(&database.url(), MIGRATIONS)).unwrap();
    let refused = prepare(&old).unwrap_err();

    assert!(
        matches!(refused, StoreError::Newer { program: 2, .. }),
        "{refused:?}"
    );
    let sessions = database.sql("SELECT count(*)::text FROM sessions");
    assert_eq!(sessions[0][0].as_deref(), Some("1"));
}

/// Mail of an older log gets its origin and topic. A report is known by its sender's answer.
#[test]
fn mail_of_an_older_log_gets_origin_and_topic() {
    let database = Database::fresh();
    prepare(&target(&database.url(), MIGRATIONS.split_at(5).0)).unwrap();
    for sql in [
        "INSERT INTO sessions (uuid, created_at, name, directory) VALUES ('s', 1, '', '')",
        "INSERT INTO agents (uuid, session, created_at, status, name)
         VALUES ('a', 1, 1, 'running', 'a'), ('b', 1, 1, 'running', 'b')",
        "INSERT INTO messages (agent, seq, created_at, control, kind, content)
         VALUES (2, 1, 1, false, 'assistant', 'it is done')",
        "INSERT INTO mail (uuid, receiver, sender, sent_at, state, text) VALUES
             ('\\x01', 1, NULL, 1, 'queued', 'I could not finish: me'),
             ('\\x02', 1, 2, 1, 'queued', 'half way'),
             ('\\x03', 1, 2, 1, 'queued', 'it is done'),
             ('\\x04', 1, 2, 1, 'delivered', 'I could not finish: x')",
    ] {
        database.sql(sql);
    }

    prepare(&target(&database.url(), MIGRATIONS)).unwrap();

    let mail = database.sql("SELECT origin || ' ' || about FROM mail ORDER BY id");
    let told: Vec<_> = mail.iter().map(|row| row[0].as_deref().unwrap()).collect();
    assert_eq!(
        told,
        [
            "user message",
            "agent message",
            "agent report",
            "agent failed"
        ]
    );
}

/// E13b: a log of before machines keeps every row, and its sessions get machines without a question.
#[test]
fn a_log_of_before_machines_keeps_its_rows_and_sessions_get_machines() {
    let database = Database::fresh();
    let old = target(&database.url(), MIGRATIONS.split_at(11).0);
    prepare(&old).unwrap();
    let ids = [session(1), session(2), session(3)].map(|id| id.to_string());
    let owner = process(11).id;
    for sql in [
        &format!(
            "INSERT INTO sessions (uuid, created_at, name, directory)
             VALUES ('{}', 1, 'work', '/a'), ('{}', 1, 'work', '/b'), ('{}', 1, 'work', '/c')",
            ids[0], ids[1], ids[2]
        ),
        &format!(
            "INSERT INTO processes (uuid, pid, started, host, lock, heartbeat)
             VALUES ('{owner}', 1, 1, 'elsewhere', 1, 0)"
        ),
        &format!(
            "INSERT INTO agents (uuid, session, created_at, status, name)
             VALUES ('{}', 1, 5, 'running', 'a'), ('{}', 3, 5, 'running', 'c')",
            agent(1),
            agent(3)
        ),
        "INSERT INTO messages (agent, seq, created_at, control, kind, content, data)
         VALUES (1, 1, 7, false, 'user', 'kept', '{\"origin\":\"typed\"}'),
                (1, 2, 8, true, 'clear', NULL, NULL)",
        "INSERT INTO heads (agent, seq, epoch, owner) VALUES (1, 2, 1, NULL), (2, 0, 1, 1)",
    ] {
        database.sql(sql);
    }
    let rows = "SELECT concat_ws(' ', id, agent, seq, kind, control, created_at, content, data)
                FROM messages ORDER BY id";
    let before = database.sql(rows);
    let machines = || database.sql("SELECT machine, host FROM sessions ORDER BY id");
    let of = |number, host: &str, machine| ProcessRecord {
        host: host.to_owned(),
        machine: MachineId::from_random([machine; 16]),
        ..process(number)
    };
    let (here, there) = (of(21, "here", 1), of(22, "elsewhere", 2));
    let take = |agent| only(Effect::Lease(LeaseEffect::Take { agent }));

    let store = open_log(&database.url(), here.clone()).unwrap();
    let migrated = machines();
    block_on(store.commit(take(agent(1)))).unwrap();
    let claimed = machines();
    let other = open_log(&database.url(), there.clone()).unwrap();
    block_on(other.commit(take(agent(3)))).unwrap();

    assert_eq!(database.sql(rows), before);
    assert_eq!(before.len(), 2);
    let place = |record: &ProcessRecord| {
        let machine = record.machine.map(|machine| machine.to_string());
        vec![machine, Some(record.host.clone())]
    };
    let (here, there) = (place(&here), place(&there));
    let waits = vec![None, there[1].clone()];
    let none = vec![None, None];
    assert_eq!(migrated, [none.clone(), none, waits.clone()]);
    assert_eq!(claimed, [here.clone(), here.clone(), waits]);
    assert_eq!(machines(), [here.clone(), here, there]);
}

#[test]
fn a_migration_that_fails_leaves_nothing() {
    const BROKEN: Migrations = &[
        MIGRATIONS[0],
        "CREATE TABLE next (id bigint); SELECT 1 / 0;",
    ];
    let database = Database::fresh();
    prepare(&target(&database.url(), FIRST)).unwrap();

    let failed = prepare(&target(&database.url(), BROKEN)).unwrap_err();

    assert!(matches!(failed, StoreError::Io(_)), "{failed:?}");
    assert_eq!(version(&database), "1");
    assert_eq!(database.sql("SELECT to_regclass('next')"), [[None]]);
}

#[test]
fn a_schema_that_holds_something_else_is_left_alone() {
    let database = Database::fresh();
    database.sql("CREATE SCHEMA ikigai; CREATE TABLE ikigai.notes (id bigint)");

    let refused = prepare(&target(&database.url(), MIGRATIONS)).unwrap_err();

    assert!(
        refused.to_string().contains("contains other tables"),
        "{refused}"
    );
    assert!(refused.advice().contains("schema=NAME"));
    assert_eq!(
        database.sql("SELECT to_regclass('schema_version')"),
        [[None]]
    );
}

#[test]
fn ten_processes_open_a_new_log_at_once() {
    let database = Database::fresh();

    let players: Vec<_> = (0..10)
        .map(|_| Player::start("postgres::opening::opens_a_log", &database.url()))
        .collect();
    for player in players {
        player.finish();
    }

    assert_eq!(version(&database), MIGRATIONS.len().to_string());
}

/// The part of a process in [`ten_processes_open_a_new_log_at_once`].
#[test]
#[ignore = "a part that another test starts"]
fn opens_a_log() {
    let Some(part) = part() else { return };
    prepare(&target(&part[0], MIGRATIONS)).unwrap();
}

#[test]
fn who_may_not_make_tables_is_told_so() {
    let database = Database::fresh();
    database.sql("CREATE ROLE guest LOGIN");
    let url = database.url().replace("postgres@", "guest@");

    let refused = prepare(&target(&url, MIGRATIONS)).unwrap_err();
    database.sql("DROP ROLE guest");

    assert!(matches!(refused, StoreError::Server { .. }), "{refused:?}");
    assert!(
        refused.to_string().contains("permission denied"),
        "{refused}"
    );
}

#[test]
fn what_is_not_there_is_named() {
    let database = Database::fresh();
    let missing = database.url().replace(database.name(), "nowhere");
    let stranger = database.url().replace("postgres@", "stranger@");
    let no_server = "postgres://ann@/team?host=/nowhere/at/all";

    let told = |url: &str| prepare(&target(url, MIGRATIONS)).unwrap_err();

    let found = told(&missing);
    assert!(
        found.to_string().contains("\"nowhere\" does not exist"),
        "{found}"
    );
    assert!(found.advice().contains("createdb"));
    let found = told(&stranger);
    assert!(matches!(found, StoreError::Server { .. }), "{found:?}");
    let found = told(no_server);
    assert!(matches!(found, StoreError::Away { .. }), "{found:?}");
}

#[test]
fn a_plan_that_was_made_of_empty_tables_is_right_for_long_ones() {
    let database = Database::fresh();
    let target = target(&database.url(), MIGRATIONS);
    prepare(&target).unwrap();
    // Without statistics the planner assumes that a table has several pages.
    database.sql("ANALYZE");

    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    for role in [ConnectionRole::Reading, ConnectionRole::Writing] {
        let plan = runtime.block_on(async {
            let link = target.connect(role).await.unwrap();
            let asked = "EXPLAIN SELECT h.seq FROM heads h JOIN agents a ON a.id = h.agent
                WHERE a.uuid = 'someone'";
            let told = link.client.query(asked, &[]).await.unwrap();
            let lines: Vec<String> = told.iter().map(|line| line.get(0)).collect();
            lines.join("\n")
        });

        assert!(!plan.contains("Seq Scan"), "{role:?}: {plan}");
    }
}

#[test]
fn too_many_connections_is_an_absence() {
    let server = PgServer::with(&["max_connections = 5", "superuser_reserved_connections = 4"]);
    let database = server.database();
    database.sql("CREATE ROLE guest LOGIN");
    let target = target(&database.url().replace("postgres@", "guest@"), MIGRATIONS);

    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(async {
        let mut links = Vec::new();
        loop {
            match target.connect(ConnectionRole::Reading).await {
                Ok(link) => links.push(link),
                Err(refused) => return refused,
            }
        }
    });

    let error = refused.store_error(target.url());
    assert!(matches!(error, StoreError::Away { .. }), "{error:?}");
    assert!(error.to_string().contains("connection slots"), "{error}");
}

#[test]
fn passwords_are_checked_and_never_shown() {
    let server = PgServer::start();
    let database = server.database();
    database
        .sql("CREATE ROLE ann LOGIN PASSWORD 'geheim'; GRANT CREATE ON DATABASE postgres TO ann");
    database.sql(&format!("ALTER DATABASE {} OWNER TO ann", database.name()));
    let rules = server.directory().join("data/pg_hba.conf");
    std::fs::write(
        &rules,
        "local all postgres trust\nlocal all all scram-sha-256\n",
    )
    .unwrap();
    server.stop();
    server.start_again();
    let url = |account: &str| database.url().replace("postgres@", account);

    prepare(&target(&url("ann:geheim@"), MIGRATIONS)).unwrap();
    let wrong = prepare(&target(&url("ann:falsch@"), MIGRATIONS)).unwrap_err();
    let missing = prepare(&target(&url("ann@"), MIGRATIONS)).unwrap_err();

    for refused in [wrong, missing] {
        assert!(matches!(refused, StoreError::Server { .. }), "{refused:?}");
        assert!(refused.advice().contains("PGPASSWORD"), "{refused:?}");
        let shown = format!("{refused:?} {refused}");
        assert!(
            !shown.contains("falsch") && !shown.contains("geheim"),
            "{shown}"
        );
    }
}

/// A role without write privileges can read; its commits fail at once with the reason.
#[test]
fn who_may_only_read_is_refused_and_does_not_wait() {
    let database = Database::fresh();
    let owner = super::open(&database, 1).unwrap();
    make_agent(&owner, agent(1));
    let role = format!("reader_of_{}", database.name());
    database.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA ikigai TO {role};
         GRANT SELECT ON ALL TABLES IN SCHEMA ikigai TO {role}"
    ));
    let url = database.url().replace("postgres@", &format!("{role}@"));
    let reader = open_at(&url, 2).unwrap();

    assert_eq!(block_on(reader.agents(None)).unwrap().len(), 1);
    let mut watch = reader.watch().unwrap();
    assert!(block_on(watch.changed()), "it listens");
    block_on(owner.commit(say(agent(1), Epoch(1), Seq(0), "heard"))).unwrap();
    while texts(&*reader).is_empty() {
        assert!(block_on(watch.changed()));
    }
    for refused in [
        Effect::Lease(LeaseEffect::Take { agent: agent(1) }),
        Effect::Agent(AgentEffect::SetStatus {
            agent: agent(1),
            status: Status::Dead,
        }),
    ] {
        let refused = block_on(reader.commit(only(refused)));
        assert!(
            matches!(refused, Err(CommitError::Store(StoreError::Server { .. }))),
            "{refused:?}"
        );
    }
    drop(reader);
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[test]
fn the_next_server_replaces_one_that_is_missing_or_of_another_kind() {
    let database = Database::fresh();
    let missing = tempfile::tempdir().unwrap();
    let there = database.directory().display().to_string();
    let both = format!("{},{there}", missing.path().display());
    let open = |hosts: &str, wanted: &str| {
        let name = database.name();
        let url = format!("postgres://postgres@/{name}?host={hosts}&target_session_attrs={wanted}");
        prepare(&target(&url, MIGRATIONS)).map_err(|error| error.to_string())
    };

    assert_eq!(open(&both, "any"), Ok(()));
    assert_eq!(open(&both, "read-write"), Ok(()));
    let of_another_kind = open(&there, "standby").unwrap_err();
    assert!(
        of_another_kind.contains("not a standby"),
        "{of_another_kind}"
    );
    assert!(open(&missing.path().display().to_string(), "any").is_err());
}
