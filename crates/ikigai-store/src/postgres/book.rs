//! What a transaction must know before it writes: read and locked in one go, for all its batches.
//!
//! Every check is then made in memory. A batch that is refused has touched nothing, and what the
//! others write can be sent together with the commit.

use std::collections::{BTreeSet, HashMap, VecDeque};

use ikigai_core::{AgentId, Epoch, RowRef, Seq, SessionId};
use tokio_postgres::Row;

use super::asking::{Kept, at_once};
use super::connect::Link;
use super::effects::clean;
use super::values::{Failure, get, number, optional_process, parsed, seq, wide_id};
use crate::batch::{Batch, Effect};
use crate::error::CommitError;
use crate::numbers::stored_limit;
use crate::records::{MailId, ProcessRecord, RunId, Status};
use crate::rules::Held;

/// Who and what the batches of a transaction name.
#[derive(Default)]
pub(super) struct Named {
    agents: BTreeSet<AgentId>,
    /// Those whose heads must not move meanwhile.
    heads: BTreeSet<AgentId>,
    /// Those that must not die or change meanwhile.
    lives: BTreeSet<AgentId>,
    names: BTreeSet<String>,
    sessions: BTreeSet<SessionId>,
    mail: BTreeSet<MailId>,
    runs: BTreeSet<RunId>,
    new_agents: usize,
    new_sessions: usize,
    /// Whether a lease is taken, for which this process must be known.
    pub(super) takes_leases: bool,
}

impl Named {
    pub(super) fn by<'a>(batches: impl IntoIterator<Item = &'a Batch>) -> Self {
        let mut named = Self::default();
        for batch in batches {
            named.heads.extend(batch.heads.iter().map(|it| it.agent));
            batch.with.iter().for_each(|effect| named.effect(effect));
        }
        let locked = named.heads.iter().chain(&named.lives);
        let locked: Vec<AgentId> = locked.copied().collect();
        named.agents.extend(locked);
        named
    }

    fn effect(&mut self, effect: &Effect) {
        match effect {
            Effect::MakeSession { session, .. } => {
                self.sessions.insert(*session);
                self.new_sessions += 1;
            }
            Effect::CreateAgent { agent, owned } => {
                self.agents.insert(agent.id);
                self.names.insert(agent.name.clone());
                self.sessions.insert(agent.session);
                self.lives.extend(agent.parent);
                self.row(agent.fork_point);
                self.new_agents += 1;
                self.takes_leases |= *owned;
            }
            Effect::SetName { agent, name } => {
                self.lives.insert(*agent);
                self.names.insert(name.clone());
            }
            Effect::SetStatus { agent, .. } => {
                self.lives.insert(*agent);
            }
            Effect::SetOrigin {
                agent,
                parent,
                fork_point,
            } => {
                self.lives.insert(*agent);
                self.agents.extend(parent);
                self.row(*fork_point);
            }
            Effect::TakeLease { agent } => {
                self.heads.insert(*agent);
                self.takes_leases = true;
            }
            Effect::GiveLease { agent, .. }
            | Effect::AppendDraft { agent, .. }
            | Effect::DropDraft { agent, .. } => {
                self.heads.insert(*agent);
            }
            Effect::SendMail { mail, to, from, .. } => {
                self.mail.insert(*mail);
                self.lives.insert(*to);
                self.agents.extend(from);
            }
            Effect::ConsumeMail { mail, by } => {
                self.mail.insert(*mail);
                self.row(Some(*by));
            }
            Effect::WithdrawMail { mail } | Effect::BounceMail { mail } => {
                self.mail.insert(*mail);
            }
            Effect::StartRun { run, call, .. } => {
                self.runs.insert(*run);
                self.row(Some(*call));
            }
            Effect::EndRun { run, .. } => {
                self.runs.insert(*run);
            }
            Effect::PutSnapshot(snapshot) => self.row(Some(snapshot.upto)),
            Effect::PutBlobPart { .. } => {}
        }
    }

    fn row(&mut self, row: Option<RowRef>) {
        self.agents.extend(row.map(|row| row.agent));
    }
}

/// One agent, as it is at this place of the transaction.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: i64,
    pub(super) name: String,
    pub(super) status: Status,
    pub(super) seq: Seq,
    pub(super) epoch: Epoch,
    pub(super) owner: Option<i64>,
    /// Who that is, if it was so before the transaction.
    pub(super) holder: Option<ProcessRecord>,
}

/// One mail.
#[derive(Clone, Copy, Debug)]
struct Letter {
    receiver: i64,
    is_queued: bool,
}

/// All that is known.
#[derive(Default)]
pub(super) struct Book {
    agents: HashMap<AgentId, Entry>,
    /// Who lives under a name. Others may take one meanwhile, of which the index of names tells.
    names: HashMap<String, AgentId>,
    sessions: HashMap<SessionId, i64>,
    mail: HashMap<MailId, Letter>,
    /// Whether a run is open.
    runs: HashMap<RunId, bool>,
    agent_keys: VecDeque<i64>,
    session_keys: VecDeque<i64>,
    /// The number by which the transaction is recognised.
    pub(super) witness: i64,
    /// The version of the tables.
    pub(super) version: i64,
}

/// Entries as they were before a batch.
pub(super) struct Saved {
    agents: Vec<(AgentId, Option<Entry>)>,
    names: HashMap<String, AgentId>,
    sessions: Vec<(SessionId, Option<i64>)>,
    mail: Vec<(MailId, Option<Letter>)>,
    runs: Vec<(RunId, Option<bool>)>,
}

const VERSION: &str = "SELECT version::bigint FROM schema_version";

/// A number that this process has not used before. The row is locked until the transaction ends.
pub(super) const WITNESS: &str = "INSERT INTO witnesses AS w (process, number) VALUES ($1, 1)
     ON CONFLICT (process) DO UPDATE SET number = w.number + 1, at = now()
     RETURNING number";

// Everybody locks agents before heads, and each in the same order, so that nobody waits in a circle.
const LOCK_LIVES: &str = "SELECT FROM agents WHERE uuid = ANY ($1::text[])
     ORDER BY uuid FOR NO KEY UPDATE";
const LOCK_HEADS: &str = "SELECT FROM agents a JOIN heads h ON h.agent = a.id
     WHERE a.uuid = ANY ($1::text[]) ORDER BY a.uuid FOR NO KEY UPDATE OF h";

// A statement of its own: it sees what was committed while the locks were waited for.
const AGENTS: &str = "SELECT a.uuid, a.id, a.name, a.status, h.seq, h.epoch, h.owner,
            p.uuid, p.pid, p.started, p.host
     FROM agents a JOIN heads h ON h.agent = a.id LEFT JOIN processes p ON p.id = h.owner
     WHERE a.uuid = ANY ($1::text[])";
const NAMES: &str = "SELECT name, uuid FROM agents WHERE status = 'running'
     AND (name = ANY ($1::text[]) OR name IN (SELECT name FROM agents WHERE uuid = ANY ($2::text[])))";
const SESSIONS: &str = "SELECT uuid, id FROM sessions WHERE uuid = ANY ($1::text[])";
const MAIL: &str =
    "SELECT uuid, receiver, state = 'queued' FROM mail WHERE uuid = ANY ($1::bytea[])
     ORDER BY uuid FOR NO KEY UPDATE";
const RUNS: &str = "SELECT uuid, ended IS NULL FROM tool_runs WHERE uuid = ANY ($1::bytea[])
     ORDER BY uuid FOR NO KEY UPDATE";
const AGENT_KEYS: &str = "SELECT nextval(pg_get_serial_sequence('agents', 'id'))
     FROM generate_series(1, $1::bigint)";
const SESSION_KEYS: &str = "SELECT nextval(pg_get_serial_sequence('sessions', 'id'))
     FROM generate_series(1, $1::bigint)";

/// One statement, and what its rows mean.
struct Question {
    sql: &'static str,
    values: Vec<Kept>,
    take: fn(&mut Book, &Row) -> Result<(), Failure>,
}

impl Named {
    /// What must be asked, in the order in which it must be.
    fn questions(&self, process: &str) -> Vec<Question> {
        let lives = texts(&self.lives);
        let called: Vec<String> = self.names.iter().map(|name| clean(name)).collect();
        let is_named = !(called.is_empty() && lives.is_empty());
        let mut asked: Vec<Question> = Vec::new();
        let mut ask = |is_needed: bool, sql, values: Vec<Kept>, take| {
            if is_needed {
                asked.push(Question { sql, values, take });
            }
        };
        ask(true, VERSION, Vec::new(), |book, row| {
            book.version = get(row, 0)?;
            Ok(())
        });
        ask(
            true,
            WITNESS,
            vec![Box::new(process.to_owned())],
            |book, row| {
                book.witness = get(row, 0)?;
                Ok(())
            },
        );
        let is_needed = !lives.is_empty();
        ask(
            is_needed,
            LOCK_LIVES,
            vec![Box::new(lives.clone())],
            |_, _| Ok(()),
        );
        let heads = texts(&self.heads);
        let is_needed = !heads.is_empty();
        ask(is_needed, LOCK_HEADS, vec![Box::new(heads)], |_, _| Ok(()));
        let agents = texts(&self.agents);
        let is_needed = !agents.is_empty();
        ask(is_needed, AGENTS, vec![Box::new(agents)], Book::take_agent);
        let values: Vec<Kept> = vec![Box::new(called), Box::new(lives)];
        ask(is_named, NAMES, values, |book, row| {
            book.names.insert(get(row, 0)?, parsed(row, 1)?);
            Ok(())
        });
        let sessions = texts(&self.sessions);
        let is_needed = !sessions.is_empty();
        ask(
            is_needed,
            SESSIONS,
            vec![Box::new(sessions)],
            |book, row| {
                book.sessions.insert(parsed(row, 0)?, get(row, 1)?);
                Ok(())
            },
        );
        let mail = wide(self.mail.iter().map(|mail| mail.0));
        let is_needed = !mail.is_empty();
        ask(is_needed, MAIL, vec![Box::new(mail)], Book::take_mail);
        let runs = wide(self.runs.iter().map(|run| run.0));
        let is_needed = !runs.is_empty();
        ask(is_needed, RUNS, vec![Box::new(runs)], |book, row| {
            book.runs.insert(RunId(wide_id(row, 0)?), get(row, 1)?);
            Ok(())
        });
        let new = stored_limit(self.new_agents);
        ask(new > 0, AGENT_KEYS, vec![Box::new(new)], |book, row| {
            book.agent_keys.push_back(get(row, 0)?);
            Ok(())
        });
        let new = stored_limit(self.new_sessions);
        ask(new > 0, SESSION_KEYS, vec![Box::new(new)], |book, row| {
            book.session_keys.push_back(get(row, 0)?);
            Ok(())
        });
        asked
    }
}

impl Book {
    /// Begins a transaction, locks what must not change, and reads what is named: one way there
    /// and back, whatever it is.
    pub(super) async fn open(link: &Link, named: &Named, process: &str) -> Result<Self, Failure> {
        let asked = named.questions(process);
        link.prepare_all(asked.iter().map(|it| it.sql)).await?;
        let begin: crate::BoxFuture<'_, _> =
            Box::pin(link.say("BEGIN ISOLATION LEVEL READ COMMITTED"));
        let rest = asked.iter().map(|question| {
            let sent: crate::BoxFuture<'_, _> = Box::pin(link.send(question.sql, &question.values));
            sent
        });
        let mut answers = at_once(std::iter::once(begin).chain(rest))
            .await
            .into_iter();
        answers.next().transpose()?;
        let mut book = Self::default();
        for (question, rows) in asked.iter().zip(answers) {
            for row in rows? {
                (question.take)(&mut book, &row)?;
            }
        }
        Ok(book)
    }

    fn take_agent(&mut self, row: &Row) -> Result<(), Failure> {
        let entry = Entry {
            key: get(row, 1)?,
            name: get(row, 2)?,
            status: parsed(row, 3)?,
            seq: seq(row, 4)?,
            epoch: Epoch(number(row, 5)?),
            owner: get(row, 6)?,
            holder: optional_process(row, 7)?,
        };
        self.agents.insert(parsed(row, 0)?, entry);
        Ok(())
    }

    fn take_mail(&mut self, row: &Row) -> Result<(), Failure> {
        let letter = Letter {
            receiver: get(row, 1)?,
            is_queued: get(row, 2)?,
        };
        self.mail.insert(MailId(wide_id(row, 0)?), letter);
        Ok(())
    }

    pub(super) fn agent(&self, agent: AgentId) -> Result<&Entry, CommitError> {
        self.agents.get(&agent).ok_or(CommitError::NoAgent(agent))
    }

    pub(super) fn agent_mut(&mut self, agent: AgentId) -> Result<&mut Entry, CommitError> {
        let entry = self.agents.get_mut(&agent);
        entry.ok_or(CommitError::NoAgent(agent))
    }

    pub(super) fn key(&self, agent: AgentId) -> Result<i64, CommitError> {
        self.agent(agent).map(|entry| entry.key)
    }

    pub(super) fn optional_key(&self, agent: Option<AgentId>) -> Result<Option<i64>, CommitError> {
        agent.map(|agent| self.key(agent)).transpose()
    }

    /// The head of an agent as seen by the process of that key.
    pub(super) fn held(&self, agent: AgentId, process: Option<i64>) -> Result<Held, CommitError> {
        let entry = self.agent(agent)?;
        Ok(Held {
            agent: entry.key,
            seq: entry.seq,
            epoch: entry.epoch,
            mine: entry.owner.is_some() && entry.owner == process,
        })
    }

    /// Where a row stands, if it is there: the rows of an agent have no gaps.
    pub(super) fn row(&self, row: RowRef) -> Result<Option<(i64, i64)>, CommitError> {
        let entry = self.agent(row.agent)?;
        let is_there = row.seq >= Seq(1) && row.seq <= entry.seq;
        Ok(is_there.then(|| (entry.key, crate::numbers::stored(row.seq.0))))
    }

    /// Gives an agent a name among the living; false if another has it.
    pub(super) fn name(&mut self, agent: AgentId, name: &str) -> bool {
        self.unname(agent);
        let holder = self.names.entry(name.to_owned()).or_insert(agent);
        *holder == agent
    }

    /// Frees the name of an agent.
    pub(super) fn unname(&mut self, agent: AgentId) {
        self.names.retain(|_, holder| *holder != agent);
    }

    pub(super) fn is_there(&self, agent: AgentId) -> bool {
        self.agents.contains_key(&agent)
    }

    pub(super) fn session(&self, session: SessionId) -> Option<i64> {
        self.sessions.get(&session).copied()
    }

    /// Enters an agent that is made, under a key of its own.
    pub(super) fn add_agent(
        &mut self,
        agent: AgentId,
        make: impl FnOnce(i64) -> Entry,
    ) -> Result<i64, Failure> {
        let key = self.agent_keys.pop_front().ok_or_else(no_key)?;
        self.agents.insert(agent, make(key));
        Ok(key)
    }

    /// Enters a session that is made, under a key of its own.
    pub(super) fn add_session(&mut self, session: SessionId) -> Result<i64, Failure> {
        let key = self.session_keys.pop_front().ok_or_else(no_key)?;
        self.sessions.insert(session, key);
        Ok(key)
    }

    /// Enters mail that is sent; false if it was sent before.
    pub(super) fn send(&mut self, mail: MailId, receiver: i64) -> bool {
        let letter = Letter {
            receiver,
            is_queued: true,
        };
        self.mail.insert(mail, letter).is_none()
    }

    /// Ends the waiting of mail; false if it does not wait.
    pub(super) fn settle(&mut self, mail: MailId) -> bool {
        let letter = self.mail.get_mut(&mail);
        letter.is_some_and(|letter| std::mem::take(&mut letter.is_queued))
    }

    /// Ends the waiting of all mail to a receiver.
    pub(super) fn bounce(&mut self, receiver: i64) {
        let letters = self.mail.values_mut();
        for letter in letters.filter(|letter| letter.receiver == receiver) {
            letter.is_queued = false;
        }
    }

    /// Enters a run that starts; false if it was started before.
    pub(super) fn start(&mut self, run: RunId) -> bool {
        self.runs.insert(run, true).is_none()
    }

    /// Ends a run; false if it is not open.
    pub(super) fn end(&mut self, run: RunId) -> bool {
        self.runs.insert(run, false) == Some(true)
    }

    /// Keeps what a batch may change.
    pub(super) fn save(&self, batch: &Batch) -> Saved {
        let mut named = Named::by([batch]);
        let kills = |effect: &Effect| matches!(effect, Effect::SetStatus { .. });
        if batch.with.iter().any(kills) {
            named.mail.extend(self.mail.keys());
        }
        let agents = named.agents.into_iter();
        let sessions = named.sessions.into_iter();
        let mail = named.mail.into_iter();
        let runs = named.runs.into_iter();
        Saved {
            agents: agents
                .map(|it| (it, self.agents.get(&it).cloned()))
                .collect(),
            names: self.names.clone(),
            sessions: sessions.map(|it| (it, self.session(it))).collect(),
            mail: mail.map(|it| (it, self.mail.get(&it).copied())).collect(),
            runs: runs.map(|it| (it, self.runs.get(&it).copied())).collect(),
        }
    }

    /// Takes back what a batch changed.
    pub(super) fn restore(&mut self, saved: Saved) {
        put_back(&mut self.agents, saved.agents);
        self.names = saved.names;
        put_back(&mut self.sessions, saved.sessions);
        put_back(&mut self.mail, saved.mail);
        put_back(&mut self.runs, saved.runs);
    }
}

fn put_back<K: std::hash::Hash + Eq, V>(map: &mut HashMap<K, V>, saved: Vec<(K, Option<V>)>) {
    for (key, value) in saved {
        match value {
            Some(value) => map.insert(key, value),
            None => map.remove(&key),
        };
    }
}

fn no_key() -> Failure {
    Failure::Value("there are fewer keys than were asked for".to_owned())
}

fn texts(ids: &BTreeSet<impl ToString>) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

fn wide(ids: impl Iterator<Item = u128>) -> Vec<Vec<u8>> {
    ids.map(|id| id.to_be_bytes().to_vec()).collect()
}
