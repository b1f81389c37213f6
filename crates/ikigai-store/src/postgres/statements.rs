//! The statements that carry out the writes of a batch.

use ikigai_core::{Epoch, NewRow, RowRef};

use super::errors::PostgresRefusal;
use super::facts::TransactionFacts;
use super::pipeline::OwnedParam;
use super::values::QueryFailure;
use super::{budget, read_marks, requests};
use crate::batch::NewAgent;
use crate::records::{MailState, SessionRecord, Status};
use crate::sql_common::to_stored;
use crate::transaction::{AgentWrite, DraftWrite, HeadWrite, JobWrite, MailWrite, RunWrite, Write};

macro_rules! values {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as OwnedParam),*]
    };
}

/// A statement with its parameters.
pub(super) type Statement = (&'static str, Vec<OwnedParam>);

/// Converts writes into statements, with the keys that were read and drawn.
pub(super) struct StatementBuilder<'a> {
    read: &'a mut TransactionFacts,
    /// Key of this process, if it is registered.
    process: Option<i64>,
    statements: Vec<Statement>,
}

impl<'a> StatementBuilder<'a> {
    pub(super) fn new(read: &'a mut TransactionFacts, process: Option<i64>) -> Self {
        Self {
            read,
            process,
            statements: Vec::new(),
        }
    }

    /// Adds the statements of one write.
    pub(super) fn add(&mut self, write: &Write<'_>) -> Result<(), PostgresRefusal> {
        match write {
            Write::InsertSession(session) => self.insert_session(session)?,
            Write::MoveSession(place) => self.push(
                "UPDATE sessions SET machine = $2, host = $3, directory = $4 WHERE uuid = $1",
                values![
                    place.session.to_string(),
                    place.machine.map(|machine| machine.to_string()),
                    place.host.as_deref().map(clean),
                    clean(&place.directory)
                ],
            ),
            Write::Agent(write) => self.add_agent(write)?,
            Write::Head(write) => self.add_head(*write)?,
            Write::InsertRows(rows) => self.add_rows(rows)?,
            Write::Draft(write) => self.add_draft(*write)?,
            Write::Mail(write) => self.add_mail(*write)?,
            Write::Run(write) => self.add_run(*write)?,
            Write::Job(write) => self.add_job(*write)?,
            Write::Request(write) => {
                let statement = requests::statement(&self.read.keys, *write)?;
                self.statements.push(statement);
            }
            Write::Budget(write) => {
                let statement = budget::statement(&self.read.keys, self.process, *write)?;
                self.statements.push(statement);
            }
            Write::InsertBlobPart { hash, part, bytes } => self.push(
                "INSERT INTO blobs (hash, part, bytes) VALUES ($1, $2, $3)
                 ON CONFLICT (hash, part) DO NOTHING",
                values![hash.0.to_vec(), i64::from(*part), bytes.to_vec()],
            ),
            Write::MarkSeen { person, mark } => {
                let statement = read_marks::statement(&self.read.keys, person, *mark)?;
                self.statements.push(statement);
            }
            Write::PutSnapshot(snapshot) => {
                let agent = self.read.keys.agent(snapshot.upto.agent)?;
                self.push(
                    "INSERT INTO paths (agent, upto, folded) VALUES ($1, $2, $3)
                     ON CONFLICT (agent, upto) DO UPDATE SET folded = excluded.folded",
                    values![
                        agent,
                        to_stored(snapshot.upto.seq.0),
                        clean(&snapshot.folded)
                    ],
                );
            }
        }
        Ok(())
    }

    /// Returns all statements, in order.
    pub(super) fn finish(self) -> Vec<Statement> {
        self.statements
    }

    fn push(&mut self, sql: &'static str, values: Vec<OwnedParam>) {
        self.statements.push((sql, values));
    }

    fn insert_session(&mut self, session: &SessionRecord) -> Result<(), PostgresRefusal> {
        let key = self.read.session_keys.pop_front().ok_or_else(no_key)?;
        self.read.keys.sessions.insert(session.id, key);
        self.push(
            "INSERT INTO sessions (id, uuid, created_at, name, directory, machine, host)
             OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5, $6, $7)",
            values![
                key,
                session.id.to_string(),
                session.created_at.0,
                clean(&session.name),
                clean(&session.directory),
                session.machine.map(|machine| machine.to_string()),
                session.host.as_deref().map(clean)
            ],
        );
        Ok(())
    }

    fn add_agent(&mut self, write: &AgentWrite<'_>) -> Result<(), PostgresRefusal> {
        match write {
            AgentWrite::Insert {
                agent,
                epoch,
                owned,
            } => return self.insert_agent(agent, *epoch, *owned),
            AgentWrite::SetName { agent, name } => {
                let key = self.read.keys.agent(*agent)?;
                self.push(
                    "UPDATE agents SET name = $2 WHERE id = $1",
                    values![key, clean(name)],
                );
            }
            AgentWrite::SetOrigin {
                agent,
                parent,
                fork_point,
            } => {
                let key = self.read.keys.agent(*agent)?;
                let parent = self.read.keys.optional(*parent)?;
                let (fork_agent, fork_seq) = self.read.keys.row(*fork_point)?;
                self.push(
                    "UPDATE agents SET parent = $2, fork_agent = $3, fork_seq = $4 WHERE id = $1",
                    values![key, parent, fork_agent, fork_seq],
                );
            }
            AgentWrite::SetStatus { agent, status } => {
                let key = self.read.keys.agent(*agent)?;
                self.push(
                    "UPDATE agents SET status = $2 WHERE id = $1",
                    values![key, status.word()],
                );
            }
        }
        Ok(())
    }

    fn insert_agent(
        &mut self,
        agent: &NewAgent,
        epoch: Epoch,
        owned: bool,
    ) -> Result<(), PostgresRefusal> {
        let key = self.read.agent_keys.pop_front().ok_or_else(no_key)?;
        let keys = &mut self.read.keys;
        keys.agents.insert(agent.id, key);
        let session = keys.sessions.get(&agent.session).copied();
        let parent = keys.optional(agent.parent)?;
        let (fork_agent, fork_seq) = keys.row(agent.fork_point)?;
        self.push(
            "INSERT INTO agents
                 (id, uuid, session, parent, fork_agent, fork_seq, created_at, status, name)
             OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            values![
                key,
                agent.id.to_string(),
                session,
                parent,
                fork_agent,
                fork_seq,
                agent.created_at.0,
                Status::Running.word(),
                clean(&agent.name),
            ],
        );
        let process = self.process.filter(|_| owned);
        self.push(
            "INSERT INTO heads (agent, seq, epoch, owner) VALUES ($1, 0, $2, $3)",
            values![key, to_stored(epoch.0), process],
        );
        Ok(())
    }

    fn add_head(&mut self, write: HeadWrite) -> Result<(), PostgresRefusal> {
        match write {
            HeadWrite::Advance { agent, rows } => {
                let key = self.read.keys.agent(agent)?;
                self.push(
                    "UPDATE heads SET seq = seq + $2 WHERE agent = $1",
                    values![key, to_stored(rows)],
                );
            }
            HeadWrite::SetOwner { agent, epoch } => {
                let key = self.read.keys.agent(agent)?;
                let process = self.process;
                self.push(
                    "UPDATE heads SET epoch = $2, owner = $3 WHERE agent = $1",
                    values![key, to_stored(epoch.0), process],
                );
            }
            HeadWrite::ClearOwner { agent } => {
                let key = self.read.keys.agent(agent)?;
                self.push(
                    "UPDATE heads SET owner = NULL WHERE agent = $1",
                    values![key],
                );
            }
        }
        Ok(())
    }

    fn add_rows(&mut self, rows: &[(RowRef, &NewRow)]) -> Result<(), PostgresRefusal> {
        let agents = rows.iter().map(|(at, _)| self.read.keys.agent(at.agent));
        let agents = agents.collect::<Result<Vec<i64>, _>>()?;
        let seqs: Vec<i64> = rows.iter().map(|(at, _)| to_stored(at.seq.0)).collect();
        let text = |text: &Option<String>| text.as_deref().map(clean);
        let column = rows.iter().map(|(_, row)| *row);
        let kinds: Vec<&str> = column.clone().map(|row| row.kind.name()).collect();
        let controls: Vec<bool> = column.clone().map(|row| row.control).collect();
        let times: Vec<i64> = column.clone().map(|row| row.created_at.0).collect();
        let contents: Vec<_> = column.clone().map(|row| text(&row.content)).collect();
        let data: Vec<_> = column.clone().map(|row| text(&row.data)).collect();
        let authors: Vec<_> = column.map(author).collect();
        self.push(
            "INSERT INTO messages (agent, seq, kind, control, created_at, content, data, author)
             SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::boolean[],
                                  $5::bigint[], $6::text[], $7::text[], $8::text[])",
            values![
                agents, seqs, kinds, controls, times, contents, data, authors
            ],
        );
        Ok(())
    }

    fn add_draft(&mut self, write: DraftWrite<'_>) -> Result<(), PostgresRefusal> {
        match write {
            DraftWrite::Append { agent, text, at } => {
                let key = self.read.keys.agent(agent)?;
                self.push(
                    "INSERT INTO drafts (agent, part, at, text)
                     SELECT $1, coalesce(max(part), 0) + 1, $2, $3 FROM drafts WHERE agent = $1",
                    values![key, at.0, clean(text)],
                );
            }
            DraftWrite::Delete { agent } => {
                let key = self.read.keys.agent(agent)?;
                self.push("DELETE FROM drafts WHERE agent = $1", values![key]);
            }
        }
        Ok(())
    }

    fn add_mail(&mut self, write: MailWrite<'_>) -> Result<(), PostgresRefusal> {
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
            } => {
                let receiver = self.read.keys.agent(to)?;
                let sender = self.read.keys.optional(from)?;
                self.push(
                    "INSERT INTO mail (uuid, receiver, sender, sent_at, state, text, origin, about, process,
                                       author)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
                    values![
                        mail.0.to_be_bytes().to_vec(),
                        receiver,
                        sender,
                        at.0,
                        MailState::Queued.word(),
                        clean(text),
                        origin.word(),
                        about.word(),
                        process.map(to_stored),
                        author.map(ToString::to_string)
                    ],
                );
            }
            MailWrite::Settle {
                mail,
                state,
                shown_by,
            } => {
                let (agent, seq) = self.read.keys.row(shown_by)?;
                self.push(
                    "UPDATE mail SET state = $2, shown_agent = $3, shown_seq = $4 WHERE uuid = $1",
                    values![mail.0.to_be_bytes().to_vec(), state.word(), agent, seq],
                );
            }
            MailWrite::BounceAll { to } => {
                let receiver = self.read.keys.agent(to)?;
                self.push(
                    "UPDATE mail SET state = $2 WHERE receiver = $1 AND state = $3",
                    values![
                        receiver,
                        MailState::Bounced.word(),
                        MailState::Queued.word()
                    ],
                );
            }
        }
        Ok(())
    }

    fn add_run(&mut self, write: RunWrite) -> Result<(), PostgresRefusal> {
        match write {
            RunWrite::Insert {
                run,
                call,
                class,
                started,
                deadline,
            } => {
                let agent = self.read.keys.agent(call.agent)?;
                self.push(
                    "INSERT INTO tool_runs (uuid, agent, seq, class, started, deadline)
                     VALUES ($1, $2, $3, $4, $5, $6)",
                    values![
                        run.0.to_be_bytes().to_vec(),
                        agent,
                        to_stored(call.seq.0),
                        class.word(),
                        started.0,
                        deadline.0
                    ],
                );
            }
            RunWrite::End { run, ended } => self.push(
                "UPDATE tool_runs SET ended = $2 WHERE uuid = $1",
                values![run.0.to_be_bytes().to_vec(), ended.0],
            ),
        }
        Ok(())
    }

    fn add_job(&mut self, write: JobWrite<'_>) -> Result<(), PostgresRefusal> {
        match write {
            JobWrite::Insert(job) => {
                let agent = self.read.keys.agent(job.agent)?;
                self.push(
                    "INSERT INTO jobs (uuid, agent, number, command, started, deadline, host,
                                       directory, pattern, read_to, ended)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
                    values![
                        job.id.0.to_be_bytes().to_vec(),
                        agent,
                        to_stored(job.number),
                        clean(&job.command),
                        job.started.0,
                        job.deadline.0,
                        clean(&job.host),
                        clean(&job.directory),
                        job.pattern.as_deref().map(clean),
                        to_stored(job.read_to),
                        job.ended.map(|ended| ended.0)
                    ],
                );
            }
            JobWrite::SetRead { job, bytes } => self.push(
                "UPDATE jobs SET read_to = $2 WHERE uuid = $1",
                values![job.0.to_be_bytes().to_vec(), to_stored(bytes)],
            ),
            JobWrite::DropPattern { job } => self.push(
                "UPDATE jobs SET pattern = NULL WHERE uuid = $1",
                values![job.0.to_be_bytes().to_vec()],
            ),
            JobWrite::End { job, ended } => self.push(
                "UPDATE jobs SET ended = $2 WHERE uuid = $1",
                values![job.0.to_be_bytes().to_vec(), ended.0],
            ),
        }
        Ok(())
    }
}

fn no_key() -> QueryFailure {
    QueryFailure::Value("there are fewer keys than were asked for".to_owned())
}

/// Returns the author of a row for its column.
pub(super) fn author(row: &NewRow) -> Option<String> {
    row.author.as_ref().map(ToString::to_string)
}

/// Replaces U+0000, which PostgreSQL refuses, by its picture.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}
