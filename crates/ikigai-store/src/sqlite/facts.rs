//! The facts that a batch depends on, read inside the write transaction.

use ikigai_core::{AgentId, Epoch, ProcessId, SessionId};
use rusqlite::{Connection, OptionalExtension, params};

use super::budget;
use super::errors::SqliteRefusal;
use super::locks::SqliteOwner;
use super::requests;
use super::values::{number, optional_process, parse_column, seq, text};
use crate::records::{MailId, RunId};
use crate::transaction::{AgentFacts, FactKeys, Facts, LeaseHolder, MailFacts, RowKeys};

/// Reads the facts of these keys, and the primary keys of what they name.
pub(super) fn read(
    connection: &Connection,
    owner: &SqliteOwner,
    keys: &FactKeys,
) -> Result<(Facts, RowKeys), SqliteRefusal> {
    let mut facts = Facts::default();
    let mut row_keys = RowKeys::default();
    for agent in &keys.agents {
        let Some((key, mut found)) = read_agent(connection, owner.id(), *agent)? else {
            continue;
        };
        if let LeaseHolder::Other(process) = &found.holder
            && keys.leases.contains(agent)
            && !owner.is_alive(process.id)?
        {
            found.holder = LeaseHolder::Free;
        }
        row_keys.agents.insert(*agent, key);
        facts.agents.insert(*agent, found);
    }
    let revived = keys.revived.iter().filter_map(|it| facts.agents.get(it));
    let revived = revived.map(|agent| (agent.session, agent.name.clone()));
    let renamed = keys.renamed.iter().filter_map(|(agent, name)| {
        let agent = facts.agents.get(agent)?;
        Some((agent.session, name.clone()))
    });
    let names: Vec<_> = revived.chain(renamed).collect();
    for key in keys.names.iter().chain(&names) {
        if let Some(agent) = find_running(connection, key.0, &key.1)? {
            facts.names.insert(key.clone(), agent);
        }
    }
    for session in &keys.sessions {
        if let Some(key) = find_session(connection, *session)? {
            row_keys.sessions.insert(*session, key);
            facts.sessions.insert(*session);
        }
    }
    for mail in &keys.mail {
        if let Some(found) = read_mail(connection, *mail)? {
            facts.mail.insert(*mail, found);
        }
    }
    for run in &keys.runs {
        if let Some(is_open) = read_run(connection, *run)? {
            facts.runs.insert(*run, is_open);
        }
    }
    for job in &keys.jobs {
        if let Some(is_open) = read_job(connection, *job)? {
            facts.jobs.insert(*job, is_open);
        }
    }
    for request in &keys.requests {
        if let Some(state) = requests::state(connection, *request)? {
            facts.requests.insert(*request, state);
        }
    }
    for root in &keys.budgets {
        if let Some(key) = row_keys.agents.get(root) {
            facts
                .budgets
                .insert(*root, budget::read(connection, owner, *key)?);
        }
    }
    for root in &keys.counted {
        if let Some(key) = row_keys.agents.get(root) {
            facts
                .running
                .insert(*root, budget::count_running(connection, *key)?);
        }
    }
    Ok((facts, row_keys))
}

fn read_agent(
    connection: &Connection,
    process: ProcessId,
    agent: AgentId,
) -> rusqlite::Result<Option<(i64, AgentFacts)>> {
    connection
        .prepare_cached(
            "SELECT a.id, a.name, a.status, h.seq, h.epoch, p.uuid, p.pid, p.started, p.host,
                    p.machine, p.person, s.uuid
             FROM agents a JOIN heads h ON h.agent = a.id JOIN sessions s ON s.id = a.session
             LEFT JOIN processes p ON p.id = h.owner
             WHERE a.uuid = ?1",
        )?
        .query_row([agent.to_string()], |row| {
            let holder = match optional_process(row, 5)? {
                None => LeaseHolder::Free,
                Some(owner) if owner.id == process => LeaseHolder::This,
                Some(owner) => LeaseHolder::Other(owner),
            };
            let facts = AgentFacts {
                session: parse_column(row, 11)?,
                name: text(row, 1)?.unwrap_or_default(),
                status: parse_column(row, 2)?,
                seq: seq(row, 3)?,
                epoch: Epoch(number(row, 4)?),
                holder,
            };
            Ok((row.get(0)?, facts))
        })
        .optional()
}

fn find_running(
    connection: &Connection,
    session: SessionId,
    name: &str,
) -> rusqlite::Result<Option<AgentId>> {
    connection
        .prepare_cached(
            "SELECT uuid FROM agents WHERE status = 'running' AND name = ?2
                 AND session = (SELECT id FROM sessions WHERE uuid = ?1)",
        )?
        .query_row([&session.to_string(), name], |row| parse_column(row, 0))
        .optional()
}

fn find_session(connection: &Connection, session: SessionId) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT id FROM sessions WHERE uuid = ?1")?
        .query_row([session.to_string()], |row| row.get(0))
        .optional()
}

fn read_mail(connection: &Connection, mail: MailId) -> rusqlite::Result<Option<MailFacts>> {
    connection
        .prepare_cached(
            "SELECT a.uuid, m.state = 'queued' FROM mail m JOIN agents a ON a.id = m.receiver
             WHERE m.uuid = ?1",
        )?
        .query_row(params![mail.0.to_be_bytes()], |row| {
            Ok(MailFacts {
                to: parse_column(row, 0)?,
                is_queued: row.get(1)?,
            })
        })
        .optional()
}

fn read_run(connection: &Connection, run: RunId) -> rusqlite::Result<Option<bool>> {
    connection
        .prepare_cached("SELECT ended IS NULL FROM tool_runs WHERE uuid = ?1")?
        .query_row(params![run.0.to_be_bytes()], |row| row.get(0))
        .optional()
}

fn read_job(connection: &Connection, job: RunId) -> rusqlite::Result<Option<bool>> {
    connection
        .prepare_cached("SELECT ended IS NULL FROM jobs WHERE uuid = ?1")?
        .query_row(params![job.0.to_be_bytes()], |row| row.get(0))
        .optional()
}
