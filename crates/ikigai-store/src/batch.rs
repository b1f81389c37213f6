//! What is written together: one batch is one transaction.

use ikigai_core::{AgentId, Epoch, Micros, NewRow, RowRef, Seq, SessionId};

use tokio::sync::oneshot;

use crate::error::CommitError;
use crate::records::{BlobHash, EffectClass, MailId, RunId, Snapshot, Status};

/// Everything that becomes true at one moment. All of it is stored, or nothing.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The agents whose logs grow, each once.
    pub heads: Vec<HeadClaim>,
    /// The rows, in order; each belongs to an agent of `heads`.
    pub rows: Vec<NewRow>,
    /// What else becomes true with them.
    pub with: Vec<Effect>,
}

/// By what right rows are appended to an agent's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadClaim {
    /// Whose log.
    pub agent: AgentId,
    /// As the holder of a lease; none for a `fork` row of role parent and `agent_killed` rows,
    /// which anyone may append and for which the store finds the place.
    pub lease: Option<LeaseClaim>,
}

/// What the holder of a lease believes; the commit is refused if it is no longer so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseClaim {
    /// The epoch of the lease.
    pub epoch: Epoch,
    /// The newest row.
    pub expected: Seq,
}

/// A change beside the rows, in the same transaction.
///
/// They are carried out in order: those that make something ([`Effect::MakeSession`],
/// [`Effect::CreateAgent`], [`Effect::TakeLease`]) before the rows, all others after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Makes a workspace.
    MakeSession {
        session: SessionId,
        name: String,
        directory: String,
        at: Micros,
    },
    /// Makes an agent of status running. With `owned` its lease is this process's, at epoch 1.
    /// Refused if its parent does not run any more.
    CreateAgent { agent: NewAgent, owned: bool },
    /// Sets the cached name of an agent. The name must be free among the living.
    SetName { agent: AgentId, name: String },
    /// Sets the cached parent and fork point of an agent, as its log tells them.
    SetOrigin {
        agent: AgentId,
        parent: Option<AgentId>,
        fork_point: Option<RowRef>,
    },
    /// Sets the status of an agent. What is queued for one that does not run any more bounces:
    /// whoever kills it cannot know what is sent to it meanwhile.
    SetStatus { agent: AgentId, status: Status },
    /// Takes the lease of an agent that nobody alive holds, raising its epoch. A lease that this
    /// process holds already is kept as it is.
    TakeLease { agent: AgentId },
    /// Gives a lease back.
    GiveLease { agent: AgentId, epoch: Epoch },
    /// Appends a part to the running response of an agent.
    AppendDraft {
        agent: AgentId,
        epoch: Epoch,
        text: String,
        at: Micros,
    },
    /// Drops the running response of an agent.
    DropDraft { agent: AgentId, epoch: Epoch },
    /// Sends mail; without a sender it is from the user. Refused if the receiver is not running.
    SendMail {
        mail: MailId,
        to: AgentId,
        from: Option<AgentId>,
        text: String,
        at: Micros,
    },
    /// Hands mail over by the row that shows it. Refused unless it is queued.
    ConsumeMail { mail: MailId, by: RowRef },
    /// Takes queued mail back. Refused unless it is queued.
    WithdrawMail { mail: MailId },
    /// Marks queued mail as never to be delivered, because the receiver died.
    BounceMail { mail: MailId },
    /// Journals that a tool call starts.
    StartRun {
        run: RunId,
        call: RowRef,
        class: EffectClass,
        started: Micros,
        deadline: Micros,
    },
    /// Journals that a tool call has ended.
    EndRun { run: RunId, ended: Micros },
    /// Stores one part of a blob; a part that is there already is left as it is.
    PutBlobPart {
        hash: BlobHash,
        part: u32,
        bytes: Vec<u8>,
    },
    /// Stores a derived snapshot of what was folded up to some row.
    PutSnapshot(Snapshot),
}

/// An agent to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAgent {
    /// Its id.
    pub id: AgentId,
    /// Its name, which must be free among the living.
    pub name: String,
    /// The workspace it belongs to.
    pub session: SessionId,
    /// Who forked it.
    pub parent: Option<AgentId>,
    /// The last row it inherits.
    pub fork_point: Option<RowRef>,
    /// When it was made.
    pub created_at: Micros,
}

/// What a commit did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Where the rows of the batch stand, in the batch's order.
    pub rows: Vec<RowRef>,
    /// The leases that were taken, with their epochs.
    pub leases: Vec<(AgentId, Epoch)>,
}

/// A batch with the way its answer goes.
pub(crate) struct Job {
    pub(crate) batch: Batch,
    pub(crate) answer: oneshot::Sender<Result<Committed, CommitError>>,
}

impl Job {
    pub(crate) fn answer(self, result: Result<Committed, CommitError>) {
        // A caller that went away does not care.
        let _ = self.answer.send(result);
    }
}
