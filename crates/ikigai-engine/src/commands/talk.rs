//! Commands on turns: `/retry`, `/resume`.

use ikigai_core::Event;
use ikigai_core::data::Via;
use ikigai_store::{Status, history};

use super::actions::CommandAction;
use super::reply::Then;
use super::rows::quote_beginning;
use super::{Command, Completes, During, Group, Reply, SlashCommand, Takes, Trouble, Typed};
use crate::AgentJob;
use crate::rewind_effects::leave_for;
use crate::turn::CommandContext;

/// Argument for all agents.
const ALL: &str = "all";

pub(super) const RETRY: SlashCommand = SlashCommand {
    command: Command {
        help: "resend your last message, dropping its answer",
        during: During::Interrupts,
        reports: Some(ikigai_core::Kind::Rewind),
        ..Command::new("retry", Group::Talk)
    },
    handler: |ctx, _| Box::pin(retry(ctx)),
};

pub(super) const RESUME: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[AGENT … | all]",
        help: "continue interrupted turns, of this agent or others",
        takes: Takes::Words,
        completes: &[Completes::Agents],
        ..Command::new("resume", Group::Agents)
    },
    handler: |ctx, typed| Box::pin(resume(ctx, typed)),
};

pub(super) const TAKE: SlashCommand = SlashCommand {
    command: Command {
        help: "take this agent over from another terminal",
        ..Command::new("take", Group::Agents)
    },
    handler: |_, _| {
        // This process holds the agent already.
        Box::pin(async { Trouble::refused("this agent is already open here") })
    },
};

async fn retry(ctx: &mut CommandContext<'_>) -> Result<Reply, Trouble> {
    ctx.check_model().await?;
    let message = ctx.last_message().await?;
    let (data, departure) =
        leave_for(ctx.engine().reader(), ctx.agent(), message, Via::Retry).await?;
    let row = history::row_at(ctx.engine().reader(), message).await?;
    let said = row.as_ref().map(quote_beginning).unwrap_or_default();
    let workdir = ctx.settings().workdir.as_deref();
    let changed = departure
        .changed(workdir)
        .map_or_else(String::new, |changed| {
            format!(". Files keep their changes: {changed}")
        });
    let output = format!("↻ retrying {said}{changed}. /redo restores the previous answer");
    let reply = Reply::does(Event::Rewind(data), output);
    Ok(reply.then(Then::Work(AgentJob::Answer)))
}

async fn resume(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let own = ctx.id();
    let mut others = Vec::new();
    let mut is_meant = typed.words.is_empty();
    for name in &typed.words {
        if name == ALL {
            is_meant = true;
            let mut living = ctx.engine().agents().await?;
            living.retain(|agent| agent.id != own && agent.status == Status::Running);
            others.extend(living);
        } else {
            let agent = ctx.engine().find_near(own, name).await?;
            is_meant |= agent.id == own;
            others.extend(Some(agent).filter(|agent| agent.id != own));
        }
    }
    Ok(Reply::of(CommandAction::Resume(others, is_meant)))
}
