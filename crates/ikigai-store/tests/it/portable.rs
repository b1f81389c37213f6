//! Export and import: an exported log that is imported again is the same log.

use std::path::Path;

use ikigai_core::data::BlobRef;
use ikigai_core::{AgentId, Epoch, Micros, Seq};
use ikigai_store::portable::{RestoreError, RestoreMode};
use ikigai_store::{
    Admin, AgentEffect, Batch, DraftEffect, Effect, Log, MailEffect, MailId, MailOrigin, MailTopic,
    NewAgent, ReadLog, RunEffect, RunId, SqliteStore, Status, blobs,
};
use ikigai_testkit::block_on;
use rusqlite::Connection;
use tokio::sync::mpsc;

use crate::support::{
    Dice, Disk, agent, claim, is_long, make_agent, make_session, only, open, said, session,
};

/// Queries of every table that is not derived, for comparison.
///
/// They leave out row ids of this file and lease owners.
const TABLES: &[&str] = &[
    "SELECT uuid, created_at, name, directory FROM sessions ORDER BY id",
    "SELECT a.uuid, s.uuid, p.uuid, f.uuid, a.fork_seq, a.created_at, a.status, a.name, h.seq, h.epoch
     FROM agents a JOIN sessions s ON s.id = a.session JOIN heads h ON h.agent = a.id
     LEFT JOIN agents p ON p.id = a.parent LEFT JOIN agents f ON f.id = a.fork_agent ORDER BY a.id",
    "SELECT a.uuid, m.seq, m.kind, m.control, m.created_at, m.content, m.data
     FROM messages m JOIN agents a ON a.id = m.agent ORDER BY m.id",
    "SELECT hex(m.uuid), r.uuid, s.uuid, m.sent_at, m.state, w.uuid, m.shown_seq, m.text
     FROM mail m JOIN agents r ON r.id = m.receiver LEFT JOIN agents s ON s.id = m.sender
     LEFT JOIN agents w ON w.id = m.shown_agent ORDER BY m.id",
    "SELECT hex(r.uuid), a.uuid, r.seq, r.class, r.started, r.deadline, r.ended
     FROM tool_runs r JOIN agents a ON a.id = r.agent ORDER BY r.id",
    "SELECT a.uuid, d.part, d.at, d.text FROM drafts d JOIN agents a ON a.id = d.agent ORDER BY d.id",
    "SELECT hex(hash), part, bytes FROM blobs ORDER BY hash, part",
];

pub(crate) fn contents(path: &Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut all = Vec::new();
    for sql in TABLES {
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let cells = (0..columns).map(|column| format!("{:?}", row.get_ref(column).unwrap()));
            all.push(cells.collect::<Vec<_>>().join(" | "));
        }
        all.push("--".to_owned());
    }
    all
}

pub(crate) fn told(store: &dyn Log, of: Option<Vec<AgentId>>) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (sender, mut receiver) = mpsc::channel::<String>(4);
        let collect = async {
            let mut all = String::new();
            while let Some(line) = receiver.recv().await {
                all.push_str(&line);
            }
            all
        };
        let (done, all) = tokio::join!(store.dump(of, sender), collect);
        done.unwrap();
        all
    })
}

/// Returns a store with random rows, mails, runs and blobs.
pub(crate) fn some_store(disk: &Disk, dice: &mut Dice) -> SqliteStore {
    let store = open(&disk.path, 1).unwrap();
    block_on(store.commit(only(make_session()))).unwrap();
    let count = 2 + dice.below(5);
    let mut heads = vec![0_u64; usize::try_from(count).unwrap()];
    for number in 0..count {
        let id = agent(number);
        let parent = (number > 0).then(|| dice.below(number));
        let fork_point = parent
            .map(|parent| (parent, heads[usize::try_from(parent).unwrap()]))
            .filter(|(_, head)| *head > 0 && dice.below(2) == 0)
            .map(|(parent, head)| {
                ikigai_core::RowRef::new(agent(parent), Seq(1 + dice.below(head)))
            });
        let new = NewAgent {
            id,
            name: format!("agent-{number}"),
            session: session(1),
            parent: parent.map(agent),
            fork_point,
            created_at: Micros(i64::try_from(number).unwrap() - 1),
        };
        block_on(store.commit(only(Effect::Agent(AgentEffect::Create {
            agent: new,
            owned: true,
        }))))
        .unwrap();
        let bytes: Vec<u8> = (0..dice.below(400_000)).map(|n| (n % 251) as u8).collect();
        let hash = block_on(blobs::put_blob(&store, &bytes)).unwrap();
        let blob = BlobRef {
            hash: Some(hash.to_string()),
            bytes: Some(bytes.len() as u64),
        };
        let rows = 1 + dice.below(20);
        let text = |n: u64| format!("row {n} \u{0}\u{1b}[1m \"é\" \u{202e} 日本\r\n");
        let mut batch_rows: Vec<_> = (0..rows).map(|n| said(id, &text(n))).collect();
        batch_rows[0].data = Some(serde_json::json!({ "blob": blob, "odd": 1.0e300 }).to_string());
        let run = Effect::Run(RunEffect::Start {
            run: RunId(u128::from(number) << 64),
            call: ikigai_core::RowRef::new(id, Seq(1)),
            class: ikigai_store::EffectClass::Write,
            started: Micros(1),
            deadline: Micros(2),
        });
        let draft = Effect::Draft(DraftEffect::Append {
            agent: id,
            epoch: Epoch(1),
            text: "half a se".to_owned(),
            at: Micros(3),
        });
        let mail = Effect::Mail(MailEffect::Send {
            mail: MailId(u128::from(number) + (7 << 70)),
            to: id,
            origin: match parent {
                Some(_) => MailOrigin::Agent,
                None => MailOrigin::User,
            },
            from: parent.map(agent),
            about: MailTopic::Report,
            text: "dear".to_owned(),
            at: Micros(4),
            author: None,
        });
        block_on(store.commit(Batch {
            heads: vec![claim(id, Epoch(1), Seq(0))],
            rows: batch_rows,
            with: vec![run, draft, mail],
        }))
        .unwrap();
        heads[usize::try_from(number).unwrap()] = rows;
    }
    for number in (1..count).filter(|number| number % 3 == 0) {
        let agent = agent(number);
        let status = Status::Dead;
        block_on(store.commit(only(Effect::Agent(AgentEffect::SetStatus {
            agent,
            status,
        }))))
        .unwrap();
    }
    // A row that no program of this version writes.
    let connection = Connection::open(&disk.path).unwrap();
    connection
        .execute_batch(
            "UPDATE heads SET seq = seq + 1 WHERE agent = 1;
             INSERT INTO messages (agent, seq, kind, control, created_at, content, data)
             SELECT 1, seq, 'dream', 1, -5, NULL, '{not json' FROM heads WHERE agent = 1;",
        )
        .unwrap();
    store
}

#[test]
fn export_then_import_is_the_identity() {
    let mut dice = Dice::roll();
    for _ in 0..if is_long() { 30 } else { 3 } {
        let disk = Disk::new();
        let store = some_store(&disk, &mut dice);
        let lines = told(&store, None);

        let other = Disk::new();
        let copy = open(&other.path, 2).unwrap();
        let restored = copy
            .restore(&mut lines.as_bytes(), RestoreMode::Merge)
            .unwrap();

        assert_eq!(contents(&other.path), contents(&disk.path));
        assert_eq!(told(&copy, None), lines);
        let rows = lines.matches("\n{\"row\":").count();
        assert_eq!(restored.rows, rows as u64);
        assert_eq!(block_on(copy.integrity()).unwrap(), [""; 0]);
    }
}

#[test]
fn one_agent_comes_with_its_ancestors_and_nobody_else() {
    let disk = Disk::new();
    let store = some_store(&disk, &mut Dice::roll());
    let lines = told(&store, Some(vec![agent(1)]));
    let other = Disk::new();
    let copy = open(&other.path, 2).unwrap();

    copy.restore(&mut lines.as_bytes(), RestoreMode::Merge)
        .unwrap();

    let ids: Vec<_> = block_on(copy.agents(None))
        .unwrap()
        .iter()
        .map(|it| it.id)
        .collect();
    assert_eq!(ids, [agent(0), agent(1)]);
    let theirs = contents(&disk.path);
    let rows = contents(&other.path);
    assert!(
        rows.iter()
            .filter(|row| *row != "--")
            .all(|row| theirs.contains(row))
    );
}

/// Returns exports that every store refuses: truncated, contradictory and foreign ones.
pub(crate) fn bad_logs(lines: &str) -> Vec<String> {
    let without_end = lines.rsplit_once("{\"end\"").unwrap().0;
    let missing_row = {
        let row = lines
            .lines()
            .find(|line| line.contains("{\"row\""))
            .unwrap();
        lines.replacen(&format!("{row}\n"), "", 1)
    };
    let fewer = missing_row.replace("\"rows\":", "\"rows\":0,\"was\":");
    vec![
        String::new(),
        "{}".to_owned(),
        "[1]\n".to_owned(),
        "not json\n".to_owned(),
        "{\"ikigai-log\":9}\n".to_owned(),
        "{\"ikigai-log\":0}\n".to_owned(),
        "{\"ikigai-log\":1}\n{\"row\":{\"agent\":\"x\"}}\n".to_owned(),
        "{\"ikigai-log\":1}\n{\"spell\":{}}\n".to_owned(),
        without_end.to_owned(),
        missing_row,
        fewer,
        lines.replace("\"status\":\"running\"", "\"status\":\"asleep\""),
        lines.replace("\"class\":\"write\"", "\"class\":\"magic\""),
        lines.replace("\"origin\":\"user\"", "\"origin\":\"thunder\""),
        lines.replace("\"about\":\"report\"", "\"about\":\"weather\""),
        lines.replace("\"kind\":\"user\"", "\"kind\":7"),
    ]
}

/// Mail of older files has an origin, by its sender, and is a plain message.
#[test]
fn mail_of_an_older_file_gets_an_origin() {
    let disk = Disk::new();
    let store = some_store(&disk, &mut Dice::roll());
    let lines = told(&store, None);
    let strip = |line: &str| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(mail) = line.get_mut("mail").and_then(|mail| mail.as_object_mut()) {
            mail.remove("origin").unwrap();
            mail.remove("about").unwrap();
        }
        format!("{line}\n")
    };
    let older: String = lines.lines().map(strip).collect();
    let older = older.replacen("{\"ikigai-log\":9}", "{\"ikigai-log\":3}", 1);
    let other = Disk::new();
    let copy = open(&other.path, 2).unwrap();

    copy.restore(&mut older.as_bytes(), RestoreMode::Merge)
        .unwrap();

    let mut seen = 0;
    let agents = ReadLog::agents(&copy, None);
    for record in block_on(agents).unwrap() {
        for mail in block_on(copy.mail(record.id)).unwrap() {
            let is_by_agent = mail.from.is_some();
            assert_eq!(mail.origin == MailOrigin::Agent, is_by_agent, "{mail:?}");
            assert_eq!(mail.about, MailTopic::Message);
            seen += 1;
        }
    }
    assert!(seen > 1);
}

#[test]
fn what_is_cut_foreign_or_there_already_is_refused_and_leaves_no_trace() {
    let disk = Disk::new();
    let store = some_store(&disk, &mut Dice::roll());
    let lines = told(&store, None);
    let before = contents(&disk.path);
    let twice = store.restore(&mut lines.as_bytes(), RestoreMode::Merge);
    assert!(matches!(twice, Err(RestoreError::Line { .. })), "{twice:?}");
    assert_eq!(contents(&disk.path), before);

    let other = Disk::new();
    let copy = open(&other.path, 2).unwrap();
    let empty = contents(&other.path);
    for bad in bad_logs(&lines) {
        let refused = copy.restore(&mut bad.as_bytes(), RestoreMode::Merge);
        assert!(refused.is_err(), "{bad:.200}");
        assert_eq!(contents(&other.path), empty, "{bad:.200}");
    }
    let full = store.restore(&mut lines.as_bytes(), RestoreMode::EmptyOnly);
    assert!(matches!(full, Err(RestoreError::NotEmpty)), "{full:?}");
    let message = copy
        .restore(&mut "x".as_bytes(), RestoreMode::Merge)
        .unwrap_err()
        .to_string();
    assert!(message.starts_with("line 1: "), "{message}");
}

/// Returns a store with one row that grants something, as lines.
pub(crate) fn lines_with_grant(store: &dyn Log) -> String {
    let id = agent(1);
    make_agent(store, id);
    let mut row = said(id, "/approve all");
    row.kind = ikigai_core::Kind::Command;
    row.control = true;
    row.data = Some(r#"{"command":"approve","set":{"approve":"all"},"grant":"tag"}"#.to_owned());
    let batch = Batch {
        heads: vec![claim(id, Epoch(1), Seq(0))],
        rows: vec![row],
        with: Vec::new(),
    };
    block_on(store.commit(batch)).unwrap();
    told(store, None)
}

/// E13b, E22: imports read older export versions and refuse newer ones, naming both versions.
///
/// Grants of an export have no effect.
#[test]
fn an_import_reads_older_versions_refuses_newer_ones_and_drops_grants() {
    let disk = Disk::new();
    let lines = lines_with_grant(&open(&disk.path, 1).unwrap());
    assert!(lines.starts_with("{\"ikigai-log\":9}\n"), "{lines}");
    assert!(lines.contains("grant"), "{lines}");

    for version in ["1", "2", "3", "4", "5", "6", "7", "8", "9"] {
        let other = Disk::new();
        let copy = open(&other.path, 2).unwrap();
        let header = format!("{{\"ikigai-log\":{version}}}");
        let lines = lines.replacen("{\"ikigai-log\":9}", &header, 1);
        copy.restore(&mut lines.as_bytes(), RestoreMode::Merge)
            .unwrap();
        let taken = told(&copy, None);
        assert!(taken.contains(r#"\"approve\":\"all\""#), "{taken}");
        assert!(!taken.contains(r#"\"grant\""#), "{taken}");
    }
    let other = Disk::new();
    let copy = open(&other.path, 2).unwrap();
    let newer = lines.replacen("{\"ikigai-log\":9}", "{\"ikigai-log\":10}", 1);
    let refused = copy
        .restore(&mut newer.as_bytes(), RestoreMode::Merge)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("version 10") && refused.contains("version 9"),
        "{refused}"
    );
    // A grant whose key is escaped in JSON is dropped too.
    let hidden = lines.replace(r#"\"grant\""#, r#"\"gr\\u0061nt\""#);
    assert_ne!(hidden, lines);
    copy.restore(&mut hidden.as_bytes(), RestoreMode::Merge)
        .unwrap();
    assert!(
        !told(&copy, None).contains("tag\\\""),
        "{}",
        told(&copy, None)
    );
}

/// E22: a copy of a whole store is the same log, tags included.
#[test]
fn a_copy_keeps_grants() {
    let disk = Disk::new();
    let lines = lines_with_grant(&open(&disk.path, 1).unwrap());
    let other = Disk::new();
    let copy = open(&other.path, 2).unwrap();

    copy.restore(&mut lines.as_bytes(), RestoreMode::EmptyOnly)
        .unwrap();

    assert_eq!(told(&copy, None), lines);
}
