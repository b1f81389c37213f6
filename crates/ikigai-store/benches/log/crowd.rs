//! Many agents of one process: concurrent writes, restore at a start, server connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_core::{AgentId, Epoch, Seq};
use ikigai_store::{Agent, Batch, Effect, LeaseEffect, Log, Status};
use ikigai_testkit::stores::rounds::{Case, judge, rounds};
use ikigai_testkit::stores::{self, Sample, SampleEngine, StoredSample, claim};
use tokio::task::JoinSet;

use crate::append::filled;
use crate::measured::{Forker, World, event_row, timed};

const AGENTS: usize = 500;

/// Numbers of agents that write concurrently.
const GROUPS: [usize; 3] = [1, 20, 100];

/// Rows of a large batch.
const ROWS: usize = 10;

/// Commits per measurement.
const COMMITS: usize = 200;

const GROUP_ROUNDS: usize = 20;
const START_ROUNDS: usize = 10;

/// Maximum connections of a process for any number of agents: one per purpose.
const MOST_CONNECTIONS: f64 = 4.0;

/// Rows that a start reads per agent.
const PAGE_ROWS: usize = 64;

/// Returns a store with 500 children of an agent, forked one by one.
fn crowded(on: SampleEngine, purpose: &str) -> World {
    let world = World::new(Sample::THOUSAND.copy(on, purpose));
    let mut forker = Forker::new(&world);
    for _ in 0..AGENTS {
        forker.fork();
    }
    drop(forker);
    world
}

/// An agent that writes.
struct Writing {
    agent: AgentId,
    epoch: Epoch,
    head: Seq,
}

/// A process that holds agents.
struct Process<'a> {
    world: &'a World,
    store: Arc<dyn Log>,
    agents: Vec<Writing>,
}

impl<'a> Process<'a> {
    fn holding(world: &'a World, count: usize) -> Self {
        let store = world.kept.open();
        let agents = world.runtime.block_on(async {
            let mut agents = store.agents(None).await.unwrap();
            agents.retain(|agent| agent.id != world.kept.agent);
            agents.truncate(count);
            let takes = agents
                .iter()
                .map(|it| Effect::Lease(LeaseEffect::Take { agent: it.id }));
            let batch = Batch {
                with: takes.collect(),
                ..Batch::default()
            };
            let leases = store.commit(batch).await.unwrap().leases;
            let agents = agents.iter().zip(leases);
            let agents = agents.map(|(agent, (_, epoch))| Writing {
                agent: agent.id,
                epoch,
                head: agent.head,
            });
            agents.collect()
        });
        Self {
            world,
            store,
            agents,
        }
    }

    /// Has `agents` agents commit concurrently, about [`COMMITS`] batches in total.
    ///
    /// Each agent commits its batches in sequence. Returns the elapsed time per commit.
    fn write(&mut self, agents: usize, rows: usize) -> Duration {
        let each = COMMITS.div_ceil(agents);
        let writers: Vec<Writing> = self.agents.drain(..agents).collect();
        let store = &self.store;
        let (took, back) = self.world.runtime.block_on(async {
            let begun = Instant::now();
            let mut all = JoinSet::new();
            for mut writer in writers {
                let store = Arc::clone(store);
                all.spawn(async move {
                    for _ in 0..each {
                        writer.commit(&*store, rows).await;
                    }
                    writer
                });
            }
            let back = all.join_all().await;
            (begun.elapsed(), back)
        });
        self.agents.extend(back);
        took / u32::try_from(each * agents).unwrap()
    }
}

impl Writing {
    async fn commit(&mut self, store: &dyn Log, rows: usize) {
        let batch = Batch {
            heads: vec![claim(self.agent, self.epoch, self.head)],
            rows: vec![event_row(self.agent); rows],
            with: Vec::new(),
        };
        let done = store.commit(batch).await.unwrap();
        self.head = done.rows.last().unwrap().seq;
    }
}

/// Prints the time per commit while many agents write concurrently.
pub(crate) fn group(on: SampleEngine) {
    let world = crowded(on, "group");
    let most = GROUPS.into_iter().max().unwrap();
    let directory = tempfile::tempdir_in(stores::directory()).unwrap();
    let mut bare = filled(&world, on, directory.path(), "bare", 1000);
    let row = event_row(world.kept.agent);
    let process = std::cell::RefCell::new(Process::holding(&world, most));
    let name = |agents: usize, rows: usize| match (agents, rows) {
        (1, 1) => "1 agent".to_owned(),
        (_, 1) => format!("{agents} agents"),
        _ => format!("{agents} agents, {rows} rows each"),
    };
    let groups = GROUPS.map(|agents| (agents, 1)).into_iter();
    let groups: Vec<(usize, usize)> = groups.chain([(1, ROWS), (20, ROWS)]).collect();
    let bare_name = "bare, one after the other";
    let mut cases = vec![Case::new(&bare_name, || {
        let took = timed(|| (0..COMMITS).for_each(|_| bare.append(&row)));
        took / u32::try_from(COMMITS).unwrap()
    })];
    for &(agents, rows) in &groups {
        let process = &process;
        let case = move || process.borrow_mut().write(agents, rows);
        cases.push(Case::new(&name(agents, rows), case));
    }
    let figures = rounds(GROUP_ROUNDS, cases);
    figures.print(&format!("many agents write at once, {on}: for each commit"));
    for (agents, rows) in groups {
        let name = name(agents, rows);
        let seconds = figures.median(&name).as_secs_f64();
        let times = 1.0 / figures.ratio(&name, &bare_name);
        println!(
            "      {name}: {:.0} commits a second, {times:.1} times the bare insert",
            1.0 / seconds
        );
    }
    drop(process);
    world.kept.remove();
}

/// Restores all agents as a screen does at its start.
///
/// Opens a store and reads state and newest rows of each running agent.
pub(crate) fn start(on: SampleEngine) {
    let world = crowded(on, "start");
    let begun = || {
        let store = world.kept.open();
        world.runtime.block_on(async {
            let agents = store.agents(None).await.unwrap();
            let living = agents.iter().filter(|it| it.status == Status::Running);
            for agent in living {
                let mut agent = Agent::restore(&*store, agent.id).await.unwrap();
                agent.lengthen(&*store, PAGE_ROWS).await.unwrap();
            }
        });
        store
    };
    let name = format!("{AGENTS} agents restored");
    let figures = rounds(START_ROUNDS, vec![Case::new(&name, || timed(begun))]);
    figures.print(&format!("a start, {on}"));
    world.kept.remove();
}

/// Counts the connections of a process that writes, reads, listens and searches.
pub(crate) fn connections(on: SampleEngine) {
    if on != SampleEngine::Postgres {
        return;
    }
    let world = crowded(on, "connections");
    println!();
    for agents in [1, 20, AGENTS] {
        let mut process = Process::holding(&world, agents);
        let _watch = process.store.watch().unwrap();
        process.write(agents, 1);
        while world.runtime.block_on(process.store.index_chunk()).unwrap() > 0 {}
        let connections = connections_of(&world.kept);
        let what = format!("connections of a process with {agents} agents");
        judge(&what, connections, MOST_CONNECTIONS, "");
    }
    world.kept.remove();
}

fn connections_of(kept: &StoredSample) -> f64 {
    let sql = "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND backend_type = 'client backend'
           AND pid <> pg_backend_pid()";
    let told = kept.sql(sql);
    told[0][0].as_deref().unwrap().parse().unwrap()
}
