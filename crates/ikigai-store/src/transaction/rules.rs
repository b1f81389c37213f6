//! The decision about one batch: accepted with its writes, or refused with the reason.

use std::collections::HashMap;

use ikigai_core::{AgentId, Epoch, Kind, NewRow, RowRef, Seq};

use super::facts::{AgentFacts, FactChanges, Facts, LeaseHolder, MailFacts};
use super::job_rules::decide_job;
use super::writes::{AgentWrite, DraftWrite, HeadWrite, MailWrite, RunWrite, Write, Writes};
use crate::batch::{
    AgentEffect, Batch, BudgetEffect, Committed, DraftEffect, Effect, HeadClaim, JobEffect,
    LeaseEffect, MailEffect, NewAgent, RunEffect,
};
use crate::blobs::PART_BYTES;
use crate::error::CommitError;
use crate::records::{MailId, MailOrigin, MailState, MailTopic, Status};

/// Decides whether a batch may be stored, and as which writes.
///
/// Pure: it reads only the facts and changes nothing. The facts must cover [`super::FactKeys`]
/// of the batch.
pub fn decide<'b>(facts: &Facts, batch: &'b Batch) -> Result<Writes<'b>, CommitError> {
    let counts = check(batch)?;
    let mut decision = Decider {
        facts,
        batch,
        changes: FactChanges::default(),
        list: Vec::with_capacity(batch.heads.len() + batch.with.len() + 1),
        committed: Committed::default(),
    };
    let (before, after): (Vec<_>, Vec<_>) = batch.with.iter().partition(|it| precedes_rows(it));
    for effect in before {
        decision.add_effect(effect)?;
    }
    decision.add_rows(&counts)?;
    for effect in after {
        decision.add_effect(effect)?;
    }
    Ok(Writes {
        list: decision.list,
        committed: decision.committed,
        changes: decision.changes,
    })
}

/// Checks what needs no facts, and counts each agent's rows.
pub(crate) fn check(batch: &Batch) -> Result<HashMap<AgentId, u64>, CommitError> {
    let mut leases = HashMap::with_capacity(batch.heads.len());
    for claim in &batch.heads {
        if leases.insert(claim.agent, claim.lease.is_some()).is_some() {
            return Err(bad(format!(
                "the head of agent {} is claimed twice",
                claim.agent
            )));
        }
    }
    let mut counts = HashMap::with_capacity(batch.heads.len());
    for row in &batch.rows {
        let has_lease = leases.get(&row.agent).ok_or_else(|| unclaimed_error(row))?;
        if !has_lease && !needs_no_lease(row) {
            return Err(bad(format!("a row of kind `{}` needs a lease", row.kind)));
        }
        row.check()?;
        *counts.entry(row.agent).or_insert(0) += 1;
    }
    Ok(counts)
}

/// Makes the error for a reference to a row that does not exist.
pub(crate) fn dangling() -> CommitError {
    bad("a reference to something that is not there")
}

pub(super) fn bad(reason: impl Into<String>) -> CommitError {
    CommitError::BadBatch(reason.into())
}

fn unclaimed_error(row: &NewRow) -> CommitError {
    bad(format!(
        "a row of agent {} whose head is not claimed",
        row.agent
    ))
}

fn missing_fork_point(agent: AgentId) -> CommitError {
    bad(format!(
        "agent {agent} is forked from a row that is not there"
    ))
}

/// Returns true for parents' fork rows and kill rows, which any process may append. Neither bends
/// the path.
fn needs_no_lease(row: &NewRow) -> bool {
    !row.control && matches!(row.kind, Kind::Fork | Kind::AgentKilled)
}

/// Returns true if an effect precedes the rows, which may need its result.
pub(super) fn precedes_rows(effect: &Effect) -> bool {
    match effect {
        Effect::MakeSession(_)
        | Effect::Agent(AgentEffect::Create { .. })
        | Effect::Lease(LeaseEffect::Take { .. })
        | Effect::Budget(BudgetEffect::CountAgent { .. }) => true,
        Effect::Agent(
            AgentEffect::SetName { .. }
            | AgentEffect::SetOrigin { .. }
            | AgentEffect::SetStatus { .. },
        )
        | Effect::Lease(LeaseEffect::Give { .. })
        | Effect::Draft(_)
        | Effect::Mail(_)
        | Effect::Run(_)
        | Effect::Job(_)
        | Effect::Request(_)
        | Effect::Budget(BudgetEffect::Reserve { .. } | BudgetEffect::Release { .. })
        | Effect::MoveSession(_)
        | Effect::PutBlobPart { .. }
        | Effect::PutSnapshot(_)
        | Effect::MarkSeen { .. } => false,
    }
}

/// A decision in progress: the facts, with the changes so far on top of them.
pub(super) struct Decider<'f, 'b> {
    pub(super) facts: &'f Facts,
    batch: &'b Batch,
    pub(super) changes: FactChanges,
    pub(super) list: Vec<Write<'b>>,
    committed: Committed,
}

impl<'b> Decider<'_, 'b> {
    pub(super) fn agent(&self, agent: AgentId) -> Result<&AgentFacts, CommitError> {
        let changed = self.changes.agents.get(&agent);
        changed
            .or_else(|| self.facts.agents.get(&agent))
            .ok_or(CommitError::NoAgent(agent))
    }

    fn agent_mut(&mut self, agent: AgentId) -> Result<&mut AgentFacts, CommitError> {
        if !self.changes.agents.contains_key(&agent) {
            let facts = self.agent(agent)?.clone();
            self.changes.agents.insert(agent, facts);
        }
        let changed = self.changes.agents.get_mut(&agent);
        changed.ok_or(CommitError::NoAgent(agent))
    }

    fn check_known(&self, agent: Option<AgentId>) -> Result<(), CommitError> {
        agent.map_or(Ok(()), |agent| self.agent(agent).map(|_| ()))
    }

    /// Returns true if a row exists; refuses the batch if its agent does not.
    pub(super) fn has_row(&self, row: RowRef) -> Result<bool, CommitError> {
        Ok(self.agent(row.agent)?.has_row(row))
    }

    /// Refuses a process that does not hold the lease of that epoch.
    pub(super) fn fence(&self, agent: AgentId, epoch: Epoch) -> Result<(), CommitError> {
        let facts = self.agent(agent)?;
        if facts.epoch == epoch && facts.holder == LeaseHolder::This {
            return Ok(());
        }
        let epoch = facts.epoch;
        Err(CommitError::Fenced { agent, epoch })
    }

    fn add_rows(&mut self, counts: &HashMap<AgentId, u64>) -> Result<(), CommitError> {
        let batch = self.batch;
        // Every process locks heads in the same order.
        let mut claims = batch.heads.clone();
        claims.sort_unstable_by_key(|claim| claim.agent);
        let mut positions = HashMap::with_capacity(claims.len());
        for claim in claims {
            let agent = claim.agent;
            self.check_claim(claim)?;
            let head = self.agent(agent)?.seq;
            positions.insert(agent, head.next());
            let rows = counts.get(&agent).copied().unwrap_or(0);
            if rows > 0 {
                self.agent_mut(agent)?.seq = Seq(head.0.saturating_add(rows));
                self.list
                    .push(Write::Head(HeadWrite::Advance { agent, rows }));
            }
        }
        let mut rows = Vec::with_capacity(batch.rows.len());
        for row in &batch.rows {
            let next = positions
                .get_mut(&row.agent)
                .ok_or_else(|| unclaimed_error(row))?;
            rows.push((RowRef::new(row.agent, *next), row));
            *next = next.next();
        }
        if !rows.is_empty() {
            self.committed.rows.extend(rows.iter().map(|(at, _)| *at));
            self.list.push(Write::InsertRows(rows));
            self.add_spending(batch);
        }
        Ok(())
    }

    fn check_claim(&self, claim: HeadClaim) -> Result<(), CommitError> {
        let agent = claim.agent;
        let facts = self.agent(agent)?;
        let Some(lease) = claim.lease else {
            return Ok(());
        };
        // The creator appends the first rows of an agent that was never leased.
        let is_untouched = facts.epoch == Epoch(0) && facts.seq == Seq(0);
        if !is_untouched || lease.epoch != facts.epoch {
            self.fence(agent, lease.epoch)?;
        }
        if lease.expected == facts.seq {
            return Ok(());
        }
        Err(CommitError::Behind {
            agent,
            expected: lease.expected,
            actual: facts.seq,
        })
    }

    fn add_effect(&mut self, effect: &'b Effect) -> Result<(), CommitError> {
        match effect {
            Effect::MakeSession(session) => self.make_session(session),
            Effect::MoveSession(place) => self.move_session(place),
            Effect::Agent(effect) => self.add_agent_effect(effect),
            Effect::Lease(effect) => self.add_lease_effect(effect),
            Effect::Draft(effect) => self.add_draft_effect(effect),
            Effect::Mail(effect) => self.add_mail_effect(effect),
            Effect::Run(effect) => self.add_run_effect(effect),
            Effect::Job(effect) => {
                if let JobEffect::Start(job) = effect {
                    self.agent(job.agent)?;
                }
                let write = decide_job(&self.facts.jobs, &mut self.changes.jobs, effect)?;
                self.list.push(Write::Job(write));
                Ok(())
            }
            Effect::Request(effect) => self.add_request_effect(effect),
            Effect::Budget(effect) => self.add_budget_effect(effect),
            Effect::PutBlobPart { hash, part, bytes } => {
                if bytes.len() > PART_BYTES {
                    return Err(bad(format!("a part of {} bytes of a blob", bytes.len())));
                }
                self.list.push(Write::InsertBlobPart {
                    hash: *hash,
                    part: *part,
                    bytes,
                });
                Ok(())
            }
            Effect::MarkSeen { person, mark } => self.mark_seen(person, *mark),
            Effect::PutSnapshot(snapshot) => {
                self.agent(snapshot.upto.agent)?;
                self.list.push(Write::PutSnapshot(snapshot));
                Ok(())
            }
        }
    }

    fn add_agent_effect(&mut self, effect: &'b AgentEffect) -> Result<(), CommitError> {
        match effect {
            AgentEffect::Create { agent, owned } => self.create_agent(agent, *owned),
            AgentEffect::SetName { agent, name } => {
                let facts = self.agent(*agent)?;
                let (session, status) = (facts.session, facts.status);
                if status == Status::Running {
                    self.free_name(*agent)?;
                    self.take_name(session, *agent, name)?;
                }
                self.agent_mut(*agent)?.name.clone_from(name);
                let agent = *agent;
                self.list
                    .push(Write::Agent(AgentWrite::SetName { agent, name }));
                Ok(())
            }
            AgentEffect::SetOrigin {
                agent,
                parent,
                fork_point,
            } => {
                self.agent(*agent)?;
                self.check_known(*parent)?;
                if let Some(row) = *fork_point
                    && !self.has_row(row)?
                {
                    return Err(missing_fork_point(*agent));
                }
                self.list.push(Write::Agent(AgentWrite::SetOrigin {
                    agent: *agent,
                    parent: *parent,
                    fork_point: *fork_point,
                }));
                Ok(())
            }
            AgentEffect::SetStatus { agent, status } => self.set_status(*agent, *status),
        }
    }

    fn create_agent(&mut self, agent: &'b NewAgent, owned: bool) -> Result<(), CommitError> {
        let id = agent.id;
        if self.agent(id).is_ok() {
            return Err(CommitError::AgentExists(id));
        }
        let session = agent.session;
        self.check_session(session)?;
        if let Some(parent) = agent.parent
            && self.agent(parent)?.status != Status::Running
            && !self.batch.claims_without_lease(parent)
        {
            return Err(CommitError::Dead(parent));
        }
        let has_fork_point = agent.fork_point.map_or(Ok(true), |row| self.has_row(row))?;
        self.take_name(session, id, &agent.name)?;
        if !has_fork_point {
            return Err(missing_fork_point(id));
        }
        let epoch = Epoch(u64::from(owned));
        let facts = AgentFacts {
            session,
            name: agent.name.clone(),
            status: Status::Running,
            seq: Seq(0),
            epoch,
            holder: if owned {
                LeaseHolder::This
            } else {
                LeaseHolder::Free
            },
        };
        self.changes.agents.insert(id, facts);
        self.list.push(Write::Agent(AgentWrite::Insert {
            agent,
            epoch,
            owned,
        }));
        if owned {
            self.committed.leases.push((id, epoch));
        }
        Ok(())
    }

    /// Sets the status; stopping an agent bounces its queued mail.
    ///
    /// The sender cannot know of the kill.
    fn set_status(&mut self, agent: AgentId, status: Status) -> Result<(), CommitError> {
        let facts = self.agent(agent)?;
        let (session, name) = (facts.session, facts.name.clone());
        if status == Status::Running {
            self.take_name(session, agent, &name)?;
        } else {
            self.free_name(agent)?;
        }
        self.agent_mut(agent)?.status = status;
        self.list
            .push(Write::Agent(AgentWrite::SetStatus { agent, status }));
        if status == Status::Running {
            return Ok(());
        }
        let changed = &self.changes.mail;
        let known = self.facts.mail.iter();
        let unchanged = known.filter(|(mail, _)| !changed.contains_key(mail));
        let to_agent = unchanged
            .chain(changed)
            .filter(|(_, facts)| facts.to == agent && facts.is_queued);
        let bounced: Vec<MailId> = to_agent.map(|(mail, _)| *mail).collect();
        for mail in bounced {
            let facts = MailFacts {
                to: agent,
                is_queued: false,
            };
            self.changes.mail.insert(mail, facts);
        }
        self.list
            .push(Write::Mail(MailWrite::BounceAll { to: agent }));
        Ok(())
    }

    fn add_lease_effect(&mut self, effect: &LeaseEffect) -> Result<(), CommitError> {
        match *effect {
            LeaseEffect::Take { agent } => {
                let facts = self.agent(agent)?;
                let epoch = match &facts.holder {
                    LeaseHolder::This => {
                        let epoch = facts.epoch;
                        self.committed.leases.push((agent, epoch));
                        return Ok(());
                    }
                    LeaseHolder::Other(owner) => {
                        let owner = owner.clone();
                        return Err(CommitError::Held { agent, owner });
                    }
                    LeaseHolder::Free => Epoch(facts.epoch.0.saturating_add(1)),
                };
                let facts = self.agent_mut(agent)?;
                facts.epoch = epoch;
                facts.holder = LeaseHolder::This;
                self.list
                    .push(Write::Head(HeadWrite::SetOwner { agent, epoch }));
                // No request of the former holder is paid by this one.
                self.release_all(agent);
                self.committed.leases.push((agent, epoch));
            }
            LeaseEffect::Give { agent, epoch } => {
                self.fence(agent, epoch)?;
                self.agent_mut(agent)?.holder = LeaseHolder::Free;
                self.list.push(Write::Head(HeadWrite::ClearOwner { agent }));
                self.release_all(agent);
            }
        }
        Ok(())
    }

    fn add_draft_effect(&mut self, effect: &'b DraftEffect) -> Result<(), CommitError> {
        match effect {
            DraftEffect::Append {
                agent,
                epoch,
                text,
                at,
            } => {
                self.fence(*agent, *epoch)?;
                let (agent, at) = (*agent, *at);
                self.list
                    .push(Write::Draft(DraftWrite::Append { agent, text, at }));
            }
            DraftEffect::Drop { agent, epoch } => {
                self.fence(*agent, *epoch)?;
                self.list
                    .push(Write::Draft(DraftWrite::Delete { agent: *agent }));
            }
        }
        Ok(())
    }

    fn add_mail_effect(&mut self, effect: &'b MailEffect) -> Result<(), CommitError> {
        match effect {
            MailEffect::Send {
                mail,
                to,
                origin,
                from,
                author,
                about,
                text,
                at,
            } => {
                if (*origin == MailOrigin::Agent) != from.is_some() {
                    return Err(bad("mail of an agent, and no other, has a sender"));
                }
                if *origin != MailOrigin::User && author.is_some() {
                    return Err(bad("only mail of a user has an author"));
                }
                self.send(MailWrite::Insert {
                    mail: *mail,
                    to: *to,
                    origin: *origin,
                    from: *from,
                    author: author.as_ref(),
                    about: *about,
                    process: None,
                    text,
                    at: *at,
                })
            }
            MailEffect::Notify {
                mail,
                to,
                process,
                text,
                at,
            } => self.send(MailWrite::Insert {
                mail: *mail,
                to: *to,
                origin: MailOrigin::Process,
                from: None,
                author: None,
                about: MailTopic::Message,
                process: Some(*process),
                text,
                at: *at,
            }),
            MailEffect::Consume { mail, by } => {
                let has_row = self.has_row(*by)?;
                self.settle_mail(*mail, MailState::Delivered, Some(*by))?;
                if has_row { Ok(()) } else { Err(dangling()) }
            }
            MailEffect::Withdraw { mail } => self.settle_mail(*mail, MailState::Withdrawn, None),
            MailEffect::Bounce { mail } => self.settle_mail(*mail, MailState::Bounced, None),
        }
    }

    /// Sends mail; refused if the receiver is not running, or it was sent before.
    fn send(&mut self, write: MailWrite<'b>) -> Result<(), CommitError> {
        if let MailWrite::Insert { mail, to, from, .. } = write {
            if self.agent(to)?.status != Status::Running {
                return Err(CommitError::Dead(to));
            }
            self.check_known(from)?;
            let facts = MailFacts {
                to,
                is_queued: true,
            };
            let is_new = !self.facts.mail.contains_key(&mail);
            if !is_new || self.changes.mail.insert(mail, facts).is_some() {
                return Err(bad("the mail was sent before"));
            }
        }
        self.list.push(Write::Mail(write));
        Ok(())
    }

    fn settle_mail(
        &mut self,
        mail: MailId,
        state: MailState,
        shown_by: Option<RowRef>,
    ) -> Result<(), CommitError> {
        let changed = self.changes.mail.get(&mail);
        let facts = changed.or_else(|| self.facts.mail.get(&mail)).copied();
        let facts = facts.filter(|facts| facts.is_queued);
        let mut facts = facts.ok_or(CommitError::MailGone(mail))?;
        facts.is_queued = false;
        self.changes.mail.insert(mail, facts);
        self.list.push(Write::Mail(MailWrite::Settle {
            mail,
            state,
            shown_by,
        }));
        Ok(())
    }

    fn add_run_effect(&mut self, effect: &RunEffect) -> Result<(), CommitError> {
        match *effect {
            RunEffect::Start {
                run,
                call,
                class,
                started,
                deadline,
            } => {
                let has_call = self.has_row(call)?;
                let is_new = !self.facts.runs.contains_key(&run);
                if !is_new || self.changes.runs.insert(run, true).is_some() {
                    return Err(bad("the run was started before"));
                }
                if !has_call {
                    return Err(dangling());
                }
                self.list.push(Write::Run(RunWrite::Insert {
                    run,
                    call,
                    class,
                    started,
                    deadline,
                }));
            }
            RunEffect::End { run, ended } => {
                let changed = self.changes.runs.get(&run);
                let is_open = changed.or_else(|| self.facts.runs.get(&run));
                if is_open != Some(&true) {
                    return Err(bad("the run that ends is not open"));
                }
                self.changes.runs.insert(run, false);
                self.list.push(Write::Run(RunWrite::End { run, ended }));
            }
        }
        Ok(())
    }
}
