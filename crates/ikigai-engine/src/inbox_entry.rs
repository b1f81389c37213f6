//! Entries of the inbox, and a cache of those of idle agents.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ikigai_core::{AgentId, Micros, RowRef, Seq};
use ikigai_store::{AgentRecord, SeenMark};

ikigai_core::words::named_variants! {
    /// Reason why an agent waits for the user.
    pub enum InboxKind: word {
        /// A call needs approval.
        Question = "question",
        /// The last turn failed.
        Failed = "failed",
        /// The last turn was refused by a budget.
        Budget = "budget",
        /// The last turn stopped with its process.
        Interrupted = "interrupted",
        /// The last answer was not read.
        Report = "report",
        /// A background process failed.
        Process = "process",
    }
}

impl InboxKind {
    /// Returns the sign for lists.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Question => "?",
            Self::Failed => "✗",
            Self::Budget => "$",
            Self::Interrupted => "⏸",
            Self::Report => "✓",
            Self::Process => "■",
        }
    }
}

/// One entry of the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxEntry {
    /// The agent that waits.
    pub agent: AgentRecord,
    /// Reason of the wait.
    pub kind: InboxKind,
    /// Row that began the wait.
    pub row: RowRef,
    /// Time of that row.
    pub at: Micros,
    /// The call with its diff, the failure, or the answer, in full.
    pub text: String,
}

impl InboxEntry {
    /// Returns true if reading or dismissing it removes it.
    pub(crate) fn is_seen(&self, mark: SeenMark) -> bool {
        match self.kind {
            InboxKind::Question => false,
            InboxKind::Report => self.row.seq <= mark.read.max(mark.dismissed),
            InboxKind::Failed | InboxKind::Budget | InboxKind::Interrupted | InboxKind::Process => {
                self.row.seq <= mark.dismissed
            }
        }
    }
}

/// Entries of idle agents, each with the head at which they were read.
#[derive(Debug, Default)]
pub(crate) struct InboxCache(Mutex<HashMap<AgentId, (Seq, Vec<InboxEntry>)>>);

impl InboxCache {
    pub(crate) fn at(&self, record: &AgentRecord) -> Option<Vec<InboxEntry>> {
        let cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (head, entries) = cache.get(&record.id)?;
        (*head == record.head).then(|| entries.clone())
    }

    pub(crate) fn keep(&self, record: &AgentRecord, entries: Vec<InboxEntry>) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.insert(record.id, (record.head, entries));
    }
}
