//! Growth: the sizes take turns, so that their ratios hold on a noisy machine too.

use ikigai_store::SqliteStore;
use ikigai_testkit::stores::Sample;
use ikigai_testkit::stores::rounds::{Case, Medians, judge, rounds};

use crate::measured::{Forker, World, timed};
use crate::{append, watch};

const ROUNDS: usize = 500;

/// Compares what has this name, or everything.
pub(crate) fn run(name: Option<&str>) {
    let all: [(&str, fn()); 6] = [
        ("append", append::compare),
        ("path", path),
        ("first-page", first_page),
        ("whole-path", whole_path),
        ("fork", fork),
        ("watch", watch::compare),
    ];
    for (_, compare) in all
        .iter()
        .filter(|(it, _)| name.is_none_or(|name| name == *it))
    {
        compare();
    }
}

fn worlds() -> Vec<(Sample, World)> {
    Sample::ALL
        .iter()
        .map(|sample| (*sample, World::new(sample.kept())))
        .collect()
}

fn judge_growth(what: &str, medians: &Medians) {
    let base = Sample::THOUSAND;
    for (sample, most) in [(Sample::MILLION, 1.2), (Sample::BENT, 1.5)] {
        let ratio = medians.ratio(&sample, &base);
        judge(
            &format!("{what} at {sample} / at {base} rows"),
            ratio,
            most,
            "×",
        );
    }
}

fn path() {
    let medians = on_open_stores(ROUNDS * 4, |world, store| {
        world.restore(store);
    });
    medians.print("path: an agent restored from an open store");
    judge_growth("path", &medians);
}

fn whole_path() {
    let medians = on_open_stores(ROUNDS / 20, |world, store| {
        world.whole_path(store);
    });
    medians.print("the whole path, which no start reads");
}

fn on_open_stores(count: usize, does: impl Fn(&World, &SqliteStore)) -> Medians {
    let opened: Vec<_> = worlds()
        .into_iter()
        .map(|(sample, world)| (sample, world.kept.open(), world))
        .collect();
    let cases = opened.iter().map(|(sample, store, world)| {
        let does = &does;
        Case::new(sample, move || timed(|| does(world, store)))
    });
    rounds(count, cases.collect())
}

fn first_page() {
    let worlds = worlds();
    let cases = worlds
        .iter()
        .map(|(sample, world)| Case::new(sample, move || timed(|| world.first_page())));
    let medians = rounds(ROUNDS, cases.collect());
    medians.print("first page: open, restore, 50 rows");
    judge_growth("first page", &medians);
}

fn fork() {
    let samples = [Sample::TEN].into_iter().chain(Sample::ALL);
    let worlds: Vec<_> = samples
        .map(|sample| (sample, World::new(sample.copy("fork"))))
        .collect();
    let cases = worlds.iter().map(|(sample, world)| {
        let mut forker = Forker::new(world);
        Case::new(sample, move || forker.fork())
    });
    let medians = rounds(ROUNDS, cases.collect());
    medians.print("fork: its rows decided and stored");
    let ratio = medians.ratio(&Sample::MILLION, &Sample::TEN);
    judge("fork at 10⁶ / at 10 rows", ratio, 1.2, "×");
    for (_, world) in worlds {
        world.kept.remove();
    }
}
