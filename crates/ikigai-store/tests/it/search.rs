//! The search index of SQLite: it follows the log, can be rebuilt, and may be incomplete.

use std::path::Path;
use std::time::{Duration, Instant};

use ikigai_core::find::{Words, tokens};
use ikigai_core::{Epoch, Seq};
use ikigai_store::sqlite::{MIGRATIONS, Migrations};
use ikigai_store::{Admin, Batch, Log, ReadLog, SearchPage, SearchQuery, SqliteStore};
use ikigai_testkit::block_on;
use rusqlite::Connection;

use crate::support::{Disk, agent, claim, is_long, make_agent, make_old, open, said};

fn search(store: &SqliteStore, typed: &str) -> SearchPage {
    let query = SearchQuery {
        words: Words::parse(typed),
        limit: 5,
        ..SearchQuery::default()
    };
    block_on(store.search(query)).unwrap()
}

fn hits(store: &SqliteStore, typed: &str) -> Vec<u64> {
    let page = search(store, typed);
    page.hits.iter().map(|hit| hit.at.seq.0).collect()
}

/// Returns the last row of the search index and the last row of the log.
fn watermark(path: &Path) -> (i64, i64) {
    let connection = Connection::open(path).unwrap();
    let both = "SELECT message, (SELECT max(id) FROM messages) FROM search_upto";
    let read = connection.query_row(both, [], |row| Ok((row.get(0)?, row.get(1)?)));
    read.unwrap()
}

/// Returns a store of one agent with `rows` rows, each with `word` and its own number.
fn store_of(disk: &Disk, rows: u64) -> SqliteStore {
    let store = open(&disk.path, 1).unwrap();
    make_agent(&store, agent(1));
    let batch = Batch {
        heads: vec![claim(agent(1), Epoch(1), Seq(0))],
        rows: (1..=rows)
            .map(|n| said(agent(1), &format!("word n{n}")))
            .collect(),
        with: Vec::new(),
    };
    block_on(store.commit(batch)).unwrap();
    store
}

#[test]
fn an_append_leaves_the_index_behind_and_a_search_catches_up() {
    let disk = Disk::new();
    let store = store_of(&disk, 2500);
    assert_eq!(watermark(&disk.path), (0, 2500));

    let left = block_on(store.index_chunk()).unwrap();

    assert_eq!((left, watermark(&disk.path)), (1476, (1024, 2500)));
    assert_eq!(hits(&store, "n2500"), [2500]);
    assert_eq!(watermark(&disk.path), (2500, 2500));
    assert_eq!(hits(&store, "word"), [2500, 2499, 2498, 2497, 2496]);
    assert_eq!(block_on(store.index_chunk()).unwrap(), 0);
}

#[test]
fn an_index_that_is_thrown_away_is_made_again_of_the_log() {
    let disk = Disk::new();
    let store = store_of(&disk, 300);
    let before = search(&store, "n299 word");

    assert_eq!(block_on(store.reset_index()).unwrap(), 300);

    assert_eq!(watermark(&disk.path).0, 0);
    assert_eq!(search(&store, "n299 word"), before);
    assert_eq!(before.hits.len(), 1);
    let damage = block_on(store.integrity()).unwrap();
    assert_eq!(damage, [""; 0]);
}

#[test]
fn a_store_without_an_index_gets_one() {
    const BEFORE: Migrations = MIGRATIONS.split_at(4).0;
    let disk = Disk::new();
    drop(make_old(&disk.path, BEFORE, "an old word"));

    let store = open(&disk.path, 2).unwrap();

    assert_eq!(hits(&store, "word"), [1]);
}

#[test]
fn words_that_may_go_on_are_whole_ones_when_that_takes_too_long() {
    let disk = Disk::new();
    let store = store_of(&disk, 3000);
    assert_eq!(hits(&store, "wor*").len(), 5);
    assert_eq!(hits(&store, "n299*"), [2999, 2998, 2997, 2996, 2995]);

    store.faults().slow_search();
    let page = search(&store, "n299*");

    let rows: Vec<_> = page.hits.iter().map(|hit| hit.at.seq).collect();
    assert!(page.whole_words && !page.cut, "{page:?}");
    assert_eq!(rows, [Seq(299)]);
}

/// On a full disk, searches still return the rows that the index covers.
#[test]
fn an_index_that_cannot_grow_is_asked_as_far_as_it_goes() {
    let disk = Disk::new();
    let store = store_of(&disk, 100);
    assert_eq!(hits(&store, "n7"), [7]);
    let more = Batch {
        heads: vec![claim(agent(1), Epoch(1), Seq(100))],
        rows: (101..3000)
            .map(|n| said(agent(1), &format!("new{n} m{n}")))
            .collect(),
        with: Vec::new(),
    };
    block_on(store.commit(more)).unwrap();

    store.faults().limit_pages(1);
    let page = search(&store, "n7");
    let missing = search(&store, "new101");

    assert_eq!((page.hits.len(), page.cut), (1, true));
    assert_eq!((missing.hits.len(), missing.cut), (0, true));
    store.faults().limit_pages(0);
    assert_eq!(hits(&store, "new101"), [101]);
}

/// Core highlights the same letters that SQLite's tokenizer matches.
#[test]
fn letters_are_compared_as_sqlite_does() {
    let disk = Disk::new();
    let store = open(&disk.path, 1).unwrap();
    drop(store);
    let connection = Connection::open(&disk.path).unwrap();
    connection
        .execute_batch("CREATE VIRTUAL TABLE temp.seen USING fts5vocab (main, search, instance)")
        .unwrap();
    for code in (1..0x180).chain(0x300..0x304).chain(0x400..0x460) {
        let letter = char::from_u32(code).unwrap();
        let text = format!("x{letter}y");
        connection
            .execute(
                "INSERT INTO search (rowid, text) VALUES (?1, ?2)",
                (code + 1, &text),
            )
            .unwrap();
        let mut seen = connection
            .prepare_cached("SELECT term FROM temp.seen WHERE doc = ?1 ORDER BY offset")
            .unwrap();
        let theirs: Vec<String> = seen
            .query_map([code + 1], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let ours: Vec<String> = tokens(&text).map(|token| token.folded).collect();
        assert_eq!(ours, theirs, "U+{code:04X} {letter}");
    }
}

/// An idle writer fills the index.
#[test]
fn an_idle_writer_fills_the_index() {
    if !is_long() {
        return;
    }
    let disk = Disk::new();
    let _store = store_of(&disk, 3000);

    let deadline = Instant::now() + Duration::from_mins(1);
    while watermark(&disk.path) != (3000, 3000) {
        assert!(Instant::now() < deadline, "the index is never filled");
        std::thread::yield_now();
    }
}
