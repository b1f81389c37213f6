//! Conventions that both SQL engines share.

use std::fmt::Write as _;

use ikigai_core::PersonName;

/// Statements from each schema version to the next; the first creates version 1.
pub type Migrations = &'static [&'static str];

/// Converts a number for a column; saturates, so that a larger number is never found.
pub(crate) fn to_stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a limit for a `LIMIT` clause.
pub(crate) fn stored_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Returns the tag of an author in the search index, in hexadecimal, without word separators.
pub(crate) fn author_tag(author: &PersonName) -> String {
    let mut tag = String::from("p");
    for byte in author.as_str().bytes() {
        let _ = write!(tag, "{byte:02x}");
    }
    tag
}

/// Limit of requests that are read at a time.
pub(crate) const MOST_REQUESTS: usize = 64;

/// Builds the query for requests to holders of agents from its condition.
macro_rules! requests_sql {
    ($condition:literal) => {
        concat!(
            "SELECT r.uuid, a.uuid, r.author, r.sent_at, r.expires_at, r.state, r.body, r.answer
             FROM requests r JOIN agents a ON a.id = r.agent ",
            $condition
        )
    };
}

pub(crate) use requests_sql;

/// Builds the query for agent records from its condition.
///
/// Further columns follow those of the record.
macro_rules! agents_sql {
    ($condition:literal) => {
        $crate::sql_common::agents_sql!("", $condition)
    };
    ($columns:expr, $condition:expr) => {
        concat!(
            "SELECT a.uuid, a.name, s.uuid, parent.uuid, forked.uuid, a.fork_seq, a.status,
                    a.created_at, h.seq, m.created_at, p.uuid, p.pid, p.started, p.host,
                    p.machine, p.person ",
            $columns,
            " FROM agents a
             JOIN sessions s ON s.id = a.session
             JOIN heads h ON h.agent = a.id
             LEFT JOIN agents parent ON parent.id = a.parent
             LEFT JOIN agents forked ON forked.id = a.fork_agent
             LEFT JOIN messages m ON m.agent = a.id AND m.seq = h.seq
             LEFT JOIN processes p ON p.id = h.owner ",
            $condition
        )
    };
}

pub(crate) use agents_sql;
