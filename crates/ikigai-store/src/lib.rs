//! The event log of ikigai: one way to write, several to read, the same on every engine.

pub mod batch;
pub mod blobs;
pub mod error;
mod faults;
pub mod history;
pub mod legacy;
mod numbers;
pub mod portable;
pub mod postgres;
pub mod records;
mod rules;
pub mod search;
mod selects;
pub mod sql;
pub mod sqlite;
mod watch;

use std::future::Future;
use std::pin::Pin;

use ikigai_core::{
    AgentId, ControlQuery, Direction, Kind, PageQuery, ProcessId, Row, RowRef, SessionId, Span,
};

use tokio::sync::mpsc;

pub use batch::{Batch, Committed, Effect, HeadClaim, LeaseClaim, NewAgent};
pub use error::{CommitError, StoreError};
pub use history::{Agent, AgentError};
pub use postgres::PostgresStore;
pub use records::{
    AgentRecord, BlobHash, Draft, EffectClass, Head, Kin, MailId, MailRecord, MailState, Opening,
    ProcessRecord, Pulse, RunId, RunRecord, SessionRecord, Snapshot, Status,
};
pub use search::{Cursor, Hit, Order, SearchPage, SearchQuery};
pub use sqlite::SqliteStore;
pub use watch::Watch;

use records::Pages;

/// A future that a store returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What reading returns.
pub type Reading<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// The log of all agents.
///
/// There is one writing method. Every other method reads what was committed before it was called.
pub trait Store: Send + Sync {
    /// The process as which this handle takes leases.
    fn process(&self) -> ProcessId;

    /// Stores a batch whole, or not at all; durable when it returns.
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed, CommitError>>;

    /// Newest row and lease of an agent; none if there is no such agent.
    fn head(&self, agent: AgentId) -> Reading<'_, Option<Head>>;

    /// The newest control rows of a span, newest first.
    fn control(&self, query: ControlQuery) -> Reading<'_, Vec<Row>>;

    /// Rows of a span, from either end.
    fn page(&self, query: PageQuery) -> Reading<'_, Vec<Row>>;

    /// The newest `limit` rows of kind `usage` of a span, newest first.
    fn usage(&self, span: Span, limit: usize) -> Reading<'_, Vec<Row>>;

    /// The newest row of kind `usage` of each of these agents that has one, which holds the sums
    /// over all of them. Costs what the agents are, not what they have written.
    fn newest_usage(&self, agents: Vec<AgentId>) -> Reading<'_, Vec<Row>> {
        Box::pin(async move {
            let mut newest = Vec::new();
            for agent in agents {
                newest.extend(self.usage(Span::whole(agent), 1).await?);
            }
            Ok(newest)
        })
    }

    /// How many rows of kind `user` these spans hold.
    fn count_messages(&self, spans: Vec<Span>) -> Reading<'_, u64>;

    /// The newest `limit` rows of kind `user` of several spans, given newest first.
    ///
    /// Engines read them by an index; this default reads all rows.
    fn user_rows(&self, spans: Vec<Span>, limit: usize) -> Reading<'_, Vec<Row>> {
        Box::pin(async move {
            let mut found = Vec::new();
            for span in spans {
                let query = PageQuery {
                    span,
                    direction: Direction::Backwards,
                    limit: usize::MAX,
                };
                let rows = self.page(query).await?.into_iter();
                found.extend(rows.filter(|row| row.kind.read_as() == Some(Kind::User)));
                found.truncate(limit);
            }
            Ok(found)
        })
    }

    /// The newest snapshot of an agent at or before a row.
    fn snapshot(&self, upto: RowRef) -> Reading<'_, Option<Snapshot>>;

    /// The newest `limit` rows of several spans, which are told newest first, newest first; it ends
    /// where a span has fewer rows than it should.
    fn pages(&self, spans: Vec<Span>, limit: usize) -> Reading<'_, Vec<Row>> {
        Box::pin(async move {
            let mut pages = Pages::new(limit);
            for span in spans {
                let query = pages.query(span);
                if !pages.add(query, self.page(query).await?) {
                    break;
                }
            }
            Ok(pages.finish())
        })
    }

    /// What opening an agent needs: its newest row, its newest snapshot, and the newest control
    /// rows after that, at most `limit`, newest first. None if there is no such agent.
    ///
    /// An engine whose questions have a long way answers this one in one go.
    fn opening(&self, agent: AgentId, limit: usize) -> Reading<'_, Option<Opening>> {
        Box::pin(async move {
            let Some(head) = self.head(agent).await? else {
                return Ok(None);
            };
            let snapshot = self.snapshot(RowRef::new(agent, head.seq)).await?;
            let control = self.control(Opening::query(agent, head.seq, snapshot.as_ref(), limit));
            Ok(Some(Opening {
                head: head.seq,
                control: control.await?,
                snapshot,
            }))
        })
    }

    /// The agents, all or those of one session, in the order in which they were made.
    fn agents(&self, session: Option<SessionId>) -> Reading<'_, Vec<AgentRecord>>;

    /// The living agents of a session that have no parent, in the order in which they were made.
    ///
    /// An engine that can tell them apart without reading their descendants does: it is asked at
    /// every start.
    fn living_roots(&self, session: SessionId) -> Reading<'_, Vec<AgentRecord>> {
        Box::pin(async move {
            let mut agents = self.agents(Some(session)).await?;
            agents.retain(|agent| agent.parent.is_none() && agent.status == Status::Running);
            Ok(agents)
        })
    }

    /// The processes that hold agents, each once.
    fn owners(&self) -> Reading<'_, Vec<ProcessRecord>> {
        Box::pin(async move {
            let mut owners: Vec<ProcessRecord> = Vec::new();
            for owner in self
                .agents(None)
                .await?
                .into_iter()
                .filter_map(|agent| agent.owner)
            {
                if !owners.contains(&owner) {
                    owners.push(owner);
                }
            }
            Ok(owners)
        })
    }

    /// One agent.
    fn agent(&self, agent: AgentId) -> Reading<'_, Option<AgentRecord>>;

    /// The living agent of this name.
    fn called<'a>(&'a self, name: &'a str) -> Reading<'a, Option<AgentRecord>> {
        Box::pin(async move {
            let agents = self.agents(None).await?.into_iter();
            let mut living = agents.filter(|agent| agent.status == Status::Running);
            Ok(living.find(|agent| agent.name == name))
        })
    }

    /// The names of living agents that begin so.
    fn living_names<'a>(&'a self, beginning: &'a str) -> Reading<'a, Vec<String>> {
        Box::pin(async move {
            let agents = self.agents(None).await?.into_iter();
            let living = agents.filter(|agent| agent.status == Status::Running);
            let names = living.map(|agent| agent.name);
            Ok(names.filter(|name| name.starts_with(beginning)).collect())
        })
    }

    /// How an agent is related to others, its family counted up to `most`; none if there is no such
    /// agent. The dead have no living descendants.
    fn kin(&self, agent: AgentId, most: usize) -> Reading<'_, Option<Kin>> {
        Box::pin(async move { Ok(Kin::among(&self.agents(None).await?, agent, most)) })
    }

    /// Those of these agents that do not live.
    fn dead_of(&self, agents: Vec<AgentId>) -> Reading<'_, Vec<AgentId>> {
        Box::pin(async move {
            let mut dead = Vec::new();
            for agent in agents {
                let record = self.agent(agent).await?;
                if record.is_some_and(|record| record.status != Status::Running) {
                    dead.push(agent);
                }
            }
            Ok(dead)
        })
    }

    /// Whether a process that took a lease is still there.
    fn lives<'a>(&'a self, process: &'a ProcessRecord) -> Reading<'a, bool>;

    /// How far the log has grown.
    fn pulse(&self) -> Reading<'_, Pulse>;

    /// All sessions, in the order in which they were made.
    fn sessions(&self) -> Reading<'_, Vec<SessionRecord>>;

    /// All mail to an agent in the order in which it was sent.
    fn mail(&self, to: AgentId) -> Reading<'_, Vec<MailRecord>>;

    /// The mail to an agent that waits, in the order in which it was sent.
    fn queued_mail(&self, to: AgentId) -> Reading<'_, Vec<MailRecord>> {
        Box::pin(async move {
            let mut mail = self.mail(to).await?;
            mail.retain(|mail| mail.state == MailState::Queued);
            Ok(mail)
        })
    }

    /// The journalled runs of an agent's calls that have not ended, in the order of their start.
    fn open_runs(&self, agent: AgentId) -> Reading<'_, Vec<RunRecord>>;

    /// The running response of an agent.
    fn draft(&self, agent: AgentId) -> Reading<'_, Option<Draft>>;

    /// The bytes of a blob; none unless all its parts up to the last stored one are there.
    fn blob(&self, hash: BlobHash) -> Reading<'_, Option<Vec<u8>>>;

    /// Finds rows by words and other conditions. What was committed before is found.
    ///
    /// It ends in a short time: an answer says what it left out for that.
    fn search(&self, query: SearchQuery) -> Reading<'_, SearchPage>;

    /// Brings what [`Self::search`] looks into one step nearer to the log, and tells how many rows
    /// are left. Searching does so by itself; this is for whoever wants to show how far it is.
    fn catch_up(&self) -> Reading<'_, u64> {
        Box::pin(std::future::ready(Ok(0)))
    }

    /// Tells some agents with all their ancestors, or everything, as lines of JSON that another
    /// store can take in; see [`portable`]. All of it is of one moment.
    ///
    /// Not every store can do so.
    fn dump(&self, _of: Option<Vec<AgentId>>, _lines: mpsc::Sender<String>) -> Reading<'_, ()> {
        let refused = StoreError::Value("this store cannot be told as a whole".to_owned());
        Box::pin(std::future::ready(Err(refused)))
    }

    /// Starts to listen for commits, of this and of other processes.
    fn watch(&self) -> Result<Watch, StoreError>;
}
