//! What becomes true beside the rows of a batch.

use ikigai_core::{AgentId, Epoch, RowRef, SessionId};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, params};

use super::append::{held, key};
use super::errors::{Refusal, is_reference_violation, is_unique_violation};
use super::locks::Owner;
use super::values::{number, optional_process};
use crate::batch::{Committed, Effect, NewAgent};
use crate::blobs::PART_BYTES;
use crate::error::CommitError;
use crate::numbers::stored;
use crate::records::{MailId, MailState, Status};
use crate::rules::{self, Held, dangling, forked_from_nothing};

/// Carries out one effect.
pub(super) fn apply(
    connection: &Connection,
    owner: &mut Owner,
    effect: &Effect,
    done: &mut Committed,
) -> Result<(), Refusal> {
    match effect {
        Effect::MakeSession {
            session,
            name,
            directory,
            at,
        } => refused_if_there(
            connection
                .prepare_cached(
                    "INSERT INTO sessions (uuid, created_at, name, directory)
                     VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![session.to_string(), at.0, name, directory]),
            || format!("there is a session {session} already"),
        ),
        Effect::CreateAgent { agent, owned } => {
            let process = owned.then(|| owner.register(connection)).transpose()?;
            create_agent(connection, agent, process, done)
        }
        Effect::SetName { agent, name } => set_name(connection, *agent, name),
        Effect::SetOrigin {
            agent,
            parent,
            fork_point,
        } => set_origin(connection, *agent, *parent, *fork_point),
        Effect::SetStatus { agent, status } => set_status(connection, *agent, *status),
        Effect::TakeLease { agent } => take_lease(connection, owner, *agent, done),
        Effect::GiveLease { agent, epoch } => {
            let held = fenced(connection, owner, *agent, *epoch)?;
            connection
                .prepare_cached("UPDATE heads SET owner = NULL WHERE agent = ?1")?
                .execute([held.agent])?;
            Ok(())
        }
        Effect::AppendDraft {
            agent,
            epoch,
            text,
            at,
        } => {
            let held = fenced(connection, owner, *agent, *epoch)?;
            connection
                .prepare_cached(
                    "INSERT INTO drafts (agent, part, at, text)
                     SELECT ?1, coalesce(max(part), 0) + 1, ?2, ?3 FROM drafts WHERE agent = ?1",
                )?
                .execute(params![held.agent, at.0, text])?;
            Ok(())
        }
        Effect::DropDraft { agent, epoch } => {
            let held = fenced(connection, owner, *agent, *epoch)?;
            connection
                .prepare_cached("DELETE FROM drafts WHERE agent = ?1")?
                .execute([held.agent])?;
            Ok(())
        }
        Effect::SendMail { .. }
        | Effect::ConsumeMail { .. }
        | Effect::WithdrawMail { .. }
        | Effect::BounceMail { .. } => mail(connection, effect),
        Effect::StartRun { .. }
        | Effect::EndRun { .. }
        | Effect::PutBlobPart { .. }
        | Effect::PutSnapshot(_) => journal(connection, effect),
    }
}

fn bad(reason: impl Into<String>) -> Refusal {
    rules::bad(reason).into()
}

/// Turns the violation of a unique key into a refusal, and that of a reference likewise.
fn refused_if_there(
    result: rusqlite::Result<usize>,
    reason: impl FnOnce() -> String,
) -> Result<(), Refusal> {
    match result {
        Ok(_) => Ok(()),
        Err(error) if is_unique_violation(&error) => Err(bad(reason())),
        Err(error) if is_reference_violation(&error) => Err(dangling().into()),
        Err(error) => Err(error.into()),
    }
}

fn optional_key(connection: &Connection, agent: Option<AgentId>) -> Result<Option<i64>, Refusal> {
    agent.map(|agent| key(connection, agent)).transpose()
}

fn row_key(connection: &Connection, row: RowRef) -> Result<(i64, i64), Refusal> {
    Ok((key(connection, row.agent)?, stored(row.seq.0)))
}

/// The head of an agent, if this process holds it at that epoch.
fn fenced(
    connection: &Connection,
    owner: &Owner,
    agent: AgentId,
    epoch: Epoch,
) -> Result<Held, Refusal> {
    let held = held(connection, owner, agent)?.ok_or(CommitError::NoAgent(agent))?;
    Ok(held.fenced(agent, epoch)?)
}

/// Makes an agent, owned by `process` if there is one.
fn create_agent(
    connection: &Connection,
    agent: &NewAgent,
    process: Option<i64>,
    done: &mut Committed,
) -> Result<(), Refusal> {
    match key(connection, agent.id) {
        Ok(_) => return Err(CommitError::AgentExists(agent.id).into()),
        Err(Refusal::Commit(_)) => {}
        Err(failure) => return Err(failure),
    }
    let session = session_key(connection, agent.session)?;
    let parent = optional_key(connection, agent.parent)?;
    if let (Some(key), Some(parent)) = (parent, agent.parent)
        && !is_running(connection, key)?
    {
        return Err(CommitError::Dead(parent).into());
    }
    let fork_point = agent
        .fork_point
        .map(|row| row_key(connection, row))
        .transpose()?;
    let inserted = connection
        .prepare_cached(
            "INSERT INTO agents
                 (uuid, session, parent, fork_agent, fork_seq, created_at, status, name)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .insert(params![
            agent.id.to_string(),
            session,
            parent,
            fork_point.map(|(agent, _)| agent),
            fork_point.map(|(_, seq)| seq),
            agent.created_at.0,
            Status::Running.word(),
            agent.name,
        ]);
    let key = match inserted {
        Ok(key) => key,
        Err(error) if is_unique_violation(&error) => {
            return Err(CommitError::NameTaken(agent.name.clone()).into());
        }
        Err(error) if is_reference_violation(&error) => {
            return Err(forked_from_nothing(agent.id).into());
        }
        Err(error) => return Err(error.into()),
    };
    let epoch = Epoch(u64::from(process.is_some()));
    connection
        .prepare_cached("INSERT INTO heads (agent, seq, epoch, owner) VALUES (?1, 0, ?2, ?3)")?
        .execute(params![key, stored(epoch.0), process])?;
    if process.is_some() {
        done.leases.push((agent.id, epoch));
    }
    Ok(())
}

fn session_key(connection: &Connection, session: SessionId) -> Result<i64, Refusal> {
    connection
        .prepare_cached("SELECT id FROM sessions WHERE uuid = ?1")?
        .query_row([session.to_string()], |row| row.get(0))
        .optional()?
        .ok_or_else(|| bad(format!("there is no session {session}")))
}

fn set_name(connection: &Connection, agent: AgentId, name: &str) -> Result<(), Refusal> {
    let statement = connection.prepare_cached("UPDATE agents SET name = ?2 WHERE uuid = ?1")?;
    update_agent(statement, params![agent.to_string(), name], agent, || {
        name.to_owned()
    })
}

fn set_origin(
    connection: &Connection,
    agent: AgentId,
    parent: Option<AgentId>,
    fork_point: Option<RowRef>,
) -> Result<(), Refusal> {
    let child = key(connection, agent)?;
    let parent = optional_key(connection, parent)?;
    let fork_point = fork_point.map(|row| row_key(connection, row)).transpose()?;
    connection
        .prepare_cached(
            "UPDATE agents SET parent = ?2, fork_agent = ?3, fork_seq = ?4 WHERE id = ?1",
        )?
        .execute(params![
            child,
            parent,
            fork_point.map(|(agent, _)| agent),
            fork_point.map(|(_, seq)| seq),
        ])?;
    Ok(())
}

fn set_status(connection: &Connection, agent: AgentId, status: Status) -> Result<(), Refusal> {
    let statement = connection.prepare_cached("UPDATE agents SET status = ?2 WHERE uuid = ?1")?;
    update_agent(
        statement,
        params![agent.to_string(), status.word()],
        agent,
        || name_of(connection, agent).unwrap_or_default(),
    )?;
    if status != Status::Running {
        let receiver = key(connection, agent)?;
        connection
            .prepare_cached("UPDATE mail SET state = ?2 WHERE receiver = ?1 AND state = ?3")?
            .execute(params![
                receiver,
                MailState::Bounced.word(),
                MailState::Queued.word()
            ])?;
    }
    Ok(())
}

fn update_agent(
    mut statement: CachedStatement<'_>,
    values: impl Params,
    agent: AgentId,
    name: impl FnOnce() -> String,
) -> Result<(), Refusal> {
    match statement.execute(values) {
        Ok(0) => Err(CommitError::NoAgent(agent).into()),
        Ok(_) => Ok(()),
        Err(error) if is_unique_violation(&error) => Err(CommitError::NameTaken(name()).into()),
        Err(error) => Err(error.into()),
    }
}

fn name_of(connection: &Connection, agent: AgentId) -> rusqlite::Result<String> {
    connection
        .prepare_cached("SELECT name FROM agents WHERE uuid = ?1")?
        .query_row([agent.to_string()], |row| row.get(0))
}

fn take_lease(
    connection: &Connection,
    owner: &mut Owner,
    agent: AgentId,
    done: &mut Committed,
) -> Result<(), Refusal> {
    let process = owner.register(connection)?;
    let (key, epoch, holder) = connection
        .prepare_cached(
            "SELECT h.agent, h.epoch, p.uuid, p.pid, p.started, p.host
             FROM agents a JOIN heads h ON h.agent = a.id LEFT JOIN processes p ON p.id = h.owner
             WHERE a.uuid = ?1",
        )?
        .query_row([agent.to_string()], |row| {
            let key: i64 = row.get(0)?;
            Ok((key, Epoch(number(row, 1)?), optional_process(row, 2)?))
        })
        .optional()?
        .ok_or(CommitError::NoAgent(agent))?;
    match holder {
        Some(holder) if holder.id == owner.id() => {
            done.leases.push((agent, epoch));
            return Ok(());
        }
        Some(holder) if owner.is_alive(holder.id)? => {
            return Err(CommitError::Held {
                agent,
                owner: holder,
            }
            .into());
        }
        _ => {}
    }
    let epoch = Epoch(epoch.0.saturating_add(1));
    connection
        .prepare_cached("UPDATE heads SET epoch = ?2, owner = ?3 WHERE agent = ?1")?
        .execute(params![key, stored(epoch.0), process])?;
    done.leases.push((agent, epoch));
    Ok(())
}

fn mail(connection: &Connection, effect: &Effect) -> Result<(), Refusal> {
    match effect {
        Effect::SendMail {
            mail,
            to,
            from,
            text,
            at,
        } => {
            let receiver = key(connection, *to)?;
            if !is_running(connection, receiver)? {
                return Err(CommitError::Dead(*to).into());
            }
            let sender = optional_key(connection, *from)?;
            refused_if_there(
                connection
                    .prepare_cached(
                        "INSERT INTO mail (uuid, receiver, sender, sent_at, state, text)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    )?
                    .execute(params![
                        mail.0.to_be_bytes(),
                        receiver,
                        sender,
                        at.0,
                        MailState::Queued.word(),
                        text
                    ]),
                || "the mail was sent before".to_owned(),
            )
        }
        Effect::ConsumeMail { mail, by } => {
            let (agent, seq) = row_key(connection, *by)?;
            settle(connection, *mail, MailState::Delivered, Some((agent, seq)))
        }
        Effect::WithdrawMail { mail } => settle(connection, *mail, MailState::Withdrawn, None),
        Effect::BounceMail { mail } => settle(connection, *mail, MailState::Bounced, None),
        _ => Ok(()),
    }
}

fn is_running(connection: &Connection, agent: i64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT status = ?2 FROM agents WHERE id = ?1")?
        .query_row(params![agent, Status::Running.word()], |row| row.get(0))
}

/// Ends the waiting of queued mail.
fn settle(
    connection: &Connection,
    mail: MailId,
    state: MailState,
    by: Option<(i64, i64)>,
) -> Result<(), Refusal> {
    let settled = connection
        .prepare_cached(
            "UPDATE mail SET state = ?2, shown_agent = ?3, shown_seq = ?4
             WHERE uuid = ?1 AND state = ?5",
        )?
        .execute(params![
            mail.0.to_be_bytes(),
            state.word(),
            by.map(|(agent, _)| agent),
            by.map(|(_, seq)| seq),
            MailState::Queued.word(),
        ]);
    if matches!(settled, Ok(0)) {
        return Err(CommitError::MailGone(mail).into());
    }
    refused_if_there(settled, || "the mail is shown twice".to_owned())
}

fn journal(connection: &Connection, effect: &Effect) -> Result<(), Refusal> {
    match effect {
        Effect::StartRun {
            run,
            call,
            class,
            started,
            deadline,
        } => {
            let (agent, seq) = row_key(connection, *call)?;
            refused_if_there(
                connection
                    .prepare_cached(
                        "INSERT INTO tool_runs (uuid, agent, seq, class, started, deadline)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    )?
                    .execute(params![
                        run.0.to_be_bytes(),
                        agent,
                        seq,
                        class.word(),
                        started.0,
                        deadline.0
                    ]),
                || "the run was started before".to_owned(),
            )
        }
        Effect::EndRun { run, ended } => {
            let changed = connection
                .prepare_cached(
                    "UPDATE tool_runs SET ended = ?2 WHERE uuid = ?1 AND ended IS NULL",
                )?
                .execute(params![run.0.to_be_bytes(), ended.0])?;
            if changed == 0 {
                return Err(bad("the run that ends is not open"));
            }
            Ok(())
        }
        Effect::PutBlobPart { hash, part, bytes } => {
            if bytes.len() > PART_BYTES {
                return Err(bad(format!("a part of {} bytes of a blob", bytes.len())));
            }
            connection
                .prepare_cached(
                    "INSERT INTO blobs (hash, part, bytes) VALUES (?1, ?2, ?3)
                     ON CONFLICT (hash, part) DO NOTHING",
                )?
                .execute(params![hash.0, part, bytes])?;
            Ok(())
        }
        Effect::PutSnapshot(snapshot) => {
            let (agent, upto) = row_key(connection, snapshot.upto)?;
            connection
                .prepare_cached(
                    "INSERT INTO paths (agent, upto, folded) VALUES (?1, ?2, ?3)
                     ON CONFLICT (agent, upto) DO UPDATE SET folded = excluded.folded",
                )?
                .execute(params![agent, upto, snapshot.folded])?;
            Ok(())
        }
        _ => Ok(()),
    }
}
