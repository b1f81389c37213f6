//! Record of accesses that a sandbox refused to one command.

use std::sync::{Arc, Mutex, PoisonError};

use ikigai_core::data::{RefusalKind, SandboxRefusal};

/// Most refusals that are kept; a command may try thousands.
const MOST_KEPT: usize = 16;

/// Refusals of a running command, shared with its supervisor and its proxy.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusalLog(Arc<Mutex<Vec<SandboxRefusal>>>);

impl RefusalLog {
    /// Adds a refusal, unless it is known.
    pub(crate) fn add(&self, kind: RefusalKind, name: &str) {
        let refusal = SandboxRefusal {
            kind: Some(kind),
            name: Some(name.to_owned()),
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST_KEPT && !kept.contains(&refusal) {
            kept.push(refusal);
        }
    }

    /// Returns the refusals so far, in order.
    pub(crate) fn all(&self) -> Vec<SandboxRefusal> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone()
    }
}
