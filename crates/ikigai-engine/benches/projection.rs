//! Cost of the next request. This restores the agent from an open store, reads rows for 100,000
//! tokens and projects the request.
//!
//!     cargo bench -p ikigai-engine --bench projection              absolute figures, by divan
//!     cargo bench -p ikigai-engine --bench projection -- compare   growth, in turns
#![expect(
    clippy::unwrap_used,
    reason = "a bench is no part of the program: whatever fails ends it"
)]

use std::sync::Arc;
use std::time::Instant;

use divan::Bencher;
use ikigai_core::{AgentId, Request};
use ikigai_engine::{Engine, System};
use ikigai_testkit::ScriptedProvider;
use ikigai_testkit::stores::rounds::{Case, rounds};
use ikigai_testkit::stores::{Sample, SampleEngine};
use tokio::runtime::{Builder, Runtime};

const WINDOW_TOKENS: u64 = 100_000;
const ROUNDS: usize = 60;

fn main() {
    if std::env::args().any(|argument| argument == "compare") {
        compare();
    } else {
        divan::main();
    }
}

struct World {
    engine: Engine,
    agent: AgentId,
    runtime: Runtime,
}

impl World {
    fn new(sample: Sample) -> Self {
        let kept = sample.kept(SampleEngine::Sqlite);
        let model = ScriptedProvider::with_window(WINDOW_TOKENS);
        Self {
            engine: Engine::new(kept.open(), Arc::new(System), Arc::new(model)),
            agent: kept.agent,
            runtime: Builder::new_current_thread().build().unwrap(),
        }
    }

    fn next_request(&self) -> Request {
        let request = self.engine.next_request(self.agent);
        self.runtime.block_on(request).unwrap()
    }
}

#[divan::bench(args = Sample::ALL, sample_count = 20)]
fn projection(bencher: Bencher<'_, '_>, sample: Sample) {
    let world = World::new(sample);
    bencher.bench_local(|| world.next_request());
}

fn compare() {
    let worlds = Sample::ALL.map(|sample| (sample, World::new(sample)));
    let cases = worlds.iter().map(|(sample, world)| {
        Case::new(sample, move || {
            let begun = Instant::now();
            let request = world.next_request();
            let took = begun.elapsed();
            drop(request);
            took
        })
    });
    let figures = rounds(ROUNDS, cases.collect());
    figures.print("projection: restore, read 100,000 tokens, make the request");
    // Samples with fewer rows than the window holds are not comparable.
    figures.judge("projection", &Sample::MILLION, &Sample::TEN_THOUSAND, 1.2);
}
