//! Checks of background processes: their records, rows and notices.

use ikigai_core::data::{ProcessData, ProcessState};
use ikigai_core::{AgentId, Event, Seq, Span};
use ikigai_store::{CommitError, Effect, JobEffect, JobRecord, MailEffect, MailState};

use super::Rig;
use super::samples::{at, give, take, user};
use super::workbench::Workbench;

fn record(desk: &Workbench, agent: AgentId, number: u64) -> JobRecord {
    JobRecord {
        id: desk.ids.run(),
        agent,
        number,
        command: format!("sleep {number} # \u{1f4a4}"),
        started: at(1),
        deadline: at(100),
        host: "host".to_owned(),
        directory: "/state/1".to_owned(),
        pattern: Some("ready.*".to_owned()),
        read_to: 0,
        ended: None,
    }
}

fn start(job: &JobRecord) -> Effect {
    Effect::Job(JobEffect::Start(job.clone()))
}

fn started(number: u64) -> Event {
    Event::Process {
        command: "sleep".to_owned(),
        data: ProcessData {
            process: Some(number),
            state: Some(ProcessState::Started),
            ..ProcessData::default()
        },
    }
}

/// A process is listed from its start to its end, also for other processes of the store.
pub(super) async fn processes_are_listed_until_they_end(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let other = desk.agent("other").await;
    let (agent, elsewhere) = (holder.agent, record(&desk, other.agent, 1));
    let first = record(&desk, agent, 1);
    let second = JobRecord {
        pattern: None,
        ..record(&desk, agent, 2)
    };
    let rows = vec![started(1).into_row(agent, at(1))];
    holder.commit(rows, vec![start(&first)]).await.unwrap();
    desk.done([start(&elsewhere)]).await;
    holder.add([user("between"), started(2)]).await;
    desk.done([start(&second)]).await;

    let store = rig.second();
    let both = [first.clone(), second.clone()];
    assert_eq!(store.open_jobs(Some(agent)).await.unwrap(), both);
    let all = [first.clone(), elsewhere.clone(), second.clone()];
    assert_eq!(store.open_jobs(None).await.unwrap(), all);

    let (job, ended) = (first.id, at(7));
    desk.done([
        Effect::Job(JobEffect::Read { job, bytes: 12 }),
        Effect::Job(JobEffect::DropPattern { job }),
        Effect::Job(JobEffect::End { job, ended }),
        // A read after the end is recorded too.
        Effect::Job(JobEffect::Read { job, bytes: 34 }),
    ])
    .await;

    let first = JobRecord {
        pattern: None,
        read_to: 34,
        ended: Some(ended),
        ..first
    };
    let open = std::slice::from_ref(&second);
    assert_eq!(store.open_jobs(Some(agent)).await.unwrap(), open);
    let newest_first = [second.clone(), first];
    assert_eq!(store.jobs(agent, 9).await.unwrap(), newest_first);
    assert_eq!(store.jobs(agent, 1).await.unwrap(), open);
    let rows = store.process_rows(Span::whole(agent), 9).await.unwrap();
    let seqs: Vec<Seq> = rows.iter().map(|row| row.at.seq).collect();
    assert_eq!(seqs, [Seq(3), Seq(1)]);
    let rows = store.process_rows(Span::whole(agent), 1).await.unwrap();
    assert_eq!(rows.len(), 1);
    let rows = Span::new(agent, Seq(2), Seq(2));
    assert_eq!(store.process_rows(rows, 9).await.unwrap(), []);
}

/// A process is started once and ends once; a fenced commit records nothing.
pub(super) async fn refused_processes_leave_no_record(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let agent = holder.agent;
    let job = record(&desk, agent, 1);
    let unknown = record(&desk, agent, 2).id;
    desk.done([start(&job)]).await;
    let end = |job| Effect::Job(JobEffect::End { job, ended: at(2) });
    let refused = [
        vec![start(&job)],
        vec![end(unknown)],
        vec![Effect::Job(JobEffect::Read {
            job: unknown,
            bytes: 1,
        })],
        vec![Effect::Job(JobEffect::DropPattern { job: unknown })],
        vec![end(job.id), end(job.id)],
    ];
    for effects in refused {
        let refused = desk.effects(effects).await;
        assert_refused!(refused, CommitError::BadBatch(_));
    }
    let lost = record(&desk, desk.ids.agent(), 1);
    let refused = desk.effects([start(&lost)]).await;
    assert_refused!(refused, CommitError::NoAgent(_));
    let open = desk.store.open_jobs(Some(agent)).await.unwrap();
    assert_eq!(open, std::slice::from_ref(&job));

    // Another process takes the agent: what its former holder starts is refused.
    desk.done([give(agent, 1)]).await;
    desk.second(rig).done([take(agent)]).await;
    let second = record(&desk, agent, 2);
    let rows = vec![started(2).into_row(agent, at(3))];
    let fenced = holder.commit(rows, vec![start(&second)]).await;
    assert_refused!(fenced, CommitError::Fenced { .. });
    let open = desk.store.open_jobs(None).await.unwrap();
    assert_eq!(open, [job]);
}

/// A notice is mail without a sender that names the receiver's process.
pub(super) async fn notices_are_mail_about_a_process(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let holder = desk.agent("root").await;
    let mail = desk.ids.mail();
    let notify = |to, text: &str| {
        Effect::Mail(MailEffect::Notify {
            mail,
            to,
            process: 3,
            text: text.to_owned(),
            at: at(4),
        })
    };
    let lost = desk.ids.agent();
    let refused = desk.effects([notify(lost, "lost")]).await;
    assert_refused!(refused, CommitError::NoAgent(_));

    desk.done([notify(holder.agent, "ended")]).await;

    let again = desk.effects([notify(holder.agent, "twice")]).await;
    assert_refused!(again, CommitError::BadBatch(_));
    let queued = rig.second().queued_mail(holder.agent).await.unwrap();
    assert_eq!(queued.len(), 1);
    assert_eq!(queued[0].id, mail);
    assert_eq!((queued[0].from, queued[0].process), (None, Some(3)));
    assert_eq!(queued[0].text, "ended");
    assert_eq!(
        (queued[0].state, queued[0].sent_at),
        (MailState::Queued, at(4))
    );
}
