//! Imported agents of an older ikigai answer.

use ikigai_testkit::postgres::Database;

use crate::support::TestUser;

const ROOT: &str = "AAAAAAAAQAGAAAAAAAAAAQ";
const CHILD: &str = "AAAAAAAAQAGAAAAAAAAAAg";

fn older() -> Database {
    let database = Database::fresh();
    database.sql(&format!(
        r#"CREATE TABLE public.sessions (id bigserial, started_at timestamptz DEFAULT now());
        CREATE TABLE public.agents (uuid text, name text, parent_uuid text,
            fork_message_id bigint, status text, created_at bigint);
        CREATE TABLE public.messages (id bigserial, session_id bigint, kind text, content text,
            data jsonb, created_at timestamptz DEFAULT now(), agent_uuid text);
        CREATE TABLE public.mail (id bigserial, session_id bigint, from_uuid text,
            to_uuid text, body text, timestamp bigint, read integer);
        INSERT INTO public.agents VALUES ('{ROOT}', NULL, NULL, NULL, 'running', 1700000000),
            ('{CHILD}', 'helper', '{ROOT}', 0, 'running', 1700000001);
        INSERT INTO public.messages (session_id, kind, content, data, agent_uuid) VALUES
            (1, 'user', 'it''s "quoted"', NULL, NULL),
            (1, 'tool_call', 'x', '{{"id":"b","type":"function","function":{{"name":"bash","arguments":"{{}}"}}}}', NULL),
            (1, 'tool', 'x', '{{"tool_call_id":"b","output":"two","success":true}}', NULL),
            (1, 'assistant', 'well', NULL, '{ROOT}'),
            (1, 'user', 'for the child', NULL, '{CHILD}'),
            (1, 'assistant', 'said the child', NULL, '{CHILD}'),
            (1, 'dream', 'of sheep', NULL, '{ROOT}');"#
    ));
    database
}

#[test]
fn agents_of_an_older_database_come_once_and_answer() {
    let database = older();
    let user = TestUser::new();

    let came = user.ikigai(&["import", "--from", &database.url()]);
    let root = user.ikigai(&["run", "what did I say"]);
    let child = user.ikigai(&["run", "--agent", "helper", "what did I say"]);
    let log = user.ikigai(&["log", "--all", ROOT]);
    let doctor = user.ikigai(&["doctor"]);
    let again = user.ikigai(&["import", "--from", &database.url()]);

    assert_eq!(came.code, Some(0), "{}", came.err);
    assert_eq!(
        came.out,
        "Imported 2 agents, 8 events, 0 messages between agents\n"
    );
    assert_eq!(
        came.err,
        "⚠ event 7 has the unknown kind `dream`: skipped\n"
    );
    assert!(root.out.contains("1. it's \"quoted\""), "{}", root.out);
    assert!(child.out.contains("1. for the child"), "{}", child.out);
    assert!(
        !log.out.contains("not run"),
        "its calls were answered: {}",
        log.out
    );
    assert_eq!(doctor.code, Some(0), "{}", doctor.out);
    assert_eq!(again.code, Some(1), "{}", again.err);
    assert!(again.err.contains("already"), "{}", again.err);
}

#[test]
fn what_is_no_older_database_is_told_with_what_to_do() {
    let database = Database::fresh();
    let user = TestUser::new();

    let none = user.ikigai(&["import", "--from", &database.url()]);
    let hello = user.ikigai(&["--db", &database.url(), "run", "hello"]);
    let current = user.ikigai(&["import", "--from", &database.url()]);
    let nobody = user.ikigai(&["import", "--from", "postgres://me@/x?host=/nowhere"]);

    assert_ne!(none.code, Some(0));
    assert!(
        none.err.contains("no database of an older ikigai"),
        "{}",
        none.err
    );
    assert!(none.err.contains("hint:"), "{}", none.err);
    assert_eq!(hello.code, Some(0), "{}", hello.err);
    assert!(current.err.contains("ikigai copy"), "{}", current.err);
    assert_eq!(nobody.code, Some(3), "{}", nobody.err);
    assert_eq!(user.ikigai(&["agents"]).out, "", "nothing was imported");
}
