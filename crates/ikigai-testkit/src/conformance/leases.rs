//! Checks of write access: leases, fencing, takeover, and lease-free rows.

use ikigai_core::{AgentId, Epoch, Seq};
use ikigai_store::{
    Batch, CommitError, Committed, Effect, HeadClaim, LeaseClaim, NewAgent, SessionRecord, Status,
};

use super::Rig;
use super::samples::{
    append_draft, at, childs_fork_row, create, give, kill_row, mark, one_of_each_kind,
    parents_fork_row, set_status, take, user, user_mail, user_row,
};
use super::workbench::{Workbench, all_rows, assert_fenced};

/// N5b: a former lease holder cannot write after a takeover.
///
/// No row is stored, and the refusal names the epoch of the takeover.
pub(super) async fn stale_lease_write_is_refused(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let second = desk.second(rig);
    let mut former = desk.agent("root").await;
    former.add([user("mine")]).await;
    give_back(&desk, former.agent, former.epoch).await;
    let taken = second.done([take(former.agent)]).await;
    assert_eq!(taken.leases, [(former.agent, Epoch(2))]);

    let mut heir = second.holder(former.agent, Epoch(2), Seq(1));
    heir.add([user("yours")]).await;

    for (epoch, head) in [(1, 1), (1, 2), (2, 2), (3, 2), (0, 2)] {
        let mut writer = former.clone();
        (writer.epoch, writer.head) = (Epoch(epoch), Seq(head));
        assert_fenced(&writer.append([user("late")]).await, former.agent, Epoch(2));
        // A claim without rows, which fences effects, is refused as well.
        assert_fenced(&writer.append([]).await, former.agent, Epoch(2));
    }
    assert_eq!(desk.texts(former.agent).await, ["mine", "yours"]);
    heir.add([user("still yours")]).await;
}

/// N5d: lease-free rows get the next number; the holder is behind, reads them and continues.
pub(super) async fn lease_free_rows_keep_sequence(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let second = desk.second(rig);
    let mut holder = desk.agent("root").await;
    let victim = desk.agent("victim").await;
    holder.add([user("one")]).await;

    let kill = second
        .lease_free(kill_row(holder.agent, victim.agent))
        .await
        .unwrap();
    assert_eq!(
        kill,
        Committed {
            rows: vec![holder.row(2)],
            leases: Vec::new()
        }
    );
    let fork = second
        .lease_free(parents_fork_row(holder.agent, victim.agent))
        .await
        .unwrap();
    assert_eq!(fork.rows, [holder.row(3)]);

    let refused = holder.append([user("two")]).await;
    assert_refused!(
        refused,
        CommitError::Behind { agent, expected: Seq(1), actual: Seq(3) }
            if *agent == holder.agent
    );
    let mut ahead = holder.clone();
    ahead.head = Seq(9);
    let refused = ahead.append([user("two")]).await;
    assert_refused!(refused, CommitError::Behind { .. });
    holder.head = Seq(3);
    let done = holder.append([user("two")]).await.unwrap();

    assert_eq!(done.rows, [holder.row(4)]);
    let rows = desk.rows(holder.agent).await;
    let kinds: Vec<&str> = rows.iter().map(|row| row.kind.name()).collect();
    assert_eq!(kinds, ["user", "agent_killed", "fork", "user"]);
    assert_eq!(desk.head(holder.agent).await.epoch, Epoch(1));
}

/// N5d: all other rows need a lease, the child's side of a fork included.
pub(super) async fn only_fork_and_kill_rows_need_no_lease(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let holder = desk.agent("root").await;
    let free = ["fork", "agent_killed"];
    let rows = one_of_each_kind(holder.agent)
        .into_iter()
        .map(|event| (event.kind(), event));

    for (kind, event) in rows.filter(|(kind, _)| !free.contains(&kind.name())) {
        let refused = desk.lease_free(event.into_row(holder.agent, at(0))).await;
        assert_refused!(refused, CommitError::BadBatch(_), "{kind}");
    }
    let refused = desk
        .lease_free(childs_fork_row(holder.agent, holder.agent))
        .await;
    assert_refused!(refused, CommitError::BadBatch(_));

    assert_eq!(desk.rows(holder.agent).await, []);
}

/// N5a: the lease of a living holder is refused, and the refusal names the holder.
///
/// The lease of a dead one is taken over at once, with the next epoch.
pub(super) async fn one_writer_per_agent_dead_owner_replaced_at_once(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let second = desk.second(rig);
    let second_process = second.store.process();
    assert_ne!(desk.store.process(), second_process);
    let mut holder = second.agent("root").await;
    holder.add([user("from the second")]).await;
    let agent = holder.agent;

    let refused = desk.effects([take(agent)]).await;
    let owner = desk
        .head(agent)
        .await
        .owner
        .expect("the second process holds it");
    assert_refused!(
        refused,
        CommitError::Held { agent: held, owner: named }
            if *held == agent && *named == owner
    );
    assert_eq!(owner.id, second_process);
    let mut intruder = desk.holder(agent, Epoch(1), Seq(1));
    assert_fenced(&intruder.append([user("mine?")]).await, agent, Epoch(1));
    assert!(desk.store.is_process_alive(&owner).await.unwrap());

    drop((second, holder));
    rig.kill_second();
    assert!(!desk.store.is_process_alive(&owner).await.unwrap());
    let head = desk.head(agent).await;
    assert_eq!(head.owner, Some(owner), "a dead owner is still named");
    let taken = desk.done([take(agent)]).await;
    assert_eq!(taken.leases, [(agent, Epoch(2))]);
    let mut heir = desk.holder(agent, Epoch(2), Seq(1));
    heir.add([user("from the first")]).await;

    assert_eq!(
        desk.texts(agent).await,
        ["from the second", "from the first"]
    );
    let head = desk.head(agent).await;
    assert_eq!(head.owner.map(|owner| owner.id), Some(desk.store.process()));
}

/// N5c: a process without the lease sees each row once and in order.
///
/// It can fork, kill and send mail; all its other writes are refused.
pub(super) async fn second_process_watches_forks_kills_and_mails_only(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let second = desk.second(rig);
    let mut holder = desk.agent("root").await;
    let agent = holder.agent;

    let mut watch = second.store.watch().unwrap();
    let mut seen = Vec::new();
    for text in ["one", "two", "three"] {
        holder.add([user(text)]).await;
        while seen.len() < usize::try_from(holder.head.0).unwrap() {
            assert!(watch.changed().await, "the store is open");
            let rows = all_rows(&*second.store, agent).await;
            seen.extend(
                rows.into_iter()
                    .skip(seen.len())
                    .filter_map(|row| row.content),
            );
        }
    }
    assert_eq!(seen, ["one", "two", "three"]);

    let child = NewAgent {
        parent: Some(agent),
        ..second.new_agent("child")
    };
    let child_id = child.id;
    let mut heads = vec![HeadClaim { agent, lease: None }];
    heads.push(second.holder(child_id, Epoch(1), Seq(0)).claim());
    let rows = vec![
        parents_fork_row(agent, child_id),
        childs_fork_row(agent, child_id),
    ];
    let with = vec![create(child, true)];
    second.commit(heads, rows, with).await.unwrap();

    let text = "from your user".to_owned();
    let mail = second.ids.mail();
    let send = user_mail(mail, agent, text, at(1));
    second.done([send]).await;
    assert_eq!(desk.mail(agent).await[0].id, mail);

    let mut intruder = second.holder(agent, Epoch(1), Seq(4));
    assert_fenced(&intruder.append([user("no")]).await, agent, Epoch(1));
    let text = "no".to_owned();
    let draft = append_draft(agent, 1, text, at(1));
    assert_fenced(&second.effects([draft]).await, agent, Epoch(1));
    let give = give(agent, 1);
    assert_fenced(&second.effects([give]).await, agent, Epoch(1));

    let heads = vec![HeadClaim { agent, lease: None }];
    let with = vec![set_status(agent, Status::Dead)];
    let rows = vec![kill_row(agent, agent)];
    second.commit(heads, rows, with).await.unwrap();
    assert_eq!(desk.record(agent).await.status, Status::Dead);

    // The holder of a killed agent still writes the end of its turn.
    holder.head = Seq(5);
    holder.add([mark("the end")]).await;
    assert_eq!(desk.head(agent).await.seq, Seq(6));
}

/// Taking a lease that this process holds changes nothing and returns its epoch.
pub(super) async fn a_lease_that_is_held_is_kept(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;

    let taken = desk.done([take(holder.agent)]).await;

    assert_eq!(taken.leases, [(holder.agent, Epoch(1))]);
    assert_eq!(desk.head(holder.agent).await.epoch, Epoch(1));
    holder.add([user("still here")]).await;
    let unknown = desk.ids.agent();
    let refused = desk.effects([take(unknown)]).await;
    assert_refused!(refused, CommitError::NoAgent(agent) if *agent == unknown);
}

/// A lease that was given back has no owner.
///
/// Its former holder cannot write either, and the next one raises the epoch.
pub(super) async fn a_lease_given_back_is_free(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    holder.add([user("one")]).await;
    let wrong = give(holder.agent, 2);
    assert_fenced(&desk.effects([wrong]).await, holder.agent, Epoch(1));

    // Given back after the rows of the same batch.
    let give = give(holder.agent, 1);
    let last = vec![user_row(holder.agent, "two")];
    holder.commit(last, vec![give]).await.unwrap();

    assert_eq!(desk.head(holder.agent).await.owner, None);
    assert_fenced(
        &holder.append([user("three")]).await,
        holder.agent,
        Epoch(1),
    );
    let taken = desk.done([take(holder.agent)]).await;
    assert_eq!(taken.leases, [(holder.agent, Epoch(2))]);
    assert_fenced(
        &holder.append([user("three")]).await,
        holder.agent,
        Epoch(2),
    );
    holder.epoch = Epoch(2);
    holder.add([user("three")]).await;
    assert_eq!(desk.texts(holder.agent).await, ["one", "two", "three"]);
}

/// Sessions, agents and leases are made before the rows of their batch.
///
/// All other effects come after the rows.
pub(super) async fn things_are_made_before_rows(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let session = desk.ids.session();
    let agent = NewAgent {
        session,
        ..desk.new_agent("all-in-one")
    };
    let id = agent.id;
    let lease = LeaseClaim {
        epoch: Epoch(1),
        expected: Seq(0),
    };
    let batch = Batch {
        heads: vec![HeadClaim {
            agent: id,
            lease: Some(lease),
        }],
        rows: vec![user_row(id, "first")],
        with: vec![
            give(id, 1),
            set_status(id, Status::Dead),
            Effect::MakeSession(SessionRecord {
                id: session,
                name: "new".to_owned(),
                directory: "/new".to_owned(),
                created_at: at(0),
                machine: None,
                host: None,
            }),
            create(agent, false),
            take(id),
        ],
    };

    let done = desk.store.commit(batch).await.unwrap();

    assert_eq!(done.leases, [(id, Epoch(1))]);
    assert_eq!(desk.texts(id).await, ["first"]);
    let record = desk.record(id).await;
    assert_eq!((record.status, record.owner), (Status::Dead, None));
}

async fn give_back(desk: &Workbench, agent: AgentId, epoch: Epoch) {
    desk.done([give(agent, epoch.0)]).await;
}
