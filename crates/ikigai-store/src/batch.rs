//! The unit of writing: one batch is stored whole or not at all.

use ikigai_core::{
    AgentId, Epoch, MachineId, Micros, NewRow, PersonName, Row, RowRef, Seq, SessionId,
};

use tokio::sync::oneshot;

use crate::error::CommitError;
use crate::records::{
    BlobHash, EffectClass, JobRecord, MailId, MailOrigin, MailTopic, RequestId, RequestRecord,
    ReservationId, RunId, SeenMark, SessionRecord, Snapshot, Spending, Status,
};

/// Rows and effects that become true at one moment.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Agents whose logs grow, each once.
    pub heads: Vec<HeadClaim>,
    /// Rows in order; each belongs to an agent of `heads`.
    pub rows: Vec<NewRow>,
    /// Changes in addition to the rows.
    pub with: Vec<Effect>,
}

impl Batch {
    /// Returns true if another process appends to an agent's log, as when a person forks it.
    ///
    /// An agent's own fork claims the lease, so that nothing is forked after a kill.
    pub(crate) fn claims_without_lease(&self, agent: AgentId) -> bool {
        let mut heads = self.heads.iter();
        heads.any(|claim| claim.agent == agent && claim.lease.is_none())
    }
}

/// Right to append rows to an agent's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadClaim {
    /// The agent.
    pub agent: AgentId,
    /// The lease under which rows are appended.
    ///
    /// `fork` rows of role parent and `agent_killed` rows need none: any process may append them,
    /// and the store finds their position.
    pub lease: Option<LeaseClaim>,
}

/// Expectation of a lease holder; the commit is refused if it does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseClaim {
    /// Epoch of the lease.
    pub epoch: Epoch,
    /// Newest row.
    pub expected: Seq,
}

/// A change in addition to the rows, in the same transaction.
///
/// Effects are executed in order: [`Effect::MakeSession`], [`AgentEffect::Create`],
/// [`LeaseEffect::Take`] and [`BudgetEffect::CountAgent`] before the rows, all others after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Creates a session.
    MakeSession(SessionRecord),
    /// Gives a session to a machine and a directory.
    MoveSession(SessionMove),
    /// Changes the agent table.
    Agent(AgentEffect),
    /// Changes a lease.
    Lease(LeaseEffect),
    /// Changes a draft.
    Draft(DraftEffect),
    /// Sends or settles mail.
    Mail(MailEffect),
    /// Journals the run of a tool.
    Run(RunEffect),
    /// Changes the record of a background process.
    Job(JobEffect),
    /// Sends or settles a request to the holder of an agent.
    Request(RequestEffect),
    /// Checks a cap, and changes what is reserved under it.
    Budget(BudgetEffect),
    /// Stores one part of a blob; an existing part stays unchanged.
    PutBlobPart {
        hash: BlobHash,
        part: u32,
        bytes: Vec<u8>,
    },
    /// Stores a snapshot of an agent's folded state.
    PutSnapshot(Snapshot),
    /// Notes how far a person has read an agent's log. A mark is only ever raised.
    MarkSeen { person: String, mark: SeenMark },
}

/// New place of a session, which was on another machine or in another directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionMove {
    /// The session.
    pub session: SessionId,
    /// Its machine.
    pub machine: Option<MachineId>,
    /// Host name of its machine, for display.
    pub host: Option<String>,
    /// Its directory.
    pub directory: String,
}

/// A change of the agent table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEffect {
    /// Creates a running agent; with `owned` this process holds its lease at epoch 1.
    ///
    /// Refused if its parent no longer runs.
    Create { agent: NewAgent, owned: bool },
    /// Sets the cached name of an agent; no other running agent of its session may have it.
    SetName { agent: AgentId, name: String },
    /// Sets the cached parent and fork point of an agent.
    SetOrigin {
        agent: AgentId,
        parent: Option<AgentId>,
        fork_point: Option<RowRef>,
    },
    /// Sets the status of an agent; stopping it bounces its queued mail.
    SetStatus { agent: AgentId, status: Status },
}

/// A change of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEffect {
    /// Takes a lease that no live process holds, raising its epoch.
    ///
    /// A lease of this process stays unchanged.
    Take { agent: AgentId },
    /// Gives a lease back.
    Give { agent: AgentId, epoch: Epoch },
}

/// A change of the draft of an agent's running response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DraftEffect {
    /// Appends a part.
    Append {
        agent: AgentId,
        epoch: Epoch,
        text: String,
        at: Micros,
    },
    /// Deletes the draft.
    Drop { agent: AgentId, epoch: Epoch },
}

/// A change of the mail table. All but sending and notifying are refused unless the mail is queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailEffect {
    /// Sends mail; refused if the receiver is not running.
    ///
    /// Mail of an agent, and only that, names its sender; mail of a user names the author.
    Send {
        mail: MailId,
        to: AgentId,
        origin: MailOrigin,
        from: Option<AgentId>,
        author: Option<PersonName>,
        about: MailTopic,
        text: String,
        at: Micros,
    },
    /// Sends a notice about a background process of the receiver; refused as sending is.
    Notify {
        mail: MailId,
        to: AgentId,
        process: u64,
        text: String,
        at: Micros,
    },
    /// Delivers mail by the row that shows it.
    Consume { mail: MailId, by: RowRef },
    /// Withdraws mail.
    Withdraw { mail: MailId },
    /// Bounces mail, because the receiver died.
    Bounce { mail: MailId },
}

/// A change of the requests to holders of agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestEffect {
    /// Sends a request, which then waits.
    Send(RequestRecord),
    /// Acknowledges a waiting request; only the holder of the agent's lease may.
    Take { request: RequestId, agent: AgentId },
    /// Answers a request that was taken.
    Answer { request: RequestId, answer: String },
    /// Gives up a request that still waits.
    Expire { request: RequestId },
}

/// A change of the journal of tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEffect {
    /// Journals the start of a run.
    Start {
        run: RunId,
        call: RowRef,
        class: EffectClass,
        started: Micros,
        deadline: Micros,
    },
    /// Journals the end of a run.
    End { run: RunId, ended: Micros },
}

/// A change of the record of a background process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEffect {
    /// Records the start of a process.
    Start(JobRecord),
    /// Records how many bytes of its output the owner has read.
    Read { job: RunId, bytes: u64 },
    /// Forgets the line that wakes the owner.
    DropPattern { job: RunId },
    /// Records its end.
    End { job: RunId, ended: Micros },
}

/// A check or change under the cap of an agent and its descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetEffect {
    /// Reserves the estimate for a request, under one cap of its agent or of an ancestor.
    ///
    /// Refused if the amount spent and the reservations of others reach the cap. A reservation
    /// that exists already is accepted and stays unchanged.
    Reserve {
        reservation: ReservationId,
        agent: AgentId,
        epoch: Epoch,
        cap: SpendingLimit,
        estimate: Spending,
    },
    /// Deletes a reservation, under all caps. A missing one is no error.
    Release { reservation: ReservationId },
    /// Counts an agent that the batch creates; refused if `most` run below `root` already.
    CountAgent { root: AgentId, most: u64 },
}

/// A spending cap of an agent and its descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendingLimit {
    /// Agent with the cap.
    pub root: AgentId,
    /// Limit in billionths of a dollar.
    pub nano_usd: Option<u64>,
    /// Limit in tokens.
    pub tokens: Option<u64>,
}

impl SpendingLimit {
    /// Returns true if an amount reaches the cap.
    pub fn is_reached(&self, amount: Spending) -> bool {
        self.nano_usd.is_some_and(|most| amount.nano_usd >= most)
            || self.tokens.is_some_and(|most| amount.tokens >= most)
    }
}

/// An agent to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAgent {
    /// Its id.
    pub id: AgentId,
    /// Its name; no running agent of its session may have it.
    pub name: String,
    /// Its session.
    pub session: SessionId,
    /// The agent that forked it.
    pub parent: Option<AgentId>,
    /// The last row it inherits.
    pub fork_point: Option<RowRef>,
    /// Time of creation.
    pub created_at: Micros,
}

/// Result of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Positions of the batch's rows, in the batch's order.
    pub rows: Vec<RowRef>,
    /// Leases that were taken, with their epochs.
    pub leases: Vec<(AgentId, Epoch)>,
}

/// A queued batch with the channel for its reply.
pub(crate) struct CommitJob {
    pub(crate) batch: Batch,
    pub(crate) reply: oneshot::Sender<Result<Committed, CommitError>>,
}

impl CommitJob {
    /// Sends the reply. The caller may be gone.
    pub(crate) fn finish(self, result: Result<Committed, CommitError>) {
        let _ = self.reply.send(result);
    }
}

/// Outcome of a commit whose reply was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitOutcome {
    Stored,
    /// Nothing of it is stored, nor will it appear later.
    Absent,
}

/// Returns true if a stored row is the row that was written.
pub(crate) fn is_same_row(found: &Row, written: &NewRow) -> bool {
    found.kind.name() == written.kind.name()
        && found.created_at == written.created_at
        && found.content == written.content
        && found.data == written.data
        && found.author == written.author
}
