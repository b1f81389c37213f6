//! The part of the store on which the outcome of a batch depends.

use std::collections::{BTreeSet, HashMap, HashSet};

use ikigai_core::{AgentId, Epoch, Kind, RowRef, Seq, SessionId};

use crate::batch::{
    AgentEffect, Batch, BudgetEffect, DraftEffect, Effect, JobEffect, LeaseEffect, MailEffect,
    NewAgent, RequestEffect, RunEffect,
};
use crate::records::{
    MailId, ProcessRecord, RequestId, RequestState, ReservationId, RunId, Spending, Status,
};

/// Keys of the facts that some batches need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactKeys {
    /// All agents, those of the following sets included.
    pub agents: BTreeSet<AgentId>,
    /// Agents whose heads must not move during the transaction.
    pub heads: BTreeSet<AgentId>,
    /// Agents whose records must not change during the transaction.
    pub records: BTreeSet<AgentId>,
    /// Agents whose leases are taken, so that the owner must be known to live.
    pub leases: BTreeSet<AgentId>,
    /// Agents that start to run again; the holder of their names is needed.
    pub revived: BTreeSet<AgentId>,
    /// Names whose holders in a session must be known.
    pub names: BTreeSet<(SessionId, String)>,
    /// Names that agents take in their sessions; the holders must be known.
    pub renamed: BTreeSet<(AgentId, String)>,
    /// Sessions.
    pub sessions: BTreeSet<SessionId>,
    /// Mail.
    pub mail: BTreeSet<MailId>,
    /// Runs of tools.
    pub runs: BTreeSet<RunId>,
    /// Background processes.
    pub jobs: BTreeSet<RunId>,
    /// Requests to holders of agents.
    pub requests: BTreeSet<RequestId>,
    /// Agents that spend or reserve: no other transaction may do so in their families.
    pub spenders: BTreeSet<AgentId>,
    /// Agents whose caps are checked.
    pub budgets: BTreeSet<AgentId>,
    /// Agents whose running descendants are counted.
    pub counted: BTreeSet<AgentId>,
    /// Number of agents that are created.
    pub new_agents: usize,
    /// Number of sessions that are created.
    pub new_sessions: usize,
    /// This process must be registered, because it takes a lease or reserves.
    pub registers: bool,
}

impl FactKeys {
    /// Collects the keys of all facts that these batches need.
    pub fn of<'a>(batches: impl IntoIterator<Item = &'a Batch>) -> Self {
        let mut keys = Self::default();
        let mut new_agents: Vec<&NewAgent> = Vec::new();
        for batch in batches {
            keys.heads.extend(batch.heads.iter().map(|it| it.agent));
            let usage = batch.rows.iter().filter(|row| row.kind == Kind::Usage);
            keys.spenders.extend(usage.map(|row| row.agent));
            for effect in &batch.with {
                keys.add(effect);
                if let Effect::Agent(AgentEffect::Create { agent, .. }) = effect {
                    new_agents.push(agent);
                }
            }
        }
        // Agents that the batches create are not in the store, so their sessions are known here only.
        let created = new_agents.iter().map(|agent| (agent.id, agent.session));
        let created: HashMap<AgentId, SessionId> = created.collect();
        let named = keys.renamed.iter().filter_map(|(agent, name)| {
            let session = created.get(agent)?;
            Some((*session, name.clone()))
        });
        let named: Vec<_> = named.collect();
        keys.names.extend(named);
        let locked = keys.heads.iter().chain(&keys.records);
        let locked: Vec<AgentId> = locked.copied().collect();
        keys.agents.extend(locked);
        keys
    }

    fn add(&mut self, effect: &Effect) {
        match effect {
            Effect::MakeSession(session) => {
                self.sessions.insert(session.id);
                self.new_sessions += 1;
            }
            Effect::MoveSession(place) => {
                self.sessions.insert(place.session);
            }
            Effect::Agent(effect) => self.add_agent(effect),
            Effect::Lease(LeaseEffect::Take { agent }) => {
                self.heads.insert(*agent);
                self.leases.insert(*agent);
                self.registers = true;
            }
            Effect::Lease(LeaseEffect::Give { agent, .. })
            | Effect::Draft(DraftEffect::Append { agent, .. } | DraftEffect::Drop { agent, .. }) => {
                self.heads.insert(*agent);
            }
            Effect::Mail(effect) => self.add_mail(effect),
            Effect::Run(RunEffect::Start { run, call, .. }) => {
                self.runs.insert(*run);
                self.agents.insert(call.agent);
            }
            Effect::Run(RunEffect::End { run, .. }) => {
                self.runs.insert(*run);
            }
            Effect::Job(JobEffect::Start(job)) => {
                self.jobs.insert(job.id);
                self.agents.insert(job.agent);
            }
            Effect::Job(
                JobEffect::Read { job, .. }
                | JobEffect::DropPattern { job }
                | JobEffect::End { job, .. },
            ) => {
                self.jobs.insert(*job);
            }
            Effect::Request(effect) => self.add_request(effect),
            Effect::Budget(effect) => self.add_budget(effect),
            Effect::PutSnapshot(snapshot) => {
                self.agents.insert(snapshot.upto.agent);
            }
            Effect::MarkSeen { mark, .. } => {
                self.agents.insert(mark.agent);
            }
            Effect::PutBlobPart { .. } => {}
        }
    }

    fn add_agent(&mut self, effect: &AgentEffect) {
        match effect {
            AgentEffect::Create { agent, owned } => {
                self.agents.insert(agent.id);
                self.names.insert((agent.session, agent.name.clone()));
                self.sessions.insert(agent.session);
                self.records.extend(agent.parent);
                self.agents.extend(agent.fork_point.map(|row| row.agent));
                self.new_agents += 1;
                self.registers |= *owned;
            }
            AgentEffect::SetName { agent, name } => {
                self.records.insert(*agent);
                self.renamed.insert((*agent, name.clone()));
            }
            AgentEffect::SetOrigin {
                agent,
                parent,
                fork_point,
            } => {
                self.records.insert(*agent);
                self.agents.extend(parent);
                self.agents.extend(fork_point.map(|row| row.agent));
            }
            AgentEffect::SetStatus { agent, status } => {
                self.records.insert(*agent);
                if *status == Status::Running {
                    self.revived.insert(*agent);
                }
            }
        }
    }

    fn add_budget(&mut self, effect: &BudgetEffect) {
        match effect {
            BudgetEffect::Reserve { agent, cap, .. } => {
                self.heads.insert(*agent);
                self.spenders.insert(*agent);
                self.agents.insert(cap.root);
                self.budgets.insert(cap.root);
                self.registers = true;
            }
            BudgetEffect::CountAgent { root, .. } => {
                self.records.insert(*root);
                self.counted.insert(*root);
            }
            BudgetEffect::Release { .. } => {}
        }
    }

    fn add_request(&mut self, effect: &RequestEffect) {
        match effect {
            RequestEffect::Send(request) => {
                self.requests.insert(request.id);
                self.agents.insert(request.agent);
            }
            RequestEffect::Take { request, agent } => {
                self.requests.insert(*request);
                self.heads.insert(*agent);
            }
            RequestEffect::Answer { request, .. } | RequestEffect::Expire { request } => {
                self.requests.insert(*request);
            }
        }
    }

    fn add_mail(&mut self, effect: &MailEffect) {
        match effect {
            MailEffect::Send { mail, to, from, .. } => {
                self.mail.insert(*mail);
                self.records.insert(*to);
                self.agents.extend(from);
            }
            MailEffect::Notify { mail, to, .. } => {
                self.mail.insert(*mail);
                self.records.insert(*to);
            }
            MailEffect::Consume { mail, by } => {
                self.mail.insert(*mail);
                self.agents.insert(by.agent);
            }
            MailEffect::Withdraw { mail } | MailEffect::Bounce { mail } => {
                self.mail.insert(*mail);
            }
        }
    }
}

/// Facts about everything that some batches name. Missing entries do not exist in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The agents.
    pub agents: HashMap<AgentId, AgentFacts>,
    /// Running agents by their sessions and names.
    pub names: HashMap<(SessionId, String), AgentId>,
    /// The sessions.
    pub sessions: HashSet<SessionId>,
    /// The mail.
    pub mail: HashMap<MailId, MailFacts>,
    /// The runs; `true` if the run has not ended.
    pub runs: HashMap<RunId, bool>,
    /// The background processes; `true` if the process has not ended.
    pub jobs: HashMap<RunId, bool>,
    /// The requests, with their states.
    pub requests: HashMap<RequestId, RequestState>,
    /// The agents whose caps are checked.
    pub budgets: HashMap<AgentId, BudgetFacts>,
    /// Numbers of running agents: an agent and its descendants.
    pub running: HashMap<AgentId, u64>,
}

/// Facts about the spending of an agent and its descendants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetFacts {
    /// Amount of all `usage` rows.
    pub spent: Spending,
    /// Reservations of living processes.
    pub reserved: HashMap<ReservationId, Spending>,
}

/// Facts about one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFacts {
    /// Its session.
    pub session: SessionId,
    /// Its name.
    pub name: String,
    /// Its status.
    pub status: Status,
    /// Its newest row; 0 if it has none. The rows from 1 up to it exist.
    pub seq: Seq,
    /// Epoch of its newest lease.
    pub epoch: Epoch,
    /// Holder of its lease.
    pub holder: LeaseHolder,
}

/// Holder of an agent's lease, as seen by the process that commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseHolder {
    /// No process; where the lease is taken, also a process that died.
    Free,
    /// This process.
    This,
    /// Another process.
    Other(ProcessRecord),
}

/// Facts about one mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailFacts {
    /// The receiver.
    pub to: AgentId,
    /// True if it was neither delivered, bounced nor withdrawn.
    pub is_queued: bool,
}

impl AgentFacts {
    /// Returns true if a row exists.
    pub(super) fn has_row(&self, row: RowRef) -> bool {
        (Seq(1)..=self.seq).contains(&row.seq)
    }
}

/// Facts that a batch changes, with their values after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactChanges {
    pub(super) agents: HashMap<AgentId, AgentFacts>,
    /// `None` frees the name.
    pub(super) names: HashMap<(SessionId, String), Option<AgentId>>,
    pub(super) sessions: HashSet<SessionId>,
    pub(super) mail: HashMap<MailId, MailFacts>,
    pub(super) runs: HashMap<RunId, bool>,
    pub(super) jobs: HashMap<RunId, bool>,
    pub(super) requests: HashMap<RequestId, RequestState>,
    pub(super) budgets: HashMap<AgentId, BudgetFacts>,
    pub(super) running: HashMap<AgentId, u64>,
}

impl Facts {
    /// Updates the facts for the next batch of the same transaction.
    pub fn apply(&mut self, changes: FactChanges) {
        self.agents.extend(changes.agents);
        for (name, agent) in changes.names {
            match agent {
                Some(agent) => self.names.insert(name, agent),
                None => self.names.remove(&name),
            };
        }
        self.sessions.extend(changes.sessions);
        self.mail.extend(changes.mail);
        self.runs.extend(changes.runs);
        self.jobs.extend(changes.jobs);
        self.requests.extend(changes.requests);
        self.budgets.extend(changes.budgets);
        self.running.extend(changes.running);
    }
}
