//! Actions of commands that need more than rows. Only the dispatcher runs them.

use std::fmt::Write as _;
use std::time::Duration;

use ikigai_core::data::{CommandData, KilledBy, RewindData, SummaryData};
use ikigai_core::project::estimate_tokens;
use ikigai_core::settings::WorktreeSetting;
use ikigai_core::words::Severity;
use ikigai_core::{AgentId, Event, RowRef};
use ikigai_store::{Agent, AgentRecord, BoxFuture};
use tokio::time::{Instant, sleep_until};

use super::compact::NOTHING;
use super::fork::{fork_line, no_room};
use super::reply::Then;
use super::{Reply, Trouble};
use crate::family::{ForkRequest, Wait, apply_changes};
use crate::figures::{tokens, with_descendants};
use crate::file_history::FileRestore;
use crate::frontend::{FrontEnd, MergePreview, Next, UiEvent};
use crate::inbox::read_mark;
use crate::ledger::CommitPlan;
use crate::turn::{FileRestorer, Written, check_resumable, resume_other, wake_other};
use crate::{AgentJob, EngineError, Worker, worktrees};

/// Action of a command on agents or summaries.
pub(crate) enum CommandAction {
    /// Creates children; `true` shows the last one.
    Fork(Vec<ForkRequest>, bool),
    /// Kills an agent and its descendants.
    Kill(AgentRecord),
    /// Merges children, until one has a conflict.
    Merge(Vec<MergePreview>),
    /// Rewinds the path, and restores files.
    RewindFiles(Box<FileRewind>),
    /// Removes worktrees of agents.
    RemoveWorktrees(Vec<(AgentRecord, WorktreeSetting)>),
    /// Resumes the stopped turns of other agents; `true` also resumes this one's.
    Resume(Vec<AgentRecord>, bool),
    /// Starts a turn of an agent that has new mail.
    Wake(AgentRecord),
    Wait(Vec<AgentId>, Duration),
    /// Writes a summary, with instructions.
    Summarise(Option<String>),
    /// Opens a summary in the user's editor: the one in force, or a new one.
    EditSummary {
        echo: Box<CommandData>,
        in_force: Option<(RowRef, SummaryData, String)>,
        instructions: Option<String>,
    },
}

/// Rewind that restores files.
pub(crate) struct FileRewind {
    pub(super) data: RewindData,
    pub(super) plan: FileRestore,
    /// Also restores files that others changed since.
    pub(super) overwrites: bool,
    /// Description of the rewind.
    pub(super) line: String,
    /// Description of the way back.
    pub(super) way_back: &'static str,
    /// Text that returns to the input.
    pub(super) input: Option<String>,
}

impl CommandAction {
    /// Runs the action and returns the command's reply.
    pub(super) fn run<'a>(
        self,
        worker: &'a mut Worker,
        front: &'a mut FrontEnd<'_>,
    ) -> BoxFuture<'a, Result<Reply, Trouble>> {
        match self {
            Self::Fork(requests, go) => Box::pin(fork(worker, requests, go, front)),
            Self::Kill(target) => Box::pin(kill(worker, target, front)),
            Self::Merge(previews) => Box::pin(merge(worker, previews)),
            Self::RewindFiles(rewind) => Box::pin(rewind_files(worker, *rewind, front)),
            Self::RemoveWorktrees(left) => Box::pin(remove_worktrees(worker, left)),
            Self::Resume(others, own) => Box::pin(resume(worker, others, own)),
            Self::Wake(to) => Box::pin(async move {
                wake_other(worker, &to).await?;
                Ok(Reply::default())
            }),
            Self::Wait(agents, patience) => Box::pin(watch_agents(worker, agents, patience, front)),
            Self::Summarise(instructions) => Box::pin(summarise(worker, instructions, front)),
            Self::EditSummary {
                echo,
                in_force,
                instructions,
            } => Box::pin(edit_summary(worker, echo, in_force, instructions, front)),
        }
    }
}

async fn fork(
    worker: &mut Worker,
    requests: Vec<ForkRequest>,
    go: bool,
    front: &mut FrontEnd<'_>,
) -> Result<Reply, Trouble> {
    let mut output = String::new();
    let mut last = None;
    for request in requests {
        let (forked, rows) = match worker.family().fork(&request, |_| Vec::new(), None).await {
            Ok(forked) => forked,
            Err(error) => return Err(no_room(error, &output)),
        };
        front.emit_rows(rows);
        output.push_str(&fork_line(&forked.name, &request));
        if request.prompt.is_some() {
            worker.family().start_child(forked.id).await?;
        } else if request.worktree.is_some() {
            // The user may work in it before its first turn, which would create it.
            let child = Agent::restore(worker.engine().reader(), forked.id).await?;
            let settings = child.state.settings();
            if let Err(reason) = worktrees::ensure(worker.engine().safety(), settings).await {
                let _ = writeln!(output, "{reason}");
            }
        }
        last = Some((forked.id, request.prompt.is_none()));
    }
    let reply = Reply::says(output.trim_end());
    Ok(match last {
        Some((child, idle)) if idle || go => reply.then(Then::Front(Next::Switch(child))),
        _ => reply,
    })
}

async fn kill(
    worker: &mut Worker,
    target: AgentRecord,
    front: &mut FrontEnd<'_>,
) -> Result<Reply, Trouble> {
    let own = worker.id();
    match worker
        .family()
        .kill(&target, KilledBy::User, Vec::new(), None)
        .await
    {
        Ok((rows, killed)) => {
            front.emit_rows(rows);
            let with = with_descendants(killed.len() - 1);
            let reply = Reply::says(format!("✗ killed {}{with}", target.name));
            let parent = target.parent.filter(|_| killed.contains(&own));
            Ok(match parent {
                Some(parent) => reply.then(Then::Front(Next::Switch(parent))),
                None => reply,
            })
        }
        Err(error @ (EngineError::KillsRoot(_) | EngineError::Dead(_))) => {
            Trouble::refused(error.to_string())
        }
        Err(error) => Err(error.into()),
    }
}

/// Applies the changes of children in their order. What was applied is stored, whatever follows.
async fn merge(worker: &mut Worker, previews: Vec<MergePreview>) -> Result<Reply, Trouble> {
    let mut lines = Vec::new();
    let mut events = Vec::new();
    let mut effects = Vec::new();
    let mut severity = None;
    for preview in previews {
        if let Err(reason) = apply_changes(worker.engine(), &preview).await {
            if events.is_empty() {
                return Trouble::refused(reason);
            }
            severity = Some(Severity::Warning);
            lines.push(reason);
            break;
        }
        events.push(preview.event(&preview.text));
        effects.push(read_mark(worker.engine(), preview.newest()));
        lines.push(preview.line());
    }
    Ok(Reply {
        severity,
        events,
        effects,
        ..Reply::says(lines.join("\n"))
    })
}

/// Rewinds the path and restores files. The rewind is stored before the first file changes.
async fn rewind_files(
    worker: &mut Worker,
    rewind: FileRewind,
    front: &mut FrontEnd<'_>,
) -> Result<Reply, Trouble> {
    let FileRewind {
        data,
        plan,
        overwrites,
        line,
        way_back,
        input,
    } = rewind;
    let restored = FileRestorer { worker }
        .rewind_files(data, plan, overwrites, front)
        .await?;
    let gap = if restored.text.is_empty() { "" } else { ". " };
    let reply = Reply {
        effects: vec![restored.end],
        ..Reply::says(format!("{line}{gap}{}{way_back}", restored.text))
    };
    Ok(match input {
        Some(text) => reply.then(Then::Front(Next::Input(text))),
        None => reply,
    })
}

/// Removes worktrees whose agents are hidden. What fails is tried again by the next `/reap`.
async fn remove_worktrees(
    worker: &mut Worker,
    left: Vec<(AgentRecord, WorktreeSetting)>,
) -> Result<Reply, Trouble> {
    let mut failures = Vec::new();
    for (agent, setting) in left {
        let removed = worktrees::remove(worker.engine().safety(), &setting).await;
        if let Err(reason) = removed {
            failures.push(format!("worktree of {} kept: {reason}", agent.name));
        }
    }
    match failures.as_slice() {
        [] => Ok(Reply::default()),
        failures => Trouble::refused(failures.join("\n")),
    }
}

async fn resume(
    worker: &mut Worker,
    others: Vec<AgentRecord>,
    is_meant: bool,
) -> Result<Reply, Trouble> {
    let mut output = String::new();
    for other in others {
        if resume_other(worker, &other).await? {
            let _ = writeln!(output, "▶ resuming {}", other.name);
        }
    }
    if is_meant && worker.is_unsettled() {
        return Trouble::refused(format!("{output}this agent is already working"));
    }
    let goes_on = match check_resumable(worker.ledger_mut()).await {
        Ok(()) => is_meant,
        Err(EngineError::NothingToResume) => false,
        Err(error) => return Err(error.into()),
    };
    if goes_on {
        let reply = Reply::does(Event::resume(), format!("{output}▶ resuming"));
        return Ok(reply.then(Then::Work(AgentJob::GoOn)));
    }
    if output.is_empty() {
        return Trouble::refused("no interrupted turn to resume · /switch opens another agent");
    }
    Ok(Reply::says(output.trim_end()))
}

/// Waits until these agents are idle, and reports the state of each.
async fn watch_agents(
    worker: &mut Worker,
    of: Vec<AgentId>,
    patience: Duration,
    front: &mut FrontEnd<'_>,
) -> Result<Reply, Trouble> {
    let engine = worker.engine().clone();
    let wait = Wait::starting(engine.environment().now(), patience, of);
    let until = Instant::now() + patience;
    let mut changes = engine.hub().changes(engine.shared_reader());
    loop {
        changes.mark_unchanged();
        let is_over = Instant::now() >= until;
        let watched = worker.family().watch_wait(&wait, is_over).await?;
        if !watched.some_work || is_over {
            return Ok(Reply::says(watched.report));
        }
        tokio::select! {
            biased;
            request = front.next() => if let Some(stop) = worker.handle(request, front).await? {
                let fork_line = format!("{}\nStopped waiting; the agents keep running", watched.report);
                return Err(Trouble::Stopped(stop, fork_line));
            },
            _ = changes.changed() => {}
            () = sleep_until(until) => {}
        }
    }
}

/// Requests a summary, until the user stops it.
async fn summarise(
    worker: &mut Worker,
    instructions: Option<String>,
    front: &mut FrontEnd<'_>,
) -> Result<Reply, Trouble> {
    let mut keeper = worker.context_keeper();
    let Some(summary) = keeper.begin_summary(instructions.as_deref()).await? else {
        return Trouble::refused(NOTHING);
    };
    outcome(keeper.see_written(summary, front).await?)
}

/// Reports the result of a summary.
fn outcome(written: Written) -> Result<Reply, Trouble> {
    match written {
        Written::Shrunk(shrunk) => Ok(Reply::says(shrunk.to_string())),
        Written::Nothing(reason) => {
            Trouble::refused(format!("no summary: {reason} · conversation unchanged"))
        }
        Written::Stopped(stop) => {
            let fork_line = "interrupted · conversation unchanged";
            Err(Trouble::Stopped(stop, fork_line.to_owned()))
        }
    }
}

async fn edit_summary(
    worker: &mut Worker,
    echo: Box<CommandData>,
    in_force: Option<(RowRef, SummaryData, String)>,
    instructions: Option<String>,
    front: &mut FrontEnd<'_>,
) -> Result<Reply, Trouble> {
    // The newest row is that of the command.
    let of = Some(worker.newest());
    let command = CommandData { of, ..*echo };
    let mut keeper = worker.context_keeper();
    let draft = if let Some(in_force) = in_force {
        keeper.draft_of(in_force, command).await?
    } else {
        let Some(summary) = keeper.begin_summary(instructions.as_deref()).await? else {
            return Trouble::refused(NOTHING);
        };
        match keeper.draft_summary(summary, command, front).await? {
            Ok(draft) => draft,
            Err(written) => return outcome(written),
        }
    };
    let size = draft.scale.counted(estimate_tokens(&draft.text));
    front.emit(UiEvent::Next(Next::EditSummary(Box::new(draft))));
    Ok(Reply::says(format!(
        "{} tokens, in your editor",
        tokens(size)
    )))
}

/// Stores a merge with text that the user may have edited.
/// Makes the same rows as the command.
pub(crate) async fn store_merge(
    worker: &mut Worker,
    preview: &MergePreview,
    text: &str,
    front: &mut FrontEnd<'_>,
) -> Result<(), EngineError> {
    let name = preview.child.name.clone();
    if preview.child.parent != Some(worker.id()) {
        let reason = format!("{name} is not a child of this agent");
        return Err(EngineError::Refused(reason));
    }
    let applied = apply_changes(worker.engine(), preview).await;
    applied.map_err(EngineError::Refused)?;
    let data = CommandData {
        command: Some("merge".to_owned()),
        echo: Some(format!("/merge {name}")),
        args: Some(name),
        ..CommandData::default()
    };
    let output = Some(preview.line());
    let events = vec![preview.event(text), Event::Command { output, data }];
    let plan = CommitPlan::events(events).with(vec![read_mark(worker.engine(), preview.newest())]);
    let rows = worker.commit(plan).await?;
    front.emit_rows(rows);
    Ok(())
}
