//! What holds for a batch on every engine, and needs no look into the store.

use std::collections::HashMap;

use ikigai_core::{AgentId, Epoch, Kind, NewRow, Row, Seq};

use crate::batch::{Batch, Effect, HeadClaim};
use crate::error::CommitError;

/// A mistake of the caller.
pub(crate) fn bad(reason: impl Into<String>) -> CommitError {
    CommitError::BadBatch(reason.into())
}

/// A row without a claim by which it could be appended.
pub(crate) fn unclaimed(row: &NewRow) -> CommitError {
    bad(format!(
        "a row of agent {} whose head is not claimed",
        row.agent
    ))
}

/// A reference that leads nowhere.
pub(crate) fn dangling() -> CommitError {
    bad("a reference to something that is not there")
}

/// An agent that would inherit what nobody has.
pub(crate) fn forked_from_nothing(agent: AgentId) -> CommitError {
    bad(format!(
        "agent {agent} is forked from a row that is not there"
    ))
}

/// Says whether an effect comes before the rows, because they may need what it makes.
pub(crate) fn makes_something(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::MakeSession { .. } | Effect::CreateAgent { .. } | Effect::TakeLease { .. }
    )
}

/// Checks what needs no look into the store, and counts each agent's rows.
pub(crate) fn check(batch: &Batch) -> Result<HashMap<AgentId, u64>, CommitError> {
    let mut leases = HashMap::with_capacity(batch.heads.len());
    for claim in &batch.heads {
        if leases.insert(claim.agent, claim.lease.is_some()).is_some() {
            return Err(bad(format!(
                "the head of agent {} is claimed twice",
                claim.agent
            )));
        }
    }
    let mut counts = HashMap::with_capacity(batch.heads.len());
    for row in &batch.rows {
        let held = leases.get(&row.agent).ok_or_else(|| unclaimed(row))?;
        if !held && !needs_no_lease(row) {
            return Err(bad(format!("a row of kind `{}` needs a lease", row.kind)));
        }
        row.check()?;
        *counts.entry(row.agent).or_insert(0) += 1;
    }
    Ok(counts)
}

/// Anyone may tell a parent of its child and of a kill. Neither bends the path.
fn needs_no_lease(row: &NewRow) -> bool {
    !row.control && matches!(row.kind, Kind::Fork | Kind::AgentKilled)
}

/// The head of an agent as seen by this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// The agent's key.
    pub(crate) agent: i64,
    pub(crate) seq: Seq,
    pub(crate) epoch: Epoch,
    /// Whether this process owns it.
    pub(crate) mine: bool,
}

impl Held {
    /// The first rows of an agent that nobody ever held come from whoever made it.
    fn is_untouched(&self) -> bool {
        self.epoch == Epoch(0) && self.seq == Seq(0)
    }

    /// Says what is wrong with a claim on this head, if something is.
    pub(crate) fn refuses(&self, claim: HeadClaim) -> Option<CommitError> {
        let agent = claim.agent;
        let lease = claim.lease?;
        if lease.epoch != self.epoch || !(self.mine || self.is_untouched()) {
            return Some(CommitError::Fenced {
                agent,
                epoch: self.epoch,
            });
        }
        (lease.expected != self.seq).then_some(CommitError::Behind {
            agent,
            expected: lease.expected,
            actual: self.seq,
        })
    }

    /// Lets only the holder of the lease go on.
    pub(crate) fn fenced(self, agent: AgentId, epoch: Epoch) -> Result<Self, CommitError> {
        if self.epoch == epoch && self.mine {
            return Ok(self);
        }
        Err(CommitError::Fenced {
            agent,
            epoch: self.epoch,
        })
    }
}

/// Says whether a stored row is the one that was written.
pub(crate) fn is_same(found: &Row, written: &NewRow) -> bool {
    found.kind.name() == written.kind.name()
        && found.created_at == written.created_at
        && found.content == written.content
        && found.data == written.data
}
