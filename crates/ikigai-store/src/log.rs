//! The traits of a store: reading the log, writing it, and administering it.

use std::collections::HashMap;
use std::io::BufRead;

pub use ikigai_core::BoxFuture;
use ikigai_core::{
    AgentId, ControlQuery, Kind, Micros, PageQuery, ProcessId, Row, RowRef, SessionId, Span,
};
use tokio::sync::mpsc;

use crate::batch::{Batch, Committed};
use crate::error::{CommitError, StoreError};
use crate::outline::{AgentOutline, MERGE_ROWS, TurnRow, may_change_merges};
use crate::portable::{RestoreError, RestoreMode, Restored};
use crate::records::{
    AgentRecord, Ancestry, BlobHash, DraftRecord, Head, JobRecord, MailRecord, MailState,
    PageCollector, ProcessRecord, Pulse, RequestId, RequestRecord, RestorePoint, RunRecord,
    SeenMark, SessionRecord, Snapshot, Status,
};
use crate::search::{SearchPage, SearchQuery};
use crate::server_report::ServerReport;
use crate::sql::{QueryError, QueryLimits, QueryTable};
use crate::watch::Watch;

/// Limit of agents that [`ReadLog::find_by_name`] returns.
pub const MOST_NAMESAKES: usize = 16;

/// Future of a read.
pub type ReadFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Read access to the log of all agents.
///
/// Every method sees all batches that were committed before the call.
pub trait ReadLog: Send + Sync {
    /// Returns the id of the process as which this handle takes leases.
    fn process(&self) -> ProcessId;

    /// Returns the newest row and lease of an agent; `None` if the agent is unknown.
    fn head(&self, agent: AgentId) -> ReadFuture<'_, Option<Head>>;

    /// Returns the newest control rows of a span, newest first.
    fn control(&self, query: ControlQuery) -> ReadFuture<'_, Vec<Row>>;

    /// Rows of a span, from either end.
    fn page(&self, query: PageQuery) -> ReadFuture<'_, Vec<Row>>;

    /// Returns the newest `limit` `usage` rows of a span, newest first.
    fn usage(&self, span: Span, limit: usize) -> ReadFuture<'_, Vec<Row>>;

    /// Returns the newest `usage` row of each of these agents, with running totals.
    ///
    /// The cost grows with the number of agents, not with the length of their logs.
    fn newest_usage(&self, agents: Vec<AgentId>) -> ReadFuture<'_, Vec<Row>> {
        Box::pin(async move {
            let mut newest = Vec::new();
            for agent in agents {
                newest.extend(self.usage(Span::whole(agent), 1).await?);
            }
            Ok(newest)
        })
    }

    /// Returns the number of rows of kind `user` in these spans.
    fn count_messages(&self, spans: Vec<Span>) -> ReadFuture<'_, u64>;

    /// Returns the newest `limit` `user` rows of several spans, given newest first.
    ///
    /// Engines read them by an index; this default reads all rows.
    fn user_rows(&self, spans: Vec<Span>, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        Box::pin(async move {
            let mut found = Vec::new();
            for span in spans {
                let query = PageQuery::newest(span, usize::MAX);
                let rows = self.page(query).await?.into_iter();
                found.extend(rows.filter(|row| row.kind.read_as() == Some(Kind::User)));
                found.truncate(limit);
            }
            Ok(found)
        })
    }

    /// Returns the newest snapshot of an agent at or before a row.
    fn snapshot(&self, upto: RowRef) -> ReadFuture<'_, Option<Snapshot>>;

    /// Returns the newest `limit` rows of several spans, given and returned newest first.
    ///
    /// The result ends where a span has fewer rows than it should.
    fn pages(&self, spans: Vec<Span>, limit: usize) -> ReadFuture<'_, Vec<Row>> {
        Box::pin(async move {
            let mut pages = PageCollector::new(limit);
            for span in spans {
                let query = pages.query(span);
                if !pages.add(query, self.page(query).await?) {
                    break;
                }
            }
            Ok(pages.finish())
        })
    }

    /// Rows from which an agent's state is folded; `None` if the agent is unknown.
    ///
    /// At most `limit` control rows are read. Engines behind a network should answer this in one
    /// round trip.
    fn restore_point(&self, agent: AgentId, limit: usize) -> ReadFuture<'_, Option<RestorePoint>> {
        Box::pin(async move {
            let Some(head) = self.head(agent).await? else {
                return Ok(None);
            };
            let snapshot = self.snapshot(RowRef::new(agent, head.seq)).await?;
            let query = RestorePoint::control_query(agent, head.seq, snapshot.as_ref(), limit);
            let control = self.control(query).await?;
            Ok(Some(RestorePoint {
                head: head.seq,
                control,
                snapshot,
            }))
        })
    }

    /// Returns all agents, or the agents of one session, in order of creation.
    fn agents(&self, session: Option<SessionId>) -> ReadFuture<'_, Vec<AgentRecord>>;

    /// Returns the outlines of all agents that are not reaped, in order of creation.
    ///
    /// Engines answer this with one statement.
    fn outlines(&self) -> ReadFuture<'_, Vec<AgentOutline>> {
        Box::pin(async move {
            let mut outlines = Vec::new();
            for agent in self.agents(None).await? {
                let turn_row = match agent.status {
                    Status::Reaped => continue,
                    Status::Dead => None,
                    Status::Running => {
                        let rows = PageQuery::newest(Span::whole(agent.id), usize::MAX);
                        TurnRow::newest_of(&agent, &self.page(rows).await?)
                    }
                };
                outlines.push(AgentOutline {
                    agent,
                    is_held: false,
                    turn_row,
                });
            }
            find_held(self, &mut outlines).await?;
            Ok(outlines)
        })
    }

    /// Returns the rows that merge children into these parents or change what is merged: `user` rows
    /// of merges, `rewind` and `clear` rows, each since a time.
    ///
    /// Looks at the newest 4,096 rows of each parent. Parents come in the given order, their rows
    /// newest first and without content.
    fn merge_rows(&self, parents: Vec<(AgentId, Micros)>) -> ReadFuture<'_, Vec<Row>> {
        Box::pin(async move {
            let mut found = Vec::new();
            for (parent, since) in parents {
                let newest = PageQuery::newest(Span::whole(parent), MERGE_ROWS);
                let rows = self.page(newest).await?.into_iter();
                let rows = rows.filter(|row| row.created_at >= since && may_change_merges(row));
                found.extend(rows.map(|row| Row {
                    content: None,
                    ..row
                }));
            }
            Ok(found)
        })
    }

    /// Returns running agents of a session that have no parent, in order of creation.
    ///
    /// Called at every start, so engines should not read the descendants.
    fn living_roots(&self, session: SessionId) -> ReadFuture<'_, Vec<AgentRecord>> {
        Box::pin(async move {
            let mut agents = self.agents(Some(session)).await?;
            agents.retain(|agent| agent.parent.is_none() && agent.status == Status::Running);
            Ok(agents)
        })
    }

    /// Processes that hold leases, each once.
    fn owners(&self) -> ReadFuture<'_, Vec<ProcessRecord>> {
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

    /// Returns the record of one agent.
    fn agent(&self, agent: AgentId) -> ReadFuture<'_, Option<AgentRecord>>;

    /// Finds the running agents of this name, in one session or in all, in order of creation.
    ///
    /// At most [`MOST_NAMESAKES`] are returned.
    fn find_by_name<'a>(
        &'a self,
        session: Option<SessionId>,
        name: &'a str,
    ) -> ReadFuture<'a, Vec<AgentRecord>> {
        Box::pin(async move {
            let mut agents = self.agents(session).await?;
            agents.retain(|agent| agent.status == Status::Running && agent.name == name);
            agents.truncate(MOST_NAMESAKES);
            Ok(agents)
        })
    }

    /// Names of a session's running agents that start with a prefix.
    fn living_names<'a>(
        &'a self,
        session: SessionId,
        prefix: &'a str,
    ) -> ReadFuture<'a, Vec<String>> {
        Box::pin(async move {
            let agents = self.agents(Some(session)).await?.into_iter();
            let living = agents.filter(|agent| agent.status == Status::Running);
            let names = living.map(|agent| agent.name);
            Ok(names.filter(|name| name.starts_with(prefix)).collect())
        })
    }

    /// Ancestors and number of relatives of an agent; `None` if the agent is unknown.
    ///
    /// The family is counted up to `most`. A dead agent counts no descendants.
    fn ancestry(&self, agent: AgentId, most: usize) -> ReadFuture<'_, Option<Ancestry>> {
        Box::pin(async move { Ok(Ancestry::find(&self.agents(None).await?, agent, most)) })
    }

    /// Filters these agents for the ones that no longer run.
    fn dead_among(&self, agents: Vec<AgentId>) -> ReadFuture<'_, Vec<AgentId>> {
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

    /// Checks whether a process that took a lease is alive.
    fn is_process_alive<'a>(&'a self, process: &'a ProcessRecord) -> ReadFuture<'a, bool>;

    /// Counters that grow with the log.
    fn pulse(&self) -> ReadFuture<'_, Pulse>;

    /// Returns all sessions, in order of creation.
    fn sessions(&self) -> ReadFuture<'_, Vec<SessionRecord>>;

    /// Returns the sessions of a directory on all machines, in order of creation.
    ///
    /// Called at every start, so engines should not read the others.
    fn sessions_in<'a>(&'a self, directory: &'a str) -> ReadFuture<'a, Vec<SessionRecord>> {
        Box::pin(async move {
            let mut sessions = self.sessions().await?;
            sessions.retain(|session| session.directory == directory);
            Ok(sessions)
        })
    }

    /// Returns all mail to an agent, in order of sending.
    fn mail(&self, to: AgentId) -> ReadFuture<'_, Vec<MailRecord>>;

    /// Returns queued mail to an agent, in order of sending.
    fn queued_mail(&self, to: AgentId) -> ReadFuture<'_, Vec<MailRecord>> {
        Box::pin(async move {
            let mut mail = self.mail(to).await?;
            mail.retain(|mail| mail.state == MailState::Queued);
            Ok(mail)
        })
    }

    /// Returns journalled runs of an agent that have not ended, in order of start.
    fn open_runs(&self, agent: AgentId) -> ReadFuture<'_, Vec<RunRecord>>;

    /// Returns the running background processes of an agent or of all, in order of start.
    fn open_jobs(&self, of: Option<AgentId>) -> ReadFuture<'_, Vec<JobRecord>>;

    /// Returns the newest `limit` background processes of an agent, newest first.
    fn jobs(&self, agent: AgentId, limit: usize) -> ReadFuture<'_, Vec<JobRecord>>;

    /// Returns the newest `limit` `process` rows of a span, newest first.
    fn process_rows(&self, span: Span, limit: usize) -> ReadFuture<'_, Vec<Row>>;

    /// Returns waiting requests to agents whose leases this process holds, in order of sending.
    fn waiting_requests(&self) -> ReadFuture<'_, Vec<RequestRecord>>;

    /// Returns a request to the holder of an agent.
    fn request(&self, request: RequestId) -> ReadFuture<'_, Option<RequestRecord>>;

    /// Returns the newest `limit` `files` rows of a span, newest first.
    fn files_rows(&self, span: Span, limit: usize) -> ReadFuture<'_, Vec<Row>>;

    /// Returns the marks of a person on running agents, and those of everyone, in order of creation.
    ///
    /// An agent without a mark is missing: nothing of it was read.
    fn seen<'a>(&'a self, person: &'a str) -> ReadFuture<'a, Vec<SeenMark>>;

    /// Returns the draft of the response that an agent is receiving.
    fn draft(&self, agent: AgentId) -> ReadFuture<'_, Option<DraftRecord>>;

    /// Bytes of a blob; `None` unless all its parts are stored.
    fn blob(&self, hash: BlobHash) -> ReadFuture<'_, Option<Vec<u8>>>;

    /// Finds rows by words and other conditions.
    ///
    /// The search has a time limit; the page reports parts that it left out.
    fn search(&self, query: SearchQuery) -> ReadFuture<'_, SearchPage>;

    /// Indexes the next chunk of rows for [`Self::search`]; returns how many remain.
    ///
    /// Searching does this by itself; call it to show progress.
    fn index_chunk(&self) -> ReadFuture<'_, u64> {
        Box::pin(std::future::ready(Ok(0)))
    }

    /// Sends some agents with all their ancestors, or everything, as lines of JSON.
    ///
    /// All lines show one moment of the log; [`crate::portable`] describes them. A store may
    /// not support this.
    fn dump(&self, _of: Option<Vec<AgentId>>, _lines: mpsc::Sender<String>) -> ReadFuture<'_, ()> {
        let refused = StoreError::Value("this store does not support dumps".to_owned());
        Box::pin(std::future::ready(Err(refused)))
    }

    /// Subscribes to commits of this and of other processes.
    fn watch(&self) -> Result<Watch, StoreError>;
}

/// Finds the outlines whose owner lives, and checks each owner once.
pub(crate) async fn find_held(
    store: &(impl ReadLog + ?Sized),
    outlines: &mut [AgentOutline],
) -> Result<(), StoreError> {
    let mut living: HashMap<ProcessId, bool> = HashMap::new();
    for outline in outlines {
        let Some(owner) = &outline.agent.owner else {
            continue;
        };
        outline.is_held = if let Some(lives) = living.get(&owner.id) {
            *lives
        } else {
            let lives = store.is_process_alive(owner).await?;
            living.insert(owner.id, lives);
            lives
        };
    }
    Ok(())
}

/// Write access to the log of all agents.
pub trait Log: ReadLog {
    /// Stores a whole batch or nothing of it; durable on return.
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed, CommitError>>;
}

/// Maintenance of a store: checks, SQL, restores, the search index, closing.
pub trait Admin: Log {
    /// Checks the whole store for damage; an empty list means none. Reads everything.
    fn integrity(&self) -> ReadFuture<'_, Vec<String>>;

    /// Runs one reading SQL statement of the user.
    ///
    /// Blocks, so do not call it on a runtime. Its connection cannot write.
    fn query(&self, sql: &str, limits: QueryLimits) -> Result<QueryTable, QueryError>;

    /// Examines the database server; `None` if the store has none.
    fn report(&self) -> ReadFuture<'_, Option<ServerReport>>;

    /// Restores a log that [`ReadLog::dump`] wrote, all of it or nothing.
    ///
    /// Blocks, so do not call it on a runtime, and excludes other writers. Fails if one of the
    /// dumped agents exists.
    fn restore(&self, lines: &mut dyn BufRead, mode: RestoreMode)
    -> Result<Restored, RestoreError>;

    /// Deletes the search index, so that it is built again; returns the rows to index.
    fn reset_index(&self) -> ReadFuture<'_, u64>;

    /// Finishes queued writes, ends the threads and releases the process's lock.
    ///
    /// Blocks until that is done. Every later call fails with [`StoreError::Closed`]. Leases
    /// are not given back, but other processes find their owner gone.
    fn close(&self);
}
