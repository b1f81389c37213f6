//! User queries in SQL on PostgreSQL: they return any value and change nothing.

use std::time::Duration;

use ikigai_core::{Epoch, Seq};
use ikigai_store::sql::{QueryError, QueryLimits, QueryTable, QueryValue};
use ikigai_store::{Admin, Log};
use ikigai_testkit::block_on;
use ikigai_testkit::postgres::Database;

use super::open;
use crate::support::{agent, make_agent, say, texts};

fn limits(rows: usize) -> QueryLimits {
    QueryLimits {
        rows,
        time: Duration::from_mins(1),
    }
}

fn text(text: &str) -> QueryValue {
    QueryValue::Text(text.to_owned())
}

#[test]
fn values_of_every_type_are_told() {
    let database = Database::fresh();
    let store = open(&database, 1).unwrap();

    let told = store.query(
        "SELECT 1::smallint, 2.5::float4, sum(n), 0.1::numeric, true, NULL::text, 'x'::text,
                '\\x00ff'::bytea, '{\"a\":1}'::jsonb, '1 day'::interval, ARRAY[1,2], 1 AS same
         FROM generate_series(1, 3) n; -- and a remark",
        limits(10),
    );

    let told = told.unwrap();
    assert_eq!(told.columns.len(), 12);
    assert_eq!(told.columns[11], "same");
    assert_eq!(
        told.rows,
        [[
            QueryValue::Integer(1),
            QueryValue::Real(2.5),
            QueryValue::Integer(6),
            QueryValue::Real(0.1),
            QueryValue::Integer(1),
            QueryValue::Nothing,
            text("x"),
            QueryValue::Blob(vec![0, 255]),
            text("{\"a\": 1}"),
            text("1 day"),
            text("{1,2}"),
            QueryValue::Integer(1),
        ]]
    );
}

#[test]
fn long_answers_are_cut() {
    let database = Database::fresh();
    let store = open(&database, 1).unwrap();
    let rows = |sql: &str, most| {
        let QueryTable { rows, cut, .. } = store.query(sql, limits(most)).unwrap();
        (rows.len(), cut)
    };

    assert_eq!(rows("SELECT generate_series(1, 1200)", 2000), (1200, false));
    assert_eq!(rows("SELECT generate_series(1, 1200)", 1200), (1200, false));
    assert_eq!(rows("SELECT generate_series(1, 1200)", 1199), (1199, true));
    assert_eq!(rows("SELECT generate_series(1, 1000000000)", 7), (7, true));
    assert_eq!(rows("SELECT 1 WHERE false", 7), (0, false));
    assert_eq!(rows("SHOW search_path", 7), (1, false));
    assert!(rows("EXPLAIN SELECT * FROM messages", 70).0 > 0);
    assert_eq!(
        rows("SELECT repeat('x', 40000000) FROM generate_series(1, 9)", 9),
        (2, true)
    );
}

#[test]
fn nothing_can_be_changed() {
    let database = Database::fresh();
    let store = open(&database, 1).unwrap();
    make_agent(&store, agent(1));
    block_on(store.commit(say(agent(1), Epoch(1), Seq(0), "kept"))).unwrap();

    for bad in [
        "DELETE FROM messages RETURNING seq",
        "WITH gone AS (DELETE FROM messages RETURNING seq) SELECT * FROM gone",
        "INSERT INTO sessions (uuid, created_at, name, directory) VALUES ('', 1, '', '') RETURNING 1",
        "UPDATE messages SET content = '' RETURNING 1",
        "DROP TABLE messages",
        "TRUNCATE messages",
        "COMMIT",
        "SELECT 1; DELETE FROM messages",
        "COMMIT; DELETE FROM messages",
        "SET TRANSACTION READ WRITE",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SELECT nextval('messages_id_seq')",
        "COPY (SELECT 1) TO PROGRAM 'cat'",
        "COPY messages TO STDOUT",
        "EXPLAIN ANALYZE DELETE FROM messages",
        "SELECT $1::text",
        "DO $$ BEGIN DELETE FROM messages; END $$",
        "nonsense",
        "",
        ";",
        "\0",
    ] {
        let refused = store.query(bad, limits(10));
        assert!(refused.is_err(), "{bad}: {refused:?}");
    }

    assert_eq!(texts(&store), ["kept"]);
}

/// Functions with side effects are refused by the server's catalogue, under any name.
#[test]
fn functions_that_act_are_refused() {
    let database = Database::fresh();
    let store = open(&database, 1).unwrap();
    database.sql(
        "CREATE FUNCTION public.own_act() RETURNS int LANGUAGE sql AS 'SELECT 1';
         CREATE FUNCTION public.\"Own Act\"() RETURNS int LANGUAGE sql AS 'SELECT 1';
         CREATE FUNCTION public.own_sum(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1'",
    );

    for bad in [
        "SELECT pg_terminate_backend(pg_backend_pid())",
        "SELECT PG_CATALOG.PG_CANCEL_BACKEND(1)",
        "SELECT \"pg_reload_conf\"()",
        "SELECT U&\"pg_r\\0065load_conf\"()",
        "SELECT e'a'\n'\\', pg_reload_conf() --'",
        "SELECT pg_rotate_logfile()",
        "SELECT lo_create(0)",
        "SELECT lo_import('/etc/passwd')",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT * FROM pg_ls_dir('/')",
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_try_advisory_lock(1)",
        "SELECT pg_notify('a', 'b')",
        "SELECT set_config('statement_timeout', '0', false)",
        "SELECT setval('messages_id_seq', 1)",
        "SELECT query_to_xml('SELECT pg_reload_conf()', true, true, '')",
        "SELECT * FROM ts_stat('SELECT to_tsvector(pg_reload_conf()::text)')",
        "EXPLAIN ANALYZE SELECT pg_reload_conf()",
        "SELECT pg_switch_wal()",
        "SELECT pg_create_restore_point('x')",
        "SELECT public.own_act()",
        "SELECT public.\"Own Act\"()",
    ] {
        match store.query(bad, limits(10)) {
            Err(QueryError::Refused(reason)) => {
                let is_ours = reason.contains("refused") || reason.contains("not accepted");
                assert!(is_ours, "{bad}: {reason}");
            }
            other => panic!("{bad}: {other:?}"),
        }
    }

    for good in [
        "SELECT public.own_sum(1)",
        "SELECT 'pg_terminate_backend', random() < 2, gen_random_uuid() IS NULL",
        "SELECT pg_database_size(current_database()), now(), version()",
        "SELECT count(*) FROM pg_stat_activity",
        "SELECT * FROM messages TABLESAMPLE SYSTEM (50)",
    ] {
        let answer = store.query(good, limits(10));
        assert!(answer.is_ok(), "{good}: {answer:?}");
    }
}

#[test]
fn a_query_ends_at_its_deadline() {
    let database = Database::fresh();
    let store = open(&database, 1).unwrap();
    let short = QueryLimits {
        rows: 10,
        time: Duration::from_millis(50),
    };

    for endless in [
        "SELECT pg_sleep(600)",
        "SELECT count(*) FROM generate_series(1, 100000000000)",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c",
        "SELECT 1 FROM generate_series(1, 5) WHERE pg_sleep(100) IS NOT NULL",
    ] {
        let ended = store.query(endless, short);
        assert!(matches!(ended, Err(QueryError::TimedOut(_))), "{ended:?}");
    }
    assert!(store.query("SELECT 1", limits(10)).is_ok());
}

/// The server ends a query itself, also if its client cannot.
#[test]
fn the_server_knows_the_deadline_of_a_query() {
    let database = Database::fresh();
    let store = open(&database, 1).unwrap();

    let table = store.query("SHOW statement_timeout", limits(10)).unwrap();

    assert_eq!(table.rows, [[text("1min")]]);
}
