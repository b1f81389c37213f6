//! `/reap`: hides ended agents, and removes their worktrees unless changes would be lost.

use ikigai_core::AgentId;
use ikigai_core::settings::WorktreeSetting;
use ikigai_core::words::Severity;
use ikigai_store::{Agent, AgentEffect, AgentRecord, Effect, Status};

use super::actions::CommandAction;
use super::agents::find_agent;
use super::{Command, CommandOption, Completes, Group, Reply, SlashCommand, Takes, Trouble, Typed};
use crate::turn::CommandContext;
use crate::{EngineError, EngineReader, worktrees};

pub(super) const REAP: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[AGENT] [--discard]",
        help: "hide ended agents (history is kept) and remove their worktrees, unless they have changes",
        examples: &[(
            "/reap fix-lexer --discard",
            "also if changes in its worktree are lost",
        )],
        takes: Takes::Words,
        options: &[CommandOption::Flag("--discard")],
        completes: &[Completes::Agents],
        ..Command::new("reap", Group::Agents)
    },
    handler: |ctx, typed| Box::pin(reap(ctx, typed)),
};

/// Worktrees of ended agents.
#[derive(Default)]
struct LeftWorktrees {
    /// Agents whose worktrees are removed.
    removed: Vec<(AgentRecord, WorktreeSetting)>,
    /// Lines about worktrees with changes.
    kept: Vec<String>,
}

async fn reap(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let discards = typed.flag("--discard");
    let ended = match typed.one("reap")? {
        Some(name) => vec![find_agent(ctx, name).await?],
        None if discards => {
            return Trouble::refused("name the agent whose worktree is discarded");
        }
        None => {
            let mut agents = ctx.engine().agents().await?;
            agents.retain(|agent| agent.status != Status::Running);
            agents
        }
    };
    let is_named = ended.len() == 1 && typed.one("reap")?.is_some();
    let left = left_worktrees(ctx.engine(), &ended, discards).await?;
    let is_done = left.removed.is_empty() && left.kept.is_empty();
    let (dead, others): (Vec<_>, Vec<_>) = ended
        .into_iter()
        .partition(|agent| agent.status == Status::Dead);
    let refused = others
        .iter()
        .find(|agent| is_done || agent.status == Status::Running);
    if let Some(agent) = refused.filter(|_| is_named) {
        return Trouble::refused(format!("{} is {}, not ended", agent.name, agent.status));
    }
    if dead.is_empty() && is_done {
        return Trouble::refused("no ended agents");
    }
    let mut lines = report_reaped(ctx, &dead).await?;
    let removed = left.removed.iter();
    lines.extend(removed.map(|(agent, _)| format!("Worktree removed: {}", agent.name)));
    let severity = (!left.kept.is_empty()).then_some(Severity::Warning);
    lines.extend(left.kept);
    let hide = |agent: &AgentRecord| {
        Effect::Agent(AgentEffect::SetStatus {
            agent: agent.id,
            status: Status::Reaped,
        })
    };
    let reply = Reply {
        effects: dead.iter().map(hide).collect(),
        severity,
        ..Reply::says(lines.join("\n"))
    };
    Ok(if left.removed.is_empty() {
        reply
    } else {
        reply.later(CommandAction::RemoveWorktrees(left.removed))
    })
}

/// Finds the worktrees of ended agents, and which of them have changes that no merge applied.
async fn left_worktrees(
    engine: &EngineReader,
    ended: &[AgentRecord],
    discards: bool,
) -> Result<LeftWorktrees, EngineError> {
    let is_ended = |agent: &&AgentRecord| agent.status != Status::Running;
    let ids: Vec<AgentId> = ended
        .iter()
        .filter(is_ended)
        .map(|agent| agent.id)
        .collect();
    let mut left = LeftWorktrees::default();
    for id in worktrees::left_by(engine.safety(), ids).await {
        let agent = Agent::restore(engine.reader(), id).await?;
        let settings = agent.state.settings();
        let setting = worktrees::own_worktree(id, settings).cloned();
        let record = ended.iter().find(|agent| agent.id == id).cloned();
        let Some((setting, record)) = setting.zip(record) else {
            continue;
        };
        let reason = match worktrees::unmerged(engine.safety(), Some(&setting)).await {
            _ if discards => None,
            Ok(None) => None,
            Ok(Some(merge)) => Some(merge.describe()),
            Err(reason) => Some(reason),
        };
        match reason {
            None => left.removed.push((record, setting)),
            Some(reason) => left.kept.push(format!(
                "Worktree kept, not merged: {} ({reason}) · /merge {} or /reap {} --discard",
                setting.path.as_deref().unwrap_or_default(),
                record.name,
                record.name
            )),
        }
    }
    Ok(left)
}

/// Reports reaped agents, by the directories of their sessions.
async fn report_reaped(
    ctx: &CommandContext<'_>,
    dead: &[AgentRecord],
) -> Result<Vec<String>, EngineError> {
    let sessions = ctx.engine().sessions().await?;
    let mut lines = Vec::new();
    for session in &sessions {
        let members = dead.iter().filter(|agent| agent.session == session.id);
        let names: Vec<_> = members.map(|agent| agent.name.as_str()).collect();
        if !names.is_empty() {
            lines.push(format!(
                "Hidden: {} in {}",
                names.join(", "),
                session.directory
            ));
        }
    }
    let is_known = |agent: &&AgentRecord| sessions.iter().any(|one| one.id == agent.session);
    let others = dead.iter().filter(|agent| !is_known(agent));
    lines.extend(others.map(|agent| format!("Hidden: {}", agent.name)));
    Ok(lines)
}
