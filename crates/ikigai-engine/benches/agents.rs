//! Costs of many agents. They are forked in sequence from a long and a short history, and answer in
//! parallel.
//!
//!     cargo bench -p ikigai-engine --bench agents
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench is no part of the program: whatever fails ends it, and it prints figures"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_engine::{AgentLimits, Engine, FrontEnd, System, USER_REQUESTS, UserInput, Worker};
use ikigai_providers::{Demo, Models};
use ikigai_testkit::stores::{Sample, SampleEngine, StoredSample};
use tokio::runtime::Builder;
use tokio::sync::mpsc;

/// Number of forked children, and of those in each median.
const FORKS: usize = 500;
const PART: usize = 100;

/// Number of agents that answer in parallel.
const AT_ONCE: usize = 100;

/// Limits with room for all agents.
const CROWD: AgentLimits = AgentLimits {
    depth: 8,
    children: 1000,
    family: 2000,
    requests: 16,
};

/// Limits: time ratio of forks, and memory per agent after its answer. The ratio applies to 10⁶
/// rows against 10³, and to the last forks against the first.
const MOST_RATIO: f64 = 1.5;
const MOST_KB: usize = 256;

fn main() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let short = forks(Sample::THOUSAND).await;
        let long = forks(Sample::MILLION).await;
        judge(
            "fork at 10⁶ rows to one at 10³",
            ratio(long.last, short.last),
            MOST_RATIO,
        );
        judge(
            "last 100 of 500 forks to the first",
            ratio(long.last, long.first),
            MOST_RATIO,
        );
        at_once().await;
    });
}

/// Median times of the first and last forks of one agent.
struct Forks {
    first: Duration,
    last: Duration,
}

async fn forks(sample: Sample) -> Forks {
    let kept = sample.copy(SampleEngine::Sqlite, "agents");
    let (engine, mut worker) = open(&kept).await;
    let rows = rows(&engine).await;
    let resident = resident_kb();
    let mut times = Vec::new();
    for number in 0..FORKS {
        let begun = Instant::now();
        line(&mut worker, &format!("/fork --name c{number} say hello")).await;
        times.push(begun.elapsed());
        settle(&mut worker).await;
    }
    let grown = resident_kb().saturating_sub(resident) / FORKS;
    let rows = (self::rows(&engine).await - rows) / FORKS;
    let forks = Forks {
        first: median(&times[..PART]),
        last: median(&times[FORKS - PART..]),
    };
    println!(
        "{sample} rows: the first {PART} of {FORKS} forks {:?} each, the last {:?}; \
         {rows} rows and {grown} kB each, answer included",
        forks.first, forks.last
    );
    judge_kb(&format!("each child of {sample} rows"), grown);
    drop((worker, engine));
    kept.remove();
    forks
}

/// Measures agents that answer in parallel, and the latency of another query meanwhile.
async fn at_once() {
    let kept = Sample::THOUSAND.copy(SampleEngine::Sqlite, "agents");
    let (engine, mut worker) = open(&kept).await;
    let resident = resident_kb();
    let begun = Instant::now();
    for number in 0..AT_ONCE {
        line(&mut worker, &format!("/fork --name c{number} say hello")).await;
    }
    let forked = begun.elapsed();
    let mut waited = Duration::ZERO;
    let answering = settle(&mut worker);
    tokio::pin!(answering);
    loop {
        tokio::select! {
            biased;
            () = &mut answering => break,
            () = async {
                let asked = Instant::now();
                engine.agents().await.unwrap();
                waited = waited.max(asked.elapsed());
                tokio::time::sleep(Duration::from_millis(5)).await;
            } => {}
        }
    }
    let took = begun.elapsed();
    let grown = resident_kb().saturating_sub(resident);
    println!(
        "{AT_ONCE} agents at once: forked within {forked:?}, all have answered after {took:?}; \
         {grown} kB; another question meanwhile took {waited:?} at most"
    );
    judge_kb("each of them", grown / AT_ONCE);
    kept.remove();
}

async fn open(kept: &StoredSample) -> (Engine, Worker) {
    let models: Arc<dyn Models> = Arc::new(Demo);
    let engine = Engine::new(kept.open(), Arc::new(System), models).with_crowd(CROWD);
    let agent = engine.reader().agent(kept.agent).await.unwrap();
    let mut worker = engine.open(&agent.unwrap()).await.unwrap();
    worker.choose_model(Demo::choice()).await.unwrap();
    (engine, worker)
}

/// Types a line.
async fn line(worker: &mut Worker, line: &str) {
    let (_sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut tell = |_| {};
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    worker
        .line(UserInput::parse(line), &mut desk)
        .await
        .unwrap();
}

/// Waits until all started agents have answered.
async fn settle(worker: &mut Worker) {
    let (_sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut tell = |_| {};
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    worker.see_children_out(&mut desk).await.unwrap();
}

/// Counts the rows of all agents.
async fn rows(engine: &Engine) -> usize {
    let agents = engine.agents().await.unwrap();
    let heads = agents
        .iter()
        .map(|agent| usize::try_from(agent.head.0).unwrap());
    heads.sum()
}

/// Returns the resident memory of this process.
fn resident_kb() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted[sorted.len() / 2]
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn verdict(is_within: bool) -> &'static str {
    if is_within { "PASS" } else { "over" }
}

fn judge(what: &str, figure: f64, most: f64) {
    let verdict = verdict(figure <= most);
    println!("{verdict}  {what}: {figure:.2}×, at most {most}×");
}

fn judge_kb(what: &str, figure: usize) {
    let verdict = verdict(figure <= MOST_KB);
    println!("{verdict}  {what}: {figure} kB, at most {MOST_KB} kB");
}
