//! A small world for the engine: memory, a clock that is set by hand, a scripted model.

use std::sync::Arc;
use std::time::Duration;

use ikigai_core::data::Cause;
use ikigai_core::{AgentId, Direction, Micros, PageQuery, Row, Seq, Span};
use ikigai_engine::{
    Desk, Engine, EngineError, Environment, INTENTS, Intent, Outcome, Stop, Update, Worker,
};
use ikigai_store::{AgentRecord, Store};
use ikigai_testkit::{FaultyStore, IdSource, ManualClock, MemoryStore, ScriptedProvider};
use tokio::sync::mpsc;

pub(crate) const HERE: &str = "/home/somebody/parser";

struct Surroundings {
    clock: ManualClock,
    ids: IdSource,
}

impl Environment for Surroundings {
    fn now(&self) -> Micros {
        self.clock.advance(Duration::from_millis(1));
        self.clock.now()
    }

    fn random(&self) -> [u8; 16] {
        self.ids.wide_bits().to_be_bytes()
    }
}

/// One process on a log, which can be killed and started again.
pub(crate) struct World {
    memory: MemoryStore,
    pub(crate) store: Arc<FaultyStore>,
    pub(crate) provider: ScriptedProvider,
    pub(crate) engine: Engine,
    seed: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        let memory = MemoryStore::new(IdSource::new(1).process());
        Self::on(memory, ScriptedProvider::default(), 1)
    }

    pub(crate) fn with_window(window: u64) -> Self {
        let memory = MemoryStore::new(IdSource::new(1).process());
        let provider = ScriptedProvider::with_window(window);
        Self::on(memory, provider, 1)
    }

    pub(crate) fn with_patience(patience: Duration) -> Self {
        let memory = MemoryStore::new(IdSource::new(1).process());
        let provider = ScriptedProvider::with_patience(patience);
        Self::on(memory, provider, 1)
    }

    fn on(memory: MemoryStore, provider: ScriptedProvider, seed: u64) -> Self {
        let store = Arc::new(FaultyStore::new(Arc::new(memory.clone())));
        let surroundings = Surroundings {
            clock: ManualClock::new(Micros(i64::try_from(seed).unwrap() * 1_000_000_000)),
            ids: IdSource::new(seed),
        };
        let engine = Engine::new(
            store.clone(),
            Arc::new(surroundings),
            Arc::new(provider.clone()),
        );
        Self {
            memory,
            store,
            provider,
            engine,
            seed,
        }
    }

    /// The process dies without a word, and another one starts on the same log.
    pub(crate) fn restarted(&self) -> Self {
        self.memory.die();
        let seed = self.seed + 1;
        let memory = self
            .memory
            .other_process(IdSource::new(1000 + seed).process());
        Self::on(memory, self.provider.clone(), seed)
    }

    pub(crate) async fn root(&self) -> Worker {
        self.engine.create_root(HERE, HERE).await.unwrap()
    }

    pub(crate) async fn latest(&self) -> AgentRecord {
        self.engine.latest(HERE).await.unwrap().unwrap()
    }

    pub(crate) async fn rows(&self, agent: AgentId) -> Vec<Row> {
        let span = Span::new(agent, Seq(1), Seq(100_000));
        let query = PageQuery {
            span,
            direction: Direction::Forwards,
            limit: 100_000,
        };
        self.memory.page(query).await.unwrap()
    }

    pub(crate) async fn kinds(&self, agent: AgentId) -> Vec<String> {
        let rows = self.rows(agent).await;
        rows.iter().map(|row| row.kind.name().to_owned()).collect()
    }
}

/// Says something and waits for the end of the turn.
pub(crate) async fn say(worker: &mut Worker, text: &str) -> Result<Outcome, EngineError> {
    say_until(worker, text, std::future::pending()).await.0
}

/// Says something, stops the turn when `stop` says so, and returns what a front end was told.
pub(crate) async fn say_until(
    worker: &mut Worker,
    text: &str,
    stop: impl Future<Output = Stop> + Send,
) -> (Result<Outcome, EngineError>, Vec<Update>) {
    let stop = async { vec![Intent::Stop(stop.await)] };
    front_end(worker, Errand::Say(text), stop).await
}

/// What is asked of an agent.
pub(crate) enum Errand<'a> {
    Say(&'a str),
    Resume,
    Retry,
}

/// Has an errand done, says what comes of `intents` meanwhile, and returns what it was told.
pub(crate) async fn front_end(
    worker: &mut Worker,
    errand: Errand<'_>,
    intents: impl Future<Output = Vec<Intent>> + Send,
) -> (Result<Outcome, EngineError>, Vec<Update>) {
    let (sender, mut receiver) = mpsc::channel(INTENTS);
    let mut told = Vec::new();
    let mut tell = |update| told.push(update);
    let mut desk = Desk::new(&mut receiver, &mut tell);
    let say = async {
        for intent in intents.await {
            sender.send(intent).await.unwrap();
        }
        std::future::pending::<()>().await;
    };
    let outcome = async {
        match errand {
            Errand::Say(text) => worker.turn(text, &mut desk).await,
            Errand::Resume => worker.resume(&mut desk).await,
            Errand::Retry => worker.retry(&mut desk).await,
        }
    };
    let outcome = tokio::select! {
        outcome = outcome => outcome,
        () = say => unreachable!("it never ends"),
    };
    (outcome, told)
}

/// An interrupt by the user after so many seconds.
pub(crate) async fn interrupt_after(seconds: u64) -> Stop {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Stop::Interrupt(Cause::User)
}
