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
use crate::records::{EffectClass, MailId, ProcessRecord, RunId, Snapshot, Status};

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
                name: name.to_owned(),
                status: Status::Running,
                seq: Seq(2),
                epoch: Epoch(1),
                holder: LeaseHolder::This,
            };
            facts.agents.insert(*agent, known);
            facts.names.insert(name.to_owned(), *agent);
        }
        let other = ProcessRecord {
            id: ProcessId::from_random([9; 16]).unwrap(),
            host: "elsewhere".to_owned(),
            pid: 2,
            started: NOW,
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
        from: None,
        text: "hello".to_owned(),
        at: NOW,
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
            format!("there is an agent {a} already"),
            format!("the batch cannot be written: there is no session {session}"),
            format!("there is no agent {unknown}"),
            format!("there is no agent {unknown}"),
            "the name `b` is taken".to_owned(),
            format!(
                "the batch cannot be written: agent {id} is forked from a row that is not there"
            ),
            format!(
                "the batch cannot be written: agent {id} is forked from a row that is not there"
            ),
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
    let dead = world.effect_refusal([orphan]);
    assert!(matches!(dead, CommitError::Dead(parent) if parent == a));
}

#[test]
fn a_batch_may_use_what_it_creates() {
    let world = World::new();
    let ids = IdSource::new(5);
    let (session, id) = (ids.session(), ids.agent());
    let mut agent = world.new_agent(id, "new");
    agent.session = session;
    // The agent precedes its session: both precede the rows, in their own order.
    let make = Effect::MakeSession {
        session,
        name: "s".to_owned(),
        directory: "/".to_owned(),
        at: NOW,
    };
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

/// Draws effects on few things, so that many of them collide.
fn draw_effect(dice: &mut Dice, world: &World, ids: &[AgentId]) -> Effect {
    let mut pick = |bound: usize| usize::try_from(dice.below(bound as u64)).unwrap();
    let agent = ids[pick(ids.len())];
    let name = ["a", "b", "c", "d"][pick(4)];
    let status = [Status::Running, Status::Dead, Status::Reaped][pick(3)];
    let mail = MailId(pick(4) as u128);
    let run = pick(3) as u128;
    let at = RowRef::new(ids[pick(ids.len())], Seq(pick(4) as u64));
    let epoch = Epoch(pick(3) as u64);
    match pick(13) {
        0 => Effect::Agent(AgentEffect::Create {
            agent: world.new_agent(agent, name),
            owned: pick(2) == 0,
        }),
        1 => set_name(agent, name),
        2 => set_status(agent, status),
        3 => Effect::Agent(AgentEffect::SetOrigin {
            agent,
            parent: Some(ids[pick(ids.len())]),
            fork_point: Some(at),
        }),
        4 => take(agent),
        5 => Effect::Lease(LeaseEffect::Give { agent, epoch }),
        6 => Effect::Draft(DraftEffect::Drop { agent, epoch }),
        7 => send(mail.0, agent),
        8 => consume(mail.0, at),
        9 => Effect::Mail(MailEffect::Withdraw { mail }),
        10 => start(run, at),
        11 => end(run),
        _ => Effect::Mail(MailEffect::Bounce { mail }),
    }
}

/// Returns a contradiction between facts, if there is one.
fn contradiction(facts: &Facts) -> Option<String> {
    let running = facts
        .agents
        .iter()
        .filter(|(_, agent)| agent.status == Status::Running);
    for (id, agent) in running {
        if facts.names.get(&agent.name) != Some(id) {
            return Some(format!("{id} runs as {} without the name", agent.name));
        }
    }
    facts.names.iter().find_map(|(name, id)| {
        let holder = facts.agents.get(id)?;
        let is_running = holder.status == Status::Running;
        (!is_running || holder.name != *name).then(|| format!("{id} has lost the name {name}"))
    })
}

#[test]
fn effects_of_one_batch_decide_as_successive_batches() {
    let mut dice = Dice::roll();
    for _ in 0..3000 {
        let mut world = World::new();
        let mut ids = world.agents.clone();
        ids.extend([IdSource::new(5).agent(), IdSource::new(6).agent()]);
        for _ in 0..4 {
            let count = dice.below(4) + 1;
            let effects: Vec<Effect> = (0..count)
                .map(|_| draw_effect(&mut dice, &world, &ids))
                .collect();
            let batch = effect_batch(effects.clone());
            // Effects that precede the rows come first in a batch.
            let (mut ordered, after): (Vec<_>, Vec<_>) =
                effects.into_iter().partition(super::rules::precedes_rows);
            ordered.extend(after);

            let whole = decide(&world.facts, &batch);

            assert_eq!(
                whole.as_ref().ok(),
                decide(&world.facts, &batch).as_ref().ok()
            );
            let mut step_facts = world.facts.clone();
            let mut step_committed = Committed::default();
            let steps = ordered.into_iter().try_for_each(|effect| {
                let batch = effect_batch([effect]);
                let step = decide(&step_facts, &batch)?;
                step_committed.leases.extend(step.committed.leases);
                step_facts.apply(step.changes);
                Ok::<(), CommitError>(())
            });
            match (whole, steps) {
                (Ok(whole), Ok(())) => {
                    assert_eq!(whole.committed, step_committed);
                    world.facts.apply(whole.changes);
                    assert_eq!(world.facts, step_facts);
                }
                (Err(whole), Err(step)) => assert_eq!(whole.to_string(), step.to_string()),
                (whole, steps) => panic!("{batch:?}: {whole:?}, one by one {steps:?}"),
            }
            assert_eq!(contradiction(&world.facts), None);
        }
    }
}

#[test]
fn accepted_batches_never_turn_back_heads_epochs_mail_or_runs() {
    let mut dice = Dice::roll();
    for _ in 0..2000 {
        let mut world = World::new();
        let ids = world.agents.clone();
        for _ in 0..6 {
            let agent = ids[usize::try_from(dice.below(3)).unwrap()];
            let (epoch, expected) = (dice.below(3), dice.below(5));
            let mut batch = append(agent, epoch, expected);
            let effects = (0..dice.below(3)).map(|_| draw_effect(&mut dice, &world, &ids));
            batch.with = effects.collect();
            let before = world.facts.clone();

            let Ok(writes) = decide(&world.facts, &batch) else {
                continue;
            };

            let first = before.agents[&agent].seq.next();
            let second = first.next();
            let rows = [first, second].map(|seq| RowRef::new(agent, seq));
            assert_eq!(writes.committed.rows, rows);
            world.facts.apply(writes.changes);
            for (id, agent) in &before.agents {
                let after = &world.facts.agents[id];
                assert!(after.seq >= agent.seq && after.epoch >= agent.epoch);
            }
            for (id, mail) in before.mail.iter().filter(|(_, mail)| !mail.is_queued) {
                assert_eq!(world.facts.mail[id], *mail);
            }
            for (id, _) in before.runs.iter().filter(|(_, is_open)| !**is_open) {
                assert!(!world.facts.runs[id]);
            }
        }
    }
}

#[test]
fn fact_keys_cover_everything_that_a_decision_reads() {
    let mut dice = Dice::roll();
    for _ in 0..3000 {
        let world = World::new();
        let mut ids = world.agents.clone();
        ids.push(IdSource::new(5).agent());
        let effects = (0..dice.below(4)).map(|_| draw_effect(&mut dice, &world, &ids));
        let batch = effect_batch(effects.collect::<Vec<_>>());
        let mut known = world.facts.clone();
        known.mail.insert(
            MailId(1),
            MailFacts {
                to: ids[0],
                is_queued: true,
            },
        );
        known.runs.insert(RunId(1), true);
        let keys = FactKeys::of([&batch]);
        let mut narrow = known.clone();
        narrow.agents.retain(|id, _| keys.agents.contains(id));
        let revived = |name: &String| {
            let mut revived = keys.revived.iter();
            revived.any(|id| known.agents.get(id).is_some_and(|it| it.name == *name))
        };
        narrow
            .names
            .retain(|name, _| keys.names.contains(name) || revived(name));
        narrow.sessions.retain(|id| keys.sessions.contains(id));
        narrow.mail.retain(|id, _| keys.mail.contains(id));
        narrow.runs.retain(|id, _| keys.runs.contains(id));

        let (all, some) = (decide(&known, &batch), decide(&narrow, &batch));

        let outcome = |result: Result<Writes<'_>, CommitError>| {
            result
                .map(|writes| (format!("{:?}", writes.list), writes.committed))
                .map_err(|error| error.to_string())
        };
        assert_eq!(outcome(all), outcome(some), "{batch:?}");
    }
}
