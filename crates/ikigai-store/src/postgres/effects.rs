//! What becomes true beside the rows of a batch: checked in the book, written with the commit.

use ikigai_core::{AgentId, Epoch, RowRef, Seq};

use super::book::Entry;
use super::errors::Refusal;
use super::owner::is_alive;
use super::plan::Plan;
use crate::batch::{Committed, Effect, NewAgent};
use crate::blobs::PART_BYTES;
use crate::error::CommitError;
use crate::numbers::stored;
use crate::records::{MailId, MailState, Status};
use crate::rules::{bad, dangling, forked_from_nothing};

/// Values that are kept until their statement is sent.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as super::asking::Kept),*]
    };
}

type Outcome<T = ()> = Result<T, Refusal>;

impl Plan<'_> {
    /// Carries out one effect.
    pub(super) async fn effect(&mut self, effect: &Effect, done: &mut Committed) -> Outcome {
        match effect {
            Effect::MakeSession {
                session,
                name,
                directory,
                at,
            } => {
                if self.book.session(*session).is_some() {
                    return Err(bad(format!("there is a session {session} already")).into());
                }
                let key = self.book.add_session(*session)?;
                self.write(
                    "INSERT INTO sessions (id, uuid, created_at, name, directory)
                     OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5)",
                    values![
                        key,
                        session.to_string(),
                        at.0,
                        clean(name),
                        clean(directory)
                    ],
                );
                Ok(())
            }
            Effect::CreateAgent { agent, owned } => self.create_agent(agent, *owned, done),
            Effect::TakeLease { agent } => self.take_lease(*agent, done).await,
            Effect::SetName { .. } | Effect::SetOrigin { .. } | Effect::SetStatus { .. } => {
                self.change_agent(effect)
            }
            Effect::GiveLease { .. } | Effect::AppendDraft { .. } | Effect::DropDraft { .. } => {
                self.fenced_effect(effect)
            }
            Effect::SendMail { .. }
            | Effect::ConsumeMail { .. }
            | Effect::WithdrawMail { .. }
            | Effect::BounceMail { .. } => self.mail(effect),
            Effect::StartRun { .. }
            | Effect::EndRun { .. }
            | Effect::PutBlobPart { .. }
            | Effect::PutSnapshot(_) => self.journal(effect),
        }
    }

    fn create_agent(&mut self, agent: &NewAgent, owned: bool, done: &mut Committed) -> Outcome {
        if self.book.is_there(agent.id) {
            return Err(CommitError::AgentExists(agent.id).into());
        }
        let session = self.book.session(agent.session);
        let session =
            session.ok_or_else(|| bad(format!("there is no session {}", agent.session)))?;
        let parent = self.book.optional_key(agent.parent)?;
        if let Some(parent) = agent.parent
            && self.book.agent(parent)?.status != Status::Running
        {
            return Err(CommitError::Dead(parent).into());
        }
        let forked_from = agent.fork_point.map(|row| self.book.row(row)).transpose()?;
        if !self.book.name(agent.id, &agent.name) {
            return Err(CommitError::NameTaken(agent.name.clone()).into());
        }
        // Of a batch that is wrong in two ways the same is told as on SQLite.
        let fork_point = forked_from
            .map(|row| row.ok_or_else(|| forked_from_nothing(agent.id)))
            .transpose()?;
        let process = self.process.filter(|_| owned);
        let epoch = Epoch(u64::from(owned));
        let key = self.book.add_agent(agent.id, |key| Entry {
            key,
            name: agent.name.clone(),
            status: Status::Running,
            seq: Seq(0),
            epoch,
            owner: process,
            holder: None,
        })?;
        self.write(
            "INSERT INTO agents
                 (id, uuid, session, parent, fork_agent, fork_seq, created_at, status, name)
             OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            values![
                key,
                agent.id.to_string(),
                session,
                parent,
                fork_point.map(|(agent, _)| agent),
                fork_point.map(|(_, seq)| seq),
                agent.created_at.0,
                Status::Running.word(),
                clean(&agent.name),
            ],
        );
        self.write(
            "INSERT INTO heads (agent, seq, epoch, owner) VALUES ($1, 0, $2, $3)",
            values![key, stored(epoch.0), process],
        );
        if owned {
            done.leases.push((agent.id, epoch));
        }
        Ok(())
    }

    fn fork_point(&self, agent: AgentId, row: Option<RowRef>) -> Outcome<Option<(i64, i64)>> {
        let Some(row) = row else {
            return Ok(None);
        };
        let there = self.book.row(row)?;
        Ok(Some(there.ok_or_else(|| forked_from_nothing(agent))?))
    }

    async fn take_lease(&mut self, agent: AgentId, done: &mut Committed) -> Outcome {
        let held = self.book.held(agent, self.process)?;
        if held.mine {
            done.leases.push((agent, held.epoch));
            return Ok(());
        }
        if let Some(holder) = self.book.agent(agent)?.holder.clone()
            && is_alive(self.link, holder.id).await?
        {
            return Err(CommitError::Held {
                agent,
                owner: holder,
            }
            .into());
        }
        let process = self.process;
        let entry = self.book.agent_mut(agent)?;
        entry.epoch = Epoch(entry.epoch.0.saturating_add(1));
        entry.owner = process;
        entry.holder = None;
        let (key, epoch) = (entry.key, entry.epoch);
        self.write(
            "UPDATE heads SET epoch = $2, owner = $3 WHERE agent = $1",
            values![key, stored(epoch.0), process],
        );
        done.leases.push((agent, epoch));
        Ok(())
    }

    fn change_agent(&mut self, effect: &Effect) -> Outcome {
        match effect {
            Effect::SetName { agent, name } => {
                let entry = self.book.agent_mut(*agent)?;
                entry.name.clone_from(name);
                let (key, status) = (entry.key, entry.status);
                if status == Status::Running && !self.book.name(*agent, name) {
                    return Err(CommitError::NameTaken(name.clone()).into());
                }
                self.write(
                    "UPDATE agents SET name = $2 WHERE id = $1",
                    values![key, clean(name)],
                );
            }
            Effect::SetOrigin {
                agent,
                parent,
                fork_point,
            } => {
                let key = self.book.key(*agent)?;
                let parent = self.book.optional_key(*parent)?;
                let fork_point = self.fork_point(*agent, *fork_point)?;
                self.write(
                    "UPDATE agents SET parent = $2, fork_agent = $3, fork_seq = $4 WHERE id = $1",
                    values![
                        key,
                        parent,
                        fork_point.map(|(agent, _)| agent),
                        fork_point.map(|(_, seq)| seq)
                    ],
                );
            }
            Effect::SetStatus { agent, status } => {
                let entry = self.book.agent_mut(*agent)?;
                entry.status = *status;
                let (key, name) = (entry.key, entry.name.clone());
                if *status != Status::Running {
                    self.book.unname(*agent);
                } else if !self.book.name(*agent, &name) {
                    return Err(CommitError::NameTaken(name).into());
                }
                self.write(
                    "UPDATE agents SET status = $2 WHERE id = $1",
                    values![key, status.word()],
                );
                if *status != Status::Running {
                    self.book.bounce(key);
                    self.write(
                        "UPDATE mail SET state = $2 WHERE receiver = $1 AND state = $3",
                        values![key, MailState::Bounced.word(), MailState::Queued.word()],
                    );
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn fenced_effect(&mut self, effect: &Effect) -> Outcome {
        let process = self.process;
        match effect {
            Effect::GiveLease { agent, epoch } => {
                let held = self.book.held(*agent, process)?.fenced(*agent, *epoch)?;
                self.book.agent_mut(*agent)?.owner = None;
                self.write(
                    "UPDATE heads SET owner = NULL WHERE agent = $1",
                    values![held.agent],
                );
            }
            Effect::AppendDraft {
                agent,
                epoch,
                text,
                at,
            } => {
                let held = self.book.held(*agent, process)?.fenced(*agent, *epoch)?;
                self.write(
                    "INSERT INTO drafts (agent, part, at, text)
                     SELECT $1, coalesce(max(part), 0) + 1, $2, $3 FROM drafts WHERE agent = $1",
                    values![held.agent, at.0, clean(text)],
                );
            }
            Effect::DropDraft { agent, epoch } => {
                let held = self.book.held(*agent, process)?.fenced(*agent, *epoch)?;
                self.write("DELETE FROM drafts WHERE agent = $1", values![held.agent]);
            }
            _ => {}
        }
        Ok(())
    }

    fn mail(&mut self, effect: &Effect) -> Outcome {
        match effect {
            Effect::SendMail {
                mail,
                to,
                from,
                text,
                at,
            } => {
                let receiver = self.book.agent(*to)?;
                if receiver.status != Status::Running {
                    return Err(CommitError::Dead(*to).into());
                }
                let receiver = receiver.key;
                let sender = self.book.optional_key(*from)?;
                if !self.book.send(*mail, receiver) {
                    return Err(bad("the mail was sent before").into());
                }
                self.write(
                    "INSERT INTO mail (uuid, receiver, sender, sent_at, state, text)
                     VALUES ($1, $2, $3, $4, $5, $6)",
                    values![
                        mail.0.to_be_bytes().to_vec(),
                        receiver,
                        sender,
                        at.0,
                        MailState::Queued.word(),
                        clean(text)
                    ],
                );
                Ok(())
            }
            Effect::ConsumeMail { mail, by } => {
                let shown = self.book.row(*by)?;
                self.settle(*mail, MailState::Delivered, shown)?;
                shown.map(|_| ()).ok_or_else(|| dangling().into())
            }
            Effect::WithdrawMail { mail } => self.settle(*mail, MailState::Withdrawn, None),
            Effect::BounceMail { mail } => self.settle(*mail, MailState::Bounced, None),
            _ => Ok(()),
        }
    }

    /// Ends the waiting of queued mail.
    fn settle(&mut self, mail: MailId, state: MailState, by: Option<(i64, i64)>) -> Outcome {
        if !self.book.settle(mail) {
            return Err(CommitError::MailGone(mail).into());
        }
        self.write(
            "UPDATE mail SET state = $2, shown_agent = $3, shown_seq = $4 WHERE uuid = $1",
            values![
                mail.0.to_be_bytes().to_vec(),
                state.word(),
                by.map(|(agent, _)| agent),
                by.map(|(_, seq)| seq)
            ],
        );
        Ok(())
    }

    fn journal(&mut self, effect: &Effect) -> Outcome {
        match effect {
            Effect::StartRun {
                run,
                call,
                class,
                started,
                deadline,
            } => {
                let row = self.book.row(*call)?;
                if !self.book.start(*run) {
                    return Err(bad("the run was started before").into());
                }
                let (agent, seq) = row.ok_or_else(dangling)?;
                self.write(
                    "INSERT INTO tool_runs (uuid, agent, seq, class, started, deadline)
                     VALUES ($1, $2, $3, $4, $5, $6)",
                    values![
                        run.0.to_be_bytes().to_vec(),
                        agent,
                        seq,
                        class.word(),
                        started.0,
                        deadline.0
                    ],
                );
            }
            Effect::EndRun { run, ended } => {
                if !self.book.end(*run) {
                    return Err(bad("the run that ends is not open").into());
                }
                self.write(
                    "UPDATE tool_runs SET ended = $2 WHERE uuid = $1",
                    values![run.0.to_be_bytes().to_vec(), ended.0],
                );
            }
            Effect::PutBlobPart { hash, part, bytes } => {
                if bytes.len() > PART_BYTES {
                    return Err(bad(format!("a part of {} bytes of a blob", bytes.len())).into());
                }
                self.write(
                    "INSERT INTO blobs (hash, part, bytes) VALUES ($1, $2, $3)
                     ON CONFLICT (hash, part) DO NOTHING",
                    values![hash.0.to_vec(), i64::from(*part), bytes.clone()],
                );
            }
            Effect::PutSnapshot(snapshot) => {
                let agent = self.book.key(snapshot.upto.agent)?;
                self.write(
                    "INSERT INTO paths (agent, upto, folded) VALUES ($1, $2, $3)
                     ON CONFLICT (agent, upto) DO UPDATE SET folded = excluded.folded",
                    values![agent, stored(snapshot.upto.seq.0), clean(&snapshot.folded)],
                );
            }
            _ => {}
        }
        Ok(())
    }
}

/// A text as PostgreSQL takes it: U+0000 is refused, so its picture stands in its place.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}
