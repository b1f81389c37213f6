//! Crash matrix: kills a process at every step of a turn and starts another. The log is a real file
//! or on a real server.

mod life;
mod restart;
mod scenario;
mod table;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::unix::process::ExitStatusExt;

use ikigai_core::Kind;
use ikigai_core::data::{self, ToolResultData, Verdict};
use ikigai_engine::CrashPoint;
use ikigai_testkit::cases;
use ikigai_testkit::postgres::Database;

use life::{AgentJob, Life, Told, said_in};
use restart::{Ground, Restart, is};
use scenario::Scenario;
use table::{Case, Then};

/// Step between the cases that the short profile runs on a server. Starting takes longer there.
const SHARED_STEP: usize = 8;

/// Runs lives on a new ground, one after another.
fn live(scenario: Scenario, lives: &[Life]) -> (Ground, Vec<Told>) {
    let ground = Ground::new();
    let told = live_on(&ground, scenario, lives);
    (ground, told)
}

fn live_on(ground: &Ground, scenario: Scenario, lives: &[Life]) -> Vec<Told> {
    let told = lives.iter().map(|life| life.live(ground.path(), scenario));
    told.collect()
}

/// Returns true if every effect happened at most once.
fn is_each_once(effects: &[String]) -> bool {
    let different: BTreeSet<_> = effects.iter().collect();
    different.len() == effects.len()
}

/// Laws 1, 3 and 7: a process killed at any point loses nothing that it had reported. It leaves a
/// history that every provider accepts and no processes, and nothing happens twice.
#[tokio::test]
async fn a_process_killed_at_any_point_is_followed_by_one_that_knows_all() {
    for case in table::cases() {
        Box::pin(die_and_follow(case, &Ground::new())).await;
    }
}

/// The same holds with the log on a server. The short profile runs a subset that varies by process
/// id.
#[test]
fn a_process_killed_at_any_point_leaves_a_shared_log_whole() {
    let database = Database::fresh();
    let first = std::process::id() as usize % SHARED_STEP;
    let (first, step) = if cases(0, 1) == 0 {
        (first, SHARED_STEP)
    } else {
        (0, 1)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let cases = table::cases().into_iter().enumerate();
    for (number, case) in cases.skip(first).step_by(step) {
        let ground = Ground::shared(&database.schema_url(&format!("log{number}")));
        runtime.block_on(die_and_follow(case, &ground));
    }
}

async fn die_and_follow(case: Case, ground: &Ground) {
    let (scenario, name) = (case.scenario, format!("{case:?}"));

    let told = live_on(ground, scenario, &case.lives);
    let mut restart = Restart::on(ground, scenario, &told).await;

    let seen = (restart.found_shape(), restart.settled_shape());
    assert_eq!(seen, (case.found, case.settled), "{name}");
    let effects = ground.effects();
    let expected = case.effects.unwrap_or(effects.len());
    assert_eq!(effects.len(), expected, "{name}");
    let resumed = restart.go_on().await;
    assert_eq!(resumed, case.then != Then::Nothing, "{name}");
    let more = usize::from(case.then == Then::Happens);
    assert_eq!(ground.effects().len(), effects.len() + more, "{name}");
    assert!(is_each_once(&ground.effects()), "{name}");
}

/// A crash point that is added to the engine needs a case in the matrix.
#[test]
fn the_matrix_kills_at_every_point() {
    let cases = table::cases();
    let lives = cases.iter().flat_map(|case| &case.lives);
    let killed: HashSet<_> = lives.filter_map(|life| life.point).collect();

    for point in CrashPoint::ALL {
        assert!(killed.contains(&point), "{point}");
    }
}

/// A process killed at any passing of a point, and again at settlement, loses nothing. The long
/// profile tries each passing in each scenario, the short one only one per scenario.
#[tokio::test]
async fn a_process_killed_at_any_passing_is_followed_by_one_that_knows_all() {
    for scenario in Scenario::ALL {
        let mut lives = passings(scenario);
        if cases(0, 1) == 0 {
            lives = vec![lives[lives.len() / 2]];
        }
        for life in lives {
            let again = Life::until(AgentJob::Open, CrashPoint::BeforeSettlementStored);
            let ground = Ground::new();
            let mut told = vec![life.live(ground.path(), scenario)];
            // Some turns need no settlement; that life then ends by itself.
            told.push(again.play(ground.path(), scenario));

            let mut restart = Restart::on(&ground, scenario, &told).await;
            restart.go_on().await;

            assert!(is_each_once(&ground.effects()), "{scenario:?} {life:?}");
        }
    }
}

/// E2d: after a kill around a context row, the next process sends an unbroken process's request.
#[tokio::test]
async fn a_process_killed_at_a_context_row_is_followed_by_the_same_request() {
    let scenarios = [
        (Scenario::Elide, "the elision is stored"),
        (Scenario::InnerSummary, "the summary is stored"),
        (Scenario::InnerCut, "the window is cut"),
        (Scenario::Cut, "the window is cut"),
    ];
    for (scenario, point) in scenarios {
        let ground = Ground::new();
        let unbroken = Life::whole(AgentJob::Say).play(ground.path(), scenario);
        let expected = *unbroken.asked().last().unwrap();
        let moments = [
            "before the request".to_owned(),
            "after the request".to_owned(),
        ];
        let moments = moments
            .into_iter()
            .chain([format!("before {point}"), format!("after {point}")]);
        for moment in moments {
            let point = moment.parse().unwrap();
            let last = unbroken
                .passed()
                .iter()
                .filter(|one| **one == moment)
                .count();
            let life = Life {
                job: AgentJob::Say,
                point: Some(point),
                nth: last,
            };
            let (ground, told) = live(scenario, &[life]);
            let mut restart = Restart::on(&ground, scenario, &told).await;
            restart.go_on().await;

            let requests = restart.world.provider.requests();
            let sent = said_in(requests.last().unwrap());
            assert_eq!(sent, expected, "{scenario:?} {moment}");
        }
    }
}

/// Returns a life for each passing of a point in a scenario.
fn passings(scenario: Scenario) -> Vec<Life> {
    let ground = Ground::new();
    let told = Life::whole(AgentJob::Say).play(ground.path(), scenario);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lives = Vec::new();
    for passed in told.passed() {
        let nth = counts.entry(passed).or_default();
        *nth += 1;
        let point = passed.parse().ok();
        lives.push(Life {
            job: AgentJob::Say,
            point,
            nth: *nth,
        });
    }
    assert!(!lives.is_empty(), "{scenario:?}: {:?}", told.status());
    lives
}

/// Returns the results that settlement added.
fn results(restart: &Restart) -> Vec<ToolResultData> {
    let rows = restart.settled.iter();
    let results = rows.filter(|row| is(row, Kind::ToolResult));
    results.map(|row| data::read(row.data.as_deref())).collect()
}

/// E9a: after a crash every unfinished turn is settled, and nothing is sent or run unasked.
#[tokio::test]
async fn restart_settles_and_sends_nothing() {
    let stages = [
        (Scenario::Text, CrashPoint::AfterDraftStored),
        (Scenario::Call, CrashPoint::AfterAnswerStored),
        (Scenario::Call, CrashPoint::AfterCallJournalled),
        (Scenario::Call, CrashPoint::AfterResultStored),
    ];
    for (scenario, point) in stages {
        let (ground, told) = live(scenario, &[Life::until(AgentJob::Say, point)]);
        let before = ground.effects();

        let restart = Restart::on(&ground, scenario, &told).await;

        assert!(
            restart.settled_shape().ends_with("interrupted:crash"),
            "{point}"
        );
        assert!(restart.world.provider.requests().is_empty(), "{point}");
        assert_eq!(ground.effects(), before, "{point}");
    }
}

/// E16a: a call is journalled before it starts, except a read-only one. Settlement gives journalled
/// calls the verdict unknown, others interrupted, and runs none again.
#[tokio::test]
async fn journalled_call_is_settled_as_unknown() {
    let journalled = Life::until(AgentJob::Say, CrashPoint::AfterCallJournalled);
    let (ground, told) = live(Scenario::Parallel, &[journalled]);

    let mut restart = Restart::on(&ground, Scenario::Parallel, &told).await;
    let results = results(&restart);
    let effects = ground.effects();
    restart.go_on().await;

    let results: Vec<_> = results
        .iter()
        .map(|result| (result.name.as_deref().unwrap(), result.verdict.unwrap()))
        .collect();
    let expected = [
        ("file_read", Verdict::Interrupted),
        ("append", Verdict::Unknown),
        ("append", Verdict::Unknown),
        ("bash", Verdict::Interrupted),
    ];
    assert_eq!(results, expected);
    assert_eq!(ground.effects(), effects, "nothing was run again");
}

/// E16b: settlement ends all processes with the cookie of a run, also those outside its session.
/// The result states how many there were.
#[tokio::test]
async fn settlement_ends_cookie_processes() {
    let ground = Ground::new();
    let told = Life::whole(AgentJob::Say).play(ground.path(), Scenario::Murder);
    assert_eq!(told.status().signal(), Some(9));
    let left = ground.living().len();

    let restart = Restart::on(&ground, Scenario::Murder, &[told]).await;

    assert_eq!(left, 2, "one in the call's session and one outside");
    let said = results(&restart)[0].output.clone().unwrap();
    assert!(said.contains("2 processes were still running"), "{said}");
    let (ground, told) = live(
        Scenario::Call,
        &[Life::until(AgentJob::Say, CrashPoint::BeforeResultStored)],
    );
    let restart = Restart::on(&ground, Scenario::Call, &told).await;
    let said = results(&restart)[0].output.clone().unwrap();
    assert!(said.contains("No process was left"), "{said}");
}
