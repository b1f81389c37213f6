//! Import of databases of an older ikigai.

use std::collections::HashSet;
use std::io::Cursor;

use ikigai_core::settings::ModelChoice;
use ikigai_core::{AgentId, Micros, PageQuery, Row, Span};
use ikigai_store::legacy::{Home, ImportReport, LegacyError, read};
use ikigai_store::portable::RestoreMode;
use ikigai_store::postgres::Url;
use ikigai_store::{Admin, Agent, AgentRecord, MailState, ReadLog, SqliteStore, Status};
use ikigai_testkit::postgres::Database;
use tempfile::TempDir;

use crate::support::{open, session};

const ROOT: &str = "AAAAAAAAQAGAAAAAAAAAAQ";
const CHILD: &str = "AAAAAAAAQAGAAAAAAAAAAg";
const ODD: &str = "-not-an-id-of-today---";

/// The tables of the older program, as its last version made them.
const TABLES: &str = "
    CREATE TYPE public.agent_status AS ENUM ('running', 'dead');
    CREATE TABLE public.sessions (id bigserial PRIMARY KEY,
        started_at timestamptz NOT NULL DEFAULT now(), ended_at timestamptz, title text);
    CREATE TABLE public.agents (uuid text PRIMARY KEY, name text, parent_uuid text,
        fork_message_id bigint, status public.agent_status NOT NULL DEFAULT 'running',
        created_at bigint NOT NULL, ended_at bigint, provider text, model text,
        thinking_level text);
    CREATE TABLE public.messages (id bigserial PRIMARY KEY, session_id bigint NOT NULL,
        kind text NOT NULL, content text, data jsonb,
        created_at timestamptz NOT NULL DEFAULT now(), agent_uuid text);
    CREATE TABLE public.mail (id bigserial PRIMARY KEY, session_id bigint NOT NULL,
        from_uuid text NOT NULL, to_uuid text NOT NULL, body text NOT NULL,
        timestamp bigint NOT NULL, read integer NOT NULL DEFAULT 0);
    INSERT INTO public.sessions (title) VALUES ('an old one');";

fn model(name: &str) -> ModelChoice {
    ModelChoice {
        provider: Some("demo".to_owned()),
        model: Some(name.to_owned()),
        level: None,
    }
}

fn lines_of(database: &Database, taken: &[&str]) -> Result<(Vec<u8>, ImportReport), LegacyError> {
    let known = |choice: &ModelChoice| {
        let is_known = choice.model.as_deref() == Some("known");
        is_known.then(|| choice.clone())
    };
    let home = Home {
        session: session(1),
        name: "home".to_owned(),
        directory: "/home/ann/parser".to_owned(),
        workdir: "/home/ann/parser/src".to_owned(),
        at: Micros(5_000_000),
        taken: taken
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<HashSet<_>>(),
        model: model("demo"),
        known: &known,
    };
    let mut lines = Vec::new();
    let url = Url::parse(&database.url()).unwrap();
    let mut take = |line: String| {
        lines.extend_from_slice(line.as_bytes());
        true
    };
    // `read` starts a runtime, which cannot nest in the test's runtime.
    let report = std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(url, &home, &mut take));
        reading.join().unwrap()
    })?;
    Ok((lines, report))
}

/// Creates an older database with these statements and imports it.
fn taken_in(statements: &str) -> (TempDir, SqliteStore, ImportReport) {
    let database = Database::fresh();
    database.sql(&format!("{TABLES}{statements}"));
    let (lines, report) = lines_of(&database, &[]).unwrap();
    let (place, store) = empty_store();
    store
        .restore(&mut Cursor::new(lines), RestoreMode::Merge)
        .unwrap();
    (place, store, report)
}

fn empty_store() -> (TempDir, SqliteStore) {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place.path().join("log.db"), 1).unwrap();
    (place, store)
}

async fn agents(store: &SqliteStore) -> Vec<AgentRecord> {
    store.agents(None).await.unwrap()
}

async fn rows(store: &SqliteStore, agent: AgentId) -> Vec<Row> {
    let query = PageQuery::oldest(Span::whole(agent), 100);
    store.page(query).await.unwrap()
}

/// Returns kind and text of each row on the agent's path, oldest first.
async fn remembered(store: &SqliteStore, agent: AgentId) -> Vec<String> {
    let mut agent = Agent::restore(store, agent).await.unwrap();
    while agent.lengthen(store, 100).await.unwrap() {}
    let entries = agent.view.entries().iter();
    entries
        .map(|entry| {
            let text = entry.row.content.as_deref().unwrap_or("–");
            format!("{} {text}", entry.row.kind.name())
        })
        .collect()
}

/// Returns statements that create an older log with all its features.
///
/// Rows without owner, quotes, three tool shapes, a rewind, a killed child, an unknown kind.
fn a_life() -> String {
    format!(
        r#"
        INSERT INTO public.agents VALUES
            ('{ROOT}', 'Root ''quoted''', NULL, NULL, 'running', 10, NULL, 'demo', 'known', NULL),
            ('{CHILD}', 'helper', '{ROOT}', 4, 'dead', 20, 30, 'gone', 'old-model', 'high');
        INSERT INTO public.messages (id, session_id, kind, content, data, agent_uuid) VALUES
            (1, 1, 'system', 'You are old.', NULL, NULL),
            (2, 1, 'user', 'It''s "quoted" \ and $1', NULL, NULL),
            (3, 1, 'assistant', 'Yes.', '{{"model":"known"}}', '{ROOT}'),
            (4, 1, 'mark', NULL, '{{"label":"here"}}', '{ROOT}'),
            (5, 1, 'fork', 'Forked child x', '{{"child_uuid":"{CHILD}","fork_message_id":4,"role":"parent"}}', '{ROOT}'),
            (6, 1, 'fork', 'Forked from x', '{{"parent_uuid":"{ROOT}","fork_message_id":4,"role":"child"}}', '{CHILD}'),
            (7, 1, 'user', 'count', NULL, '{CHILD}'),
            (8, 1, 'user', 'and then', NULL, '{ROOT}'),
            (9, 1, 'tool_call', 'shown', '{{"tool_call_id":"a","name":"bash","arguments":"{{}}"}}', '{ROOT}'),
            (10, 1, 'tool_result', 'shown', '{{"tool_call_id":"a","name":"bash","output":"one","success":true}}', '{ROOT}'),
            (11, 1, 'tool_call', 'shown', '{{"id":"b","type":"function","function":{{"name":"bash","arguments":"{{}}"}}}}', '{ROOT}'),
            (12, 1, 'tool', 'shown', '{{"tool_call_id":"b","output":"two","success":true}}', '{ROOT}'),
            (13, 1, 'tool_call', 'shown', '{{"tool_call_id":"c","tool_name":"bash","tool_args":"{{}}"}}', '{ROOT}'),
            (14, 1, 'tool_result', 'shown', '{{"tool_call_id":"c","output":"three","success":false}}', '{ROOT}'),
            (15, 1, 'rewind', NULL, '{{"target_message_id":4,"target_label":"here"}}', '{ROOT}'),
            (16, 1, 'agent_killed', NULL, '{{"killed_by":"user","target":"{CHILD}"}}', '{ROOT}'),
            (17, 1, 'command', 'out', '{{"command":"model","args":"known"}}', '{ROOT}'),
            (18, 1, 'sparkle', 'what is this', NULL, '{ROOT}'),
            (19, 1, 'user', NULL, NULL, '{ROOT}');
        INSERT INTO public.mail VALUES (1, 1, '{CHILD}', '{ROOT}', 'waits', 25, 0),
            (2, 1, '{ROOT}', '{CHILD}', 'came too late', 35, 0),
            (3, 1, '{CHILD}', '{ROOT}', 'was read', 24, 1), (4, 1, '{ROOT}', 'no-agent', 'x', 1, 0);"#
    )
}

#[tokio::test]
async fn an_older_log_is_told_with_its_forks_rewinds_and_tools() {
    let (_place, store, report) = taken_in(&a_life());

    let all = agents(&store).await;
    let told: Vec<_> = all
        .iter()
        .map(|agent| (agent.name.as_str(), agent.status))
        .collect();
    assert_eq!(
        told,
        [("root-quoted", Status::Running), ("helper", Status::Dead)]
    );
    let (root, child) = (&all[0], &all[1]);
    assert_eq!(
        (root.id.to_string(), child.id.to_string()),
        (ROOT.into(), CHILD.into())
    );
    assert_eq!(child.fork_point.map(|point| point.seq.0), Some(4));
    assert_eq!(
        remembered(&store, root.id).await,
        [
            "system You are old.",
            "user It's \"quoted\" \\ and $1",
            "assistant Yes.",
            "mark –",
            "rewind –",
            "agent_killed –",
            "command out",
            "user –",
            "command –",
        ],
        "what was rewound is not remembered"
    );
    assert_eq!(
        remembered(&store, child.id).await,
        [
            "system You are old.",
            "user It's \"quoted\" \\ and $1",
            "assistant Yes.",
            "mark –",
            format!("fork Forked from {ROOT} (root-quoted)").as_str(),
            "user count",
        ]
    );
    let restored = Agent::restore(&store, child.id).await.unwrap();
    assert_eq!(restored.state.system(), Some("You are old."));
    assert_eq!(restored.state.settings().model, Some(model("demo")));
    let restored = Agent::restore(&store, root.id).await.unwrap();
    assert_eq!(restored.state.settings().model, Some(model("known")));
    assert_eq!(
        restored.state.settings().workdir.as_deref(),
        Some("/home/ann/parser/src")
    );
    let mail = store.mail(root.id).await.unwrap();
    let states: Vec<_> = mail
        .iter()
        .map(|mail| (mail.text.as_str(), mail.state))
        .collect();
    assert_eq!(
        states,
        [
            ("waits", MailState::Queued),
            ("was read", MailState::Delivered)
        ]
    );
    assert_eq!(
        store.mail(child.id).await.unwrap()[0].state,
        MailState::Bounced
    );
    assert_eq!(report.mail, 3);
    let remarks = [
        "agent `Root 'quoted'` was renamed to root-quoted",
        "helper used old-model, which is not available here: it continues with demo",
        "event 18 has the unknown kind `sparkle`: skipped",
        "event 19, now #16 of root-quoted, is imported but unreadable: the text is missing",
        "mail 4 has no receiver here: skipped",
    ];
    assert_eq!(report.remarks, remarks);
    let kinds: Vec<_> = rows(&store, root.id).await;
    let results = kinds.iter().filter(|row| row.kind.name() == "tool_result");
    assert_eq!(results.count(), 3);
}

#[tokio::test]
async fn a_child_of_an_empty_parent_and_ids_of_another_form_come_too() {
    let (_place, store, report) = taken_in(&format!(
        "INSERT INTO public.agents (uuid, name, parent_uuid, fork_message_id, created_at) VALUES
            ('{ROOT}', NULL, NULL, NULL, 1), ('{ODD}', 'same', '{ROOT}', 0, 2),
            ('{CHILD}', 'same', '{ODD}', 1, 3), ('lost', 'lost', 'no-agent', 7, 4);
         INSERT INTO public.messages (session_id, kind, content, agent_uuid)
         VALUES (1, 'user', 'hello', '{CHILD}'), (1, 'rewind', NULL, '{CHILD}');"
    ));

    let all = agents(&store).await;
    let names: Vec<_> = all.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["parser", "lost", "same", "same-2"]);
    let (odd, child) = (&all[2], &all[3]);
    assert_eq!(odd.fork_point, None, "its parent had no rows");
    assert_eq!(child.parent, Some(odd.id));
    assert_eq!(child.fork_point.map(|point| point.seq.0), Some(1));
    let remembered = remembered(&store, child.id).await;
    let forks = remembered.iter().filter(|row| row.starts_with("fork"));
    assert_eq!((forks.count(), remembered.len()), (2, 4), "{remembered:?}");
    assert!(
        report
            .remarks
            .iter()
            .any(|remark| remark.contains("has no effect")),
        "{report:?}"
    );
}

#[tokio::test]
async fn what_is_no_older_log_is_told_apart_and_nothing_is_taken_in_twice() {
    let empty = Database::fresh();
    assert!(matches!(lines_of(&empty, &[]), Err(LegacyError::None(_))));
    let older = Database::fresh();
    // The first version had no agents.
    older.sql(
        "CREATE TABLE public.messages (id bigserial, session_id bigint, kind text, content text,
             data jsonb, created_at timestamptz);
         INSERT INTO public.messages (kind, content) VALUES ('user', 'hello'), (NULL, 'what');",
    );
    let (lines, report) = lines_of(&older, &["parser"]).unwrap();
    let (_place, store) = empty_store();

    store
        .restore(&mut Cursor::new(&lines), RestoreMode::Merge)
        .unwrap();
    let again = store.restore(&mut Cursor::new(&lines), RestoreMode::Merge);

    assert!(again.is_err());
    let all = agents(&store).await;
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].name, "parser-2");
    assert_eq!(remembered(&store, all[0].id).await.len(), 2);
    assert_eq!(report.remarks.len(), 1, "{report:?}");
}
