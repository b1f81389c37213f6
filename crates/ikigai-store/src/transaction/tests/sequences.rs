//! Properties of transactions over random sequences of effects.

use super::*;

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
        let key = (agent.session, agent.name.clone());
        if facts.names.get(&key) != Some(id) {
            return Some(format!("{id} runs as {} without the name", agent.name));
        }
    }
    facts.names.iter().find_map(|((_, name), id)| {
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
            let (mut ordered, after): (Vec<_>, Vec<_>) = effects
                .into_iter()
                .partition(crate::transaction::rules::precedes_rows);
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
        let renamed = |name: &String| keys.renamed.iter().any(|(_, new)| new == name);
        narrow
            .names
            .retain(|key, _| keys.names.contains(key) || renamed(&key.1) || revived(&key.1));
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
