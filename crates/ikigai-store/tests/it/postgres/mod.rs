//! Tests of the PostgreSQL engine on real servers.

mod asking;
mod chaos;
mod conformance;
mod faults;
mod listening;
mod opening;
mod outcome;
mod parity;
mod portable;
mod processes;
mod reporting;
mod searching;
mod secure;

use ikigai_core::find::Words;
use ikigai_core::{Epoch, Seq};
use ikigai_store::postgres::{PostgresOptions, PostgresStore, Url};
use ikigai_store::{Log, ReadLog, SearchQuery, StoreError};
use ikigai_testkit::block_on;
use ikigai_testkit::postgres::Database;

use crate::support::{agent, make_agent, process, say, texts};

/// Opens a store as a process of tests.
pub(crate) fn open(database: &Database, number: u64) -> Result<PostgresStore, StoreError> {
    let url = Url::parse(&database.url()).unwrap();
    PostgresStore::open(PostgresOptions::new(url, process(number)))
}

/// Creates an agent, writes, searches, watches and reads.
pub(crate) fn works(store: &PostgresStore) {
    make_agent(store, agent(1));
    block_on(store.commit(say(agent(1), Epoch(1), Seq(0), "a word"))).unwrap();
    let query = SearchQuery {
        words: Words::parse("word"),
        limit: 2,
        ..SearchQuery::default()
    };
    let page = block_on(store.search(query)).unwrap();
    assert_eq!((page.hits.len(), page.cut), (1, false));
    store.watch().unwrap();
    assert_eq!(texts(store), ["a word"]);
}

/// Reads all records of a store's first agent.
pub(crate) fn reads_all(store: &PostgresStore) {
    block_on(async {
        store.head(agent(1)).await.unwrap().unwrap();
        store.restore_point(agent(1), 10).await.unwrap().unwrap();
        store.agents(None).await.unwrap();
        store.pulse().await.unwrap();
        store.queued_mail(agent(1)).await.unwrap();
        store.draft(agent(1)).await.unwrap();
    });
}
