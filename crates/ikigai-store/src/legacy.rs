//! A database of an older ikigai, told as a log of this one: see [`crate::portable`].
//!
//! There a row has a number among the rows of all agents, and may have no owner. Here it has a place
//! in the log of one agent, so everything that names a row by its number is told anew.

mod plan;
mod read;
mod rows;

use std::collections::HashSet;

use ikigai_core::settings::ModelChoice;
use ikigai_core::{Micros, SessionId};
use thiserror::Error;

use crate::error::StoreError;

pub use read::read;

/// How many remarks are kept; of the rest it is said how many there are.
const MOST_REMARKS: usize = 200;

/// How a model of an older log is asked here; none if it cannot be asked.
pub type Known<'a> = &'a (dyn Fn(&ModelChoice) -> Option<ModelChoice> + Sync);

/// Where the agents come to live.
pub struct Home<'a> {
    /// Their session.
    pub session: SessionId,
    /// Its name, if it is made for them.
    pub name: String,
    /// Its directory.
    pub directory: String,
    /// Where their tools run.
    pub workdir: String,
    /// Now.
    pub at: Micros,
    /// Names that others have there.
    pub taken: HashSet<String>,
    /// Who answers for an agent whose own model cannot be asked.
    pub model: ModelChoice,
    /// Which models can be asked.
    pub known: Known<'a>,
}

/// What came, and what is to be said about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many messages between agents came.
    pub mail: u64,
    /// What did not come, or not as it was.
    pub remarks: Vec<String>,
    /// How many more remarks there would be.
    pub more: u64,
}

impl Report {
    fn remark(&mut self, remark: impl Into<String>) {
        if self.remarks.len() < MOST_REMARKS {
            self.remarks.push(remark.into());
        } else {
            self.more += 1;
        }
    }
}

/// Why an older database cannot be told.
#[derive(Debug, Error)]
pub enum LegacyError {
    /// It is none.
    #[error("there is no log of an older ikigai in {0}")]
    None(String),
    /// It is one of this ikigai.
    #[error("{0} is a log of this ikigai already")]
    Current(String),
    /// Nobody wants to hear more.
    #[error("nobody took it in")]
    Unheard,
    /// The server failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An agent as it was stored.
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

/// A row as it was stored.
#[derive(Clone, Debug)]
struct OldRow {
    id: i64,
    kind: String,
    content: Option<String>,
    data: Option<String>,
    created_at: Option<i64>,
}

/// A message between agents as it was stored.
#[derive(Clone, Debug)]
struct OldMail {
    id: i64,
    from: Option<String>,
    to: Option<String>,
    text: String,
    at: Option<i64>,
    is_read: bool,
}
