//! What a store tells beside rows: agents, sessions, leases, mail, runs, drafts, blobs.

use std::fmt;
use std::str::FromStr;

use ikigai_core::words::stored_words;
pub use ikigai_core::words::{EffectClass, UnknownWord};
use ikigai_core::{
    AgentId, ControlQuery, Direction, Epoch, Micros, PageQuery, ProcessId, Row, RowRef, Seq,
    SessionId, Span,
};

stored_words! {
    /// Where an agent is in its life.
    Status {
        /// It lives.
        Running = "running",
        /// It was killed.
        Dead = "dead",
        /// It was killed and taken out of the navigation.
        Reaped = "reaped",
    }
}
stored_words! {
    /// What became of mail.
    MailState {
        /// It waits.
        Queued = "queued",
        /// A row shows it.
        Delivered = "delivered",
        /// The receiver died first.
        Bounced = "bounced",
        /// Its sender took it back.
        Withdrawn = "withdrawn",
    }
}

/// Names one mail: drawn by the sender, so that sending twice is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MailId(pub u128);

/// Names one run of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u128);

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

/// One agent of the process table. Names and status are caches; the log wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRecord {
    /// Its id.
    pub id: AgentId,
    /// Its name.
    pub name: String,
    /// The workspace it belongs to.
    pub session: SessionId,
    /// Who forked it.
    pub parent: Option<AgentId>,
    /// The last row it inherits.
    pub fork_point: Option<RowRef>,
    /// Where it is in its life.
    pub status: Status,
    /// When it was made.
    pub created_at: Micros,
    /// Its newest row; 0 if it has none.
    pub head: Seq,
    /// When its newest row was made; none if it has none.
    pub touched_at: Option<Micros>,
    /// Who holds its lease.
    pub owner: Option<ProcessRecord>,
}

/// How deep a family is followed; a log that calls somebody their own ancestor ends here.
pub(crate) const MOST_DEPTH: usize = 10_000;

/// Ancestors of an agent, and counts of its relatives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ancestry {
    /// Its ancestors, the nearest first.
    pub ancestors: Vec<AgentId>,
    /// How many of its children live.
    pub children: usize,
    /// How many agents live below its root, that one included; counted no further than was asked.
    pub family: usize,
}

impl Ancestry {
    /// Finds the ancestry of an agent among all agents.
    pub(crate) fn find(agents: &[AgentRecord], agent: AgentId, most: usize) -> Option<Self> {
        let of = |id: AgentId| agents.iter().find(|agent| agent.id == id);
        let mut ancestors = Vec::new();
        let mut parent = of(agent)?.parent;
        // A log that calls somebody their own ancestor must not keep us here for ever.
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

/// How far the log has grown. It says nothing of drafts, leases and the like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    /// Grows with every row.
    pub rows: u64,
    /// Grows with every mail that is sent.
    pub mail: u64,
}

/// One workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: String,
    /// Its directory.
    pub directory: String,
    /// When it was made.
    pub created_at: Micros,
}

/// One process that may own agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRecord {
    /// Its id.
    pub id: ProcessId,
    /// The machine it runs on.
    pub host: String,
    /// Its number there.
    pub pid: u32,
    /// When it started.
    pub started: Micros,
}

impl ProcessRecord {
    /// Says whether the process may still be there: one of this machine that is gone is not, one of
    /// another machine may be. A number that another program has by now counts as there.
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
    /// The newest row; 0 if there is none.
    pub seq: Seq,
    /// The epoch of the newest lease.
    pub epoch: Epoch,
    /// Who holds the lease, dead or alive.
    pub owner: Option<ProcessRecord>,
}

/// One message between agents, or from the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailRecord {
    /// Its id.
    pub id: MailId,
    /// The receiver.
    pub to: AgentId,
    /// The sender; none is the user.
    pub from: Option<AgentId>,
    /// What it says.
    pub text: String,
    /// What became of it.
    pub state: MailState,
    /// The row that shows it.
    pub shown_by: Option<RowRef>,
    /// When it was sent.
    pub sent_at: Micros,
}

/// One journalled run of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// The call that it carries out.
    pub call: RowRef,
    /// What it does to the world.
    pub class: EffectClass,
    /// When it started.
    pub started: Micros,
    /// When it must have ended.
    pub deadline: Micros,
    /// When it ended; none if it runs or its process died.
    pub ended: Option<Micros>,
}

/// The running response of an agent, as far as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// All parts, joined.
    pub text: String,
    /// When the newest part came.
    pub updated_at: Micros,
}

/// What was folded from an agent's own control rows up to some row: derived, and rebuildable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Of which agent, and up to which of its rows.
    pub upto: RowRef,
    /// The folded values, as core writes and reads them.
    pub folded: String,
}

/// Rows from which an agent's state is folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePoint {
    /// Its newest row; 0 if it has none.
    pub head: Seq,
    /// Its newest snapshot.
    pub snapshot: Option<Snapshot>,
    /// Its newest control rows after the snapshot, newest first.
    pub control: Vec<Row>,
}

impl RestorePoint {
    /// Query for the control rows after the snapshot.
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

    /// What to read of the next span.
    pub(crate) fn query(&self, span: Span) -> PageQuery {
        PageQuery {
            span,
            direction: Direction::Backwards,
            limit: self.limit - self.rows.len(),
        }
    }

    /// Takes in what was read; says whether to go on with the next span.
    pub(crate) fn add(&mut self, query: PageQuery, page: Vec<Row>) -> bool {
        let whole = page.len() as u64 == query.span.len().min(query.limit as u64);
        self.rows.extend(page);
        whole && self.rows.len() < self.limit
    }

    /// All rows, newest first.
    pub(crate) fn finish(self) -> Vec<Row> {
        self.rows
    }
}
