//! Checks of the process table: agents, sessions, names, and batches that make them.

use ikigai_core::{Epoch, Micros, RowRef, Seq};
use ikigai_store::{
    AgentEffect, AgentRecord, Ancestry, Batch, CommitError, Committed, Effect, HeadClaim,
    MailEffect, NewAgent, SessionRecord, Status,
};

use super::Rig;
use super::samples::{
    append_draft, at, childs_fork_row, create, kill_row, parents_fork_row, set_status, user,
    user_mail, user_row,
};
use super::workbench::{Holder, Workbench, assert_fenced};

/// D13b S3-37: the agent, both `fork` rows and the prompt are stored together or not at all.
///
/// This holds whichever part of the batch is refused.
pub(super) async fn fork_is_atomic(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut parent = desk.agent("parent").await;
    parent.add([user("go")]).await;
    let child = NewAgent {
        parent: Some(parent.agent),
        fork_point: Some(parent.row(1)),
        ..desk.new_agent("child")
    };
    let agents_before = desk.store.agents(None).await.unwrap();
    let rows_before = desk.rows(parent.agent).await;
    let whole = fork_batch(&desk, &parent, &child);

    for (what, broken) in broken_forks(&desk, &whole) {
        let refused = desk.store.commit(broken).await;

        assert!(refused.is_err(), "{what}: {refused:?}");
        assert_eq!(
            desk.store.agents(None).await.unwrap(),
            agents_before,
            "{what}"
        );
        assert_eq!(desk.rows(parent.agent).await, rows_before, "{what}");
        assert_eq!(desk.rows(child.id).await, [], "{what}");
        assert_eq!(desk.store.head(child.id).await.unwrap(), None, "{what}");
    }

    let done = desk.store.commit(whole).await.unwrap();
    let child_row = |seq| RowRef::new(child.id, Seq(seq));
    assert_eq!(
        done,
        Committed {
            rows: vec![parent.row(2), child_row(1), child_row(2)],
            leases: vec![(child.id, Epoch(1))],
        }
    );
    assert_eq!(
        desk.texts(child.id).await,
        [format!("Forked from {}", parent.agent), "go".into()]
    );
    let record = desk.record(child.id).await;
    assert_eq!(record.parent, Some(parent.agent));
    assert_eq!(record.fork_point, Some(parent.row(1)));
}

fn fork_batch(desk: &Workbench, parent: &Holder, child: &NewAgent) -> Batch {
    Batch {
        heads: vec![
            parent.claim(),
            desk.holder(child.id, Epoch(1), Seq(0)).claim(),
        ],
        rows: vec![
            parents_fork_row(parent.agent, child.id),
            childs_fork_row(parent.agent, child.id),
            user_row(child.id, "go"),
        ],
        with: vec![create(child.clone(), true)],
    }
}

/// Makes the batch with one part after the other broken.
fn broken_forks(desk: &Workbench, whole: &Batch) -> Vec<(&'static str, Batch)> {
    let broken = |change: &dyn Fn(&mut Batch)| {
        let mut batch = whole.clone();
        change(&mut batch);
        batch
    };
    let expect = |place: usize, seq: u64| {
        move |batch: &mut Batch| {
            batch.heads[place].lease.as_mut().unwrap().expected = Seq(seq);
        }
    };
    let lost = desk.ids.mail();
    vec![
        ("the parent's log is elsewhere", broken(&expect(0, 7))),
        ("the child's log is elsewhere", broken(&expect(1, 1))),
        ("the parent's epoch is another", {
            broken(&|batch| batch.heads[0].lease.as_mut().unwrap().epoch = Epoch(9))
        }),
        (
            "the last row breaks its rule",
            broken(&|batch| batch.rows[2].content = None),
        ),
        ("the name is taken", {
            broken(&|batch| {
                if let Effect::Agent(AgentEffect::Create { agent, .. }) = &mut batch.with[0] {
                    "parent".clone_into(&mut agent.name);
                }
            })
        }),
        ("the last effect is refused", {
            broken(&|batch| {
                batch
                    .with
                    .push(Effect::Mail(MailEffect::Withdraw { mail: lost }));
            })
        }),
        ("the child is made twice", {
            broken(&|batch| batch.with.push(batch.with[0].clone()))
        }),
    ]
}

/// An empty batch is no error.
pub(super) async fn an_empty_batch_is_stored_as_nothing(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;

    let done = desk.store.commit(Batch::default()).await.unwrap();

    assert_eq!(done, Committed::default());
}

/// A batch that claims an agent twice is the caller's mistake; nothing of it is stored.
pub(super) async fn contradicting_batches_are_refused(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let holder = desk.agent("root").await;
    let free = HeadClaim {
        agent: holder.agent,
        lease: None,
    };
    let row = || vec![kill_row(holder.agent, holder.agent)];

    for heads in [
        vec![holder.claim(), holder.claim()],
        vec![free, free],
        vec![holder.claim(), free],
    ] {
        let refused = desk.commit(heads, row(), Vec::new()).await;
        assert_refused!(refused, CommitError::BadBatch(_));
    }

    assert_eq!(desk.rows(holder.agent).await, []);
}

/// E8b: no two living agents have one name; the name of a dead one is free.
///
/// The store does not check the characters of a name.
pub(super) async fn names_are_valid_and_unique_among_the_living(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let ada = desk.agent("ada").await;
    let bob = desk.agent("bob").await;
    let taken = |outcome: Result<Committed, CommitError>, name: &str| {
        assert_refused!(outcome, CommitError::NameTaken(taken) if taken == name);
    };
    let again = || create(desk.new_agent("ada"), false);
    let name = |agent, name: &str| {
        Effect::Agent(AgentEffect::SetName {
            agent,
            name: name.to_owned(),
        })
    };

    taken(desk.effects([again()]).await, "ada");
    taken(desk.effects([name(bob.agent, "ada")]).await, "ada");
    taken(desk.effects([again(), again()]).await, "ada");
    desk.done([name(ada.agent, "ada")]).await;
    desk.done([name(bob.agent, "eve")]).await;
    desk.done([name(bob.agent, "bob")]).await;

    desk.done([set_status(ada.agent, Status::Dead)]).await;
    let heir = desk.new_agent("ada");
    let heir_id = heir.id;
    desk.done([create(heir, false)]).await;
    taken(desk.effects([again()]).await, "ada");
    taken(
        desk.effects([set_status(ada.agent, Status::Running)]).await,
        "ada",
    );

    desk.done([set_status(heir_id, Status::Reaped)]).await;
    desk.done([name(bob.agent, "ada")]).await;

    let agents = desk.store.agents(None).await.unwrap();
    let told: Vec<_> = agents
        .iter()
        .map(|agent| (agent.name.as_str(), agent.status))
        .collect();
    assert_eq!(
        told,
        [
            ("ada", Status::Dead),
            ("ada", Status::Running),
            ("ada", Status::Reaped)
        ]
    );
    let living = desk.store.living_roots(desk.session).await.unwrap();
    assert_eq!(living, agents[1..2]);
}

/// E8c: times are stored to the microsecond, over their whole range.
pub(super) async fn times_are_microseconds_on_both_engines(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let times = [
        Micros(0),
        Micros(1),
        at(1),
        Micros(-1),
        Micros(i64::MAX),
        Micros(i64::MIN),
    ];

    for (n, time) in (0..).zip(times) {
        let agent = NewAgent {
            created_at: time,
            ..desk.new_agent(&format!("agent-{n}"))
        };
        let id = agent.id;
        desk.done([create(agent, true)]).await;
        let mut holder = desk.holder(id, Epoch(1), Seq(0));
        let row = user("when?").into_row(id, time);
        let mail = desk.ids.mail();
        let text = String::new();
        let send = user_mail(mail, id, text.clone(), time);
        let draft = append_draft(id, 1, text, time);
        holder.commit(vec![row], vec![send, draft]).await.unwrap();

        let record = desk.record(id).await;
        assert_eq!((record.created_at, record.touched_at), (time, Some(time)));
        assert_eq!(desk.rows(id).await[0].created_at, time);
        assert_eq!(desk.mail(id).await[0].sent_at, time);
        assert_eq!(desk.draft(id).await.unwrap().updated_at, time);
    }
}

/// Sessions are returned in order of creation, with all their fields.
pub(super) async fn sessions_are_told_in_the_order_they_were_made(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let record = |name: &str, n| SessionRecord {
        id: desk.ids.session(),
        name: name.to_owned(),
        directory: format!("/home/ada/{name}"),
        created_at: at(n),
        machine: None,
        host: None,
    };
    let make = |session: &SessionRecord| Effect::MakeSession(session.clone());
    let later = [record("zoo", -5), record("ark", 9), record("ark", -9)];

    desk.done(later.iter().map(make)).await;
    let again = desk.effects([make(&later[0])]).await;

    assert_refused!(again, CommitError::BadBatch(_));
    let told = desk.store.sessions().await.unwrap();
    assert_eq!(told[0].id, desk.session);
    assert_eq!(told[1..], later);
}

/// Agents are returned in order of creation, with newest row, its time and owner.
///
/// A query for one session returns only its agents.
pub(super) async fn agents_are_told_with_head_time_and_owner(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let session = desk.ids.session();
    let make = Effect::MakeSession(SessionRecord {
        id: session,
        name: "play".to_owned(),
        directory: "/home/ada/play".to_owned(),
        created_at: at(1),
        machine: None,
        host: None,
    });
    let root = NewAgent {
        created_at: at(3),
        ..desk.new_agent("root")
    };
    let child = NewAgent {
        parent: Some(root.id),
        fork_point: Some(RowRef::new(root.id, Seq(1))),
        created_at: at(2),
        ..desk.new_agent("child")
    };
    let elsewhere = NewAgent {
        session,
        created_at: at(1),
        ..desk.new_agent("elsewhere")
    };
    let create = |agent: &NewAgent, owned| create(agent.clone(), owned);
    desk.done([make, create(&root, true)]).await;
    let mut holder = desk.holder(root.id, Epoch(1), Seq(0));
    let rows = [at(9), at(7)].map(|time| user("said").into_row(root.id, time));
    holder.commit(rows.to_vec(), Vec::new()).await.unwrap();
    desk.done([create(&child, false), create(&elsewhere, false)])
        .await;
    let owner = desk.head(root.id).await.owner;
    assert_eq!(
        owner.as_ref().map(|owner| owner.id),
        Some(desk.store.process())
    );

    let fresh = |agent: &NewAgent| AgentRecord {
        id: agent.id,
        name: agent.name.clone(),
        session: agent.session,
        parent: agent.parent,
        fork_point: agent.fork_point,
        status: Status::Running,
        created_at: agent.created_at,
        head: Seq(0),
        touched_at: None,
        owner: None,
    };
    let root = AgentRecord {
        head: Seq(2),
        touched_at: Some(at(7)),
        owner,
        ..fresh(&root)
    };
    let expected = [root, fresh(&child), fresh(&elsewhere)];

    assert_eq!(desk.store.agents(None).await.unwrap(), expected);
    assert_eq!(
        desk.store.agents(Some(desk.session)).await.unwrap(),
        expected[..2]
    );
    assert_eq!(
        desk.store.agents(Some(session)).await.unwrap(),
        expected[2..]
    );
    assert_eq!(
        desk.store.agents(Some(desk.ids.session())).await.unwrap(),
        []
    );
    let roots = desk.store.living_roots(desk.session).await.unwrap();
    assert_eq!(roots, expected[..1]);
    let owners = desk.store.owners().await.unwrap();
    assert_eq!(
        Some(&owners[..]),
        expected[0].owner.as_ref().map(std::slice::from_ref)
    );
    for agent in expected {
        assert_eq!(desk.store.agent(agent.id).await.unwrap(), Some(agent));
    }
    assert_eq!(desk.store.agent(desk.ids.agent()).await.unwrap(), None);
}

/// Ids are unique, and every agent needs an existing session, parent and fork point.
///
/// A dead agent cannot get children: a kill of its family would miss them.
pub(super) async fn agents_are_made_once_and_in_a_session(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let root = desk.agent("root").await;
    let create = |agent| create(agent, true);

    let twice = NewAgent {
        id: root.agent,
        ..desk.new_agent("other")
    };
    let refused = desk.effects([create(twice)]).await;
    assert_refused!(refused, CommitError::AgentExists(agent) if *agent == root.agent);
    let homeless = NewAgent {
        session: desk.ids.session(),
        ..desk.new_agent("other")
    };
    let refused = desk.effects([create(homeless)]).await;
    assert_refused!(refused, CommitError::BadBatch(_));
    let stranger = desk.ids.agent();
    let orphan = NewAgent {
        parent: Some(stranger),
        ..desk.new_agent("other")
    };
    let refused = desk.effects([create(orphan)]).await;
    assert_refused!(refused, CommitError::NoAgent(agent) if *agent == stranger);

    let dead = desk.idle_agent("dead").await;
    desk.done([set_status(dead, Status::Dead)]).await;
    let posthumous = NewAgent {
        parent: Some(dead),
        ..desk.new_agent("other")
    };
    let refused = desk.effects([create(posthumous)]).await;
    assert_refused!(refused, CommitError::Dead(agent) if *agent == dead);

    let unforked = NewAgent {
        fork_point: Some(root.row(1)),
        ..desk.new_agent("other")
    };
    let refused = desk.effects([create(unforked)]).await;
    assert_refused!(refused, CommitError::BadBatch(_));

    assert_eq!(desk.store.agents(None).await.unwrap().len(), 2);
}

/// D13b: an agent without a lease gets its first rows in the batch that creates it.
///
/// Any later row needs its lease.
pub(super) async fn an_agent_is_made_with_its_first_rows(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let parent = desk.agent("parent").await;
    let child = desk.new_agent("child");
    let mut maker = desk.holder(child.id, Epoch(0), Seq(0));
    let rows = vec![
        childs_fork_row(parent.agent, child.id),
        user_row(child.id, "go"),
    ];
    let create = create(child, false);

    let done = maker.commit(rows, vec![create]).await.unwrap();

    assert_eq!(done.rows, [maker.row(1), maker.row(2)]);
    assert_eq!(done.leases, []);
    let head = desk.head(maker.agent).await;
    assert_eq!((head.seq, head.epoch, head.owner), (Seq(2), Epoch(0), None));
    assert_fenced(&maker.append([user("and on")]).await, maker.agent, Epoch(0));
    assert_eq!(desk.head(maker.agent).await.seq, Seq(2));
    let idle = desk.idle_agent("idle").await;
    let mut wrong = desk.holder(idle, Epoch(0), Seq(1));
    let refused = wrong.append([user("whose?")]).await;
    assert_refused!(refused, CommitError::Behind { actual: Seq(0), .. });
}

/// Queries return ancestors, living children, family, names and dead agents.
///
/// Unrelated agents do not matter, and a family is counted only up to the given limit.
pub(super) async fn relatives_names_and_the_dead_are_found(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let root = desk.agent("root").await.agent;
    let stranger = desk.agent("root-beer").await.agent;
    let make = |name: &str, parent| NewAgent {
        parent: Some(parent),
        ..desk.new_agent(name)
    };
    let one = make("one", root);
    let two = make("two", root);
    let low = make("low", one.id);
    for agent in [&one, &two, &low] {
        desk.done([create(agent.clone(), false)]).await;
    }
    let kin = |ancestors: &[_], children, family| {
        let ancestors = ancestors.to_vec();
        Some(Ancestry {
            ancestors,
            children,
            family,
        })
    };
    let store = &desk.store;

    assert_eq!(store.ancestry(root, 9).await.unwrap(), kin(&[], 2, 4));
    assert_eq!(
        store.ancestry(low.id, 9).await.unwrap(),
        kin(&[one.id, root], 0, 4)
    );
    assert_eq!(store.ancestry(one.id, 3).await.unwrap(), kin(&[root], 1, 3));
    assert_eq!(store.ancestry(stranger, 9).await.unwrap(), kin(&[], 0, 1));
    assert_eq!(store.ancestry(desk.ids.agent(), 9).await.unwrap(), None);
    let names = store.living_names(desk.session, "root").await.unwrap();
    assert_eq!(names, ["root", "root-beer"]);
    let called = store.find_by_name(None, "two").await.unwrap();
    assert_eq!(called[0].id, two.id);

    desk.done([set_status(two.id, Status::Dead)]).await;

    assert_eq!(store.ancestry(root, 9).await.unwrap(), kin(&[], 1, 3));
    assert_eq!(store.find_by_name(None, "two").await.unwrap(), []);
    let names = store.living_names(desk.session, "two").await.unwrap();
    assert!(names.is_empty());
    let all = vec![root, two.id, low.id, desk.ids.agent()];
    assert_eq!(store.dead_among(all).await.unwrap(), [two.id]);
}
