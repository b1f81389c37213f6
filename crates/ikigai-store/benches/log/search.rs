//! Searching a million rows for the newest 50.

use std::time::{Duration, Instant};

use ikigai_core::Kind;
use ikigai_core::find::Words;
use ikigai_store::{SearchQuery, SortOrder};
use ikigai_testkit::stores::rounds::{Case, judge, rounds};
use ikigai_testkit::stores::{Sample, SampleEngine};

use crate::measured::{World, timed};

const ROUNDS: usize = 50;
const HITS: usize = 50;

/// Interval between progress lines while the index is built.
const PROGRESS: Duration = Duration::from_secs(10);

fn most_millis(on: SampleEngine) -> f64 {
    match on {
        SampleEngine::Sqlite => 50.0,
        SampleEngine::Postgres => 200.0,
    }
}

/// Each line is judged alone; the index is filled before, once for each kept store.
pub(crate) fn compare(on: SampleEngine) {
    let world = World::new(Sample::MILLION.kept(on));
    let store = world.kept.open();
    let begun = Instant::now();
    let mut told = begun;
    loop {
        let left = world.runtime.block_on(store.index_chunk()).unwrap();
        if left == 0 {
            break;
        }
        if told.elapsed() > PROGRESS {
            told = Instant::now();
            eprintln!("the index is filled: {left} rows are left");
        }
    }
    println!(
        "\nthe index was filled within {} s",
        begun.elapsed().as_secs()
    );
    let of = |typed: &str| SearchQuery {
        words: Words::parse(typed),
        limit: HITS,
        ..SearchQuery::default()
    };
    let queries = [
        ("a word of most rows", of("function")),
        ("two of them", of("function error")),
        ("a phrase of two", of("\"returns error\"")),
        ("a phrase of four", of("\"the agent reads file\"")),
        ("a rare word", of("module_4711")),
        ("a rare and a common word", of("4711 function")),
        ("no such word", of("nowhere")),
        (
            "a common word of one kind",
            SearchQuery {
                kinds: vec![Kind::ToolResult],
                ..of("function")
            },
        ),
        (
            "a rare word, the best first",
            SearchQuery {
                order: SortOrder::Relevance,
                ..of("4711")
            },
        ),
    ];
    let cases = queries.iter().map(|(name, query)| {
        let (world, store) = (&world, &store);
        Case::new(name, move || {
            timed(|| world.runtime.block_on(store.search(query.clone())).unwrap())
        })
    });
    let figures = rounds(ROUNDS, cases.collect());
    figures.print("search: the newest 50 of 10⁶ rows");
    for (name, _) in &queries {
        let millis = figures.median(name).as_secs_f64() * 1e3;
        judge(&format!("search, {name}"), millis, most_millis(on), " ms");
    }
    for typed in ["f*", "mod*", "47*"] {
        let begun = Instant::now();
        let page = world.runtime.block_on(store.search(of(typed))).unwrap();
        let millis = begun.elapsed().as_millis();
        let whole = if page.whole_words {
            ", as whole words"
        } else {
            ""
        };
        println!(
            "      search, {typed}: {} hits in {millis} ms{whole}",
            page.hits.len()
        );
    }
}
