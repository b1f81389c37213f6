//! Random histories on both engines: all results and reads are equal.

use std::sync::Arc;

use ikigai_core::{
    AgentId, ControlQuery, Direction, Epoch, Kind, MachineId, Micros, NewRow, PageQuery, RowRef,
    Seq, Span,
};
use ikigai_store::{
    AgentEffect, Batch, DraftEffect, Effect, EffectClass, HeadClaim, JobEffect, JobRecord,
    LeaseClaim, LeaseEffect, Log, MailEffect, MailId, MailOrigin, MailTopic, NewAgent, RunEffect,
    RunId, SeenMark, SessionRecord, Snapshot, Status, blobs,
};
use ikigai_testkit::block_on;
use ikigai_testkit::postgres::Database;

use crate::support::{Dice, Disk, agent, is_long, open_at, session};

/// Numbers of agents, sessions, mails and runs: few, so that batches collide.
const AGENTS: u64 = 6;
const SESSIONS: u64 = 2;
const THINGS: u64 = 12;

/// The processes that write.
const PROCESSES: usize = 2;

#[test]
fn both_engines_answer_alike() {
    let mut dice = Dice::roll();
    let (histories, batches) = if is_long() { (40, 400) } else { (2, 120) };
    for _ in 0..histories {
        let (disk, database) = (Disk::new(), Database::fresh());
        let open = |place: &str| [1, 2].map(|number| open_at(place, number).unwrap());
        let stores = [open(disk.path.to_str().unwrap()), open(&database.url())];
        let mut played = Played::default();
        for number in 0..batches {
            let batch = played.batch(&mut dice);
            let process = usize::try_from(dice.below(3)).unwrap() / PROCESSES;
            let [file, server] = [&stores[0][process], &stores[1][process]]
                .map(|store| block_on(store.commit(batch.clone())));
            assert_eq!(
                format!("{file:?}"),
                format!("{server:?}"),
                "batch {number}: {batch:#?}"
            );
            played.heed(&stores[0][process]);
        }
        let [file, server] = stores.map(|[store, _]| read_everything(&store));
        for (file, server) in file.into_iter().zip(server) {
            assert_eq!(file, server);
        }
    }
}

/// Known heads and time of the log, so that most batches are valid.
#[derive(Default)]
struct Played {
    heads: Vec<(AgentId, Epoch, Seq)>,
    time: i64,
}

impl Played {
    /// Reads the heads of all agents.
    fn heed(&mut self, store: &Arc<dyn Log>) {
        let agents = block_on(store.agents(None)).unwrap();
        self.heads = agents
            .iter()
            .map(|agent| {
                let head = block_on(store.head(agent.id)).unwrap().unwrap();
                (agent.id, head.epoch, head.seq)
            })
            .collect();
    }

    fn batch(&mut self, dice: &mut Dice) -> Batch {
        self.time += 1;
        let mut batch = Batch::default();
        for _ in 0..dice.below(3) {
            let head = self.claim(dice);
            for _ in 0..dice.below(4) {
                batch.rows.push(self.row(dice, head.agent));
            }
            // Now and then a row has no claim, or one agent is claimed twice.
            if dice.below(20) > 0 {
                batch.heads.push(head);
            }
        }
        for _ in 0..dice.below(4) {
            batch.with.push(self.effect(dice));
        }
        batch
    }

    fn claim(&self, dice: &mut Dice) -> HeadClaim {
        let agent = agent(dice.below(AGENTS));
        let known = self.heads.iter().find(|(id, ..)| *id == agent);
        let (_, epoch, expected) = known.copied().unwrap_or((agent, Epoch(1), Seq(0)));
        let (epoch, expected) = match dice.below(12) {
            0 => (Epoch(epoch.0 + 1), expected),
            1 => (epoch, expected.next()),
            _ => (epoch, expected),
        };
        let lease = (dice.below(10) > 0).then_some(LeaseClaim { epoch, expected });
        HeadClaim { agent, lease }
    }

    fn row(&self, dice: &mut Dice, agent: AgentId) -> NewRow {
        let kinds = [
            (Kind::User, Some("héron ✓"), Some("{\"a\":1}"), false),
            (Kind::Assistant, Some("it's “so”"), None, false),
            (Kind::Usage, None, Some("{\"in\": 1e3,\"in\":2}"), false),
            (Kind::Clear, None, None, true),
            (Kind::Mark, None, Some("{\"name\":\"m\"}"), true),
            (Kind::Fork, Some("forked"), Some("{}"), false),
            (Kind::AgentKilled, None, Some("{}"), false),
        ];
        let (kind, content, data, control) = kinds[index(dice, kinds.len())];
        NewRow {
            agent,
            kind,
            content: content.map(str::to_owned),
            data: data.map(str::to_owned),
            control,
            created_at: Micros(self.time),
            author: [None, "ada".parse().ok(), "Béa".parse().ok()][index(dice, 3)].clone(),
        }
    }

    fn row_ref(&self, dice: &mut Dice) -> RowRef {
        let agent = agent(dice.below(AGENTS));
        let known = self.heads.iter().find(|(id, ..)| *id == agent);
        let newest = known.map_or(0, |(.., seq)| seq.0);
        RowRef::new(agent, Seq(dice.below(newest + 2)))
    }

    fn epoch(&self, dice: &mut Dice, agent: AgentId) -> Epoch {
        let known = self.heads.iter().find(|(id, ..)| *id == agent);
        let epoch = known.map_or(Epoch(1), |(_, epoch, _)| *epoch);
        Epoch(epoch.0 + u64::from(dice.below(10) == 0))
    }

    fn job_effect(&self, dice: &mut Dice, agent: AgentId, job: RunId) -> Effect {
        let at = Micros(self.time);
        let start = JobRecord {
            id: job,
            agent,
            number: u64::try_from(at.0).unwrap(),
            command: format!("job {at:?}"),
            started: at,
            deadline: Micros(at.0 + 5),
            host: "h".to_owned(),
            directory: "/d".to_owned(),
            pattern: (dice.below(2) == 0).then(|| "p".to_owned()),
            read_to: dice.below(9),
            ended: None,
        };
        let effects = [
            JobEffect::Start(start.clone()),
            JobEffect::Start(start),
            JobEffect::Read { job, bytes: 7 },
            JobEffect::DropPattern { job },
            JobEffect::End { job, ended: at },
        ];
        Effect::Job(effects[index(dice, 5)].clone())
    }

    fn effect(&self, dice: &mut Dice) -> Effect {
        let who = agent(dice.below(AGENTS));
        let mail = MailId(u128::from(dice.below(THINGS)));
        let run = RunId(u128::from(dice.below(THINGS)));
        let at = Micros(self.time);
        match dice.below(22) {
            0 => Effect::MakeSession(SessionRecord {
                id: session(dice.below(SESSIONS)),
                name: "work".to_owned(),
                directory: "/ä".to_owned(),
                created_at: at,
                machine: MachineId::from_random([7; 16]).filter(|_| dice.below(2) == 0),
                host: Some("höst".to_owned()),
            }),
            1..=3 => Effect::Agent(AgentEffect::Create {
                agent: NewAgent {
                    id: who,
                    name: format!("name-{}", dice.below(AGENTS + 2)),
                    session: session(dice.below(SESSIONS)),
                    parent: (dice.below(3) == 0).then(|| agent(dice.below(AGENTS))),
                    fork_point: (dice.below(3) == 0).then(|| self.row_ref(dice)),
                    created_at: at,
                },
                owned: dice.below(2) == 0,
            }),
            4 => Effect::Agent(AgentEffect::SetName {
                agent: who,
                name: format!("name-{}", dice.below(AGENTS)),
            }),
            5 => Effect::Agent(AgentEffect::SetStatus {
                agent: who,
                status: [Status::Running, Status::Dead, Status::Reaped][index(dice, 3)],
            }),
            6 | 7 => Effect::Lease(LeaseEffect::Take { agent: who }),
            8 => Effect::Lease(LeaseEffect::Give {
                agent: who,
                epoch: self.epoch(dice, who),
            }),
            9 => Effect::Draft(DraftEffect::Append {
                agent: who,
                epoch: self.epoch(dice, who),
                text: format!("part {at:?}"),
                at,
            }),
            10 => Effect::Draft(DraftEffect::Drop {
                agent: who,
                epoch: self.epoch(dice, who),
            }),
            11 | 12 => Effect::Mail(MailEffect::Send {
                mail,
                to: who,
                origin: [MailOrigin::User, MailOrigin::Agent, MailOrigin::Process][index(dice, 3)],
                from: (dice.below(2) == 0).then(|| agent(dice.below(AGENTS))),
                about: MailTopic::Message,
                text: format!("mail {at:?}"),
                at,
                author: None,
            }),
            13 => Effect::Mail(MailEffect::Consume {
                mail,
                by: self.row_ref(dice),
            }),
            14 => [
                Effect::Mail(MailEffect::Withdraw { mail }),
                Effect::Mail(MailEffect::Bounce { mail }),
            ][index(dice, 2)]
            .clone(),
            15 => Effect::Run(RunEffect::Start {
                run,
                call: self.row_ref(dice),
                class: EffectClass::Write,
                started: at,
                deadline: Micros(at.0 + 5),
            }),
            16 => Effect::Run(RunEffect::End { run, ended: at }),
            17 | 18 => self.job_effect(dice, who, run),
            19 => Effect::Mail(MailEffect::Notify {
                mail,
                to: who,
                process: dice.below(4),
                text: format!("notice {at:?}"),
                at,
            }),
            20 => Effect::MarkSeen {
                person: ["", "ada", "ä"][index(dice, 3)].to_owned(),
                mark: SeenMark {
                    agent: who,
                    read: Seq(dice.below(4)),
                    dismissed: Seq(dice.below(4)),
                },
            },
            _ if dice.below(2) == 0 => Effect::PutSnapshot(Snapshot {
                upto: self.row_ref(dice),
                folded: format!("{{\"at\":{}}}", at.0),
            }),
            _ => blobs::parts_of(format!("blob {}", dice.below(3)).as_bytes()).remove(0),
        }
    }
}

fn index(dice: &mut Dice, bound: usize) -> usize {
    usize::try_from(dice.below(bound as u64)).unwrap()
}

/// Returns the results of all reads as text.
fn read_everything(store: &Arc<dyn Log>) -> Vec<String> {
    let mut read = Vec::new();
    macro_rules! note {
        ($($asked:expr),* $(,)?) => {
            $(read.push(format!("{}: {:?}", stringify!($asked), block_on($asked))));*
        };
    }
    let all: Vec<AgentId> = (0..=AGENTS).map(agent).collect();
    note!(
        store.sessions(),
        store.agents(None),
        store.agents(Some(session(0))),
        store.agents(Some(session(9))),
        store.dead_among(all.clone()),
        store.seen("ada"),
        store.seen("ben"),
        store.newest_usage(all.clone()),
        store.living_names(session(0), ""),
        store.living_names(session(1), "name-1"),
        store.find_by_name(None, "name-2"),
        store.find_by_name(Some(session(0)), "name-2"),
        store.sessions_in("/ä"),
        store.count_messages(all.iter().map(|agent| Span::whole(*agent)).collect()),
    );
    for number in 0..3 {
        note!(store.blob(blobs::hash_of(format!("blob {number}").as_bytes())));
    }
    for agent in all {
        let whole = Span::whole(agent);
        note!(
            store.agent(agent),
            store.head(agent),
            store.ancestry(agent, 2),
            store.ancestry(agent, 100),
            store.mail(agent),
            store.queued_mail(agent),
            store.open_runs(agent),
            store.open_jobs(Some(agent)),
            store.jobs(agent, 2),
            store.process_rows(whole, 3),
            store.draft(agent),
            store.usage(whole, 3),
            store.restore_point(agent, 5),
            store.snapshot(RowRef::new(agent, Seq(4))),
        );
        for direction in [Direction::Forwards, Direction::Backwards] {
            for (from, to, limit) in [(1, u64::MAX, usize::MAX), (2, 5, 3), (4, 2, 9), (1, 9, 0)] {
                let span = Span::new(agent, Seq(from), Seq(to));
                note!(
                    store.page(PageQuery {
                        span,
                        direction,
                        limit
                    }),
                    store.control(ControlQuery { span, limit }),
                    store.pages(vec![span, Span::new(agent, Seq(1), Seq(1))], limit.min(99)),
                );
            }
        }
    }
    read
}
