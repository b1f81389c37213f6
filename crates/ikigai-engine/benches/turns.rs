//! Cost of a turn after a short, a long and a very long history. Also measures the share of each
//! request in common with the previous one, over a day of 500 turns.
//!
//!     cargo bench -p ikigai-engine --bench turns
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench is no part of the program: whatever fails ends it, and it prints figures"
)]

use std::sync::Arc;
use std::time::Instant;

use ikigai_core::Request;
use ikigai_engine::{Engine, FrontEnd, System, USER_REQUESTS, Worker};
use ikigai_testkit::stores::rounds::{Case, rounds};
use ikigai_testkit::stores::{Sample, SampleEngine, StoredSample};
use ikigai_testkit::{IdSource, MemoryStore, ScriptedProvider};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

/// Window of the model.
const WINDOW_TOKENS: u64 = 100_000;
const ROUNDS: usize = 60;

/// Turns of a day, and words per message and answer.
const DAY: usize = 500;
const WORDS: usize = 400;

/// Window of the pruned day.
const PRUNED_TOKENS: u64 = 40_000;

/// Minimum share of bytes that a provider's cache has seen, in percent. Without pruning, the prefix
/// never changes. With it, 40 turns fill the window and a cut leaves 24, so every 16th request
/// begins anew: 93.75 is the maximum.
const LEAST_FREE: f64 = 100.0;
const LEAST_PRUNED: f64 = 90.0;

fn main() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    turns();
    let free = day(&runtime, u64::MAX);
    let pruned = day(&runtime, PRUNED_TOKENS);
    println!("\nprefix: bytes of a request that are those of the one before, day of {DAY} turns");
    judge("all of it sent", &free, LEAST_FREE);
    judge("pruned at 40,000 tokens", &pruned, LEAST_PRUNED);
}

/// Live agent of a sample.
struct Living {
    runtime: Runtime,
    provider: ScriptedProvider,
    worker: Worker,
}

impl Living {
    fn new(kept: &StoredSample) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let provider = ScriptedProvider::with_window(WINDOW_TOKENS);
        let engine = Engine::new(kept.open(), Arc::new(System), Arc::new(provider.clone()));
        let worker = runtime.block_on(async {
            let agents = engine.agents().await.unwrap();
            let agent = agents.iter().find(|agent| agent.id == kept.agent).unwrap();
            engine.open(agent).await.unwrap()
        });
        let mut living = Self {
            runtime,
            provider,
            worker,
        };
        // The first turn reads the window and may cut it; only later turns are measured.
        living.turn();
        living
    }

    fn turn(&mut self) {
        self.provider.will_say("yes");
        self.runtime.block_on(say(&mut self.worker, "go on"));
    }
}

fn turns() {
    let samples = [Sample::HUNDRED, Sample::TEN_THOUSAND, Sample::MILLION];
    let kept = samples.map(|sample| (sample, sample.copy(SampleEngine::Sqlite, "turns")));
    let cases = kept.iter().map(|(sample, kept)| {
        let mut living = Living::new(kept);
        Case::new(sample, move || {
            let begun = Instant::now();
            living.turn();
            begun.elapsed()
        })
    });
    let figures = rounds(ROUNDS, cases.collect());
    figures.print("turn: a message stored, the request made, the answer stored");
    figures.judge("turn", &Sample::MILLION, &Sample::TEN_THOUSAND, 1.2);
    for (_, kept) in kept {
        kept.remove();
    }
}

/// Runs a day and returns its requests.
fn day(runtime: &Runtime, window: u64) -> Vec<Request> {
    let provider = ScriptedProvider::with_window(window);
    let store = MemoryStore::new(IdSource::new(1).process());
    let engine = Engine::new(
        Arc::new(store),
        Arc::new(System),
        Arc::new(provider.clone()),
    );
    runtime.block_on(async {
        let mut worker = engine.create_root("/work", "/work").await.unwrap();
        for turn in 0..DAY {
            provider.will_say(&format!("answer {turn} {}", "word ".repeat(WORDS)));
            say(
                &mut worker,
                &format!("question {turn} {}", "word ".repeat(WORDS)),
            )
            .await;
        }
    });
    provider.requests()
}

fn judge(what: &str, requests: &[Request], least: f64) {
    let bodies: Vec<_> = requests
        .iter()
        .map(|request| serde_json::to_vec(&request.messages).unwrap())
        .collect();
    let (mut same, mut all, mut moved) = (0, 0, 0);
    for pair in bodies.windows(2) {
        // Ignore the closing bracket, where the next request continues.
        let before = &pair[0][..pair[0].len() - 1];
        let common = before.iter().zip(&pair[1]).take_while(|(a, b)| a == b);
        let common = common.count();
        moved += usize::from(common < before.len());
        same += common;
        all += before.len();
    }
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    let share = same as f64 * 100.0 / all as f64;
    let verdict = if share >= least { "PASS" } else { "over" };
    println!("{verdict}  {what}: {share:.1} %, at least {least} %; the window moved {moved} times");
}

async fn say(worker: &mut Worker, text: &str) {
    let (_sender, mut receiver) = mpsc::channel(USER_REQUESTS);
    let mut tell = |_| {};
    let mut desk = FrontEnd::new(&mut receiver, &mut tell);
    worker.turn(text, &mut desk).await.unwrap();
}
