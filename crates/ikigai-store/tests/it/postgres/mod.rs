//! What only the PostgreSQL engine promises, on real servers.

mod asking;
mod conformance;
mod listening;
mod opening;
mod portable;
mod searching;
mod secure;

use ikigai_store::StoreError;
use ikigai_store::postgres::{OpenOptions, PostgresStore, Url};
use ikigai_testkit::postgres::Database;

use crate::support::process;

/// Opens a store as a process of tests.
pub(crate) fn open(database: &Database, number: u64) -> Result<PostgresStore, StoreError> {
    let url = Url::parse(&database.url()).unwrap();
    PostgresStore::open(OpenOptions::new(url, process(number)))
}
