//! Writes to the memory store, by the rules of every store.

use ikigai_core::{Micros, ProcessId, Row, StoredKind};
use ikigai_store::transaction::{
    AgentFacts, AgentWrite, BudgetFacts, BudgetWrite, DraftWrite, FactKeys, Facts, HeadWrite,
    JobWrite, LeaseHolder, MailFacts, MailWrite, RequestWrite, RunWrite, Write, decide,
};
use ikigai_store::{
    Batch, CommitError, Committed, DraftRecord, JobRecord, MailRecord, MailState, RunId, RunRecord,
    SeenMark, SessionRecord, Status,
};

use super::log::{AgentLog, AgentRow, MemoryLog, MemoryReservation};

/// Commits a batch of `process`, whole or not at all.
pub(super) fn commit(
    log: &mut MemoryLog,
    process: ProcessId,
    batch: &Batch,
) -> Result<Committed, CommitError> {
    let facts = read_facts(log, process, &FactKeys::of([batch]));
    let writes = decide(&facts, batch)?;
    for write in writes.list {
        execute(log, process, write);
    }
    log.stored.extend(&writes.committed.rows);
    Ok(writes.committed)
}

/// Reads the facts of these keys, as `process` sees them.
fn read_facts(log: &MemoryLog, process: ProcessId, keys: &FactKeys) -> Facts {
    let mut facts = Facts::default();
    for agent in &keys.agents {
        let Some(found) = log.agents.get(agent) else {
            continue;
        };
        let holder = match found.record.owner {
            None => LeaseHolder::Free,
            Some(owner) if owner == process => LeaseHolder::This,
            Some(owner) if keys.leases.contains(agent) && !log.is_alive(owner) => LeaseHolder::Free,
            Some(owner) => LeaseHolder::Other(log.process_record(owner)),
        };
        let record = &found.record;
        let found = AgentFacts {
            session: record.agent.session,
            name: record.agent.name.clone(),
            status: record.status,
            seq: found.head(),
            epoch: record.epoch,
            holder,
        };
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
        let mut running = log.agents.values().map(|log| &log.record);
        let holder = running.find(|it| {
            let own = (it.agent.session, &it.agent.name);
            it.status == Status::Running && own == (key.0, &key.1)
        });
        let taken = holder.map(|holder| (key.clone(), holder.agent.id));
        facts.names.extend(taken);
    }
    let sessions = log.sessions.iter().map(|session| session.id);
    let sessions = sessions.filter(|session| keys.sessions.contains(session));
    facts.sessions.extend(sessions);
    let mail = log.mail.iter().filter(|mail| keys.mail.contains(&mail.id));
    facts.mail.extend(mail.map(|mail| {
        let mail_facts = MailFacts {
            to: mail.to,
            is_queued: mail.state == MailState::Queued,
        };
        (mail.id, mail_facts)
    }));
    let runs = log.runs.iter().filter(|run| keys.runs.contains(&run.id));
    let runs = runs.map(|run| (run.id, run.ended.is_none()));
    facts.runs.extend(runs);
    let jobs = log.jobs.iter().filter(|job| keys.jobs.contains(&job.id));
    let jobs = jobs.map(|job| (job.id, job.ended.is_none()));
    facts.jobs.extend(jobs);
    let requests = log.requests.iter();
    let requests = requests.filter(|it| keys.requests.contains(&it.id));
    facts.requests.extend(requests.map(|it| (it.id, it.state)));
    for root in keys.budgets.iter().filter(|it| log.agents.contains_key(it)) {
        let reserved = log.reservations.iter().filter(|it| it.root == *root);
        let reserved = reserved.filter(|it| log.is_alive(it.process));
        let found = BudgetFacts {
            spent: log.spent_below(*root),
            reserved: reserved.map(|it| (it.id, it.amount)).collect(),
        };
        facts.budgets.insert(*root, found);
    }
    for root in keys.counted.iter().filter(|it| log.agents.contains_key(it)) {
        let tree = log.below(*root, |agent| agent.status == Status::Running);
        facts.running.insert(*root, tree.len() as u64);
    }
    facts
}

fn execute(log: &mut MemoryLog, process: ProcessId, write: Write<'_>) {
    match write {
        Write::InsertSession(session) => log.sessions.push(session.clone()),
        Write::MoveSession(place) => {
            let of_place = |session: &&mut SessionRecord| session.id == place.session;
            for session in log.sessions.iter_mut().filter(of_place) {
                session.machine = place.machine;
                session.host.clone_from(&place.host);
                session.directory.clone_from(&place.directory);
            }
        }
        Write::Agent(write) => write_agent(log, process, &write),
        Write::Head(write) => write_head(log, process, write),
        Write::InsertRows(rows) => {
            for (at, row) in rows {
                let stored = Row {
                    at,
                    kind: StoredKind::Known(row.kind),
                    content: row.content.clone(),
                    data: row.data.clone(),
                    created_at: row.created_at,
                    author: row.author.clone(),
                };
                log.agent_mut(at.agent).push(stored, row.control);
            }
        }
        Write::Draft(DraftWrite::Append { agent, text, at }) => {
            append_draft(&mut log.agent_mut(agent).record, text, at);
        }
        Write::Draft(DraftWrite::Delete { agent }) => log.agent_mut(agent).record.draft = None,
        Write::Mail(write) => write_mail(log, write),
        Write::Run(write) => write_run(log, write),
        Write::Job(write) => write_job(log, write),
        Write::Request(RequestWrite::Insert(request)) => log.requests.push(request.clone()),
        Write::Request(RequestWrite::Settle {
            request,
            state,
            answer,
        }) => {
            let mut requests = log.requests.iter_mut();
            if let Some(found) = requests.find(|it| it.id == request) {
                found.state = state;
                found.answer = answer.map(str::to_owned);
            }
        }
        Write::Budget(write) => write_budget(log, process, write),
        Write::InsertBlobPart { hash, part, bytes } => {
            let parts = log.blobs.entry(hash).or_default();
            parts.entry(part).or_insert_with(|| bytes.to_vec());
        }
        Write::MarkSeen { person, mark } => {
            let key = (person.to_owned(), mark.agent);
            let seen = log.seen.entry(key).or_insert(SeenMark::new(mark.agent));
            seen.raise(mark);
        }
        Write::PutSnapshot(snapshot) => {
            let snapshots = &mut log.agent_mut(snapshot.upto.agent).snapshots;
            snapshots.insert(snapshot.upto.seq, snapshot.folded.clone());
        }
    }
}

fn write_agent(log: &mut MemoryLog, process: ProcessId, write: &AgentWrite<'_>) {
    match *write {
        AgentWrite::Insert {
            agent,
            epoch,
            owned,
        } => {
            let owner = owned.then_some(process);
            log.made.push(agent.id);
            log.agents
                .insert(agent.id, AgentLog::new(agent.clone(), epoch, owner));
        }
        AgentWrite::SetName { agent, name } => {
            name.clone_into(&mut log.agent_mut(agent).record.agent.name);
        }
        AgentWrite::SetOrigin {
            agent,
            parent,
            fork_point,
        } => {
            let agent = &mut log.agent_mut(agent).record.agent;
            agent.parent = parent;
            agent.fork_point = fork_point;
        }
        AgentWrite::SetStatus { agent, status } => log.agent_mut(agent).record.status = status,
    }
}

fn write_head(log: &mut MemoryLog, process: ProcessId, write: HeadWrite) {
    match write {
        // The head is the number of rows.
        HeadWrite::Advance { .. } => {}
        HeadWrite::SetOwner { agent, epoch } => {
            let record = &mut log.agent_mut(agent).record;
            record.epoch = epoch;
            record.owner = Some(process);
        }
        HeadWrite::ClearOwner { agent } => log.agent_mut(agent).record.owner = None,
    }
}

fn write_mail(log: &mut MemoryLog, write: MailWrite<'_>) {
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
        } => log.mail.push(MailRecord {
            id: mail,
            to,
            origin,
            from,
            author: author.cloned(),
            about,
            process,
            text: text.to_owned(),
            state: MailState::Queued,
            shown_by: None,
            sent_at: at,
        }),
        MailWrite::Settle {
            mail,
            state,
            shown_by,
        } => {
            for record in log.mail.iter_mut().filter(|record| record.id == mail) {
                record.state = state;
                record.shown_by = shown_by;
            }
        }
        MailWrite::BounceAll { to } => {
            let queued = |mail: &&mut MailRecord| mail.to == to && mail.state == MailState::Queued;
            for mail in log.mail.iter_mut().filter(queued) {
                mail.state = MailState::Bounced;
            }
        }
    }
}

fn write_run(log: &mut MemoryLog, write: RunWrite) {
    match write {
        RunWrite::Insert {
            run,
            call,
            class,
            started,
            deadline,
        } => log.runs.push(RunRecord {
            id: run,
            call,
            class,
            started,
            deadline,
            ended: None,
        }),
        RunWrite::End { run, ended } => {
            for record in log.runs.iter_mut().filter(|record| record.id == run) {
                record.ended = Some(ended);
            }
        }
    }
}

fn write_job(log: &mut MemoryLog, write: JobWrite<'_>) {
    let (job, change): (RunId, &dyn Fn(&mut JobRecord)) = match &write {
        JobWrite::Insert(job) => return log.jobs.push((*job).clone()),
        JobWrite::SetRead { job, bytes } => (*job, &|record| record.read_to = *bytes),
        JobWrite::DropPattern { job } => (*job, &|record| record.pattern = None),
        JobWrite::End { job, ended } => (*job, &|record| record.ended = Some(*ended)),
    };
    log.jobs
        .iter_mut()
        .filter(|record| record.id == job)
        .for_each(change);
}

fn write_budget(log: &mut MemoryLog, process: ProcessId, write: BudgetWrite) {
    match write {
        // Totals are computed when they are needed.
        BudgetWrite::Spend { .. } => {}
        BudgetWrite::Reserve {
            reservation,
            root,
            agent,
            estimate,
        } => log.reservations.push(MemoryReservation {
            id: reservation,
            root,
            agent,
            process,
            amount: estimate,
        }),
        BudgetWrite::Release { reservation } => {
            log.reservations.retain(|it| it.id != reservation);
        }
        BudgetWrite::ReleaseAll { agent } => log.reservations.retain(|it| it.agent != agent),
    }
}

fn append_draft(record: &mut AgentRow, text: &str, at: Micros) {
    let draft = record.draft.get_or_insert_with(|| DraftRecord {
        text: String::new(),
        updated_at: at,
    });
    draft.text.push_str(text);
    draft.updated_at = at;
}
