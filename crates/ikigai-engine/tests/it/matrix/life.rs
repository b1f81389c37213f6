//! One life of a process: start in a directory, a job, a kill.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ikigai_core::data::ForkContext;
use ikigai_core::grants::GrantScope;
use ikigai_core::{
    AgentId, Block, Epoch, Event, Micros, PageQuery, Request, Row, Seq, Settings, Span,
};
use ikigai_engine::{
    ChildSeat, CrashPoint, Engine, EngineError, Environment, ForkRequest, FrontEnd, GrantKey,
    Outcome, Safety, System, USER_REQUESTS, UiEvent, Worker,
};
use ikigai_store::{
    AgentRecord, Batch, CommitError, HeadClaim, LeaseClaim, Log, ProcessRecord, StoreError,
};
use ikigai_testkit::stores::open_log;
use ikigai_testkit::{Player, ScriptedProvider, part, tell};
use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::mpsc;

use super::restart::place_of;
use super::scenario::{NOTES, OTHER, Scenario, tools};
use crate::support::OWN_KEY;

/// Timeout of a life.
const PATIENCE: Duration = Duration::from_mins(1);

/// Job of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentJob {
    /// Create the agent and send it a message.
    Say,
    /// Only take the agent over.
    Open,
    /// Take it over and resume its turn.
    Resume,
    /// Take it over and repeat its turn.
    Retry,
}

impl AgentJob {
    /// Returns the job of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Say, Self::Open, Self::Resume, Self::Retry];
        all.into_iter().find(|one| format!("{one:?}") == name)
    }
}

/// Job of a process, and its end: the nth passing of a crash point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) job: AgentJob,
    pub(crate) point: Option<CrashPoint>,
    pub(crate) nth: usize,
}

/// Output and exit status of a life.
#[derive(Debug)]
pub(crate) struct Told {
    lines: Vec<String>,
    status: ExitStatus,
}

impl Life {
    /// Creates a life that ends at the first passing of a point.
    pub(crate) const fn until(job: AgentJob, point: CrashPoint) -> Self {
        let (point, nth) = (Some(point), 1);
        Self { job, point, nth }
    }

    /// Creates a life that ends by itself.
    pub(crate) const fn whole(job: AgentJob) -> Self {
        let (point, nth) = (None, 1);
        Self { job, point, nth }
    }

    /// Runs the life in a new process; asserts that it was killed at its point.
    pub(crate) fn live(self, directory: &Path, scenario: Scenario) -> Told {
        let told = self.play(directory, scenario);
        if let Some(point) = self.point {
            let end = (told.lines.last().map(String::as_str), told.status.signal());
            let killed = format!("killed {point}");
            assert_eq!(end, (Some(&*killed), Some(9)), "{scenario:?}: {told:?}");
        }
        told
    }

    /// Runs the life in a new process, with any end.
    pub(crate) fn play(self, directory: &Path, scenario: Scenario) -> Told {
        let mut points = CrashPoint::ALL.iter();
        let index = points.position(|point| Some(*point) == self.point);
        assert_eq!(index.is_some(), self.point.is_some(), "{self:?}");
        let index = index.map_or_else(|| "-".to_owned(), |index| index.to_string());
        let part = format!(
            "{} {} {:?} {index} {}",
            directory.display(),
            scenario.name(),
            self.job,
            self.nth
        );
        let (lines, status) = Player::start("matrix::life::plays_a_life", &part).end();
        Told { lines, status }
    }
}

impl Told {
    fn all<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a str> {
        let of_word = move |line: &'a String| line.strip_prefix(word)?.strip_prefix(' ');
        self.lines.iter().filter_map(of_word)
    }

    /// Returns the rows that the front end saw as stored.
    pub(crate) fn stored(&self) -> Vec<&str> {
        self.all("stored").collect()
    }

    /// Returns the messages that the front end saw as queued.
    pub(crate) fn queued(&self) -> Vec<&str> {
        self.all("queued").collect()
    }

    /// Returns the passed crash points, in order.
    pub(crate) fn passed(&self) -> Vec<&str> {
        self.all("passed").collect()
    }

    /// Returns the texts of its requests, if it ended by itself.
    pub(crate) fn asked(&self) -> Vec<&str> {
        self.all("asked").collect()
    }

    /// Returns the newest row before the turn.
    pub(crate) fn begun_after(&self) -> Option<Seq> {
        let seq = self.all("begins").next()?;
        Some(Seq(seq.parse().unwrap()))
    }

    pub(crate) fn status(&self) -> ExitStatus {
        self.status
    }
}

/// Formats a request without ids and without notes on crashes.
pub(crate) fn said_in(request: &Request) -> String {
    let blocks = request.messages.iter().flat_map(|message| {
        let role = message.role;
        message.blocks.iter().map(move |block| (role, block))
    });
    let said = blocks.map(|(role, block)| match block {
        Block::Text { text } | Block::Thinking { text, .. } => format!("{role:?} {text}"),
        Block::ToolCall { arguments, .. } => format!("call {arguments}"),
        Block::ToolResult { content, .. } => format!("result {}", without_duration(content)),
        Block::Image(image) => format!("image {}", image.hash),
    });
    let said = said.filter(|said| !said.starts_with("User [The program stopped"));
    format!("{:?}", said.collect::<Vec<_>>())
}

/// Removes the duration of a command, which differs between processes.
fn without_duration(output: &str) -> String {
    let Some((before, ending)) = output.rsplit_once("[exit ") else {
        return output.to_owned();
    };
    let status = ending.split_once(',').map_or(ending, |(status, _)| status);
    format!("{before}[exit {status}]")
}

/// Formats a row for comparison between processes.
pub(crate) fn spelled(row: &Row) -> String {
    let (kind, content, data) = (row.kind.name(), &row.content, &row.data);
    format!("{} {kind} {content:?} {data:?}", row.at.seq)
}

/// Environment that kills its process at a crash point.
struct Mortal {
    point: Option<CrashPoint>,
    left: AtomicUsize,
    is_armed: AtomicBool,
    provider: ScriptedProvider,
    goes_on_at: CrashPoint,
}

/// System environment with the grant key of the killed process.
struct SameUser;

impl Environment for SameUser {
    fn now(&self) -> Micros {
        System.now()
    }

    fn random(&self) -> [u8; 16] {
        System.random()
    }

    fn grant_key(&self) -> GrantKey {
        OWN_KEY
    }
}

impl Environment for Mortal {
    fn now(&self) -> Micros {
        System.now()
    }

    fn random(&self) -> [u8; 16] {
        System.random()
    }

    fn grant_key(&self) -> GrantKey {
        OWN_KEY
    }

    fn crash_point(&self, point: CrashPoint) {
        if !self.is_armed.load(Ordering::Relaxed) {
            return;
        }
        tell(&format!("passed {point}"));
        if self.point == Some(point) && self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            tell(&format!("killed {point}"));
            kill_process(getpid(), Signal::KILL).unwrap();
            unreachable!("this scenario kills the process");
        }
        if point == self.goes_on_at {
            self.provider.go_on();
        }
    }
}

/// Store, model and engine of a process.
pub(crate) struct World {
    pub(crate) store: Arc<dyn Log>,
    pub(crate) provider: ScriptedProvider,
    pub(crate) engine: Engine,
    directory: PathBuf,
}

impl World {
    /// Creates the world of a process that is not killed.
    pub(crate) fn new(directory: &Path, scenario: Scenario) -> Self {
        let provider = scenario.provider();
        let mut world = Self::with(directory, provider, Arc::new(SameUser)).unwrap();
        world.engine = world.engine.with_summaries_at(scenario.summaries_at());
        world
    }

    fn with(
        directory: &Path,
        provider: ScriptedProvider,
        environment: Arc<dyn Environment>,
    ) -> Result<Self, StoreError> {
        let process = ProcessRecord {
            id: System.draw_process(),
            host: "here".to_owned(),
            pid: std::process::id(),
            started: System.now(),
            machine: None,
            person: None,
        };
        let store = open_log(&place_of(directory), process)?;
        let engine = Engine::new(store.clone(), environment, Arc::new(provider.clone()))
            .with_tools(Arc::new(tools()), Safety::default());
        Ok(Self {
            store,
            provider,
            engine,
            directory: directory.to_owned(),
        })
    }

    fn place(&self) -> &str {
        self.directory.to_str().unwrap()
    }

    /// Returns the agent that was used last in the directory.
    pub(crate) async fn agent(&self) -> AgentRecord {
        self.engine.latest(self.place()).await.unwrap().unwrap()
    }

    /// Returns all rows of an agent.
    pub(crate) async fn rows(&self, agent: AgentId) -> Vec<Row> {
        let query = PageQuery::oldest(Span::new(agent, Seq(1), Seq(10_000)), 10_000);
        self.store.page(query).await.unwrap()
    }

    /// Creates the other agent.
    async fn make_other(&self, root: AgentId) {
        let wish = ForkRequest {
            name: Some(OTHER.to_owned()),
            prompt: None,
            context: ForkContext::Fresh,
            at: None,
            model: None,
            call: None,
            worktree: None,
            seat: ChildSeat::default(),
        };
        let other = self.engine.fork_held(root, &wish).await.unwrap();
        other.release().await.unwrap();
    }

    /// Creates the agent, sets its approval mode and runs the turns of the prologue.
    async fn begin(&self, scenario: Scenario) -> Worker {
        let place = self.place();
        let mut worker = self.engine.create_root(place, place).await.unwrap();
        let agent = worker.agent().state.agent();
        let settings = Settings {
            approve: Some(scenario.approve()),
            ..Settings::default()
        };
        let seq = worker.agent().state.head().next();
        let mut set = Event::set("approve", settings.as_set());
        if let Event::Command { data, .. } = &mut set {
            data.grant = Some(OWN_KEY.tag(agent, seq, &GrantScope::of_settings(&settings)));
        }
        let row = set.into_row(agent, System.now());
        let lease = LeaseClaim {
            epoch: Epoch(1),
            expected: worker.agent().state.head(),
        };
        let head = HeadClaim {
            agent,
            lease: Some(lease),
        };
        let batch = Batch {
            heads: vec![head],
            rows: vec![row],
            ..Batch::default()
        };
        self.store.commit(batch).await.unwrap();
        if scenario.has_other() {
            self.make_other(agent).await;
        }
        for text in scenario.prologue() {
            self.provider.will_say("yes");
            let said = go(&mut worker, scenario, Go::Say(&text)).await.unwrap();
            assert_eq!(said, Outcome::Completed);
        }
        let head = self.store.head(agent).await.unwrap().unwrap();
        tell(&format!("begins {}", head.seq));
        worker
    }
}

/// Step of an agent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Go<'a> {
    Say(&'a str),
    Resume,
    Retry,
}

/// Runs a step with the scenario's front end and prints stored and queued events.
pub(crate) async fn go(
    worker: &mut Worker,
    scenario: Scenario,
    what: Go<'_>,
) -> Result<Outcome, EngineError> {
    let (sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut told = |update: UiEvent| {
        match &update {
            UiEvent::Stored(row) => tell(&format!("stored {}", spelled(row))),
            UiEvent::Queued { text, .. } => tell(&format!("queued {text}")),
            _ => {}
        }
        if let Some(request) = scenario.reply(&update) {
            sender.try_send(request).unwrap();
        }
    };
    let mut desk = FrontEnd::new(&mut receiver, &mut told);
    match what {
        Go::Say(text) => worker.turn(text, &mut desk).await,
        Go::Resume => worker.resume(&mut desk).await,
        Go::Retry => worker.retry(&mut desk).await,
    }
}

/// Entry point of each started process.
#[test]
#[ignore = "a part that another test starts"]
fn plays_a_life() {
    let Some(part) = part() else { return };
    let directory = PathBuf::from(&part[0]);
    let scenario = Scenario::from_name(&part[1]).unwrap();
    let job = AgentJob::from_name(&part[2]).unwrap();
    let point = part[3]
        .parse::<usize>()
        .ok()
        .map(|index| CrashPoint::ALL[index]);
    let provider = scenario.provider();
    let mortal = Arc::new(Mortal {
        point,
        left: AtomicUsize::new(part[4].parse().unwrap()),
        is_armed: AtomicBool::new(false),
        provider: provider.clone(),
        goes_on_at: scenario.goes_on_at(),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();

    let life = async {
        let mut world = World::with(&directory, provider, mortal.clone()).unwrap();
        let engine = world.engine.with_limits(scenario.limits());
        world.engine = engine.with_summaries_at(scenario.summaries_at());
        let mut worker = if job == AgentJob::Say {
            fs::write(directory.join(NOTES), "a note\n").unwrap();
            world.begin(scenario).await
        } else {
            mortal.is_armed.store(true, Ordering::Relaxed);
            take_over(&world).await
        };
        mortal.is_armed.store(true, Ordering::Relaxed);
        scenario.answers(&world.provider);
        let what = match job {
            AgentJob::Say => Go::Say(&scenario.message()),
            AgentJob::Open => return,
            AgentJob::Resume => Go::Resume,
            AgentJob::Retry => Go::Retry,
        };
        go(&mut worker, scenario, what).await.unwrap();
        for request in world.provider.requests() {
            tell(&format!("asked {}", said_in(&request)));
        }
    };
    runtime
        .block_on(async { Box::pin(tokio::time::timeout(PATIENCE, life)).await })
        .expect("a life ends");
}

/// Takes the agent over from a killed process. A child process that it had just forked holds its
/// lock until `exec`, so this retries for microseconds.
pub(crate) async fn take_over(world: &World) -> Worker {
    take_over_one(world, &world.agent().await).await
}

/// Takes any agent over from a killed process.
pub(crate) async fn take_over_one(world: &World, agent: &AgentRecord) -> Worker {
    let until = Instant::now() + PATIENCE;
    loop {
        match world.engine.open(agent).await {
            Err(EngineError::Commit(CommitError::Held { .. })) if Instant::now() < until => {
                std::thread::yield_now();
            }
            opened => return opened.unwrap(),
        }
    }
}
