//! Tables and columns of a dump, in order, for both engines.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{blob_hashes, put_bytes};

/// Name and columns of one kind of line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExportTable {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [&'static str],
}

const SESSIONS: ExportTable = ExportTable {
    name: "session",
    columns: &["uuid", "created_at", "name", "directory", "machine", "host"],
};

const AGENTS: ExportTable = ExportTable {
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

const ROWS: ExportTable = ExportTable {
    name: "row",
    columns: &[
        "agent",
        "seq",
        "kind",
        "control",
        "created_at",
        "content",
        "data",
        "author",
    ],
};

const MAIL: ExportTable = ExportTable {
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
        "origin",
        "about",
        "process",
        "author",
    ],
};

const RUNS: ExportTable = ExportTable {
    name: "run",
    columns: &[
        "uuid", "agent", "seq", "class", "started", "deadline", "ended",
    ],
};

const DRAFTS: ExportTable = ExportTable {
    name: "draft",
    columns: &["agent", "part", "at", "text"],
};

/// Queries of an engine for the lines of some agents; `all_sessions` includes empty ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExportQueries {
    pub(crate) sessions: &'static str,
    pub(crate) all_sessions: &'static str,
    pub(crate) agents: &'static str,
    pub(crate) rows: &'static str,
    pub(crate) mail: &'static str,
    pub(crate) runs: &'static str,
    pub(crate) drafts: &'static str,
}

impl ExportQueries {
    /// Returns all tables with their queries, each after the tables it refers to.
    pub(crate) fn in_order(self, is_all: bool) -> [(ExportTable, &'static str); 6] {
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

/// State of a dump.
#[derive(Debug, Default)]
pub(crate) struct Exporter {
    rows: u64,
    blobs: HashSet<String>,
}

impl Exporter {
    /// Builds a line from column values, without nulls; also returns the blobs that must precede
    /// it.
    pub(crate) fn line(&mut self, table: ExportTable, values: Vec<Value>) -> (Vec<String>, Value) {
        let mut fields = Map::new();
        for (name, value) in table.columns.iter().zip(values) {
            if !value.is_null() {
                fields.insert((*name).to_owned(), value);
            }
        }
        let mut blobs = Vec::new();
        if table.name == ROWS.name {
            self.rows += 1;
            let data = fields.get("data").and_then(Value::as_str);
            blobs = blob_hashes(data);
            blobs.retain(|hash| self.is_new_blob(hash));
        }
        (blobs, json!({ table.name: fields }))
    }

    /// Returns true if a blob is new, and records it.
    pub(crate) fn is_new_blob(&mut self, hash: &str) -> bool {
        self.blobs.insert(hash.to_owned())
    }

    /// Makes the last line.
    pub(crate) fn end(&self) -> Value {
        json!({ "end": { "rows": self.rows } })
    }
}

/// Makes the first line.
pub(crate) fn header() -> Value {
    json!({ super::HEADER_NAME: super::VERSION })
}

/// Makes the line of one part of a blob.
pub(crate) fn blob_line(hash: &str, part: i64, bytes: &[u8]) -> Value {
    let mut fields = Map::new();
    fields.insert("hash".to_owned(), hash.into());
    fields.insert("part".to_owned(), part.into());
    put_bytes(&mut fields, bytes);
    json!({ "blob": fields })
}
