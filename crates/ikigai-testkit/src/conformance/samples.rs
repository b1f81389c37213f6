//! One event of each kind, and events that several checks use.

use ikigai_core::data::{
    AgentKilledData, Amounts, AssistantData, Category, Cause, CommandData, ErrorData, FileChange,
    FileVersion, FilesData, ForkContext, ForkData, ForkRole, InterruptedData, KilledBy, MarkData,
    ProcessData, ProcessState, RewindData, SummaryData, SystemData, SystemOrigin, ToolCallData,
    ToolResultData, UsageData, UserData, UserOrigin, Via,
};
use ikigai_core::{AgentId, Epoch, Event, Kind, Micros, NewRow, RowRef, Seq, Settings};
use ikigai_store::{
    AgentEffect, DraftEffect, Effect, LeaseEffect, MailEffect, MailId, MailOrigin, MailTopic,
    NewAgent, Status,
};

/// Makes the effect that takes a lease.
pub(super) fn take(agent: AgentId) -> Effect {
    Effect::Lease(LeaseEffect::Take { agent })
}

/// Makes the effect that gives a lease back.
pub(super) fn give(agent: AgentId, epoch: u64) -> Effect {
    let epoch = Epoch(epoch);
    Effect::Lease(LeaseEffect::Give { agent, epoch })
}

/// Makes the effect that creates an agent, with its lease if it is owned.
pub(super) fn create(agent: NewAgent, owned: bool) -> Effect {
    Effect::Agent(AgentEffect::Create { agent, owned })
}

/// Makes the effect that sets an agent's status.
pub(super) fn set_status(agent: AgentId, status: Status) -> Effect {
    Effect::Agent(AgentEffect::SetStatus { agent, status })
}

/// Makes the effect that appends a part to a draft.
pub(super) fn append_draft(
    agent: AgentId,
    epoch: u64,
    text: impl Into<String>,
    at: Micros,
) -> Effect {
    Effect::Draft(DraftEffect::Append {
        agent,
        epoch: Epoch(epoch),
        text: text.into(),
        at,
    })
}

/// Makes the effect that drops a draft.
pub(super) fn drop_draft(agent: AgentId, epoch: u64) -> Effect {
    let epoch = Epoch(epoch);
    Effect::Draft(DraftEffect::Drop { agent, epoch })
}

/// Makes the effect that sends a message of the user.
pub(super) fn user_mail(mail: MailId, to: AgentId, text: impl Into<String>, at: Micros) -> Effect {
    Effect::Mail(MailEffect::Send {
        mail,
        to,
        origin: MailOrigin::User,
        from: None,
        about: MailTopic::Message,
        text: text.into(),
        at,
        author: None,
    })
}

/// Returns the time `n` microseconds into a check.
pub(super) fn at(n: i64) -> Micros {
    Micros(1_700_000_000_000_000 + n)
}

/// Makes a message of the user.
pub(super) fn user(text: &str) -> Event {
    let data = UserData {
        origin: Some(UserOrigin::Typed),
        ..UserData::default()
    };
    Event::User {
        text: text.to_owned(),
        data,
    }
}

/// Makes a row with a message of the user.
pub(super) fn user_row(agent: AgentId, text: &str) -> NewRow {
    user(text).into_row(agent, at(0))
}

/// Makes the fork row of the parent's log.
pub(super) fn parents_fork_row(parent: AgentId, child: AgentId) -> NewRow {
    let data = ForkData {
        role: Some(ForkRole::Parent),
        child_uuid: Some(child),
        ..ForkData::default()
    };
    let text = format!("Forked child {child}");
    Event::Fork {
        text,
        data: Box::new(data),
    }
    .into_row(parent, at(0))
}

/// Makes the fork row of the child's log.
pub(super) fn childs_fork_row(parent: AgentId, child: AgentId) -> NewRow {
    let data = ForkData {
        role: Some(ForkRole::Child),
        parent_uuid: Some(parent),
        context: Some(ForkContext::Fresh),
        parent_name: Some("parent".to_owned()),
        settings: Some(Settings::default()),
        ..ForkData::default()
    };
    let text = format!("Forked from {parent}");
    Event::Fork {
        text,
        data: Box::new(data),
    }
    .into_row(child, at(0))
}

/// Makes the kill row of the killer's log.
pub(super) fn kill_row(killer: AgentId, target: AgentId) -> NewRow {
    Event::AgentKilled(AgentKilledData {
        target: Some(target),
        killed: Some(vec![target]),
        by: Some(KilledBy::User),
    })
    .into_row(killer, at(0))
}

/// Makes a rewind to an own row.
pub(super) fn rewind(agent: AgentId, target: u64, from: u64) -> Event {
    Event::Rewind(RewindData {
        target: Some(RowRef::new(agent, Seq(target))),
        from: Some(RowRef::new(agent, Seq(from))),
        via: Some(Via::Rewind),
        ..RewindData::default()
    })
}

/// Makes the usage of a response.
pub(super) fn usage(response: u64) -> Event {
    Event::Usage(UsageData {
        response: Some(response),
        ..UsageData::default()
    })
}

/// Makes a mark with a label.
pub(super) fn mark(label: &str) -> Event {
    Event::Mark(MarkData {
        label: Some(label.to_owned()),
    })
}

/// Makes one event of each kind, in the order of [`Kind::ALL`].
pub(super) fn one_of_each_kind(agent: AgentId) -> Vec<Event> {
    Kind::ALL
        .into_iter()
        .map(|kind| one_of(kind, agent))
        .collect()
}

fn one_of(kind: Kind, agent: AgentId) -> Event {
    let row = |seq| Some(RowRef::new(agent, Seq(seq)));
    match kind {
        Kind::System => Event::System {
            text: "You are terse.".to_owned(),
            data: SystemData {
                origin: Some(SystemOrigin::Start),
            },
        },
        Kind::User => user("Which files are here?"),
        Kind::Assistant => Event::Assistant {
            text: String::new(),
            data: AssistantData {
                response: Some(1),
                ..AssistantData::default()
            },
        },
        Kind::ToolCall => Event::ToolCall {
            shown: Some("ls".to_owned()),
            data: ToolCallData {
                tool_call_id: Some("call_1".to_owned()),
                name: Some("ls".to_owned()),
                arguments: Some(r#"{ "path" : "." }"#.to_owned()),
                response: Some(1),
                opaque: None,
            },
        },
        Kind::ToolResult => Event::ToolResult {
            shown: None,
            data: ToolResultData {
                tool_call_id: Some("call_1".to_owned()),
                output: Some("a\nb\n".to_owned()),
                success: Some(true),
                call: row(4),
                ..ToolResultData::default()
            },
        },
        Kind::Clear => Event::Clear,
        Kind::Mark => mark("here"),
        Kind::Rewind => rewind(agent, 2, 7),
        Kind::Fork => Event::Fork {
            text: format!("Forked child {agent}"),
            data: Box::new(ForkData {
                role: Some(ForkRole::Parent),
                child_uuid: Some(agent),
                fork_point: row(3),
                ..ForkData::default()
            }),
        },
        Kind::Command => Event::Command {
            output: Some("0.42 $".to_owned()),
            data: CommandData {
                command: Some("cost".to_owned()),
                ..CommandData::default()
            },
        },
        Kind::AgentKilled => Event::AgentKilled(AgentKilledData {
            target: Some(agent),
            killed: Some(vec![agent]),
            by: Some(KilledBy::Model),
        }),
        Kind::Usage => Event::Usage(UsageData {
            response: Some(1),
            sum: Some(Amounts {
                input: Some(u64::MAX),
                ..Amounts::default()
            }),
            ..UsageData::default()
        }),
        Kind::Interrupted => Event::Interrupted(InterruptedData {
            cause: Some(Cause::User),
        }),
        Kind::Error => Event::Error {
            text: "overloaded".to_owned(),
            data: ErrorData {
                category: Some(Category::Provider),
                status: Some(529),
                ..ErrorData::default()
            },
        },
        Kind::Summary => Event::Summary {
            text: None,
            data: SummaryData {
                from: row(1),
                to: row(3),
                ..SummaryData::default()
            },
        },
        Kind::Files => changed_file(agent),
        Kind::Process => Event::Process {
            command: "sleep 9".to_owned(),
            data: ProcessData {
                process: Some(1),
                state: Some(ProcessState::Started),
                call: row(2),
                ..ProcessData::default()
            },
        },
    }
}

/// A call that created a file.
fn changed_file(agent: AgentId) -> Event {
    Event::Files(FilesData {
        call: Some(RowRef::new(agent, Seq(4))),
        entries: Some(vec![FileChange {
            path: Some("/w/a".to_owned()),
            before: Some(FileVersion::absent()),
            after: Some(FileVersion {
                hash: Some("00ff".to_owned()),
                mode: Some(0o644),
                ..FileVersion::default()
            }),
        }]),
        ..FilesData::default()
    })
}
