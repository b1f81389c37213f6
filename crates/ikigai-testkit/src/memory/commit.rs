//! Writing to the memory store: a whole batch, or nothing of it.

use std::collections::HashSet;
use std::collections::btree_map::Entry;

use ikigai_core::{
    AgentId, Epoch, Kind, Micros, NewRow, ProcessId, Row, RowRef, Seq, SessionId, StoredKind,
};
use ikigai_store::blobs::PART_BYTES;
use ikigai_store::{
    Batch, BlobHash, CommitError, Committed, Draft, Effect, HeadClaim, MailId, MailRecord,
    MailState, NewAgent, RunId, RunRecord, SessionRecord, Snapshot, Status,
};

use super::log::{AgentLog, Facts, MemoryLog};

/// Carries a batch out for `process`. When any part is refused, everything before it is taken
/// back.
pub(super) fn commit(
    log: &mut MemoryLog,
    process: ProcessId,
    batch: Batch,
) -> Result<Committed, CommitError> {
    check_batch(&batch)?;
    let mut writing = Writing {
        log,
        process,
        undo: Vec::new(),
        done: Committed::default(),
    };
    match writing.all(batch) {
        Ok(()) => {
            let done = writing.done;
            log.stored.extend(&done.rows);
            Ok(done)
        }
        Err(error) => {
            for step in writing.undo.into_iter().rev() {
                step(log);
            }
            Err(error)
        }
    }
}

/// Checks what can be seen without the log.
fn check_batch(batch: &Batch) -> Result<(), CommitError> {
    let mut claims = HashSet::new();
    for claim in &batch.heads {
        if !claims.insert(claim.agent) {
            return Err(bad(format!("agent `{}` is claimed twice", claim.agent)));
        }
    }
    for row in &batch.rows {
        row.check()?;
        let claim = batch.heads.iter().find(|claim| claim.agent == row.agent);
        match claim {
            None => {
                return Err(bad(format!(
                    "rows of agent `{}` without a claim",
                    row.agent
                )));
            }
            Some(HeadClaim { lease: None, .. }) if !needs_no_lease(row) => {
                return Err(bad(format!("a row of kind `{}` needs a lease", row.kind)));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Says whether anyone may append the row: the parent's side of a fork, and kills. The child's
/// side is a control row.
fn needs_no_lease(row: &NewRow) -> bool {
    matches!(row.kind, Kind::Fork | Kind::AgentKilled) && !row.control
}

/// Takes one step back.
type Undo = Box<dyn FnOnce(&mut MemoryLog)>;

/// A batch on its way.
///
/// Invariant: for each change that was made there is a step in `undo` which takes it back if all
/// later ones are taken back before it.
struct Writing<'a> {
    log: &'a mut MemoryLog,
    process: ProcessId,
    undo: Vec<Undo>,
    done: Committed,
}

impl Writing<'_> {
    fn all(&mut self, batch: Batch) -> Result<(), CommitError> {
        let (before, after): (Vec<_>, Vec<_>) = batch.with.into_iter().partition(makes_something);
        for effect in before {
            self.effect(effect)?;
        }
        for claim in &batch.heads {
            self.claim(*claim)?;
        }
        for row in batch.rows {
            self.append(row)?;
        }
        for effect in after {
            self.effect(effect)?;
        }
        Ok(())
    }

    fn claim(&mut self, claim: HeadClaim) -> Result<(), CommitError> {
        let agent = claim.agent;
        if let Some(lease) = claim.lease {
            let actual = self.agent(agent)?.head();
            // The first rows of an agent that nobody ever held come from whoever made it.
            let first = self.agent(agent)?.facts.epoch == Epoch(0) && actual == Seq(0);
            if !(first && lease.epoch == Epoch(0)) {
                self.fence(agent, lease.epoch)?;
            }
            if actual != lease.expected {
                return Err(CommitError::Behind {
                    agent,
                    expected: lease.expected,
                    actual,
                });
            }
        }
        let len = self.agent(agent)?.rows.len();
        self.undo.push(Box::new(move |log| {
            if let Some(log) = log.agents.get_mut(&agent) {
                log.truncate(len);
            }
        }));
        Ok(())
    }

    /// Refuses whoever does not hold the lease of that epoch.
    fn fence(&self, agent: AgentId, epoch: Epoch) -> Result<(), CommitError> {
        let facts = &self.agent(agent)?.facts;
        if facts.epoch == epoch && facts.owner == Some(self.process) {
            Ok(())
        } else {
            Err(CommitError::Fenced {
                agent,
                epoch: facts.epoch,
            })
        }
    }

    fn append(&mut self, row: NewRow) -> Result<(), CommitError> {
        let log = self
            .log
            .agents
            .get_mut(&row.agent)
            .ok_or(CommitError::NoAgent(row.agent))?;
        let at = RowRef::new(row.agent, log.head().next());
        log.push(
            Row {
                at,
                kind: StoredKind::Known(row.kind),
                content: row.content,
                data: row.data,
                created_at: row.created_at,
            },
            row.control,
        );
        self.done.rows.push(at);
        Ok(())
    }

    fn effect(&mut self, effect: Effect) -> Result<(), CommitError> {
        match effect {
            Effect::MakeSession {
                session,
                name,
                directory,
                at,
            } => self.make_session(SessionRecord {
                id: session,
                name,
                directory,
                created_at: at,
            }),
            Effect::CreateAgent { agent, owned } => self.create_agent(agent, owned),
            Effect::SetName { agent, name } => self.set_name(agent, name),
            Effect::SetOrigin {
                agent,
                parent,
                fork_point,
            } => {
                if let Some(parent) = parent {
                    self.agent(parent)?;
                }
                self.change(agent, |facts| {
                    facts.agent.parent = parent;
                    facts.agent.fork_point = fork_point;
                })
            }
            Effect::SetStatus { agent, status } => self.set_status(agent, status),
            Effect::TakeLease { agent } => self.take_lease(agent),
            Effect::GiveLease { agent, epoch } => {
                self.fence(agent, epoch)?;
                self.change(agent, |facts| facts.owner = None)
            }
            Effect::AppendDraft {
                agent,
                epoch,
                text,
                at,
            } => {
                self.fence(agent, epoch)?;
                self.change(agent, |facts| append_draft(facts, &text, at))
            }
            Effect::DropDraft { agent, epoch } => {
                self.fence(agent, epoch)?;
                self.change(agent, |facts| facts.draft = None)
            }
            Effect::SendMail {
                mail,
                to,
                from,
                text,
                at,
            } => self.send_mail(MailRecord {
                id: mail,
                to,
                from,
                text,
                state: MailState::Queued,
                shown_by: None,
                sent_at: at,
            }),
            Effect::ConsumeMail { mail, by } => {
                self.settle_mail(mail, MailState::Delivered, Some(by))
            }
            Effect::WithdrawMail { mail } => self.settle_mail(mail, MailState::Withdrawn, None),
            Effect::BounceMail { mail } => self.settle_mail(mail, MailState::Bounced, None),
            Effect::StartRun {
                run,
                call,
                class,
                started,
                deadline,
            } => self.start_run(RunRecord {
                id: run,
                call,
                class,
                started,
                deadline,
                ended: None,
            }),
            Effect::EndRun { run, ended } => self.end_run(run, ended),
            Effect::PutBlobPart { hash, part, bytes } => self.put_blob_part(hash, part, bytes),
            Effect::PutSnapshot(snapshot) => self.put_snapshot(snapshot),
        }
    }

    fn make_session(&mut self, session: SessionRecord) -> Result<(), CommitError> {
        if self.has_session(session.id) {
            return Err(bad(format!("there is a session `{}` already", session.id)));
        }
        self.log.sessions.push(session);
        self.undo.push(Box::new(|log| {
            log.sessions.pop();
        }));
        Ok(())
    }

    fn create_agent(&mut self, agent: NewAgent, owned: bool) -> Result<(), CommitError> {
        let id = agent.id;
        if self.log.agents.contains_key(&id) {
            return Err(CommitError::AgentExists(id));
        }
        if !self.has_session(agent.session) {
            return Err(bad(format!("there is no session `{}`", agent.session)));
        }
        if let Some(parent) = agent.parent
            && self.agent(parent)?.facts.status != Status::Running
        {
            return Err(CommitError::Dead(parent));
        }
        if let Some(row) = agent.fork_point {
            self.check_row(row)?;
        }
        self.check_name(&agent.name, id)?;
        let log = if owned {
            self.done.leases.push((id, Epoch(1)));
            AgentLog::new(agent, Epoch(1), Some(self.process))
        } else {
            AgentLog::new(agent, Epoch(0), None)
        };
        self.log.agents.insert(id, log);
        self.log.made.push(id);
        self.undo.push(Box::new(move |log| {
            log.agents.remove(&id);
            log.made.pop();
        }));
        Ok(())
    }

    fn set_name(&mut self, agent: AgentId, name: String) -> Result<(), CommitError> {
        if self.agent(agent)?.facts.status == Status::Running {
            self.check_name(&name, agent)?;
        }
        self.change(agent, |facts| facts.agent.name = name)
    }

    fn set_status(&mut self, agent: AgentId, status: Status) -> Result<(), CommitError> {
        let facts = &self.agent(agent)?.facts;
        if status == Status::Running {
            self.check_name(&facts.agent.name, agent)?;
        }
        self.change(agent, |facts| facts.status = status)?;
        if status == Status::Running {
            return Ok(());
        }
        let queued = |mail: &MailRecord| mail.to == agent && mail.state == MailState::Queued;
        let mail = self.log.mail.iter().filter(|mail| queued(mail));
        for mail in mail.map(|mail| mail.id).collect::<Vec<_>>() {
            self.settle_mail(mail, MailState::Bounced, None)?;
        }
        Ok(())
    }

    /// Refuses a name that a living agent other than `of` has.
    fn check_name(&self, name: &str, of: AgentId) -> Result<(), CommitError> {
        let taken = self.log.agents.values().map(|log| &log.facts).any(|facts| {
            facts.status == Status::Running && facts.agent.name == name && facts.agent.id != of
        });
        if taken {
            Err(CommitError::NameTaken(name.to_owned()))
        } else {
            Ok(())
        }
    }

    fn take_lease(&mut self, agent: AgentId) -> Result<(), CommitError> {
        let facts = &self.agent(agent)?.facts;
        let epoch = match facts.owner {
            Some(owner) if owner == self.process => facts.epoch,
            Some(owner) if self.log.is_alive(owner) => {
                let owner = self.log.process_record(owner);
                return Err(CommitError::Held { agent, owner });
            }
            _ => Epoch(facts.epoch.0 + 1),
        };
        self.done.leases.push((agent, epoch));
        let process = self.process;
        self.change(agent, |facts| {
            facts.epoch = epoch;
            facts.owner = Some(process);
        })
    }

    fn send_mail(&mut self, mail: MailRecord) -> Result<(), CommitError> {
        if self.log.mail.iter().any(|sent| sent.id == mail.id) {
            return Err(bad("the mail was sent before".to_owned()));
        }
        if let Some(from) = mail.from {
            self.agent(from)?;
        }
        if self.agent(mail.to)?.facts.status != Status::Running {
            return Err(CommitError::Dead(mail.to));
        }
        self.log.mail.push(mail);
        self.undo.push(Box::new(|log| {
            log.mail.pop();
        }));
        Ok(())
    }

    fn settle_mail(
        &mut self,
        id: MailId,
        state: MailState,
        shown_by: Option<RowRef>,
    ) -> Result<(), CommitError> {
        let queued = |mail: &MailRecord| mail.id == id && mail.state == MailState::Queued;
        let place = self
            .log
            .mail
            .iter()
            .position(queued)
            .ok_or(CommitError::MailGone(id))?;
        if let Some(row) = shown_by {
            self.check_row(row)?;
        }
        let mail = &mut self.log.mail[place];
        mail.state = state;
        mail.shown_by = shown_by;
        self.undo.push(Box::new(move |log| {
            log.mail[place].state = MailState::Queued;
            log.mail[place].shown_by = None;
        }));
        Ok(())
    }

    fn start_run(&mut self, run: RunRecord) -> Result<(), CommitError> {
        self.check_row(run.call)?;
        if self.log.runs.iter().any(|known| known.id == run.id) {
            return Err(bad("the run was journalled before".to_owned()));
        }
        self.log.runs.push(run);
        self.undo.push(Box::new(|log| {
            log.runs.pop();
        }));
        Ok(())
    }

    fn end_run(&mut self, id: RunId, ended: Micros) -> Result<(), CommitError> {
        let open = |run: &RunRecord| run.id == id && run.ended.is_none();
        let place = self.log.runs.iter().position(open);
        let place = place.ok_or_else(|| bad("the run that ends is not open".to_owned()))?;
        self.log.runs[place].ended = Some(ended);
        self.undo
            .push(Box::new(move |log| log.runs[place].ended = None));
        Ok(())
    }

    fn put_blob_part(
        &mut self,
        hash: BlobHash,
        part: u32,
        bytes: Vec<u8>,
    ) -> Result<(), CommitError> {
        if bytes.len() > PART_BYTES {
            return Err(bad(format!("a part of {} bytes of a blob", bytes.len())));
        }
        let parts = self.log.blobs.entry(hash).or_default();
        if let Entry::Vacant(place) = parts.entry(part) {
            place.insert(bytes);
            self.undo.push(Box::new(move |log| {
                if let Some(parts) = log.blobs.get_mut(&hash) {
                    parts.remove(&part);
                }
            }));
        }
        Ok(())
    }

    fn put_snapshot(&mut self, snapshot: Snapshot) -> Result<(), CommitError> {
        let RowRef { agent, seq } = snapshot.upto;
        let log = self
            .log
            .agents
            .get_mut(&agent)
            .ok_or(CommitError::NoAgent(agent))?;
        let before = log.snapshots.insert(seq, snapshot.folded);
        self.undo.push(Box::new(move |log| {
            let Some(log) = log.agents.get_mut(&agent) else {
                return;
            };
            match before {
                Some(folded) => drop(log.snapshots.insert(seq, folded)),
                None => drop(log.snapshots.remove(&seq)),
            }
        }));
        Ok(())
    }

    fn agent(&self, agent: AgentId) -> Result<&AgentLog, CommitError> {
        self.log
            .agents
            .get(&agent)
            .ok_or(CommitError::NoAgent(agent))
    }

    /// Refuses a reference to a row that is not there.
    fn check_row(&self, row: RowRef) -> Result<(), CommitError> {
        self.agent(row.agent)?;
        if self.log.has_row(row) {
            Ok(())
        } else {
            Err(bad(format!("there is no row `{row}`")))
        }
    }

    fn has_session(&self, session: SessionId) -> bool {
        self.log.sessions.iter().any(|known| known.id == session)
    }

    /// Changes the small part of an agent.
    fn change(
        &mut self,
        agent: AgentId,
        change: impl FnOnce(&mut Facts),
    ) -> Result<(), CommitError> {
        let log = self
            .log
            .agents
            .get_mut(&agent)
            .ok_or(CommitError::NoAgent(agent))?;
        let before = log.facts.clone();
        change(&mut log.facts);
        self.undo.push(Box::new(move |log| {
            if let Some(log) = log.agents.get_mut(&agent) {
                log.facts = before;
            }
        }));
        Ok(())
    }
}

/// Says whether an effect comes before the rows.
fn makes_something(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::MakeSession { .. } | Effect::CreateAgent { .. } | Effect::TakeLease { .. }
    )
}

fn append_draft(facts: &mut Facts, text: &str, at: Micros) {
    let draft = facts.draft.get_or_insert_with(|| Draft {
        text: String::new(),
        updated_at: at,
    });
    draft.text.push_str(text);
    draft.updated_at = at;
}

fn bad(why: String) -> CommitError {
    CommitError::BadBatch(why)
}
