mod sequences;

use ikigai_core::data::UserData;
use ikigai_core::{AgentId, Epoch, Event, Micros, NewRow, ProcessId, RowRef, Seq, SessionId};
use ikigai_testkit::{Dice, IdSource};

use super::decide;
use super::facts::{AgentFacts, FactKeys, Facts, LeaseHolder, MailFacts};
use super::writes::{HeadWrite, MailWrite, Write, Writes};
use crate::batch::{
    AgentEffect, Batch, Committed, DraftEffect, Effect, HeadClaim, LeaseClaim, LeaseEffect,
    MailEffect, NewAgent, RunEffect,
};
use crate::error::CommitError;
use crate::records::{
    EffectClass, MailId, MailOrigin, MailTopic, ProcessRecord, RunId, SessionRecord, Snapshot,
    Status,
};

const NOW: Micros = Micros(7);

/// A small store: some agents of one session.
struct World {
    facts: Facts,
    session: SessionId,
    agents: Vec<AgentId>,
    other: ProcessRecord,
}

impl World {
    /// Makes agents `a`, `b` and `c`, each with two rows and a lease.
    fn new() -> Self {
        let ids = IdSource::new(1);
        let session = ids.session();
        let agents: Vec<AgentId> = (0..3).map(|_| ids.agent()).collect();
        let mut facts = Facts::default();
        facts.sessions.insert(session);
        for (agent, name) in agents.iter().zip(["a", "b", "c"]) {
            let known = AgentFacts {
                session,
                name: name.to_owned(),
                status: Status::Running,
                seq: Seq(2),
                epoch: Epoch(1),
                holder: LeaseHolder::This,
            };
            facts.agents.insert(*agent, known);
            facts.names.insert((session, name.to_owned()), *agent);
        }
        let other = ProcessRecord {
            id: ProcessId::from_random([9; 16]).unwrap(),
            host: "elsewhere".to_owned(),
            pid: 2,
            started: NOW,
            machine: None,
            person: None,
        };
        Self {
            facts,
            session,
            agents,
            other,
        }
    }

    fn agent(&mut self, at: usize) -> &mut AgentFacts {
        self.facts.agents.get_mut(&self.agents[at]).unwrap()
    }

    fn new_agent(&self, id: AgentId, name: &str) -> NewAgent {
        NewAgent {
            id,
            name: name.to_owned(),
            session: self.session,
            parent: None,
            fork_point: None,
            created_at: NOW,
        }
    }

    fn decide<'b>(&self, batch: &'b Batch) -> Result<Writes<'b>, CommitError> {
        decide(&self.facts, batch)
    }

    fn refusal(&self, batch: &Batch) -> CommitError {
        self.decide(batch).expect_err("the batch should be refused")
    }

    /// Returns the refusal of effects without rows.
    fn effect_refusal(&self, effects: impl IntoIterator<Item = Effect>) -> CommitError {
        self.refusal(&effect_batch(effects))
    }

    /// Commits effects, so that the next batch sees them.
    fn accept(&mut self, effects: impl IntoIterator<Item = Effect>) -> Committed {
        let batch = effect_batch(effects);
        let Writes {
            committed, changes, ..
        } = self.decide(&batch).unwrap();
        self.facts.apply(changes);
        committed
    }
}

fn effect_batch(effects: impl IntoIterator<Item = Effect>) -> Batch {
    Batch {
        with: effects.into_iter().collect(),
        ..Batch::default()
    }
}

fn claim(agent: AgentId, epoch: u64, expected: u64) -> HeadClaim {
    HeadClaim {
        agent,
        lease: Some(LeaseClaim {
            epoch: Epoch(epoch),
            expected: Seq(expected),
        }),
    }
}

fn row(agent: AgentId) -> NewRow {
    let text = "said".to_owned();
    let data = UserData::default();
    Event::User { text, data }.into_row(agent, NOW)
}

fn append(agent: AgentId, epoch: u64, expected: u64) -> Batch {
    Batch {
        heads: vec![claim(agent, epoch, expected)],
        rows: vec![row(agent), row(agent)],
        with: Vec::new(),
    }
}

fn send(mail: u128, to: AgentId) -> Effect {
    Effect::Mail(MailEffect::Send {
        mail: MailId(mail),
        to,
        origin: MailOrigin::User,
        from: None,
        about: MailTopic::Message,
        text: "hello".to_owned(),
        at: NOW,
        author: None,
    })
}

fn consume(mail: u128, by: RowRef) -> Effect {
    let mail = MailId(mail);
    Effect::Mail(MailEffect::Consume { mail, by })
}

fn set_status(agent: AgentId, status: Status) -> Effect {
    Effect::Agent(AgentEffect::SetStatus { agent, status })
}

fn set_name(agent: AgentId, name: &str) -> Effect {
    let name = name.to_owned();
    Effect::Agent(AgentEffect::SetName { agent, name })
}

fn take(agent: AgentId) -> Effect {
    Effect::Lease(LeaseEffect::Take { agent })
}

fn start(run: u128, call: RowRef) -> Effect {
    Effect::Run(RunEffect::Start {
        run: RunId(run),
        call,
        class: EffectClass::Read,
        started: NOW,
        deadline: NOW,
    })
}

fn end(run: u128) -> Effect {
    let (run, ended) = (RunId(run), NOW);
    Effect::Run(RunEffect::End { run, ended })
}

#[test]
fn rows_follow_the_head_in_order() {
    let world = World::new();
    let (a, b) = (world.agents[0], world.agents[1]);
    let batch = Batch {
        heads: vec![claim(a, 1, 2), claim(b, 1, 2)],
        rows: vec![row(b), row(a), row(b)],
        with: Vec::new(),
    };

    let writes = world.decide(&batch).unwrap();

    let at = |agent, seq| RowRef::new(agent, Seq(seq));
    assert_eq!(writes.committed.rows, [at(b, 3), at(a, 3), at(b, 4)]);
    let advanced = |agent, rows| Write::Head(HeadWrite::Advance { agent, rows });
    assert!(writes.list.contains(&advanced(a, 1)));
    assert!(writes.list.contains(&advanced(b, 2)));
}

#[test]
fn a_lease_claim_must_match_holder_epoch_and_head() {
    let mut world = World::new();
    let a = world.agents[0];

    assert!(world.decide(&append(a, 1, 2)).is_ok());
    let behind = world.refusal(&append(a, 1, 1));
    assert!(
        matches!(behind, CommitError::Behind { actual: Seq(2), .. }),
        "{behind:?}"
    );
    for epoch in [0, 2] {
        let fenced = world.refusal(&append(a, epoch, 2));
        assert!(
            matches!(
                fenced,
                CommitError::Fenced {
                    epoch: Epoch(1),
                    ..
                }
            ),
            "{fenced:?}"
        );
    }
    for holder in [LeaseHolder::Free, LeaseHolder::Other(world.other.clone())] {
        world.agent(0).holder = holder;
        let fenced = world.refusal(&append(a, 1, 2));
        assert!(matches!(fenced, CommitError::Fenced { .. }), "{fenced:?}");
    }
}

#[test]
fn the_creator_appends_the_first_rows_without_a_lease() {
    let mut world = World::new();
    let a = world.agents[0];
    let facts = world.agent(0);
    (facts.seq, facts.epoch, facts.holder) = (Seq(0), Epoch(0), LeaseHolder::Free);

    assert!(world.decide(&append(a, 0, 0)).is_ok());
    let fenced = world.refusal(&append(a, 1, 0));
    assert!(matches!(fenced, CommitError::Fenced { .. }), "{fenced:?}");
    world.agent(0).seq = Seq(1);
    let fenced = world.refusal(&append(a, 0, 1));
    assert!(matches!(fenced, CommitError::Fenced { .. }), "{fenced:?}");
}

#[test]
fn a_lease_is_taken_from_no_live_process() {
    let mut world = World::new();
    let (a, b, c) = (world.agents[0], world.agents[1], world.agents[2]);
    world.agent(1).holder = LeaseHolder::Free;
    world.agent(2).holder = LeaseHolder::Other(world.other.clone());

    let committed = world.accept([take(a), take(b)]);

    assert_eq!(committed.leases, [(a, Epoch(1)), (b, Epoch(2))]);
    let held = world.effect_refusal([take(c)]);
    assert!(
        matches!(&held, CommitError::Held { owner, .. } if *owner == world.other),
        "{held:?}"
    );
    let give = |epoch| Effect::Lease(LeaseEffect::Give { agent: b, epoch });
    let fenced = world.effect_refusal([give(Epoch(1))]);
    assert!(matches!(fenced, CommitError::Fenced { .. }), "{fenced:?}");
    world.accept([give(Epoch(2))]);
    assert_eq!(world.agent(1).holder, LeaseHolder::Free);
}

#[test]
fn a_name_belongs_to_one_running_agent() {
    let mut world = World::new();
    let (a, b) = (world.agents[0], world.agents[1]);

    let taken = world.effect_refusal([set_name(a, "b")]);
    assert!(matches!(&taken, CommitError::NameTaken(name) if name == "b"));
    // Two agents swap their names by way of a third one.
    world.accept([set_name(a, "x"), set_name(b, "a"), set_name(a, "b")]);
    // A dead agent frees its name and may not live again under it.
    world.accept([set_status(a, Status::Dead), set_name(b, "b")]);
    let taken = world.effect_refusal([set_status(a, Status::Running)]);
    assert!(matches!(taken, CommitError::NameTaken(_)), "{taken:?}");
    world.accept([set_name(a, "a"), set_status(a, Status::Running)]);
    // A reaped agent does not free the name of another one.
    world.accept([set_status(a, Status::Dead), set_name(a, "b")]);
    world.accept([set_status(a, Status::Reaped)]);
    let taken = world.effect_refusal([set_name(world.agents[2], "b")]);
    assert!(matches!(taken, CommitError::NameTaken(_)), "{taken:?}");
}

#[test]
fn an_agent_is_created_once_of_what_exists() {
    let mut world = World::new();
    let ids = IdSource::new(5);
    let (id, unknown, a) = (ids.agent(), ids.agent(), world.agents[0]);
    let create = |agent| Effect::Agent(AgentEffect::Create { agent, owned: true });
    let new = |change: &dyn Fn(&mut NewAgent)| {
        let mut agent = world.new_agent(id, "new");
        change(&mut agent);
        create(agent)
    };
    let fork_point = |agent, seq| Some(RowRef::new(agent, Seq(seq)));
    let session = ids.session();

    let refusals = [
        new(&|it| it.id = a),
        new(&|it| it.session = session),
        new(&|it| it.parent = Some(unknown)),
        new(&|it| it.fork_point = fork_point(unknown, 1)),
        new(&|it| "b".clone_into(&mut it.name)),
        new(&|it| it.fork_point = fork_point(a, 3)),
        new(&|it| it.fork_point = fork_point(a, 0)),
    ]
    .map(|effect| world.effect_refusal([effect]).to_string());
    assert_eq!(
        refusals,
        [
            format!("agent {a} exists already"),
            format!("invalid batch: there is no session {session}"),
            format!("no agent {unknown}"),
            format!("no agent {unknown}"),
            "the name `b` is taken".to_owned(),
            format!("invalid batch: agent {id} is forked from a row that is not there"),
            format!("invalid batch: agent {id} is forked from a row that is not there"),
        ]
    );
    let child = new(&|it| (it.parent, it.fork_point) = (Some(a), fork_point(a, 2)));
    let orphan = child.clone();
    let committed = world.accept([child.clone()]);
    assert_eq!(committed.leases, [(id, Epoch(1))]);
    let again = world.effect_refusal([child]);
    assert!(matches!(again, CommitError::AgentExists(_)), "{again:?}");

    let mut world = World::new();
    world.agent(0).status = Status::Dead;
    let dead = world.effect_refusal([orphan.clone()]);
    assert!(matches!(dead, CommitError::Dead(parent) if parent == a));
    let fork = |head: HeadClaim| Batch {
        heads: vec![head],
        with: vec![orphan.clone()],
        ..Batch::default()
    };
    // An agent that was killed cannot fork, but a person can fork it.
    let own = world.refusal(&fork(claim(a, 1, 2)));
    assert!(matches!(own, CommitError::Dead(parent) if parent == a));
    let free = HeadClaim {
        agent: a,
        lease: None,
    };
    assert!(world.decide(&fork(free)).is_ok());
}

#[test]
fn a_batch_may_use_what_it_creates() {
    let world = World::new();
    let ids = IdSource::new(5);
    let (session, id) = (ids.session(), ids.agent());
    let mut agent = world.new_agent(id, "new");
    agent.session = session;
    // The agent precedes its session: both precede the rows, in their own order.
    let make = Effect::MakeSession(SessionRecord {
        id: session,
        name: "s".to_owned(),
        directory: "/".to_owned(),
        created_at: NOW,
        machine: None,
        host: None,
    });
    let create = Effect::Agent(AgentEffect::Create { agent, owned: true });
    let batch = |with: Vec<Effect>| Batch {
        heads: vec![claim(id, 1, 0)],
        rows: vec![row(id)],
        with,
    };
    let shown = consume(1, RowRef::new(id, Seq(1)));

    let good = batch(vec![send(1, id), shown, make.clone(), create.clone()]);
    let writes = world.decide(&good).unwrap();

    assert_eq!(writes.committed.rows, [RowRef::new(id, Seq(1))]);
    assert_eq!(writes.committed.leases, [(id, Epoch(1))]);
    assert!(matches!(writes.list[0], Write::InsertSession { .. }));
    let wrong = world.refusal(&batch(vec![create, make.clone()]));
    assert!(matches!(wrong, CommitError::BadBatch(_)), "{wrong:?}");
    let twice = world.effect_refusal([make.clone(), make]);
    assert!(matches!(twice, CommitError::BadBatch(_)), "{twice:?}");
}

#[test]
fn mail_is_settled_once_while_it_is_queued() {
    let mut world = World::new();
    let (a, b) = (world.agents[0], world.agents[1]);
    let withdraw = Effect::Mail(MailEffect::Withdraw { mail: MailId(1) });

    let gone = world.effect_refusal([withdraw.clone()]);
    assert!(matches!(gone, CommitError::MailGone(MailId(1))), "{gone:?}");
    world.accept([send(1, a)]);
    let again = world.effect_refusal([send(1, a)]);
    assert!(matches!(again, CommitError::BadBatch(_)), "{again:?}");
    let dangling = world.effect_refusal([consume(1, RowRef::new(a, Seq(3)))]);
    assert!(matches!(dangling, CommitError::BadBatch(_)), "{dangling:?}");
    world.accept([consume(1, RowRef::new(a, Seq(2)))]);
    for settle in [withdraw, consume(1, RowRef::new(a, Seq(2)))] {
        let gone = world.effect_refusal([settle]);
        assert!(matches!(gone, CommitError::MailGone(_)), "{gone:?}");
    }
    world.accept([send(2, b), set_status(b, Status::Dead)]);
    let bounced = MailFacts {
        to: b,
        is_queued: false,
    };
    assert_eq!(world.facts.mail[&MailId(2)], bounced);
    let dead = world.effect_refusal([send(3, b)]);
    assert!(matches!(dead, CommitError::Dead(_)), "{dead:?}");
}

#[test]
fn stopping_an_agent_bounces_its_mail_in_the_store() {
    let world = World::new();
    let a = world.agents[0];
    let batch = effect_batch([set_status(a, Status::Reaped)]);

    let writes = world.decide(&batch).unwrap();

    let bounce = Write::Mail(MailWrite::BounceAll { to: a });
    assert_eq!(writes.list.last(), Some(&bounce));
    let revived = effect_batch([set_status(a, Status::Running)]);
    assert_eq!(world.decide(&revived).unwrap().list.len(), 1);
}

#[test]
fn runs_start_once_and_end_once() {
    let mut world = World::new();
    let call = RowRef::new(world.agents[0], Seq(1));
    let missing = RowRef::new(world.agents[0], Seq(3));

    world.accept([start(1, call)]);
    for effects in [vec![start(1, call)], vec![start(2, missing)], vec![end(2)]] {
        let bad = world.effect_refusal(effects);
        assert!(matches!(bad, CommitError::BadBatch(_)), "{bad:?}");
    }
    world.accept([end(1), start(2, call), end(2)]);
    let bad = world.effect_refusal([end(1)]);
    assert!(matches!(bad, CommitError::BadBatch(_)), "{bad:?}");
}

#[test]
fn every_effect_of_an_unknown_agent_is_refused() {
    let world = World::new();
    let agent = IdSource::new(5).agent();
    let epoch = Epoch(1);
    let at = RowRef::new(agent, Seq(1));
    let effects = [
        set_name(agent, "n"),
        set_status(agent, Status::Dead),
        Effect::Agent(AgentEffect::SetOrigin {
            agent: world.agents[0],
            parent: Some(agent),
            fork_point: None,
        }),
        take(agent),
        Effect::Lease(LeaseEffect::Give { agent, epoch }),
        Effect::Draft(DraftEffect::Drop { agent, epoch }),
        Effect::Draft(DraftEffect::Append {
            agent,
            epoch,
            text: String::new(),
            at: NOW,
        }),
        send(1, agent),
        consume(1, at),
        start(1, at),
        Effect::PutSnapshot(Snapshot {
            upto: at,
            folded: String::new(),
        }),
    ];

    for effect in effects {
        let unknown = world.effect_refusal([effect.clone()]);
        assert!(
            matches!(unknown, CommitError::NoAgent(id) if id == agent),
            "{effect:?}: {unknown:?}"
        );
    }
    let unknown = world.refusal(&append(agent, 1, 0));
    assert!(matches!(unknown, CommitError::NoAgent(_)), "{unknown:?}");
}
