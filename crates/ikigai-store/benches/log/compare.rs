//! Growth: the sizes take turns, so that their ratios hold on a noisy machine too.

use std::sync::Arc;

use ikigai_store::Log;
use ikigai_testkit::stores::rounds::{Case, Figures, rounds};
use ikigai_testkit::stores::{Sample, SampleEngine};

use crate::measured::{Forker, World, timed};
use crate::{append, crowd, search, watch};

const ROUNDS: usize = 500;
const ROUNDS_PER_OPENING: usize = 20;

type Compare = fn(SampleEngine);

/// Runs the comparison of this name, or all, on one engine or on each in sequence.
pub(crate) fn run(name: Option<&str>, engine: Option<&str>) {
    let all: [(&str, Compare); 10] = [
        ("append", append::compare),
        ("group", crowd::group),
        ("path", path),
        ("first-page", first_page),
        ("whole-path", whole_path),
        ("fork", fork),
        ("start", crowd::start),
        ("watch", watch::compare),
        ("search", search::compare),
        ("connections", crowd::connections),
    ];
    for (_, compare) in all
        .iter()
        .filter(|(it, _)| name.is_none_or(|name| name == *it))
    {
        let wanted =
            |on: &SampleEngine| engine.is_none_or(|it| on.to_string().eq_ignore_ascii_case(it));
        for on in SampleEngine::ALL.into_iter().filter(wanted) {
            println!("\n# {on}");
            compare(on);
        }
    }
}

fn worlds(on: SampleEngine, samples: &[Sample]) -> Vec<(Sample, World)> {
    samples
        .iter()
        .map(|sample| (*sample, World::new(sample.kept(on))))
        .collect()
}

/// Prints all sizes, then judges each large one against the small one alone.
///
/// With all in one round, each would find the CPU caches full of the others.
fn growth(what: &str, title: &str, measure: impl Fn(&[Sample]) -> Figures) {
    measure(&Sample::ALL).print(title);
    for (sample, most) in [(Sample::MILLION, 1.2), (Sample::BENT, 1.5)] {
        let figures = measure(&[Sample::THOUSAND, sample]);
        figures.print(title);
        figures.judge(what, &sample, &Sample::THOUSAND, most);
    }
}

fn path(on: SampleEngine) {
    growth(
        "path",
        "path: an agent restored from an open store",
        |samples| {
            on_open_stores(on, samples, ROUNDS * 4, |world, store| {
                world.restore(store);
            })
        },
    );
}

fn whole_path(on: SampleEngine) {
    let figures = on_open_stores(on, &Sample::ALL, ROUNDS / 20, |world, store| {
        world.whole_path(store);
    });
    figures.print("the whole path, which no start reads");
}

fn on_open_stores(
    on: SampleEngine,
    samples: &[Sample],
    count: usize,
    does: impl Fn(&World, &dyn Log),
) -> Figures {
    let worlds = worlds(on, samples);
    let cases = worlds.iter().map(|(sample, world)| {
        let does = &does;
        let mut store = None;
        let mut left = 0;
        Case::new(sample, move || {
            if left == 0 {
                // A thread's wake-up time depends on its CPU, so each store is reopened
                // regularly to get a new thread.
                store = None;
                let opened = world.kept.open();
                does(world, &*opened);
                store = Some(opened);
                left = ROUNDS_PER_OPENING;
            }
            left -= 1;
            let store: &Arc<dyn Log> = store.as_ref().unwrap();
            timed(|| does(world, &**store))
        })
    });
    rounds(count, cases.collect())
}

fn first_page(on: SampleEngine) {
    growth(
        "first page",
        "first page: open, restore, 50 rows",
        |samples| {
            let worlds = worlds(on, samples);
            let cases = worlds
                .iter()
                .map(|(sample, world)| Case::new(sample, move || timed(|| world.first_page())));
            rounds(ROUNDS, cases.collect())
        },
    );
}

fn fork(on: SampleEngine) {
    let samples = [Sample::TEN].into_iter().chain(Sample::ALL);
    let worlds: Vec<_> = samples
        .map(|sample| (sample, World::new(sample.copy(on, "fork"))))
        .collect();
    let cases = worlds.iter().map(|(sample, world)| {
        let mut forker = Forker::new(world);
        Case::new(sample, move || forker.fork())
    });
    let figures = rounds(ROUNDS, cases.collect());
    figures.print("fork: its rows decided and stored");
    figures.judge("fork", &Sample::MILLION, &Sample::TEN, 1.2);
    for (_, world) in worlds {
        world.kept.remove();
    }
}
