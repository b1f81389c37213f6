//! Cache of the children that parents have merged.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ikigai_core::{AgentId, Micros, Seq};

/// Last merged rows of the children of parents, each with the head at which they were read.
#[derive(Debug, Default)]
pub(crate) struct MergeCache(Mutex<HashMap<AgentId, KnownMerges>>);

#[derive(Debug)]
struct KnownMerges {
    head: Seq,
    since: Micros,
    merged: HashMap<AgentId, Seq>,
}

impl MergeCache {
    /// Returns the merges into a parent since a time, if they were read at this head.
    pub(crate) fn at(
        &self,
        parent: AgentId,
        head: Option<Seq>,
        since: Micros,
    ) -> Option<HashMap<AgentId, Seq>> {
        let cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = cache.get(&parent)?;
        let is_valid = Some(known.head) == head && known.since <= since;
        is_valid.then(|| known.merged.clone())
    }

    /// Keeps the merges into a parent since a time.
    pub(crate) fn keep(
        &self,
        parent: AgentId,
        head: Option<Seq>,
        since: Micros,
        merged: HashMap<AgentId, Seq>,
    ) {
        if let Some(head) = head {
            let known = KnownMerges {
                head,
                since,
                merged,
            };
            let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            cache.insert(parent, known);
        }
    }
}
