//! Dump format: a log as lines of JSON, each with a name.
//!
//! The first line states the version; the last one counts the rows, which reveals a truncated file.
//! The lines between them are `session`, `agent`, `blob`, `row`, `mail`, `run` and `draft`, each
//! after the lines it refers to, except for fork points and references in data.

pub(crate) mod dump_reader;
pub(crate) mod export_schema;

use ikigai_core::AgentId;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::error::StoreError;
use crate::records::BlobHash;

/// Key of the first line, and the version of the format.
pub const HEADER_NAME: &str = "ikigai-log";
pub const VERSION: u64 = 9;

/// Oldest readable version: its rows have no grants.
const OLDEST_VERSION: u64 = 1;

/// Limit of a line: a row and its data, escaped.
pub const MOST_LINE_BYTES: usize = 256 * 1024 * 1024;

/// Stores into which a log may be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreMode {
    /// Any store that has none of the dumped agents.
    Merge,
    /// An empty store only.
    EmptyOnly,
}

/// Summary of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// The agents.
    pub agents: Vec<AgentId>,
    /// Number of rows.
    pub rows: u64,
}

/// Reason why a restore failed. Nothing was restored.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// A line is malformed.
    #[error("line {line}: {reason}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// The mistake.
        reason: String,
    },
    /// The store is not empty.
    #[error("the database is not empty")]
    NotEmpty,
    /// The file is truncated.
    #[error("the file is incomplete: its last line is missing")]
    Cut,
    /// The file cannot be read.
    #[error("cannot read the file")]
    Read(#[source] std::io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Finds the hashes of blobs in the data of a row.
pub(crate) fn blob_hashes(data: Option<&str>) -> Vec<String> {
    // Most rows name none, and need not be parsed.
    let Some(data) = data.filter(|data| data.contains("\"hash\"")) else {
        return Vec::new();
    };
    let Ok(value) = serde_json::from_str::<Value>(data) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut left = vec![&value];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(values) => left.extend(values),
            Value::Object(fields) => {
                let hash = fields.get("hash").and_then(Value::as_str);
                let hash = hash.filter(|hash| hash.parse::<BlobHash>().is_ok());
                found.extend(hash.map(str::to_ascii_lowercase));
                left.extend(fields.values());
            }
            _ => {}
        }
    }
    found
}

/// Adds bytes to a line: as text, if they are valid UTF-8.
pub(crate) fn put_bytes(fields: &mut Map<String, Value>, bytes: &[u8]) {
    use std::fmt::Write as _;
    if let Ok(text) = std::str::from_utf8(bytes) {
        fields.insert("text".to_owned(), text.into());
        return;
    }
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(hex, "{byte:02x}");
    }
    fields.insert("hex".to_owned(), hex.into());
}

/// Reads bytes from a line.
pub(crate) fn take_bytes(fields: &Map<String, Value>) -> Option<Vec<u8>> {
    if let Some(text) = fields.get("text") {
        return text.as_str().map(|text| text.as_bytes().to_vec());
    }
    from_hex(fields.get("hex")?.as_str()?)
}

/// Decodes hexadecimal digits.
pub(crate) fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            let pair = std::str::from_utf8(pair)
                .ok()
                .filter(|pair| pair.len() == 2)?;
            u8::from_str_radix(pair, 16).ok()
        })
        .collect()
}
