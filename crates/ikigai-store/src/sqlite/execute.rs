//! One batch inside a write transaction: its facts, the decision, and its writes.

use ikigai_core::{Epoch, NewRow, PersonName, RowRef};
use rusqlite::{Connection, Params, params};

use super::errors::{SqliteRefusal, is_reference_violation};
use super::facts;
use super::locks::SqliteOwner;
use super::{budget, read_marks, requests};
use crate::batch::{Batch, Committed, NewAgent};
use crate::records::{MailState, SessionRecord, Status};
use crate::sql_common::to_stored;
use crate::transaction::{
    AgentWrite, DraftWrite, FactKeys, HeadWrite, JobWrite, MailWrite, RowKeys, RunWrite, Write,
    dangling, decide,
};

/// Applies a batch. After an error of SQLite a part of it may be written, so roll back.
pub(super) fn apply(
    connection: &Connection,
    owner: &mut SqliteOwner,
    batch: &Batch,
) -> Result<Committed, SqliteRefusal> {
    let needed = FactKeys::of([batch]);
    let process = needed.registers.then(|| owner.register(connection));
    let process = process.transpose()?;
    let (facts, keys) = facts::read(connection, owner, &needed)?;
    let writes = decide(&facts, batch)?;
    let mut executor = Executor {
        connection,
        process,
        keys,
    };
    for write in &writes.list {
        executor.execute(write).map_err(|failure| match failure {
            // The rows of a log that lost some do not reach up to its head.
            SqliteRefusal::Engine(error) if is_reference_violation(&error) => dangling().into(),
            failure => failure,
        })?;
    }
    Ok(writes.committed)
}

struct Executor<'a> {
    connection: &'a Connection,
    /// Key of this process, if the batch takes a lease or reserves.
    process: Option<i64>,
    keys: RowKeys,
}

impl Executor<'_> {
    fn execute(&mut self, write: &Write<'_>) -> Result<(), SqliteRefusal> {
        match write {
            Write::InsertSession(session) => self.insert_session(session),
            Write::MoveSession(place) => self.run(
                "UPDATE sessions SET machine = ?2, host = ?3, directory = ?4 WHERE uuid = ?1",
                params![
                    place.session.to_string(),
                    place.machine.map(|machine| machine.to_string()),
                    place.host,
                    place.directory
                ],
            ),
            Write::Agent(write) => self.write_agent(write),
            Write::Head(write) => self.write_head(*write),
            Write::InsertRows(rows) => rows
                .iter()
                .try_for_each(|(at, row)| self.insert_row(*at, row)),
            Write::Draft(write) => self.write_draft(*write),
            Write::Mail(write) => self.write_mail(*write),
            Write::Run(write) => self.write_run(*write),
            Write::Job(write) => self.write_job(*write),
            Write::Request(write) => requests::write(self.connection, &self.keys, *write),
            Write::Budget(write) => {
                budget::write(self.connection, &self.keys, self.process, *write)
            }
            Write::InsertBlobPart { hash, part, bytes } => self.run(
                "INSERT INTO blobs (hash, part, bytes) VALUES (?1, ?2, ?3)
                 ON CONFLICT (hash, part) DO NOTHING",
                params![hash.0, part, bytes],
            ),
            Write::MarkSeen { person, mark } => {
                read_marks::mark(self.connection, &self.keys, person, *mark)
            }
            Write::PutSnapshot(snapshot) => self.run(
                "INSERT INTO paths (agent, upto, folded) VALUES (?1, ?2, ?3)
                 ON CONFLICT (agent, upto) DO UPDATE SET folded = excluded.folded",
                params![
                    self.keys.agent(snapshot.upto.agent)?,
                    to_stored(snapshot.upto.seq.0),
                    snapshot.folded
                ],
            ),
        }
    }

    fn run(&self, sql: &str, values: impl Params) -> Result<(), SqliteRefusal> {
        self.connection.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    fn insert_session(&mut self, session: &SessionRecord) -> Result<(), SqliteRefusal> {
        self.run(
            "INSERT INTO sessions (uuid, created_at, name, directory, machine, host)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                session.id.to_string(),
                session.created_at.0,
                session.name,
                session.directory,
                session.machine.map(|machine| machine.to_string()),
                session.host
            ],
        )?;
        let key = self.connection.last_insert_rowid();
        self.keys.sessions.insert(session.id, key);
        Ok(())
    }

    fn write_agent(&mut self, write: &AgentWrite<'_>) -> Result<(), SqliteRefusal> {
        match write {
            AgentWrite::Insert {
                agent,
                epoch,
                owned,
            } => self.insert_agent(agent, *epoch, *owned),
            AgentWrite::SetName { agent, name } => self.run(
                "UPDATE agents SET name = ?2 WHERE id = ?1",
                params![self.keys.agent(*agent)?, name],
            ),
            AgentWrite::SetOrigin {
                agent,
                parent,
                fork_point,
            } => {
                let (fork_agent, fork_seq) = self.keys.row(*fork_point)?;
                let parent = self.keys.optional(*parent)?;
                self.run(
                    "UPDATE agents SET parent = ?2, fork_agent = ?3, fork_seq = ?4 WHERE id = ?1",
                    params![self.keys.agent(*agent)?, parent, fork_agent, fork_seq],
                )
            }
            AgentWrite::SetStatus { agent, status } => self.run(
                "UPDATE agents SET status = ?2 WHERE id = ?1",
                params![self.keys.agent(*agent)?, status.word()],
            ),
        }
    }

    fn insert_agent(
        &mut self,
        agent: &NewAgent,
        epoch: Epoch,
        owned: bool,
    ) -> Result<(), SqliteRefusal> {
        let process = self.process.filter(|_| owned);
        let session = self.keys.sessions.get(&agent.session).copied();
        let (fork_agent, fork_seq) = self.keys.row(agent.fork_point)?;
        self.run(
            "INSERT INTO agents
                 (uuid, session, parent, fork_agent, fork_seq, created_at, status, name)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                agent.id.to_string(),
                session,
                self.keys.optional(agent.parent)?,
                fork_agent,
                fork_seq,
                agent.created_at.0,
                Status::Running.word(),
                agent.name,
            ],
        )?;
        let key = self.connection.last_insert_rowid();
        self.keys.agents.insert(agent.id, key);
        self.run(
            "INSERT INTO heads (agent, seq, epoch, owner) VALUES (?1, 0, ?2, ?3)",
            params![key, to_stored(epoch.0), process],
        )
    }

    fn write_head(&self, write: HeadWrite) -> Result<(), SqliteRefusal> {
        match write {
            // Without RETURNING, which costs more than all the rest of an append.
            HeadWrite::Advance { agent, rows } => self.run(
                "UPDATE heads SET seq = seq + ?2 WHERE agent = ?1",
                params![self.keys.agent(agent)?, to_stored(rows)],
            ),
            HeadWrite::SetOwner { agent, epoch } => self.run(
                "UPDATE heads SET epoch = ?2, owner = ?3 WHERE agent = ?1",
                params![self.keys.agent(agent)?, to_stored(epoch.0), self.process],
            ),
            HeadWrite::ClearOwner { agent } => self.run(
                "UPDATE heads SET owner = NULL WHERE agent = ?1",
                params![self.keys.agent(agent)?],
            ),
        }
    }

    fn insert_row(&self, at: RowRef, row: &NewRow) -> Result<(), SqliteRefusal> {
        self.run(
            "INSERT INTO messages (agent, seq, kind, control, created_at, content, data, author)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                self.keys.agent(at.agent)?,
                to_stored(at.seq.0),
                row.kind.name(),
                row.control,
                row.created_at.0,
                row.content,
                row.data,
                row.author.as_ref().map(PersonName::as_str),
            ],
        )
    }

    fn write_draft(&self, write: DraftWrite<'_>) -> Result<(), SqliteRefusal> {
        match write {
            DraftWrite::Append { agent, text, at } => self.run(
                "INSERT INTO drafts (agent, part, at, text)
                 SELECT ?1, coalesce(max(part), 0) + 1, ?2, ?3 FROM drafts WHERE agent = ?1",
                params![self.keys.agent(agent)?, at.0, text],
            ),
            DraftWrite::Delete { agent } => self.run(
                "DELETE FROM drafts WHERE agent = ?1",
                params![self.keys.agent(agent)?],
            ),
        }
    }

    fn write_mail(&self, write: MailWrite<'_>) -> Result<(), SqliteRefusal> {
        match write {
            MailWrite::Insert {
                mail,
                to,
                origin,
                from,
                author,
                about,
                process,
                text,
                at,
            } => self.run(
                "INSERT INTO mail (uuid, receiver, sender, sent_at, state, text, origin, about, process,
                                   author)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                params![
                    mail.0.to_be_bytes(),
                    self.keys.agent(to)?,
                    self.keys.optional(from)?,
                    at.0,
                    MailState::Queued.word(),
                    text,
                    origin.word(),
                    about.word(),
                    process.map(to_stored),
                    author.map(PersonName::as_str)
                ],
            ),
            MailWrite::Settle {
                mail,
                state,
                shown_by,
            } => {
                let (agent, seq) = self.keys.row(shown_by)?;
                self.run(
                    "UPDATE mail SET state = ?2, shown_agent = ?3, shown_seq = ?4
                     WHERE uuid = ?1",
                    params![mail.0.to_be_bytes(), state.word(), agent, seq],
                )
            }
            MailWrite::BounceAll { to } => self.run(
                "UPDATE mail SET state = ?2 WHERE receiver = ?1 AND state = ?3",
                params![
                    self.keys.agent(to)?,
                    MailState::Bounced.word(),
                    MailState::Queued.word()
                ],
            ),
        }
    }

    fn write_run(&self, write: RunWrite) -> Result<(), SqliteRefusal> {
        match write {
            RunWrite::Insert {
                run,
                call,
                class,
                started,
                deadline,
            } => self.run(
                "INSERT INTO tool_runs (uuid, agent, seq, class, started, deadline)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    run.0.to_be_bytes(),
                    self.keys.agent(call.agent)?,
                    to_stored(call.seq.0),
                    class.word(),
                    started.0,
                    deadline.0
                ],
            ),
            RunWrite::End { run, ended } => self.run(
                "UPDATE tool_runs SET ended = ?2 WHERE uuid = ?1",
                params![run.0.to_be_bytes(), ended.0],
            ),
        }
    }

    fn write_job(&self, write: JobWrite<'_>) -> Result<(), SqliteRefusal> {
        match write {
            JobWrite::Insert(job) => self.run(
                "INSERT INTO jobs (uuid, agent, number, command, started, deadline, host,
                                   directory, pattern, read_to, ended)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                params![
                    job.id.0.to_be_bytes(),
                    self.keys.agent(job.agent)?,
                    to_stored(job.number),
                    job.command,
                    job.started.0,
                    job.deadline.0,
                    job.host,
                    job.directory,
                    job.pattern,
                    to_stored(job.read_to),
                    job.ended.map(|ended| ended.0)
                ],
            ),
            JobWrite::SetRead { job, bytes } => self.run(
                "UPDATE jobs SET read_to = ?2 WHERE uuid = ?1",
                params![job.0.to_be_bytes(), to_stored(bytes)],
            ),
            JobWrite::DropPattern { job } => self.run(
                "UPDATE jobs SET pattern = NULL WHERE uuid = ?1",
                params![job.0.to_be_bytes()],
            ),
            JobWrite::End { job, ended } => self.run(
                "UPDATE jobs SET ended = ?2 WHERE uuid = ?1",
                params![job.0.to_be_bytes(), ended.0],
            ),
        }
    }
}
