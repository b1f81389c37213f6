//! Import of the C program's database, converted to a dump; see [`crate::portable`].
//!
//! [`read()`] is the only entry point. In the old database a row has one number among the rows of all
//! agents, and may have no owner; here it has a position in the log of one agent, so all references
//! to rows are rewritten.

mod plan;
mod read;
mod rows;

use std::collections::HashSet;

use ikigai_core::settings::ModelChoice;
use ikigai_core::{Micros, SessionId};
use thiserror::Error;

use crate::error::StoreError;

pub use read::read;

/// Limit of remarks; further ones are counted.
const MOST_REMARKS: usize = 200;

/// Maps a model of the old log to one that can be used here; `None` if there is none.
pub type ModelLookup<'a> = &'a (dyn Fn(&ModelChoice) -> Option<ModelChoice> + Sync);

/// Destination of the imported agents.
pub struct Home<'a> {
    /// Their session.
    pub session: SessionId,
    /// Name of the session, if it is created.
    pub name: String,
    /// Its directory.
    pub directory: String,
    /// Working directory of their tools.
    pub workdir: String,
    /// Current time.
    pub at: Micros,
    /// Names that are taken.
    pub taken: HashSet<String>,
    /// Model for agents whose own model cannot be used.
    pub model: ModelChoice,
    /// Lookup of usable models.
    pub known: ModelLookup<'a>,
}

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Number of imported mails.
    pub mail: u64,
    /// Remarks about omissions and changes.
    pub remarks: Vec<String>,
    /// Number of remarks over the limit.
    pub more: u64,
}

impl ImportReport {
    fn remark(&mut self, remark: impl Into<String>) {
        if self.remarks.len() < MOST_REMARKS {
            self.remarks.push(remark.into());
        } else {
            self.more += 1;
        }
    }
}

/// Reason why an import failed.
#[derive(Debug, Error)]
pub enum LegacyError {
    /// There is no old log.
    #[error("no database of an older ikigai in {0}")]
    None(String),
    /// The database is a log of this program.
    #[error("{0} is a database of this ikigai already")]
    Current(String),
    /// The receiver of the lines stopped.
    #[error("the import was stopped")]
    Unheard,
    /// The server failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Agent of the old database.
#[derive(Clone, Debug, Default)]
struct OldAgent {
    uuid: String,
    name: Option<String>,
    parent: Option<String>,
    fork_message_id: Option<i64>,
    is_dead: bool,
    created_at: Option<i64>,
    provider: Option<String>,
    model: Option<String>,
    level: Option<String>,
}

/// Row of the old database.
#[derive(Clone, Debug)]
struct OldRow {
    id: i64,
    kind: String,
    content: Option<String>,
    data: Option<String>,
    created_at: Option<i64>,
}

/// Mail of the old database.
#[derive(Clone, Debug)]
struct OldMail {
    id: i64,
    from: Option<String>,
    to: Option<String>,
    text: String,
    at: Option<i64>,
    is_read: bool,
}
