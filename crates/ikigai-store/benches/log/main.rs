//! Costs of the log at several sizes.
//!
//!     cargo bench -p ikigai-store --bench log      absolute figures of SQLite, by divan
//!     … -- compare [NAME [sqlite|postgresql]]      growth and ratios, in turns
//!
//! `scripts/bench` runs both kinds of all benches.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench is no part of the program: it prints, and whatever fails ends it"
)]

mod append;
mod compare;
mod crowd;
mod measured;
mod search;
mod watch;

use divan::Bencher;
use ikigai_testkit::stores::{Sample, SampleEngine};

use measured::{Forker, World};

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|it| it != "--bench");
    match arguments.next().as_deref() {
        Some("compare") => {
            let (name, engine) = (arguments.next(), arguments.next());
            compare::run(name.as_deref(), engine.as_deref());
        }
        Some("watcher") => {
            let (place, agent) = (arguments.next().unwrap(), arguments.next().unwrap());
            watch::watcher(&place, agent.parse().unwrap());
        }
        _ => divan::main(),
    }
}

/// Restores an agent from an open store.
#[divan::bench(args = Sample::ALL)]
fn path(bencher: Bencher<'_, '_>, sample: Sample) {
    let world = World::new(sample.kept(SampleEngine::Sqlite));
    let store = world.kept.open();
    bencher.bench_local(|| world.restore(&*store));
}

/// Opens a store, restores the agent and reads its newest rows.
#[divan::bench(args = Sample::ALL)]
fn first_page(bencher: Bencher<'_, '_>, sample: Sample) {
    let world = World::new(sample.kept(SampleEngine::Sqlite));
    bencher.bench_local(|| world.first_page());
}

/// Follows the path to its root, as a rewind into inherited rows and a cut do.
#[divan::bench(args = Sample::ALL, sample_count = 10)]
fn whole_path(bencher: Bencher<'_, '_>, sample: Sample) {
    let world = World::new(sample.kept(SampleEngine::Sqlite));
    let store = world.kept.open();
    bencher.bench_local(|| world.whole_path(&*store));
}

/// Decides and stores a fork.
#[divan::bench(args = [Sample::TEN, Sample::THOUSAND, Sample::MILLION], sample_size = 1)]
fn fork(bencher: Bencher<'_, '_>, sample: Sample) {
    let world = World::new(sample.copy(SampleEngine::Sqlite, "divan"));
    let mut forker = Forker::new(&world);
    bencher.bench_local(|| forker.fork());
    drop(forker);
    world.kept.remove();
}
