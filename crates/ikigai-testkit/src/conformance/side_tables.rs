//! Checks of drafts, runs, blobs, snapshots and subscriptions.

use ikigai_core::{AgentId, Epoch, Event, Micros, RowRef, Seq, Settings};
use ikigai_store::blobs::PART_BYTES;
use ikigai_store::{
    Agent, AgentEffect, BlobHash, CommitError, DraftRecord, Effect, EffectClass, Log, MailEffect,
    RunEffect, RunRecord, SessionRecord, Snapshot, Status, history,
};
use sha2::{Digest, Sha256};

use super::Rig;
use super::samples::{
    append_draft, at, create, drop_draft, give, set_status, take, user, user_mail, user_row,
};
use super::workbench::{Workbench, assert_fenced};

/// The parts of a draft are joined in order; it is dropped in the commit of its rows.
pub(super) async fn drafts_grow_and_go_with_the_rows(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let agent = holder.agent;
    let other = desk.agent("other").await;
    let part = |agent, text: &str, n| append_draft(agent, 1, text.to_owned(), at(n));
    assert_eq!(desk.draft(agent).await, None);

    desk.done([part(agent, "Hel", 1)]).await;
    desk.done([part(other.agent, "another", 9)]).await;
    desk.done([part(agent, "lo, ", 2), part(agent, "w\u{f6}rld\n", 3)])
        .await;

    let draft = DraftRecord {
        text: "Hello, w\u{f6}rld\n".to_owned(),
        updated_at: at(3),
    };
    assert_eq!(desk.draft(agent).await, Some(draft.clone()));
    assert_eq!(desk.head(agent).await.seq, Seq(0));

    // The refused row keeps the draft, the stored one drops it.
    let drop_draft = || vec![drop_draft(agent, 1)];
    let mut behind = holder.clone();
    behind.head = Seq(5);
    behind
        .commit(vec![user_row(agent, "lost")], drop_draft())
        .await
        .unwrap_err();
    assert_eq!(desk.draft(agent).await, Some(draft));
    holder
        .commit(vec![user_row(agent, "Hello")], drop_draft())
        .await
        .unwrap();
    assert_eq!(desk.draft(agent).await, None);
    desk.done(drop_draft()).await;

    desk.done([part(agent, "next", 4)]).await;
    assert_eq!(desk.draft(agent).await.unwrap().text, "next");
    assert_eq!(desk.draft(other.agent).await.unwrap().text, "another");
}

/// Only the holder of the lease changes a draft; the next holder finds it.
pub(super) async fn drafts_are_fenced(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let second = desk.second(rig);
    let agent = desk.agent("root").await.agent;
    let part = |epoch, text: &str| append_draft(agent, epoch, text.to_owned(), at(0));
    let drop = |epoch| drop_draft(agent, epoch);
    desk.done([part(1, "half an ans")]).await;
    desk.done([give(agent, 1)]).await;
    second.done([take(agent)]).await;

    for effect in [part(1, "wer"), part(2, "wer"), drop(1), drop(2)] {
        assert_fenced(&desk.effects([effect]).await, agent, Epoch(2));
    }

    let found = second.draft(agent).await.map(|draft| draft.text);
    assert_eq!(found.as_deref(), Some("half an ans"));
    second.done([drop(2)]).await;
    assert_eq!(desk.draft(agent).await, None);
    let unknown = desk.ids.agent();
    let lost = drop_draft(unknown, 1);
    let refused = desk.effects([lost]).await;
    assert_refused!(refused, CommitError::NoAgent(no) if *no == unknown);
}

/// A journalled run is listed from its start to its end, also for other processes.
pub(super) async fn open_runs_are_told_until_they_end(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let mut other = desk.agent("other").await;
    other.add([user("call")]).await;
    holder.add([user("call"), user("call")]).await;
    let classes = [
        EffectClass::Read,
        EffectClass::Write,
        EffectClass::Execute,
        EffectClass::Network,
        EffectClass::Agent,
    ];
    let runs: Vec<RunRecord> = (0..)
        .zip(classes)
        .map(|(n, class)| RunRecord {
            id: desk.ids.run(),
            call: holder.row(if n == 0 { 2 } else { 1 }),
            class,
            started: at(n / 2),
            deadline: Micros(i64::MAX),
            ended: None,
        })
        .collect();
    let start = |run: &RunRecord| {
        Effect::Run(RunEffect::Start {
            run: run.id,
            call: run.call,
            class: run.class,
            started: run.started,
            deadline: run.deadline,
        })
    };
    let elsewhere = RunRecord {
        id: desk.ids.run(),
        call: other.row(1),
        ..runs[0].clone()
    };

    // Journalled in another order than started; runs with equal start times stay as journalled.
    for run in [&runs[2], &runs[4], &runs[3], &runs[0], &runs[1]] {
        desk.done([start(run)]).await;
    }
    desk.done([start(&elsewhere)]).await;
    let again = desk.effects([start(&runs[0])]).await;
    assert_refused!(again, CommitError::BadBatch(_));
    assert_eq!(rig.second().open_runs(holder.agent).await.unwrap(), runs);

    let end = |run: &RunRecord| {
        Effect::Run(RunEffect::End {
            run: run.id,
            ended: at(9),
        })
    };
    desk.done([end(&runs[1]), end(&runs[3])]).await;
    let open = [runs[0].clone(), runs[2].clone(), runs[4].clone()];
    assert_eq!(desk.store.open_runs(holder.agent).await.unwrap(), open);
    assert_eq!(
        desk.store.open_runs(other.agent).await.unwrap(),
        [elsewhere]
    );
    let unknown = Effect::Run(RunEffect::End {
        run: desk.ids.run(),
        ended: at(9),
    });
    let lost = RunRecord {
        id: desk.ids.run(),
        call: holder.row(3),
        ..runs[0].clone()
    };
    for effect in [unknown, end(&runs[1]), start(&lost)] {
        let refused = desk.effects([effect]).await;
        assert_refused!(refused, CommitError::BadBatch(_));
    }
}

/// A blob exists once all its parts are stored.
///
/// Before that, and for unknown hashes, there is none. A part that exists stays unchanged.
pub(super) async fn blobs_are_told_when_whole(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let bytes: Vec<u8> = (0_u8..=255).cycle().take(700_000).collect();
    let hash = hash_of(&bytes);
    let chunks: Vec<&[u8]> = bytes.chunks(PART_BYTES).collect();
    assert_eq!(chunks.len(), 3);
    let put = |part: u32, bytes: &[u8]| Effect::PutBlobPart {
        hash,
        part,
        bytes: bytes.to_vec(),
    };
    assert_eq!(desk.store.blob(hash).await.unwrap(), None);

    // The middle is missing, then the end.
    desk.done([put(0, chunks[0]), put(2, chunks[2])]).await;
    assert_eq!(desk.store.blob(hash).await.unwrap(), None);
    desk.done([put(1, chunks[1]), put(1, b"another"), put(0, b"")])
        .await;
    assert!(
        desk.store.blob(hash).await.unwrap() == Some(bytes),
        "the bytes are those put in"
    );
    let whole = b"first and last".as_slice();
    let cut = hash_of(whole);
    let first = Effect::PutBlobPart {
        hash: cut,
        part: 0,
        bytes: b"first and ".to_vec(),
    };
    desk.done([first]).await;
    assert_eq!(desk.store.blob(cut).await.unwrap(), None);
    let last = Effect::PutBlobPart {
        hash: cut,
        part: 1,
        bytes: b"last".to_vec(),
    };
    desk.done([last]).await;
    assert_eq!(
        rig.second().blob(cut).await.unwrap().as_deref(),
        Some(whole)
    );

    let too_large = put(3, &vec![0; PART_BYTES + 1]);
    let refused = desk.effects([too_large]).await;
    assert_refused!(refused, CommitError::BadBatch(_));

    let empty = hash_of(b"");
    assert_eq!(desk.store.blob(empty).await.unwrap(), None);
    let part = Effect::PutBlobPart {
        hash: empty,
        part: 0,
        bytes: Vec::new(),
    };
    desk.done([part]).await;
    assert_eq!(desk.store.blob(empty).await.unwrap(), Some(Vec::new()));
}

fn hash_of(bytes: &[u8]) -> BlobHash {
    BlobHash(Sha256::digest(bytes).into())
}

/// The newest snapshot at or before a row is found, and only the agent's own.
pub(super) async fn snapshots_are_found_at_or_before_a_row(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let other = desk.agent("other").await;
    holder.add((0..9).map(|_| user("said"))).await;
    let snapshot = |agent: AgentId, seq, folded: &str| Snapshot {
        upto: RowRef::new(agent, Seq(seq)),
        folded: folded.to_owned(),
    };
    let three = snapshot(holder.agent, 3, "{ \"at\": 3 }");
    let seven = snapshot(holder.agent, 7, "seven");
    for snapshot in [&seven, &three, &snapshot(other.agent, 5, "another's")] {
        desk.done([Effect::PutSnapshot(snapshot.clone())]).await;
    }

    for (upto, expected) in [
        (2, None),
        (3, Some(&three)),
        (6, Some(&three)),
        (7, Some(&seven)),
        (u64::MAX, Some(&seven)),
    ] {
        let found = desk
            .store
            .snapshot(RowRef::new(holder.agent, Seq(upto)))
            .await
            .unwrap();
        assert_eq!(found.as_ref(), expected, "at or before {upto}");
    }
    let again = snapshot(holder.agent, 7, "rebuilt");
    desk.done([Effect::PutSnapshot(again.clone())]).await;
    assert_eq!(
        desk.store.snapshot(holder.row(9)).await.unwrap(),
        Some(again)
    );
    let unknown = desk.ids.agent();
    assert_eq!(
        desk.store
            .snapshot(RowRef::new(unknown, Seq(9)))
            .await
            .unwrap(),
        None
    );
}

/// An agent with imported rows gets the snapshots that its work would have left.
///
/// Its state is equal with and without them.
pub(super) async fn snapshots_are_made_of_rows_that_came(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let store = &*desk.store;
    let mut holder = desk.agent("root").await;
    let agent = holder.agent;
    let set = |number: u64| {
        let settings = Settings {
            name: Some(format!("name {number}")),
            ..Settings::default()
        };
        Event::set("rename", settings.as_set())
    };
    let first = (0..20).flat_map(|number| [set(number), user("said")]);
    holder.add(first).await;
    holder.add((0..4100).map(|_| user("on"))).await;
    holder.add((20..25).map(set)).await;
    let rows = [1, 15, 16, 31, 39, 47, 2000, 4143, 4144, holder.head.0];
    let mut before = Vec::new();
    for row in rows {
        before.push(known_at(store, holder.row(row)).await);
    }

    history::store_snapshots(store, agent).await.unwrap();
    history::store_snapshots(store, desk.ids.agent())
        .await
        .unwrap();

    let mut found = Vec::new();
    let mut upto = holder.head;
    while let Some(snapshot) = store.snapshot(RowRef::new(agent, upto)).await.unwrap() {
        found.push(snapshot.upto.seq.0);
        upto = snapshot.upto.seq.before();
    }
    // Every eighth of 25: the 24th is the fourth of the last five.
    assert_eq!(found, [4144, 31, 15]);
    let left = history::control_rows_since_snapshot(store, holder.row(holder.head.0), 100);
    assert_eq!(left.await.unwrap(), 1);
    for (row, before) in rows.into_iter().zip(before) {
        assert_eq!(known_at(store, holder.row(row)).await, before, "at {row}");
    }
}

async fn known_at(store: &dyn Log, row: RowRef) -> Agent {
    let mut agent = Agent::restore_at(store, row).await.unwrap();
    agent.know_all(store).await.unwrap();
    agent
}

/// Subscribers are woken by commits of their own process and others, which they can read.
pub(super) async fn watch_tells_of_commits(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let second = desk.second(rig);
    let mut ours = desk.agent("ours").await;
    let mut theirs = second.agent("theirs").await;

    let mut watch = desk.store.watch().unwrap();
    for round in 1..=3 {
        theirs.add([user("from the second")]).await;
        assert!(
            watch.changed().await,
            "a commit of another process is reported"
        );
        assert_eq!(desk.head(theirs.agent).await.seq, Seq(round));

        ours.add([user("from the first")]).await;
        assert!(watch.changed().await, "an own commit is reported");
        assert_eq!(desk.head(ours.agent).await.seq, Seq(round));
    }
}

fn origin(agent: AgentId, parent: AgentId) -> Effect {
    Effect::Agent(AgentEffect::SetOrigin {
        agent,
        parent: Some(parent),
        fork_point: None,
    })
}

/// All effects of a batch are rolled back if a later part is refused.
pub(super) async fn effects_of_a_failed_batch_are_taken_back(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let idle = desk.idle_agent("idle").await;
    let agent = holder.agent;
    let mail = desk.ids.mail();
    let send = |mail| user_mail(mail, agent, "mail".to_owned(), at(0));
    let draft = || append_draft(agent, 1, "mail".to_owned(), at(0));
    desk.done([send(mail), draft()]).await;
    let before = everything(&desk, agent, idle).await;
    let hash = hash_of(b"blob");

    let with = vec![
        Effect::MakeSession(SessionRecord {
            id: desk.ids.session(),
            name: String::new(),
            directory: String::new(),
            created_at: at(0),
            machine: None,
            host: None,
        }),
        create(desk.new_agent("child"), true),
        take(idle),
        Effect::Agent(AgentEffect::SetName {
            agent,
            name: "renamed".to_owned(),
        }),
        origin(agent, idle),
        set_status(idle, Status::Dead),
        draft(),
        drop_draft(agent, 1),
        send(desk.ids.mail()),
        Effect::Mail(MailEffect::Consume {
            mail,
            by: holder.row(1),
        }),
        Effect::Run(RunEffect::Start {
            run: desk.ids.run(),
            call: holder.row(1),
            class: EffectClass::Write,
            started: at(0),
            deadline: at(1),
        }),
        Effect::PutBlobPart {
            hash,
            part: 0,
            bytes: b"blob".to_vec(),
        },
        Effect::PutSnapshot(Snapshot {
            upto: holder.row(1),
            folded: String::new(),
        }),
        give(agent, 1),
    ];
    let rows = vec![user_row(agent, "shown")];
    // Each prefix of the list, followed by an effect that is refused.
    for len in 1..=with.len() {
        let mut with = with[..len].to_vec();
        with.push(Effect::Mail(MailEffect::Withdraw {
            mail: desk.ids.mail(),
        }));
        let refused = holder.commit(rows.clone(), with).await;
        assert_refused!(refused, CommitError::MailGone(_));
        assert_eq!(everything(&desk, agent, idle).await, before);
        assert_eq!(desk.store.blob(hash).await.unwrap(), None);
    }

    desk.commit(vec![holder.claim()], rows, with).await.unwrap();
    assert_ne!(everything(&desk, agent, idle).await, before);
}

/// Returns all readable data of two agents, as text.
async fn everything(desk: &Workbench, one: AgentId, two: AgentId) -> Vec<String> {
    let store = &desk.store;
    let mut told = vec![
        format!("{:?}", store.sessions().await.unwrap()),
        format!("{:?}", store.agents(None).await.unwrap()),
    ];
    for agent in [one, two] {
        told.push(format!("{:?}", store.head(agent).await.unwrap()));
        told.push(format!("{:?}", desk.rows(agent).await));
        told.push(format!("{:?}", store.mail(agent).await.unwrap()));
        told.push(format!("{:?}", store.open_runs(agent).await.unwrap()));
        told.push(format!("{:?}", store.draft(agent).await.unwrap()));
        let newest = RowRef::new(agent, Seq(9));
        told.push(format!("{:?}", store.snapshot(newest).await.unwrap()));
    }
    told
}

/// The counters grow with rows and mail of any process, and with nothing else.
pub(super) async fn the_pulse_beats_with_rows_and_mail_only(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let second = rig.second();
    let mut holder = desk.agent("one").await;
    let (agent, epoch) = (holder.agent, Epoch(1));
    let still = desk.store.pulse().await.unwrap();

    let text = "so far".to_owned();
    desk.done([append_draft(agent, epoch.0, text.clone(), at(1))])
        .await;
    assert_eq!(desk.store.pulse().await.unwrap(), still);

    holder.add([user("a row")]).await;
    let grown = desk.store.pulse().await.unwrap();
    assert!(grown.rows > still.rows && grown.mail == still.mail);
    assert_eq!(second.pulse().await.unwrap(), grown);

    desk.done([user_mail(desk.ids.mail(), agent, text, at(2))])
        .await;
    let mailed = desk.store.pulse().await.unwrap();
    assert!(mailed.mail > grown.mail && mailed.rows == grown.rows);
}
