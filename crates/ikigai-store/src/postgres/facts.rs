//! The facts of a transaction: locked and read in one round trip, for all its batches.
//!
//! Every check is then made in memory. A refused batch has touched nothing, and the writes of the
//! others can be sent together with the commit.

use std::collections::{BTreeSet, VecDeque};

use ikigai_core::{AgentId, Epoch, ProcessId};
use tokio_postgres::Row;

use super::budget::{self, BudgetReader};
use super::connect::Link;
use super::owner::is_alive;
use super::pipeline::{OwnedParam, send_all};
use super::statements::clean;
use super::values::{QueryFailure, get, number, optional_process, parse_column, seq, wide_id};
use crate::log::BoxFuture;
use crate::records::{MailId, RequestId, RunId};
use crate::sql_common::stored_limit;
use crate::transaction::{AgentFacts, FactKeys, Facts, LeaseHolder, MailFacts, RowKeys};

/// Everything that a transaction reads before it writes.
#[derive(Default)]
pub(super) struct TransactionFacts {
    pub(super) facts: Facts,
    pub(super) keys: RowKeys,
    /// Keys for the agents that are created.
    pub(super) agent_keys: VecDeque<i64>,
    /// Keys for the sessions that are created.
    pub(super) session_keys: VecDeque<i64>,
    /// Number by which the transaction is recognised.
    pub(super) witness: i64,
    /// Version of the tables.
    pub(super) version: i64,
    /// Totals and reservations, until the facts are complete.
    pub(super) budgets: BudgetReader,
}

const VERSION: &str = "SELECT version::bigint FROM schema_version";

/// Draws a number that this process has not used. The row is locked until the transaction ends.
pub(super) const WITNESS: &str = "INSERT INTO witnesses AS w (process, number) VALUES ($1, 1)
     ON CONFLICT (process) DO UPDATE SET number = w.number + 1, at = now()
     RETURNING number";

// Every process locks agents before heads, each in the same order, so that there is no deadlock.
const LOCK_RECORDS: &str = "SELECT FROM agents WHERE uuid = ANY ($1::text[])
     ORDER BY uuid FOR NO KEY UPDATE";
const LOCK_HEADS: &str = "SELECT FROM agents a JOIN heads h ON h.agent = a.id
     WHERE a.uuid = ANY ($1::text[]) ORDER BY a.uuid FOR NO KEY UPDATE OF h";

// A separate statement: it sees commits that happened while the locks were waited for.
const AGENTS: &str = "SELECT a.uuid, a.id, a.name, a.status, h.seq, h.epoch,
            p.uuid, p.pid, p.started, p.host, p.machine, p.person, s.uuid
     FROM agents a JOIN heads h ON h.agent = a.id JOIN sessions s ON s.id = a.session
     LEFT JOIN processes p ON p.id = h.owner
     WHERE a.uuid = ANY ($1::text[])";
// Other transactions may take a name meanwhile; the unique index then refuses the commit.
const NAMES: &str = "WITH wanted AS (
         SELECT s.id, w.name FROM unnest($1::text[], $2::text[]) AS w (session, name)
         JOIN sessions s ON s.uuid = w.session
         UNION ALL
         SELECT own.session, coalesce(r.name, own.name)
         FROM unnest($3::text[], $4::text[]) AS r (agent, name) JOIN agents own ON own.uuid = r.agent)
     SELECT s.uuid, a.name, a.uuid
     FROM wanted w JOIN agents a ON a.session = w.id AND a.name = w.name AND a.status = 'running'
     JOIN sessions s ON s.id = w.id";
const SESSIONS: &str = "SELECT uuid, id FROM sessions WHERE uuid = ANY ($1::text[])";
const MAIL: &str = "SELECT m.uuid, a.uuid, m.state = 'queued'
     FROM mail m JOIN agents a ON a.id = m.receiver WHERE m.uuid = ANY ($1::bytea[])
     ORDER BY m.uuid FOR NO KEY UPDATE OF m";
const RUNS: &str = "SELECT uuid, ended IS NULL FROM tool_runs WHERE uuid = ANY ($1::bytea[])
     ORDER BY uuid FOR NO KEY UPDATE";
const JOBS: &str = "SELECT uuid, ended IS NULL FROM jobs WHERE uuid = ANY ($1::bytea[])
     ORDER BY uuid FOR NO KEY UPDATE";
const REQUESTS: &str = "SELECT uuid, state FROM requests WHERE uuid = ANY ($1::bytea[])
     ORDER BY uuid FOR NO KEY UPDATE";
const AGENT_KEYS: &str = "SELECT nextval(pg_get_serial_sequence('agents', 'id'))
     FROM generate_series(1, $1::bigint)";
const SESSION_KEYS: &str = "SELECT nextval(pg_get_serial_sequence('sessions', 'id'))
     FROM generate_series(1, $1::bigint)";

/// One statement, and the function that takes its rows in.
struct FactQuery {
    sql: &'static str,
    values: Vec<OwnedParam>,
    add: fn(&mut TransactionFacts, &Row) -> Result<(), QueryFailure>,
}

impl TransactionFacts {
    /// Begins a transaction, locks what must not change, and reads the facts.
    ///
    /// One round trip, plus one for each foreign owner whose lease is to be taken.
    pub(super) async fn read(
        link: &Link,
        keys: &FactKeys,
        process: ProcessId,
    ) -> Result<Self, QueryFailure> {
        let queries = queries(keys, process);
        let begin: BoxFuture<'_, _> =
            Box::pin(link.command("BEGIN ISOLATION LEVEL READ COMMITTED"));
        let rest = queries.iter().map(|query| {
            let sent: BoxFuture<'_, _> = Box::pin(link.send(query.sql, &query.values));
            sent
        });
        let answers = send_all(std::iter::once(begin).chain(rest)).await;
        let mut answers = answers.into_iter();
        answers.next().transpose()?;
        let mut read = Self::default();
        for (query, rows) in queries.iter().zip(answers) {
            for row in rows? {
                (query.add)(&mut read, &row)?;
            }
        }
        for (agent, facts) in &mut read.facts.agents {
            if let LeaseHolder::Other(owner) = &facts.holder {
                if owner.id == process {
                    facts.holder = LeaseHolder::This;
                } else if keys.leases.contains(agent) && !is_alive(link, owner.id).await? {
                    facts.holder = LeaseHolder::Free;
                }
            }
        }
        let budgets = std::mem::take(&mut read.budgets);
        read.facts.budgets = budgets.finish(link, keys, process).await?;
        Ok(read)
    }

    fn add_agent(&mut self, row: &Row) -> Result<(), QueryFailure> {
        let agent: AgentId = parse_column(row, 0)?;
        let facts = AgentFacts {
            session: parse_column(row, 12)?,
            name: get(row, 2)?,
            status: parse_column(row, 3)?,
            seq: seq(row, 4)?,
            epoch: Epoch(number(row, 5)?),
            holder: optional_process(row, 6)?.map_or(LeaseHolder::Free, LeaseHolder::Other),
        };
        self.keys.agents.insert(agent, get(row, 1)?);
        self.facts.agents.insert(agent, facts);
        Ok(())
    }

    fn add_mail(&mut self, row: &Row) -> Result<(), QueryFailure> {
        let facts = MailFacts {
            to: parse_column(row, 1)?,
            is_queued: get(row, 2)?,
        };
        self.facts.mail.insert(MailId(wide_id(row, 0)?), facts);
        Ok(())
    }
}

/// Returns the queries for these keys, in the order of sending.
fn queries(keys: &FactKeys, process: ProcessId) -> Vec<FactQuery> {
    let mut queries: Vec<FactQuery> = Vec::new();
    let mut add = |is_needed: bool, sql, values: Vec<OwnedParam>, add| {
        if is_needed {
            queries.push(FactQuery { sql, values, add });
        }
    };
    add(true, VERSION, Vec::new(), |read, row| {
        read.version = get(row, 0)?;
        Ok(())
    });
    let process: OwnedParam = Box::new(process.to_string());
    add(true, WITNESS, vec![process], |read, row| {
        read.witness = get(row, 0)?;
        Ok(())
    });
    if keys.spenders.is_empty() {
        let is_needed = !keys.records.is_empty();
        add(is_needed, LOCK_RECORDS, texts(&keys.records), |_, _| Ok(()));
    } else {
        let mut values = texts(&keys.records);
        values.extend(texts(&keys.spenders));
        add(true, budget::LOCK_FAMILIES, values, |_, _| Ok(()));
    }
    let is_needed = !keys.heads.is_empty();
    add(is_needed, LOCK_HEADS, texts(&keys.heads), |_, _| Ok(()));
    let is_needed = !keys.agents.is_empty();
    let add_agent = TransactionFacts::add_agent;
    add(is_needed, AGENTS, texts(&keys.agents), add_agent);
    let (is_needed, values) = name_values(keys);
    add(is_needed, NAMES, values, |read, row| {
        let key = (parse_column(row, 0)?, get(row, 1)?);
        read.facts.names.insert(key, parse_column(row, 2)?);
        Ok(())
    });
    let is_needed = !keys.sessions.is_empty();
    add(is_needed, SESSIONS, texts(&keys.sessions), |read, row| {
        let session = parse_column(row, 0)?;
        read.keys.sessions.insert(session, get(row, 1)?);
        read.facts.sessions.insert(session);
        Ok(())
    });
    let mail = wide(keys.mail.iter().map(|mail| mail.0));
    let is_needed = !keys.mail.is_empty();
    add(is_needed, MAIL, mail, TransactionFacts::add_mail);
    let runs = wide(keys.runs.iter().map(|run| run.0));
    add(!keys.runs.is_empty(), RUNS, runs, |read, row| {
        let run = RunId(wide_id(row, 0)?);
        read.facts.runs.insert(run, get(row, 1)?);
        Ok(())
    });
    let jobs = wide(keys.jobs.iter().map(|job| job.0));
    add(!keys.jobs.is_empty(), JOBS, jobs, |read, row| {
        let job = RunId(wide_id(row, 0)?);
        read.facts.jobs.insert(job, get(row, 1)?);
        Ok(())
    });
    let requests = wide(keys.requests.iter().map(|request| request.0));
    add(
        !keys.requests.is_empty(),
        REQUESTS,
        requests,
        |read, row| {
            let request = RequestId(wide_id(row, 0)?);
            read.facts.requests.insert(request, parse_column(row, 1)?);
            Ok(())
        },
    );
    let is_needed = !keys.budgets.is_empty();
    let roots = || texts(&keys.budgets);
    add(is_needed, budget::TOTALS, roots(), |read, row| {
        read.budgets.add_total(row)
    });
    add(is_needed, budget::RESERVED, roots(), |read, row| {
        read.budgets.add_reservation(row)
    });
    let is_needed = !keys.counted.is_empty();
    add(
        is_needed,
        budget::RUNNING,
        texts(&keys.counted),
        |read, row| {
            read.facts
                .running
                .insert(parse_column(row, 0)?, number(row, 1)?);
            Ok(())
        },
    );
    let new = stored_limit(keys.new_agents);
    add(new > 0, AGENT_KEYS, vec![Box::new(new)], |read, row| {
        read.agent_keys.push_back(get(row, 0)?);
        Ok(())
    });
    let new = stored_limit(keys.new_sessions);
    add(new > 0, SESSION_KEYS, vec![Box::new(new)], |read, row| {
        read.session_keys.push_back(get(row, 0)?);
        Ok(())
    });
    queries
}

/// Returns whether names are looked up, and the parameters of [`NAMES`].
fn name_values(keys: &FactKeys) -> (bool, Vec<OwnedParam>) {
    let sessions = keys.names.iter().map(|(session, _)| session.to_string());
    let sessions: Vec<String> = sessions.collect();
    let names: Vec<String> = keys.names.iter().map(|(_, name)| clean(name)).collect();
    let renamed = keys.renamed.iter();
    let renamed = renamed.map(|(agent, name)| (agent.to_string(), Some(clean(name))));
    let revived = keys.revived.iter().map(|agent| (agent.to_string(), None));
    let (agents, new): (Vec<String>, Vec<Option<String>>) = renamed.chain(revived).unzip();
    let is_needed = !(names.is_empty() && agents.is_empty());
    let values: Vec<OwnedParam> = vec![
        Box::new(sessions),
        Box::new(names),
        Box::new(agents),
        Box::new(new),
    ];
    (is_needed, values)
}

fn texts(ids: &BTreeSet<impl ToString>) -> Vec<OwnedParam> {
    let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
    vec![Box::new(texts)]
}

fn wide(ids: impl Iterator<Item = u128>) -> Vec<OwnedParam> {
    let ids: Vec<Vec<u8>> = ids.map(|id| id.to_be_bytes().to_vec()).collect();
    vec![Box::new(ids)]
}
