//! The writes that a batch becomes once it is accepted.

use ikigai_core::{AgentId, Epoch, Micros, NewRow, PersonName, RowRef};

use super::facts::FactChanges;
use crate::batch::{Committed, NewAgent, SessionMove};
use crate::records::{
    BlobHash, EffectClass, JobRecord, MailId, MailOrigin, MailState, MailTopic, RequestId,
    RequestRecord, RequestState, ReservationId, RunId, SeenMark, SessionRecord, Snapshot, Spending,
    Status,
};

/// Outcome of an accepted batch, to be executed in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes<'b> {
    /// The writes.
    pub list: Vec<Write<'b>>,
    /// Reply to the caller, true once the transaction is committed.
    pub committed: Committed,
    /// Effect on the facts for later batches of the transaction.
    pub changes: FactChanges,
}

/// One write, already checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write<'b> {
    /// Inserts a session.
    InsertSession(&'b SessionRecord),
    /// Sets machine and directory of a session.
    MoveSession(&'b SessionMove),
    /// Writes the agent table.
    Agent(AgentWrite<'b>),
    /// Writes head and lease of an agent.
    Head(HeadWrite),
    /// Inserts rows, each at its position.
    InsertRows(Vec<(RowRef, &'b NewRow)>),
    /// Writes the draft of an agent.
    Draft(DraftWrite<'b>),
    /// Writes mail.
    Mail(MailWrite<'b>),
    /// Writes the journal of tool runs.
    Run(RunWrite),
    /// Writes the record of a background process.
    Job(JobWrite<'b>),
    /// Writes requests to holders of agents.
    Request(RequestWrite<'b>),
    /// Writes reservations and running totals.
    Budget(BudgetWrite),
    /// Inserts a part of a blob, unless that part exists.
    InsertBlobPart {
        hash: BlobHash,
        part: u32,
        bytes: &'b [u8],
    },
    /// Inserts or replaces a snapshot.
    PutSnapshot(&'b Snapshot),
    /// Inserts or raises how far a person has read.
    MarkSeen { person: &'b str, mark: SeenMark },
}

/// A write to the agent table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentWrite<'b> {
    /// Inserts a running agent without rows; with `owned` its lease is this process's.
    Insert {
        agent: &'b NewAgent,
        epoch: Epoch,
        owned: bool,
    },
    /// Sets the name of an agent.
    SetName { agent: AgentId, name: &'b str },
    /// Sets parent and fork point of an agent.
    SetOrigin {
        agent: AgentId,
        parent: Option<AgentId>,
        fork_point: Option<RowRef>,
    },
    /// Sets the status of an agent.
    SetStatus { agent: AgentId, status: Status },
}

/// A write to head and lease of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadWrite {
    /// Moves the head by a number of rows.
    Advance { agent: AgentId, rows: u64 },
    /// Gives the lease to this process.
    SetOwner { agent: AgentId, epoch: Epoch },
    /// Frees the lease.
    ClearOwner { agent: AgentId },
}

/// A write to the draft of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftWrite<'b> {
    /// Appends a part.
    Append {
        agent: AgentId,
        text: &'b str,
        at: Micros,
    },
    /// Deletes all parts.
    Delete { agent: AgentId },
}

/// A write to the mail table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailWrite<'b> {
    /// Inserts queued mail.
    Insert {
        mail: MailId,
        to: AgentId,
        origin: MailOrigin,
        from: Option<AgentId>,
        author: Option<&'b PersonName>,
        about: MailTopic,
        process: Option<u64>,
        text: &'b str,
        at: Micros,
    },
    /// Sets the final state of queued mail, and the row that shows it.
    Settle {
        mail: MailId,
        state: MailState,
        shown_by: Option<RowRef>,
    },
    /// Bounces all queued mail to an agent.
    BounceAll { to: AgentId },
}

/// A write to the journal of tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunWrite {
    /// Inserts an open run.
    Insert {
        run: RunId,
        call: RowRef,
        class: EffectClass,
        started: Micros,
        deadline: Micros,
    },
    /// Ends an open run.
    End { run: RunId, ended: Micros },
}

/// A write to the records of background processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobWrite<'b> {
    /// Inserts a running process.
    Insert(&'b JobRecord),
    /// Sets how many bytes of its output were read.
    SetRead { job: RunId, bytes: u64 },
    /// Removes its pattern.
    DropPattern { job: RunId },
    /// Ends a running process.
    End { job: RunId, ended: Micros },
}

/// A write to the requests to holders of agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestWrite<'b> {
    /// Inserts a waiting request.
    Insert(&'b RequestRecord),
    /// Sets state and answer of a request.
    Settle {
        request: RequestId,
        state: RequestState,
        answer: Option<&'b str>,
    },
}

/// A write to reservations and running totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetWrite {
    /// Adds an agent's spending to the totals of the agent and its ancestors that have one.
    Spend { agent: AgentId, amount: Spending },
    /// Inserts a reservation of this process.
    Reserve {
        reservation: ReservationId,
        root: AgentId,
        agent: AgentId,
        estimate: Spending,
    },
    /// Deletes a reservation.
    Release { reservation: ReservationId },
    /// Deletes all reservations of an agent, whose lease changes hands.
    ReleaseAll { agent: AgentId },
}
