//! Test environment of the engine: a log, a manual clock, a scripted model.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ikigai_core::data::{self, Cause, ToolResultData, Verdict};
use ikigai_core::grants::GrantScope;
use ikigai_core::render::{Shown, render};
use ikigai_core::{
    AgentId, Epoch, Event, Micros, NewRow, PageQuery, Row, Seq, Settings, Span, Target,
};
use ikigai_engine::commands::Done;
use ikigai_engine::{
    Engine, EngineError, Environment, FrontEnd, GrantKey, Outcome, Platform, Safety, Stop, Tools,
    USER_REQUESTS, UiEvent, UserInput, UserRequest, Worker,
};
use ikigai_providers::Models;
use ikigai_store::{AgentRecord, Batch, HeadClaim, LeaseClaim, Log, ReadLog};
use ikigai_testkit::{ChosenStore, FaultyStore, IdSource, ManualClock, ScriptedProvider};
use ikigai_tools::Tool;
use tokio::sync::mpsc;

use crate::fakes::CallLog;

pub(crate) const HERE: &str = "/home/margaret/parser";

/// Grant key of the user in most tests.
pub(crate) const OWN_KEY: GrantKey = GrantKey::new([7; 32]);

struct Surroundings {
    clock: ManualClock,
    ids: IdSource,
    key: GrantKey,
    platform: Option<Platform>,
}

impl Environment for Surroundings {
    fn now(&self) -> Micros {
        self.clock.advance(Duration::from_millis(1));
        self.clock.now()
    }

    fn random(&self) -> [u8; 16] {
        self.ids.wide_bits().to_be_bytes()
    }

    fn grant_key(&self) -> GrantKey {
        self.key
    }

    fn platform(&self) -> Option<Platform> {
        self.platform.clone()
    }
}

/// Number of the next world.
static WORLDS: AtomicU64 = AtomicU64::new(1);

/// Simulated process on a log; it can be killed and restarted.
pub(crate) struct World {
    log: ChosenStore,
    pub(crate) store: Arc<FaultyStore>,
    pub(crate) provider: ScriptedProvider,
    /// Models of the engine; by default those of the scripted provider.
    models: Arc<dyn Models>,
    pub(crate) engine: Engine,
    pub(crate) clock: ManualClock,
    equip: Equip,
    seed: u64,
}

/// Function that configures the engine of each process of a world.
type Equip = Arc<dyn Fn(Engine) -> Engine + Send + Sync>;

impl World {
    pub(crate) fn new() -> Self {
        let log = ChosenStore::new(IdSource::new(1).process());
        Self::on(log, ScriptedProvider::default(), 1)
    }

    pub(crate) fn with_window(window: u64) -> Self {
        let log = ChosenStore::new(IdSource::new(1).process());
        let provider = ScriptedProvider::with_window(window);
        Self::on(log, provider, 1)
    }

    pub(crate) fn without_images() -> Self {
        let log = ChosenStore::new(IdSource::new(1).process());
        Self::on(log, ScriptedProvider::without_images(), 1)
    }

    pub(crate) fn without_price() -> Self {
        let log = ChosenStore::new(IdSource::new(1).process());
        Self::on(log, ScriptedProvider::without_price(), 1)
    }

    pub(crate) fn with_patience(patience: Duration) -> Self {
        let log = ChosenStore::new(IdSource::new(1).process());
        let provider = ScriptedProvider::with_patience(patience);
        Self::on(log, provider, 1)
    }

    /// Creates a world whose agents use these models.
    pub(crate) fn with_models(models: Arc<dyn Models>) -> Self {
        let log = ChosenStore::new(IdSource::new(1).process());
        Self::of_user(OWN_KEY, log, (ScriptedProvider::default(), models), 1)
    }

    fn on(log: ChosenStore, provider: ScriptedProvider, seed: u64) -> Self {
        let models = Arc::new(provider.clone());
        Self::of_user(OWN_KEY, log, (provider, models), seed)
    }

    fn of_user(
        key: GrantKey,
        log: ChosenStore,
        (provider, models): (ScriptedProvider, Arc<dyn Models>),
        seed: u64,
    ) -> Self {
        let store = Arc::new(FaultyStore::new(Arc::new(log.clone())));
        let clock = ManualClock::new(Micros(i64::try_from(seed).unwrap() * 1_000_000_000));
        let surroundings = Surroundings {
            clock: clock.clone(),
            // Seeds differ between worlds, since ids also name processes of this machine.
            ids: IdSource::new(WORLDS.fetch_add(1, Ordering::Relaxed)),
            key,
            platform: None,
        };
        let engine = Engine::new(store.clone(), Arc::new(surroundings), models.clone());
        Self {
            log,
            store,
            provider,
            models,
            engine,
            clock,
            equip: Arc::new(|engine| engine),
            seed,
        }
    }

    /// Creates a world whose agents have these tools.
    pub(crate) fn with_tools(tools: Vec<Arc<dyn Tool>>) -> Self {
        let tools: Arc<dyn Tools> = Arc::new(tools);
        Self::new().equipped(move |engine| engine.with_tools(tools.clone(), Safety::default()))
    }

    /// Creates a world with the fake tools; returns their diary, too.
    pub(crate) fn with_fakes() -> (Self, CallLog) {
        let call_log = CallLog::default();
        (Self::with_tools(call_log.tools()), call_log)
    }

    /// Creates a world whose messages begin with an environment block.
    pub(crate) fn with_platform() -> Self {
        let mut world = Self::new();
        world.add_platform();
        world
    }

    /// Adds a platform to this process; call it after other changes of the engine.
    pub(crate) fn add_platform(&mut self) {
        let surroundings = Surroundings {
            clock: self.clock.clone(),
            ids: IdSource::new(WORLDS.fetch_add(1, Ordering::Relaxed)),
            key: OWN_KEY,
            platform: Some(Platform {
                system: "linux test".to_owned(),
                shell: "bash".to_owned(),
            }),
        };
        let engine = Engine::new(
            self.store.clone(),
            Arc::new(surroundings),
            self.models.clone(),
        );
        self.engine = (self.equip)(engine);
    }

    /// Returns the world with another engine, also for later processes.
    pub(crate) fn equipped(
        mut self,
        equip: impl Fn(Engine) -> Engine + Send + Sync + 'static,
    ) -> Self {
        let before = self.equip.clone();
        self.engine = equip(self.engine);
        self.equip = Arc::new(move |engine| equip(before(engine)));
        self
    }

    /// Kills the process and starts another one on the same log.
    pub(crate) fn restarted(&self) -> Self {
        self.log.die();
        let seed = self.seed + 1;
        let log = self.log.other_process(IdSource::new(1000 + seed).process());
        let mut restarted = Self::of_user(OWN_KEY, log, self.providers(), seed);
        restarted.engine = (self.equip)(restarted.engine);
        restarted.equip = self.equip.clone();
        restarted
    }

    fn providers(&self) -> (ScriptedProvider, Arc<dyn Models>) {
        (self.provider.clone(), self.models.clone())
    }

    /// Starts another process on the same log, in parallel with this one.
    pub(crate) fn beside(&self) -> Self {
        let seed = self.seed + 500;
        let log = self.log.other_process(IdSource::new(1000 + seed).process());
        let mut beside = Self::of_user(OWN_KEY, log, self.providers(), seed);
        beside.engine = (self.equip)(beside.engine);
        beside.equip = self.equip.clone();
        beside
    }

    /// Starts a process of another user who shares the log.
    pub(crate) fn of_another_user(&self) -> Self {
        let seed = self.seed + 700;
        let log = self.log.other_process(IdSource::new(1000 + seed).process());
        let key = GrantKey::new([8; 32]);
        let mut other = Self::of_user(key, log, self.providers(), seed);
        other.engine = (self.equip)(other.engine);
        other.equip = self.equip.clone();
        other
    }

    /// Opens the agent that was used last.
    pub(crate) async fn reopened(&self) -> Worker {
        self.engine.open(&self.latest().await).await.unwrap()
    }

    /// Creates an agent with these settings stored before it is opened.
    pub(crate) async fn root_with(&self, settings: &Settings) -> Worker {
        let worker = self.root().await;
        let agent = worker.agent().state.agent();
        let seq = worker.agent().state.head().next();
        let mut set = Event::set("set", settings.as_set());
        if let Event::Command { data, .. } = &mut set {
            data.grant = Some(OWN_KEY.tag(agent, seq, &GrantScope::of_settings(settings)));
        }
        let set = set.into_row(agent, Micros(5));
        self.write(&worker, vec![set]).await;
        worker.release().await.unwrap();
        self.reopened().await
    }

    /// Stores rows of an agent without the knowledge of its worker.
    pub(crate) async fn write(&self, worker: &Worker, rows: Vec<NewRow>) {
        let agent = &worker.agent().state;
        let lease = LeaseClaim {
            epoch: Epoch(1),
            expected: agent.head(),
        };
        let head = HeadClaim {
            agent: agent.agent(),
            lease: Some(lease),
        };
        let batch = Batch {
            heads: vec![head],
            rows,
            with: Vec::new(),
        };
        self.log.commit(batch).await.unwrap();
    }

    pub(crate) async fn root(&self) -> Worker {
        self.engine.create_root(HERE, HERE).await.unwrap()
    }

    pub(crate) async fn latest(&self) -> AgentRecord {
        self.engine.latest(HERE).await.unwrap().unwrap()
    }

    pub(crate) async fn rows(&self, agent: AgentId) -> Vec<Row> {
        self.log.page(all_rows(agent)).await.unwrap()
    }

    /// Returns the log without the planned faults.
    pub(crate) fn log(&self) -> &ChosenStore {
        &self.log
    }

    /// Returns all calls with a result, in the order of the results.
    pub(crate) async fn results(&self, agent: AgentId) -> Vec<CallInputs> {
        let rows = self.rows(agent).await;
        let called = |data: &ToolResultData| {
            let call = rows.iter().find(|row| Some(row.at) == data.call)?;
            call.content.clone()
        };
        let results = rows
            .iter()
            .filter(|row| row.kind.name() == "tool_result")
            .map(|row| data::read::<ToolResultData>(row.data.as_deref()));
        results
            .map(|data| CallInputs {
                call: called(&data).unwrap_or_default(),
                success: data.success.unwrap(),
                verdict: data.verdict.unwrap(),
                output: data.output.unwrap(),
            })
            .collect()
    }

    pub(crate) async fn kinds(&self, agent: AgentId) -> Vec<String> {
        let rows = self.rows(agent).await;
        rows.iter().map(|row| row.kind.name().to_owned()).collect()
    }
}

/// Returns a query for all rows of an agent.
pub(crate) fn all_rows(agent: AgentId) -> PageQuery {
    PageQuery::oldest(Span::new(agent, Seq(1), Seq(100_000)), 100_000)
}

/// Returns the target of an agent's requests.
pub(crate) fn target_of(worker: &Worker) -> Target {
    let choice = worker.agent().state.settings().model.clone().unwrap();
    Target {
        provider: choice.provider.unwrap(),
        model: choice.model.unwrap(),
        ..Target::default()
    }
}

/// Outcome of a call, read from its result row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallInputs {
    /// Shown text of the call; for a fake its label.
    pub(crate) call: String,
    pub(crate) success: bool,
    pub(crate) verdict: Verdict,
    pub(crate) output: String,
}

/// Sends a message and waits for the end of the turn.
pub(crate) async fn say(worker: &mut Worker, text: &str) -> Result<Outcome, EngineError> {
    say_until(worker, text, std::future::pending()).await.0
}

/// Sends a message, stops the turn when `stop` resolves, and returns the events.
pub(crate) async fn say_until(
    worker: &mut Worker,
    text: &str,
    stop: impl Future<Output = Stop> + Send,
) -> (Result<Outcome, EngineError>, Vec<UiEvent>) {
    let stop = async { vec![UserRequest::Stop(stop.await)] };
    front_end(worker, TestJob::Say(text), stop).await
}

/// Limit of any job: an unanswered question waits forever.
const PATIENCE: Duration = Duration::from_hours(10_000);

/// Job of an agent in a test.
pub(crate) enum TestJob<'a> {
    Say(&'a str),
    Resume,
    Retry,
}

impl TestJob<'_> {
    async fn of(
        self,
        worker: &mut Worker,
        desk: &mut FrontEnd<'_>,
    ) -> Result<Outcome, EngineError> {
        let job = async {
            match self {
                TestJob::Say(text) => worker.turn(text, desk).await,
                TestJob::Resume => worker.resume(desk).await,
                TestJob::Retry => worker.retry(desk).await,
            }
        };
        let ended = tokio::time::timeout(PATIENCE, job).await;
        ended.unwrap_or_else(|_| panic!("no answer came, and nothing ends by itself"))
    }
}

/// Runs a job, sends `requests` when they resolve, and returns the events.
pub(crate) async fn front_end(
    worker: &mut Worker,
    job: TestJob<'_>,
    requests: impl Future<Output = Vec<UserRequest>> + Send,
) -> (Result<Outcome, EngineError>, Vec<UiEvent>) {
    let (sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut told = Vec::new();
    let mut tell = |update| told.push(update);
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    let say = async {
        for request in requests.await {
            sender.send(request).await.unwrap();
        }
        std::future::pending::<()>().await;
    };
    let outcome = tokio::select! {
        outcome = job.of(worker, &mut desk) => outcome,
        () = say => unreachable!("it never ends"),
    };
    (outcome, told)
}

/// Runs a job with a front end that reacts to each event; returns the events.
pub(crate) async fn active_agents(
    worker: &mut Worker,
    job: TestJob<'_>,
    mut react: impl FnMut(&UiEvent) -> Vec<UserRequest> + Send,
) -> (Result<Outcome, EngineError>, Vec<UiEvent>) {
    let (sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut told = Vec::new();
    let mut tell = |update: UiEvent| {
        for request in react(&update) {
            sender.try_send(request).unwrap();
        }
        told.push(update);
    };
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    let outcome = job.of(worker, &mut desk).await;
    (outcome, told)
}

/// Kills the process after `seconds` of a job, by dropping the job.
pub(crate) async fn dies_after(seconds: u64, worker: &mut Worker, job: TestJob<'_>) {
    let job = active_agents(worker, job, |_| Vec::new());
    let ended = tokio::time::timeout(Duration::from_secs(seconds), job).await;
    assert!(ended.is_err(), "it ended before: {ended:?}");
}

pub(crate) fn interrupt() -> UserRequest {
    UserRequest::Stop(Stop::Interrupt(Cause::User))
}

/// Returns true if an event is a stored row of this kind.
pub(crate) fn is_stored(update: &UiEvent, kind: &str) -> bool {
    matches!(update, UiEvent::Stored(row) if row.kind.name() == kind)
}

/// Returns an interrupt by the user after `seconds`.
pub(crate) async fn interrupt_after(seconds: u64) -> Stop {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Stop::Interrupt(Cause::User)
}

/// Types a line and reacts to each event; returns the events.
pub(crate) async fn attended_line(
    worker: &mut Worker,
    line: &str,
    mut react: impl FnMut(&UiEvent) -> Vec<UserRequest> + Send,
) -> (Done, Vec<UiEvent>) {
    let (sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut told = Vec::new();
    let mut tell = |update: UiEvent| {
        for request in react(&update) {
            sender.try_send(request).unwrap();
        }
        told.push(update);
    };
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    let done = worker
        .line(UserInput::parse(line), &mut desk)
        .await
        .unwrap();
    (done, told)
}

/// Output of a command's row, with the sign of its severity.
pub(crate) fn printed_in(row: &Row) -> Option<String> {
    match render(row) {
        Shown::Command {
            output, severity, ..
        } => Some(severity.signed(&output)),
        _ => None,
    }
}
