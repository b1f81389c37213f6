//! Checks after a process was killed and another one started on the same log.

use std::fs;
use std::path::Path;

use ikigai_core::data::{
    self, AssistantData, CommandData, InterruptedData, ToolCallData, ToolResultData,
};
use ikigai_core::project::project;
use ikigai_core::{AgentId, Budget, Event, Kind, Micros, Row, RowRef, Seq, StoredKind, Target};
use ikigai_engine::{CrashPoint, EngineError, Outcome, Worker};
use ikigai_providers::dialect::{Order, Quirks};
use ikigai_providers::dialects;
use ikigai_store::{Agent, AgentRecord, RunRecord, Status};
use ikigai_testkit::wire;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::life::{Go, Told, World, go, spelled, take_over, take_over_one};
use super::scenario::{EFFECTS, SAID, SUMMARY, Scenario, tools};

type Check = fn(&Value) -> Result<(), String>;

const DIALECTS: [(&str, Check); 4] = [
    ("responses", wire::responses::check),
    ("chat", wire::chat::check),
    ("messages", wire::messages::check),
    ("gemini", wire::gemini::check),
];

/// Working directory of processes; dropping it kills those still running.
pub(crate) struct Ground {
    directory: TempDir,
}

/// File with the address of a log on a server.
const ADDRESS: &str = "address";

/// Returns the location of a ground's log.
pub(crate) fn place_of(directory: &Path) -> String {
    let file = || directory.join("log.db").to_str().unwrap().to_owned();
    fs::read_to_string(directory.join(ADDRESS)).unwrap_or_else(|_| file())
}

impl Ground {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory }
    }

    /// Creates a ground with its log on a server.
    pub(crate) fn shared(url: &str) -> Self {
        let ground = Self::new();
        fs::write(ground.path().join(ADDRESS), url).unwrap();
        ground
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the lines that effects appended.
    pub(crate) fn effects(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path().join(EFFECTS)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns the running processes in this directory, where all calls start.
    pub(crate) fn living(&self) -> Vec<i32> {
        let numbers = fs::read_dir("/proc").unwrap().flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers
            .filter(|pid| {
                let at = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
                at.starts_with(self.path())
            })
            .collect()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        for pid in self.living().into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// State after a restart: rows found and rows that settlement added.
pub(crate) struct Restart {
    pub(crate) world: World,
    pub(crate) worker: Worker,
    scenario: Scenario,
    /// Rows of the turn before the restart.
    pub(crate) found: Vec<Row>,
    /// Rows that settlement added.
    pub(crate) settled: Vec<Row>,
    queued: Vec<String>,
}

impl Restart {
    /// Takes the agent over after `lives` and checks all invariants.
    pub(crate) async fn on(ground: &Ground, scenario: Scenario, lives: &[Told]) -> Self {
        let world = World::new(ground.path(), scenario);
        let agent = world.agent().await.id;
        let before = world.rows(agent).await;
        for told in lives {
            are_there(told, &before);
        }
        let draft = world.store.draft(agent).await.unwrap();
        let draft = draft.map(|draft| draft.text);
        let passed = |point| lives.iter().any(|told| told.passed().contains(&point));
        let ends = [
            CrashPoint::AfterAnswerStored.word(),
            CrashPoint::AfterSettlementStored.word(),
        ];
        let ended = ends.into_iter().any(passed);
        if scenario == Scenario::Text && passed(CrashPoint::AfterDraftStored.word()) && !ended {
            assert_eq!(draft.as_deref(), Some(SAID));
        }
        let runs = world.store.open_runs(agent).await.unwrap();

        // `/resume all` takes over the children that a wait is for.
        let agents = world.store.agents(None).await.unwrap();
        let is_child = |other: &&AgentRecord| other.parent.is_some();
        for child in agents.iter().filter(is_child) {
            if child.status == Status::Running {
                let child = take_over_one(&world, child).await;
                child.release().await.unwrap();
            }
        }
        let mailed = !world.store.queued_mail(agent).await.unwrap().is_empty();
        let worker = take_over(&world).await;

        let after = world.rows(agent).await;
        assert_eq!(after[..before.len()], before, "a row was rewritten");
        assert!(world.provider.requests().is_empty(), "sent by itself");
        assert!(ground.living().is_empty(), "a process was left");
        assert_eq!(world.store.draft(agent).await.unwrap(), None);
        assert!(world.store.open_runs(agent).await.unwrap().is_empty());
        let begun = lives.iter().find_map(Told::begun_after).unwrap_or(Seq(0));
        let begun = usize::try_from(begun.0).unwrap();
        let restart = Self {
            found: after[begun..before.len()].to_vec(),
            settled: after[before.len()..].to_vec(),
            queued: lives
                .iter()
                .flat_map(Told::queued)
                .map(str::to_owned)
                .collect(),
            world,
            worker,
            scenario,
        };
        let mut said = restart
            .settled
            .iter()
            .filter(|row| is(row, Kind::Assistant));
        assert_eq!(said.next().and_then(|row| row.content.clone()), draft);
        let expected = settlement(scenario, &restart.found, draft, &runs, mailed);
        assert_eq!(restart.settled_shape(), expected);
        restart.is_sendable(!expected.is_empty()).await;
        restart.is_whole().await;
        restart
    }

    /// E6: checks that effects on other agents exist if and only if their results do.
    async fn is_whole(&self) {
        let store = &self.world.store;
        let rows = self.found.iter().chain(&self.settled);
        let ran = rows.filter(|row| word(row) == "tool_result:ran").count();
        let agents = store.agents(None).await.unwrap();
        let others = || agents.iter().filter(|agent| agent.parent.is_some());
        let mail = |to: AgentId| store.mail(to);
        match self.scenario {
            Scenario::Fork => assert_eq!(others().count(), ran),
            Scenario::Kill => {
                let dead = others().filter(|other| other.status == Status::Dead);
                assert_eq!(dead.count(), ran);
            }
            Scenario::Send => {
                let to = others().map(|other| other.id).next().unwrap();
                assert_eq!(mail(to).await.unwrap().len(), ran);
            }
            Scenario::Wait => {
                let mail = mail(self.agent()).await.unwrap();
                let delivered = mail.iter().filter(|mail| mail.shown_by.is_some());
                let answered = if ran == 2 { mail.len() } else { 0 };
                assert_eq!(
                    delivered.count(),
                    answered,
                    "handed over by the result alone"
                );
            }
            _ => {}
        }
    }

    pub(crate) fn found_shape(&self) -> String {
        shape(&self.found)
    }

    pub(crate) fn settled_shape(&self) -> String {
        shape(&self.settled)
    }

    fn agent(&self) -> AgentId {
        self.worker.agent().state.agent()
    }

    /// Resumes the turn, or sends a message if there is none; returns true if resumed. The model
    /// answers in both cases.
    pub(crate) async fn go_on(&mut self) -> bool {
        for _ in 0..3 {
            self.world.provider.will_say("done");
            self.world.provider.will_summarise_as(SUMMARY);
        }
        let before = self.world.rows(self.agent()).await.len();
        let outcome = go(&mut self.worker, self.scenario, Go::Resume).await;
        let resumed = !matches!(outcome, Err(EngineError::NothingToResume));
        let outcome = match outcome {
            Err(EngineError::NothingToResume) => {
                let rows = self.world.rows(self.agent()).await;
                assert_eq!(rows.len(), before, "nothing was stored for nothing");
                go(&mut self.worker, self.scenario, Go::Say("go on")).await
            }
            other => other,
        };
        assert_eq!(outcome.unwrap(), Outcome::Completed);
        let rows = self.world.rows(self.agent()).await;
        let last = rows.iter().rfind(|row| is(row, Kind::Assistant)).unwrap();
        assert_eq!(last.content.as_deref(), Some("done"));
        for text in &self.queued {
            let said = rows
                .iter()
                .filter(|row| is(row, Kind::User) && row.content.as_deref() == Some(text.as_str()));
            assert_eq!(said.count(), 1, "`{text}` was queued");
        }
        assert_eq!(self.worker.agent().view, self.restored().await.view);
        self.is_sendable(false).await;
        resumed
    }

    /// Restores the agent from the log.
    async fn restored(&self) -> Agent {
        let store = &*self.world.store;
        let mut agent = Agent::restore(store, self.agent()).await.unwrap();
        agent.know_all(store).await.unwrap();
        agent.read_all(store).await.unwrap();
        agent
    }

    /// Checks that every dialect accepts the history, as it is and with another message.
    async fn is_sendable(&self, is_unanswered: bool) {
        let mut agent = self.restored().await;
        for (dialect, check) in DIALECTS {
            match encoded(&agent, dialect) {
                Some(body) => assert_eq!(check(&body), Ok(()), "{dialect}: {body}"),
                None => assert!(!is_unanswered, "there is something to answer"),
            }
        }
        let said = Event::user("and then?").into_row(self.agent(), Micros(1));
        let at = RowRef::new(self.agent(), agent.state.head().next());
        let row = Row {
            at,
            kind: StoredKind::Known(said.kind),
            content: said.content,
            data: said.data,
            created_at: said.created_at,
            author: None,
        };
        agent.apply(&*self.world.store, row).await.unwrap();
        for (dialect, check) in DIALECTS {
            let body = encoded(&agent, dialect).unwrap();
            assert_eq!(check(&body), Ok(()), "{dialect}: {body}");
        }
    }
}

/// Checks that rows reported as stored are in the log, unchanged.
fn are_there(told: &Told, rows: &[Row]) {
    let rows: Vec<_> = rows.iter().map(spelled).collect();
    for stored in told.stored() {
        assert!(rows.iter().any(|row| row == stored), "lost: {stored}");
    }
}

fn encoded(agent: &Agent, dialect: &str) -> Option<Value> {
    let target = Target {
        provider: dialect.to_owned(),
        model: "model".to_owned(),
        tools: tools().iter().map(|tool| tool.spec()).collect(),
        ..Target::default()
    };
    let budget = Budget::new(1_000_000, None);
    let request = project(&agent.state, &agent.view, &target, &budget).ok()?;
    Some(dialects::by_name(dialect).unwrap().encode(&Order {
        request: &request,
        model: "model",
        thinking: None,
        max_output: 4_000,
        cache_key: "conversation",
        quirks: Quirks::default(),
    }))
}

/// N2c E16a: returns the rows that settlement must add.
fn settlement(
    scenario: Scenario,
    found: &[Row],
    draft: Option<String>,
    runs: &[RunRecord],
    mailed: bool,
) -> String {
    if !is_unfinished(found) {
        assert_eq!((draft, runs), (None, &[][..]), "a turn that is over");
        return String::new();
    }
    let mut rows: Vec<_> = draft.iter().map(|_| "assistant:interrupted").collect();
    for call in open_calls(found) {
        let of_call = |row: &Row| data::read::<CommandData>(row.data.as_deref()).of == Some(call);
        let answered = found
            .iter()
            .any(|row| is(row, Kind::Command) && of_call(row));
        if runs.iter().any(|run| run.call == call) {
            rows.push("tool_result:unknown");
        } else if scenario == Scenario::Wait && is_wait(found, call) {
            // A wait with mail is answered, one without a child is refused, others stay open.
            let forked = found.iter().any(|row| is(row, Kind::Fork));
            match (forked, mailed) {
                (false, _) => rows.push("tool_result:refused"),
                (true, true) => rows.push("tool_result:ran"),
                (true, false) => {}
            }
        } else if scenario != Scenario::Question || answered {
            rows.push("tool_result:interrupted");
        }
    }
    rows.push("interrupted:crash");
    rows.join(" ")
}

fn is_wait(found: &[Row], call: RowRef) -> bool {
    let row = found.iter().find(|row| row.at == call);
    let data: ToolCallData = data::read(row.and_then(|row| row.data.as_deref()));
    data.name.as_deref() == Some("wait")
}

fn is_unfinished(found: &[Row]) -> bool {
    let tells = |row: &&Row| match row.kind.read_as() {
        Some(Kind::Usage | Kind::Summary | Kind::Process) => false,
        Some(Kind::Command) => data::read::<CommandData>(row.data.as_deref()).resume == Some(true),
        _ => true,
    };
    found.iter().rfind(tells).is_some_and(|last| {
        let over = [Kind::Assistant, Kind::Interrupted, Kind::Error];
        !over.iter().any(|kind| is(last, *kind))
    })
}

/// Returns the calls since the newest message that have no result.
fn open_calls(found: &[Row]) -> Vec<RowRef> {
    let since = found.iter().rposition(|row| is(row, Kind::User));
    let since = &found[since.unwrap_or(0)..];
    let results: Vec<_> = since
        .iter()
        .filter(|row| is(row, Kind::ToolResult))
        .filter_map(|row| data::read::<ToolResultData>(row.data.as_deref()).call)
        .collect();
    let calls = since.iter().filter(|row| is(row, Kind::ToolCall));
    let calls = calls.map(|row| row.at);
    calls.filter(|call| !results.contains(call)).collect()
}

pub(crate) fn is(row: &Row, kind: Kind) -> bool {
    row.kind.read_as() == Some(kind)
}

/// Formats rows as words: kind, and verdict, cause or command.
fn shape(rows: &[Row]) -> String {
    let words: Vec<_> = rows.iter().map(word).collect();
    words.join(" ")
}

fn word(row: &Row) -> String {
    let data = row.data.as_deref();
    let name = row.kind.name();
    let more = match row.kind.read_as() {
        Some(Kind::Assistant) => data::read::<AssistantData>(data)
            .stop
            .filter(|stop| stop == "interrupted"),
        Some(Kind::ToolResult) => data::read::<ToolResultData>(data)
            .verdict
            .map(|verdict| format!("{verdict:?}").to_lowercase()),
        Some(Kind::Interrupted) => data::read::<InterruptedData>(data)
            .cause
            .map(|cause| format!("{cause:?}").to_lowercase()),
        Some(Kind::Command) => data::read::<CommandData>(data).command,
        _ => None,
    };
    more.map_or_else(|| name.to_owned(), |more| format!("{name}:{more}"))
}
