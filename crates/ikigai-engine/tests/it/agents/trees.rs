//! Whole trees, live and replayed. After any operations on the tree, a live agent equals the one
//! restored from its log.

use ikigai_core::AgentId;
use ikigai_engine::Worker;
use ikigai_providers::AnswerBlock;
use ikigai_store::{Agent, ReadLog, Status};
use ikigai_testkit::{IdSource, cases};
use serde_json::json;

use super::support::{calls, kill, send, typed, wait, work};
use crate::fakes::call;
use crate::support::World;

/// Number of walks in the short and the long profile, and steps per walk.
const WALKS: u32 = 12;
const MANY_WALKS: u32 = 400;
const STEPS: usize = 24;

/// Random walk: one process that holds all agents.
struct Walk {
    world: World,
    workers: Vec<Worker>,
    dice: IdSource,
    said: u64,
}

impl Walk {
    async fn new(seed: u64) -> Self {
        let world = World::new();
        let root = world.root().await;
        Self {
            world,
            workers: vec![root],
            dice: IdSource::new(seed),
            said: 0,
        }
    }

    fn below(&self, most: usize) -> usize {
        usize::try_from(self.dice.bits() % 1_000_000).unwrap() % most
    }

    /// Returns a new distinct text.
    fn words(&mut self) -> String {
        self.said += 1;
        format!("words {}", self.said)
    }

    /// Draws the name of an agent, alive or dead.
    async fn anybody(&self) -> String {
        let agents = self.world.log().agents(None).await.unwrap();
        agents[self.below(agents.len())].name.clone()
    }

    fn fork(&mut self) -> AnswerBlock {
        let context = ["inherit", "fresh"][self.below(2)];
        let prompt = self.words();
        call("fork", &json!({ "prompt": prompt, "context": context }))
    }

    /// Draws a call of an agent tool.
    async fn call(&mut self) -> AnswerBlock {
        match self.below(5) {
            0 => self.fork(),
            1 => kill(&self.anybody().await),
            2 => wait(1, &[&self.anybody().await]),
            _ => {
                let words = self.words();
                send(&self.anybody().await, &words)
            }
        }
    }

    /// Draws a line for the user to type.
    async fn line(&mut self) -> String {
        let words = self.words();
        match self.below(14) {
            0 => "/mark here".to_owned(),
            1 => "/rewind here".to_owned(),
            2 => "/undo".to_owned(),
            3 => "/redo".to_owned(),
            4 => "/clear".to_owned(),
            5 => "/fork --fresh".to_owned(),
            6 => "/fork --at here".to_owned(),
            7 => format!("/fork {words}"),
            8 => format!("/kill {}", self.anybody().await),
            9 => format!("/merge {}", self.anybody().await),
            10 => format!("/name n{}", self.said),
            11 => "/fork".to_owned(),
            12 => "/reap".to_owned(),
            _ => format!("/send {} {words}", self.anybody().await),
        }
    }

    async fn step(&mut self) -> String {
        let who = self.below(self.workers.len());
        let name = self.workers[who].agent().state.settings().name.clone();
        let done = match self.below(3) {
            0 => {
                let mut blocks = Vec::new();
                for _ in 0..=self.below(3) {
                    blocks.push(self.call().await);
                }
                let done = format!("{blocks:?}");
                self.world.provider.will(calls(blocks));
                self.talk(who).await;
                done
            }
            1 => {
                self.talk(who).await;
                "talks".to_owned()
            }
            _ => {
                let line = self.line().await;
                self.answers();
                typed(&mut self.workers[who], &line).await;
                line
            }
        };
        self.gather().await;
        format!("{name:?}: {done}")
    }

    /// Scripts more answers than a step needs.
    fn answers(&mut self) {
        for _ in 0..12 {
            let words = self.words();
            self.world.provider.will_say(&words);
        }
    }

    async fn talk(&mut self, who: usize) {
        let words = self.words();
        self.answers();
        work(&mut self.workers[who], &words).await;
    }

    /// Waits for running children, opens new agents and releases dead ones.
    async fn gather(&mut self) {
        for worker in &mut self.workers {
            super::support::see_out(worker).await;
        }
        self.world.engine.dismiss().await;
        self.world.provider.forget_script();
        let agents = self.world.log().agents(None).await.unwrap();
        let alive = |id: AgentId| {
            let mut same = agents.iter().filter(|agent| agent.id == id);
            same.any(|agent| agent.status == Status::Running)
        };
        let (living, dead): (Vec<_>, Vec<_>) = std::mem::take(&mut self.workers)
            .into_iter()
            .partition(|worker| alive(worker.agent().state.agent()));
        self.workers = living;
        for worker in dead {
            worker.release().await.unwrap();
        }
        for agent in agents.iter().filter(|agent| alive(agent.id)) {
            let is_here = |worker: &Worker| worker.agent().state.agent() == agent.id;
            if !self.workers.iter().any(is_here) {
                self.workers
                    .push(self.world.engine.open(agent).await.unwrap());
            }
        }
    }

    /// Checks that each up-to-date live agent equals its replay.
    async fn check(&self, history: &[String]) {
        for worker in &self.workers {
            let id = worker.agent().state.agent();
            let mut replayed = Agent::restore(self.world.log(), id).await.unwrap();
            // It has not read lease-free rows of others yet; it will before its next row.
            if replayed.state.head() != worker.agent().state.head() {
                continue;
            }
            let mut lived = worker.agent().clone();
            for agent in [&mut lived, &mut replayed] {
                agent.read_all(self.world.log()).await.unwrap();
                agent.know_all(self.world.log()).await.unwrap();
            }
            assert!(lived == replayed, "{id} after {history:#?}");
        }
    }

    /// Makes all agents read the lease-free rows of others.
    async fn hear_all(&mut self) {
        for worker in &mut self.workers {
            typed(worker, "/mark").await;
        }
    }
}

/// D11a: each live agent equals its replay from the log. This holds after any series of forks,
/// mail, kills, waits and commands.
#[tokio::test(start_paused = true)]
async fn prop_live_trees_equal_replayed_ones() {
    let mut most = 0;
    for seed in 0..u64::from(cases(WALKS, MANY_WALKS)) {
        let mut walk = Walk::new(seed).await;
        let mut history = vec![format!("walk {seed}")];
        for _ in 0..STEPS {
            history.push(walk.step().await);
            walk.check(&history).await;
        }
        walk.hear_all().await;
        walk.check(&history).await;
        most = most.max(walk.workers.len());
    }
    assert!(most > 4, "the largest tree has {most} agents");
}
