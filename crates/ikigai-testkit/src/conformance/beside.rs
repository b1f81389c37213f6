//! Checks of what stands beside the rows: mail, drafts, runs, blobs, snapshots, watching.

use ikigai_core::{AgentId, Epoch, Micros, RowRef, Seq};
use ikigai_store::{
    Batch, BlobHash, CommitError, Committed, Draft, Effect, EffectClass, MailId, MailState,
    RunRecord, Snapshot, Status,
};
use sha2::{Digest, Sha256};

use super::Rig;
use super::desk::Desk;
use super::leases::assert_fenced;
use super::samples::{at, user, user_row};

/// E10c: mail is told in the order in which it was sent, is consumed once, with the row that
/// shows it, and what was bounced or withdrawn is never delivered.
pub(super) async fn mail_is_delivered_once_bounced_or_withdrawn(rig: &dyn Rig) {
    let desk = Desk::first(rig).await;
    let mut holder = desk.agent("root").await;
    let sender = desk.idle_agent("sender").await;
    let mail: Vec<MailId> = (0..4).map(|_| desk.ids.mail()).collect();
    let send = |n: usize, from| Effect::SendMail {
        mail: mail[n],
        to: holder.agent,
        from,
        text: format!("mail {n}\n\"'\u{1f4ec}"),
        at: at([5, 5, -1, 0][n]),
    };
    desk.effects([send(0, Some(sender)), send(1, None)])
        .await
        .unwrap();
    desk.effects([send(2, Some(holder.agent))]).await.unwrap();
    desk.effects([send(3, None)]).await.unwrap();
    let again = desk.effects([send(0, None)]).await;
    assert!(matches!(again, Err(CommitError::BadBatch(_))), "{again:?}");

    let by = holder.row(1);
    let show = vec![user_row(holder.agent, "mail 1")];
    let consume = Effect::ConsumeMail { mail: mail[1], by };
    holder.commit(show, vec![consume.clone()]).await.unwrap();
    desk.effects([Effect::WithdrawMail { mail: mail[2] }])
        .await
        .unwrap();
    desk.effects([Effect::BounceMail { mail: mail[3] }])
        .await
        .unwrap();

    for gone in &mail[1..] {
        for effect in [
            Effect::ConsumeMail {
                mail: *gone,
                by: holder.row(2),
            },
            Effect::WithdrawMail { mail: *gone },
            Effect::BounceMail { mail: *gone },
        ] {
            let refused = holder
                .commit(vec![user_row(holder.agent, "twice")], vec![effect])
                .await;
            assert_gone(&refused, *gone);
        }
    }
    let never_sent = desk.ids.mail();
    assert_gone(
        &desk
            .effects([Effect::WithdrawMail { mail: never_sent }])
            .await,
        never_sent,
    );

    let told = desk.store.mail(holder.agent).await.unwrap();
    let states: Vec<_> = told
        .iter()
        .map(|mail| (mail.id, mail.state, mail.shown_by))
        .collect();
    assert_eq!(
        states,
        [
            (mail[0], MailState::Queued, None),
            (mail[1], MailState::Delivered, Some(by)),
            (mail[2], MailState::Withdrawn, None),
            (mail[3], MailState::Bounced, None),
        ]
    );
    let senders: Vec<_> = told.iter().map(|mail| mail.from).collect();
    assert_eq!(senders, [Some(sender), None, Some(holder.agent), None]);
    assert_eq!(told[2].text, "mail 2\n\"'\u{1f4ec}");
    assert_eq!(told[2].sent_at, at(-1));
    assert_eq!(desk.texts(holder.agent).await, ["mail 1"]);
    assert_eq!(desk.store.mail(sender).await.unwrap(), []);
}

fn assert_gone(outcome: &Result<Committed, CommitError>, mail: MailId) {
    assert!(
        matches!(outcome, Err(CommitError::MailGone(gone)) if *gone == mail),
        "{outcome:?}"
    );
}

/// E10c: nothing is sent to an agent that is not running; what was queued before can bounce.
pub(super) async fn mail_to_the_dead_is_refused(rig: &dyn Rig) {
    let desk = Desk::first(rig).await;
    let agent = desk.idle_agent("root").await;
    let send = |mail, to| Effect::SendMail {
        mail,
        to,
        from: None,
        text: String::new(),
        at: at(0),
    };
    let queued = desk.ids.mail();
    desk.effects([send(queued, agent)]).await.unwrap();

    for status in [Status::Dead, Status::Reaped] {
        desk.effects([Effect::SetStatus { agent, status }])
            .await
            .unwrap();
        let refused = desk.effects([send(desk.ids.mail(), agent)]).await;
        assert!(
            matches!(refused, Err(CommitError::Dead(dead)) if dead == agent),
            "{refused:?}"
        );
    }
    let nobody = desk.ids.agent();
    let refused = desk.effects([send(desk.ids.mail(), nobody)]).await;
    assert!(
        matches!(refused, Err(CommitError::NoAgent(no)) if no == nobody),
        "{refused:?}"
    );
    desk.effects([Effect::BounceMail { mail: queued }])
        .await
        .unwrap();

    let states: Vec<_> = desk
        .store
        .mail(agent)
        .await
        .unwrap()
        .iter()
        .map(|m| m.state)
        .collect();
    assert_eq!(states, [MailState::Bounced]);
}

/// The parts of a draft are joined in the order they came; it goes with the rows it became.
pub(super) async fn drafts_grow_and_go_with_the_rows(rig: &dyn Rig) {
    let desk = Desk::first(rig).await;
    let mut holder = desk.agent("root").await;
    let agent = holder.agent;
    let other = desk.agent("other").await;
    let part = |agent, text: &str, n| Effect::AppendDraft {
        agent,
        epoch: Epoch(1),
        text: text.to_owned(),
        at: at(n),
    };
    assert_eq!(desk.store.draft(agent).await.unwrap(), None);

    desk.effects([part(agent, "Hel", 1)]).await.unwrap();
    desk.effects([part(other.agent, "another", 9)])
        .await
        .unwrap();
    desk.effects([part(agent, "lo, ", 2), part(agent, "w\u{f6}rld\n", 3)])
        .await
        .unwrap();

    let draft = Draft {
        text: "Hello, w\u{f6}rld\n".to_owned(),
        updated_at: at(3),
    };
    assert_eq!(desk.store.draft(agent).await.unwrap(), Some(draft.clone()));
    assert_eq!(desk.head(agent).await.seq, Seq(0));

    // The refused row keeps the draft, the stored one drops it.
    let drop_draft = || {
        vec![Effect::DropDraft {
            agent,
            epoch: Epoch(1),
        }]
    };
    let mut behind = holder.clone();
    behind.head = Seq(5);
    behind
        .commit(vec![user_row(agent, "lost")], drop_draft())
        .await
        .unwrap_err();
    assert_eq!(desk.store.draft(agent).await.unwrap(), Some(draft));
    holder
        .commit(vec![user_row(agent, "Hello")], drop_draft())
        .await
        .unwrap();
    assert_eq!(desk.store.draft(agent).await.unwrap(), None);
    desk.effects(drop_draft()).await.unwrap();

    desk.effects([part(agent, "next", 4)]).await.unwrap();
    assert_eq!(desk.store.draft(agent).await.unwrap().unwrap().text, "next");
    assert_eq!(
        desk.store.draft(other.agent).await.unwrap().unwrap().text,
        "another"
    );
}

/// Only the holder of the lease touches a draft; whoever takes the lease finds it.
pub(super) async fn drafts_are_fenced(rig: &dyn Rig) {
    let desk = Desk::first(rig).await;
    let second = desk.second(rig);
    let agent = desk.agent("root").await.agent;
    let part = |epoch, text: &str| Effect::AppendDraft {
        agent,
        epoch: Epoch(epoch),
        text: text.to_owned(),
        at: at(0),
    };
    let drop_draft = |epoch| Effect::DropDraft {
        agent,
        epoch: Epoch(epoch),
    };
    desk.effects([part(1, "half an ans")]).await.unwrap();
    desk.effects([Effect::GiveLease {
        agent,
        epoch: Epoch(1),
    }])
    .await
    .unwrap();
    second.effects([Effect::TakeLease { agent }]).await.unwrap();

    for effect in [part(1, "wer"), part(2, "wer"), drop_draft(1), drop_draft(2)] {
        assert_fenced(&desk.effects([effect]).await, agent, Epoch(2));
    }

    let found = second
        .store
        .draft(agent)
        .await
        .unwrap()
        .map(|draft| draft.text);
    assert_eq!(found.as_deref(), Some("half an ans"));
    second.effects([drop_draft(2)]).await.unwrap();
    assert_eq!(desk.store.draft(agent).await.unwrap(), None);
    let nobody = desk.ids.agent();
    let lost = Effect::DropDraft {
        agent: nobody,
        epoch: Epoch(1),
    };
    let refused = desk.effects([lost]).await;
    assert!(
        matches!(refused, Err(CommitError::NoAgent(no)) if no == nobody),
        "{refused:?}"
    );
}

/// E16a, the store's part: a run is told from its start to its end, also to other processes.
pub(super) async fn open_runs_are_told_until_they_end(rig: &dyn Rig) {
    let desk = Desk::first(rig).await;
    let mut holder = desk.agent("root").await;
    let other = desk.agent("other").await;
    holder.append([user("call"), user("call")]).await.unwrap();
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
            call: holder.row(1 + (n % 2)),
            class,
            started: at(i64::try_from(n).unwrap()),
            deadline: Micros(i64::MAX),
            ended: None,
        })
        .collect();
    let start = |run: &RunRecord| Effect::StartRun {
        run: run.id,
        call: run.call,
        class: run.class,
        started: run.started,
        deadline: run.deadline,
    };
    let elsewhere = RunRecord {
        id: desk.ids.run(),
        call: other.row(1),
        ..runs[0].clone()
    };

    for run in &runs {
        desk.effects([start(run)]).await.unwrap();
    }
    desk.effects([start(&elsewhere)]).await.unwrap();
    let again = desk.effects([start(&runs[0])]).await;
    assert!(matches!(again, Err(CommitError::BadBatch(_))), "{again:?}");
    assert_eq!(rig.second().open_runs(holder.agent).await.unwrap(), runs);

    let end = |run: &RunRecord| Effect::EndRun {
        run: run.id,
        ended: at(9),
    };
    desk.effects([end(&runs[1]), end(&runs[3])]).await.unwrap();
    let open = [runs[0].clone(), runs[2].clone(), runs[4].clone()];
    assert_eq!(desk.store.open_runs(holder.agent).await.unwrap(), open);
    assert_eq!(
        desk.store.open_runs(other.agent).await.unwrap(),
        [elsewhere]
    );
    let unknown = Effect::EndRun {
        run: desk.ids.run(),
        ended: at(9),
    };
    let refused = desk.effects([unknown]).await;
    assert!(
        matches!(refused, Err(CommitError::BadBatch(_))),
        "{refused:?}"
    );
}

/// A blob is told once all its parts are there; before that, and of unknown hashes, there is
/// none. A part that is there already is left as it is.
pub(super) async fn blobs_are_told_when_whole(rig: &dyn Rig) {
    let desk = Desk::first(rig).await;
    let bytes: Vec<u8> = (0_u8..=255).cycle().take(700_000).collect();
    let hash = hash_of(&bytes);
    let chunks: Vec<&[u8]> = bytes.chunks(256 * 1024).collect();
    assert_eq!(chunks.len(), 3);
    let put = |part: u32, bytes: &[u8]| Effect::PutBlobPart {
        hash,
        part,
        bytes: bytes.to_vec(),
    };
    assert_eq!(desk.store.blob(hash).await.unwrap(), None);

    // The middle is missing, then the end.
    desk.effects([put(0, chunks[0]), put(2, chunks[2])])
        .await
        .unwrap();
    assert_eq!(desk.store.blob(hash).await.unwrap(), None);
    desk.effects([put(1, chunks[1]), put(1, b"another"), put(0, b"")])
        .await
        .unwrap();
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
    desk.effects([first]).await.unwrap();
    assert_eq!(desk.store.blob(cut).await.unwrap(), None);
    let last = Effect::PutBlobPart {
        hash: cut,
        part: 1,
        bytes: b"last".to_vec(),
    };
    desk.effects([last]).await.unwrap();
    assert_eq!(
        rig.second().blob(cut).await.unwrap().as_deref(),
        Some(whole)
    );

    let empty = hash_of(b"");
    assert_eq!(desk.store.blob(empty).await.unwrap(), None);
    let part = Effect::PutBlobPart {
        hash: empty,
        part: 0,
        bytes: Vec::new(),
    };
    desk.effects([part]).await.unwrap();
    assert_eq!(desk.store.blob(empty).await.unwrap(), Some(Vec::new()));
}

fn hash_of(bytes: &[u8]) -> BlobHash {
    BlobHash(Sha256::digest(bytes).into())
}

/// The newest snapshot at or before a row is found, and only the agent's own.
pub(super) async fn snapshots_are_found_at_or_before_a_row(rig: &dyn Rig) {
    let desk = Desk::first(rig).await;
    let mut holder = desk.agent("root").await;
    let other = desk.agent("other").await;
    holder.append((0..9).map(|_| user("said"))).await.unwrap();
    let snapshot = |agent: AgentId, seq, folded: &str| Snapshot {
        upto: RowRef::new(agent, Seq(seq)),
        folded: folded.to_owned(),
    };
    let three = snapshot(holder.agent, 3, "{ \"at\": 3 }");
    let seven = snapshot(holder.agent, 7, "seven");
    for snapshot in [&seven, &three, &snapshot(other.agent, 5, "another's")] {
        desk.effects([Effect::PutSnapshot(snapshot.clone())])
            .await
            .unwrap();
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
    desk.effects([Effect::PutSnapshot(again.clone())])
        .await
        .unwrap();
    assert_eq!(
        desk.store.snapshot(holder.row(9)).await.unwrap(),
        Some(again)
    );
    let nobody = desk.ids.agent();
    assert_eq!(
        desk.store
            .snapshot(RowRef::new(nobody, Seq(9)))
            .await
            .unwrap(),
        None
    );
}

/// Whoever listens is told of commits, of its own process and of others; what it was told of can
/// be read.
pub(super) async fn watch_tells_of_commits(rig: &dyn Rig) {
    let desk = Desk::first(rig).await;
    let second = desk.second(rig);
    let mut ours = desk.agent("ours").await;
    let mut theirs = second.agent("theirs").await;

    let mut watch = desk.store.watch().unwrap();
    for round in 1..=3 {
        theirs.append([user("from the second")]).await.unwrap();
        assert!(watch.changed().await, "a commit of another process is told");
        assert_eq!(desk.head(theirs.agent).await.seq, Seq(round));

        ours.append([user("from the first")]).await.unwrap();
        assert!(watch.changed().await, "a commit of one's own is told");
        assert_eq!(desk.head(ours.agent).await.seq, Seq(round));
    }
}

/// Whatever a batch did beside its rows is taken back when a later part of it is refused.
pub(super) async fn effects_of_a_failed_batch_are_taken_back(rig: &dyn Rig) {
    let desk = Desk::first(rig).await;
    let mut holder = desk.agent("root").await;
    let idle = desk.idle_agent("idle").await;
    let agent = holder.agent;
    let mail = desk.ids.mail();
    let text = || "mail".to_owned();
    let send = |mail| Effect::SendMail {
        mail,
        to: agent,
        from: None,
        text: text(),
        at: at(0),
    };
    let draft = || Effect::AppendDraft {
        agent,
        epoch: Epoch(1),
        text: text(),
        at: at(0),
    };
    desk.effects([send(mail), draft()]).await.unwrap();
    let before = everything(&desk, agent, idle).await;
    let hash = hash_of(b"blob");
    let run = desk.ids.run();

    let with = vec![
        Effect::MakeSession {
            session: desk.ids.session(),
            name: String::new(),
            directory: String::new(),
            at: at(0),
        },
        Effect::CreateAgent {
            agent: desk.new_agent("child"),
            owned: true,
        },
        Effect::TakeLease { agent: idle },
        Effect::SetName {
            agent,
            name: "renamed".to_owned(),
        },
        Effect::SetStatus {
            agent: idle,
            status: Status::Dead,
        },
        draft(),
        Effect::DropDraft {
            agent,
            epoch: Epoch(1),
        },
        send(desk.ids.mail()),
        Effect::ConsumeMail {
            mail,
            by: holder.row(1),
        },
        Effect::StartRun {
            run,
            call: holder.row(1),
            class: EffectClass::Write,
            started: at(0),
            deadline: at(1),
        },
        Effect::PutBlobPart {
            hash,
            part: 0,
            bytes: b"blob".to_vec(),
        },
        Effect::PutSnapshot(Snapshot {
            upto: holder.row(1),
            folded: String::new(),
        }),
        Effect::GiveLease {
            agent,
            epoch: Epoch(1),
        },
    ];
    let rows = vec![user_row(agent, "shown")];
    // Each beginning of the list, followed by something that is refused.
    for len in 1..=with.len() {
        let mut with = with[..len].to_vec();
        with.push(Effect::WithdrawMail {
            mail: desk.ids.mail(),
        });
        let refused = holder.commit(rows.clone(), with).await;
        assert!(
            matches!(refused, Err(CommitError::MailGone(_))),
            "{refused:?}"
        );
        assert_eq!(everything(&desk, agent, idle).await, before);
        assert_eq!(desk.store.blob(hash).await.unwrap(), None);
    }

    let batch = Batch {
        heads: vec![holder.claim()],
        rows,
        with,
    };
    desk.store.commit(batch).await.unwrap();
    assert_ne!(everything(&desk, agent, idle).await, before);
}

/// All that can be read of two agents, as text.
async fn everything(desk: &Desk, one: AgentId, two: AgentId) -> Vec<String> {
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
