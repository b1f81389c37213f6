//! What is told of a store, and in which order, whichever engine keeps it.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{blob_hashes, put_bytes};

/// Name and columns of what is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [&'static str],
}

const SESSIONS: Told = Told {
    name: "session",
    columns: &["uuid", "created_at", "name", "directory"],
};

const AGENTS: Told = Told {
    name: "agent",
    columns: &[
        "uuid",
        "session",
        "parent",
        "fork_agent",
        "fork_seq",
        "created_at",
        "status",
        "name",
        "epoch",
    ],
};

const ROWS: Told = Told {
    name: "row",
    columns: &[
        "agent",
        "seq",
        "kind",
        "control",
        "created_at",
        "content",
        "data",
    ],
};

const MAIL: Told = Told {
    name: "mail",
    columns: &[
        "uuid",
        "receiver",
        "sender",
        "sent_at",
        "state",
        "shown_agent",
        "shown_seq",
        "text",
    ],
};

const RUNS: Told = Told {
    name: "run",
    columns: &[
        "uuid", "agent", "seq", "class", "started", "deadline", "ended",
    ],
};

const DRAFTS: Told = Told {
    name: "draft",
    columns: &["agent", "part", "at", "text"],
};

/// How an engine asks for what is told of some agents; `all_sessions` also for those without any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selects {
    pub(crate) sessions: &'static str,
    pub(crate) all_sessions: &'static str,
    pub(crate) agents: &'static str,
    pub(crate) rows: &'static str,
    pub(crate) mail: &'static str,
    pub(crate) runs: &'static str,
    pub(crate) drafts: &'static str,
}

impl Selects {
    /// What is told, each after what it refers to, and how it is asked for.
    pub(crate) fn in_order(self, is_all: bool) -> [(Told, &'static str); 6] {
        let sessions = if is_all {
            self.all_sessions
        } else {
            self.sessions
        };
        [
            (SESSIONS, sessions),
            (AGENTS, self.agents),
            (ROWS, self.rows),
            (MAIL, self.mail),
            (RUNS, self.runs),
            (DRAFTS, self.drafts),
        ]
    }
}

/// What was told so far.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    rows: u64,
    blobs: HashSet<String>,
}

impl Telling {
    /// Makes a line of values, which stand in the order of the columns; those that are null are
    /// left out. Also says which blobs must be told before it.
    pub(crate) fn line(&mut self, told: Told, values: Vec<Value>) -> (Vec<String>, Value) {
        let mut fields = Map::new();
        for (name, value) in told.columns.iter().zip(values) {
            if !value.is_null() {
                fields.insert((*name).to_owned(), value);
            }
        }
        let mut blobs = Vec::new();
        if told.name == ROWS.name {
            self.rows += 1;
            let data = fields.get("data").and_then(Value::as_str);
            blobs = blob_hashes(data);
            blobs.retain(|hash| self.is_new_blob(hash));
        }
        (blobs, json!({ told.name: fields }))
    }

    /// Says whether a blob was not told yet, and remembers it.
    pub(crate) fn is_new_blob(&mut self, hash: &str) -> bool {
        self.blobs.insert(hash.to_owned())
    }

    /// The last line.
    pub(crate) fn end(&self) -> Value {
        json!({ "end": { "rows": self.rows } })
    }
}

/// The first line.
pub(crate) fn header() -> Value {
    json!({ super::HEADER_NAME: super::VERSION })
}

/// One part of a blob.
pub(crate) fn blob_line(hash: &str, part: i64, bytes: &[u8]) -> Value {
    let mut fields = Map::new();
    fields.insert("hash".to_owned(), hash.into());
    fields.insert("part".to_owned(), part.into());
    put_bytes(&mut fields, bytes);
    json!({ "blob": fields })
}
