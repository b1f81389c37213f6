//! Questions in SQL on PostgreSQL: any value is told, and nothing can be changed.

use ikigai_core::{Epoch, Seq};
use ikigai_store::Store;
use ikigai_store::sql::{Cell, Table};
use ikigai_testkit::block_on;
use ikigai_testkit::postgres::Database;

use super::open;
use crate::support::{agent, make_agent, say, texts};

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

#[test]
fn values_of_every_type_are_told() {
    let database = Database::fresh();
    let store = open(&database, 1).unwrap();

    let told = store.query(
        "SELECT 1::smallint, 2.5::float4, sum(n), 0.1::numeric, true, NULL::text, 'x'::text,
                '\\x00ff'::bytea, '{\"a\":1}'::jsonb, '1 day'::interval, ARRAY[1,2], 1 AS same
         FROM generate_series(1, 3) n; -- and a remark",
        10,
    );

    let told = told.unwrap();
    assert_eq!(told.columns.len(), 12);
    assert_eq!(told.columns[11], "same");
    assert_eq!(
        told.rows,
        [[
            Cell::Integer(1),
            Cell::Real(2.5),
            Cell::Integer(6),
            Cell::Real(0.1),
            Cell::Integer(1),
            Cell::Nothing,
            text("x"),
            Cell::Blob(vec![0, 255]),
            text("{\"a\": 1}"),
            text("1 day"),
            text("{1,2}"),
            Cell::Integer(1),
        ]]
    );
}

#[test]
fn long_answers_are_cut() {
    let database = Database::fresh();
    let store = open(&database, 1).unwrap();
    let rows = |sql: &str, most| {
        let Table { rows, cut, .. } = store.query(sql, most).unwrap();
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
        let refused = store.query(bad, 10);
        assert!(refused.is_err(), "{bad}: {refused:?}");
    }

    assert_eq!(texts(&store), ["kept"]);
}
