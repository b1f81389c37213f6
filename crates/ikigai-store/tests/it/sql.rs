//! User queries in SQL on SQLite.

use std::time::Duration;

use ikigai_store::Admin as _;
use ikigai_store::sql::{QueryError, QueryLimits};

use crate::support::{Disk, open};

/// SQLite ends a query itself, so that none is left in its thread.
///
/// The query takes far less than the time after which the caller stops waiting for SQLite.
#[test]
fn sqlite_ends_a_query_at_its_deadline() {
    let disk = Disk::new();
    let store = open(&disk.path, 1).unwrap();
    let counting = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 20000) \
                    SELECT count(*) FROM c";
    let limits = |time| QueryLimits { rows: 1, time };

    let ended = store.query(counting, limits(Duration::ZERO));
    let finished = store.query(counting, limits(Duration::from_mins(1)));

    assert!(matches!(ended, Err(QueryError::TimedOut(_))), "{ended:?}");
    assert!(finished.is_ok(), "{finished:?}");
}
