//! Health reports of a server.

use ikigai_store::Admin;
use ikigai_store::postgres::{PostgresOptions, PostgresStore, Url};
use ikigai_testkit::block_on;
use ikigai_testkit::postgres::{Database, PgServer};

use super::open;
use crate::support::process;

#[test]
fn a_server_tells_how_it_is() {
    let database = Database::fresh();
    let store = open(&database, 1).unwrap();

    let report = block_on(store.report()).unwrap().unwrap();

    assert!(report.version.starts_with(|it: char| it.is_ascii_digit()));
    assert_eq!(report.missing_rights, [""; 0]);
    assert!(!report.is_read_only && report.is_private);
    // Test servers need not survive a power loss.
    assert_eq!(report.unsafe_settings, ["fsync", "full_page_writes"]);
    assert!(report.connections.0 >= 2 && report.connections.0 <= report.connections.1);
    assert!(report.notified.is_some());
    // Server and client run on the same machine.
    assert!(report.clock_ahead.abs() < 1_000_000, "{report:?}");
}

#[test]
fn missing_rights_are_named_and_those_that_docs_tell_of_are_enough() {
    let server = PgServer::start();
    let database = server.database();
    drop(open(&database, 1).unwrap());
    database.sql(
        "CREATE ROLE guest LOGIN;
         GRANT USAGE ON SCHEMA ikigai TO guest;
         GRANT SELECT ON ALL TABLES IN SCHEMA ikigai TO guest",
    );
    let url = database.url().replace("postgres@", "guest@");
    let guest = || PostgresStore::open(PostgresOptions::new(Url::parse(&url).unwrap(), process(2)));

    let store = guest().unwrap();
    let missing = block_on(store.report()).unwrap().unwrap().missing_rights;

    assert!(
        missing.contains(&"INSERT on messages".to_owned()),
        "{missing:?}"
    );
    assert!(
        missing.contains(&"SELECT on mail_id_seq".to_owned()),
        "{missing:?}"
    );
    assert!(
        !missing.contains(&"SELECT on messages".to_owned()),
        "{missing:?}"
    );

    database.sql(
        "GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ikigai TO guest;
         REVOKE UPDATE, DELETE ON ikigai.messages, ikigai.blobs, ikigai.schema_version FROM guest;
         REVOKE INSERT ON ikigai.schema_version FROM guest;
         GRANT SELECT, USAGE ON ALL SEQUENCES IN SCHEMA ikigai TO guest",
    );
    assert_eq!(
        block_on(store.report()).unwrap().unwrap().missing_rights,
        [""; 0]
    );
    super::works(&store);
}

#[test]
fn a_read_only_server_is_told_as_one() {
    let server = PgServer::start();
    let database = server.database();
    drop(open(&database, 1).unwrap());
    let name = database.name();
    database.sql(&format!(
        "ALTER DATABASE {name} SET default_transaction_read_only = on"
    ));

    let store = open(&database, 1).unwrap();

    assert!(block_on(store.report()).unwrap().unwrap().is_read_only);
}
