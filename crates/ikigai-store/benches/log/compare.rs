//! Growth: the sizes take turns, so that their ratios hold on a noisy machine too.

use ikigai_store::SqliteStore;
use ikigai_testkit::stores::Sample;
use ikigai_testkit::stores::rounds::{Case, Figures, rounds};

use crate::measured::{Forker, World, timed};
use crate::{append, watch};

const ROUNDS: usize = 500;
const ROUNDS_PER_OPENING: usize = 20;

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

fn judge_growth(what: &str, figures: &Figures) {
    for (sample, most) in [(Sample::MILLION, 1.2), (Sample::BENT, 1.5)] {
        figures.judge(what, &sample, &Sample::THOUSAND, most);
    }
}

fn path() {
    let figures = on_open_stores(ROUNDS * 4, |world, store| {
        world.restore(store);
    });
    figures.print("path: an agent restored from an open store");
    judge_growth("path", &figures);
}

fn whole_path() {
    let figures = on_open_stores(ROUNDS / 20, |world, store| {
        world.whole_path(store);
    });
    figures.print("the whole path, which no start reads");
}

fn on_open_stores(count: usize, does: impl Fn(&World, &SqliteStore)) -> Figures {
    let worlds = worlds();
    let cases = worlds.iter().map(|(sample, world)| {
        let does = &does;
        let mut store = None;
        let mut left = 0;
        Case::new(sample, move || {
            if left == 0 {
                // How fast a thread is woken depends on where it happens to run, so that no store
                // may keep its thread for the whole time.
                store = None;
                let opened = world.kept.open();
                does(world, &opened);
                store = Some(opened);
                left = ROUNDS_PER_OPENING;
            }
            left -= 1;
            let store = store.as_ref().unwrap();
            timed(|| does(world, store))
        })
    });
    rounds(count, cases.collect())
}

fn first_page() {
    let worlds = worlds();
    let cases = worlds
        .iter()
        .map(|(sample, world)| Case::new(sample, move || timed(|| world.first_page())));
    let figures = rounds(ROUNDS, cases.collect());
    figures.print("first page: open, restore, 50 rows");
    judge_growth("first page", &figures);
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
    let figures = rounds(ROUNDS, cases.collect());
    figures.print("fork: its rows decided and stored");
    figures.judge("fork", &Sample::MILLION, &Sample::TEN, 1.2);
    for (_, world) in worlds {
        world.kept.remove();
    }
}
