//! `ikigai sql` and the page about the store.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ikigai_testkit::postgres::Database;

use crate::support::TestUser;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema.md");
    fs::read_to_string(path).unwrap()
}

/// Returns a user with a history in a file, which is queried in SQLite's dialect.
fn someone_with_a_past() -> TestUser {
    with_a_past(TestUser::with_file())
}

fn with_a_past(user: TestUser) -> TestUser {
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", "--approve", "all", "run `echo hi`"]);
    user.ikigai(&["search", "hello"]);
    user
}

/// The views have permanent ids, times as text, and JSON, on both engines.
#[test]
fn views_show_ids_times_and_json() {
    let user = with_a_past(TestUser::new());
    let asked = "SELECT m.agent_name, a.status, a.last_seq, m.agent = a.agent AS is_it,
                        m.created_at, m.content, m.data ->> 'tool_call_id' AS call
                 FROM v_messages m JOIN v_agents a ON a.agent = m.agent
                 WHERE m.kind = 'tool_result'";

    let said = user.ikigai(&["sql", asked, "--json"]);

    let row: serde_json::Value = serde_json::from_str(said.out.trim()).expect(&said.err);
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    assert_eq!([text("agent_name"), text("status")], ["project", "running"]);
    assert!(row["last_seq"].as_u64() > Some(5), "{row}");
    assert!(text("created_at").starts_with("20"), "{row}");
    assert!(!text("call").is_empty(), "{row}");
    let rows = user.ikigai(&["sql", "SELECT count(*) AS n FROM v_messages", "--json"]);
    let stored = user.ikigai(&["sql", "SELECT count(*) AS n FROM messages", "--json"]);
    assert_eq!(rows.out, stored.out);
}

#[test]
fn every_question_of_the_page_is_answered() {
    let user = someone_with_a_past();
    let page = page();
    let questions: Vec<&str> = page
        .split("```sql\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(questions.len(), 10);

    let mut with_rows = 0;
    for question in questions {
        let said = user.ikigai(&["sql", question, "--json"]);
        assert_eq!((said.err.as_str(), said.code), ("", Some(0)), "{question}");
        with_rows += usize::from(!said.out.is_empty());
    }

    assert!(with_rows >= 6, "{with_rows} of them found something");
}

/// The page names each table with each of its columns.
#[test]
fn the_page_has_every_table_and_column() {
    let user = someone_with_a_past();
    let asked = "SELECT t.name AS name, c.name AS col FROM pragma_table_list t
                 JOIN pragma_table_info(t.name) c
                 WHERE t.schema = 'main' AND t.type <> 'shadow' AND t.name NOT LIKE 'sqlite_%'";
    let said = user.ikigai(&["sql", asked, "--json"]);
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in said.out.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        tables.entry(text("name")).or_default().push(text("col"));
    }
    assert!(tables.len() > 10, "{tables:?} {}", said.err);

    for (table, columns) in tables {
        let start = format!("| `{table}` |");
        let page = page();
        let line = page.lines().find(|line| line.starts_with(&start));
        let line = line.unwrap_or_else(|| panic!("{table} is not on the page"));
        for column in columns {
            assert!(line.contains(&format!("`{column}`")), "{table}.{column}");
        }
    }
}

#[test]
fn nothing_can_be_changed_by_asking() {
    let user = with_a_past(TestUser::new());
    let before = user.ikigai(&["log", "--json"]).out;
    let other = user.home().join("other.db");
    let attach = format!("ATTACH '{}' AS other", other.display());
    let vacuum = format!("VACUUM INTO '{}'", other.display());
    for wish in [
        "DELETE FROM messages",
        "UPDATE agents SET name = 'x' RETURNING *",
        "INSERT INTO search (search) VALUES ('delete-all')",
        "DROP TABLE mail",
        "CREATE TEMP TABLE t (x)",
        "PRAGMA query_only = 0",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA writable_schema = 1",
        "PRAGMA user_version = 99",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "SELECT LOAD_EXTENSION('/tmp/x.so')",
        "BEGIN",
        "SELECT load_extension('/tmp/x.so')",
        "SELECT 1; DELETE FROM messages",
        &attach,
        &vacuum,
        "",
        "nonsense",
    ] {
        let said = user.ikigai(&["sql", wish]);
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(2), ""),
            "{wish}: {}",
            said.err
        );
        assert!(said.err.starts_with("error: "), "{wish}");
    }

    assert_eq!(user.ikigai(&["log", "--json"]).out, before);
    assert!(!other.exists());
}

#[test]
fn answers_are_tables_or_json_and_bounded() {
    let user = someone_with_a_past();
    let values = "SELECT 1 AS n, 'a' || char(10) || char(27) || '[31m' AS text, x'00ff' AS bytes,
                  NULL AS missing, 1.5 AS n";
    let table = user.ikigai(&["sql", values]);
    let json = user.ikigai(&["sql", values, "--json"]);
    let numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
    let many = user.ikigai(&["sql", numbers, "--limit", "3"]);

    assert_eq!(
        table.out,
        "n  text     bytes    missing  n\n─  ───────  ───────  ───────  ───\n1  a ␛[31m  x'00ff'           1.5\n"
    );
    let row: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let expected = serde_json::json!({
        "n": 1, "text": "a\n\u{1b}[31m", "bytes": "00ff", "missing": null, "n:5": 1.5
    });
    assert_eq!(row, expected);
    assert_eq!(many.out, "x\n─\n1\n2\n3\n");
    assert!(many.err.contains("first 3 rows"), "{}", many.err);
}

/// The same on a server, in PostgreSQL's dialect.
#[test]
fn every_question_of_the_page_is_answered_by_a_server() {
    let database = Database::fresh();
    let url = database.url();
    let user = TestUser::new();
    user.ikigai(&["--db", &url, "run", "hello"]);
    user.ikigai(&["--db", &url, "run", "--approve", "all", "run `echo hi`"]);
    user.ikigai(&["--db", &url, "search", "hello"]);
    let page = page();
    let questions: Vec<&str> = page
        .split("```postgresql\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(questions.len(), 10);

    let mut with_rows = 0;
    for question in questions {
        let said = user.ikigai(&["--db", &url, "sql", question, "--json"]);
        assert_eq!((said.err.as_str(), said.code), ("", Some(0)), "{question}");
        with_rows += usize::from(!said.out.is_empty());
    }
    assert!(with_rows >= 6, "{with_rows} of them found something");
    let refused = user.ikigai(&["--db", &url, "sql", "DELETE FROM messages"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);

    let asked = "SELECT table_name::text AS name, column_name::text AS col
                 FROM information_schema.columns WHERE table_schema = 'ikigai'";
    let said = user.ikigai(&["--db", &url, "sql", asked, "--json"]);
    assert!(said.out.lines().count() > 60, "{}", said.err);
    for line in said.out.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let (table, column) = (row["name"].as_str().unwrap(), row["col"].as_str().unwrap());
        // The last line of a table is the server's, where it differs.
        let start = format!("| `{table}` |");
        let told = page.lines().rfind(|line| line.starts_with(&start));
        let told = told.unwrap_or_else(|| panic!("{table} is not on the page"));
        assert!(told.contains(&format!("`{column}`")), "{table}.{column}");
    }
}

/// A query ends at its deadline, on either engine, and says how to allow more.
#[test]
fn a_query_ends_at_its_deadline() {
    let user = with_a_past(TestUser::new());
    for endless in [
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c WHERE x < 0",
    ] {
        let said = user.ikigai(&["sql", "--timeout", "1", endless]);

        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(1), ""),
            "{}",
            said.err
        );
        assert!(said.err.contains("stopped after 1 s"), "{}", said.err);
        assert!(said.err.contains("raise --timeout"), "{}", said.err);
    }
    let refused = user.ikigai(&["sql", "--timeout", "0", "SELECT 1"]);
    assert_eq!(refused.code, Some(2));
}

/// Ctrl-C ends a query at once.
#[test]
fn an_interrupt_ends_a_query() {
    let user = with_a_past(TestUser::new());
    let endless =
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
    let mut child = user
        .command(&["sql", "--timeout", "3600", endless])
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&child);

    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();

    assert!(!child.wait().unwrap().success());
}

/// Functions with side effects are refused; the help warns of the remaining ones.
#[test]
fn functions_of_a_server_that_act_are_refused() {
    let database = Database::fresh();
    let url = database.url();
    let user = TestUser::new();
    user.ikigai(&["--db", &url, "run", "hello"]);
    for wish in [
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
        "SELECT pg_catalog.\"pg_reload_conf\"()",
        "SELECT PG_READ_FILE('/etc/hostname')",
        "SELECT lo_import('/etc/hostname')",
    ] {
        let said = user.ikigai(&["--db", &url, "sql", wish]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{wish}");
        assert!(said.err.contains("can act"), "{wish}: {}", said.err);
    }

    let help = user.ikigai(&["sql", "--help"]).out;
    assert!(help.contains("immutable functions run"), "{help}");
}
