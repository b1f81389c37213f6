//! The search index of PostgreSQL: it follows the log and can be rebuilt.
//!
//! It misses no row that several processes write.

use ikigai_core::find::Words;
use ikigai_core::{Epoch, Seq};
use ikigai_store::postgres::PostgresStore;
use ikigai_store::{Admin, Batch, Log, ReadLog, SearchPage, SearchQuery};
use ikigai_testkit::block_on;
use ikigai_testkit::postgres::Database;

use super::open;
use crate::support::{agent, claim, create, make_agent, only, said, say};

fn search(store: &PostgresStore, typed: &str) -> SearchPage {
    let query = SearchQuery {
        words: Words::parse(typed),
        limit: 5,
        ..SearchQuery::default()
    };
    block_on(store.search(query)).unwrap()
}

fn hits(store: &PostgresStore, typed: &str) -> Vec<u64> {
    let page = search(store, typed);
    assert!(!page.cut, "{page:?}");
    page.hits.iter().map(|hit| hit.at.seq.0).collect()
}

/// Returns the number of rows in the index.
fn indexed(database: &Database) -> String {
    let rows = database.sql("SELECT count(*) FROM search");
    rows[0][0].clone().unwrap()
}

/// Returns a store of one agent with rows of these texts.
fn store_of(database: &Database, texts: impl Iterator<Item = String>) -> PostgresStore {
    let store = open(database, 1).unwrap();
    make_agent(&store, agent(1));
    let batch = Batch {
        heads: vec![claim(agent(1), Epoch(1), Seq(0))],
        rows: texts.map(|text| said(agent(1), &text)).collect(),
        with: Vec::new(),
    };
    block_on(store.commit(batch)).unwrap();
    store
}

fn numbered(rows: u64) -> impl Iterator<Item = String> {
    (1..=rows).map(|n| format!("word n{n}"))
}

#[test]
fn an_append_leaves_the_index_behind_and_a_search_catches_up() {
    let database = Database::fresh();
    let store = store_of(&database, numbered(2500));

    let left = block_on(store.index_chunk()).unwrap();

    // The idle writer may have indexed more meanwhile.
    assert!(left <= 1476, "{left}");
    assert_eq!(hits(&store, "n2500"), [2500]);
    assert_eq!(indexed(&database), "2500");
    assert_eq!(hits(&store, "word"), [2500, 2499, 2498, 2497, 2496]);
    assert_eq!(block_on(store.index_chunk()).unwrap(), 0);
}

#[test]
fn rare_and_common_words_are_found_however_old_they_are() {
    let database = Database::fresh();
    let store = store_of(&database, numbered(6000));

    assert_eq!(hits(&store, "n1"), [1]);
    assert_eq!(hits(&store, "\"word n3000\""), [3000]);
    assert_eq!(hits(&store, "word"), [6000, 5999, 5998, 5997, 5996]);
    assert_eq!(hits(&store, "n10*"), [1099, 1098, 1097, 1096, 1095]);
    let mut query = SearchQuery {
        words: Words::parse("n1*"),
        limit: 500,
        ..SearchQuery::default()
    };
    let mut found = 0;
    loop {
        let page = block_on(store.search(query.clone())).unwrap();
        found += page.hits.len();
        query.cursor = page.next;
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!(found, 1 + 10 + 100 + 1000);
}

#[test]
fn an_index_that_is_thrown_away_is_made_again_of_the_log() {
    let database = Database::fresh();
    let store = store_of(&database, numbered(300));
    let before = search(&store, "n299 word");

    assert_eq!(block_on(store.reset_index()).unwrap(), 300);

    assert_eq!(search(&store, "n299 word"), before);
    assert_eq!(before.hits.len(), 1);
}

#[test]
fn words_that_may_go_on_are_whole_ones_when_that_takes_too_long() {
    let database = Database::fresh();
    let store = store_of(&database, numbered(3000));
    assert_eq!(hits(&store, "n299*"), [2999, 2998, 2997, 2996, 2995]);

    store.faults().slow_search();
    let page = search(&store, "n299*");

    let rows: Vec<_> = page.hits.iter().map(|hit| hit.at.seq).collect();
    assert!(page.whole_words && !page.cut, "{page:?}");
    assert_eq!(rows, [Seq(299)]);
}

/// A row that draws its id first and commits last is found.
#[test]
fn a_row_that_is_committed_after_a_later_one_is_found() {
    let database = Database::fresh();
    let store = store_of(&database, numbered(1));
    block_on(store.commit(only(create(agent(2), None)))).unwrap();
    // Draws an id as an uncommitted transaction does.
    let drawn = database.sql("SELECT nextval('messages_id_seq')");
    let drawn = drawn[0][0].clone().unwrap();
    block_on(store.commit(say(agent(1), Epoch(1), Seq(1), "later"))).unwrap();
    assert_eq!(hits(&store, "later"), [2]);

    database.sql(&format!(
        "INSERT INTO messages (id, agent, seq, kind, control, created_at, content)
             OVERRIDING SYSTEM VALUE
             SELECT {drawn}, id, 1, 'user', false, 1, 'earlier' FROM agents WHERE uuid = '{0}';
         UPDATE heads SET seq = 1 WHERE agent = (SELECT id FROM agents WHERE uuid = '{0}')",
        agent(2)
    ));

    assert_eq!(hits(&store, "earlier"), [1]);
}

/// A missing row does not block indexing.
#[test]
fn a_gap_in_the_log_does_not_hold_the_index_up() {
    let database = Database::fresh();
    let store = store_of(&database, numbered(5));
    database.sql("DELETE FROM messages WHERE seq = 5");

    assert_eq!(hits(&store, "word"), [4, 3, 2, 1]);
    assert_eq!(block_on(store.index_chunk()).unwrap(), 0);
}

#[test]
fn more_words_than_the_server_takes_are_no_error() {
    let database = Database::fresh();
    let many = (0..200_000)
        .map(|n| format!("w{n}"))
        .collect::<Vec<_>>()
        .join(" ");
    let often = format!("{}last words", "again ".repeat(50_000));
    let texts = [many, often, "x".repeat(100_000)];
    let store = store_of(&database, texts.into_iter());

    assert_eq!(hits(&store, "w7"), [1]);
    assert_eq!(hits(&store, "\"last words\""), [2]);
    assert_eq!(hits(&store, &"x".repeat(100_000)), [3]);
}

#[test]
fn two_processes_fill_one_index_at_once() {
    let database = Database::fresh();
    let one = store_of(&database, numbered(3000));
    let other = open(&database, 2).unwrap();

    std::thread::scope(|scope| {
        let searching = [&one, &other].map(|store| scope.spawn(|| hits(store, "n1")));
        for found in searching {
            assert_eq!(found.join().unwrap(), [1]);
        }
    });

    assert_eq!(indexed(&database), "3000");
}

/// An idle writer fills the index.
#[test]
fn an_idle_writer_fills_the_index() {
    let database = Database::fresh();
    let _store = store_of(&database, numbered(2000));

    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while indexed(&database) != "2000" {
        assert!(std::time::Instant::now() < deadline, "it is never filled");
        database.sql("SELECT pg_sleep(0.1)");
    }
}

#[test]
fn a_phrase_is_found_also_where_the_places_of_its_words_cannot_be_told() {
    let database = Database::fresh();
    // PostgreSQL keeps word positions up to 16,383.
    let words: Vec<String> = numbered(10_000).collect();
    let long = format!("{} brown bear", words.join(" "));
    let short = ["a brown bear", "a bear that is brown"];
    let store = store_of(&database, short.into_iter().map(str::to_owned));

    assert_eq!(hits(&store, "\"brown bear\""), [1]);
    block_on(store.commit(say(agent(1), Epoch(1), Seq(2), &long))).unwrap();

    assert_eq!(hits(&store, "\"brown bear\""), [3, 1]);
}
