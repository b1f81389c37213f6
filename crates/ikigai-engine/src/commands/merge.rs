//! `/merge`: brings the work of children into this conversation.

use ikigai_core::AgentId;
use ikigai_store::{AgentRecord, Status};

use super::actions::CommandAction;
use super::agents::find_agent_near;
use super::{Command, CommandOption, Completes, Group, Reply, SlashCommand, Takes, Trouble, Typed};
use crate::family::MergeOf;
use crate::frontend::MergePreview;
use crate::turn::CommandContext;
use crate::{Engine, EngineError, EngineReader};

pub(super) const MERGE: SlashCommand = SlashCommand {
    command: Command {
        arguments: "[AGENT …] [--summary] [--done]",
        help: "add the last answer of child agents to this conversation, and apply the changes in their worktrees",
        examples: &[
            ("/merge fix-lexer", "/undo takes it back"),
            ("/merge fix-lexer --summary", "everything it said"),
            ("/merge --done", "all finished children"),
        ],
        takes: Takes::Words,
        options: &[
            CommandOption::Flag("--summary"),
            CommandOption::Flag("--done"),
        ],
        completes: &[Completes::Agents],
        reports: Some(ikigai_core::Kind::User),
        ..Command::new("merge", Group::Agents)
    },
    handler: |ctx, typed| Box::pin(merge(ctx, typed)),
};

async fn merge(ctx: &mut CommandContext<'_>, typed: &Typed) -> Result<Reply, Trouble> {
    let previews = previews(ctx.engine(), ctx.id(), typed).await?;
    Ok(Reply::of(CommandAction::Merge(previews)))
}

/// Returns the previews of the merges that a line requests.
async fn previews(
    engine: &EngineReader,
    into: AgentId,
    typed: &Typed,
) -> Result<Vec<MergePreview>, Trouble> {
    let what = if typed.flag("--summary") {
        MergeOf::Turns
    } else {
        MergeOf::LastAnswer
    };
    let all_done = typed.flag("--done");
    let mut children = Vec::new();
    for name in &typed.words {
        let child = find_agent_near(engine, into, name).await?;
        check(engine, into, &child).await?;
        if !children.contains(&child) {
            children.push(child);
        }
    }
    let is_named = !children.is_empty();
    if all_done || !is_named {
        for child in done_children(engine, into).await? {
            if !children.contains(&child) {
                children.push(child);
            }
        }
    }
    let mut previews = Vec::new();
    for child in children {
        match engine.merge_preview(&child, what).await? {
            Some(preview) => previews.push(preview),
            None if is_named && !all_done => {
                return Trouble::refused(format!("{} has nothing new to merge", child.name));
            }
            None => {}
        }
    }
    match previews.as_slice() {
        [] => Trouble::refused("nothing to merge"),
        [_] => Ok(previews),
        several if !is_named && !all_done => {
            let names: Vec<_> = several.iter().map(|one| one.child.name.as_str()).collect();
            Trouble::refused(format!(
                "several are done: {} · name one, or use /merge --done",
                names.join(", ")
            ))
        }
        _ => Ok(previews),
    }
}

/// Fails if an agent cannot be merged into another.
async fn check(engine: &EngineReader, into: AgentId, child: &AgentRecord) -> Result<(), Trouble> {
    if child.parent != Some(into) {
        return Trouble::refused(format!("{} is not a child of this agent", child.name));
    }
    if engine.works(child.id).await? {
        return Trouble::refused(format!(
            "{} is still working · /wait {}",
            child.name, child.name
        ));
    }
    Ok(())
}

/// Returns the idle children.
async fn done_children(
    engine: &EngineReader,
    parent: AgentId,
) -> Result<Vec<AgentRecord>, EngineError> {
    let mut done = Vec::new();
    for agent in engine.agents().await? {
        let is_child = agent.parent == Some(parent) && agent.status == Status::Running;
        if is_child && !engine.works(agent.id).await? {
            done.push(agent);
        }
    }
    Ok(done)
}

impl Engine {
    /// Returns the previews of `/merge` with these arguments, at least one, to edit. Stores nothing
    /// and sends no request.
    pub async fn merge_previews(
        &self,
        into: AgentId,
        arguments: &str,
    ) -> Result<Vec<MergePreview>, EngineError> {
        let typed = Typed::read(&MERGE.command, arguments).map_err(EngineError::Refused)?;
        match previews(self, into, &typed).await {
            Ok(previews) => Ok(previews),
            Err(Trouble::Refused(reason) | Trouble::Stopped(_, reason)) => {
                Err(EngineError::Refused(reason))
            }
            Err(Trouble::Engine(error)) => Err(error),
        }
    }
}
