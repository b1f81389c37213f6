//! Records of a store: agents, sessions, leases, mail, runs, drafts, blobs.

use std::fmt;
use std::iter::Sum;
use std::str::FromStr;

use ikigai_core::data::{self, Amounts, UsageData};
use ikigai_core::words::stored_words;
pub use ikigai_core::words::{EffectClass, UnknownWord};
use ikigai_core::{
    AgentId, ControlQuery, Epoch, MachineId, Micros, PageQuery, PersonName, ProcessId, Row, RowRef,
    Seq, SessionId, Span,
};

stored_words! {
    /// Status of an agent.
    Status {
        /// The agent runs.
        Running = "running",
        /// The agent was killed.
        Dead = "dead",
        /// The agent was killed and removed from the navigation.
        Reaped = "reaped",
    }
}
stored_words! {
    /// State of mail.
    MailState {
        /// The mail waits for delivery.
        Queued = "queued",
        /// A row shows it.
        Delivered = "delivered",
        /// The receiver died first.
        Bounced = "bounced",
        /// Its sender withdrew it.
        Withdrawn = "withdrawn",
    }
}

stored_words! {
    /// Kind of sender of mail.
    MailOrigin {
        /// The user.
        User = "user",
        /// Another agent.
        Agent = "agent",
        /// A background process of the receiver.
        Process = "process",
    }
}
stored_words! {
    /// Topic of mail.
    MailTopic {
        /// Information.
        Message = "message",
        /// The sender waits for an answer.
        Question = "question",
        /// The last answer of a child.
        Report = "report",
        /// The turn of a child failed.
        Failed = "failed",
    }
}

/// Id of a mail, drawn by the sender, so that sending twice is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MailId(pub u128);

stored_words! {
    /// State of a request to the holder of an agent.
    RequestState {
        /// No process took it yet.
        Waiting = "waiting",
        /// The holder took it.
        Taken = "taken",
        /// The holder answered it.
        Answered = "answered",
        /// No process took it in time.
        Expired = "expired",
    }
}

/// Id of a request to the holder of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u128);

/// Record of a request to the process that holds an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// Its id.
    pub id: RequestId,
    /// The agent.
    pub agent: AgentId,
    /// Person who sent it.
    pub author: Option<PersonName>,
    /// Time of sending.
    pub sent_at: Micros,
    /// Time after which it is given up.
    pub expires_at: Micros,
    /// Its state.
    pub state: RequestState,
    /// The request as JSON.
    pub body: String,
    /// The answer as JSON.
    pub answer: Option<String>,
}

/// Id of one run of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u128);

/// Id of the reservation for one request under spending caps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReservationId(pub u128);

/// Money and tokens, spent or reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// Billionths of a dollar.
    pub nano_usd: u64,
    /// Input and output tokens.
    pub tokens: u64,
}

impl Spending {
    /// Returns the sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            nano_usd: self.nano_usd.saturating_add(other.nano_usd),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }

    /// Returns the running total of a `usage` row's agent.
    pub(crate) fn total_of(data: Option<&str>) -> Self {
        let usage: UsageData = data::read(data);
        Self::from(&usage.sum.unwrap_or(usage.amounts))
    }
}

impl Sum for Spending {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Self::plus)
    }
}

impl From<&Amounts> for Spending {
    /// Unknown prices count as nothing.
    fn from(amounts: &Amounts) -> Self {
        Self {
            nano_usd: amounts.cost_nano_usd.unwrap_or(0),
            tokens: amounts.tokens(),
        }
    }
}

/// SHA-256 of a blob's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobHash(pub [u8; 32]);

impl fmt::Display for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BlobHash {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let bad = || UnknownWord(text.chars().take(80).collect());
        if text.len() != 64 || !text.is_ascii() {
            return Err(bad());
        }
        let mut bytes = [0; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| bad())?;
        }
        Ok(Self(bytes))
    }
}

/// Record of an agent. Name and status are caches; the log wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRecord {
    /// Its id.
    pub id: AgentId,
    /// Its name.
    pub name: String,
    /// Its session.
    pub session: SessionId,
    /// The agent that forked it.
    pub parent: Option<AgentId>,
    /// The last row it inherits.
    pub fork_point: Option<RowRef>,
    /// Its status.
    pub status: Status,
    /// Time of creation.
    pub created_at: Micros,
    /// Its newest row; 0 if it has none.
    pub head: Seq,
    /// Time of its newest row; `None` if it has no rows.
    pub touched_at: Option<Micros>,
    /// Holder of its lease.
    pub owner: Option<ProcessRecord>,
}

/// Limit of ancestors, so that a cycle in a damaged log ends.
pub(crate) const MOST_DEPTH: usize = 10_000;

/// Ancestors of an agent, and counts of its relatives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ancestry {
    /// Ancestors, the nearest first.
    pub ancestors: Vec<AgentId>,
    /// Number of running children.
    pub children: usize,
    /// Number of running agents below its root, the root included, up to a limit.
    pub family: usize,
}

impl Ancestry {
    /// Finds the ancestry of an agent among all agents.
    pub(crate) fn find(agents: &[AgentRecord], agent: AgentId, most: usize) -> Option<Self> {
        let of = |id: AgentId| agents.iter().find(|agent| agent.id == id);
        let mut ancestors = Vec::new();
        let mut parent = of(agent)?.parent;
        // A cycle in a damaged log must not loop forever.
        while let Some(next) = parent.filter(|next| !ancestors.contains(next)) {
            ancestors.push(next);
            parent = of(next).and_then(|agent| agent.parent);
        }
        let living = |id: AgentId| {
            let children = agents.iter().filter(move |agent| agent.parent == Some(id));
            children.filter(|agent| agent.status == Status::Running)
        };
        let mut family = vec![ancestors.last().copied().unwrap_or(agent)];
        let mut next = 0;
        while let Some(member) = family.get(next).copied().filter(|_| family.len() < most) {
            let below = living(member).map(|agent| agent.id);
            let new: Vec<_> = below.filter(|id| !family.contains(id)).collect();
            family.extend(new);
            next += 1;
        }
        Some(Self {
            ancestors,
            children: living(agent).count(),
            family: family.len().min(most),
        })
    }
}

/// Counters that grow with the log. Drafts and leases do not change them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    /// Grows with every row.
    pub rows: u64,
    /// Grows with every mail.
    pub mail: u64,
}

/// How far a person has read an agent's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenMark {
    /// The agent.
    pub agent: AgentId,
    /// Newest row whose report the person has read; 0 if none.
    pub read: Seq,
    /// Newest row that the person has dismissed; 0 if none.
    pub dismissed: Seq,
}

impl SeenMark {
    /// Creates the mark of an agent of which nothing was read.
    pub fn new(agent: AgentId) -> Self {
        Self {
            agent,
            read: Seq(0),
            dismissed: Seq(0),
        }
    }

    /// Raises this mark to another one of the same agent.
    pub fn raise(&mut self, other: Self) {
        self.read = self.read.max(other.read);
        self.dismissed = self.dismissed.max(other.dismissed);
    }
}

/// Record of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: String,
    /// Its directory.
    pub directory: String,
    /// Time of creation.
    pub created_at: Micros,
    /// Its machine; none in a store of before machines, until a machine of that host claims it.
    pub machine: Option<MachineId>,
    /// Host name of its machine, for display.
    pub host: Option<String>,
}

impl SessionRecord {
    /// Returns true if a machine's processes work in the session.
    ///
    /// A session without a machine is of the machine with its host name, or of any if it has none.
    pub fn is_on(&self, machine: Option<MachineId>, host: Option<&str>) -> bool {
        let is_unclaimed = self.machine.is_none();
        self.machine == machine
            || is_unclaimed && (self.host.is_none() || self.host.as_deref() == host)
    }
}

/// Record of a process that may own agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRecord {
    /// Its id.
    pub id: ProcessId,
    /// Host name of its machine.
    pub host: String,
    /// Process id on that machine.
    pub pid: u32,
    /// Time of start.
    pub started: Micros,
    /// Its machine.
    pub machine: Option<MachineId>,
    /// Person for whom it works.
    pub person: Option<PersonName>,
}

impl ProcessRecord {
    /// Returns true if the process may be alive.
    ///
    /// A process of another machine may be. A process id that another program uses by now counts as
    /// alive.
    pub fn may_live(&self) -> bool {
        let here = rustix::system::uname();
        let is_here = here.nodename().to_string_lossy() == self.host;
        !is_here
            || std::path::Path::new("/proc")
                .join(self.pid.to_string())
                .exists()
    }
}

/// Newest row and lease of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Newest row; 0 if the agent has none.
    pub seq: Seq,
    /// Epoch of the newest lease.
    pub epoch: Epoch,
    /// Owner of the lease, dead or alive.
    pub owner: Option<ProcessRecord>,
}

/// Record of a mail between agents, or from the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailRecord {
    /// Its id.
    pub id: MailId,
    /// Receiver.
    pub to: AgentId,
    /// Kind of sender.
    pub origin: MailOrigin,
    /// Sending agent.
    pub from: Option<AgentId>,
    /// Person who sent it, if a user did.
    pub author: Option<PersonName>,
    /// Its topic.
    pub about: MailTopic,
    /// Number of the receiver's background process that it is a notice about.
    pub process: Option<u64>,
    /// Its text.
    pub text: String,
    /// Its state.
    pub state: MailState,
    /// Row that shows it.
    pub shown_by: Option<RowRef>,
    /// Time of sending.
    pub sent_at: Micros,
}

/// Record of a journalled tool run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// Row of the tool call.
    pub call: RowRef,
    /// Class of its effects.
    pub class: EffectClass,
    /// Time of start.
    pub started: Micros,
    /// Deadline.
    pub deadline: Micros,
    /// Time of its end; `None` if it runs or its process died.
    pub ended: Option<Micros>,
}

/// Record of a background process. Facts of one machine, so they are in no row and no export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// Its id: that of the run that started it.
    pub id: RunId,
    /// Its owner.
    pub agent: AgentId,
    /// Its number among the owner's processes, from 1.
    pub number: u64,
    /// Its command line.
    pub command: String,
    /// Time of start.
    pub started: Micros,
    /// Time at which it is stopped.
    pub deadline: Micros,
    /// Machine on which it runs.
    pub host: String,
    /// Directory of its socket and its output there.
    pub directory: String,
    /// Regular expression of the line that wakes the owner once.
    pub pattern: Option<String>,
    /// Bytes of its output that the owner has read.
    pub read_to: u64,
    /// Time of its end; `None` while it runs.
    pub ended: Option<Micros>,
}

/// Draft of the response that an agent is receiving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftRecord {
    /// Text of all parts.
    pub text: String,
    /// Time of the newest part.
    pub updated_at: Micros,
}

/// Folded state of an agent up to one of its rows: derived, and rebuildable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The agent and its last folded row.
    pub upto: RowRef,
    /// Folded values in core's encoding.
    pub folded: String,
}

/// Rows from which an agent's state is folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePoint {
    /// Its newest row; 0 if it has none.
    pub head: Seq,
    /// Newest snapshot.
    pub snapshot: Option<Snapshot>,
    /// Newest control rows after the snapshot, newest first.
    pub control: Vec<Row>,
}

impl RestorePoint {
    /// Makes the query for the control rows after the snapshot.
    pub(crate) fn control_query(
        agent: AgentId,
        head: Seq,
        snapshot: Option<&Snapshot>,
        limit: usize,
    ) -> ControlQuery {
        let after = snapshot.map_or(Seq(0), |snapshot| snapshot.upto.seq);
        let span = Span::new(agent, after.next(), head);
        ControlQuery { span, limit }
    }
}

/// Collects rows of several spans for [`crate::ReadLog::pages`].
pub(crate) struct PageCollector {
    rows: Vec<Row>,
    limit: usize,
}

impl PageCollector {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            rows: Vec::new(),
            limit,
        }
    }

    /// Makes the query for the next span.
    pub(crate) fn query(&self, span: Span) -> PageQuery {
        PageQuery::newest(span, self.limit - self.rows.len())
    }

    /// Adds a page; returns whether to continue with the next span.
    pub(crate) fn add(&mut self, query: PageQuery, page: Vec<Row>) -> bool {
        let whole = page.len() as u64 == query.span.len().min(query.limit as u64);
        self.rows.extend(page);
        whole && self.rows.len() < self.limit
    }

    /// Returns all rows, newest first.
    pub(crate) fn finish(self) -> Vec<Row> {
        self.rows
    }
}
